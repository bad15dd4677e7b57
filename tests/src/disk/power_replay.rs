//! Power cuts at any point of what a disk was asked for once.
//!
//! From the point of a cut on nothing reaches a disk, so what it was asked for before tells all that can be on
//! it: what was flushed is, and of what came later each sector is or is not. One recording stands for as many
//! cuts as one likes.

use super::volatile::{Change, Event};
use anyhow::{Result, ensure};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// A medium on which cuts are tried, one after the other.
#[derive(Debug)]
pub struct Replay<'a> {
    medium: File,
    events: &'a [Event],
    sector_size: usize,
    /// Events that are on the medium whatever the cut.
    settled: usize,
    /// What the last cut overwrote, in order.
    overwritten: Vec<(u64, Vec<u8>)>,
}

impl<'a> Replay<'a> {
    /// Cuts on `medium`, which holds what it did when the recording began; a disk changes `sector_size` bytes as
    /// a whole or not at all.
    pub fn new(medium: File, events: &'a [Event], sector_size: usize) -> Self {
        Self { medium, events, sector_size, settled: 0, overwritten: Vec::new() }
    }

    /// Leaves on the medium what a cut after so many requests does; `seed` decides what of the unflushed. The
    /// cuts come in the order of the requests.
    ///
    /// # Errors
    ///
    /// The medium cannot be read or written, or the cut is one before the last flush of another.
    pub fn cut(&mut self, requests: usize, seed: u64) -> Result<()> {
        for (offset, bytes) in std::mem::take(&mut self.overwritten).into_iter().rev() {
            self.medium.write_all_at(&bytes, offset)?;
        }
        let flushed = self.events[..requests].iter().rposition(|event| matches!(event, Event::Flush));
        let flushed = flushed.map_or(0, |index| index + 1);
        ensure!(flushed >= self.settled, "this cut comes before another one");
        for change in changes(&self.events[self.settled..flushed]) {
            self.medium.write_all_at(&change.bytes(), change.offset)?;
        }
        self.settled = flushed;
        let mut chance = StdRng::seed_from_u64(seed);
        // Sometimes nearly everything is lost, sometimes nearly nothing.
        let kept = chance.random_range(0.0..=1.0);
        for change in changes(&self.events[flushed..requests]) {
            let mut bytes = vec![0; change.length];
            self.medium.read_exact_at(&mut bytes, change.offset)?;
            self.overwritten.push((change.offset, bytes.clone()));
            let new = change.bytes();
            let sectors = bytes.chunks_mut(self.sector_size).zip(new.chunks(self.sector_size));
            for (sector, new) in sectors.filter(|_| chance.random_bool(kept)) {
                sector.copy_from_slice(new);
            }
            self.medium.write_all_at(&bytes, change.offset)?;
        }
        Ok(())
    }
}

impl Change {
    fn bytes(&self) -> Vec<u8> {
        self.data.clone().unwrap_or_else(|| vec![0; self.length])
    }
}

fn changes(events: &[Event]) -> impl Iterator<Item = &Change> {
    events.iter().filter_map(|event| match event {
        Event::Change(change) => Some(&**change),
        Event::Flush => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const SECTOR: usize = 4096;

    fn change(offset: u64, data: Option<u8>) -> Event {
        let length = 8 * SECTOR;
        Event::Change(Arc::new(Change { offset, length, data: data.map(|byte| vec![byte; length]) }))
    }

    #[test]
    fn x33_a_recording_tells_what_any_cut_leaves() {
        let events = [change(0, Some(1)), Event::Flush, change(0, Some(2)), Event::Flush, change(0, None)];
        let medium = tempfile::tempfile().unwrap();
        medium.write_all_at(&[9; 8 * SECTOR], 0).unwrap();
        let mut replay = Replay::new(medium.try_clone().unwrap(), &events, SECTOR);
        let mut seen = Vec::new();
        for requests in 0..=events.len() {
            let mut sectors = std::collections::BTreeSet::new();
            for seed in 0..20 {
                replay.cut(requests, seed).unwrap();
                let mut content = vec![0; 8 * SECTOR];
                medium.read_exact_at(&mut content, 0).unwrap();
                for sector in content.chunks(SECTOR) {
                    assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is torn");
                    sectors.insert(sector[0]);
                }
            }
            seen.push(sectors.into_iter().collect::<Vec<_>>());
        }
        assert_eq!(seen, [vec![9], vec![1, 9], vec![1], vec![1, 2], vec![2], vec![0, 2]]);
        assert!(replay.cut(1, 0).is_err(), "what was flushed cannot be taken back");
    }
}
