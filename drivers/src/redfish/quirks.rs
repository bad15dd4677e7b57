//! In what BMCs differ from the schema, as one table.
//!
//! What a BMC says or does decides wherever it can: a row that goes by the maker stands only where nothing else tells.
//! Facts are from what Ironic and its library have met with (F23, F55 to F57 of the lessons) and from documents of makers.
//! Each row has a test that fails without it, `each_quirk_is_needed`, which leaves one out after the other.

use std::collections::BTreeSet;

/// Something in which BMCs differ from the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quirk {
    /// A refusal that means: later.
    Busy,
    /// Only versions of the strong kind are taken.
    StrongEtags,
    /// Versions that were just told are wrong.
    WrongEtags,
    /// Orders to power on are refused as conflicts for a while.
    ConflictingPowerOn,
    /// An override of the boot device has to be complete.
    CompleteBoot,
    /// The boot mode falls back when the boot device is set.
    ModeFallsBack,
    /// No override lasts.
    OnceOnly,
    /// The virtual CD is not the boot device `Cd`.
    UsbCd,
    /// A lasting override to the disk starts a recovery.
    FirmwareOrder,
}

/// How a quirk is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownBy {
    /// By what the BMC answers, or has when it is read again.
    Reply,
    /// By words in the name of the machine's maker, in lower case.
    Maker(&'static [&'static str]),
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct QuirkRow {
    /// The quirk.
    pub quirk: Quirk,
    /// Where it was met, with the version where that is known.
    pub seen: &'static str,
    /// What differs, and what is done about it.
    pub differs: &'static str,
    /// How it is known.
    pub known_by: KnownBy,
}

/// The table.
pub const QUIRKS: &[QuirkRow] = &[
    QuirkRow {
        quirk: Quirk::Busy,
        seen: "iDRAC (SYS518), Lenovo XCC and HPE iLO while the machine tests itself",
        differs: "an order is refused that is right; it is given again after growing pauses",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::StrongEtags,
        seen: "BMCs that tell weak versions and compare as if they were strong (Lenovo, Ampere)",
        differs: "412 to the version that was told; it is sent without W/ then",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::WrongEtags,
        seen: "BMCs whose versions change by themselves, or are compared with another resource's",
        differs: "412 to any version; the change is sent without one then",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::ConflictingPowerOn,
        seen: "Redfish services that are busy with the last power action (ActionParameterValueConflict)",
        differs: "409 to power on; the order is given again while the machine is off",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::CompleteBoot,
        seen: "AMI MegaRAC, ASRock Rack",
        differs: "target, enabled and mode have to be sent together; they are, where less was refused or ignored",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::ModeFallsBack,
        seen: "Supermicro X11 to X13",
        differs: "setting the boot device sets the mode to Legacy; the mode before is sent with it then (F57)",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::OnceOnly,
        seen: "BMCs that refuse Continuous, or take it for Once (HPE iLO 5 with some targets, Huawei)",
        differs: "no override lasts; it is set once, and again before each power-on (F57)",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::UsbCd,
        seen: "Supermicro",
        differs: "the virtual CD is a USB drive: UsbCd, while Cd is a drive that is not there",
        known_by: KnownBy::Maker(&["supermicro"]),
    },
    QuirkRow {
        quirk: Quirk::FirmwareOrder,
        seen: "Lenovo ThinkSystem with UEFI",
        differs: "an override to the disk, beside a new boot entry of the system, starts a recovery; the override is \
                  taken away, and the order of the firmware decides, which the agent has set (F23)",
        known_by: KnownBy::Maker(&["lenovo"]),
    },
];

/// The quirks that are put up with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quirks(BTreeSet<Quirk>);

impl Quirks {
    /// All of the table.
    pub fn all() -> Self {
        Self(QUIRKS.iter().map(|row| row.quirk).collect())
    }

    /// These but one.
    #[must_use]
    pub fn without(mut self, quirk: Quirk) -> Self {
        self.0.remove(&quirk);
        self
    }

    /// Whether this is one of them.
    pub fn contains(&self, quirk: Quirk) -> bool {
        self.0.contains(&quirk)
    }

    /// Whether this is one of them that a machine of this maker has.
    pub(super) fn of_maker(&self, quirk: Quirk, maker: Option<&str>) -> bool {
        let maker = maker.unwrap_or_default().to_lowercase();
        let is_meant = |row: &QuirkRow| match row.known_by {
            KnownBy::Maker(words) => row.quirk == quirk && words.iter().any(|word| maker.contains(word)),
            KnownBy::Reply => false,
        };
        self.contains(quirk) && QUIRKS.iter().any(is_meant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quirks_of_makers_are_theirs_alone() {
        for (maker, quirk, expected) in [
            (Some("Super Micro Computer"), Quirk::UsbCd, false),
            (Some("Supermicro"), Quirk::UsbCd, true),
            (Some("SUPERMICRO"), Quirk::FirmwareOrder, false),
            (Some("Lenovo"), Quirk::FirmwareOrder, true),
            (Some("Lenovo"), Quirk::CompleteBoot, false),
            (None, Quirk::UsbCd, false),
        ] {
            assert_eq!(Quirks::all().of_maker(quirk, maker), expected, "{maker:?} {quirk:?}");
        }
        assert!(!Quirks::all().without(Quirk::UsbCd).of_maker(Quirk::UsbCd, Some("Supermicro")));
    }
}
