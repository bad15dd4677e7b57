//! Zones of disks that are written in order: host-managed SMR disks and NVMe namespaces with zones
//! (`include/uapi/linux/blkzoned.h`).

use super::is_block_device;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The unit of the kernel's numbers, whatever the sector size.
const SECTOR: u64 = 512;
/// Zones asked for at once.
const REPORTED: usize = 512;
/// More zones than any disk has.
const MOST_ZONES: usize = 1 << 20;

const CONVENTIONAL: u8 = 1;
const CONDITION_EMPTY: u8 = 1;
const CONDITION_READ_ONLY: u8 = 0xd;
const CONDITION_OFFLINE: u8 = 0xf;
/// The report has the capacity of each zone.
const HAS_CAPACITY: u32 = 1;

/// `struct blk_zone`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Reported {
    start: u64,
    length: u64,
    write_pointer: u64,
    kind: u8,
    condition: u8,
    non_sequential: u8,
    reset: u8,
    reserved: [u8; 4],
    capacity: u64,
    reserved_at_end: [u8; 24],
}

/// `struct blk_zone_report` with room for zones.
#[repr(C)]
struct Report {
    sector: u64,
    zones: u32,
    flags: u32,
    reported: [Reported; REPORTED],
}

/// `struct blk_zone_report`, whose size is in the number of the request.
#[repr(C)]
struct ReportHead {
    sector: u64,
    zones: u32,
    flags: u32,
}

mod request {
    pub const REPORT: libc::c_ulong =
        nix::request_code_readwrite!(0x12, 130, size_of::<super::ReportHead>()) as libc::c_ulong;
    nix::ioctl_readwrite_bad!(report, REPORT, super::Report);
    nix::ioctl_write_ptr!(reset, 0x12, 131, [u64; 2]);
    nix::ioctl_write_ptr!(finish, 0x12, 136, [u64; 2]);
    use std::mem::size_of;
}

/// A zone. Numbers are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// Where it begins.
    pub start: u64,
    /// From its beginning to that of the next one.
    pub length: u64,
    /// How much of it can be written.
    pub capacity: u64,
    /// Whether it is written anywhere, as other disks are.
    pub is_conventional: bool,
    /// Whether nothing was written to it since it was reset.
    pub is_empty: bool,
    /// Whether it cannot be written any more.
    pub is_lost: bool,
}

/// The zones of a disk, in order.
///
/// # Errors
///
/// The error of the ioctl.
pub fn zones(file: &File) -> io::Result<Vec<Zone>> {
    let mut zones: Vec<Zone> = Vec::new();
    while zones.len() < MOST_ZONES {
        let next = zones.last().map_or(0, |zone| (zone.start + zone.length) / SECTOR);
        let mut report = Box::new(Report {
            sector: next,
            zones: REPORTED as u32,
            flags: 0,
            reported: [Reported::default(); REPORTED],
        });
        // SAFETY: the structure has the kernel's layout, and room for as many zones as it says.
        unsafe { request::report(file.as_raw_fd(), &raw mut *report) }?;
        let found = report.reported.iter().take(report.zones as usize).filter(|zone| zone.start >= next);
        let has_capacity = report.flags & HAS_CAPACITY != 0;
        let before = zones.len();
        zones.extend(found.map(|zone| zone.describe(has_capacity)));
        if zones.len() < before + REPORTED {
            break;
        }
    }
    Ok(zones)
}

/// Moves the write pointers of all zones in `length` bytes from `offset` to their starts: nothing that they hold
/// can be read any more, and it may still be on the medium.
///
/// # Errors
///
/// The error of the ioctl.
pub fn reset(file: &File, offset: u64, length: u64) -> io::Result<()> {
    if is_block_device(file)? {
        // SAFETY: BLKRESETZONE reads two u64 (first sector and count) from the array, which outlives the call.
        unsafe { request::reset(file.as_raw_fd(), &[offset / SECTOR, length / SECTOR]) }?;
    }
    Ok(())
}

/// Moves the write pointers of all zones in `length` bytes from `offset` to their ends, so that no zone stays
/// open: disks allow few open ones.
///
/// # Errors
///
/// The error of the ioctl.
pub fn finish(file: &File, offset: u64, length: u64) -> io::Result<()> {
    if is_block_device(file)? {
        // SAFETY: BLKFINISHZONE reads two u64 (first sector and count) from the array, which outlives the call.
        unsafe { request::finish(file.as_raw_fd(), &[offset / SECTOR, length / SECTOR]) }?;
    }
    Ok(())
}

impl Reported {
    fn describe(&self, has_capacity: bool) -> Zone {
        Zone {
            start: self.start * SECTOR,
            length: self.length * SECTOR,
            capacity: if has_capacity { self.capacity } else { self.length } * SECTOR,
            is_conventional: self.kind == CONVENTIONAL,
            is_empty: self.condition == CONDITION_EMPTY,
            is_lost: [CONDITION_READ_ONLY, CONDITION_OFFLINE].contains(&self.condition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g08_the_report_of_zones_has_the_kernels_layout() {
        assert_eq!((size_of::<Reported>(), size_of::<ReportHead>()), (64, 16));
        assert_eq!(std::mem::offset_of!(Report, reported), 16);
        assert_eq!(std::mem::offset_of!(Reported, capacity), 32);
        assert_eq!(request::REPORT as u32, 0xc010_1282);
    }

    #[test]
    fn g08_a_zone_is_described_in_bytes() {
        for (kind, condition, has_capacity, expected) in [
            (CONVENTIONAL, 0, false, (1 << 20, true, false, false)),
            (2, CONDITION_EMPTY, true, (1 << 19, false, true, false)),
            (2, 0xe, false, (1 << 20, false, false, false)),
            (2, CONDITION_READ_ONLY, true, (1 << 19, false, false, true)),
            (2, CONDITION_OFFLINE, true, (1 << 19, false, false, true)),
        ] {
            let reported = Reported {
                start: 4096,
                length: 2048,
                capacity: 1024,
                kind,
                condition,
                ..Reported::default()
            };
            let zone = reported.describe(has_capacity);
            assert_eq!((zone.start, zone.length), (2 << 20, 1 << 20));
            assert_eq!((zone.capacity, zone.is_conventional, zone.is_empty, zone.is_lost), expected);
        }
    }
}
