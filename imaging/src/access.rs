//! What an image server wants to see first: credentials, and the proxies on the way (section 5.1).

mod no_proxy;
mod proxies;

pub use proxies::proxies;

use crate::error::Error;
use base64::prelude::{BASE64_STANDARD, Engine};
use farrier_protocol::image_info::{ImageInfo, Secret};
use reqwest::header::HeaderValue;

/// The `Authorization` header for an image and its checksum file: the one supplied, else one made
/// of user and password. It is marked as sensitive, so that nothing shows it.
pub(crate) fn authorization(info: &ImageInfo) -> Result<Option<HeaderValue>, Error> {
    let bytes = match (&info.image_request_authorization, info.image_server_auth_strategy.as_deref()) {
        (Some(supplied), _) if !supplied.reveal().is_empty() => BASE64_STANDARD
            .decode(supplied.reveal())
            .map_err(|_| unusable(info, "image_request_authorization must be base64"))?,
        (_, Some("http_basic")) => basic(info)?.into_bytes(),
        (_, None | Some("" | "noauth")) => return Ok(None),
        (_, Some(other)) => {
            let reason = format!("image_server_auth_strategy {other} is unknown: give http_basic or noauth");
            return Err(unusable(info, reason));
        }
    };
    let mut value = HeaderValue::from_bytes(&bytes)
        .map_err(|_| unusable(info, "its authorization is no valid header value"))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// User and password come together, or not at all (S23).
fn basic(info: &ImageInfo) -> Result<String, Error> {
    let user = info.image_server_user.as_deref().unwrap_or_default();
    let password = info.image_server_password.as_ref().map(Secret::reveal).unwrap_or_default();
    if user.is_empty() || password.is_empty() {
        let reason = "http_basic needs both image_server_user and image_server_password";
        return Err(unusable(info, reason));
    }
    Ok(format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}"))))
}

fn unusable(info: &ImageInfo, reason: impl Into<String>) -> Error {
    Error::Access { image: info.id.clone(), reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn info(mut fields: Value) -> ImageInfo {
        fields["id"] = json!("image.raw");
        fields["urls"] = json!(["http://x/image.raw"]);
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn a_supplied_header_goes_before_user_and_password() {
        let basic = json!({"image_server_auth_strategy": "http_basic",
            "image_server_user": "ann", "image_server_password": "secret"});
        let mut both = basic.clone();
        both["image_request_authorization"] = json!("QmVhcmVyIHRva2Vu");
        for (fields, expected) in [
            (json!({}), None),
            (json!({"image_server_auth_strategy": "noauth"}), None),
            (json!({"image_server_user": "ann", "image_server_password": "secret"}), None),
            (basic, Some("Basic YW5uOnNlY3JldA==")),
            (both, Some("Bearer token")),
        ] {
            let value = authorization(&info(fields)).unwrap();
            assert_eq!(value.as_ref().map(|value| value.to_str().unwrap()), expected);
            assert!(value.is_none_or(|value| value.is_sensitive()));
        }
    }

    #[test]
    fn s23_half_of_the_credentials_is_refused_and_nothing_secret_is_shown() {
        let strategy = "http_basic";
        for fields in [
            json!({"image_server_auth_strategy": strategy, "image_server_user": "ann"}),
            json!({"image_server_auth_strategy": strategy, "image_server_password": "secret"}),
            json!({"image_server_auth_strategy": strategy, "image_server_user": "",
                "image_server_password": "secret"}),
            json!({"image_server_auth_strategy": "kerberos", "image_server_password": "secret"}),
            json!({"image_request_authorization": "secret!"}),
            json!({"image_request_authorization": "c2VjcmV0Cg=="}),
        ] {
            let info = info(fields);
            let error = authorization(&info).unwrap_err();
            assert_eq!(error.kind().name(), "ImageDownloadError");
            for shown in [error.to_string(), format!("{error:?}"), format!("{info:?}")] {
                assert!(!shown.contains("secret"), "{shown}");
            }
        }
    }
}
