//! The identity of a browser.

use std::fmt;

/// Bytes of an identity.
const LENGTH: usize = 32;

/// The identity of a browser, which nobody guesses. It is in its cookie, and never printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct BrowserId([u8; LENGTH]);

impl BrowserId {
    /// Another one.
    pub(crate) fn new() -> Self {
        Self(rand::random())
    }

    /// The one that a cookie has.
    pub(crate) fn named(text: &str) -> Option<Self> {
        let mut bytes = [0; LENGTH];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// As a cookie has it.
    pub(crate) fn text(&self) -> String {
        hex::encode(self.0)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for BrowserId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("BrowserId")
    }
}
