//! Commands of NVMe controllers: identify, format, sanitize and its log, and who reserved a namespace (NVM
//! Express Base Specification 2.0).
//!
//! Commands go through an [`NvmeTarget`], so that what is sent and how answers are read can be
//! tried against recorded bytes. Numbers on the wire are little-endian.

#![allow(unsafe_code)]

mod reservation;

pub use reservation::is_reserved;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Bytes of an identify structure.
pub const IDENTIFY_BYTES: usize = 4096;
/// Bytes read of the sanitize status log page.
const SANITIZE_LOG_BYTES: usize = 32;
/// More namespaces than any controller has.
const MOST_NAMESPACES: usize = 64 * 1024;
/// A command that only asks.
const QUERY_TIMEOUT: Duration = Duration::from_secs(30);

const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const FORMAT_NVM: u8 = 0x80;
const SANITIZE: u8 = 0x84;
const SANITIZE_STATUS_LOG: u32 = 0x81;

const CNS_NAMESPACE: u32 = 0x00;
const CNS_CONTROLLER: u32 = 0x01;
const CNS_ACTIVE_NAMESPACES: u32 = 0x02;
const CNS_ALLOCATED_NAMESPACES: u32 = 0x10;

/// Optional admin command support: Format NVM.
const OACS_FORMAT: u16 = 1 << 1;
/// Optional admin command support: namespace management.
const OACS_NAMESPACES: u16 = 1 << 3;
const FNA_FORMAT_ALL: u8 = 1 << 0;
const FNA_ERASE_ALL: u8 = 1 << 1;
const FNA_CRYPTO: u8 = 1 << 2;

const SANICAP_CRYPTO: u32 = 1 << 0;
const SANICAP_BLOCK: u32 = 1 << 1;
const SANICAP_OVERWRITE: u32 = 1 << 2;

/// Leave a failed sanitize operation by the exit action, instead of only by a later success.
const ALLOW_UNRESTRICTED_EXIT: u32 = 1 << 3;
/// One pass over the medium.
const ONE_PASS: u32 = 1 << 4;

mod request {
    nix::ioctl_readwrite!(admin_command, b'N', 0x41, super::PassThrough);
    nix::ioctl_readwrite!(io_command, b'N', 0x43, super::PassThrough);
    nix::ioctl_none!(namespace_id, b'N', 0x40);
}

/// `struct nvme_passthru_cmd` of the kernel.
#[repr(C)]
#[derive(Debug, Default)]
struct PassThrough {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    address: u64,
    metadata_length: u32,
    data_length: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

/// Which commands an operation code is one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// About the controller and its namespaces.
    Admin,
    /// About what a namespace holds.
    Io,
}

/// A command without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Where it is put.
    pub queue: Queue,
    /// Operation code.
    pub opcode: u8,
    /// Namespace, or 0 for the whole controller.
    pub namespace: u32,
    /// Command dwords 10 and 11; the others stay zero.
    pub dwords: [u32; 2],
    /// Time after which the kernel gives up.
    pub timeout: Duration,
}

/// A command did not complete successfully.
#[derive(Debug, thiserror::Error)]
pub enum NvmeError {
    /// The kernel could not pass it on, or gave up.
    #[error("the kernel reports {0}")]
    Kernel(#[from] io::Error),
    /// The controller completed it with an error.
    #[error("the controller answers status {0:#06x}{reason}", reason = status_text(*.0))]
    Status(u16),
}

impl NvmeError {
    /// Whether the controller refuses a command because it does not have it, or not in this form.
    pub fn is_unknown_command(&self) -> bool {
        matches!(self, Self::Status(status) if [0x001, 0x002, 0x10a].contains(&(status & 0x7ff)))
    }
}

/// What commands are given to.
pub trait NvmeTarget {
    /// Has the controller do a command, with `data` read or written by it.
    ///
    /// # Errors
    ///
    /// [`NvmeError`].
    fn submit(&self, command: &Command, data: &mut [u8]) -> Result<(), NvmeError>;

