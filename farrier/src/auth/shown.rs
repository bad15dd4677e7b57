//! What the head of a request shows of who sent it.

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Where clients of OpenStack put a token.
pub(super) const X_AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// Some clients leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Credentials; they are never printed.
#[derive(PartialEq, Eq)]
pub(super) enum Shown {
    Token(Vec<u8>),
    Password { name: String, password: Vec<u8> },
}

impl Shown {
    /// Reads them; an error says what is wrong with them, without them.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, &'static str> {
        let mut authorizations = headers.get_all(AUTHORIZATION).iter();
        match (authorizations.next(), authorizations.next()) {
            (Some(value), None) => Self::of_authorization(value),
            (Some(_), Some(_)) => Err("there is more than one Authorization header"),
            (None, _) => match headers.get(X_AUTH_TOKEN) {
                Some(token) => Ok(Self::Token(token.as_bytes().to_vec())),
                None => Err("credentials are needed: HTTP basic, or a bearer token"),
            },
        }
    }

    fn of_authorization(value: &HeaderValue) -> Result<Self, &'static str> {
        let value = value.to_str().map_err(|_| "the Authorization header is no text")?;
        let (scheme, rest) =
            value.trim().split_once(' ').ok_or("the Authorization header has no credentials")?;
        let rest = rest.trim_start();
        match scheme.to_ascii_lowercase().as_str() {
            "bearer" => Ok(Self::Token(rest.as_bytes().to_vec())),
            "basic" => {
                let decoded = BASE64.decode(rest).map_err(|_| "the basic credentials are no base64")?;
                let colon = decoded.iter().position(|byte| *byte == b':');
                let colon = colon.ok_or("the basic credentials have no colon")?;
                let name = String::from_utf8(decoded[..colon].to_vec());
                let name = name.map_err(|_| "the name in the basic credentials is no UTF-8")?;
                Ok(Self::Password { name, password: decoded[colon + 1..].to_vec() })
            }
            _ => Err("the scheme of the Authorization header is not known; use Basic or Bearer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &[(&'static str, &[u8])]) -> Result<Shown, &'static str> {
        let pairs = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap()));
        Shown::of(&pairs.collect())
    }

    #[test]
    fn credentials_are_found_as_clients_write_them() {
        let token = || Shown::Token(b"abc".to_vec());
        let password = |name: &str, password: &[u8]| Shown::Password {
            name: name.to_owned(),
            password: password.to_vec(),
        };
        for (name, value, expected) in [
            ("authorization", "Bearer abc", token()),
            ("authorization", "BEARER  abc ", token()),
            ("x-auth-token", "abc", token()),
            ("authorization", "Basic YWRtaW46c2VjcmV0", password("admin", b"secret")),
            ("authorization", "basic YTpiOmM=", password("a", b"b:c")),
            ("authorization", "basic YTpiOmM", password("a", b"b:c")),
            ("authorization", "Basic Og==", password("", b"")),
            ("authorization", "Basic Y2w6/w==", password("cl", &[0xff])),
        ] {
            assert!(of(&[(name, value.as_bytes())]) == Ok(expected), "{name}: {value}");
        }
    }

    #[test]
    fn what_is_no_credential_is_refused_without_showing_it() {
        let basic: &[u8] = b"Basic YTpi";
        for (headers, expected) in [
            (&[][..], "credentials are needed"),
            (&[("authorization", basic), ("authorization", basic)], "more than one"),
            (&[("authorization", b"Basic")], "has no credentials"),
            (&[("authorization", b"")], "has no credentials"),
            (&[("authorization", b"Basic c2VjcmV0")], "no colon"),
            (&[("authorization", b"Basic se!cret")], "no base64"),
            (&[("authorization", b"Basic /zp4")], "no UTF-8"),
            (&[("authorization", b"Basic \xff")], "no text"),
            (&[("authorization", b"Digest username=secret")], "not known"),
            (&[("authorization", b"Negotiate secret")], "not known"),
        ] {
            let said = of(headers).err().unwrap();
            assert!(said.contains(expected) && !said.contains("secret"), "{expected}: {said}");
        }
    }
}
