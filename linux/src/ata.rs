//! ATA commands inside SCSI ones: identify, the security feature set and sanitize (ACS-4, SAT-4).
//!
//! The drive's answer comes back in the sense data; a controller that keeps it to itself cannot be
//! used to prove anything, and is refused (D22).

mod identify;
mod max_address;

pub use identify::IdentifyData;
pub use max_address::{
    Limit, SectorCounts, Told, set_features_again, show_beyond_accessible_maximum, show_protected_area,
};

use crate::scsi::{ScsiTarget, Transfer, sense_descriptor};
use max_address::{ACCESSIBLE_MAX_ADDRESS, READ_NATIVE_MAX_ADDRESS_EXT, SET_MAX_ADDRESS_EXT};
use std::io;
use std::time::Duration;

/// Bytes of the identify data, of a password block and of every other transfer here.
const BLOCK_BYTES: usize = 512;
const SHORT_TIMEOUT: Duration = Duration::from_secs(60);

const ATA_PASS_THROUGH_16: u8 = 0x85;
const PROTOCOL_NON_DATA: u8 = 3;
const PROTOCOL_PIO_IN: u8 = 4;
const PROTOCOL_PIO_OUT: u8 = 5;
/// Return the registers even when all went well.
const CHECK_CONDITION: u8 = 1 << 5;
const FROM_DEVICE: u8 = 1 << 3;
const IN_BLOCKS: u8 = 1 << 2;
const LENGTH_IN_COUNT: u8 = 2;
/// Descriptor of sense data with the drive's registers.
const ATA_STATUS_RETURN: u8 = 0x09;

const STATUS_FAULT: u8 = 1 << 5;
const STATUS_ERROR: u8 = 1 << 0;
/// Error register: the drive refuses the command.
const ERROR_ABORTED: u8 = 1 << 2;
/// Why Sanitize is refused, in the lowest byte of the address: an action that the drive does not have.
const SANITIZE_UNSUPPORTED: u8 = 2;
/// Device register: addresses are of blocks.
const DEVICE_LBA: u8 = 0x40;

const SANITIZE_DEVICE: u8 = 0xb4;
const SECURITY_SET_PASSWORD: u8 = 0xf1;
const SECURITY_UNLOCK: u8 = 0xf2;
const SECURITY_ERASE_PREPARE: u8 = 0xf3;
const SECURITY_ERASE_UNIT: u8 = 0xf4;
const SECURITY_DISABLE_PASSWORD: u8 = 0xf6;

/// A command did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum AtaError {
    /// The kernel or the controller could not pass it on, or gave up.
    #[error("the kernel reports {0}")]
    Kernel(#[from] io::Error),
    /// The drive refused or failed it.
    #[error("the drive answers status {status:#04x}, error {error:#04x}")]
    Drive {
        /// Status register.
        status: u8,
        /// Error register.
        error: u8,
        /// Lowest byte of the address, in which Sanitize tells why.
        reason: u8,
    },
    /// The controller does not show what the drive answered.
    #[error("the controller does not pass the drive's answer on; connect the drive to another one")]
    Hidden,
}

impl AtaError {
    /// Whether the drive refused the command, instead of failing at it.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Drive { status, error, .. }
            if status & STATUS_FAULT == 0 && error & ERROR_ABORTED != 0)
    }

    /// Whether the drive says that it does not have the Sanitize action that was started.
    pub fn is_unsupported_action(&self) -> bool {
        self.is_refusal() && matches!(self, Self::Drive { reason: SANITIZE_UNSUPPORTED, .. })
    }
}

/// A command with its registers.
#[derive(Debug, Clone, Copy, Default)]
struct Registers {
    command: u8,
    feature: u16,
    count: u16,
    lba: u64,
    device: u8,
}

impl Registers {
    /// Whether its registers have 48 bits.
    fn is_extended(&self) -> bool {
        [SANITIZE_DEVICE, READ_NATIVE_MAX_ADDRESS_EXT, SET_MAX_ADDRESS_EXT, ACCESSIBLE_MAX_ADDRESS]
            .contains(&self.command)
    }
}

/// What the drive's registers hold afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    count: u16,
    lba: u64,
    device: u8,
}

