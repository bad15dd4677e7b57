//! Answers that are packed by gzip, as some BMCs send them unasked, and others nothing else (RFC 9110, section 8.4). What an
//! answer begins with decides, since some do not say that they are packed.

use flate2::bufread::MultiGzDecoder;
use std::io::{self, Read};

/// What clients say that they take (`Accept-Encoding`).
pub(crate) const ACCEPTED: &str = "gzip";

/// How something begins that is packed by gzip (RFC 1952).
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// An answer cannot be unpacked.
#[derive(Debug)]
pub(crate) enum Broken {
    /// It would have more bytes than are taken.
    TooLong,
    /// It is cut off, or no gzip.
    Unusable(io::Error),
}

/// An answer without its packing, of which so many bytes are taken.
///
/// # Errors
///
/// [`Broken`].
pub(crate) fn unpack(bytes: Vec<u8>, limit: usize) -> Result<Vec<u8>, Broken> {
    if !bytes.starts_with(&MAGIC) {
        return Ok(bytes);
    }
    let mut unpacked = Vec::new();
    let decoder = MultiGzDecoder::new(bytes.as_slice());
    decoder.take(limit as u64 + 1).read_to_end(&mut unpacked).map_err(Broken::Unusable)?;
    match unpacked.len() > limit {
        true => Err(Broken::TooLong),
        false => Ok(unpacked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn c11_the_bound_is_that_of_unpacked_bytes() {
        assert_eq!(unpack(packed(b"{}"), 2).unwrap(), b"{}");
        assert_eq!(unpack(b"{}".to_vec(), 1).unwrap(), b"{}", "what is not packed was measured before");
        assert!(matches!(unpack(packed(&vec![b' '; 1 << 20]), (1 << 20) - 1), Err(Broken::TooLong)));
        let whole = packed(b"{\"PowerState\": \"On\"}");
        assert!(matches!(unpack(whole[..whole.len() / 2].to_vec(), 1 << 20), Err(Broken::Unusable(_))));
    }
}
