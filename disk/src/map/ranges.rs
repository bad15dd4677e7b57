//! Sets of bytes of a disk.

use std::ops::Range;

/// Ranges of bytes that neither overlap nor touch, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// The ranges, in order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0.iter().cloned()
    }

    /// Whether a byte of `range` is among them.
    pub fn overlap(&self, range: &Range<u64>) -> bool {
        self.0.iter().any(|one| one.start < range.end && range.start < one.end)
    }

    /// The bytes that are not in `others`.
    #[must_use]
    pub fn without(&self, others: &Self) -> Self {
        let mut left = Vec::new();
        for range in self.iter() {
            let mut start = range.start;
            for other in others.0.iter().filter(|other| other.end > range.start && other.start < range.end) {
                if other.start > start {
                    left.push(start..other.start);
                }
                start = start.max(other.end);
            }
            if start < range.end {
                left.push(start..range.end);
            }
        }
        Self(left)
    }

    /// Whole sectors of a disk of `size` bytes that have all these bytes, as far as they lie on it.
    #[must_use]
    pub fn in_sectors(&self, sector_size: u32, size: u64) -> Self {
        let unit = u64::from(sector_size);
        let whole = |range: Range<u64>| {
            let end = range.end.min(size).checked_next_multiple_of(unit).unwrap_or(size).min(size);
            range.start - range.start % unit..end
        };
        self.iter().map(whole).collect()
    }
}

impl FromIterator<Range<u64>> for Ranges {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut sorted: Vec<_> = ranges.into_iter().filter(|range| range.start < range.end).collect();
        sorted.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in sorted {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        Self(joined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(ranges: &Ranges) -> Vec<u64> {
        ranges.iter().flatten().collect()
    }

    proptest! {
        #[test]
        fn sets_of_ranges_are_sets_of_bytes(
            ones in proptest::collection::vec((0_u64..80, 0_u64..20), 0..8),
            others in proptest::collection::vec((0_u64..80, 0_u64..20), 0..8),
        ) {
            let range = |(start, length): &(u64, u64)| *start..start + length;
            let set = |ranges: &[(u64, u64)]| ranges.iter().map(range).collect::<Ranges>();
            let is_in = |ranges: &[(u64, u64)], byte: &u64| ranges.iter().any(|one| range(one).contains(byte));
            let (ours, theirs) = (set(&ones), set(&others));
            let expected: Vec<u64> = (0..120).filter(|byte| is_in(&ones, byte)).collect();
            prop_assert_eq!(&bytes(&ours), &expected);
            let left: Vec<u64> = expected.iter().copied().filter(|byte| !is_in(&others, byte)).collect();
            prop_assert_eq!(bytes(&ours.without(&theirs)), left);
            let overlap = (0..120).any(|byte| is_in(&ones, &byte) && (30..40).contains(&byte));
            prop_assert_eq!(ours.overlap(&(30..40)), overlap);
            let sectors = bytes(&ours.in_sectors(8, 96));
            prop_assert!(expected.iter().filter(|byte| **byte < 96).all(|byte| sectors.contains(byte)));
            prop_assert!(sectors.iter().all(|byte| *byte < 96));
            prop_assert!(ours.in_sectors(8, 96).iter().all(|one| one.start % 8 == 0 && one.end % 8 == 0));
        }
    }
}