fn pass(
    target: &impl ScsiTarget,
    registers: Registers,
    transfer: Transfer<'_>,
    timeout: Duration,
) -> Result<Option<Answer>, AtaError> {
    let (protocol, flags) = match &transfer {
        Transfer::None => (PROTOCOL_NON_DATA, CHECK_CONDITION),
        Transfer::In(_) => (PROTOCOL_PIO_IN, FROM_DEVICE | IN_BLOCKS | LENGTH_IN_COUNT),
        Transfer::Out(_) => (PROTOCOL_PIO_OUT, CHECK_CONDITION | IN_BLOCKS | LENGTH_IN_COUNT),
    };
    let is_extended = registers.is_extended();
    let [feature_high, feature_low] = registers.feature.to_be_bytes();
    let [count_high, count_low] = registers.count.to_be_bytes();
    let lba = registers.lba.to_le_bytes();
    let cdb = [
        ATA_PASS_THROUGH_16,
        protocol << 1 | u8::from(is_extended),
        flags,
        feature_high,
        feature_low,
        count_high,
        count_low,
        lba[3],
        lba[0],
        lba[4],
        lba[1],
        lba[5],
        lba[2],
        registers.device,
        registers.command,
        0,
    ];
    let asks_for_answer = flags & CHECK_CONDITION != 0;
    let completion = target.execute(&cdb, transfer, timeout)?;
    match sense_descriptor(&completion.sense, ATA_STATUS_RETURN) {
        Some(found) if found.len() >= 14 => answer(found).map(Some),
        _ if completion.status == 0 && !asks_for_answer => Ok(None),
        _ => Err(AtaError::Hidden),
    }
}

/// Registers from the descriptor: error 3, count 4–5, LBA 6–11 in pairs, device 12, status 13.
fn answer(descriptor: &[u8]) -> Result<Answer, AtaError> {
    let (error, status) = (descriptor[3], descriptor[13]);
    if status & (STATUS_ERROR | STATUS_FAULT) != 0 {
        return Err(AtaError::Drive { status, error, reason: descriptor[7] });
    }
    let low_to_high = [7, 9, 11, 6, 8, 10];
    let lba = low_to_high.iter().rev().fold(0, |lba, at| lba << 8 | u64::from(descriptor[*at]));
    let count = u16::from_be_bytes([descriptor[4], descriptor[5]]);
    Ok(Answer { count, lba, device: descriptor[12] })
}

/// What a drive says it can do about erasing, as the words of its identify data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Sanitize feature set.
    pub word_59: u16,
    /// Feature sets supported; bit 1 is security.
    pub word_82: u16,
    /// Time of a security erase.
    pub word_89: u16,
    /// Time of an enhanced security erase.
    pub word_90: u16,
    /// State of the security feature set.
    pub word_128: u16,
}

impl Capabilities {
    /// Reads the identify data.
    ///
    /// # Errors
    ///
    /// [`AtaError`]; also when the checksum of the data does not match.
    pub fn identify(target: &impl ScsiTarget) -> Result<Self, AtaError> {
        IdentifyData::read(target).map(|data| Self::of(&data))
    }

    /// Those in the identify data.
    pub fn of(data: &IdentifyData) -> Self {
        Self {
            word_59: data.word(59),
            word_82: data.word(82),
            word_89: data.word(89),
            word_90: data.word(90),
            word_128: data.word(128),
        }
    }

    /// Whether the drive has the Sanitize feature set.
    pub fn has_sanitize(&self) -> bool {
        self.word_59 & 1 << 12 != 0
    }

    /// Whether a sanitize action exists.
    pub fn has(&self, action: SanitizeAction) -> bool {
        let bit = match action {
            SanitizeAction::Crypto => 13,
            SanitizeAction::Overwrite => 14,
            SanitizeAction::Block => 15,
        };
        self.has_sanitize() && self.word_59 & 1 << bit != 0
    }

    /// The security feature set; nothing when the drive has none.
    pub fn security(&self) -> Option<Security> {
        let has = |bit: u16| self.word_128 & 1 << bit != 0;
        (has(0) && self.word_82 & 1 << 1 != 0).then(|| Security {
            is_enabled: has(1),
            is_locked: has(2),
            is_frozen: has(3),
            is_exhausted: has(4),
            has_enhanced: has(5),
            is_maximum: has(8),
            erase_time: erase_time(self.word_89),
            enhanced_erase_time: erase_time(self.word_90),
        })
    }
}

/// Two minutes per unit; nothing when the drive does not tell, or only that it is longer.
fn erase_time(word: u16) -> Option<Duration> {
    let (units, longest) = match word & 1 << 15 {
        0 => (word & 0xff, 0xff),
        _ => (word & 0x7fff, 0x7fff),
    };
    (units != 0 && units != longest).then(|| Duration::from_secs(u64::from(units) * 120))
}

/// State of the security feature set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Security {
    /// A user password is set.
    pub is_enabled: bool,
    /// The data cannot be reached before an unlock.
    pub is_locked: bool,
    /// Nothing of it can be changed before the next power cycle.
    pub is_frozen: bool,
    /// Too many wrong passwords were given since the last power cycle.
    pub is_exhausted: bool,
    /// The enhanced erase exists.
    pub has_enhanced: bool,
    /// The master password can only erase, not unlock.
    pub is_maximum: bool,
    /// How long an erase takes.
    pub erase_time: Option<Duration>,
    /// How long an enhanced erase takes.
    pub enhanced_erase_time: Option<Duration>,
}

