//! In what BMCs differ from the schema, as one table.
//!
//! What a BMC says or does decides wherever it can: a row by vendor exists only without another criterion.
//! Facts are from what Ironic and its library have met with (F23, F55 to F57 of the lessons) and from documents of makers.
//! Each row has a test that fails without it, `f23_f55_f56_f57_each_quirk_is_needed`, which leaves one out after the other.

use std::collections::BTreeSet;

/// Something in which BMCs differ from the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quirk {
    /// A refusal that means: later.
    Busy,
    /// Only versions of the strong kind are taken.
    StrongEtags,
    /// ETags that were just returned are wrong.
    WrongEtags,
    /// Orders to power on are refused as conflicts for a while.
    ConflictingPowerOn,
    /// An override of the boot device has to be complete.
    CompleteBoot,
    /// The boot mode falls back when the boot device is set.
    ModeFallsBack,
    /// The boot mode is a setting of the firmware, and no part of the override.
    ModeInFirmware,
    /// No override lasts.
    OnceOnly,
    /// Every override lasts.
    ContinuousOnly,
    /// The virtual CD is not the boot device `Cd`.
    UsbCd,
    /// A lasting override to the disk starts a recovery.
    FirmwareOrder,
    /// Virtual drives belong to the machine, and not to what manages it.
    MediaOnSystem,
    /// The virtual drive takes DVDs alone.
    DvdOnly,
    /// A virtual drive has no actions, and is changed as a resource.
    MediaByPatch,
    /// The maker's own actions of a virtual drive are the ones that work.
    MediaByMaker,
    /// A virtual drive without actions takes its image alone.
    ImageAlone,
    /// An ejection has to have a body.
    EmptyEject,
    /// A drive that was emptied says what was in it.
    StaleInserted,
    /// An insertion has to name the protocol of its URL.
    WantsProtocol,
    /// An insertion has to name the way of transfer.
    WantsMethod,
    /// An insertion has to name a user and a password of the image server.
    WantsNames,
    /// The BMC itself fails at an insertion that is right.
    FailsToInsert,
}