    /// The same controller for another thread, where a command blocks for long.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a controller that one thread alone has, or the kernel's error.
    fn for_thread(&self) -> io::Result<Box<dyn NvmeTarget + Send>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl<T: NvmeTarget + ?Sized> NvmeTarget for Box<T> {
    fn submit(&self, command: &Command, data: &mut [u8]) -> Result<(), NvmeError> {
        (**self).submit(command, data)
    }
}

/// An open device that is not borrowed.
struct OwnedDevice(OwnedFd);

impl NvmeTarget for OwnedDevice {
    fn submit(&self, command: &Command, data: &mut [u8]) -> Result<(), NvmeError> {
        NvmeDevice(self.0.as_fd()).submit(command, data)
    }
}

/// The controller behind an open namespace or controller device.
#[derive(Debug, Clone, Copy)]
pub struct NvmeDevice<'a>(BorrowedFd<'a>);

impl<'a> NvmeDevice<'a> {
    /// The controller of `device`, which is open for writing.
    pub fn new(device: &'a impl AsFd) -> Self {
        Self(device.as_fd())
    }

    /// Number of the namespace that this block device is.
    ///
    /// # Errors
    ///
    /// `ENOTTY` when the device is not a namespace.
    pub fn namespace(&self) -> io::Result<u32> {
        // SAFETY: NVME_IOCTL_ID takes no argument and returns a number.
        let number = unsafe { request::namespace_id(self.0.as_raw_fd()) }?;
        u32::try_from(number).map_err(io::Error::other)
    }
}

impl NvmeTarget for NvmeDevice<'_> {
    fn submit(&self, command: &Command, data: &mut [u8]) -> Result<(), NvmeError> {
        let mut passed = PassThrough {
            opcode: command.opcode,
            namespace: command.namespace,
            cdw10: command.dwords[0],
            cdw11: command.dwords[1],
            address: if data.is_empty() { 0 } else { data.as_mut_ptr() as u64 },
            data_length: u32::try_from(data.len()).map_err(io::Error::other)?,
            timeout_ms: u32::try_from(command.timeout.as_millis()).unwrap_or(u32::MAX),
            ..PassThrough::default()
        };
        let descriptor = self.0.as_raw_fd();
        // SAFETY: the structure has the kernel's layout; the kernel moves `data_length` bytes to or
        // from `address`, which is a live exclusive slice of that length.
        let status = unsafe {
            match command.queue {
                Queue::Admin => request::admin_command(descriptor, &raw mut passed),
                Queue::Io => request::io_command(descriptor, &raw mut passed),
            }
        }
        .map_err(io::Error::from)?;
        match u16::try_from(status) {
            Ok(0) => Ok(()),
            Ok(status) => Err(NvmeError::Status(status)),
            Err(_) => Err(io::Error::other(format!("status {status} is out of range")).into()),
        }
    }

    fn for_thread(&self) -> io::Result<Box<dyn NvmeTarget + Send>> {
        Ok(Box::new(OwnedDevice(self.0.try_clone_to_owned()?)))
    }
}

/// What a controller says it can do about erasing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Optional admin commands (OACS).
    pub oacs: u16,
    /// Format attributes (FNA).
    pub fna: u8,
    /// Sanitize capabilities (SANICAP).
    pub sanicap: u32,
    /// Bytes of the medium (TNVMCAP); 0 where the controller does not manage namespaces.
    pub total_bytes: u64,
    /// Bytes of it that no namespace has (UNVMCAP).
    pub unallocated_bytes: u64,
}

impl Capabilities {
    /// Reads the identify controller structure.
    ///
    /// # Errors
    ///
    /// [`NvmeError`].
    pub fn identify(queue: &impl NvmeTarget) -> Result<Self, NvmeError> {
        let data = identify(queue, 0, CNS_CONTROLLER)?;
        Ok(Self {
            oacs: u16::from_le_bytes([data[256], data[257]]),
            fna: data[524],
            sanicap: u32::from_le_bytes([data[328], data[329], data[330], data[331]]),
            total_bytes: bytes(&data[280..296]),
            unallocated_bytes: bytes(&data[296..312]),
        })
    }

    /// Whether the command Format NVM exists.
    pub fn has_format(&self) -> bool {
        self.oacs & OACS_FORMAT != 0
    }

