//! Overwriting (shredding) a disk: writing its every sector.
//!
//! Zeros are written as data: a request to make zeros may only unmap blocks, and that erases nothing
//! (P16). A disk with zones is written zone by zone, each from its start.

use super::error::EraseError;
use super::medium::Medium;
use super::settings::Passes;
use farrier_linux::aligned::AlignedBuffer;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

/// Bytes written at once; a multiple of every sector size.
const CHUNK: u64 = 1 << 20;
/// What is left when the agent ends.
const BEGUN: &str = "overwriting was begun; run the step again";

/// Sectors that are written one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    start: u64,
    length: u64,
    /// Bytes of the zone that has to be reset before.
    zone: Option<u64>,
}

/// How many bytes of a disk can be written.
///
/// # Errors
///
/// [`EraseError::LostZone`], or [`EraseError::Disk`] when its zones cannot be read.
pub fn writable_bytes(medium: &dyn Medium) -> Result<u64, EraseError> {
    Ok(stretches(medium)?.iter().map(|stretch| stretch.length).sum())
}

/// Overwrites the disk with random data, then, if wanted, with zeros.
///
/// # Errors
///
/// [`EraseError::Disk`] at the first sector that cannot be written, [`EraseError::LostZone`] before anything is
/// written, and [`EraseError::Ending`] once the agent ends.
pub fn overwrite(
    medium: &dyn Medium,
    passes: Passes,
    is_ending: &dyn Fn() -> bool,
    report: &dyn Fn(u64),
) -> Result<(), EraseError> {
    let stretches = stretches(medium)?;
    let mut random = StdRng::from_os_rng();
    let mut done = 0;
    let mut progress = |length| {
        done += length;
        report(done);
        if is_ending() { Err(EraseError::Ending(BEGUN)) } else { Ok(()) }
    };
    for _ in 0..passes.random {
        write_everywhere(medium, &stretches, |chunk| random.fill_bytes(chunk), &mut progress)?;
    }
    if passes.zero {
        write_everywhere(medium, &stretches, |chunk| chunk.fill(0), &mut progress)?;
    }
    Ok(())
}

fn write_everywhere(
    medium: &dyn Medium,
    stretches: &[Stretch],
    mut fill: impl FnMut(&mut [u8]),
    progress: &mut dyn FnMut(u64) -> Result<(), EraseError>,
) -> Result<(), EraseError> {
    let mut chunk = AlignedBuffer::zeroed(CHUNK as usize);
    for stretch in stretches {
        if let Some(zone) = stretch.zone {
            medium.reset_zones(stretch.start, zone)?;
        }
        let end = stretch.start + stretch.length;
        let mut offset = stretch.start;
        while offset < end {
            let length = CHUNK.min(end - offset);
            let part = &mut chunk[..length as usize];
            fill(part);
            medium.write(part, offset)?;
            offset += length;
            progress(length)?;
        }
    }
    Ok(medium.flush()?)
}

/// What of the disk can be written: all of it, or the zones as far as they have room.
fn stretches(medium: &dyn Medium) -> Result<Vec<Stretch>, EraseError> {
    let zones = medium.zones()?;
    if zones.is_empty() {
        return Ok(vec![Stretch { start: 0, length: medium.size(), zone: None }]);
    }
    if let Some(lost) = zones.iter().find(|zone| zone.is_lost) {
        return Err(EraseError::LostZone { offset: lost.start });
    }
    let stretch = |zone: &farrier_linux::block::zones::Zone| Stretch {
        start: zone.start,
        length: zone.capacity,
        zone: (!zone.is_conventional).then_some(zone.length),
    };
    Ok(zones.iter().map(stretch).collect())
}
