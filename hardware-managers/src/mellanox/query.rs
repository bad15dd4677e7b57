//! What the vendor's programs print.

use std::collections::BTreeMap;

/// What a firmware says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firmware {
    /// Version that is written.
    pub version: String,
    /// Version that runs, where it is another one until the next start.
    pub running: Option<String>,
    /// Kind of board it is for.
    pub psid: String,
}

impl Firmware {
    /// Reads the answer to `mstflint query`, lines of `name: value`; nothing when version or PSID is missing.
    pub fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.trim().split_once(':'));
            let (_, value) = lines.find(|(key, _)| key.trim() == name)?;
            value.split_whitespace().next().map(str::to_owned)
        };
        Some(Self {
            version: field("FW Version")?,
            running: field("FW Version(Running)"),
            psid: field("PSID")?,
        })
    }

    /// Whether the card runs an older firmware until its reset.
    pub fn is_pending(&self) -> bool {
        self.running.as_ref().is_some_and(|running| *running != self.version)
    }
}

/// Reads the answer to `mstconfig q`: values by name, below a line with `Configurations:`. A star marks
/// what changes with the next start, and RO what cannot be set.
pub fn parameters(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().skip_while(|line| !line.contains("Configurations:")).skip(1);
    let entry = |line: &str| {
        let mut words = line.split_whitespace().filter(|word| !matches!(*word, "*" | "RO"));
        let name = words.next()?.trim_start_matches('*').to_owned();
        Some((name, words.next()?.to_owned()))
    };
    lines.filter_map(entry).collect()
}

/// Whether a value, such as `True(1)`, `ETH(2)` or `16`, is the wanted one: its name, its number, or all of
/// it.
pub fn is_same(shown: &str, wanted: &str) -> bool {
    let (name, number) = match shown.strip_suffix(')').and_then(|rest| rest.rsplit_once('(')) {
        Some((name, number)) => (name, number),
        None => (shown, shown),
    };
    let numbers = || Some((number.parse::<i128>().ok()?, wanted.parse::<i128>().ok()?));
    [shown, name].iter().any(|text| text.eq_ignore_ascii_case(wanted))
        || numbers().is_some_and(|(number, wanted)| number == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// In the form of the program's manual.
    const FLINT: &str = "\
Image type:            FS4
FW Version:            20.35.1012
FW Version(Running):   20.33.1048
FW Release Date:       21.10.2022
Product Version:       20.35.1012
Rom Info:              type=UEFI version=14.28.15 cpu=AMD64
Description:           UID                GuidsNumber
Base GUID:             b8599f0300a1b2c4        4
Base MAC:              b8599fa1b2c4            4
PSID:                  MT_0000000223
Security Attributes:   N/A
";

    const CONFIG: &str = "
Device #1:
----------

Device type:    ConnectX6
Name:           MCX653106A-HDA_Ax
Device:         0000:3b:00.0

Configurations:                                      Next Boot
         MEMIC_BAR_SIZE                              0
 RO      MEMIC_SIZE_LIMIT                            _256KB(1)
*        SRIOV_EN                                    True(1)
         HOST_CHAINING_DESCRIPTORS                   Array[0..7]
         LINK_TYPE_P1                                ETH(2)
         NUM_OF_VFS                                  8
";

    #[test]
    fn a_firmware_is_known_by_version_and_board() {
        let firmware = Firmware::parse(FLINT).unwrap();
        assert_eq!((firmware.version.as_str(), firmware.psid.as_str()), ("20.35.1012", "MT_0000000223"));
        assert!(firmware.is_pending());
        let same = FLINT.replace("20.33.1048", "20.35.1012");
        assert!(!Firmware::parse(&same).unwrap().is_pending());
        let none = FLINT.replace("FW Version(Running)", "Other");
        assert!(!Firmware::parse(&none).unwrap().is_pending());
        for missing in ["PSID:", "FW Version: "] {
            assert_eq!(Firmware::parse(&FLINT.replace(missing, "Other:")), None, "{missing}");
        }
        assert_eq!(Firmware::parse("-E- Cannot open Device: 0000:3b:00.0"), None);
    }

    #[test]
    fn parameters_are_read_by_name() {
        let found = parameters(CONFIG);
        let expected = [
            ("HOST_CHAINING_DESCRIPTORS", "Array[0..7]"),
            ("LINK_TYPE_P1", "ETH(2)"),
            ("MEMIC_BAR_SIZE", "0"),
            ("MEMIC_SIZE_LIMIT", "_256KB(1)"),
            ("NUM_OF_VFS", "8"),
            ("SRIOV_EN", "True(1)"),
        ];
        let found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(found, expected);
        assert!(parameters("-E- Failed to open device").is_empty());
    }

    #[test]
    fn values_are_compared_by_name_or_number() {
        for (shown, wanted, expected) in [
            ("True(1)", "true", true),
            ("True(1)", "1", true),
            ("True(1)", "True(1)", true),
            ("False(0)", "True", false),
            ("ETH(2)", "ETH", true),
            ("ETH(12)", "2", false),
            ("ETH(12)", "1", false),
            ("16", "16", true),
            ("16", "016", true),
            ("16", "6", false),
            ("Array[0..7]", "0", false),
        ] {
            assert_eq!(is_same(shown, wanted), expected, "{shown} {wanted}");
        }
    }

    proptest! {
        #[test]
        fn no_output_is_too_odd(text in "(?s).*") {
            Firmware::parse(&text);
            for (_, value) in parameters(&format!("Configurations:\n{text}")) {
                is_same(&value, &text);
            }
        }
    }
}
