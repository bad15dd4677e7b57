//! The proxies on the way to an image server.

use super::no_proxy::NoProxy;
use super::unusable;
use crate::error::Error;
use farrier_protocol::image_info::ImageInfo;
use percent_encoding::percent_decode_str;
use reqwest::{Proxy, Url};
use std::sync::Arc;

/// The proxies through which an image is fetched. Which hosts need none is decided here: what conductors
/// document is not what the client's own list of exceptions understands.
///
/// # Errors
///
/// [`Error::Access`], naming the scheme whose proxy cannot be used.
pub fn proxies(info: &ImageInfo) -> Result<Vec<Proxy>, Error> {
    let given: Vec<_> = info.proxies.iter().flatten().filter(|(_, url)| !url.reveal().is_empty()).collect();
    if given.is_empty() {
        return Ok(Vec::new());
    }
    let exceptions = Arc::new(NoProxy::read(info.no_proxy.as_deref().unwrap_or_default()));
    let proxy = |(scheme, url): (&String, &farrier_protocol::image_info::Secret)| {
        if !["http", "https"].contains(&scheme.as_str()) {
            return Err(unusable(info, format!("proxies.{scheme}: give http or https")));
        }
        // The text may hold a password.
        let read = Address::read(url.reveal());
        let read = read.ok_or_else(|| unusable(info, format!("proxies.{scheme} is no URL of a proxy")))?;
        Ok(read.proxy(scheme.clone(), Arc::clone(&exceptions)))
    };
    given.into_iter().map(proxy).collect()
}

/// Where a proxy is, and who asks there.
struct Address {
    url: Url,
    credentials: Option<(String, String)>,
}

impl Address {
    /// Reads the URL of a proxy, whose scheme is HTTP where it has none.
    fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let mut url = Url::parse(&whole).ok()?;
        if !["http", "https"].contains(&url.scheme()) || !url.has_host() {
            return None;
        }
        let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let is_known = !url.username().is_empty() || url.password().is_some();
        let credentials =
            is_known.then(|| (plain(url.username()), plain(url.password().unwrap_or_default())));
        url.set_username("").and_then(|()| url.set_password(None)).ok()?;
        Some(Self { url, credentials })
    }

    /// The proxy for URLs of a scheme.
    fn proxy(self, scheme: String, exceptions: Arc<NoProxy>) -> Proxy {
        let Self { url, credentials } = self;
        let is_meant = move |target: &Url| target.scheme() == scheme && !exceptions.contains(target);
        let proxy = Proxy::custom(move |target| is_meant(target).then(|| url.clone()));
        match credentials {
            Some((user, password)) => proxy.basic_auth(&user, &password),
            None => proxy,
        }
    }
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
    fn proxies_are_read_and_bad_ones_named_without_their_password() {
        let good = json!({"http": "http://proxy:3128", "https": "http://ann:secret@proxy:3128"});
        for (fields, expected) in [
            (json!({}), Ok(0)),
            (json!({"proxies": null}), Ok(0)),
            (json!({"proxies": {}, "no_proxy": "10.0.0.0/8"}), Ok(0)),
            (json!({"proxies": {"http": ""}}), Ok(0)),
            (json!({"proxies": good, "no_proxy": "10.0.0.0/8,localhost"}), Ok(2)),
            (json!({"proxies": {"http": "http://ann:secret@:bad"}}), Err("proxies.http")),
            (json!({"proxies": {"http": "socks5://ann:secret@proxy"}}), Err("proxies.http")),
            (json!({"proxies": {"ftp": "http://ann:secret@proxy"}}), Err("proxies.ftp")),
        ] {
            match (proxies(&info(fields)), expected) {
                (Ok(proxies), Ok(count)) => assert_eq!(proxies.len(), count),
                (Err(error), Err(named)) => {
                    assert!(error.to_string().contains(named), "{error}");
                    assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
                }
                (outcome, expected) => panic!("{outcome:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn a11_addresses_of_proxies_are_read_as_people_write_them() {
        for (text, url, credentials) in [
            ("http://proxy:3128", "http://proxy:3128/", None),
            ("proxy:3128", "http://proxy:3128/", None),
            ("proxy", "http://proxy/", None),
            (" 192.0.2.1:3128 ", "http://192.0.2.1:3128/", None),
            ("[2001:db8::1]:3128", "http://[2001:db8::1]:3128/", None),
            ("https://proxy", "https://proxy/", None),
            ("ann:secret@proxy:3128", "http://proxy:3128/", Some(("ann", "secret"))),
            ("http://ann@proxy", "http://proxy/", Some(("ann", ""))),
            ("http://ann:p@ss@proxy", "http://proxy/", Some(("ann", "p@ss"))),
            ("http://ann:p%40s%25s%3A@proxy", "http://proxy/", Some(("ann", "p@s%s:"))),
            ("http://ann:50%off@proxy", "http://proxy/", Some(("ann", "50%off"))),
            ("http://ann:a:b@proxy", "http://proxy/", Some(("ann", "a:b"))),
            ("http://proxy:3128/path", "http://proxy:3128/path", None),
        ] {
            let read = Address::read(text).unwrap_or_else(|| panic!("{text}"));
            let credentials =
                credentials.map(|(user, word): (&str, &str)| (user.to_owned(), word.to_owned()));
            assert_eq!((read.url.as_str(), read.credentials), (url, credentials), "{text}");
        }
        for text in ["", "http://", "ftp://proxy", "http://:3128", "proxy:port", "http://pro xy"] {
            assert!(Address::read(text).is_none(), "{text}");
        }
    }
}
