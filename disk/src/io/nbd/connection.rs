//! One connection: a request, its reply, and the next one.

use super::handshake::{self, Offer};
use super::line::{Line, nonsense};
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Time for a server to greet and to agree, which may have to log in before.
const HANDSHAKE: Duration = Duration::from_secs(60);

/// What each request and each reply begins with.
pub(super) const REQUEST: u32 = 0x2560_9513;
pub(super) const REPLY: u32 = 0x6744_6698;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Command {
    Read = 0,
    Write = 1,
    Disconnect = 2,
    Flush = 3,
    Trim = 4,
    WriteZeroes = 6,
}

/// A connection to a server that has agreed.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    /// Time for each request.
    patience: Duration,
    /// The number of the last request, which its reply has too.
    last: u64,
    is_broken: bool,
}

impl Connection {
    /// Agrees with the server on the other end.
    ///
    /// # Errors
    ///
    /// It does not, or is none.
    pub(crate) fn open(stream: UnixStream, patience: Duration) -> io::Result<(Self, Offer)> {
        let offer = handshake::agree(&mut Line::within(&stream, patience.min(HANDSHAKE)))?;
        Ok((Self { stream, patience, last: 0, is_broken: false }, offer))
    }

    /// Whether something came that was no answer: no other request will be.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Fills a buffer from `offset`.
    pub(crate) fn read(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.request(Command::Read, offset, buffer.len() as u32, &[], buffer)
    }

    /// Writes bytes at `offset`.
    pub(crate) fn write(&mut self, data: &[u8], offset: u64) -> io::Result<()> {
        self.request(Command::Write, offset, data.len() as u32, data, &mut [])
    }

    /// Makes a range zero.
    pub(crate) fn write_zeroes(&mut self, offset: u64, length: u32) -> io::Result<()> {
        self.request(Command::WriteZeroes, offset, length, &[], &mut [])
    }

    /// Says that nobody needs a range any more.
    pub(crate) fn trim(&mut self, offset: u64, length: u32) -> io::Result<()> {
        self.request(Command::Trim, offset, length, &[], &mut [])
    }

    /// Waits until everything that was answered is on stable storage.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.request(Command::Flush, 0, 0, &[], &mut [])
    }

    /// Takes leave. There is no answer to that.
    pub(crate) fn disconnect(mut self) -> io::Result<()> {
        let header = self.header(Command::Disconnect, 0, 0);
        Line::within(&self.stream, self.patience).send(&header)
    }

    fn request(
        &mut self,
        command: Command,
        offset: u64,
        length: u32,
        sent: &[u8],
        wanted: &mut [u8],
    ) -> io::Result<()> {
        if self.is_broken {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the connection broke earlier"));
        }
        match self.exchange(command, offset, length, sent, wanted) {
            Ok(0) => Ok(()),
            Ok(code) => Err(refusal(code)),
            Err(error) => {
                self.is_broken = true;
                Err(error)
            }
        }
    }

    /// The server's verdict, and in `wanted` what was asked for when that is a good one.
    fn exchange(
        &mut self,
        command: Command,
        offset: u64,
        length: u32,
        sent: &[u8],
        wanted: &mut [u8],
    ) -> io::Result<u32> {
        let header = self.header(command, offset, length);
        let mut line = Line::within(&self.stream, self.patience);
        line.send(&header)?;
        line.send(sent)?;
        if line.u32()? != REPLY {
            return Err(nonsense("something else than a reply"));
        }
        let (verdict, number) = (line.u32()?, line.u64()?);
        if number != self.last {
            return Err(nonsense("a reply to another request"));
        }
        if verdict == 0 {
            line.receive(wanted)?;
        }
        Ok(verdict)
    }

    fn header(&mut self, command: Command, offset: u64, length: u32) -> Vec<u8> {
        self.last += 1;
        let mut header = REQUEST.to_be_bytes().to_vec();
        header.extend(0_u16.to_be_bytes());
        header.extend((command as u16).to_be_bytes());
        header.extend(self.last.to_be_bytes());
        header.extend(offset.to_be_bytes());
        header.extend(length.to_be_bytes());
        header
    }
}

/// What a verdict means. The numbers are those of Linux, of which the protocol knows these.
fn refusal(code: u32) -> io::Error {
    match code {
        1 | 5 | 12 | 22 | 28 | 75 | 95 | 108 => io::Error::from_raw_os_error(code as i32),
        other => io::Error::other(format!("the server reports error {other}")),
    }
}
