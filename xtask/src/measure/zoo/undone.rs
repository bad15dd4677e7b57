//! What was undone by hand to see whether cells turn red.

/// A fix that was undone.
#[derive(Debug)]
pub struct Undone {
    /// The fix and where it is.
    pub what: &'static str,
    /// The words of `--only`.
    pub only: &'static str,
    /// Cells that were run, and how many of them were red.
    pub cells: usize,
    pub red: usize,
}

/// All of them.
pub const UNDONE: &[Undone] = &[
    Undone {
        what: "the backup GPT and arrays of entries without a header are read (`map/gpt_copies.rs`; A02)",
        only: "first-mib-zeroed,erase-metadata,luks",
        cells: 2,
        red: 2,
    },
    Undone {
        what: "partitions of every copy are erased, not of the believed one alone (`map/tables.rs`; A02)",
        only: "mbr-over,erase-metadata,md",
        cells: 4,
        red: 4,
    },
    Undone {
        what: "mirrors and labels behind the first 5 MiB (`map/places.rs`; A03)",
        only: "btrfs.,erase-metadata",
        cells: 23,
        red: 23,
    },
    Undone {
        what: "entries whose headers are gone (`map/gpt_copies.rs`; A02)",
        only: "headers-lost,erase-metadata,ext",
        cells: 4,
        red: 4,
    },
    Undone {
        what: "tables for other sector sizes (`map/gpt_copies.rs`; A02)",
        only: "other-sectors,erase-metadata,md",
        cells: 4,
        red: 2,
    },
    Undone {
        what: "an MBR without its mark (`map/mbr_copies.rs`; A02)",
        only: "unsigned,erase-metadata,ext",
        cells: 8,
        red: 8,
    },
    Undone {
        what: "a damaged table makes a disk occupied (`map.rs`; G05)",
        only: "gpt.header-bit,create-refused",
        cells: 18,
        red: 16,
    },
    Undone {
        what: "content without a partition makes a disk occupied (`map.rs`; G05)",
        only: "whole,create-refused,ext",
        cells: 5,
        red: 4,
    },
    Undone {
        what: "a kept logical partition is refused before anything is written (`guard/raid`; G06)",
        only: "delete-kept,logical",
        cells: 18,
        red: 18,
    },
    Undone {
        what: "old partitions are cleared before an image (`wipe.rs`; A20)",
        only: "whole-disk-image,sound,ext4",
        cells: 8,
        red: 6,
    },
    Undone {
        what: "the last MiB goes before an image (`wipe.rs`)",
        only: "whole.stale-backup,whole-disk-image,s",
        cells: 21,
        red: 18,
    },
    Undone {
        what: "shared file systems are looked for behind every copy of a table (`probe.rs`; D03)",
        only: "gfs2,gpt,erase-metadata",
        cells: 15,
        red: 9,
    },
    Undone {
        what: "members are found behind a damaged table (`probe.rs`; D20)",
        only: "first-mib-zeroed,.delete",
        cells: 14,
        red: 14,
    },
    Undone {
        what: "a damaged backup costs no table of a kept volume (`map/arrays.rs`, `wipe.rs`; G06)",
        only: "backup-bit,delete-kept",
        cells: 6,
        red: 3,
    },
    Undone {
        what: "members of skipped volumes are found where the kernel shows no partitions (`guard/skip_list.rs`; D02)",
        only: "gpt.header-bit,skip-volume",
        cells: 6,
        red: 6,
    },
];
