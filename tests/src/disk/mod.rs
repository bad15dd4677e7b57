//! Disks that are made to fail, or written byte by byte.

pub mod power_replay;
pub mod raid_member;
pub mod volatile;
