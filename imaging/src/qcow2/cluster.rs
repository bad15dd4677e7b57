//! Compressed clusters: collecting their bytes, unpacking them, and joining what belongs together.

use super::Fault;
use super::header::Method;
use super::map::Piece;
use crate::CHUNK;
use crate::buffers::{Chunk, Pool};
use crate::order::{Order, Part};
use std::sync::mpsc::SyncSender;
use zstd::stream::raw::{DParameter, Decoder, Operation};

/// Buffers for unpacked clusters.
const BUFFERS: usize = 4;
/// Window of a Zstandard frame at most, as a power of two: no cluster is larger than 2 MiB.
const WINDOW_BITS: u32 = 22;

/// Unpacks clusters one after the other.
pub(super) struct Unpacker {
    decoder: Either,
    cluster: Vec<u8>,
    pub(super) joined: Joined,
    /// A compressed cluster of which the end has not come yet, and its bytes so far.
    carried: Option<(Piece, Vec<u8>)>,
    virtual_size: u64,
}

enum Either {
    Deflate(Box<flate2::Decompress>),
    Zstd(Box<Decoder<'static>>),
}

impl Unpacker {
    pub(super) fn new(
        method: Method,
        cluster_size: usize,
        virtual_size: u64,
        joined: Joined,
    ) -> Result<Self, Fault> {
        let decoder = match method {
            Method::Deflate => Either::Deflate(Box::new(flate2::Decompress::new(false))),
            Method::Zstd => {
                let mut decoder = Decoder::new().map_err(|error| error.to_string())?;
                decoder
                    .set_parameter(DParameter::WindowLogMax(WINDOW_BITS))
                    .map_err(|error| error.to_string())?;
                Either::Zstd(Box::new(decoder))
            }
        };
        Ok(Self { decoder, cluster: vec![0; cluster_size], joined, carried: None, virtual_size })
    }

    /// Takes the bytes of a cluster that begins in `bytes`; those that are missing come later.
    pub(super) fn begin(&mut self, piece: Piece, bytes: &[u8]) -> Result<(), Fault> {
        let length = (piece.end - piece.host) as usize;
        match bytes.get(..length) {
            Some(packed) => self.unpack(&piece, packed),
            None => {
                let mut carried = Vec::with_capacity(length);
                carried.extend_from_slice(bytes);
                self.carried = Some((piece, carried));
                Ok(())
            }
        }
    }

    /// Takes what is missing from the bytes that follow, and tells how many those were.
    pub(super) fn go_on(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let Some((piece, mut carried)) = self.carried.take() else { return Ok(0) };
        let missing = (piece.end - piece.host) as usize - carried.len();
        let taken = missing.min(bytes.len());
        carried.extend_from_slice(&bytes[..taken]);
        if taken < missing {
            self.carried = Some((piece, carried));
        } else {
            self.unpack(&piece, &carried)?;
        }
        Ok(taken)
    }

    /// The file has ended: its last sector may be short.
    pub(super) fn finish(&mut self) -> Result<(), Fault> {
        if let Some((piece, carried)) = self.carried.take() {
            self.unpack(&piece, &carried)?;
        }
        self.joined.flush()
    }

    fn unpack(&mut self, piece: &Piece, packed: &[u8]) -> Result<(), Fault> {
        let unpacked = match &mut self.decoder {
            Either::Deflate(decoder) => inflate(decoder, packed, &mut self.cluster),
            Either::Zstd(decoder) => decompress(decoder, packed, &mut self.cluster),
        };
        let unpacked = unpacked.map_err(|error| broken(piece.host, &error))?;
        if unpacked < self.cluster.len() {
            return Err(broken(piece.host, &"it ends too early").into());
        }
        let length = (self.virtual_size - piece.guest).min(unpacked as u64) as usize;
        self.joined.append(piece.guest, &self.cluster[..length])
    }
}

fn broken(host: u64, reason: &dyn std::fmt::Display) -> String {
    format!("the compressed cluster at {host} cannot be unpacked: {reason}")
}

fn inflate(decoder: &mut flate2::Decompress, packed: &[u8], cluster: &mut [u8]) -> std::io::Result<usize> {
    decoder.reset(false);
    decoder.decompress(packed, cluster, flate2::FlushDecompress::Finish)?;
    Ok(decoder.total_out() as usize)
}

fn decompress(decoder: &mut Decoder<'_>, packed: &[u8], cluster: &mut [u8]) -> std::io::Result<usize> {
    decoder.reinit()?;
    let (mut read, mut written) = (0, 0);
    while written < cluster.len() {
        let status = decoder.run_on_buffers(&packed[read..], &mut cluster[written..])?;
        read += status.bytes_read;
        written += status.bytes_written;
        // What follows the frame in its last sector is none of it.
        if status.remaining == 0 || (status.bytes_read == 0 && status.bytes_written == 0) {
            break;
        }
    }
    Ok(written)
}

/// Bytes for neighbouring places, joined to large writes.
pub(super) struct Joined {
    orders: SyncSender<Order>,
    pool: Pool,
    chunk: Option<Chunk>,
    /// Where the first byte of the chunk belongs.
    guest: u64,
    /// Bytes of the image file so far.
    pub(super) received: u64,
}

impl Joined {
    pub(super) fn new(orders: SyncSender<Order>) -> Self {
        Self { orders, pool: Pool::new(BUFFERS), chunk: None, guest: 0, received: 0 }
    }

    /// Adds bytes that belong at `guest`.
    pub(super) fn append(&mut self, mut guest: u64, mut bytes: &[u8]) -> Result<(), Fault> {
        while !bytes.is_empty() {
            let is_next = self
                .chunk
                .as_ref()
                .is_some_and(|chunk| self.guest + chunk.length as u64 == guest && chunk.length < CHUNK);
            if !is_next {
                self.flush()?;
                self.guest = guest;
            }
            let chunk = self.chunk.get_or_insert_with(|| self.pool.take());
            let count = bytes.len().min(CHUNK - chunk.length);
            let start = chunk.length;
            chunk[start..start + count].copy_from_slice(&bytes[..count]);
            chunk.length += count;
            guest += count as u64;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Sends on what there is.
    pub(super) fn flush(&mut self) -> Result<(), Fault> {
        let Some(mut chunk) = self.chunk.take() else { return Ok(()) };
        chunk.received = self.received;
        let parts = vec![Part { start: 0, length: chunk.length, offset: self.guest }];
        self.orders.send(Order::Data { chunk, parts }).map_err(|_| Fault::Gone)
    }
}
