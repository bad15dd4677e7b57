//! Bytes that lie over others: what is made of a medium, where the rest is in files elsewhere.
//!
//! A medium of its own for each boot of each machine costs no more than what differs from others, and any part of it can
//! be read in any order.

use bytes::Bytes;
use std::collections::BTreeMap;

/// What is known of a medium; all else is zero, or elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    length: u64,
    /// What stands where, by its place in bytes. No two overlap.
    pieces: BTreeMap<u64, Bytes>,
}

impl Overlay {
    /// Over a medium of so many bytes, of which nothing is known yet.
    pub fn new(length: u64) -> Self {
        Self { length, pieces: BTreeMap::new() }
    }

    /// Puts bytes at a place, where none of the others are.
    pub(crate) fn put(&mut self, place: u64, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        if !bytes.is_empty() {
            self.length = self.length.max(place + bytes.len() as u64);
            self.pieces.insert(place, bytes);
        }
    }

    /// Makes the medium so long that it ends at a multiple of so many bytes.
    pub(crate) fn round_up(&mut self, multiple: u64) {
        self.length = self.length.next_multiple_of(multiple);
    }

    /// Whether nothing lies over anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The length of the whole, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Lays what is known over bytes that were read at a place.
    pub fn lay_over(&self, place: u64, bytes: &mut [u8]) {
        let end = place + bytes.len() as u64;
        for (start, piece) in self.pieces.range(..end) {
            let from = place.max(*start);
            let to = end.min(start + piece.len() as u64);
            if from < to {
                let target = &mut bytes[(from - place) as usize..(to - place) as usize];
                target.copy_from_slice(&piece[(from - start) as usize..(to - start) as usize]);
            }
        }
    }

    /// The whole, where nothing of it is elsewhere.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut whole = vec![0; self.length as usize];
        self.lay_over(0, &mut whole);
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_is_what_it_is_in_the_whole() {
        let mut overlay = Overlay::new(4);
        overlay.put(6, vec![6, 7, 8]);
        overlay.put(1, vec![1, 2]);
        overlay.put(3, Vec::new());
        overlay.round_up(4);
        let whole = [0, 1, 2, 0, 0, 0, 6, 7, 8, 0, 0, 0];
        assert_eq!(overlay.to_vec(), whole);
        for start in 0..whole.len() {
            for end in start..=whole.len() {
                let mut part = vec![0; end - start];
                overlay.lay_over(start as u64, &mut part);
                assert_eq!(part, whole[start..end], "{start}..{end}");
            }
        }
        let mut part = vec![9; 4];
        overlay.lay_over(3, &mut part);
        assert_eq!(part, [9, 9, 9, 6], "what is not known stays");
    }
}
