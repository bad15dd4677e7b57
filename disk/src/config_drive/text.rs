//! Config drives as text: base64 that is decoded while it is read, so that no copy of it is made.

use base64::DecodeError;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use base64::read::DecoderReader;
use std::io::{self, Read};

/// What a text encodes. Foreign characters in it, such as line ends, are dropped.
pub fn decoded(text: &[u8]) -> impl Read {
    DecoderReader::new(Letters(text), &STANDARD_NO_PAD)
}

/// Whether reading failed because the text is no base64.
pub fn is_at_fault(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|cause| cause.is::<DecodeError>())
}

/// The letters of base64 in a text.
struct Letters<'a>(&'a [u8]);

impl Read for Letters<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        let mut count = 0;
        while let (Some(place), Some((byte, rest))) = (buffer.get_mut(count), self.0.split_first()) {
            if is_letter(*byte) {
                *place = *byte;
                count += 1;
            }
            self.0 = rest;
        }
        Ok(count)
    }
}
