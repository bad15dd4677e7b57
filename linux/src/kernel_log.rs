//! The kernel's message buffer.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

/// Longest record of `/dev/kmsg`.
const MAX_RECORD: usize = 8192;
/// Most records to read: more than any kernel keeps, so that a chatty one cannot hold us.
const MAX_RECORDS: usize = 200_000;

/// All messages the kernel still has, one line each, as bytes (F46).
///
/// # Errors
///
/// The error of opening or reading `/dev/kmsg`; usually a lack of rights.
pub fn read() -> io::Result<Vec<u8>> {
    let mut device = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg")?;
    let mut text = Vec::new();
    let mut record = vec![0; MAX_RECORD];
    for _ in 0..MAX_RECORDS {
        match device.read(&mut record) {
            Ok(0) => break,
            Ok(length) => line(&record[..length], &mut text),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            // Records were overwritten while we read; the next read goes on with what is left.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(text)
}

/// Turns `level,sequence,microseconds,flags;text` into the usual `[seconds] text`. Continuation
/// lines, which carry device properties, are left out.
fn line(record: &[u8], text: &mut Vec<u8>) {
    let record = record.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let Some(position) = record.iter().position(|byte| *byte == b';') else { return };
    let (header, message) = (&record[..position], &record[position + 1..]);
    let microseconds: u64 = header
        .split(|byte| *byte == b',')
        .nth(2)
        .and_then(|field| std::str::from_utf8(field).ok()?.parse().ok())
        .unwrap_or_default();
    let (seconds, fraction) = (microseconds / 1_000_000, microseconds % 1_000_000);
    text.extend_from_slice(format!("[{seconds:5}.{fraction:06}] ").as_bytes());
    text.extend_from_slice(message);
    text.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_lines() {
        for (record, expected) in [
            (&b"6,1,1234567,-;hello; world\n SUBSYSTEM=pci\n"[..], &b"[    1.234567] hello; world\n"[..]),
            (b"6,1,x;\xff", b"[    0.000000] \xff\n"),
            (b"garbage", b""),
            (b"", b""),
        ] {
            let mut text = Vec::new();
            line(record, &mut text);
            assert_eq!(text, expected);
        }
    }
}
