//! Lines of the agent's doctor on the console of the machine, which a conductor reads for its diagnosis.

/// The line behind `doctor: ` of an examination in which no check failed.
pub const ALL_CHECKS_PASSED: &str = "all checks passed";
