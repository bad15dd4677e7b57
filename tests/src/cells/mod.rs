//! Cells of matrices: each is one way to boot, to deploy, or to leave the network.

pub mod boot;
pub mod exit;
pub mod iscsi;
pub mod netboot;
