//! A record in the BMC's system event log (IPMI 2.0, sections 31 and 32).

use farrier_linux::ipmi::IpmiDevice;
use std::io;

/// Network function of the event log, and its commands.
const STORAGE: u8 = 0x0a;
const GET_ENTRY: u8 = 0x43;
const ADD_ENTRY: u8 = 0x44;
/// Completion code of what was done.
const DONE: u8 = 0x00;
/// Completion code of a log that is full.
const OUT_OF_SPACE: u8 = 0xc4;
/// Type of a record whose content is up to its maker alone, without a time stamp.
const OEM_RECORD: u8 = 0xe0;
/// What such a record holds.
const CONTENT: usize = 13;
const RECORD: usize = 16;
/// What the content begins with; the name of the check that failed follows.
const MARK: &str = "farrier";

/// Sends a request to a BMC: network function, command, data; the answer begins with its completion
/// code.
pub type Ask<'a> = dyn FnMut(u8, u8, &[u8]) -> io::Result<Vec<u8>> + 'a;

/// No record was added.
#[derive(Debug, thiserror::Error)]
pub enum SelError {
    /// There is no BMC to be talked to.
    #[error("this machine shows no BMC over IPMI")]
    NoBmc,
    /// The BMC was not asked.
    #[error("the request to the BMC failed: {0}")]
    Device(#[from] io::Error),
    /// There is no room.
    #[error("the BMC's event log is full: save and clear it")]
    Full,
    /// The BMC does not want it.
    #[error("the BMC refuses the record with code {0:#04x}")]
    Refused(u8),
    /// The record is not there.
    #[error("the BMC does not return the record {0:#06x} that it accepted")]
    Lost(u16),
}

/// Adds a record with the name of a check and reads it back; returns its number.
///
/// # Errors
///
/// [`SelError`].
pub fn add(check: &str) -> Result<u16, SelError> {
    let mut device = IpmiDevice::open_first()?.ok_or(SelError::NoBmc)?;
    add_by(&mut |function, command, data| device.call(function, command, data), check)
}

fn add_by(ask: &mut Ask<'_>, check: &str) -> Result<u16, SelError> {
    let record = record(check);
    let answer = ask(STORAGE, ADD_ENTRY, &record)?;
    let number = match answer[..] {
        [DONE, low, high, ..] => u16::from_le_bytes([low, high]),
        [OUT_OF_SPACE, ..] => return Err(SelError::Full),
        [code, ..] => return Err(SelError::Refused(code)),
        [] => return Err(SelError::Device(io::ErrorKind::InvalidData.into())),
    };
    let [low, high] = number.to_le_bytes();
    // No reservation, the whole record.
    let answer = ask(STORAGE, GET_ENTRY, &[0, 0, low, high, 0, 0xff])?;
    // Completion code and the number of the next record stand before it; its own number is the BMC's.
    let is_there = answer.first() == Some(&DONE) && answer.get(5..) == Some(&record[2..]);
    if is_there { Ok(number) } else { Err(SelError::Lost(number)) }
}

fn record(check: &str) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[2] = OEM_RECORD;
    let content = format!("{MARK}{check}");
    let content = &content.as_bytes()[..content.len().min(CONTENT)];
    record[3..3 + content.len()].copy_from_slice(content);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_the_check() {
        assert_eq!(&record("lookup"), b"\0\0\xe0farrierlookup");
        assert_eq!(&record("address"), b"\0\0\xe0farrieraddres");
        assert_eq!(&record("tcp"), b"\0\0\xe0farriertcp\0\0\0");
    }

    /// A BMC that adds a record with this code and shows this byte as the last one of it.
    fn bmc(code: u8, last: u8) -> impl FnMut(u8, u8, &[u8]) -> io::Result<Vec<u8>> {
        let mut kept = Vec::new();
        move |function, command, data| {
            assert_eq!(function, STORAGE);
            if command == ADD_ENTRY {
                kept = data.to_vec();
                return Ok(if code == DONE { vec![DONE, 0x34, 0x12] } else { vec![code] });
            }
            assert_eq!((command, data), (GET_ENTRY, &[0, 0, 0x34, 0x12, 0, 0xff][..]));
            kept[..2].copy_from_slice(&[0x34, 0x12]);
            kept[RECORD - 1] ^= last;
            Ok([&[DONE, 0xff, 0xff][..], &kept].concat())
        }
    }

    #[test]
    fn only_a_record_that_the_bmc_shows_counts() {
        assert_eq!(add_by(&mut bmc(DONE, 0), "tcp").unwrap(), 0x1234);
        for (code, last, expected) in [
            (DONE, 1, "does not return the record 0x1234"),
            (OUT_OF_SPACE, 0, "event log is full"),
            (0xc1, 0, "with code 0xc1"),
        ] {
            let error = add_by(&mut bmc(code, last), "tcp").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(add_by(&mut |_, _, _| Ok(Vec::new()), "tcp").is_err());
    }
}
