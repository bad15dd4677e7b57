//! Faults: why the conductor itself put a node into maintenance (section 1.7).

use crate::model::states::named_states;
use serde::{Deserialize, Serialize};
use std::fmt;

named_states! {
    /// Why the conductor put a node into maintenance. Operators may do so without a fault.
    Fault {
        /// The power state cannot be read; maintenance ends when it can.
        Power = "power failure",
        /// Cleaning failed at a step, so that nobody knows what is on the disks.
        Clean = "clean failure",
        /// A rescue could not be undone.
        RescueAbort = "rescue abort failure",
        /// Service failed at a step.
        Service = "service failure",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_read_as_in_the_contract() {
        let texts: Vec<_> = Fault::ALL.iter().map(|fault| fault.as_str()).collect();
        assert_eq!(texts, ["power failure", "clean failure", "rescue abort failure", "service failure"]);
        assert_eq!(serde_json::to_value(Fault::Power).unwrap(), "power failure");
    }
}
