//! Disks with zones: written from the start of each, and readable as far as they were written.

use super::fake_disk::broken;
use super::{PATIENCE, device, settings};
use crate::erase::certificate::Record;
use crate::erase::command_set::{Patience, Reach, SecureErase, Survey};
use crate::erase::disk_erase::erase_data;
use crate::erase::error::EraseError;
use crate::erase::medium::Medium;
use crate::erase::method::Method;
use crate::erase::settings::{Passes, Settings};
use farrier_disk::Error;
use farrier_linux::block::zones::Zone;
use std::cell::{Cell, RefCell};

const ZONE: u64 = 64 << 10;
/// Less than its length, as zones of NVMe have.
const CAPACITY: u64 = ZONE - (8 << 10);
/// How many zones may be neither empty nor full.
const MOST_ACTIVE: usize = 4;

/// A disk of 80 zones, of which the first is conventional.
struct ZonedDisk {
    content: RefCell<Vec<u8>>,
    /// Bytes from its start up to which each zone is written.
    written: RefCell<Vec<u64>>,
    lost: Option<usize>,
    /// Whether what was not written is an error to read, as SMR disks may have it.
    refuses_unwritten: bool,
    /// Methods that it has; it lies when it says that it erased itself.
    methods: Vec<Method>,
    is_liar: bool,
    was_asked: Cell<bool>,
}

const ZONES: usize = 80;

impl ZonedDisk {
    fn new(refuses_unwritten: bool, methods: &[Method]) -> Self {
        // The earlier user has written parts of zones, more than may be open.
        let written = (0..ZONES).map(|zone| if zone % 2 == 0 { CAPACITY } else { 8192 }).collect();
        Self {
            content: RefCell::new(vec![0xaa; ZONES * ZONE as usize]),
            written: RefCell::new(written),
            lost: None,
            refuses_unwritten,
            methods: methods.to_vec(),
            is_liar: false,
            was_asked: Cell::default(),
        }
    }

    fn zone_of(offset: u64) -> usize {
        (offset / ZONE) as usize
    }

    fn reset(&self, zone: usize) {
        self.written.borrow_mut()[zone] = 0;
    }
}

impl Medium for ZonedDisk {
    fn size(&self) -> u64 {
        ZONES as u64 * ZONE
    }

    fn sector_size(&self) -> u32 {
        4096
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let (zone, inside) = (Self::zone_of(offset), offset % ZONE);
        let end = offset as usize + buffer.len();
        if zone == 0 || inside + buffer.len() as u64 <= self.written.borrow()[zone] {
            buffer.copy_from_slice(&self.content.borrow()[offset as usize..end]);
            return Ok(());
        }
        if self.refuses_unwritten {
            return Err(broken("reading"));
        }
        buffer.fill(0);
        Ok(())
    }

    fn write(&self, data: &[u8], offset: u64) -> Result<(), Error> {
        let (zone, inside) = (Self::zone_of(offset), offset % ZONE);
        if zone > 0 {
            let mut written = self.written.borrow_mut();
            let others = written.iter().enumerate().skip(1);
            let active = others.filter(|(one, bytes)| *one != zone && (1..CAPACITY).contains(*bytes)).count();
            if inside != written[zone] || inside + data.len() as u64 > CAPACITY || active >= MOST_ACTIVE {
                return Err(broken("writing"));
            }
            written[zone] += data.len() as u64;
        }
        self.content.borrow_mut()[offset as usize..offset as usize + data.len()].copy_from_slice(data);
        Ok(())
    }

    fn flush(&self) -> Result<(), Error> {
        Ok(())
    }

    fn zones(&self) -> Result<Vec<Zone>, Error> {
        let describe = |zone: usize| Zone {
            start: zone as u64 * ZONE,
            length: ZONE,
            capacity: if zone == 0 { ZONE } else { CAPACITY },
            is_conventional: zone == 0,
            is_empty: self.written.borrow()[zone] == 0,
            is_lost: self.lost == Some(zone),
        };
        Ok((0..ZONES).map(describe).collect())
    }

