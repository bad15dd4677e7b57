//! The name of this machine, which the network plan or a DHCP lease gives it.

/// Longest name that Linux takes, in bytes (`__NEW_UTS_LEN`).
const LONGEST: usize = 64;

/// Gives the machine this name, as far as Linux takes it; otherwise warns, and the machine keeps the name it has.
pub fn set(name: &str) {
    match fitting(name) {
        Some(fitting) => {
            if fitting.len() < name.trim_end_matches('.').len() {
                tracing::warn!("the host name {name:?} is too long and is cut to {fitting}");
            }
            if let Err(error) = nix::unistd::sethostname(fitting) {
                tracing::warn!(%error, "the host name cannot be {fitting}");
            }
        }
        None => tracing::warn!("{name:?} is not a host name and is ignored"),
    }
}

/// The part of a name that Linux takes: all of it, else up to its first dot, else its first 64 bytes. Nothing
/// where it is no name.
fn fitting(name: &str) -> Option<&str> {
    let name = name.trim_end_matches('.');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !name.starts_with(|first: char| first.is_ascii_alphanumeric()) || !name.bytes().all(is_plain) {
        return None;
    }
    if name.len() <= LONGEST {
        return Some(name);
    }
    let label = name.split('.').next().unwrap_or(name);
    Some(&label[..label.len().min(LONGEST)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a04_a_host_name_is_cut_to_what_linux_takes_or_left_out() {
        let label = "a".repeat(63);
        let long = format!("{label}.rack12.example-company.internal");
        let (most, more) = ("b".repeat(64), "b".repeat(65));
        for (name, expected) in [
            ("node7", Some("node7")),
            ("node7.example.org", Some("node7.example.org")),
            ("node7.example.org.", Some("node7.example.org")),
            ("10-0-0-7", Some("10-0-0-7")),
            (&long, Some(label.as_str())),
            (&most, Some(most.as_str())),
            (&more, Some(most.as_str())),
            (&format!("{more}.example.org"), Some(most.as_str())),
            ("", None),
            (".", None),
            (".example", None),
            ("-node", None),
            ("two words", None),
            ("node\nnameserver 192.0.2.66", None),
            ("knoten-münchen", None),
            ("bad\u{fffd}", None),
        ] {
            assert_eq!(fitting(name), expected, "{name:?}");
        }
    }
}
