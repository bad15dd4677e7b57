//! A server of network block devices for tests, which does as it is told, be it against the protocol.

use super::connection::{Command, REPLY, REQUEST};
use super::handshake::{
    ACK, FIXED_NEWSTYLE, GO, GREETING, INFO, INFO_BLOCK_SIZE, INFO_EXPORT, OPTION, OPTION_REPLY,
};
use crate::io::{MemoryDisk, Sectors};
use farrier_linux::aligned::AlignedBuffer;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

/// All that a well-behaved server of a disk can do: flags, flush, trim, zeroes, several connections.
pub(crate) const FLAGS: u16 = 1 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 8;

/// What a server does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    Nothing,
    Greeting,
    OldHandshake,
    OtherOption,
    LongReply,
    EndlessReplies,
    NoExport,
    OddBlocks,
    Refuses,
    ReplyMagic,
    ReplyNumber,
    ShortRead,
    Silence,
    /// It reports this error to each write.
    Error(u32),
}

/// How a server serves a disk.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) disk: Arc<MemoryDisk>,
    pub(crate) flags: u16,
    pub(crate) wrong: Wrong,
}

impl Server {
    /// One that does everything right.
    pub(crate) fn of(disk: &Arc<MemoryDisk>) -> Self {
        Self { disk: Arc::clone(disk), flags: FLAGS, wrong: Wrong::Nothing }
    }

    /// A connection to it.
    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        let server = self.clone();
        // It ends with its connection.
        thread::spawn(move || server.serve(theirs));
        Ok(ours)
    }

    fn serve(&self, mut stream: UnixStream) -> io::Result<()> {
        self.greet(&mut stream)?;
        while let Some((command, number, offset, length)) = request(&mut stream)? {
            if command == Command::Disconnect as u16 {
                break;
            }
            let mut data = AlignedBuffer::zeroed((length as usize).clamp(1, 32 << 20));
            if command == Command::Write as u16 {
                stream.read_exact(&mut data[..length as usize])?;
            }
            if self.wrong == Wrong::Silence {
                // Until the other one gives up.
                stream.read_to_end(&mut Vec::new())?;
                break;
            }
            self.obey(command, offset, length, &mut data);
            let verdict = match self.wrong {
                Wrong::Error(code) if command == Command::Write as u16 => code,
                _ => 0,
            };
            let magic = if self.wrong == Wrong::ReplyMagic { REPLY + 1 } else { REPLY };
            let number = if self.wrong == Wrong::ReplyNumber { number + 1 } else { number };
            let mut reply = magic.to_be_bytes().to_vec();
            reply.extend(verdict.to_be_bytes());
            reply.extend(number.to_be_bytes());
            if command == Command::Read as u16 {
                let count = if self.wrong == Wrong::ShortRead { length - 1 } else { length };
                reply.extend(&data[..count as usize]);
            }
            stream.write_all(&reply)?;
            if self.wrong == Wrong::ShortRead {
                break;
            }
        }
        Ok(())
    }

    fn obey(&self, command: u16, offset: u64, length: u32, data: &mut [u8]) {
        let length = length as usize;
        match command {
            0 => self.disk.read_exact_at(&mut data[..length], offset).unwrap(),
            1 if !matches!(self.wrong, Wrong::Error(_)) => {
                self.disk.write_all_at(&data[..length], offset).unwrap()
            }
            6 => self.disk.zero_out(offset, length as u64).unwrap(),
            _ => {}
        }
    }

    fn greet(&self, stream: &mut UnixStream) -> io::Result<()> {
        let greeting = if self.wrong == Wrong::Greeting { GREETING + 1 } else { GREETING };
        stream.write_all(&greeting.to_be_bytes())?;
        stream.write_all(&OPTION.to_be_bytes())?;
        let flags = if self.wrong == Wrong::OldHandshake { 0 } else { FIXED_NEWSTYLE };
        stream.write_all(&flags.to_be_bytes())?;
        // Flags, and the option with its length and data.
        stream.read_exact(&mut [0; 4 + 8 + 4 + 4 + 8])?;
        let blocks = if self.wrong == Wrong::OddBlocks { 513 } else { self.disk.sector_size() };
        let mut export = INFO_EXPORT.to_be_bytes().to_vec();
        export.extend(self.disk.size().to_be_bytes());
        export.extend(self.flags.to_be_bytes());
        let mut sizes = INFO_BLOCK_SIZE.to_be_bytes().to_vec();
        [blocks, 4096, 32 << 20].iter().for_each(|size: &u32| sizes.extend(size.to_be_bytes()));
        let option = if self.wrong == Wrong::OtherOption { GO + 1 } else { GO };
        let mut reply = |kind: u32, data: &[u8]| {
            let mut reply = OPTION_REPLY.to_be_bytes().to_vec();
            let length = if self.wrong == Wrong::LongReply { u32::MAX } else { data.len() as u32 };
            [option, kind, length].iter().for_each(|number| reply.extend(number.to_be_bytes()));
            reply.extend(data);
            stream.write_all(&reply)
        };
        match self.wrong {
            Wrong::EndlessReplies => loop {
                reply(INFO, &[0, 99])?;
            },
            Wrong::Refuses => return reply((1 << 31) + 6, b"no\nexport"),
            Wrong::NoExport => {}
            _ => reply(INFO, &export)?,
        }
        reply(INFO, &[0, 1, b'x'])?;
        reply(INFO, &sizes)?;
        reply(ACK, &[])
    }
}

/// Command, number, offset and length of the next request; nothing when the connection has ended.
fn request(stream: &mut UnixStream) -> io::Result<Option<(u16, u64, u64, u32)>> {
    let mut header = [0; 28];
    match stream.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    assert_eq!(header[..4], REQUEST.to_be_bytes());
    let number = |range: std::ops::Range<usize>| {
        header[range].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    Ok(Some((number(6..8) as u16, number(8..16), number(16..24), number(24..28) as u32)))
}
