//! Overwriting (shredding) a disk: writing its every sector.
//!
//! Zeros are written as data: a request to make zeros may only unmap blocks, and that erases nothing
//! (P16).

use super::medium::Medium;
use super::settings::Passes;
use farrier_disk::Error;
use farrier_linux::aligned::AlignedBuffer;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

/// Bytes written at once; a multiple of every sector size.
const CHUNK: u64 = 1 << 20;

/// Overwrites the disk with random data, then, if wanted, with zeros.
///
/// # Errors
///
/// [`Error::Device`] at the first sector that cannot be written.
pub fn overwrite(medium: &dyn Medium, passes: Passes, report: &dyn Fn(u64)) -> Result<(), Error> {
    let mut random = StdRng::from_os_rng();
    let mut done = 0;
    for _ in 0..passes.random {
        write_everywhere(medium, |chunk| random.fill_bytes(chunk), &mut done, report)?;
    }
    if passes.zero {
        write_everywhere(medium, |chunk| chunk.fill(0), &mut done, report)?;
    }
    Ok(())
}

fn write_everywhere(
    medium: &dyn Medium,
    mut fill: impl FnMut(&mut [u8]),
    done: &mut u64,
    report: &dyn Fn(u64),
) -> Result<(), Error> {
    let mut chunk = AlignedBuffer::zeroed(CHUNK as usize);
    let mut offset = 0;
    while offset < medium.size() {
        let length = CHUNK.min(medium.size() - offset);
        let part = &mut chunk[..length as usize];
        fill(part);
        medium.write(part, offset)?;
        offset += length;
        *done += length;
        report(*done);
    }
    medium.flush()
}
