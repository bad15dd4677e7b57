//! Agent parameters on the kernel command line (section 3.2).

use std::collections::BTreeMap;

/// Parameters of the form `name=value`; the last one of a name wins. Words without `=` belong to
/// the kernel. There is no quoting and no decoding.
pub fn parse(line: &str) -> BTreeMap<String, String> {
    line.split_whitespace()
        .filter_map(|word| word.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
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

    proptest! {
        #[test]
        fn no_line_is_too_odd(line in ".*") {
            parse(&line);
        }
    }
}
