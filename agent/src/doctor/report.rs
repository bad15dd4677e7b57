//! The first failure, left where a conductor can still see it when no agent calls.

use super::examination::Host;
use super::verdict::Verdict;
use super::{dhcp_name, sel};
use crate::agent::VERSION;
use crate::settings::options::Destination;
use farrier_linux::efivars::{EfiVariables, PERSISTENT, Variable};
use farrier_linux::netlink::InterfaceAddress;
use farrier_protocol::inventory::NetworkInterface;
use futures_util::future::join_all;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use time::OffsetDateTime;
use tokio::task::spawn_blocking;

/// What was reported in this boot.
pub const REPORTED: &str = "/run/farrier/doctor-reported";
/// The UEFI variable: its name, and the vendor GUID of Farrier's own.
const VARIABLE: &str = "FarrierDoctor-5f0c1f2e-8d0b-4a3c-9e6f-7b1d2c3a4e5f";
/// Most bytes of it: firmware has little room.
const MAX_VARIABLE: usize = 1024;
/// Where the kernel takes messages of user space for its persistent store.
const MESSAGE_STORE: &str = "/dev/pmsg0";

/// A failure was not left in a place.
#[derive(Debug, thiserror::Error)]
enum ReportError {
    #[error(transparent)]
    Sel(#[from] sel::SelError),
    #[error("the machine was not booted by UEFI")]
    NoEfi,
    #[error("the UEFI variable cannot be written: {0}; is the firmware's store full?")]
    Variable(#[source] io::Error),
    #[error("the UEFI variable does not read as it was written")]
    VariableLost,
    #[error("the kernel keeps no messages of user space over a restart ({MESSAGE_STORE}: {0})")]
    MessageStore(#[source] io::Error),
    #[error(transparent)]
    Dhcp(io::Error),
}

/// What is left in the places.
struct Note {
    check: &'static str,
    /// One line with a time.
    line: String,
    nics: Vec<NetworkInterface>,
    addresses: Vec<InterfaceAddress>,
}

/// Whether this cause was not reported yet in this boot, and remembers it. The agent starts again and
/// again without an answer, and an event log has little room.
pub fn is_new(reported: &Path, cause: &Verdict) -> bool {
    let line = cause.to_string();
    if fs::read_to_string(reported).is_ok_and(|known| known == line) {
        return false;
    }
    if let Some(folder) = reported.parent() {
        fs::create_dir_all(folder).ok();
    }
    if let Err(error) = fs::write(reported, line) {
        tracing::warn!(%error, "the report cannot be recorded in {}", reported.display());
    }
    true
}

/// Removes what was left in the firmware: it names servers and addresses, and the machine may get another user. The
/// report stays in the log, which conductors collect. A failure after this one is reported again.
pub fn forget(variables: Option<&EfiVariables>, reported: &Path) {
    let Some(variables) = variables else { return };
    let report = match variables.read(VARIABLE) {
        Ok(None) => return,
        // Any system on the machine may have written it.
        Ok(Some(left)) => left.data.iter().take(MAX_VARIABLE).copied().collect(),
        // One that cannot be read can still be removed.
        Err(_) => Vec::new(),
    };
    match variables.delete(VARIABLE) {
        Ok(()) => {
            let report = String::from_utf8_lossy(&report);
            tracing::info!(?report, "the doctor's report was removed from the firmware");
            fs::remove_file(reported).ok();
        }
        Err(error) => tracing::warn!(%error, "the UEFI variable {VARIABLE} cannot be removed"),
    }
}

/// Leaves the cause in every place that the options name, all at once. Each place fails alone.
pub async fn deliver(host: &Host, cause: &Verdict) {
    let begun = host.options.doctor_report.0.iter().map(|place| {
        let (note, place) = (Note::new(host, cause), *place);
        spawn_blocking(move || (place, note.leave(place)))
    });
    for (place, outcome) in join_all(begun).await.into_iter().flatten() {
        match outcome {
            Ok(text) => tracing::info!("doctor: reported to {}: {text}", place.name()),
            Err(error) => tracing::info!("doctor: not reported to {}: {error}", place.name()),
        }
    }
}

impl Note {
    fn new(host: &Host, cause: &Verdict) -> Self {
        let now = OffsetDateTime::now_utc();
        let time = format!("{} {:02}:{:02}:{:02} UTC", now.date(), now.hour(), now.minute(), now.second());
        Self {
            check: cause.check,
            line: format!("farrier-agent {VERSION} {time} {cause}"),
            nics: host.nics.clone(),
            addresses: host.addresses.clone(),
        }
    }

    /// Leaves it in one place and says where.
    fn leave(&self, place: Destination) -> Result<String, ReportError> {
        match place {
            Destination::Sel => Ok(format!("record {:#06x} of the event log", sel::add(self.check)?)),
            Destination::Efi => {
                self.leave_in(&EfiVariables::system().ok_or(ReportError::NoEfi)?)?;
                Ok(format!("UEFI variable {VARIABLE}"))
            }
            Destination::Pstore => {
                let mut store =
                    OpenOptions::new().write(true).open(MESSAGE_STORE).map_err(ReportError::MessageStore)?;
                store.write_all(format!("{}\n", self.line).as_bytes()).map_err(ReportError::MessageStore)?;
                Ok("the kernel's message store".to_owned())
            }
            Destination::Dhcp => {
                let name = format!("farrier-{}", self.check);
                let servers =
                    dhcp_name::tell(&name, &self.nics, &self.addresses).map_err(ReportError::Dhcp)?;
                let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
                Ok(format!("host name {name} at {}", servers.join(", ")))
            }
        }
    }

    /// One variable, rewritten each time, so that the firmware's store does not fill up.
    fn leave_in(&self, variables: &EfiVariables) -> Result<(), ReportError> {
        let end = self.line.floor_char_boundary(MAX_VARIABLE);
        let variable = Variable { attributes: PERSISTENT, data: self.line.as_bytes()[..end].to_vec() };
        variables.write(VARIABLE, &variable).map_err(ReportError::Variable)?;
        let kept = variables.read(VARIABLE).map_err(ReportError::Variable)?;
        if kept == Some(variable) { Ok(()) } else { Err(ReportError::VariableLost) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::Finding;
    use super::*;

    fn cause(text: &str) -> Verdict {
        Finding::failed(text, "Start it").of("tcp", "http://192.0.2.1")
    }

    #[test]
    fn a_cause_is_reported_once_in_a_boot() {
        let folder = tempfile::tempdir().unwrap();
        let reported = folder.path().join("farrier/reported");
        for (text, expected) in [("refused", true), ("refused", false), ("silent", true), ("refused", true)] {
            assert_eq!(is_new(&reported, &cause(text)), expected, "{text}");
        }
    }

    #[test]
    fn x29_what_was_left_in_the_firmware_is_removed_and_may_come_again() {
        let folder = tempfile::tempdir().unwrap();
        let (variables, reported) = (folder.path().join("efivars"), folder.path().join("reported"));
        fs::create_dir(&variables).unwrap();
        let variables = EfiVariables::at(variables);
        let other = Variable { attributes: PERSISTENT, data: vec![1] };
        variables.write("BootOrder-8be4df61-93ca-11d2-aa0d-00e098032b8c", &other).unwrap();
        for _ in 0..2 {
            assert!(is_new(&reported, &cause("refused")));
            let line = "no answer from http://192.0.2.1".to_owned();
            Note { check: "tcp", line, nics: Vec::new(), addresses: Vec::new() }
                .leave_in(&variables)
                .unwrap();
            forget(None, &reported);
            assert_eq!(variables.names().unwrap().len(), 2);
            forget(Some(&variables), &reported);
            assert_eq!(variables.names().unwrap(), ["BootOrder-8be4df61-93ca-11d2-aa0d-00e098032b8c"]);
        }
        // Where nothing was left, what was reported elsewhere is not reported again.
        assert!(is_new(&reported, &cause("refused")));
        forget(Some(&variables), &reported);
        assert!(!is_new(&reported, &cause("refused")));
    }

    #[test]
    fn one_variable_is_rewritten_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let variables = EfiVariables::at(folder.path());
        for (line, length) in [("é".repeat(2000), MAX_VARIABLE), ("short".to_owned(), 5)] {
            let note = Note { check: "tcp", line, nics: Vec::new(), addresses: Vec::new() };
            note.leave_in(&variables).unwrap();
            assert_eq!(variables.names().unwrap(), [VARIABLE]);
            assert_eq!(variables.read(VARIABLE).unwrap().unwrap().data.len(), length);
        }
    }
}