    /// Whether Format NVM can destroy the key of the data.
    pub fn has_crypto_format(&self) -> bool {
        self.has_format() && self.fna & FNA_CRYPTO != 0
    }

    /// Whether erasing one namespace by Format NVM erases all of them.
    pub fn formats_every_namespace(&self) -> bool {
        self.fna & (FNA_FORMAT_ALL | FNA_ERASE_ALL) != 0
    }

    /// Whether a sanitize action exists.
    pub fn has(&self, action: SanitizeAction) -> bool {
        let bit = match action {
            SanitizeAction::Crypto => SANICAP_CRYPTO,
            SanitizeAction::Block => SANICAP_BLOCK,
            SanitizeAction::Overwrite => SANICAP_OVERWRITE,
        };
        self.sanicap & bit != 0
    }
}

/// A number of 128 bits; more than 64 of them no medium has.
fn bytes(field: &[u8]) -> u64 {
    let number = field.iter().rev().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Numbers of all namespaces that an erasure of the whole controller reaches: the allocated ones, or
/// the active ones where the controller has no namespace management.
///
/// # Errors
///
/// [`NvmeError`].
pub fn namespaces(queue: &impl NvmeTarget, capabilities: &Capabilities) -> Result<Vec<u32>, NvmeError> {
    let is_managed = capabilities.oacs & OACS_NAMESPACES != 0;
    if is_managed { list(queue, CNS_ALLOCATED_NAMESPACES) } else { active_namespaces(queue) }
}

/// Numbers of the namespaces that are attached to the controller.
///
/// # Errors
///
/// [`NvmeError`].
pub fn active_namespaces(queue: &impl NvmeTarget) -> Result<Vec<u32>, NvmeError> {
    list(queue, CNS_ACTIVE_NAMESPACES)
}

fn list(queue: &impl NvmeTarget, structure: u32) -> Result<Vec<u32>, NvmeError> {
    let mut numbers: Vec<u32> = Vec::new();
    // A list has 1024 numbers at most, those behind the one that is asked for, in ascending order.
    while numbers.len() < MOST_NAMESPACES {
        let last = numbers.last().copied().unwrap_or(0);
        let data = identify(queue, last, structure)?;
        let found =
            data.chunks_exact(4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        let before = numbers.len();
        numbers.extend(found.take_while(|number| *number != 0).filter(|number| *number > last));
        if numbers.len() < before + IDENTIFY_BYTES / 4 {
            break;
        }
    }
    Ok(numbers)
}

/// Whether blocks of a namespace that were deallocated read as zeros (NVM Command Set Specification 1.0, section
/// 4.1.5.1: DLFEAT).
///
/// # Errors
///
/// [`NvmeError`].
pub fn reads_zero_after_deallocate(queue: &impl NvmeTarget, namespace: u32) -> Result<bool, NvmeError> {
    let data = identify(queue, namespace, CNS_NAMESPACE)?;
    Ok(data[33] & 0x7 == 1)
}

/// What Format NVM does to the data. There is no variant that leaves it in place (P07).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatErase {
    /// Every block is erased.
    UserData = 1,
    /// The key of the data is destroyed.
    Crypto = 2,
}

/// Erases a namespace by Format NVM; its sector size, metadata and protection stay as they are.
///
/// # Errors
///
/// [`NvmeError`]; the namespace may be partly erased.
pub fn format(
    queue: &impl NvmeTarget,
    namespace: u32,
    erase: FormatErase,
    timeout: Duration,
) -> Result<(), NvmeError> {
    let data = identify(queue, namespace, CNS_NAMESPACE)?;
    let (flbas, dps) = (u32::from(data[26]), u32::from(data[29]));
    let lba_format = (flbas & 0xf) | (flbas >> 5 & 0x3) << 12;
    let metadata = (flbas >> 4 & 1) << 4;
    let protection = (dps & 0x7) << 5 | (dps >> 3 & 1) << 8;
    let command = Command {
        queue: Queue::Admin,
        opcode: FORMAT_NVM,
        namespace,
        dwords: [lba_format | metadata | protection | (erase as u32) << 9, 0],
        timeout,
    };
    queue.submit(&command, &mut [])
}

/// How a sanitize operation erases the whole subsystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SanitizeAction {
    /// Every block is erased.
    Block = 2,
    /// A pattern is written everywhere.
    Overwrite = 3,
    /// The keys of the data are destroyed.
    Crypto = 4,
}

