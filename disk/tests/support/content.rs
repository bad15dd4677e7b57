//! Reading and writing what a test disk holds, at any byte.

use crate::support::TestDisk;
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
