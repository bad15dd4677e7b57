//! Whether what a conductor says of a failure names the fault that was injected.

use crate::fault::{Class, Fault, Kind};

/// A kind of fault, and by which words it is named: any of these, in small letters. What two kinds have in common names
/// neither.
const NAMES: &[(Class, Kind, &[&str])] = &[
    (Class::Bmc, Kind::Unavailable, &["503", "out of service", "temporarily unavailable"]),
    (Class::Bmc, Kind::Hangs, &["does not answer", "not within", "timed out", "timeout"]),
    (Class::Bmc, Kind::ForgetsPower, &["was told power", "was told \"power", "did not carry out \"power"]),
    (Class::Bmc, Kind::ForgetsMedium, &["to change the medium"]),
    (Class::Bmc, Kind::ForgetsBootDevice, &["was told to start", "was told to boot", "boot device"]),
    (Class::Bmc, Kind::SessionLost, &["401", "password", "session", "credentials"]),
    (Class::DiskLate, Kind::Usual, &["disk has appeared", "no disk"]),
    (Class::DhcpLost, Kind::Usual, &["no agent called", "never called", "did not call", "not heard", "dhcp"]),
    (Class::ImageServer, Kind::Usual, &["download", "image server"]),
    (Class::ImageDigest, Kind::Usual, &["digest", "checksum"]),
    (Class::AgentCrash, Kind::Usual, &["agent process ended", "agent ended", "started again"]),
    (
        Class::PowerCut,
        Kind::Usual,
        &["went off", "is off", "was powered off", "lost its power", "power failed"],
    ),
    (Class::BootsOther, Kind::Usual, &["never read", "has not read", "something else", "not boot from"]),
];

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
