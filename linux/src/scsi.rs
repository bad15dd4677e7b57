//! SCSI commands through the kernel's generic interface: sanitize, format, and what a target says
//! about them (SPC-5, SBC-4). Numbers on the wire are big-endian.

#![allow(unsafe_code)]

mod block_count;
mod sense;

pub use block_count::BlockCounts;
pub(crate) use sense::descriptor as sense_descriptor;
pub use sense::{Sense, SenseKey};

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::time::Duration;

/// A command that only asks, or that starts something which goes on by itself.
const SHORT_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest sense data that a target may send.
const SENSE_BYTES: usize = 252;

const STATUS_GOOD: u8 = 0;
const STATUS_CHECK_CONDITION: u8 = 2;
const STATUS_RESERVATION_CONFLICT: u8 = 0x18;

const TEST_UNIT_READY: u8 = 0x00;
const FORMAT_UNIT: u8 = 0x04;
const SANITIZE: u8 = 0x48;
const PERSISTENT_RESERVE_IN: u8 = 0x5e;
const READ_RESERVATION: u8 = 0x01;
const SERVICE_ACTION_IN_16: u8 = 0x9e;
const READ_CAPACITY_16: u8 = 0x10;
const MAINTENANCE_IN: u8 = 0xa3;
const REPORT_SUPPORTED_OPERATION_CODES: u8 = 0x0c;

/// Additional sense codes: length of the parameter list, operation code, field in the command, field in the
/// parameter list.
const UNKNOWN: [u8; 4] = [0x1a, 0x20, 0x24, 0x26];

/// Return at once and go on.
const IMMEDIATE: u8 = 1 << 7;
/// Leave a failed sanitize operation by the exit action.
const ALLOW_UNRESTRICTED_EXIT: u8 = 1 << 5;

mod request {
    nix::ioctl_readwrite_bad!(sg_io, 0x2285, super::Header);
}

/// `struct sg_io_hdr` of the kernel.
#[repr(C)]
struct Header {
    interface: i32,
    direction: i32,
    command_length: u8,
    sense_capacity: u8,
    vectors: u16,
    data_length: u32,
    data: *mut c_void,
    command: *const u8,
    sense: *mut u8,
    timeout_ms: u32,
    flags: u32,
    pack_id: i32,
    user: *mut c_void,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_length: u8,
    host_status: u16,
    driver_status: u16,
    residual: i32,
    duration: u32,
    info: u32,
}

const DIRECTION_NONE: i32 = -1;
const DIRECTION_OUT: i32 = -2;
const DIRECTION_IN: i32 = -3;
const HOST_TIMED_OUT: u16 = 3;
const DRIVER_TIMED_OUT: u16 = 6;

/// The data that goes with a command.
#[derive(Debug)]
pub enum Transfer<'a> {
    /// None.
    None,
    /// The target fills it.
    In(&'a mut [u8]),
    /// The target reads it.
    Out(&'a [u8]),
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// SCSI status.
    pub status: u8,
    /// Sense data as it came.
    pub sense: Vec<u8>,
}

/// A command did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum ScsiError {
    /// The kernel or the controller could not pass it on, or gave up.
    #[error("the kernel reports {0}")]
    Kernel(#[from] io::Error),
    /// The target refused or failed it.
    #[error("the target answers {0}")]
    Sense(Sense),
    /// The target belongs to another machine at the moment.
    #[error("the target is reserved by another machine")]
    Reserved,
    /// The target ended it with a status that says nothing.
    #[error("the target answers status {0:#04x}")]
    Status(u8),
}

impl ScsiError {
    /// Whether the target does not know the command, or not in this form.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Sense(sense) if sense.key == SenseKey::IllegalRequest)
    }

    /// Whether the target refuses a command because it does not have it, or not with these parameters; other
    /// illegal requests come of the state that the target is in.
    pub fn is_unknown_command(&self) -> bool {
        self.is_unsupported() && matches!(self, Self::Sense(sense) if UNKNOWN.contains(&sense.code.0))
    }
}

