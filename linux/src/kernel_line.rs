//! Parameters on the kernel command line (section 3.2); files on virtual media have the same form.

use std::collections::BTreeMap;
use std::fs;

/// Parameters by name.
pub type Parameters = BTreeMap<String, String>;

/// Parameters of the form `name=value`; the last one of a name wins. Words without `=` belong to
/// the kernel. There is no quoting and no decoding.
pub fn parse(line: &str) -> Parameters {
    line.split_whitespace()
        .filter_map(|word| word.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Every value of a parameter that may be given several times, in order.
pub fn values(line: &str, name: &str) -> Vec<String> {
    let words = line.split_whitespace().filter_map(|word| word.split_once('='));
    words.filter(|(found, _)| *found == name).map(|(_, value)| value.to_owned()).collect()
}

/// The file of a ramdisk with the parameters that hold where the kernel command line has no others.
pub const DEFAULT_PARAMETERS: &str = "/etc/farrier/kernel-parameters";
/// Where the kernel tells its command line.
const COMMAND_LINE: &str = "/proc/cmdline";

/// The parameters of the running kernel, and the ramdisk's defaults for the rest. There is no line when
/// procfs is not mounted.
pub fn of_running_kernel() -> Parameters {
    parse(&format!("{} {}", read(DEFAULT_PARAMETERS), read(COMMAND_LINE)))
}

/// Every value of a parameter of the running kernel, or of the ramdisk's defaults when that has none.
pub fn values_of_running_kernel(name: &str) -> Vec<String> {
    let values = values(&read(COMMAND_LINE), name);
    if values.is_empty() { self::values(&read(DEFAULT_PARAMETERS), name) } else { values }
}

fn read(path: &str) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_of_the_contract() {
        for (line, name, expected) in [
            ("quiet ipa-api-url=http://192.0.2.5:6385 x=1", "ipa-api-url", Some("http://192.0.2.5:6385")),
            ("a=1 a=2", "a", Some("2")),
            ("root_device=name=/dev/sda", "root_device", Some("name=/dev/sda")),
            ("a=%20", "a", Some("%20")),
            ("a=\"b c\"", "a", Some("\"b")),
            ("ipa-debug", "ipa-debug", None),
            ("a=", "a", Some("")),
            ("", "a", None),
        ] {
            assert_eq!(parse(line).get(name).map(String::as_str), expected, "{line}");
        }
    }

    #[test]
    fn a_line_of_4_kib_with_quotes_and_unknown_words_is_read_to_its_end() {
        let odd = "dyndbg=\"file drivers/usb/* +p\" \"lone quiet = == a=\\\" -- ";
        let mut line = odd.repeat(4096 / odd.len());
        line.push_str("ipa-api-url=http://192.0.2.5:6385");
        let found = parse(&line);
        assert_eq!(found.get("ipa-api-url").map(String::as_str), Some("http://192.0.2.5:6385"));
        assert_eq!(found.get("dyndbg").map(String::as_str), Some("\"file"));
    }

    #[test]
    fn a_parameter_may_have_several_values() {
        let line = "ip=eth0:dhcp quiet ip=eth1:dhcp6 ipa-debug=1 ip=";
        assert_eq!(values(line, "ip"), ["eth0:dhcp", "eth1:dhcp6", ""]);
        assert!(values(line, "vlan").is_empty());
    }

    proptest! {
        #[test]
        fn no_line_is_too_odd(line in ".*") {
            parse(&line);
        }
    }
}
