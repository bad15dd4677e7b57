//! Device mapper: block devices that the kernel makes of others, by its own interface
//! (`linux/dm-ioctl.h`).
//!
//! Every request is one buffer: a header of fixed length, and behind it what the request is about. The
//! answer comes in the same buffer.

#![allow(unsafe_code)]

use crate::modules::ModuleIndex;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// Where the kernel takes requests, once its module `dm_mod` is there.
const CONTROL: &str = "/dev/mapper/control";
/// Version of the interface whose fields are used here; the kernel refuses another first number.
const VERSION: [u32; 3] = [4, 0, 0];
/// Bytes of a request, so that every answer of one target fits.
const BUFFER: usize = 16 << 10;
/// Bytes of a name and of an identifier with their final zero byte.
const NAME_BYTES: usize = 128;
const IDENTIFIER_BYTES: usize = 129;
/// Bytes of the name of a kind of target with its final zero byte.
const KIND_BYTES: usize = 16;

/// Places in the header, `struct dm_ioctl`.
mod header {
    pub const DATA_SIZE: usize = 12;
    pub const DATA_START: usize = 16;
    pub const TARGET_COUNT: usize = 20;
    pub const DEVICE: usize = 40;
    pub const NAME: usize = 48;
    pub const IDENTIFIER: usize = 176;
    pub const BYTES: usize = 312;
}

/// Places in a target, `struct dm_target_spec`.
mod target {
    pub const LENGTH: usize = 8;
    pub const KIND: usize = 24;
    pub const BYTES: usize = 40;
}

type Header = [u8; header::BYTES];

mod request {
    use super::Header;

    nix::ioctl_readwrite!(create, 0xfd, 3, Header);
    nix::ioctl_readwrite!(remove, 0xfd, 4, Header);
    nix::ioctl_readwrite!(resume, 0xfd, 6, Header);
    nix::ioctl_readwrite!(load_table, 0xfd, 9, Header);
    nix::ioctl_readwrite!(table_status, 0xfd, 12, Header);
    nix::ioctl_readwrite!(message, 0xfd, 14, Header);
}

/// A device to be made of one target that fills it.
#[derive(Debug, Clone, Copy)]
pub struct Map<'a> {
    /// Name that no other device has.
    pub name: &'a str,
    /// Identifier that no other device has; what stands before its first `-` says who made it.
    pub identifier: &'a str,
    /// Length in sectors of 512 bytes.
    pub sectors: u64,
    /// Kind of the target, such as `linear`. The kernel asks for the module `dm-KIND` itself.
    pub kind: &'a str,
    /// What the target is made of, in its own words.
    pub parameters: &'a str,
}

/// The kernel's device mapper.
#[derive(Debug)]
pub struct DeviceMapper {
    control: File,
}

impl DeviceMapper {
    /// Opens it. Needs root.
    ///
    /// # Errors
    ///
    /// `NotFound` when the kernel's module is missing.
    pub fn open() -> io::Result<Self> {
        ModuleIndex::load_unasked("dm_mod");
        let control = OpenOptions::new().read(true).write(true).open(CONTROL)?;
        Ok(Self { control })
    }

    /// Makes a device and gives its kernel name, such as `dm-0`. Nothing is left of it after a failure.
    ///
    /// # Errors
    ///
    /// `EBUSY` when the name is taken or something else uses a device that the target is made of, `EINVAL`
    /// when the kernel does not understand the parameters; its log says more.
    pub fn create(&self, map: &Map<'_>) -> io::Result<String> {
        let mut new = Request::about(map.name)?;
        new.put_text(header::IDENTIFIER, IDENTIFIER_BYTES, map.identifier)?;
        new.send(&self.control, request::create)?;
        let device = new.device_name();
        let mut table = Request::about(map.name)?;
        table.put_target(map)?;
        let outcome = table
            .send(&self.control, request::load_table)
            .and_then(|()| Request::about(map.name)?.send(&self.control, request::resume));
        match outcome {
            Ok(()) => Ok(device),
            Err(error) => {
                // The first failure is the one to tell.
                self.remove(map.name).ok();
                Err(error)
            }
        }
    }

