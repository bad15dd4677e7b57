//! Hardware partitions of eMMC devices: areas of one chip that Linux shows as disks of their own (JESD84-B51, 6.2.4).

/// What a hardware partition of an eMMC device is for. The user area of the device, `mmcblk0`, is a plain disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HardwarePartition {
    /// A boot area, `mmcblk0boot0`: some MiB that the processor's boot ROM may start firmware from. The kernel
    /// refuses writes to it until its attribute `force_ro` is 0.
    Boot,
    /// A general purpose area, `mmcblk0gp0`, which was divided from the user area permanently.
    GeneralPurpose,
}

/// What the kernel calls the area that nobody writes to without its key.
const REPLAY_PROTECTED: &str = "rpmb";

impl HardwarePartition {
    /// Of the disk with this kernel name; nothing for a disk that is none.
    pub fn of(kernel_name: &str) -> Option<Self> {
        let area = area(kernel_name)?;
        let is_numbered = |kind: &str| area.strip_prefix(kind).is_some_and(is_number);
        [("boot", Self::Boot), ("gp", Self::GeneralPurpose)]
            .into_iter()
            .find_map(|(kind, partition)| is_numbered(kind).then_some(partition))
    }
}

/// Whether this is the area of an eMMC device that takes authenticated commands alone, and neither reads nor writes:
/// kernels before 4.15 show it as a disk.
pub fn is_replay_protected(kernel_name: &str) -> bool {
    area(kernel_name) == Some(REPLAY_PROTECTED)
}

/// The name of an area behind that of its device, `mmcblk0`.
fn area(kernel_name: &str) -> Option<&str> {
    let numbered = kernel_name.strip_prefix("mmcblk")?;
    let area = numbered.trim_start_matches(|c: char| c.is_ascii_digit());
    (area.len() < numbered.len()).then_some(area)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a12_areas_of_emmc_are_known_by_their_names_and_partitions_are_none() {
        for (name, expected) in [
            ("mmcblk0boot0", Some(HardwarePartition::Boot)),
            ("mmcblk12boot1", Some(HardwarePartition::Boot)),
            ("mmcblk0gp3", Some(HardwarePartition::GeneralPurpose)),
            ("mmcblk0", None),
            ("mmcblk0p1", None),
            ("mmcblk0gp3p1", None),
            ("mmcblkboot0", None),
            ("mmcblk0boot", None),
            ("sdaboot0", None),
        ] {
            assert_eq!(HardwarePartition::of(name), expected, "{name}");
            assert!(!is_replay_protected(name), "{name}");
        }
        assert!(is_replay_protected("mmcblk0rpmb"));
    }
}
