//! The patterns by which modules claim devices.

/// Shell-like matching with `*`, `?` and `[a-z]`, as aliases use it.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Position to fall back to: pattern after the last star, text where that star ends.
    let mut star: Option<(usize, usize)> = None;
    let (mut p, mut t) = (0, 0);
    while t < text.len() {
        let step = match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(b'?') => Some(1),
            Some(b'[') => set_length(&pattern[p..], text[t]),
            Some(byte) if *byte == text[t] => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(length), _) => {
                p += length;
                t += 1;
            }
            (None, Some((after_star, taken))) => {
                star = Some((after_star, taken + 1));
                p = after_star;
                t = taken + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Length of the set at the start of `pattern` when it holds `byte`.
fn set_length(pattern: &[u8], byte: u8) -> Option<usize> {
    let end = pattern.iter().position(|c| *c == b']')?;
    let mut set = &pattern[1..end];
    while let [first, rest @ ..] = set {
        let (last, rest) = match rest {
            [b'-', last, rest @ ..] => (last, rest),
            _ => (first, rest),
        };
        if (*first..=*last).contains(&byte) {
            return Some(end + 1);
        }
        set = rest;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_like_a_shells() {
        for (pattern, text, expected) in [
            ("pci:v*d*sv*", "pci:v00008086d0000100Esv0000", true),
            ("a*b*c", "aXXbYYc", true),
            ("a*b*c", "aXXbYY", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("input:k*2[0-9A]*", "input:k12Az", true),
            ("x[ab]y", "xcy", false),
            ("x[", "x[", false),
            ("*", "", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }
}