/// How a quirk is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownBy {
    /// By what the BMC answers, or has when it is read again.
    Reply,
    /// By the maker of the machine or of its BMC.
    Maker {
        /// Words in names of makers, in small letters without spaces.
        names: &'static [&'static str],
        /// How the names of models begin that do not have it.
        but_models: &'static [&'static str],
    },
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
        differs: "412 to the version that the BMC sent; the next request has it without W/",
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
        quirk: Quirk::ModeInFirmware,
        seen: "HPE iLO 4 to 6",
        differs: "the mode cannot be changed with the override; BootMode of the pending settings of the firmware is, and \
                  counts from the next start on",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::OnceOnly,
        seen: "BMCs that refuse Continuous, or take it for Once (HPE iLO 5 with some targets, Huawei)",
        differs: "no override lasts; it is set once, and again before each power-on (F57)",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::ContinuousOnly,
        seen: "sushy-tools 2.2",
        differs: "Once is taken for Continuous; so it is then, until the disk is set for the instance",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::UsbCd,
        seen: "Supermicro",
        differs: "the virtual CD is a USB drive: UsbCd, while Cd is a drive that is not there, but for the model ARS-111GL-NHR",
        known_by: KnownBy::Maker { names: &["supermicro"], but_models: &["ARS-111GL-NHR"] },
    },
    QuirkRow {
        quirk: Quirk::FirmwareOrder,
        seen: "Lenovo ThinkSystem with UEFI",
        differs: "an override to the disk, beside a new boot entry of the system, starts a recovery; the override is \
                  taken away, and the order of the firmware decides, which the agent has set (F23)",
        known_by: KnownBy::Maker { names: &["lenovo"], but_models: &[] },
    },
    QuirkRow {
        quirk: Quirk::MediaOnSystem,
        seen: "Services of version 2020.3 and later, HPE iLO 6 and 7",
        differs: "the drives are at the machine; they are looked for there first, and then at its managers (F56)",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::DvdOnly,
        seen: "Some Fujitsu, Lenovo and Huawei BMCs",
        differs: "MediaTypes has DVD and no CD; either is a drive for an ISO (F56)",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::MediaByPatch,
        seen: "Lenovo SD530, Cisco UCS C845A, HPE iLO 4",
        differs: "a drive has no actions; Image and Inserted of the drive are changed (F56)",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::MediaByMaker,
        seen: "HPE iLO 4, and iLO 5 with old firmware",
        differs: "the actions of the schema are missing or refused; those below Oem take the image and nothing else, \
            and a separate request sets the drive as boot device",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::ImageAlone,
        seen: "HPE iLO 4",
        differs: "a drive that is changed as a resource refuses Inserted, which follows from Image; that is sent alone then",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::EmptyEject,
        seen: "HPE iLO 5",
        differs: "400 or 415 to an ejection without a body; it is sent with an empty one then",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::StaleInserted,
        seen: "BMCs that keep the last image in the resource",
        differs: "Inserted stays true after an ejection that was carried out; the next insertion is sent anyway (F55)",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::WantsProtocol,
        seen: "Supermicro, Huawei",
        differs: "TransferProtocolType is missed; it follows from the URL",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::WantsMethod,
        seen: "Huawei, Inspur",
        differs: "TransferMethod is missed; it is Stream",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::WantsNames,
        seen: "NVIDIA DGX, some AMI",
        differs: "UserName and Password are missed, and empty ones refused; both are the word none",
        known_by: KnownBy::Reply,
    },
    QuirkRow {
        quirk: Quirk::FailsToInsert,
        seen: "iDRAC, AMI while they let go of the last image",
        differs: "5xx to an insertion; it is tried three times more (F55)",
        known_by: KnownBy::Reply,
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

    /// Whether this is one of them that a machine of these makers and this model has.
    pub(super) fn of_maker(&self, quirk: Quirk, makers: &[&str], model: Option<&str>) -> bool {
        let plain = |name: &&str| name.to_lowercase().replace(|one: char| !one.is_alphanumeric(), "");
        let makers: Vec<_> = makers.iter().map(plain).collect();
        let is_meant = |row: &QuirkRow| match row.known_by {
            KnownBy::Maker { names, but_models } => {
                let is_named = |name: &&str| makers.iter().any(|maker| maker.contains(name));
                let is_left_out = |begin: &&str| model.is_some_and(|model| model.starts_with(begin));
                row.quirk == quirk && names.iter().any(is_named) && !but_models.iter().any(is_left_out)
            }
            KnownBy::Reply => false,
        };
        self.contains(quirk) && QUIRKS.iter().any(is_meant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c12_quirks_of_makers_are_theirs_alone_no_matter_who_sold_the_machine() {
        for (makers, model, quirk, expected) in [
            (&["Super Micro Computer, Inc."][..], None, Quirk::UsbCd, true),
            (&["Supermicro"], None, Quirk::UsbCd, true),
            (&["Supermicro", "Penguin Computing"], Some("Altus"), Quirk::UsbCd, true),
            (&["Supermicro"], Some("ARS-111GL-NHR"), Quirk::UsbCd, false),
            (&["Supermicro"], Some("ARS-111GL-NHR-LCC"), Quirk::UsbCd, false),
            (&["SUPERMICRO"], None, Quirk::FirmwareOrder, false),
            (&["Lenovo"], None, Quirk::FirmwareOrder, true),
            (&["Lenovo"], None, Quirk::CompleteBoot, false),
            (&[], None, Quirk::UsbCd, false),
        ] {
            assert_eq!(
                Quirks::all().of_maker(quirk, makers, model),
                expected,
                "{makers:?} {model:?} {quirk:?}"
            );
        }
        assert!(!Quirks::all().without(Quirk::UsbCd).of_maker(Quirk::UsbCd, &["Supermicro"], None));
    }
}
