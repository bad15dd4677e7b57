//! Bodies that a server encodes although it was asked for the file itself. What proves an image are the bytes
//! behind the encoding, so gzip and deflate are undone as conductors' clients undo them (section 5.3).

use super::body::HttpBody;
use crate::cancel::CancelHandle;
use crate::error::Error;
use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use std::io::{self, BufRead, ErrorKind, Read};

/// Bytes that are taken from the server at once.
const PART: usize = 64 << 10;

/// How a body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// A gzip stream (RFC 1952).
    Gzip,
    /// A zlib stream, or one of deflate alone as some servers send it (RFC 9110, section 8.4.1.2).
    Deflate,
}

/// A body that is decoded while it is read. It cannot be gone on with, nor be read out of order.
pub(crate) struct EncodedBody<'a> {
    decoder: Decoder<'a>,
    /// The URL as errors show it.
    name: String,
    decoded: u64,
}

enum Decoder<'a> {
    Gzip(MultiGzDecoder<Encoded<'a>>),
    Zlib(ZlibDecoder<Encoded<'a>>),
    Deflate(DeflateDecoder<Encoded<'a>>),
}

/// What the server sends.
struct Encoded<'a> {
    body: HttpBody<'a>,
    cancels: Vec<CancelHandle>,
    part: Vec<u8>,
    position: usize,
    /// Why there is no more.
    failure: Option<Error>,
}

impl Encoding {
    /// The encoding that a reply names, nothing when it is sent as it is. The error is a name that is not known.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, String> {
        let Some(value) = headers.get(CONTENT_ENCODING) else { return Ok(None) };
        let name = String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_lowercase();
        match name.as_str() {
            "" | "identity" => Ok(None),
            "gzip" | "x-gzip" => Ok(Some(Self::Gzip)),
            "deflate" => Ok(Some(Self::Deflate)),
            _ => Err(name),
        }
    }
}

impl<'a> EncodedBody<'a> {
    /// Decodes a body. Waits for its first bytes, which tell what deflate means here.
    pub(super) fn new(
        encoding: Encoding,
        body: HttpBody<'a>,
        name: String,
        cancels: &[&CancelHandle],
    ) -> Self {
        tracing::warn!(
            url = name,
            ?encoding,
            "the server encodes the file unasked: the download cannot be resumed"
        );
        let cancels = cancels.iter().map(|cancel| (*cancel).clone()).collect();
        let mut encoded = Encoded { body, cancels, part: Vec::new(), position: 0, failure: None };
        let decoder = match encoding {
            Encoding::Gzip => Decoder::Gzip(MultiGzDecoder::new(encoded)),
            Encoding::Deflate => match encoded.fill_buf() {
                Ok(start) if is_zlib(start) => Decoder::Zlib(ZlibDecoder::new(encoded)),
                _ => Decoder::Deflate(DeflateDecoder::new(encoded)),
            },
        };
        Self { decoder, name, decoded: 0 }
    }

    /// Fills the buffer as far as the content goes, and returns how far that was.
    pub(super) fn fill(&mut self, buffer: &mut [u8], cancels: &[&CancelHandle]) -> Result<usize, Error> {
        self.encoded().cancels = cancels.iter().map(|cancel| (*cancel).clone()).collect();
        let mut filled = 0;
        while filled < buffer.len() {
            match self.decoder.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(&error)),
            }
        }
        // A decoder that had its last byte does not ask for the end of the body, where a failure is told.
        if filled < buffer.len()
            && let Err(error) = self.encoded().fill_buf()
        {
            return Err(self.failed(&error));
        }
        self.decoded += filled as u64;
        Ok(filled)
    }

    fn failed(&mut self, error: &io::Error) -> Error {
        let (url, received) = (self.name.clone(), self.decoded);
        let reason = || format!("its Content-Encoding cannot be undone: {error}");
        let broken = || Error::Interrupted { url, received, expected: None, reason: reason() };
        self.encoded().failure.take().unwrap_or_else(broken)
    }

    fn encoded(&mut self) -> &mut Encoded<'a> {
        match &mut self.decoder {
            Decoder::Gzip(decoder) => decoder.get_mut(),
            Decoder::Zlib(decoder) => decoder.get_mut(),
            Decoder::Deflate(decoder) => decoder.get_mut(),
        }
    }
}

impl Read for Decoder<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Zlib(decoder) => decoder.read(buffer),
            Self::Deflate(decoder) => decoder.read(buffer),
        }
    }
}

impl Read for Encoded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Encoded<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.position == self.part.len() {
            self.position = 0;
            self.part.resize(PART, 0);
            let cancels: Vec<_> = self.cancels.iter().collect();
            match self.body.fill(&mut self.part, &cancels) {
                Ok(count) => self.part.truncate(count),
                Err(error) => {
                    self.part.clear();
                    let text = error.to_string();
                    self.failure = Some(error);
                    return Err(io::Error::other(text));
                }
            }
        }
        Ok(&self.part[self.position..])
    }

    fn consume(&mut self, count: usize) {
        self.position += count;
    }
}

/// Whether bytes begin a zlib stream (RFC 1950, section 2.2).
fn is_zlib(start: &[u8]) -> bool {
    matches!(*start, [method, flags, ..]
        if method & 0x0f == 8 && u16::from_be_bytes([method, flags]).is_multiple_of(31))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    #[test]
    fn x27_encodings_are_told_by_name() {
        for (value, expected) in [
            (None, Ok(None)),
            (Some("identity"), Ok(None)),
            (Some("gzip"), Ok(Some(Encoding::Gzip))),
            (Some("X-Gzip"), Ok(Some(Encoding::Gzip))),
            (Some("deflate"), Ok(Some(Encoding::Deflate))),
            (Some("br"), Err("br")),
            (Some("zstd"), Err("zstd")),
            (Some("gzip, gzip"), Err("gzip, gzip")),
        ] {
            let headers = value.map(|value| (CONTENT_ENCODING, HeaderValue::from_static(value)));
            let found = Encoding::of(&HeaderMap::from_iter(headers));
            assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|name| *name));
        }
    }
}
