//! The stage between digest and writer: a raw image passes through, a compressed one is unpacked.

use crate::CHUNK;
use crate::buffers::{Chunk, Pool};
use crate::compression::{self, Compression};
use crate::error::Error;
use std::cell::Cell;
use std::io::{self, BufRead, ErrorKind, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

/// Buffers for unpacked bytes.
const BUFFERS: usize = 6;

/// Passes chunks on, unpacked where the image is not declared as the exact bytes of a disk and the
/// content shows a compression. The flag is set before the first chunk is.
///
/// A stream that cannot be unpacked is read to its end all the same: only with the digest can be
/// told whether the image is at fault or its transfer (P03).
pub(crate) fn unpack(
    is_exact: bool,
    packed: Receiver<Chunk>,
    unpacked: SyncSender<Chunk>,
    url: &str,
    is_packed: &AtomicBool,
) -> Result<(), Error> {
    let consumed = Cell::new(0);
    let mut packed = Packed { chunks: packed, current: None, position: 0, consumed: &consumed };
    let compression = if is_exact { None } else { Compression::recognize(packed.peek()) };
    let Some(compression) = compression else {
        packed.pass_on(&unpacked);
        return Ok(());
    };
    is_packed.store(true, Ordering::Release);
    let memory = compression::memory();
    tracing::info!(url, compression = compression.name(), memory, "unpacking the image");
    decode(compression, memory, &mut packed, &unpacked).map_err(|error| {
        // Whoever waits for more must learn that there is none.
        drop(unpacked);
        while packed.next().is_some() {}
        Error::Unpack {
            url: url.to_owned(),
            compression: compression.name(),
            reason: error.to_string(),
            memory_mib: memory >> 20,
        }
    })
}

fn decode(
    compression: Compression,
    memory: u64,
    packed: &mut Packed<'_>,
    unpacked: &SyncSender<Chunk>,
) -> io::Result<()> {
    let consumed = packed.consumed;
    let mut decoder = compression.decoder(memory, packed)?;
    let pool = Pool::new(BUFFERS);
    loop {
        let mut chunk = pool.take();
        chunk.length = fill(&mut decoder, &mut chunk)?;
        chunk.received = consumed.get();
        let is_last = chunk.length < CHUNK;
        // A closed channel means that the writer failed; it has the error.
        if (chunk.length > 0 && unpacked.send(chunk).is_err()) || is_last {
            return Ok(());
        }
    }
}

/// Reads until the buffer is full or the stream ends.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(length) => filled += length,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The chunks of an image as one stream.
struct Packed<'a> {
    chunks: Receiver<Chunk>,
    current: Option<Chunk>,
    position: usize,
    /// Bytes handed to the decoder so far.
    consumed: &'a Cell<u64>,
}

impl Packed<'_> {
    /// The bytes that come next; none at the end.
    fn peek(&mut self) -> &[u8] {
        if self.current.as_ref().is_none_or(|chunk| chunk.length == self.position) {
            // The buffer goes back before another one is waited for.
            self.current = None;
            self.current = self.chunks.recv().ok();
            self.position = 0;
        }
        self.current.as_ref().map_or(&[], |chunk| &chunk.filled()[self.position..])
    }

    fn pass_on(mut self, unpacked: &SyncSender<Chunk>) {
        while let Some(mut chunk) = self.next() {
            self.consumed.update(|bytes| bytes + chunk.length as u64);
            chunk.received = self.consumed.get();
            if unpacked.send(chunk).is_err() {
                break;
            }
        }
    }
}

impl Iterator for Packed<'_> {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        self.current.take().or_else(|| self.chunks.recv().ok())
    }
}

impl Read for Packed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.peek().read(buffer)?;
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for Packed<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.peek())
    }

    fn consume(&mut self, length: usize) {
        self.position += length;
        self.consumed.update(|bytes| bytes + length as u64);
    }
}
