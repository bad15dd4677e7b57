//! A part of a disk that is only read.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// A part of a file.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    source: BufReader<&'a File>,
    start: u64,
    size: u64,
    position: u64,
}

impl<'a> Part<'a> {
    /// `size` bytes from `start` of `file`.
    pub fn of(file: &'a File, start: u64, size: u64) -> Self {
        Self { source: BufReader::new(file), start, size, position: 0 }
    }
}

impl Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = (buffer.len() as u64).min(self.size.saturating_sub(self.position));
        self.source.seek(SeekFrom::Start(self.start + self.position))?;
        let count = self.source.read(&mut buffer[..length as usize])?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for Part<'_> {
    fn seek(&mut self, target: SeekFrom) -> io::Result<u64> {
        let position = match target {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
            SeekFrom::End(offset) => self.size.checked_add_signed(offset),
        };
        self.position = position.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.position)
    }
}
