//! The moments of a deployment and the time between them.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::book::page::in_milliseconds;

/// The moment that the deployed system shows its login prompt.
pub const BOOTED: &str = "booted";
/// The moments that every deployment passes, in their order.
pub const PHASES: [&str; 6] = ["power on", "kernel", "first heartbeat", "image written", "verified", BOOTED];

/// One phase of a deployment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Phase {
    /// The moment with which it ends, one of [`PHASES`].
    pub name: &'static str,
    /// How long it took.
    pub seconds: f64,
    /// When it ended, counted from the power being switched on.
    pub seconds_since_power_on: f64,
}

/// Moments by their names, in seconds since 1970.
#[derive(Debug, Default)]
pub struct Moments(BTreeMap<&'static str, f64>);

impl Moments {
    /// Records when a moment came for the first time.
    pub fn record(&mut self, name: &'static str, at: f64) {
        self.0.entry(name).or_insert(at);
    }

    /// When the power was switched on.
    pub fn power_on(&self) -> Option<f64> {
        self.0.get(PHASES[0]).copied()
    }

    /// The phases between the moments; an error names the moment that never came.
    pub fn timeline(&self) -> Result<Timeline> {
        let at = |name| self.0.get(name).copied().with_context(|| format!("there was no moment \"{name}\""));
        let power_on = at(PHASES[0])?;
        let mut before = power_on;
        let phase = |name: &'static str| {
            let now = at(name)?;
            let phase = Phase {
                name,
                seconds: in_milliseconds(now - before),
                seconds_since_power_on: in_milliseconds(now - power_on),
            };
            before = now;
            Ok(phase)
        };
        Ok(Timeline(PHASES.into_iter().map(phase).collect::<Result<_>>()?))
    }
}

/// All phases in their order.
#[derive(Debug, Serialize)]
pub struct Timeline(pub Vec<Phase>);

/// A duration as people say it: with tenths below ten seconds, and in minutes from two of them on.
pub fn in_words(seconds: f64) -> String {
    match seconds {
        _ if seconds < 9.95 => format!("{seconds:.1} s"),
        _ if seconds < 119.5 => format!("{seconds:.0} s"),
        _ => {
            let whole = seconds.round() as u64;
            format!("{} min {:02} s", whole / 60, whole % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_the_time_between_moments() {
        let mut moments = Moments::default();
        for (name, at) in PHASES.into_iter().zip([100.0, 101.5, 104.0, 110.0, 112.0, 160.0]).rev() {
            moments.record(name, at);
        }
        moments.record("kernel", 150.0);
        let Timeline(phases) = moments.timeline().unwrap();
        assert_eq!(
            phases.iter().map(|phase| phase.seconds).collect::<Vec<_>>(),
            [0.0, 1.5, 2.5, 6.0, 2.0, 48.0]
        );
        assert_eq!(phases[5].seconds_since_power_on, 60.0);
        assert_eq!(phases.iter().map(|phase| phase.name).collect::<Vec<_>>(), PHASES);
    }

    #[test]
    fn durations_are_told_as_people_say_them() {
        for (seconds, expected) in [
            (0.0, "0.0 s"),
            (9.94, "9.9 s"),
            (9.96, "10 s"),
            (17.25, "17 s"),
            (119.4, "119 s"),
            (119.6, "2 min 00 s"),
            (338.59, "5 min 39 s"),
        ] {
            assert_eq!(in_words(seconds), expected);
        }
    }

    #[test]
    fn a_missing_moment_is_named() {
        let mut moments = Moments::default();
        moments.record("power on", 1.0);
        assert_eq!(moments.timeline().unwrap_err().to_string(), "there was no moment \"kernel\"");
    }
}
