//! Which bytes of the file were used already. None may be used twice: it would be a loop or a bomb.
//!
//! Both ways to read an image make the same claims, though in another order, so they refuse the same images.

use super::Fault;
use super::map::{Budget, Piece, SECTOR};
use std::collections::BTreeMap;

/// What one range costs, in bytes.
const RANGE: usize = 48;

/// The ranges that are claimed. Only compressed clusters may touch: one may begin in the last sector of another.
#[derive(Debug, Default)]
pub(super) struct Claims {
    plain: Ranges,
    /// Compressed clusters as a whole.
    packed: Ranges,
    /// Of each of these the bytes that are its own.
    cores: Ranges,
    /// Ranges that the budget has paid for.
    paid: usize,
}

impl Claims {
    /// Claims a stretch of the file.
    pub(super) fn claim(&mut self, piece: &Piece, budget: &mut Budget) -> Result<(), Fault> {
        let Piece { host, end, is_packed, .. } = *piece;
        let core = if is_packed { (end - SECTOR).max(host + 1) } else { end };
        let is_used = match is_packed {
            true => self.plain.touch(host, end) || self.cores.touch(host, core),
            false => self.plain.touch(host, end) || self.packed.touch(host, end),
        };
        if is_used {
            return Err(format!("the cluster at {host} overlaps another one").into());
        }
        if is_packed {
            self.packed.add(host, end);
            self.cores.add(host, core);
        } else {
            self.plain.add(host, end);
        }
        let count = self.plain.0.len() + self.packed.0.len() + self.cores.0.len();
        if count > self.paid {
            budget.take(((count - self.paid) * RANGE) as u64)?;
            self.paid = count;
        }
        Ok(())
    }

    /// Forgets what lies before `host`, where nothing more will be claimed.
    pub(super) fn forget_before(&mut self, host: u64) {
        for ranges in [&mut self.plain, &mut self.packed, &mut self.cores] {
            while ranges.0.first_entry().is_some_and(|first| *first.get() <= host) {
                ranges.0.pop_first();
            }
        }
    }
}

/// Ranges that do not touch, by their start.
#[derive(Debug, Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn touch(&self, start: u64, end: u64) -> bool {
        self.0.range(..end).next_back().is_some_and(|(_, other)| *other > start)
    }

    fn add(&mut self, mut start: u64, mut end: u64) {
        while let Some((first, last)) = self.0.range(..=end).next_back().map(|(first, last)| (*first, *last))
        {
            if last < start {
                break;
            }
            self.0.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        self.0.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(host: u64, length: u64, is_packed: bool) -> Piece {
        Piece {
            host,
            end: if is_packed { host / SECTOR * SECTOR + length * SECTOR } else { host + length },
            guest: 0,
            is_packed,
        }
    }

    fn claimed(pieces: &[Piece], is_sorted: bool) -> bool {
        let (mut claims, mut budget) = (Claims::default(), Budget::new(1 << 20));
        pieces.iter().all(|piece| {
            if is_sorted {
                claims.forget_before(piece.host);
            }
            claims.claim(piece, &mut budget).is_ok()
        })
    }

    proptest! {
        #[test]
        fn x48_claims_are_judged_alike_in_whatever_order_they_come(
            pieces in proptest::collection::vec((0..6_u64, 0..512_u64, 1..3_u64, any::<bool>()), 1..6),
        ) {
            let pieces: Vec<_> = pieces
                .into_iter()
                .map(|(place, within, length, is_packed)| match is_packed {
                    true => piece(place * 512 + within, length, true),
                    false => piece(place * 512, length * 512, false),
                })
                .collect();
            let mut sorted = pieces.clone();
            sorted.sort_by_key(|piece| piece.host);
            let reversed: Vec<_> = sorted.iter().rev().copied().collect();
            let outcome = claimed(&pieces, false);
            prop_assert_eq!(outcome, claimed(&sorted, true));
            prop_assert_eq!(outcome, claimed(&reversed, false));
        }
    }
}
