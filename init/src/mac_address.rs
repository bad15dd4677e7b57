//! Hardware addresses of Ethernet, as operators and the kernel write them.

use std::fmt;

/// A hardware address of Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Reads six hexadecimal numbers with colons or dashes between them.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.trim().split([':', '-']).collect();
        let byte = |part: &&str| {
            let is_byte = part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit());
            is_byte.then(|| u8::from_str_radix(part, 16).ok()).flatten()
        };
        let bytes: Option<Vec<u8>> = parts.iter().map(byte).collect();
        bytes?.try_into().ok().map(Self)
    }

    /// The address in `BOOTIF`, which has the type of the hardware in front where PXELINUX wrote it.
    pub fn of_boot_interface(text: &str) -> Option<Self> {
        let text = text.trim();
        Self::parse(text).or_else(|| {
            let (kind, address) = text.split_once([':', '-'])?;
            let is_kind = kind.len() == 2 && kind.bytes().all(|digit| digit.is_ascii_hexdigit());
            is_kind.then(|| Self::parse(address)).flatten()
        })
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        formatter.write_str(&parts.join(":"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_addresses_have_either_separator() {
        let expected = MacAddress([0x52, 0x54, 0, 0xab, 0xcd, 0xef]);
        for text in ["52:54:00:ab:cd:ef", "52-54-00-AB-CD-EF", " 52:54:00:ab:cd:ef "] {
            assert_eq!(MacAddress::parse(text), Some(expected), "{text}");
        }
        for text in ["", "52:54:00:ab:cd", "52:54:00:ab:cd:ef:01", "52:54:00:ab:cd:+f", "eth0"] {
            assert_eq!(MacAddress::parse(text), None, "{text}");
        }
        assert_eq!(expected.to_string(), "52:54:00:ab:cd:ef");
    }

    #[test]
    fn a_boot_interface_may_have_the_type_of_its_hardware_in_front() {
        let expected = MacAddress([0x52, 0x54, 0, 0xab, 0xcd, 0xef]);
        for text in [
            "01-52-54-00-AB-CD-EF",
            "01:52:54:00:ab:cd:ef",
            "20-52-54-00-ab-cd-ef",
            "52-54-00-ab-cd-ef",
            " 52:54:00:ab:cd:ef ",
        ] {
            assert_eq!(MacAddress::of_boot_interface(text), Some(expected), "{text}");
        }
        for text in
            ["", "eth0", "01", "xx-52-54-00-ab-cd-ef", "01-01-52-54-00-ab-cd-ef", "01é52-54-00-ab-cd-ef"]
        {
            assert_eq!(MacAddress::of_boot_interface(text), None, "{text}");
        }
    }
}
