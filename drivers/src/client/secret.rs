//! Passwords and tokens: kept in a type that does not print, and taken out of whatever a BMC or a service says, since
//! some repeat in an error what they were sent.

use std::fmt;

/// What replaces a secret.
const MASK: &str = "******";

/// Secrets that are shorter stand in texts by chance, and taking them out would tell what they are.
const SHORTEST: usize = 4;

/// A secret. It prints as a mask.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    /// Keeps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A foreign text with the secret masked.
    pub fn taken_out_of(&self, text: &str) -> String {
        match self.0.len() < SHORTEST {
            true => text.to_owned(),
            false => text.replace(&self.0, MASK),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print_and_is_taken_out_of_texts() {
        let secret = Secret::new("oats and hay");
        assert_eq!(format!("{secret:?}"), "******");
        assert_eq!(secret.taken_out_of("the password oats and hay is wrong"), "the password ****** is wrong");
        assert_eq!(Secret::new("a").taken_out_of("a cat"), "a cat");
        assert_eq!(Secret::new("").taken_out_of("a cat"), "a cat");
    }
}
