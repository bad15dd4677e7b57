//! How long tests take.

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
}

impl Timing {
    /// Something that took so long.
    pub fn new(name: impl Into<String>, duration: Duration) -> Self {
        Self { name: name.into(), seconds: duration.as_secs_f64() }
    }
}

/// The slowest, one a line, the slowest of them first.
pub fn slowest(timings: &[Timing]) -> String {
    let mut timings: Vec<_> = timings.iter().collect();
    timings.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    let shown = timings.iter().take(SHOWN);
    shown.map(|timing| format!("{:>8.1} s  {}\n", timing.seconds, timing.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_come_first_and_the_others_not_at_all() {
        let timings: Vec<_> =
            (0..30).map(|number| Timing::new(format!("vm_{number}"), Duration::from_secs(number))).collect();
        let text = slowest(&timings);
        assert!(text.starts_with("    29.0 s  vm_29\n    28.0 s  vm_28\n"), "{text}");
        assert_eq!(text.lines().count(), SHOWN);
    }
}
