//! Traits: what schedulers may ask a node for, and what steps by name are known by.

/// Longest trait, in characters.
const LENGTH: usize = 255;

/// A trait is not spelled as one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "trait {0:?} must be upper case letters, digits and '_', such as CUSTOM_GOLD, at most {LENGTH} of them"
)]
pub struct BadTrait(String);

/// Standard traits are known to schedulers; all others begin with `CUSTOM_`. Both are spelled alike.
///
/// # Errors
///
/// It is spelled otherwise.
pub fn check_trait(name: &str) -> Result<(), BadTrait> {
    let is_plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let begins_well = name.starts_with(|c: char| c.is_ascii_uppercase());
    match begins_well && name.len() <= LENGTH && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(BadTrait(name.chars().take(LENGTH + 1).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traits_are_spelled_as_schedulers_spell_them() {
        for (name, is_good) in [
            ("CUSTOM_GOLD", true),
            ("HW_CPU_X86_VMX", true),
            ("custom_gold", false),
            ("", false),
            ("1A", false),
            ("A-B", false),
        ] {
            assert_eq!(check_trait(name).is_ok(), is_good, "{name}");
        }
        assert!(check_trait(&"A".repeat(256)).is_err());
    }
}