    fn reset_zones(&self, offset: u64, length: u64) -> Result<(), Error> {
        let zones = Self::zone_of(offset)..Self::zone_of(offset + length);
        zones.for_each(|zone| self.reset(zone));
        Ok(())
    }

    fn finish_zones(&self, offset: u64, length: u64) -> Result<(), Error> {
        for zone in Self::zone_of(offset)..Self::zone_of(offset + length) {
            self.written.borrow_mut()[zone] = CAPACITY;
        }
        Ok(())
    }
}

impl SecureErase for ZonedDisk {
    fn survey(&self) -> Result<Survey, EraseError> {
        Ok(Survey { methods: self.methods.clone(), ..Survey::default() })
    }

    fn wait_until_idle(&self, _: &Patience<'_>) -> Result<(), EraseError> {
        Ok(())
    }

    fn prepare(&self) -> Result<(), EraseError> {
        Ok(())
    }

    fn erase(&self, _: Method, _: &Patience<'_>) -> Result<(), EraseError> {
        if !self.is_liar {
            self.content.borrow_mut().fill(0xff);
            (0..ZONES).for_each(|zone| self.reset(zone));
        }
        self.was_asked.set(true);
        Ok(())
    }

    fn reach(&self) -> Reach {
        Reach::default()
    }

    fn is_indispensable(&self) -> bool {
        false
    }
}

fn erase(disk: &ZonedDisk, settings: &Settings) -> Result<Method, EraseError> {
    let mut record = Record::begin(&device());
    erase_data(disk, Some(disk), Reach::default(), settings, &PATIENCE, &mut record)
}

#[test]
fn g08_a_disk_with_zones_is_overwritten_zone_by_zone() {
    for (refuses_unwritten, zero) in [(false, true), (true, true), (true, false)] {
        let disk = ZonedDisk::new(refuses_unwritten, &[]);
        let settings = Settings { passes: Passes { random: 1, zero }, ..settings(false) };
        assert_eq!(erase(&disk, &settings).unwrap(), Method::Overwrite);
        for (number, zone) in disk.content.borrow().chunks(ZONE as usize).enumerate() {
            let capacity = if number == 0 { ZONE } else { CAPACITY };
            let old = zone[..capacity as usize].chunks(16).any(|bytes| bytes == [0xaa; 16]);
            assert!(!old, "zone {number}");
        }
        // The next user begins at the start of each.
        assert!(disk.written.borrow()[1..].iter().all(|written| *written == 0));
    }
}

#[test]
fn g08_a_disk_with_zones_that_erases_itself_is_proven_and_a_liar_is_found_out() {
    for refuses_unwritten in [false, true] {
        let disk = ZonedDisk::new(refuses_unwritten, &[Method::ScsiSanitizeBlock]);
        assert_eq!(erase(&disk, &settings(false)).unwrap(), Method::ScsiSanitizeBlock);
        let liar =
            ZonedDisk { is_liar: true, ..ZonedDisk::new(refuses_unwritten, &[Method::ScsiSanitizeBlock]) };
        let error = erase(&liar, &settings(false)).unwrap_err().to_string();
        assert!(error.contains("old data is still at byte"), "{error}");
        assert!(liar.was_asked.get());
    }
}

#[test]
fn g08_a_zone_that_is_lost_fails_an_overwrite_and_no_sanitize() {
    let lost = |methods: &[Method]| ZonedDisk { lost: Some(7), ..ZonedDisk::new(false, methods) };
    let error = erase(&lost(&[]), &settings(false)).unwrap_err().to_string();
    assert!(error.contains(&format!("zone at byte {}", 7 * ZONE)), "{error}");
    assert_eq!(
        erase(&lost(&[Method::ScsiSanitizeBlock]), &settings(false)).unwrap(),
        Method::ScsiSanitizeBlock
    );
}
