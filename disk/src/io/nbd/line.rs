//! A connection as numbers and bytes, each within a deadline.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A connection until a deadline, however slowly the bytes come.
pub(super) struct Line<'a> {
    stream: &'a UnixStream,
    patience: Duration,
    deadline: Instant,
}

impl<'a> Line<'a> {
    /// The connection, which has so much time for all that is done on this line.
    pub(super) fn within(stream: &'a UnixStream, patience: Duration) -> Self {
        Self { stream, patience, deadline: Instant::now() + patience }
    }

    /// Sends bytes.
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.set_write_timeout(Some(self.left()?))?;
            match self.stream.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) => self.bear(error)?,
            }
        }
        Ok(())
    }

    /// Fills a buffer.
    pub(super) fn receive(&mut self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            self.stream.set_read_timeout(Some(self.left()?))?;
            match self.stream.read(buffer) {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended")),
                Ok(count) => buffer = &mut buffer[count..],
                Err(error) => self.bear(error)?,
            }
        }
        Ok(())
    }

    pub(super) fn number<const BYTES: usize>(&mut self) -> io::Result<[u8; BYTES]> {
        let mut bytes = [0; BYTES];
        self.receive(&mut bytes)?;
        Ok(bytes)
    }

    /// Two bytes, the first one first.
    pub(super) fn u16(&mut self) -> io::Result<u16> {
        self.number().map(u16::from_be_bytes)
    }

    /// Four bytes, the first one first.
    pub(super) fn u32(&mut self) -> io::Result<u32> {
        self.number().map(u32::from_be_bytes)
    }

    /// Eight bytes, the first one first.
    pub(super) fn u64(&mut self) -> io::Result<u64> {
        self.number().map(u64::from_be_bytes)
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let reason = format!("no answer within {} s", self.patience.as_secs_f32());
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        Ok(left)
    }

    /// What only says that the time for one call is over is for the deadline to judge.
    fn bear(&self, error: io::Error) -> io::Result<()> {
        match error.kind() {
            io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Ok(()),
            _ => Err(error),
        }
    }
}

/// Something came that is not what the protocol has there.
pub(super) fn nonsense(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}
