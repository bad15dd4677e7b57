//! The steps of Farrier that destroy or keep what lives on a disk, and which disks they are tried on.

use crate::disks::{Placement, State};
use crate::occupants::{Occupant, Use};

/// Bytes of a disk that takes a whole-disk image.
const SMALLEST: u64 = 24 << 20;

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// `erase_devices_metadata`.
    EraseMetadata,
    /// The same with the operator's consent to the loss of what several machines use.
    EraseUnguarded,
    /// What an export of the root disk does to it first.
    WipeForExport,
    /// What a partition image does to the disk first.
    WipeForPartitionImage,
    /// A whole-disk image.
    WholeDiskImage,
    /// `create_configuration`, on a disk that somebody uses.
    CreateRefused,
    /// `create_configuration`, on a disk that shows nothing but has old content where a member goes.
    CreateOver,
    /// `delete_configuration`.
    Delete,
    /// The same, with the array on the skip list.
    DeleteKept,
    /// A config drive behind an image.
    ConfigDrive,
    /// A partition image again, with `preserve_ephemeral`.
    PreserveEphemeral,
    /// The disk is on the skip list of an erase step.
    SkipDisk,
    /// The array of which a member lives there is on that list.
    SkipVolume,
    /// `erase_devices_metadata` on another disk, with this one on the skip list.
    EraseBeside,
    /// A whole-disk image on another disk.
    DeployBeside,
}

impl Step {
    pub const ALL: [Self; 15] = [
        Self::EraseMetadata,
        Self::EraseUnguarded,
        Self::WipeForExport,
        Self::WipeForPartitionImage,
        Self::WholeDiskImage,
        Self::CreateRefused,
        Self::CreateOver,
        Self::Delete,
        Self::DeleteKept,
        Self::ConfigDrive,
        Self::PreserveEphemeral,
        Self::SkipDisk,
        Self::SkipVolume,
        Self::EraseBeside,
        Self::DeployBeside,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::EraseMetadata => "erase-metadata",
            Self::EraseUnguarded => "erase-unguarded",
            Self::WipeForExport => "wipe-for-export",
            Self::WipeForPartitionImage => "wipe-for-partition-image",
            Self::WholeDiskImage => "whole-disk-image",
            Self::CreateRefused => "create-refused",
            Self::CreateOver => "create-over",
            Self::Delete => "delete",
            Self::DeleteKept => "delete-kept",
            Self::ConfigDrive => "config-drive",
            Self::PreserveEphemeral => "preserve-ephemeral",
            Self::SkipDisk => "skip-disk",
            Self::SkipVolume => "skip-volume",
            Self::EraseBeside => "erase-beside",
            Self::DeployBeside => "deploy-beside",
        }
    }

    /// Whether occupants take turns where the table is not sound: for what the step does with such a table it is of
    /// little account who lives there.
    pub fn has_turns(self) -> bool {
        matches!(self, Self::WholeDiskImage | Self::CreateRefused | Self::ConfigDrive)
    }

    /// The sector sizes of its cells: of the steps with many of them, cells take turns.
    pub fn sectors(self, turn: usize) -> &'static [u32] {
        let takes_turns = matches!(self, Self::EraseMetadata | Self::EraseBeside | Self::DeployBeside);
        match (takes_turns || self.has_turns(), turn % 2) {
            (true, 0) => &[512],
            (true, _) => &[4096],
            _ => &[512, 4096],
        }
    }

    /// Whether the step has a meaning for such a disk.
    pub fn applies(self, occupant: &Occupant, placement: Placement, state: State) -> bool {
        let is_shared = occupant.used == Use::Shared;
        let is_member = matches!(occupant.used, Use::Member { .. });
        let is_named = occupant.used == Use::Member { is_named: true };
        if occupant.used == Use::Firmware && placement != Placement::Whole {
            return false;
        }
        match placement {
            Placement::Bare => return self == Self::CreateOver && !is_shared,
            Placement::Ephemeral => return self == Self::PreserveEphemeral && !is_shared,
            _ => {}
        }
        match self {
            Self::EraseMetadata => true,
            // A disk from which its owner wiped every mark is free.
            Self::CreateRefused => !matches!(state, State::MarksWiped | State::HeadersLost | State::Unsigned),
            // The same code behind another door.
            Self::WipeForExport => state.is_plain() || is_shared,
            Self::SkipDisk => state.is_plain(),
            Self::EraseUnguarded => is_shared,
            Self::WipeForPartitionImage => state.is_plain() && !is_shared,
            Self::WholeDiskImage => !is_shared && (placement != Placement::Whole || occupant.size > SMALLEST),
            Self::Delete => is_member || state.is_plain() && !is_shared,
            Self::CreateOver | Self::PreserveEphemeral => false,
            // What nothing leads to is kept by nobody.
            Self::DeleteKept => is_named && placement != Placement::Whole && !state.hides_occupant(),
            // What is labelled for it becomes the config drive.
            Self::ConfigDrive => {
                !is_shared && placement != Placement::Whole && !occupant.name.ends_with("config-drive")
            }
            Self::SkipVolume => is_named && !state.hides_occupant(),
            Self::EraseBeside => state.is_plain(),
            // The other tables matter where something is told of what they lead to.
            Self::DeployBeside => state.is_plain() || occupant.name.ends_with("config-drive"),
        }
    }
}
