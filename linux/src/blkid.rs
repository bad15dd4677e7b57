//! Signatures of file systems, arrays and volumes, told by libblkid.
//!
//! The seven calls that are needed are declared here and not taken from a crate: the one there is
//! generates its declarations from the C headers at each build and so needs all of libclang on every
//! machine. These calls have had the same form since util-linux 2.23.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

/// A signature that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// libblkid's name of the kind, such as `ext4`, `vfat` or `linux_raid_member`.
    pub kind: String,
    /// Label of the file system.
    pub label: Option<String>,
    /// Its identity, in the form `/etc/fstab` knows.
    pub uuid: Option<String>,
}

/// `BLKID_SUBLKS_LABEL | UUID | TYPE` of `blkid.h`.
const WANTED: c_int = 1 << 1 | 1 << 3 | 1 << 5;
/// What `blkid_do_probe` returns when it found a signature, and when there are no more.
const FOUND: c_int = 0;
const NO_MORE: c_int = 1;
/// Signatures looked at in one volume; more are junk.
const MAX_SIGNATURES: usize = 32;

#[repr(C)]
struct RawProbe {
    opaque: [u8; 0],
}

#[cfg_attr(target_env = "musl", link(name = "blkid", kind = "static"))]
#[cfg_attr(not(target_env = "musl"), link(name = "blkid"))]
unsafe extern "C" {
    fn blkid_new_probe() -> *mut RawProbe;
    fn blkid_free_probe(probe: *mut RawProbe);
    fn blkid_probe_set_device(probe: *mut RawProbe, fd: c_int, offset: i64, size: i64) -> c_int;
    fn blkid_probe_enable_superblocks(probe: *mut RawProbe, enable: c_int) -> c_int;
    fn blkid_probe_set_superblocks_flags(probe: *mut RawProbe, flags: c_int) -> c_int;
    fn blkid_do_probe(probe: *mut RawProbe) -> c_int;
    fn blkid_probe_lookup_value(
        probe: *mut RawProbe,
        name: *const c_char,
        data: *mut *const c_char,
        length: *mut usize,
    ) -> c_int;
}

/// Every signature in `size` bytes from `offset` of `file`, a block device or a regular file that was
/// not opened for direct access.
///
/// # Errors
///
/// A range that is not in the file, or whatever reading brings.
pub fn signatures(file: &File, offset: u64, size: u64) -> io::Result<Vec<Signature>> {
    let probe = Probe::new(file, offset, size)?;
    let mut found = Vec::new();
    while found.len() < MAX_SIGNATURES && probe.step()? {
        // Some signatures have no kind: they are hints at others.
        if let Some(kind) = probe.value(c"TYPE") {
            found.push(Signature { kind, label: probe.value(c"LABEL"), uuid: probe.value(c"UUID") });
        }
    }
    Ok(found)
}

/// A probe over one range; the file outlives it.
struct Probe<'a> {
    raw: NonNull<RawProbe>,
    _file: &'a File,
}

impl<'a> Probe<'a> {
    fn new(file: &'a File, offset: u64, size: u64) -> io::Result<Self> {
        let number = |value: u64| i64::try_from(value).map_err(io::Error::other);
        let (offset, size) = (number(offset)?, number(size)?);
        // SAFETY: the call takes nothing; what it returns is freed on drop alone.
        let raw = NonNull::new(unsafe { blkid_new_probe() }).ok_or_else(io::Error::last_os_error)?;
        let probe = Self { raw, _file: file };
        // SAFETY: the probe is valid, and the descriptor stays open as long as it.
        let results = unsafe {
            [
                blkid_probe_set_device(raw.as_ptr(), file.as_raw_fd(), offset, size),
                blkid_probe_enable_superblocks(raw.as_ptr(), 1),
                blkid_probe_set_superblocks_flags(raw.as_ptr(), WANTED),
            ]
        };
        if results.iter().any(|result| *result != 0) {
            return Err(io::Error::other("libblkid cannot look at this device or range"));
        }
        Ok(probe)
    }

    /// Goes on to the next signature; false when there are no more.
    fn step(&self) -> io::Result<bool> {
        // SAFETY: the probe is valid and has a device.
        match unsafe { blkid_do_probe(self.raw.as_ptr()) } {
            FOUND => Ok(true),
            NO_MORE => Ok(false),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// What the current signature says under `name`.
    fn value(&self, name: &CStr) -> Option<String> {
        let (mut data, mut length) = (ptr::null(), 0);
        // SAFETY: the probe is valid, the name ends with a zero, and both results outlive the call.
        let result = unsafe {
            blkid_probe_lookup_value(self.raw.as_ptr(), name.as_ptr(), &raw mut data, &raw mut length)
        };
        if result != 0 || data.is_null() {
            return None;
        }
        // SAFETY: libblkid ends these values with a zero and keeps them until the next step or drop; the
        // text is copied here.
        let text = unsafe { CStr::from_ptr(data) }.to_string_lossy().into_owned();
        (!text.is_empty()).then_some(text)
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        // SAFETY: the probe is valid, and nothing uses it after this.
        unsafe { blkid_free_probe(self.raw.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_swap_area_is_told_within_its_range_and_nothing_elsewhere() {
        const START: u64 = 1 << 20;
        const SIZE: u64 = 1 << 20;
        let file = tempfile::tempfile().unwrap();
        file.set_len(4 * SIZE).unwrap();
        let mut page = [0; 4096];
        page[4086..].copy_from_slice(b"SWAPSPACE2");
        page[1024] = 1;
        page[1028..1032].copy_from_slice(&255_u32.to_le_bytes());
        page[1036..1052].copy_from_slice(&[0x11; 16]);
        page[1052..1057].copy_from_slice(b"swap1");
        file.write_all_at(&page, START).unwrap();
        let expected = Signature {
            kind: "swap".to_owned(),
            label: Some("swap1".to_owned()),
            uuid: Some("11111111-1111-1111-1111-111111111111".to_owned()),
        };
        assert_eq!(signatures(&file, START, SIZE).unwrap(), [expected]);
        assert_eq!(signatures(&file, 0, 4 * SIZE).unwrap(), []);
        assert!(signatures(&file, 8 * SIZE, SIZE).is_err());
    }
}
