//! The cookie of a browser.

use super::BrowserId;
use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use ring::digest::{SHA256, digest};

/// Bytes of the digest in a name.
const DIGEST: usize = 4;

/// How the cookie is called and protected. No script reads it, and no page of another site makes a browser send it.
#[derive(Debug)]
pub(crate) struct Cookie {
    name: String,
    attributes: &'static str,
}

impl Cookie {
    /// That of a conductor. Browsers do not tell apart the ports of a host, and several conductors may be on one.
    pub(crate) fn new(conductor: &str, is_https: bool) -> Self {
        let digest = digest(&SHA256, conductor.as_bytes());
        let name = format!("farrier-page-{}", hex::encode(&digest.as_ref()[..DIGEST]));
        let attributes = match is_https {
            true => "Path=/page; HttpOnly; SameSite=Strict; Secure",
            false => "Path=/page; HttpOnly; SameSite=Strict",
        };
        Self { name, attributes }
    }

    /// The identity in the cookies of a request.
    pub(crate) fn read(&self, headers: &HeaderMap) -> Option<BrowserId> {
        let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.name).and_then(|(_, id)| BrowserId::named(id))
    }

    /// The value of `Set-Cookie`. The cookie ends with the browser.
    pub(crate) fn set(&self, id: &BrowserId) -> HeaderValue {
        let text = format!("{}={}; {}", self.name, id.text(), self.attributes);
        let mut value = HeaderValue::try_from(text).expect("hexadecimal digits and words are a header");
        value.set_sensitive(true);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_among_others_and_has_the_form_of_an_identity() {
        let cookie = Cookie::new("c1", true);
        let id = BrowserId::new();
        let set = cookie.set(&id);
        let set = set.to_str().unwrap();
        assert!(set.ends_with("; Path=/page; HttpOnly; SameSite=Strict; Secure"), "{set}");
        let pair = set.split(';').next().unwrap();
        let other = Cookie::new("c2", false).set(&BrowserId::new());
        let other = other.to_str().unwrap().split(';').next().unwrap().to_owned();
        let name = pair.split('=').next().unwrap();
        for (sent, is_found) in [
            (pair.to_owned(), true),
            (format!("{other}; {pair}"), true),
            (format!("a=b;{pair};c=d"), true),
            (other.clone(), false),
            (format!("{name}=short"), false),
            (format!("{name}={}", "g".repeat(64)), false),
            (String::new(), false),
        ] {
            let headers = [(COOKIE, HeaderValue::try_from(sent.clone()).unwrap())].into_iter().collect();
            assert_eq!(cookie.read(&headers), is_found.then_some(id), "{sent}");
        }
    }
}
