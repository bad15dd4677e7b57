//! Ioctls of block devices, as safe calls on an open file.
//!
//! Every call also does the equivalent on a regular file, so that callers need no second path.

#![allow(unsafe_code)]

pub mod zones;

use crate::aligned::AlignedBuffer;
use nix::fcntl::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt};

/// Sector size reported for regular files, which have none of their own.
const FILE_SECTOR_SIZE: u32 = 512;

mod request {
    nix::ioctl_read!(get_size64, 0x12, 114, u64);
    nix::ioctl_read_bad!(get_logical_sector_size, nix::request_code_none!(0x12, 104), libc::c_int);
    nix::ioctl_read_bad!(get_physical_sector_size, nix::request_code_none!(0x12, 123), libc::c_uint);
    nix::ioctl_write_ptr_bad!(discard, nix::request_code_none!(0x12, 119), [u64; 2]);
    nix::ioctl_write_ptr_bad!(zero_out, nix::request_code_none!(0x12, 127), [u64; 2]);
    nix::ioctl_none!(flush_buffers, 0x12, 97);
    nix::ioctl_none!(reread_partitions, 0x12, 95);
}

/// Size in bytes.
///
/// # Errors
///
/// The error of the ioctl or of `fstat`.
pub fn size(file: &File) -> io::Result<u64> {
    if !is_block_device(file)? {
        return Ok(file.metadata()?.len());
    }
    // SAFETY: BLKGETSIZE64 stores one u64.
    read_value(file, |fd, value| unsafe { request::get_size64(fd, value) })
}

/// Bytes of a logical sector: the unit of direct I/O and of partition tables.
///
/// # Errors
///
/// The error of the ioctl, or a size that is not a power of two of at least 512.
pub fn logical_sector_size(file: &File) -> io::Result<u32> {
    if !is_block_device(file)? {
        return Ok(FILE_SECTOR_SIZE);
    }
    // SAFETY: BLKSSZGET stores one int.
    let bytes = read_value(file, |fd, value| unsafe { request::get_logical_sector_size(fd, value) })?;
    checked_sector_size(bytes)
}

/// Sizes that are no power of two, as of disks formatted for protection information by their controllers, are
/// none that anything here could be aligned to.
fn checked_sector_size(bytes: libc::c_int) -> io::Result<u32> {
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| bytes.is_power_of_two() && *bytes >= FILE_SECTOR_SIZE)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("logical sector size {bytes}")))
}

/// Bytes of a physical sector: what the medium writes at once.
///
/// # Errors
///
/// The error of the ioctl.
pub fn physical_sector_size(file: &File) -> io::Result<u32> {
    if !is_block_device(file)? {
        return Ok(FILE_SECTOR_SIZE);
    }
    // SAFETY: BLKPBSZGET stores one unsigned int.
    read_value(file, |fd, value| unsafe { request::get_physical_sector_size(fd, value) })
}

/// Makes `length` bytes from `offset` read back as zeros, by the device's own command where it has one that
/// it also obeys, else by writing zeros.
///
/// Both numbers are multiples of the logical sector size.
///
/// # Errors
///
/// The error of the write.
pub fn zero_out(file: &File, offset: u64, length: u64) -> io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    if is_block_device(file)? {
        // SAFETY: BLKZEROOUT reads two u64 (start and length) from the array, which outlives the call.
        let obeyed = unsafe { request::zero_out(file.as_raw_fd(), &[offset, length]) };
        if obeyed.is_ok() {
            return Ok(());
        }
        // Kernels since 6.10 give a command that failed up, and do not write in its stead.
    } else if zero_by_command(file, offset, length)? {
        return Ok(());
    }
    write_zeros(file, offset, length)
}

/// Makes `length` bytes from `offset` read back as zeros without sending any; false when the device has no
/// command for that. What it stored there may be given back.
///
/// Both numbers are multiples of the logical sector size.
///
/// # Errors
///
/// The error of the device.
pub fn zero_by_command(file: &File, offset: u64, length: u64) -> io::Result<bool> {
    let (offset, length) = (in_file(offset)?, in_file(length)?);
    // On a block device the kernel takes this as the order to unmap only what will read as zeros.
    let mode = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    answer(fallocate(file, mode, offset, length))
}

