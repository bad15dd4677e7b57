//! What a process has used.

use std::fs;

/// Ticks of the kernel's clock in a second, as all architectures of Linux count for user space.
const TICKS: f64 = 100.0;

/// Seconds of a processor that a process has used, with its threads.
pub fn processor_seconds(process: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in brackets, may have spaces.
    let fields = stat.rsplit_once(") ").map(|(_, fields)| fields).unwrap_or_default();
    let ticks = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS
}

/// The most memory that a process had, in KiB.
pub fn peak_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    peak.and_then(|peak| peak.trim().parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_tells_what_it_has_used() {
        assert!(peak_kib(std::process::id()) > 100);
        assert!((0.0..3600.0).contains(&processor_seconds(std::process::id())));
        assert_eq!((processor_seconds(0), peak_kib(0)), (0.0, 0));
    }
}
