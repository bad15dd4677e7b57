//! The name by which agents and BMCs distinguish conductors.

use std::fmt;

/// The header `User-Agent` (RFC 9110, 10.1.5) of a conductor's requests to agents and BMCs: product, version, and the name of
/// the conductor as a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserAgent(String);

/// The product of the library, where an author of a conductor names none.
const LIBRARY: &str = concat!("farrier-conductor/", env!("CARGO_PKG_VERSION"));

impl UserAgent {
    /// That of the conductor with a name. `product` is the name of the program and its version, as in `farrier/0.1.0`.
    /// Characters that the header cannot have become question marks.
    pub fn new(product: &str, conductor_name: &str) -> Self {
        let has_room = |one: char| one.is_ascii_graphic() || one == ' ';
        let product = product.chars().map(|one| if has_room(one) { one } else { '?' });
        let is_comment = |one: char| has_room(one) && !matches!(one, '(' | ')' | '\\');
        let name = conductor_name.chars().map(|one| if is_comment(one) { one } else { '?' });
        Self(product.chain(" (".chars()).chain(name).chain(")".chars()).collect())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for UserAgent {
    /// The library without the name of a conductor.
    fn default() -> Self {
        Self(LIBRARY.to_owned())
    }
}

impl fmt::Display for UserAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conductor_is_named_and_its_name_fits_into_a_header() {
        for (name, expected) in [
            ("rack-1.example", "farrier/0.1.0 (rack-1.example)"),
            ("two words", "farrier/0.1.0 (two words)"),
            ("a)b\\(c", "farrier/0.1.0 (a?b??c)"),
            ("gärtner\r\nX: y", "farrier/0.1.0 (g?rtner??X: y)"),
        ] {
            assert_eq!(UserAgent::new("farrier/0.1.0", name).as_str(), expected);
        }
        assert!(UserAgent::default().as_str().starts_with("farrier-conductor/"));
    }
}
