//! Which media belong to a ramdisk: what its kernel command line says of its boot, and what is in the drives.
//!
//! Whoever may write to a disk can give it any label. So a volume counts only in a drive whose bus and type prove that
//! it is no disk of the machine, and only after a boot that comes from such a medium.

use crate::volume::Volume;
use std::collections::BTreeMap;

/// Kernel parameter that is on every medium of `farrier-image`, with the kind of the medium as its value. A boot from
/// the network has no such parameter.
pub const BOOT_MEDIUM: &str = "farrier-boot-medium";
/// The kind of media that are ISO images.
pub const ISO: &str = "iso";

/// The parameter by which a conductor says how the machine was booted, and its value for virtual media.
const BOOT_METHOD: (&str, &str) = ("boot_method", "vmedia");
/// The parameter by which a conductor names the publisher of its boot medium.
const PUBLISHER: &str = "ir_pub_id";
/// Label of the floppy with parameters, in lower case.
pub const FLOPPY_LABEL: &str = "ir-vfd-dev";
/// What the model of an unlabelled floppy contains, in lower case.
const FLOPPY_MODEL: &str = "virtual media";
/// Labels of media with configuration, in lower case.
const CONFIG_LABELS: [&str; 2] = ["config-2", "vmedia_boot_iso"];
/// What makes the boot media of Farrier, as their volumes tell it in lower case.
pub(crate) const APPLICATION: &str = "farrier-image";

/// What a medium is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// The virtual floppy with the agent's parameters.
    Parameters,
    /// The boot medium of a conductor, with configuration of the agent.
    Configuration,
    /// What the ramdisk was booted from: a medium of `farrier-image`, or the boot medium of a conductor.
    Ramdisk,
}

/// A volume, and the drive that it is in.
#[derive(Debug, Clone)]
pub struct Inserted<'a> {
    /// What is in the drive.
    pub volume: &'a Volume,
    /// What the drive calls itself.
    pub model: &'a str,
    /// Whether users of the machine could not write to it: it is an optical drive, and no disk on USB.
    pub is_optical: bool,
    /// Whether it can be a virtual drive of a BMC.
    pub may_be_virtual: bool,
}

impl Purpose {
    /// Whether a machine that was booted with these kernel parameters has media for this purpose.
    pub fn is_expected(self, kernel: &BTreeMap<String, String>) -> bool {
        let is = |name: &str, value: &str| kernel.get(name).is_some_and(|found| found == value);
        is(BOOT_METHOD.0, BOOT_METHOD.1) || (self == Self::Ramdisk && is(BOOT_MEDIUM, ISO))
    }

    /// The media for this purpose, by their places in the list. Disks on USB count where no optical drive has such a
    /// medium; several of them cannot be distinguished.
    pub fn served_by(self, media: &[Inserted<'_>], kernel: &BTreeMap<String, String>) -> Vec<usize> {
        if !self.is_expected(kernel) {
            return Vec::new();
        }
        let fitting = |fits: &dyn Fn(&Inserted<'_>) -> bool| -> Vec<usize> {
            let numbered = media.iter().enumerate();
            let mut found: Vec<_> = numbered.filter(|(_, medium)| fits(medium)).collect();
            if found.iter().any(|(_, medium)| medium.is_optical) {
                found.retain(|(_, medium)| medium.is_optical);
            }
            found.into_iter().map(|(number, _)| number).collect()
        };
        match self {
            Self::Parameters => {
                let labelled =
                    fitting(&|medium| medium.may_be_virtual && medium.volume.label == FLOPPY_LABEL);
                if labelled.is_empty() { fitting(&|medium| medium.is_nameless_floppy()) } else { labelled }
            }
            Self::Configuration => fitting(&|medium| medium.is_of_conductor(kernel)),
            Self::Ramdisk => fitting(&|medium| {
                let is_virtual = Self::Configuration.is_expected(kernel);
                medium.volume.application == APPLICATION || (is_virtual && medium.is_of_conductor(kernel))
            }),
        }
    }
}

impl Inserted<'_> {
    /// Whether a medium without the label is the floppy by what its drive calls itself.
    fn is_nameless_floppy(&self) -> bool {
        self.may_be_virtual
            && self.volume.file_system == "vfat"
            && self.model.to_lowercase().contains(FLOPPY_MODEL)
    }

