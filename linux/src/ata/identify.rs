//! What an ATA drive says of itself (ACS-4, section 7.13), asked by a command or kept by the kernel.

use super::{AtaError, BLOCK_BYTES, Registers, SHORT_TIMEOUT, pass};
use crate::scsi::{ScsiTarget, Transfer};
use std::io;

const IDENTIFY_DEVICE: u8 = 0xec;

/// The SCSI page "ATA Information" (SAT-4, section 12.4.2): its number, and where the identify data lie in it.
const INFORMATION_PAGE: u8 = 0x89;
const DATA_IN_PAGE: usize = 60;

/// Words of the model, and of the serial number.
const MODEL: std::ops::Range<usize> = 27..47;
const SERIAL: std::ops::Range<usize> = 10..20;

/// Word 69: reads after a trim are deterministic, and are zeros.
const DETERMINISTIC: u16 = 1 << 14;
const ZEROS: u16 = 1 << 5;
/// Word 169: the drive knows Trim.
const TRIM: u16 = 1 << 0;

/// The block of identify data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentifyData([u8; BLOCK_BYTES]);

impl IdentifyData {
    /// Asks the drive.
    ///
    /// # Errors
    ///
    /// [`AtaError`]; also when the checksum of the data does not match.
    pub fn read(target: &impl ScsiTarget) -> Result<Self, AtaError> {
        let mut data = [0; BLOCK_BYTES];
        let registers = Registers { command: IDENTIFY_DEVICE, count: 1, ..Registers::default() };
        pass(target, registers, Transfer::In(&mut data), SHORT_TIMEOUT)?;
        let damaged = || {
            AtaError::Kernel(io::Error::new(
                io::ErrorKind::InvalidData,
                "identify data with a wrong checksum",
            ))
        };
        Self::checked(data).ok_or_else(damaged)
    }

    /// Takes the data from the page "ATA Information", as sysfs has it in `vpd_pg89`; nothing when the page is
    /// another one, cut or damaged.
    pub fn of_page(page: &[u8]) -> Option<Self> {
        let data = page.get(DATA_IN_PAGE..DATA_IN_PAGE + BLOCK_BYTES)?;
        (page[1] == INFORMATION_PAGE).then(|| Self::checked(data.try_into().ok()?)).flatten()
    }

    /// 0xa5 in byte 510 announces a checksum over the whole block.
    pub(super) fn checked(data: [u8; BLOCK_BYTES]) -> Option<Self> {
        let is_damaged =
            data[510] == 0xa5 && data.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) != 0;
        (!is_damaged).then_some(Self(data))
    }

    /// The name of the model, of up to 40 characters.
    pub fn model(&self) -> Option<String> {
        self.text(MODEL)
    }

    /// The serial number, of up to 20 characters.
    pub fn serial(&self) -> Option<String> {
        self.text(SERIAL)
    }

    /// Whether what was trimmed reads as zeros, each time.
    pub fn reads_zero_after_trim(&self) -> bool {
        let promise = DETERMINISTIC | ZEROS;
        self.word(169) & TRIM != 0 && self.word(69) & promise == promise
    }

    /// How many sectors the drive shows.
    pub fn sectors(&self) -> u64 {
        let words = if self.has_48_bits() { 100..104 } else { 60..62 };
        words.rev().fold(0, |sectors, number| sectors << 16 | u64::from(self.word(number)))
    }

    /// Bytes of a logical sector.
    pub fn sector_bytes(&self) -> u64 {
        let is_larger = self.is_valid(106) && self.word(106) & 1 << 12 != 0;
        let words = u64::from(self.word(118)) << 16 | u64::from(self.word(117));
        if is_larger && words >= 256 { words * 2 } else { 512 }
    }

    /// Whether addresses have 48 bits.
    pub(super) fn has_48_bits(&self) -> bool {
        self.is_valid(83) && self.word(83) & 1 << 10 != 0
    }

    /// Whether the drive can have a host protected area.
    pub(super) fn has_protected_area(&self) -> bool {
        self.word(82) & 1 << 10 != 0
    }

    /// Whether the drive can have an accessible maximum address.
    pub(super) fn has_accessible_maximum(&self) -> bool {
        self.is_valid(119) && self.word(119) & 1 << 8 != 0
    }

    /// Whether the drive can have a device configuration overlay.
    pub(super) fn has_overlay(&self) -> bool {
        self.is_valid(83) && self.word(83) & 1 << 11 != 0
    }

    /// The two highest bits of some words say whether the others mean anything.
    fn is_valid(&self, number: usize) -> bool {
        self.word(number) >> 14 == 0b01
    }

    pub(super) fn word(&self, number: usize) -> u16 {
        u16::from_le_bytes([self.0[2 * number], self.0[2 * number + 1]])
    }

    /// The first character of a word is its high byte.
    fn text(&self, words: std::ops::Range<usize>) -> Option<String> {
        let bytes: Vec<u8> = words.flat_map(|number| self.word(number).to_be_bytes()).collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }
}
