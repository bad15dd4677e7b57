//! How long tests take.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// How many of the slowest are shown.
const SHOWN: usize = 20;

/// A test, a program of tests that run together, or what was made for them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timing {
    /// What took the time.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
    /// For how much of it one processor was busy, where that can be told; several may have been at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor_seconds: Option<f64>,
}

impl Timing {
    /// Something that took so long, beside which others were at work.
    pub fn new(name: impl Into<String>, duration: Duration) -> Self {
        Self { name: name.into(), seconds: duration.as_secs_f64(), processor_seconds: None }
    }

    /// The same, and it kept a processor busy for so long.
    pub fn with_processor(self, busy: Duration) -> Self {
        Self { processor_seconds: Some(busy.as_secs_f64()), ..self }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, seconds, processor_seconds } = self;
        match processor_seconds {
            Some(busy) => write!(f, "{seconds:>8.1} s {busy:>8.1} s of a processor  {name}"),
            None => write!(f, "{seconds:>8.1} s {:>8} {:<14}  {name}", "", ""),
        }
    }
}

/// The slowest, one a line, the slowest of them first.
pub fn slowest(timings: &[Timing]) -> String {
    let mut timings: Vec<_> = timings.iter().collect();
    timings.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    let shown = timings.iter().take(SHOWN);
    shown.map(|timing| format!("{timing}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_come_first_and_the_others_not_at_all() {
        let timing = |number| Timing::new(format!("vm_{number}"), Duration::from_secs(number));
        let mut timings: Vec<_> = (0..30).map(timing).collect();
        timings[28] = timing(28).with_processor(Duration::from_millis(12_345));
        let text = slowest(&timings);
        let expected =
            "    29.0 s                          vm_29\n    28.0 s     12.3 s of a processor  vm_28\n";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(text.lines().count(), SHOWN);
    }
}
