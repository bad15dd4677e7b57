//! Tokens that conductor and agent share (section 8.4).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRngCore;
use rand::rngs::OsRng;
use std::hint::black_box;

/// Bytes of randomness in a token; 43 characters as text.
const TOKEN_BYTES: usize = 32;

/// A new random token.
pub fn new() -> String {
    let mut bytes = [0; TOKEN_BYTES];
    OsRng.try_fill_bytes(&mut bytes).expect("the kernel has random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Whether a token that was sent is the one that is known. The duration does not depend on where they differ.
pub fn is_same(known: &str, sent: &str) -> bool {
    let (known, sent) = (known.as_bytes(), sent.as_bytes());
    let differing =
        known.iter().zip(sent).fold(0, |differing, (one, other)| black_box(differing | (one ^ other)));
    known.len() == sent.len() && differing == 0
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

    #[test]
    fn n23_tokens_are_the_same_in_every_byte_or_not_at_all() {
        for (known, sent, expected) in [
            ("", "", true),
            ("abc", "abc", true),
            ("abc", "abd", false),
            ("abc", "ab", false),
            ("ab", "abc", false),
            ("xbc", "abc", false),
        ] {
            assert_eq!(is_same(known, sent), expected, "{known} {sent}");
        }
    }

    /// Tokens, passwords and secrets are compared by what takes the same time whatever they are.
    #[test]
    fn n23_no_secret_is_compared_byte_by_byte() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut folders = vec![root.join("src"), root.join("../node-api/src")];
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let source = std::fs::read_to_string(&path).unwrap();
                let code = source.split("#[cfg(test)]").next().unwrap_or_default();
                let compares = |line: &&str| {
                    let line = line.split("//").next().unwrap_or_default();
                    let names = ["token", "password", "secret"].iter().any(|name| line.contains(name));
                    names
                        && (line.contains(" == ") || line.contains(" != "))
                        && !line.contains("None")
                        && !line.contains("_timeout")
                        // Of a URL, whether it has one.
                        && !line.contains("url.path()")
                };
                found.extend(code.lines().filter(compares).map(|line| format!("{}: {line}", path.display())));
            }
        }
        assert_eq!(found, Vec::<String>::new(), "use agent::token::is_same");
    }
}
