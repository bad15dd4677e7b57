//! What takes too long for every change: each command measures something, and writes it on a page of the book.

pub mod answers;
pub mod bench;
pub mod exported_disk;
pub mod fuzz;
pub mod iscsi_conformance;
pub mod matrix;
pub mod pages;
pub mod power_cut;
pub mod strangers;
pub mod zoo;