/// Where commands are put.
pub trait ScsiTarget {
    /// Has the target do a command.
    ///
    /// # Errors
    ///
    /// The kernel's, or `TimedOut`. A command that the target refuses is a [`Completion`].
    fn execute(&self, command: &[u8], transfer: Transfer<'_>, timeout: Duration) -> io::Result<Completion>;

    /// The same target for another thread, where a command blocks for hours.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a target that one thread alone has, or the kernel's error.
    fn for_thread(&self) -> io::Result<Box<dyn ScsiTarget + Send>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl<T: ScsiTarget + ?Sized> ScsiTarget for Box<T> {
    fn execute(&self, command: &[u8], transfer: Transfer<'_>, timeout: Duration) -> io::Result<Completion> {
        (**self).execute(command, transfer, timeout)
    }
}

/// An open disk that is not borrowed.
struct OwnedDevice(OwnedFd);

impl ScsiTarget for OwnedDevice {
    fn execute(&self, command: &[u8], transfer: Transfer<'_>, timeout: Duration) -> io::Result<Completion> {
        ScsiDevice(self.0.as_fd()).execute(command, transfer, timeout)
    }
}

/// An open SCSI or ATA disk.
#[derive(Debug, Clone, Copy)]
pub struct ScsiDevice<'a>(BorrowedFd<'a>);

impl<'a> ScsiDevice<'a> {
    /// The target behind `device`, which is open for writing.
    pub fn new(device: &'a impl AsFd) -> Self {
        Self(device.as_fd())
    }
}

impl ScsiTarget for ScsiDevice<'_> {
    fn execute(&self, command: &[u8], transfer: Transfer<'_>, timeout: Duration) -> io::Result<Completion> {
        let (direction, data, length) = match transfer {
            Transfer::None => (DIRECTION_NONE, ptr::null_mut(), 0),
            Transfer::In(data) => (DIRECTION_IN, data.as_mut_ptr().cast::<c_void>(), data.len()),
            // The kernel only reads it: the direction says so.
            Transfer::Out(data) => (DIRECTION_OUT, data.as_ptr().cast_mut().cast::<c_void>(), data.len()),
        };
        let mut sense = [0_u8; SENSE_BYTES];
        let mut header = Header {
            interface: i32::from(b'S'),
            direction,
            command_length: u8::try_from(command.len()).map_err(io::Error::other)?,
            sense_capacity: SENSE_BYTES as u8,
            vectors: 0,
            data_length: u32::try_from(length).map_err(io::Error::other)?,
            data,
            command: command.as_ptr(),
            sense: sense.as_mut_ptr(),
            timeout_ms: u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX),
            flags: 0,
            pack_id: 0,
            user: ptr::null_mut(),
            status: 0,
            masked_status: 0,
            message_status: 0,
            sense_length: 0,
            host_status: 0,
            driver_status: 0,
            residual: 0,
            duration: 0,
            info: 0,
        };
        // SAFETY: the structure has the kernel's layout; command, data and sense point at live
        // memory of the lengths given beside them, and data is written only when it came as `In`.
        unsafe { request::sg_io(self.0.as_raw_fd(), &raw mut header) }?;
        if header.host_status == HOST_TIMED_OUT || header.driver_status & 0xf == DRIVER_TIMED_OUT {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the target did not answer in time"));
        }
        if header.host_status != 0 {
            return Err(io::Error::other(format!("controller status {:#06x}", header.host_status)));
        }
        let length = usize::from(header.sense_length).min(SENSE_BYTES);
        Ok(Completion { status: header.status, sense: sense[..length].to_vec() })
    }

    fn for_thread(&self) -> io::Result<Box<dyn ScsiTarget + Send>> {
        Ok(Box::new(OwnedDevice(self.0.try_clone_to_owned()?)))
    }
}

/// How often a question is asked of a target that has news for every one who asks: reset, changed reservations,
/// new capacity, each told once.
const QUESTIONS: usize = 5;

/// Asks a question again as long as the target answers that something happened to it since the last command.
fn ask(target: &impl ScsiTarget, cdb: &[u8], data: &mut [u8]) -> Result<(), ScsiError> {
    for _ in 1..QUESTIONS {
        match command(target, cdb, Transfer::In(data)) {
            Err(ScsiError::Sense(sense)) if sense.key == SenseKey::UnitAttention => {}
            outcome => return outcome,
        }
    }
    command(target, cdb, Transfer::In(data))
}

/// Runs a command and takes everything but a good status for an error.
fn command(target: &impl ScsiTarget, command: &[u8], transfer: Transfer<'_>) -> Result<(), ScsiError> {
    let completion = target.execute(command, transfer, SHORT_TIMEOUT)?;
    match (completion.status, Sense::decode(&completion.sense)) {
        (STATUS_GOOD, _) => Ok(()),
        (STATUS_CHECK_CONDITION, Some(sense)) if sense.key == SenseKey::Recovered => Ok(()),
        (STATUS_CHECK_CONDITION, Some(sense)) => Err(ScsiError::Sense(sense)),
        (STATUS_RESERVATION_CONFLICT, _) => Err(ScsiError::Reserved),
        (status, _) => Err(ScsiError::Status(status)),
    }
}

/// How a sanitize operation erases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SanitizeAction {
    /// A pattern of zeros is written everywhere.
    Overwrite = 1,
    /// Every block is erased.
    Block = 2,
    /// The keys of the data are destroyed.
    Crypto = 3,
}

/// Whether the target says that it knows a sanitize action; a target that cannot tell does not.
///
/// # Errors
///
/// [`ScsiError`], save that the question is not understood.
pub fn has_sanitize(target: &impl ScsiTarget, action: SanitizeAction) -> Result<bool, ScsiError> {
    // 3: one operation code with its service action.
    is_supported(target, 3, SANITIZE, action as u16)
}

/// Whether the target says that it knows the command Format Unit.
///
/// # Errors
///
/// As [`has_sanitize`].
pub fn has_format(target: &impl ScsiTarget) -> Result<bool, ScsiError> {
    // 1: one operation code without service actions.
    is_supported(target, 1, FORMAT_UNIT, 0)
}

