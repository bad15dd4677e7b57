//! Linux software RAID (sections 7.5 and 9.9).
//!
//! ```text
//! target_raid_config ─ config ─┐
//! disks ─ guard ───────────────┴ plan ─▶ tables on the disks ─▶ mdadm ─▶ array, looked at in sysfs
//! ```
//!
//! [`config`](crate::md::config) and [`plan`] know no disks and no programs; [`create`] and [`delete`] carry out.
//! What may be written is decided by [`guard`](crate::guard) alone: volumes on the skip list, and the partitions
//! of their members, are no part of what it gives out.

pub mod create;
pub mod delete;
pub mod esp;
pub mod plan;
