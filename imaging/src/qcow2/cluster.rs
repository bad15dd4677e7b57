//! Compressed clusters: collecting their bytes and unpacking them.

use super::Fault;
use super::header::Method;
use super::joined::Joined;
use super::map::Piece;
use zstd::stream::raw::{DParameter, Decoder, Operation};

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