fn is_supported(target: &impl ScsiTarget, option: u8, code: u8, action: u16) -> Result<bool, ScsiError> {
    let mut data = [0; 64];
    let action = action.to_be_bytes();
    let cdb = [
        MAINTENANCE_IN,
        REPORT_SUPPORTED_OPERATION_CODES,
        option,
        code,
        action[0],
        action[1],
        0,
        0,
        0,
        data.len() as u8,
        0,
        0,
    ];
    match ask(target, &cdb, &mut data) {
        // 3: supported as the standard says.
        Ok(()) => Ok(data[1] & 0x7 == 3),
        Err(error) if error.is_unsupported() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Starts a sanitize operation; it continues by itself, even across a loss of power.
///
/// # Errors
///
/// [`ScsiError`].
pub fn start_sanitize(target: &impl ScsiTarget, action: SanitizeAction) -> Result<(), ScsiError> {
    // One pass with a pattern of four zero bytes.
    let parameters = [0x01, 0, 0, 4, 0, 0, 0, 0];
    let (length, transfer) = match action {
        SanitizeAction::Overwrite => (parameters.len() as u8, Transfer::Out(&parameters)),
        SanitizeAction::Block | SanitizeAction::Crypto => (0, Transfer::None),
    };
    let flags = IMMEDIATE | ALLOW_UNRESTRICTED_EXIT;
    command(target, &[SANITIZE, flags | action as u8, 0, 0, 0, 0, 0, 0, length, 0], transfer)
}

/// Leaves the state in which a failed sanitize operation keeps the target.
///
/// # Errors
///
/// [`ScsiError`].
pub fn exit_failed_sanitize(target: &impl ScsiTarget) -> Result<(), ScsiError> {
    command(target, &[SANITIZE, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0], Transfer::None)
}

/// Whether the medium carries protection information, which a plain format would remove.
///
/// # Errors
///
/// [`ScsiError`].
pub fn has_protection(target: &impl ScsiTarget) -> Result<bool, ScsiError> {
    Ok(capacity(target)?[12] & 1 != 0)
}

/// Whether blocks that were unmapped read as zeros, each time (SBC-4, 5.17.2: LBPME and LBPRZ).
///
/// # Errors
///
/// [`ScsiError`].
pub fn reads_zero_after_unmap(target: &impl ScsiTarget) -> Result<bool, ScsiError> {
    let promise = 1 << 7 | 1 << 6;
    Ok(capacity(target)?[14] & promise == promise)
}

fn capacity(target: &impl ScsiTarget) -> Result<[u8; 32], ScsiError> {
    let mut data = [0; 32];
    let mut cdb = [0; 16];
    cdb[0] = SERVICE_ACTION_IN_16;
    cdb[1] = READ_CAPACITY_16;
    cdb[13] = data.len() as u8;
    ask(target, &cdb, &mut data)?;
    Ok(data)
}

/// Starts Format Unit with a pattern of zeros over every block, reassigned ones included.
///
/// # Errors
///
/// [`ScsiError`].
pub fn start_format(target: &impl ScsiTarget) -> Result<(), ScsiError> {
    // Options valid, initialisation pattern, immediate; then the pattern: secure, repeated, one zero.
    let parameters = [0, 0x80 | 0x08 | 0x02, 0, 0, 0x20, 0x01, 0, 1, 0];
    // With a parameter list and no list of defects.
    command(target, &[FORMAT_UNIT, 0x10, 0, 0, 0, 0], Transfer::Out(&parameters))
}

/// The progress of an erasure that runs by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EraseState {
    /// It is running; this part of 65536 is done, where the target reports it.
    Running(Option<u16>),
    /// The target is ready again.
    Ready,
}

/// Asks for the state of an erasure.
///
/// # Errors
///
/// [`ScsiError::Sense`] when it failed, or another [`ScsiError`].
pub fn erase_state(target: &impl ScsiTarget) -> Result<EraseState, ScsiError> {
    match command(target, &[TEST_UNIT_READY, 0, 0, 0, 0, 0], Transfer::None) {
        Ok(()) => Ok(EraseState::Ready),
        Err(ScsiError::Sense(sense)) if sense.is_erasing() => Ok(EraseState::Running(sense.progress)),
        // Something happened to the target since the last command; the state follows.
        Err(ScsiError::Sense(sense)) if sense.key == SenseKey::UnitAttention => Ok(EraseState::Running(None)),
        Err(error) => Err(error),
    }
}

/// Whether an initiator holds a persistent reservation of the target; one that has none cannot.
///
/// # Errors
///
/// [`ScsiError`], save that the question is not understood.
pub fn is_reserved(target: &impl ScsiTarget) -> Result<bool, ScsiError> {
    let mut data = [0; 24];
    let cdb = [PERSISTENT_RESERVE_IN, READ_RESERVATION, 0, 0, 0, 0, 0, 0, data.len() as u8, 0];
    match ask(target, &cdb, &mut data) {
        Ok(()) => Ok(data[4..8] != [0; 4]),
        Err(error) if error.is_unsupported() => Ok(false),
        Err(ScsiError::Reserved) => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
pub(crate) mod tests;