/// Whose password is given. It is always the empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Password {
    /// The user's.
    User = 0,
    /// The master's, which manufacturers leave empty or set.
    Master = 1,
}

/// Sets the user's password to the empty one, which erasing needs.
///
/// # Errors
///
/// [`AtaError`].
pub fn set_user_password(target: &impl ScsiTarget) -> Result<(), AtaError> {
    security(target, SECURITY_SET_PASSWORD, Password::User as u16, SHORT_TIMEOUT)
}

/// Unlocks the drive with the empty password.
///
/// # Errors
///
/// [`AtaError`]; five wrong passwords end the attempts until a power cycle.
pub fn unlock(target: &impl ScsiTarget, password: Password) -> Result<(), AtaError> {
    security(target, SECURITY_UNLOCK, password as u16, SHORT_TIMEOUT)
}

/// Removes the password.
///
/// # Errors
///
/// [`AtaError`].
pub fn disable_password(target: &impl ScsiTarget, password: Password) -> Result<(), AtaError> {
    security(target, SECURITY_DISABLE_PASSWORD, password as u16, SHORT_TIMEOUT)
}

/// Erases the drive; returns when it is done.
///
/// # Errors
///
/// [`AtaError`]; the drive may be locked then.
pub fn security_erase(
    target: &impl ScsiTarget,
    password: Password,
    is_enhanced: bool,
    timeout: Duration,
) -> Result<(), AtaError> {
    let prepare = Registers { command: SECURITY_ERASE_PREPARE, ..Registers::default() };
    pass(target, prepare, Transfer::None, SHORT_TIMEOUT)?;
    let control = password as u16 | u16::from(is_enhanced) << 1;
    security(target, SECURITY_ERASE_UNIT, control, timeout)
}

/// Sends a block with a control word and the empty password.
fn security(target: &impl ScsiTarget, command: u8, control: u16, timeout: Duration) -> Result<(), AtaError> {
    let mut block = [0; BLOCK_BYTES];
    block[..2].copy_from_slice(&control.to_le_bytes());
    let registers = Registers { command, count: 1, ..Registers::default() };
    pass(target, registers, Transfer::Out(&block), timeout).map(drop)
}

/// How a sanitize operation erases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SanitizeAction {
    /// The keys of the data are destroyed.
    Crypto,
    /// Every block is erased.
    Block,
    /// Zeros are written everywhere.
    Overwrite,
}

/// Where sanitizing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SanitizeState {
    /// It is running; this part of 65536 is done.
    Running(u16),
    /// It is not allowed before the next power cycle.
    Frozen,
    /// The newest operation completed without an error.
    Succeeded,
    /// There was none, or it failed.
    Idle,
}

/// Starts a sanitize operation; it continues by itself, even across a loss of power.
///
/// # Errors
///
/// [`AtaError`].
pub fn start_sanitize(target: &impl ScsiTarget, action: SanitizeAction) -> Result<(), AtaError> {
    // Each action has a key word in its address, so that no wrong byte starts one. One pass.
    let (feature, lba, count) = match action {
        SanitizeAction::Crypto => (0x11, 0x4372_7970, 0),
        SanitizeAction::Block => (0x12, 0x426b_4572, 0),
        SanitizeAction::Overwrite => (0x14, 0x4f57_0000_0000, 1),
    };
    // With permission to leave a failed operation.
    let count = count | 1 << 4;
    let registers = Registers { command: SANITIZE_DEVICE, feature, count, lba, device: DEVICE_LBA };
    pass(target, registers, Transfer::None, SHORT_TIMEOUT).map(drop)
}

/// Asks where sanitizing stands.
///
/// # Errors
///
/// [`AtaError::Drive`] when the newest operation failed, or another [`AtaError`].
pub fn sanitize_state(target: &impl ScsiTarget) -> Result<SanitizeState, AtaError> {
    let registers = Registers { command: SANITIZE_DEVICE, device: DEVICE_LBA, ..Registers::default() };
    let answer = pass(target, registers, Transfer::None, SHORT_TIMEOUT)?.ok_or(AtaError::Hidden)?;
    let has = |bit: u16| answer.count & 1 << bit != 0;
    Ok(match () {
        () if has(14) => SanitizeState::Running(answer.lba as u16),
        () if has(13) => SanitizeState::Frozen,
        () if has(15) => SanitizeState::Succeeded,
        () => SanitizeState::Idle,
    })
}

/// Leaves the state in which a failed sanitize operation keeps the drive.
///
/// # Errors
///
/// [`AtaError`].
pub fn exit_failed_sanitize(target: &impl ScsiTarget) -> Result<(), AtaError> {
    // Bit 0 of the count of a status request clears the failure.
    let registers =
        Registers { command: SANITIZE_DEVICE, count: 1, device: DEVICE_LBA, ..Registers::default() };
    pass(target, registers, Transfer::None, SHORT_TIMEOUT).map(drop)
}

#[cfg(test)]
mod tests;
