//! Tokens that conductor and agent share (section 8.4).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRngCore;
use rand::rngs::OsRng;

/// Bytes of randomness in a token; 43 characters as text.
const TOKEN_BYTES: usize = 32;

/// A token that nobody can guess.
pub(crate) fn new() -> String {
    let mut bytes = [0; TOKEN_BYTES];
    OsRng.try_fill_bytes(&mut bytes).expect("the kernel has random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_protocol::lookup::MIN_TOKEN_LENGTH;

    #[test]
    fn s24_tokens_are_long_random_and_safe_in_a_url() {
        let (first, second) = (new(), new());
        assert_ne!(first, second);
        assert_eq!(first.len(), 43);
        assert!(first.len() >= MIN_TOKEN_LENGTH);
        assert!(first.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'));
    }
}
