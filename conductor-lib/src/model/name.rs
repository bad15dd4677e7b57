//! Names of nodes, ports and resources.

/// Whether a text has the form of a name: 1 to 255 letters, digits, `.`, `_`, `-` and `~`.
pub fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-~".contains(c);
    !text.is_empty() && text.len() <= 255 && text.chars().all(is_plain)
}
