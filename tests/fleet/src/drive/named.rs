//! Whether what a conductor says of a failure names the fault that was injected.

use crate::fault::{Class, Fault, Kind};

/// A kind of fault, and by which words it is named: any of these, in small letters. What two kinds have in common names
/// neither.
const NAMES: &[(Class, Kind, &[&str])] = &[
    (Class::Bmc, Kind::Unavailable, &["503", "out of service", "temporarily unavailable"]),
    (Class::Bmc, Kind::Hangs, &["does not answer", "not within", "timed out", "timeout"]),
    (Class::Bmc, Kind::ForgetsPower, &["accepted the order power", "did not carry out \"power"]),
    (Class::Bmc, Kind::ForgetsMedium, &["to change the medium"]),
    (
        Class::Bmc,
        Kind::ForgetsBootDevice,
        &["accepted the order to start", "accepted the order to boot", "boot device"],
    ),
    (Class::Bmc, Kind::SessionLost, &["401", "password", "session", "credentials"]),
    (Class::DeviceLate, Kind::Disk, &["disk has appeared", "no disk"]),
    (Class::DeviceLate, Kind::Card, NO_ADDRESS),
    (Class::DhcpLost, Kind::Usual, NO_ADDRESS),
    (Class::ImageServer, Kind::Usual, &["download", "image server"]),
    (Class::ImageDigest, Kind::Usual, &["digest", "checksum"]),
    (Class::AgentCrash, Kind::Usual, &["agent process ended", "agent ended", "started again"]),
    (
        Class::PowerCut,
        Kind::Usual,
        &["went off", "is off", "was powered off", "lost its power", "power failed"],
    ),
    (
        Class::BootsOther,
        Kind::Usual,
        &["no read of its virtual medium", "never read", "has not read", "something else", "not boot from"],
    ),
    (Class::Conductor, Kind::Killed, &["conductor ended", "conductor stopped", "conductor restart"]),
    (Class::Conductor, Kind::Paused, &["lease"]),
    (Class::Conductor, Kind::CutOff, &["cannot be reached", "unreachable", "does not answer"]),
    (Class::Conductor, Kind::ClockOff, &["clock"]),
    (Class::Database, Kind::Restarts, &["database"]),
    (Class::Database, Kind::Promoted, &["database"]),
    (Class::Database, Kind::OutOfConnections, &["database", "connections"]),
    (Class::Database, Kind::Slow, &["database"]),
];

/// How a machine is told that has no address: nobody hears of it. One that started something else has read no medium, which
/// is told apart.
const NO_ADDRESS: &[&str] = &["no agent called", "never called", "did not call", "not heard", "dhcp"];

/// Whether a text names a fault.
pub(super) fn names(said: &str, fault: Fault) -> bool {
    let said = said.to_lowercase();
    let of = |(class, kind, _): &&(Class, Kind, &[&str])| (*class, *kind) == (fault.class, fault.kind);
    NAMES.iter().find(of).is_some_and(|(.., words)| words.iter().any(|word| said.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_fault_has_words() {
        for class in Class::all() {
            for kind in class.kinds() {
                let found = NAMES.iter().find(|(one, of, _)| (one, of) == (&class, kind));
                assert!(found.is_some_and(|(.., words)| !words.is_empty()), "{class} {kind:?}");
            }
        }
    }
}
