//! The little of DER (X.690) that signatures need: writing elements, and walking over those of a certificate.

pub const INTEGER: u8 = 0x02;
pub const BIT_STRING: u8 = 0x03;
pub const OCTET_STRING: u8 = 0x04;
pub const NULL: u8 = 0x05;
pub const OBJECT_IDENTIFIER: u8 = 0x06;
pub const SEQUENCE: u8 = 0x30;
pub const SET: u8 = 0x31;

/// An element of a tag that holds `parts`, one after the other.
pub fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut bytes = vec![tag];
    if length < 0x80 {
        bytes.push(length as u8);
    } else {
        let number = length.to_be_bytes();
        let number = &number[number.iter().take_while(|byte| **byte == 0).count()..];
        bytes.push(0x80 | number.len() as u8);
        bytes.extend(number);
    }
    bytes.extend(parts.concat());
    bytes
}

/// An element that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element<'a> {
    /// Its tag.
    pub tag: u8,
    /// All of its bytes.
    pub whole: &'a [u8],
    /// What it holds.
    pub content: &'a [u8],
}

/// The first element of `bytes` and what follows it.
pub fn first(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (&[tag, short], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = if short < 0x80 {
        (usize::from(short), rest)
    } else {
        let count = usize::from(short & 0x7f);
        let number = rest.get(..count).filter(|_| (1..=4).contains(&count))?;
        (number.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), &rest[count..])
    };
    let content = rest.get(..length)?;
    let end = bytes.len() - rest.len() + length;
    Some((Element { tag, whole: &bytes[..end], content }, &bytes[end..]))
}

/// The elements of `bytes` up to the first that cannot be read.
pub fn elements(mut bytes: &[u8]) -> impl Iterator<Item = Element<'_>> {
    std::iter::from_fn(move || {
        let (element, rest) = first(bytes)?;
        bytes = rest;
        Some(element)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for length in [0, 1, 0x7f, 0x80, 0xff, 0x100, 70_000] {
            let content = vec![7; length];
            let bytes = [element(OCTET_STRING, &[&content]), element(NULL, &[])].concat();
            let (found, rest) = first(&bytes).unwrap();
            assert_eq!((found.tag, found.content, rest), (OCTET_STRING, &*content, &[5, 0][..]));
            assert_eq!(elements(&bytes).count(), 2);
        }
    }

    #[test]
    fn cut_and_odd_bytes_are_nothing() {
        for bytes in [&[][..], &[0x30], &[0x30, 5, 0], &[0x30, 0x80], &[0x30, 0x85, 0, 0, 0, 0, 1, 0]] {
            assert_eq!(first(bytes), None, "{bytes:?}");
        }
    }
}
