//! Proving that a disk was erased.
//!
//! A sample of a disk that is mostly empty says nothing: there was nothing to find before. So random
//! markers are written to places all over the disk first, and none may be left afterwards. On a disk with zones the
//! markers are at the starts of zones, where writing is allowed.

use super::error::EraseError;
use super::medium::Medium;
use super::zones;
use farrier_linux::aligned::AlignedBuffer;
use farrier_linux::block::zones::Zone;
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};

/// The number of verified places.
const SAMPLES: u64 = 64;
/// Bytes of each, or one sector where that is more.
const SAMPLE_BYTES: u64 = 4096;
/// The smallest piece of a marker that counts as a survivor.
const PIECE_BYTES: usize = 512;
/// One in so many places may fail to take a marker: a worn disk must be erasable too.
const TOLERATED: usize = 4;

/// What a disk must read as once it is erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// Anything but what it held.
    Changed,
    /// Zeros, everywhere.
    Zero,
}

/// Markers on a disk.
#[derive(Debug)]
pub struct Proof {
    samples: Vec<Sample>,
}

#[derive(Debug)]
struct Sample {
    place: Place,
    marker: AlignedBuffer,
}

/// A verified place on a disk.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: u64,
    /// The zone that it is in, where the disk is written in order.
    zone: Option<Zone>,
}

impl Proof {
    /// Writes markers to the first and the last sectors and to random places in between, and sees
    /// that the disk holds them. Places that cannot be written or read are left out, as long as they are few.
    ///
    /// # Errors
    ///
    /// [`EraseError::Disk`] or [`EraseError::Worn`] when too few take a marker, or [`EraseError::NotKept`] when a place
    /// shows something else.
    pub fn plant(medium: &dyn Medium) -> Result<Self, EraseError> {
        let mut random = StdRng::from_os_rng();
        let length = sample_bytes(medium);
        let zones = medium.zones()?;
        // Few zones may be neither empty nor full, and the earlier user may have left as many.
        zones::reset_all(medium)?;
        let places = places(medium, &zones, Spread::Starts, &mut random);
        let planted = places.len();
        let mut samples = Vec::new();
        for place in places {
            let mut marker = AlignedBuffer::zeroed(length as usize);
            random.fill_bytes(&mut marker);
            match place.write(medium, &marker) {
                Ok(()) => samples.push(Sample { place, marker }),
                Err(error) => tracing::warn!("no marker there: {error}"),
            }
        }
        medium.flush()?;
        let mut found = AlignedBuffer::zeroed(length as usize);
        let mut kept = Vec::new();
        for sample in samples {
            match medium.read(&mut found, sample.place.offset) {
                Ok(()) if found[..] == sample.marker[..] => kept.push(sample),
                Ok(()) => return Err(EraseError::NotKept { offset: sample.place.offset }),
                Err(error) => tracing::warn!("no marker there: {error}"),
            }
        }
        let failed = planted - kept.len();
        if failed * TOLERATED > planted {
            return Err(EraseError::Worn { failed, planted });
        }
        Ok(Self { samples: kept })
    }

    /// Reads the same places again, and others for zeros. Returns their number.
    ///
    /// # Errors
    ///
    /// [`EraseError::StillThere`], or [`EraseError::Disk`] when a place cannot be read: what cannot be
    /// read is not proven.
    pub fn verify(&self, medium: &dyn Medium, expectation: Expectation) -> Result<usize, EraseError> {
        let zones = medium.zones()?;
        let mut found = AlignedBuffer::zeroed(sample_bytes(medium) as usize);
        for sample in &self.samples {
            if !sample.place.read(medium, &zones, expectation, &mut found)? {
                continue;
            }
            let survives = match expectation {
                Expectation::Changed => has_survivor(&found, &sample.marker),
                Expectation::Zero => found.iter().any(|byte| *byte != 0),
            };
            if survives {
                return Err(EraseError::StillThere { offset: sample.place.offset });
            }
        }
        if expectation == Expectation::Changed {
            return Ok(self.samples.len());
        }
        let others = places(medium, &zones, Spread::Anywhere, &mut StdRng::from_os_rng());
        for place in &others {
            medium.read(&mut found, place.offset)?;
            if found.iter().any(|byte| *byte != 0) {
                return Err(EraseError::StillThere { offset: place.offset });
            }
        }
        Ok(self.samples.len() + others.len())
    }
}

impl Place {
    fn write(&self, medium: &dyn Medium, marker: &[u8]) -> Result<(), EraseError> {
        medium.write(marker, self.offset)?;
        match self.zone {
            // What lies behind the marker can be read then, and the zone does not stay open.
            Some(zone) if !zone.is_conventional => Ok(medium.finish_zones(zone.start, zone.length)?),
            _ => Ok(()),
        }
    }

    /// Reads what is there; false where the disk refuses because nothing was written to the zone since it was erased.
    fn read(
        &self,
        medium: &dyn Medium,
        zones: &[Zone],
        expectation: Expectation,
        found: &mut [u8],
    ) -> Result<bool, EraseError> {
        let outcome = medium.read(found, self.offset);
        let is_empty = self.zone.is_some_and(|zone| {
            zones.iter().any(|now| now.start == zone.start && now.is_empty && !now.is_conventional)
        });
        match outcome {
            Err(_) if is_empty && expectation == Expectation::Changed => Ok(false),
            outcome => Ok(outcome.map(|()| true)?),
        }
    }
}

fn has_survivor(found: &[u8], marker: &[u8]) -> bool {
    found.chunks(PIECE_BYTES).zip(marker.chunks(PIECE_BYTES)).any(|(found, marker)| found == marker)
}

/// Where in a zone that is written in order a place may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spread {
    /// At its start, since it is empty.
    Starts,
    /// Anywhere in what was written.
    Anywhere,
}

/// Places, one in each of equal parts of the disk; the first and the last are fixed.
fn places(medium: &dyn Medium, zones: &[Zone], spread: Spread, random: &mut StdRng) -> Vec<Place> {
    let length = sample_bytes(medium);
    if zones.is_empty() {
        let blocks = one_in_each_part(medium.size() / length, random);
        return blocks.into_iter().map(|block| Place { offset: block * length, zone: None }).collect();
    }
    let usable: Vec<_> = zones.iter().filter(|zone| !zone.is_lost && zone.capacity >= length).collect();
    let chosen =
        one_in_each_part(usable.len() as u64, random).into_iter().map(|index| *usable[index as usize]);
    let place = |zone: Zone| {
        let is_fixed = !zone.is_conventional && spread == Spread::Starts;
        let block = if is_fixed { 0 } else { random.random_range(0..zone.capacity / length) };
        Place { offset: zone.start + block * length, zone: Some(zone) }
    };
    chosen.map(place).collect()
}

/// Numbers below `count`, one in each of equal parts; the first and the last are fixed.
fn one_in_each_part(count: u64, random: &mut StdRng) -> Vec<u64> {
    let Some(last) = count.checked_sub(1) else { return Vec::new() };
    let parts = SAMPLES.min(count);
    let mut numbers: Vec<_> = (0..parts)
        .map(|part| random.random_range(part * count / parts..(part + 1) * count / parts))
        .collect();
    numbers[0] = 0;
    numbers[parts as usize - 1] = last;
    numbers
}

/// A disk smaller than a sample has one of a sector.
fn sample_bytes(medium: &dyn Medium) -> u64 {
    let sector = u64::from(medium.sector_size());
    if medium.size() < SAMPLE_BYTES { sector } else { SAMPLE_BYTES.max(sector) }
}
