//! Images for which 32 bits do not suffice.

use crate::deployment::{Deployment, MIB, request_with, serve};
use crate::disk_support::TestDisk;
use farrier_disk::Sectors;
use farrier_linux::aligned::AlignedBuffer;
use farrier_tests::images::server::Reply;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

const GIB: u64 = 1 << 30;

fn sha256(file: &File, size: u64) -> String {
    let mut hasher = Sha256::new();
    let mut part = vec![0; MIB];
    for offset in (0..size).step_by(MIB) {
        file.read_exact_at(&mut part, offset).unwrap();
        hasher.update(&part);
    }
    hex::encode(hasher.finalize())
}

/// The most memory that this process ever had, in bytes, with what the other tests took.
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn loop_d16_f06_more_than_four_gib_arrive_as_a_whole_and_are_not_kept_to_be_hashed() {
    let size = 4 * GIB + 3 * MIB as u64;
    let image = tempfile::NamedTempFile::new().unwrap();
    image.as_file().set_len(size).unwrap();
    let marks = [0, 2 * GIB - 512, 2 * GIB, 4 * GIB - 512, 4 * GIB, size - 512];
    for mark in marks {
        image.as_file().write_all_at(&mark.to_le_bytes(), mark + 8).unwrap();
    }
    let digest = sha256(image.as_file(), size);

    let deployment = Deployment::on(TestDisk::new(5 * GIB, 512));
    let server = serve(vec![Reply::File(image.path().to_owned())]);
    let report = deployment.write(&request_with(vec![server.url()], digest, Some("raw"))).unwrap();
    assert_eq!((report.bytes_read, report.bytes_written + report.bytes_zeroed), (size, size));
    assert!(most_memory() < size / 4, "{} bytes of memory", most_memory());
    let mut sector = AlignedBuffer::zeroed(512);
    for mark in marks {
        deployment.disk.disk().read_exact_at(&mut sector, mark).unwrap();
        assert_eq!(sector[8..16], mark.to_le_bytes(), "at {mark}");
    }
}
