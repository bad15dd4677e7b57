//! Reading and writing what a test disk holds, at any byte.

use crate::support::TestDisk;
use farrier_disk::Sectors;
use farrier_disk::io::view::DiskView;
use std::io::{Read, Seek, SeekFrom, Write};

pub fn write_at(disk: &TestDisk, offset: u64, bytes: &[u8]) {
    let mut view = DiskView::whole(disk.disk());
    view.seek(SeekFrom::Start(offset)).unwrap();
    view.write_all(bytes).unwrap();
    view.flush().unwrap();
}

pub fn read_at(disk: &TestDisk, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut view = DiskView::whole(disk.disk());
    view.seek(SeekFrom::Start(offset)).unwrap();
    view.read_exact(&mut bytes).unwrap();
    bytes
}

/// Writes the protective MBR of a GPT, without which nobody believes it; the crate leaves that to its callers.
#[allow(dead_code)]
pub fn write_protective_mbr(disk: &TestDisk) {
    let sectors = disk.disk().size() / u64::from(disk.disk().sector_size()) - 1;
    let mut view = DiskView::whole(disk.disk());
    let protective = gpt::mbr::ProtectiveMBR::with_lb_size(u32::try_from(sectors).unwrap_or(u32::MAX));
    protective.overwrite_lba0(&mut view).unwrap();
    view.flush().unwrap();
}
