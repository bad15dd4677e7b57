//! Numbers that follow from a seed, what they are for, and a number, and from nothing else: a run can be repeated, and
//! a machine or life has the same ones however many others there are.

use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::time::Duration;

/// What all of a run's numbers follow from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

/// A number that was drawn, as likely as any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw(u64);

impl Seed {
    /// The number for a purpose and a machine, life or boot.
    pub fn draw(self, purpose: &str, number: u64) -> Draw {
        let mut hash = Sha256::new();
        hash.update(self.0.to_le_bytes());
        hash.update(number.to_le_bytes());
        hash.update(purpose.as_bytes());
        let digest = hash.finalize();
        Draw(digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }
}

impl Draw {
    /// From 0 on, below 1.
    pub fn fraction(self) -> f64 {
        // The 53 bits that such a number has room for.
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of several things; nothing where there is none.
    pub fn one_of<T>(self, things: &[T]) -> Option<&T> {
        things.get((self.fraction() * things.len() as f64) as usize)
    }

    /// A time that differs from this one by at most this share of it.
    pub fn around(self, time: Duration, spread: f64) -> Duration {
        time.mul_f64(1.0 + spread * (2.0 * self.fraction() - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_drawn_again_for_the_same_and_something_else_for_anything_else() {
        let drawn = Seed(7).draw("fault", 3);
        assert_eq!(drawn, Seed(7).draw("fault", 3));
        for other in [Seed(8).draw("fault", 3), Seed(7).draw("phase", 3), Seed(7).draw("fault", 4)] {
            assert_ne!(drawn, other);
        }
    }

    #[test]
    fn fractions_are_spread_evenly() {
        let drawn: Vec<_> = (0..10_000).map(|number| Seed(1).draw("fault", number).fraction()).collect();
        assert!(drawn.iter().all(|fraction| (0.0..1.0).contains(fraction)));
        let below = drawn.iter().filter(|fraction| **fraction < 0.03).count();
        assert!((250..350).contains(&below), "{below} of 10,000 are below 0.03");
    }

    #[test]
    fn times_stay_within_their_spread() {
        let time = Duration::from_secs(100);
        for number in 0..100 {
            let drawn = Seed(1).draw("phase", number).around(time, 0.2);
            assert!((80..=120).contains(&drawn.as_secs()), "{drawn:?}");
        }
        assert_eq!(Seed(1).draw("phase", 0).around(time, 0.0), time);
    }
}
