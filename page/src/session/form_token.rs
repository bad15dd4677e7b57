//! What proves that a form was made for the browser that sends it: no page of another site can know it.

use super::BrowserId;
use ring::hmac;

/// Makes and checks the tokens of forms. They end with the conductor, whose key is in its memory alone.
pub(crate) struct FormTokens(hmac::Key);

impl FormTokens {
    pub(crate) fn new() -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, &rand::random::<[u8; 32]>()))
    }

    /// The token of all forms that are shown to a browser.
    pub(crate) fn of(&self, browser: &BrowserId) -> String {
        hex::encode(hmac::sign(&self.0, browser.bytes()))
    }

    /// Whether it is that one.
    pub(crate) fn is_of(&self, browser: &BrowserId, token: &str) -> bool {
        hex::decode(token).is_ok_and(|tag| hmac::verify(&self.0, browser.bytes(), &tag).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_one_browser_and_one_conductor() {
        let (tokens, browser) = (FormTokens::new(), BrowserId::new());
        let token = tokens.of(&browser);
        assert!(tokens.is_of(&browser, &token));
        assert!(!tokens.is_of(&BrowserId::new(), &token));
        assert!(!FormTokens::new().is_of(&browser, &token));
        for other in ["", "00", &token[2..], "no digits"] {
            assert!(!tokens.is_of(&browser, other), "{other}");
        }
    }
}