    /// A boot medium of another publisher is a leftover, if the conductor named the one (S14).
    fn is_of_conductor(&self, kernel: &BTreeMap<String, String>) -> bool {
        let publisher = kernel.get(PUBLISHER).map(|text| text.to_lowercase());
        self.may_be_virtual
            && CONFIG_LABELS.contains(&self.volume.label.as_str())
            && publisher.is_none_or(|publisher| publisher == self.volume.publisher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(label: &str, application: &str) -> Volume {
        let file_system = if label == FLOPPY_LABEL || label.is_empty() { "vfat" } else { "iso9660" };
        let (label, application) = (label.to_owned(), application.to_owned());
        Volume { file_system, label, publisher: "ab-12".to_owned(), application }
    }

    fn kernel(line: &str) -> BTreeMap<String, String> {
        let words = line.split(' ').filter_map(|word| word.split_once('='));
        words.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    const VMEDIA: &str = "boot_method=vmedia";
    const FROM_ISO: &str = "farrier-boot-medium=iso";

    #[test]
    fn g02_a_label_is_nothing_without_a_boot_from_such_a_medium() {
        let volumes = [volume(FLOPPY_LABEL, ""), volume("config-2", APPLICATION)];
        let media = volumes.each_ref().map(|volume| Inserted {
            volume,
            model: "",
            is_optical: false,
            may_be_virtual: true,
        });
        for (line, expected) in [
            ("", [vec![], vec![], vec![]]),
            ("boot_method=pxe farrier-boot-medium=net", [vec![], vec![], vec![]]),
            (VMEDIA, [vec![0], vec![1], vec![1]]),
            (FROM_ISO, [vec![], vec![], vec![1]]),
            ("boot_method=vmedia ir_pub_id=AB-12", [vec![0], vec![1], vec![1]]),
            ("boot_method=vmedia ir_pub_id=cd-34", [vec![0], vec![], vec![1]]),
        ] {
            assert_eq!(
                [Purpose::Parameters, Purpose::Configuration, Purpose::Ramdisk]
                    .map(|purpose| purpose.served_by(&media, &kernel(line))),
                expected,
                "{line}"
            );
        }
    }

    #[test]
    fn g02_an_optical_drive_goes_before_disks_and_large_disks_are_no_virtual_drives() {
        let (boot, ours) = (volume("vmedia_boot_iso", ""), volume("farrier", APPLICATION));
        let medium =
            |volume, is_optical, may_be_virtual| Inserted { volume, model: "", is_optical, may_be_virtual };
        let (cd, small) = (medium(&boot, true, true), medium(&boot, false, true));
        let large = medium(&ours, false, false);
        for (media, configuration, ramdisk) in [
            // Whatever a disk looks like, the medium is in the optical drive.
            (vec![small.clone(), cd.clone(), large.clone()], vec![1], vec![1]),
            (vec![small.clone(), large.clone()], vec![0], vec![0, 1]),
            (vec![large], vec![], vec![0]),
        ] {
            let served = |purpose: Purpose| purpose.served_by(&media, &kernel(VMEDIA));
            assert_eq!((served(Purpose::Configuration), served(Purpose::Ramdisk)), (configuration, ramdisk));
        }
    }

    #[test]
    fn s13_the_labelled_floppy_goes_before_one_that_is_known_by_its_model() {
        let (labelled, nameless) = (volume(FLOPPY_LABEL, ""), volume("", ""));
        let medium = |volume, model| Inserted { volume, model, is_optical: false, may_be_virtual: true };
        let (named, unnamed, stick) =
            (medium(&labelled, "x"), medium(&nameless, "Virtual Media "), medium(&nameless, "Stick"));
        for (media, expected) in [
            (vec![unnamed.clone(), named], vec![1]),
            (vec![stick.clone(), unnamed], vec![1]),
            (vec![stick], vec![]),
        ] {
            assert_eq!(Purpose::Parameters.served_by(&media, &kernel(VMEDIA)), expected);
        }
    }
}
