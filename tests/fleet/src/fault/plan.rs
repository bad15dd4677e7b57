//! Which life gets which faults: the seed and the number of the life decide, and nothing else.

use super::class::{Class, Kind};
use crate::life::Operation;
use crate::seed::Seed;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often a class strikes.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    /// The share of lives that it strikes.
    pub rate: f64,
    /// Whether it passes, so that a conductor can reach its goal all the same.
    pub recoverable: bool,
    /// After how long it passes, where it does; as in the real world, before durations are shortened.
    pub lasts: Duration,
    /// Which of the kinds of the class there are.
    pub kinds: Vec<Kind>,
}

/// A fault of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Its class.
    pub class: Class,
    /// What of its class it is.
    pub kind: Kind,
    /// In which operation it strikes.
    pub operation: Operation,
    /// Whether it passes.
    pub recoverable: bool,
    /// After how long it passes, where it does.
    #[serde(skip)]
    pub lasts: Duration,
}

/// The faults of a life, at most one of each class.
pub fn plan(seed: Seed, rates: &BTreeMap<Class, Rate>, life: u64) -> Vec<Fault> {
    let fault = |(class, rate): (&Class, &Rate)| {
        let draw = |what: &str| seed.draw(&format!("{class} {what}"), life);
        if draw("strikes").fraction() >= rate.rate {
            return None;
        }
        let kind = *draw("kind").one_of(&rate.kinds)?;
        let operation = *draw("operation").one_of(class.strikes())?;
        let Rate { recoverable, lasts, .. } = *rate;
        Some(Fault { class: *class, kind, operation, recoverable, lasts })
    };
    rates.iter().filter_map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(rate: f64) -> BTreeMap<Class, Rate> {
        let lasts = Duration::from_secs(30);
        let rate = |class: Class| Rate { rate, recoverable: true, lasts, kinds: class.kinds().to_vec() };
        Class::all().map(|class| (class, rate(class))).collect()
    }

    fn plans(seed: u64, rates: &BTreeMap<Class, Rate>) -> Vec<Vec<Fault>> {
        (0..10_000).map(|life| plan(Seed(seed), rates, life)).collect()
    }

    #[test]
    fn a_seed_gives_each_life_the_same_faults_again_and_another_seed_others() {
        let rates = rates(0.03);
        assert_eq!(plans(7, &rates), plans(7, &rates));
        assert_ne!(plans(7, &rates), plans(8, &rates));
    }

    #[test]
    fn other_classes_do_not_move_the_faults_of_one() {
        let of_bmc = |faults: Vec<Fault>| faults.into_iter().filter(|fault| fault.class == Class::Bmc);
        let all: Vec<Vec<_>> =
            plans(7, &rates(0.03)).into_iter().map(|faults| of_bmc(faults).collect()).collect();
        let alone = rates(0.03).into_iter().filter(|(class, _)| *class == Class::Bmc).collect();
        assert_eq!(all, plans(7, &alone));
    }

    #[test]
    fn each_class_strikes_as_often_as_it_should() {
        let plans = plans(7, &rates(0.03));
        for class in Class::all() {
            let struck = plans.iter().flatten().filter(|fault| fault.class == class);
            let struck: Vec<_> = struck.collect();
            assert!((250..350).contains(&struck.len()), "{class} strikes {} of 10,000 lives", struck.len());
            for kind in class.kinds() {
                assert!(struck.iter().any(|fault| fault.kind == *kind), "{class} is never {kind:?}");
            }
        }
        for (rate, expected) in [(0.0, 0), (1.0, Class::all().count())] {
            let counts = (0..100).map(|life| plan(Seed(7), &self::rates(rate), life).len());
            assert!(counts.into_iter().all(|count| count == expected), "rate {rate}");
        }
    }
}