/// Starts a sanitize operation; it continues by itself, even across a loss of power.
///
/// # Errors
///
/// [`NvmeError`].
pub fn start_sanitize(queue: &impl NvmeTarget, action: SanitizeAction) -> Result<(), NvmeError> {
    sanitize(queue, sanitize_dword(action))
}

/// Leaves the state in which a failed sanitize operation keeps the subsystem.
///
/// # Errors
///
/// [`NvmeError`].
pub fn exit_failed_sanitize(queue: &impl NvmeTarget) -> Result<(), NvmeError> {
    sanitize(queue, 1)
}

fn sanitize(queue: &impl NvmeTarget, dword: u32) -> Result<(), NvmeError> {
    let command = Command {
        queue: Queue::Admin,
        opcode: SANITIZE,
        namespace: 0,
        dwords: [dword, 0],
        timeout: QUERY_TIMEOUT,
    };
    queue.submit(&command, &mut [])
}

fn sanitize_dword(action: SanitizeAction) -> u32 {
    let passes = if action == SanitizeAction::Overwrite { ONE_PASS } else { 0 };
    action as u32 | ALLOW_UNRESTRICTED_EXIT | passes
}

/// Where the newest sanitize operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SanitizeState {
    /// There was none.
    Never,
    /// It is running; this part of 65536 is done.
    Running(u16),
    /// It succeeded, and was the action asked about.
    Succeeded,
    /// The one that succeeded was another.
    OtherSucceeded,
    /// It failed.
    Failed,
}

/// Reads the sanitize status log and compares it with `action`.
///
/// # Errors
///
/// [`NvmeError`].
pub fn sanitize_state(queue: &impl NvmeTarget, action: SanitizeAction) -> Result<SanitizeState, NvmeError> {
    let mut data = [0; SANITIZE_LOG_BYTES];
    let dwords = (SANITIZE_LOG_BYTES as u32 / 4 - 1) << 16;
    let command = Command {
        queue: Queue::Admin,
        opcode: GET_LOG_PAGE,
        namespace: u32::MAX,
        dwords: [SANITIZE_STATUS_LOG | dwords, 0],
        timeout: QUERY_TIMEOUT,
    };
    queue.submit(&command, &mut data)?;
    let progress = u16::from_le_bytes([data[0], data[1]]);
    let started_with = u32::from_le_bytes([data[4], data[5], data[6], data[7]]);
    Ok(match data[2] & 0x7 {
        2 => SanitizeState::Running(progress),
        3 => SanitizeState::Failed,
        // 4: the same, with the blocks not deallocated afterwards.
        1 | 4 if started_with == sanitize_dword(action) => SanitizeState::Succeeded,
        1 | 4 => SanitizeState::OtherSucceeded,
        _ => SanitizeState::Never,
    })
}

fn identify(queue: &impl NvmeTarget, namespace: u32, structure: u32) -> Result<Vec<u8>, NvmeError> {
    let mut data = vec![0; IDENTIFY_BYTES];
    let command = Command {
        queue: Queue::Admin,
        opcode: IDENTIFY,
        namespace,
        dwords: [structure, 0],
        timeout: QUERY_TIMEOUT,
    };
    queue.submit(&command, &mut data)?;
    Ok(data)
}

/// The kernel keeps status code (8 bits) and its type (3 bits) in place and the flags above.
fn status_text(status: u16) -> &'static str {
    match status & 0x7ff {
        0x001 => " (invalid opcode)",
        0x002 => " (invalid field)",
        0x006 => " (internal error)",
        0x00b => " (invalid namespace)",
        0x01c => " (a sanitize operation failed before; the controller refuses until one succeeds)",
        0x01d => " (a sanitize operation is running)",
        0x020 => " (the namespace is write protected)",
        0x10a => " (invalid format)",
        0x371 => " (given up by the host)",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