/// Discards `length` bytes from `offset`; false when the device accepts no discards.
/// What they read as afterwards is up to the device.
///
/// Both numbers are multiples of the logical sector size.
///
/// # Errors
///
/// The error of the ioctl.
pub fn discard(file: &File, offset: u64, length: u64) -> io::Result<bool> {
    if !is_block_device(file)? {
        return Ok(false);
    }
    // SAFETY: BLKDISCARD reads two u64 (start and length) from the array, which outlives the call.
    answer(unsafe { request::discard(file.as_raw_fd(), &[offset, length]) }.map(drop))
}

fn in_file(number: u64) -> io::Result<i64> {
    i64::try_from(number).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// Whether a command that devices need not have was carried out.
fn answer(outcome: nix::Result<()>) -> io::Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(nix::Error::EOPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes back and drops the kernel's cached pages of the device.
///
/// # Errors
///
/// The error of `fsync` or of the ioctl.
pub fn flush_buffers(file: &File) -> io::Result<()> {
    file.sync_all()?;
    if is_block_device(file)? {
        // SAFETY: BLKFLSBUF takes no argument.
        unsafe { request::flush_buffers(file.as_raw_fd()) }?;
    }
    Ok(())
}

/// Has the kernel read the partition table again. Nothing happens on a regular file.
///
/// # Errors
///
/// `EBUSY` while a partition is in use, `EINVAL` on devices without partitions.
pub fn reread_partitions(file: &File) -> io::Result<()> {
    if is_block_device(file)? {
        // SAFETY: BLKRRPART takes no argument.
        unsafe { request::reread_partitions(file.as_raw_fd()) }?;
    }
    Ok(())
}

fn is_block_device(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.file_type().is_block_device())
}

fn read_value<T: Default>(
    file: &File,
    ioctl: impl FnOnce(RawFd, *mut T) -> nix::Result<i32>,
) -> io::Result<T> {
    let mut value = T::default();
    ioctl(file.as_raw_fd(), &raw mut value)?;
    Ok(value)
}

fn write_zeros(file: &File, mut offset: u64, length: u64) -> io::Result<()> {
    let zeros = AlignedBuffer::zeroed(64 * 1024);
    let end = offset + length;
    while offset < end {
        let count = zeros.len().min(usize::try_from(end - offset).unwrap_or(usize::MAX));
        file.write_all_at(&zeros[..count], offset)?;
        offset += count as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d21_sectors_are_of_any_size_that_can_be_aligned_to_and_no_other_is_rounded() {
        for (bytes, expected) in [
            (512, Some(512)),
            (4096, Some(4096)),
            (16384, Some(16384)),
            (520, None),
            (528, None),
            (4160, None),
            (256, None),
            (0, None),
            (-1, None),
        ] {
            let found = checked_sector_size(bytes);
            assert_eq!(found.as_ref().ok().copied(), expected, "{bytes}");
            assert!(found.is_ok() || found.unwrap_err().to_string().contains(&bytes.to_string()));
        }
    }

    #[test]
    fn a_regular_file_answers_like_a_disk() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &[7; 200_000]).unwrap();
        assert_eq!(size(&file).unwrap(), 200_000);
        assert_eq!(logical_sector_size(&file).unwrap(), 512);
        assert_eq!(physical_sector_size(&file).unwrap(), 512);
        assert!(!discard(&file, 512, 512).unwrap());
        zero_out(&file, 512, 100_352).unwrap();
        assert!(zero_by_command(&file, 100_864, 49_664).unwrap());
        flush_buffers(&file).unwrap();
        reread_partitions(&file).unwrap();
        let mut content = vec![0; 200_000];
        file.read_exact_at(&mut content, 0).unwrap();
        assert!(content[..512].iter().all(|byte| *byte == 7));
        assert!(content[512..150_528].iter().all(|byte| *byte == 0));
        assert!(content[150_528..].iter().all(|byte| *byte == 7));
    }
}
