//! Power interfaces: what switches machines on and off and decides what they boot.

pub mod qemu;
