//! Loop devices: a file, or a range of a disk, as a block device.

#![allow(unsafe_code)]

use crate::modules::ModuleIndex;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const LOOP_CONTROL: &str = "/dev/loop-control";
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_PARTSCAN: u32 = 8;
const LO_FLAGS_DIRECT_IO: u32 = 16;
/// How often a free device may be snatched by another process before attaching gives up.
const ATTEMPTS: usize = 32;

mod request {
    use super::LoopConfig;

    nix::ioctl_none_bad!(get_free, 0x4C82);
    nix::ioctl_write_ptr_bad!(configure, 0x4C0A, LoopConfig);
    nix::ioctl_none_bad!(clear, 0x4C01);
}

/// `struct loop_info64` of the kernel.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config` of the kernel.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopConfig {
    file: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// A file attached to a loop device, flushed and detached on drop.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    device: File,
}

impl LoopDevice {
    /// Attaches `backing` to a free loop device with the given logical sector size. Needs root.
    ///
    /// # Errors
    ///
    /// The error of opening either file or of an ioctl; `EBUSY` when every free device was snatched.
    pub fn attach(backing: &Path, sector_size: u32) -> io::Result<Self> {
        let backing = OpenOptions::new().read(true).write(true).open(backing)?;
        Self::configured(&configuration(&backing, sector_size))
    }

    /// Makes `length` bytes from `offset` of `disk` a device of their own, past the page cache. The disk may be
    /// held by the process that opened it.
    ///
    /// # Errors
    ///
    /// As [`LoopDevice::attach`].
    pub fn over(disk: &File, offset: u64, length: u64, sector_size: u32) -> io::Result<Self> {
        ModuleIndex::load_unasked("loop");
        let mut config = configuration(disk, sector_size);
        config.info.offset = offset;
        config.info.size_limit = length;
        config.info.flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
        Self::configured(&config)
    }

    /// The configuration names a file, which has to be open.
    fn configured(config: &LoopConfig) -> io::Result<Self> {
        let control = OpenOptions::new().read(true).write(true).open(LOOP_CONTROL)?;
        let mut last_error = io::Error::from_raw_os_error(libc::EBUSY);
        for _ in 0..ATTEMPTS {
            // SAFETY: LOOP_CTL_GET_FREE takes no argument and returns a number.
            let number = unsafe { request::get_free(control.as_raw_fd()) }?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = open_device(&path)?;
            // SAFETY: LOOP_CONFIGURE reads one `loop_config`, which outlives the call.
            match unsafe { request::configure(device.as_raw_fd(), config) } {
                Ok(_) => return Ok(Self { path, device }),
                Err(nix::Error::EBUSY) => last_error = nix::Error::EBUSY.into(),
                Err(error) => return Err(error.into()),
            }
        }
        Err(last_error)
    }

    /// Brings to the backing file what programs wrote to the device. The kernel forgets what is still in the cache of a
    /// device that is detached, and that of a program that has ended may be there: this guard keeps the device open.
    ///
    /// # Errors
    ///
    /// The error of writing.
    pub fn flush(&self) -> io::Result<()> {
        self.device.sync_all()
    }

    /// Path of the device node.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Kernel name, such as `loop3`.
    pub fn kernel_name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).expect("the path was built from ASCII text")
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // Whoever depends on what was written asks for it by `flush`, which tells errors.
        let _ = self.flush();
        // A failure needs no care: AUTOCLEAR detaches when the last descriptor closes.
        // SAFETY: LOOP_CLR_FD takes no argument.
        let _ = unsafe { request::clear(self.device.as_raw_fd()) };
    }
}

/// Opens without O_EXCL, so that the holder of this guard does not keep others from claiming the disk.
fn open_device(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_CLOEXEC).open(path)
}

fn configuration(backing: &File, sector_size: u32) -> LoopConfig {
    LoopConfig {
        file: u32::try_from(backing.as_raw_fd()).expect("an open descriptor is not negative"),
        block_size: sector_size,
        info: LoopInfo {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            size_limit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags: LO_FLAGS_AUTOCLEAR | LO_FLAGS_PARTSCAN,
            file_name: [0; 64],
            crypt_name: [0; 64],
            encrypt_key: [0; 32],
            init: [0; 2],
        },
        reserved: [0; 8],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loop_what_programs_wrote_is_in_the_file_when_the_device_is_gone() {
        const SIZE: usize = 8 << 20;
        for flushes in [false, true] {
            let backing = tempfile::NamedTempFile::new().unwrap();
            backing.as_file().set_len(SIZE as u64).unwrap();
            let device = LoopDevice::attach(backing.path(), 512).expect("loop devices need root");
            std::fs::write(device.path(), vec![7; SIZE]).unwrap();
            if flushes {
                device.flush().unwrap();
                let found = std::fs::read(backing.path()).unwrap();
                assert!(found.iter().all(|byte| *byte == 7), "flushed");
            }
            drop(device);
            let found = std::fs::read(backing.path()).unwrap();
            let lost = found.iter().filter(|byte| **byte != 7).count();
            assert_eq!((found.len(), lost), (SIZE, 0));
        }
    }
}
