//! The kernel's IPMI device: requests to the machine's own BMC.

#![allow(unsafe_code)]

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time in which a BMC answers one request.
const ANSWER_DEADLINE: Duration = Duration::from_secs(3);
/// Longest answer of a BMC.
const MAX_ANSWER: usize = 272;
const SYSTEM_INTERFACE: i32 = 0x0c;
const BMC_CHANNEL: i16 = 0x0f;
const RESPONSE: i32 = 1;

/// Address of the BMC behind the system interface.
#[repr(C)]
struct SystemInterfaceAddress {
    kind: i32,
    channel: i16,
    lun: u8,
}

#[repr(C)]
struct Message {
    netfn: u8,
    command: u8,
    length: u16,
    data: *mut u8,
}

#[repr(C)]
struct Request {
    address: *mut SystemInterfaceAddress,
    address_length: u32,
    id: libc::c_long,
    message: Message,
}

#[repr(C)]
struct Received {
    kind: i32,
    address: *mut SystemInterfaceAddress,
    address_length: u32,
    id: libc::c_long,
    message: Message,
}

mod request {
    // The kernel declares the request as read, though it only reads it from us.
    nix::ioctl_read!(send_command, b'i', 13, super::Request);
    nix::ioctl_readwrite!(receive_truncated, b'i', 11, super::Received);
}

/// An open IPMI device.
#[derive(Debug)]
pub struct IpmiDevice {
    file: File,
    next_id: libc::c_long,
}

impl IpmiDevice {
    /// Opens the first IPMI device; nothing when this machine has none (F44).
    ///
    /// # Errors
    ///
    /// The error of opening it; usually a lack of rights.
    pub fn open_first() -> io::Result<Option<Self>> {
        let Some(path) = first_device(Path::new("/dev")) else { return Ok(None) };
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Some(Self { file, next_id: 1 }))
    }

    /// Sends a request and returns the answer, which begins with its completion code.
    ///
    /// # Errors
    ///
    /// The kernel's refusal, or `TimedOut` when the BMC does not answer within three seconds.
    pub fn call(&mut self, netfn: u8, command: u8, data: &[u8]) -> io::Result<Vec<u8>> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(id, netfn, command, data)?;
        let deadline = Instant::now() + ANSWER_DEADLINE;
        loop {
            self.wait(deadline)?;
            // A late answer to an earlier request is passed over.
            if let Some(answer) = self.receive(id)? {
                return Ok(answer);
            }
        }
    }

    fn send(&self, id: libc::c_long, netfn: u8, command: u8, data: &[u8]) -> io::Result<()> {
        let mut data = data.to_vec();
        let length = u16::try_from(data.len()).map_err(io::Error::other)?;
        let mut address = SystemInterfaceAddress { kind: SYSTEM_INTERFACE, channel: BMC_CHANNEL, lun: 0 };
        let mut request = Request {
            address: &raw mut address,
            address_length: size_of::<SystemInterfaceAddress>() as u32,
            id,
            message: Message { netfn, command, length, data: data.as_mut_ptr() },
        };
        // SAFETY: the kernel reads the address and `length` bytes of data, which both outlive the
        // call.
        unsafe { request::send_command(self.file.as_raw_fd(), &raw mut request) }?;
        Ok(())
    }

    fn wait(&self, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut descriptors = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(left).map_err(io::Error::other)?;
        match poll(&mut descriptors, timeout)? {
            0 => Err(io::Error::new(io::ErrorKind::TimedOut, "the BMC does not answer")),
            _ => Ok(()),
        }
    }

    fn receive(&self, id: libc::c_long) -> io::Result<Option<Vec<u8>>> {
        let mut data = [0_u8; MAX_ANSWER];
        let mut address = SystemInterfaceAddress { kind: 0, channel: 0, lun: 0 };
        let mut received = Received {
            kind: 0,
            address: &raw mut address,
            address_length: size_of::<SystemInterfaceAddress>() as u32,
            id: 0,
            message: Message { netfn: 0, command: 0, length: MAX_ANSWER as u16, data: data.as_mut_ptr() },
        };
        // SAFETY: the kernel writes at most `address_length` and `length` bytes to two buffers that
        // are as large and outlive the call.
        unsafe { request::receive_truncated(self.file.as_raw_fd(), &raw mut received) }?;
        let length = usize::from(received.message.length).min(MAX_ANSWER);
        Ok((received.kind == RESPONSE && received.id == id).then(|| data[..length].to_vec()))
    }
}

/// `/dev/ipmi*`, `/dev/ipmi/*`, `/dev/ipmidev/*`: the character devices among them.
fn first_device(dev: &Path) -> Option<PathBuf> {
    let folder = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_ipmi =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ipmi"));
    let mut found: Vec<_> = folder(dev.to_owned())
        .filter(is_ipmi)
        .chain(folder(dev.join("ipmi")))
        .chain(folder(dev.join("ipmidev")))
        .filter(|path| fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_char_device()))
        .collect();
    found.sort();
    found.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn f44_only_character_devices_count() {
        let dev = tempfile::tempdir().unwrap();
        fs::write(dev.path().join("ipmi0"), "").unwrap();
        fs::create_dir(dev.path().join("ipmi")).unwrap();
        assert_eq!(first_device(dev.path()), None);
        // Any character device will do.
        symlink("/dev/null", dev.path().join("ipmi/0")).unwrap();
        assert_eq!(first_device(dev.path()), Some(dev.path().join("ipmi/0")));
    }

    #[test]
    fn structures_have_the_kernels_layout() {
        assert_eq!(size_of::<SystemInterfaceAddress>(), 8);
        #[cfg(target_pointer_width = "64")]
        assert_eq!((size_of::<Message>(), size_of::<Request>(), size_of::<Received>()), (16, 40, 48));
    }
}
