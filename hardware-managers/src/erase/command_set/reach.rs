//! What of a disk cannot be read or written at all, and keeps its data where only sectors are overwritten.

use std::collections::BTreeMap;
use std::fmt;

/// How much of a disk its sectors reach.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// What the disk says of it, by names for the certificate.
    pub counts: BTreeMap<&'static str, u64>,
    /// What is out of reach.
    pub hidden: Vec<Hidden>,
    /// Questions that the disk did not answer, each with the reason.
    pub unanswered: Vec<String>,
}

/// A part of a disk that is out of reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// What hides it.
    pub cause: Cause,
    /// Its bytes.
    pub bytes: u64,
}

/// What keeps a part of a disk out of reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// ATA: the host protected area.
    HostProtectedArea,
    /// ATA: the accessible maximum address.
    AccessibleMaximum,
    /// ATA: the device configuration overlay.
    Overlay,
    /// SCSI: a number of blocks that MODE SELECT has set.
    BlockCount,
    /// NVMe: no namespace has it.
    Unallocated,
}

impl Reach {
    /// Nothing is known: the disk cannot be asked, for this reason.
    pub fn unanswered(reason: String) -> Self {
        Self { unanswered: vec![reason], ..Self::default() }
    }
}

impl Cause {
    /// What it is called, and how an operator ends it.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::HostProtectedArea => (
                "a host protected area",
                "power-cycle the machine, let its firmware not freeze the drive, or remove the area with hdparm -N",
            ),
            Self::AccessibleMaximum => (
                "an accessible maximum address",
                "power-cycle the machine and run the step again: a drive changes it once after each power-on",
            ),
            Self::Overlay => (
                "a device configuration overlay",
                "remove it with hdparm --dco-restore, and power-cycle the machine",
            ),
            Self::BlockCount => (
                "a number of blocks smaller than the drive was made with",
                "set it back with sg_format --resize --count=-1, and power-cycle the machine",
            ),
            Self::Unallocated => (
                "capacity that no namespace has",
                "make a namespace of it with nvme create-ns and attach-ns, or let the drive sanitize itself",
            ),
        }
    }
}

impl fmt::Display for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, remedy) = self.cause.words();
        write!(f, "{} bytes are out of reach, behind {name}: {remedy}", self.bytes)
    }
}
