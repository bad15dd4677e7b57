//! Lines of dnsmasq's option files.

use farrier_conductor::interfaces::DhcpOption;
use std::net::IpAddr;
use std::str::FromStr;

/// Longest value (the limit of Neutron, which firmware shares).
const LONGEST: usize = 64;

/// An option cannot be written down.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// Firmware and servers have no room for it.
    #[error(
        "the DHCP option {name} has the value {value:?} of more than {LONGEST} characters; give a shorter URL or name"
    )]
    Long {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// A character ends the value, or the line.
    #[error("the DHCP option {name} cannot hold {character:?}; leave it out")]
    Character {
        /// Its name.
        name: String,
        /// The character.
        character: char,
    },
    /// The name is none.
    #[error("{0:?} is no DHCP option; give its number, after tags where there are any")]
    Name(String),
}

/// A line that sends an option to machines with a tag.
///
/// # Errors
///
/// The option would be more than one, or a line of its own.
pub fn line(tag: &str, option: &DhcpOption) -> Result<String, OptionError> {
    let (tags, number) = name(&option.name).ok_or_else(|| OptionError::Name(option.name.clone()))?;
    if option.value.len() > LONGEST {
        return Err(OptionError::Long { name: option.name.clone(), value: option.value.clone() });
    }
    let is_bad = |character: &char| !character.is_ascii_graphic() || ",\"'\\#".contains(*character);
    if let Some(character) = option.value.chars().find(is_bad) {
        return Err(OptionError::Character { name: option.name.clone(), character });
    }
    let kind = if option.ip_version == 6 { "option6:" } else { "" };
    // An address of IPv6 is told from a text by its brackets.
    let value = match IpAddr::from_str(&option.value) {
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        _ => option.value.clone(),
    };
    Ok(format!("tag:{tag},{tags}{kind}{number},{value}"))
}

/// Tags and number of an option.
fn name(text: &str) -> Option<(String, u8)> {
    let mut parts: Vec<_> = text.split(',').collect();
    let number = parts.pop()?.parse().ok()?;
    let is_tag = |part: &&str| {
        let tag = part.strip_prefix("tag:").map(|tag| tag.strip_prefix('!').unwrap_or(tag));
        tag.is_some_and(|tag| {
            !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
    };
    let tags = parts.iter().map(|part| format!("{part},")).collect();
    parts.iter().all(is_tag).then_some((tags, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(name: &str, value: &str, ip_version: u8) -> DhcpOption {
        DhcpOption { name: name.into(), value: value.into(), ip_version }
    }

    #[test]
    fn an_option_is_one_line_and_one_value() {
        for (name, value, version, expected) in [
            ("67", "pxelinux.0", 4, Some("tag:n,67,pxelinux.0")),
            ("tag:!ipxe,67", "undionly.kpxe", 4, Some("tag:n,tag:!ipxe,67,undionly.kpxe")),
            ("59", "tftp://[2001:db8::5]/a.efi", 6, Some("tag:n,option6:59,tftp://[2001:db8::5]/a.efi")),
            ("23", "2001:db8::5", 6, Some("tag:n,option6:23,[2001:db8::5]")),
            ("66", "192.0.2.5", 4, Some("tag:n,66,192.0.2.5")),
            ("67", "a\nlog-dhcp", 4, None),
            ("67", "a,b", 4, None),
            ("67", "a b", 4, None),
            ("67", "a\"b", 4, None),
            ("67", &"a".repeat(65), 4, None),
            ("67\n", "a", 4, None),
            ("tag:a b,67", "a", 4, None),
            ("67,6", "a", 4, None),
            ("256", "a", 4, None),
            ("", "a", 4, None),
        ] {
            assert_eq!(line("n", &option(name, value, version)).ok().as_deref(), expected, "{name} {value}");
        }
    }
}
