//! Sense data: why a command did not end well (SPC-5, 4.4).

use std::fmt;

const FIXED: [u8; 2] = [0x70, 0x71];
const DESCRIPTOR: [u8; 2] = [0x72, 0x73];
const SENSE_KEY_SPECIFIC: u8 = 0x02;
/// Bytes before the first descriptor.
const DESCRIPTOR_HEADER: usize = 8;

/// What kind of answer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenseKey {
    /// The command succeeded after some effort, or with information.
    Recovered,
    /// The target cannot be used at the moment.
    NotReady,
    /// The medium failed.
    Medium,
    /// The target failed.
    Hardware,
    /// The command is not known, or not in this form.
    IllegalRequest,
    /// Something happened to the target since the last command.
    UnitAttention,
    /// The medium must not be written.
    DataProtect,
    /// The command was broken off.
    Aborted,
    /// Any other.
    Other(u8),
}

/// Decoded sense data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sense {
    /// Kind.
    pub key: SenseKey,
    /// Additional sense code and its qualifier.
    pub code: (u8, u8),
    /// Part of 65536 that is done, where the answer reports it.
    pub progress: Option<u16>,
}

impl Sense {
    /// Reads either format; nothing when it is neither or too short.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let format = bytes.first()? & 0x7f;
        if FIXED.contains(&format) {
            let code = (bytes.get(12).copied().unwrap_or(0), bytes.get(13).copied().unwrap_or(0));
            return Some(Self {
                key: key(bytes.get(2)? & 0xf),
                code,
                progress: bytes.get(15..18).and_then(progress),
            });
        }
        if DESCRIPTOR.contains(&format) {
            let specific = descriptor(bytes, SENSE_KEY_SPECIFIC);
            return Some(Self {
                key: key(bytes.get(1)? & 0xf),
                code: (*bytes.get(2)?, *bytes.get(3)?),
                progress: specific.and_then(|specific| specific.get(4..7)).and_then(progress),
            });
        }
        None
    }

    /// Whether it says that a format or sanitize operation is running.
    pub(super) fn is_erasing(&self) -> bool {
        self.key == SenseKey::NotReady && [(0x04, 0x04), (0x04, 0x1b)].contains(&self.code)
    }
}

/// The descriptor of a type with its two bytes of header, from sense data in descriptor format.
pub(crate) fn descriptor(bytes: &[u8], kind: u8) -> Option<&[u8]> {
    let format = bytes.first()? & 0x7f;
    let mut rest = DESCRIPTOR.contains(&format).then(|| bytes.get(DESCRIPTOR_HEADER..)).flatten()?;
    loop {
        let length = usize::from(*rest.get(1)?) + 2;
        let one = rest.get(..length)?;
        if one[0] == kind {
            return Some(one);
        }
        rest = &rest[length..];
    }
}

/// Three bytes: a flag that they are valid, then the part of 65536.
fn progress(bytes: &[u8]) -> Option<u16> {
    (bytes[0] & 0x80 != 0).then(|| u16::from_be_bytes([bytes[1], bytes[2]]))
}

fn key(number: u8) -> SenseKey {
    match number {
        0x1 => SenseKey::Recovered,
        0x2 => SenseKey::NotReady,
        0x3 => SenseKey::Medium,
        0x4 => SenseKey::Hardware,
        0x5 => SenseKey::IllegalRequest,
        0x6 => SenseKey::UnitAttention,
        0x7 => SenseKey::DataProtect,
        0xb => SenseKey::Aborted,
        other => SenseKey::Other(other),
    }
}

impl fmt::Display for Sense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match (self.key, self.code) {
            (_, (0x04, 0x04)) => "format in progress",
            (_, (0x04, 0x1b)) => "sanitize in progress",
            (_, (0x20, 0x00)) => "invalid operation code",
            (_, (0x24, 0x00)) => "invalid field in the command",
            (_, (0x26, 0x00)) => "invalid field in the parameter list",
            (_, (0x27, _)) => "write protected",
            (_, (0x31, 0x01)) => "format failed",
            (_, (0x31, 0x03)) => "sanitize failed",
            (SenseKey::Recovered, _) => "recovered error",
            (SenseKey::NotReady, _) => "not ready",
            (SenseKey::Medium, _) => "medium error",
            (SenseKey::Hardware, _) => "hardware error",
            (SenseKey::IllegalRequest, _) => "illegal request",
            (SenseKey::UnitAttention, _) => "unit attention",
            (SenseKey::DataProtect, _) => "data protected",
            (SenseKey::Aborted, _) => "command aborted",
            (SenseKey::Other(_), _) => "sense",
        };
        write!(f, "{text} ({:02x}/{:02x})", self.code.0, self.code.1)
    }
}