    /// Removes a device.
    ///
    /// # Errors
    ///
    /// `EBUSY` while it is used, `ENXIO` when there is none of that name.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Request::about(name)?.send(&self.control, request::remove)
    }

    /// What the only target of a device says of its state.
    ///
    /// # Errors
    ///
    /// `ENXIO` when there is no device of that name.
    pub fn status(&self, name: &str) -> io::Result<String> {
        let mut request = Request::about(name)?;
        request.send(&self.control, request::table_status)?;
        Ok(request.text_at(header::BYTES + target::BYTES))
    }

    /// Sends a message to the only target of a device.
    ///
    /// # Errors
    ///
    /// `EINVAL` when it does not understand, `ENXIO` when there is no device of that name.
    pub fn tell(&self, name: &str, message: &str) -> io::Result<()> {
        let mut request = Request::about(name)?;
        // The sector that the target is found by comes first: the first one.
        request.put_text(header::BYTES + size_of::<u64>(), BUFFER - header::BYTES - 8, message)?;
        request.send(&self.control, request::message)
    }
}

/// A request, and then its answer.
struct Request {
    bytes: Vec<u8>,
}

impl Request {
    fn about(name: &str) -> io::Result<Self> {
        let mut request = Self { bytes: vec![0; BUFFER] };
        for (place, number) in VERSION.into_iter().enumerate() {
            request.put(place * size_of::<u32>(), &number.to_ne_bytes());
        }
        request.put(header::DATA_SIZE, &(BUFFER as u32).to_ne_bytes());
        request.put(header::DATA_START, &(header::BYTES as u32).to_ne_bytes());
        request.put_text(header::NAME, NAME_BYTES, name)?;
        Ok(request)
    }

    fn put_target(&mut self, map: &Map<'_>) -> io::Result<()> {
        self.put(header::TARGET_COUNT, &1_u32.to_ne_bytes());
        self.put(header::BYTES + target::LENGTH, &map.sectors.to_ne_bytes());
        self.put_text(header::BYTES + target::KIND, KIND_BYTES, map.kind)?;
        let parameters = header::BYTES + target::BYTES;
        self.put_text(parameters, BUFFER - parameters, map.parameters)
    }

    fn put(&mut self, place: usize, bytes: &[u8]) {
        self.bytes[place..place + bytes.len()].copy_from_slice(bytes);
    }

    /// Puts text and a final zero byte into `space` bytes.
    fn put_text(&mut self, place: usize, space: usize, text: &str) -> io::Result<()> {
        if text.len() >= space || text.contains('\0') {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{text:?} does not fit")));
        }
        self.put(place, text.as_bytes());
        Ok(())
    }

    fn text_at(&self, place: usize) -> String {
        let text = self.bytes[place..].split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// Name of the device whose number stands in the answer.
    fn device_name(&self) -> String {
        let number = self.bytes[header::DEVICE..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        format!("dm-{}", libc::minor(number))
    }

    fn send(
        &mut self,
        control: &File,
        ioctl: unsafe fn(RawFd, *mut Header) -> nix::Result<i32>,
    ) -> io::Result<()> {
        // SAFETY: the kernel reads and writes no more than DATA_SIZE bytes from the pointer on, which are
        // the whole buffer; it is borrowed alone for the call, and of bytes any content is valid.
        unsafe { ioctl(control.as_raw_fd(), self.bytes.as_mut_ptr().cast()) }?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: Map<'static> =
        Map { name: "disk", identifier: "x-1", sectors: 2048, kind: "linear", parameters: "7:0 0" };

    #[test]
    fn a_request_has_its_fields_where_the_kernel_looks() {
        let mut request = Request::about(MAP.name).unwrap();
        request.put_target(&MAP).unwrap();
        let number = |place: usize| u32::from_ne_bytes(*request.bytes[place..].first_chunk().unwrap());
        assert_eq!([number(0), number(4), number(8)], VERSION);
        assert_eq!((number(12), number(16), number(20)), (16 << 10, 312, 1));
        assert_eq!(request.text_at(48), "disk");
        assert_eq!((number(312), number(320)), (0, 2048));
        assert_eq!((request.text_at(336), request.text_at(352)), ("linear".into(), "7:0 0".into()));
    }

    #[test]
    fn a_device_is_named_after_its_minor_number() {
        let mut request = Request::about("x").unwrap();
        for (major, minor) in [(253, 0), (253, 3), (252, 300)] {
            request.put(header::DEVICE, &libc::makedev(major, minor).to_ne_bytes());
            assert_eq!(request.device_name(), format!("dm-{minor}"));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(Request::about(&"n".repeat(127)).is_ok());
        for name in ["n".repeat(128), "a\0b".to_owned()] {
            assert!(Request::about(&name).is_err(), "{name:?}");
        }
    }
}
