//! The exported disk of a machine, by the serial number of the logical unit (VPD page 80h). The agent puts the
//! serial number of the disk there, as its inventory has it, and a digest of that number and of the target's name.

use super::error::IscsiError;
use super::program::Program;
use super::unit::LogicalUnit;
use farrier_iscsi::target::layout::is_told;
use farrier_protocol::inventory::Disk;
use std::path::Path;
use std::time::Duration;

/// Time for the question.
const LIMIT: Duration = Duration::from_secs(60);
/// Between these is the serial number in what the program says.
const BEFORE: &str = "Unit Serial Number:[";
const BEHIND: &str = "]";

/// Asks a unit for its serial number, by `iscsi-inq`: that needs neither rights nor a device.
#[derive(Debug, Clone)]
pub(super) struct Inquiry(pub(super) Program);

impl Default for Inquiry {
    fn default() -> Self {
        Self(Program { path: "/usr/bin/iscsi-inq".into(), packages: "libiscsi-bin" })
    }
}

impl Inquiry {
    /// Those of the machine's disks that the unit is: several only where their serial numbers are the same. What the
    /// program says goes to a file in `folder`.
    ///
    /// # Errors
    ///
    /// [`IscsiError::NoInitiator`], [`IscsiError::Login`], or [`IscsiError::Disk`] when it is none of them.
    pub(super) fn find<'a>(
        &self,
        unit: &LogicalUnit,
        disks: &'a [Disk],
        folder: &Path,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<&'a Disk>, IscsiError> {
        matching(unit, disks, &self.ask(unit, folder, is_cancelled)?)
    }

    fn ask(
        &self,
        unit: &LogicalUnit,
        folder: &Path,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<String, IscsiError> {
        let LogicalUnit { portal, target, initiator, chap } = unit;
        let arguments = [
            format!("--initiator-name={initiator}"),
            "--evpd=1".to_owned(),
            "--pagecode=128".to_owned(),
            format!("iscsi://{portal}/{target}/1"),
        ];
        let login =
            [("LIBISCSI_CHAP_USERNAME", chap.user.as_str()), ("LIBISCSI_CHAP_PASSWORD", &chap.secret)];
        let mut running = self.0.start(&arguments, &login, folder.join("inquiry"))?;
        running.wait(LIMIT, is_cancelled).map_err(|reason| unit.no_login(reason))?;
        let said = running.output();
        let serial = said.split_once(BEFORE).and_then(|(_, rest)| rest.split_once(BEHIND));
        // Some targets fill the field with spaces.
        serial.map(|(serial, _)| serial.trim().to_owned()).ok_or_else(|| unit.no_login(running.said()))
    }
}

/// Those of the disks that are exported with this serial number.
///
/// # Errors
///
/// [`IscsiError::Disk`] when none is.
pub(super) fn matching<'a>(
    unit: &LogicalUnit,
    disks: &'a [Disk],
    serial_number: &str,
) -> Result<Vec<&'a Disk>, IscsiError> {
    let is_it =
        |disk: &&Disk| is_told(&unit.target, disk.serial.as_deref().unwrap_or_default(), serial_number);
    let found: Vec<_> = disks.iter().filter(is_it).collect();
    match found.is_empty() {
        false => Ok(found),
        true => {
            let name = unit.target.to_string();
            let reason =
                format!("its serial number is {serial_number:?}, as no disk of the machine's inventory has");
            Err(farrier_disk::Error::Remote { name, reason }.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::deploy::disk_export::DiskExport;
    use farrier_iscsi::target::layout::serial;
    use uuid::Uuid;

    fn disk(serial: Option<&str>) -> Disk {
        Disk { serial: serial.map(str::to_owned), ..Disk::default() }
    }

    #[test]
    fn a_disk_is_known_by_its_serial_number_and_the_target_it_is_exported_as() {
        let unit =
            || LogicalUnit::of(&DiskExport::anew("https://h:9999", 3260, Uuid::nil()).unwrap()).unwrap();
        let (this, other) = (unit(), unit());
        let disks = [disk(Some("A")), disk(Some("B")), disk(None), disk(Some("B"))];
        for (serial_number, count) in [
            (serial(&this.target, "A"), 1),
            // As tgtd has it.
            (serial(&this.target, "A")[..24].to_owned(), 1),
            (serial(&this.target, "A")[..23].to_owned(), 0),
            (serial(&this.target, "B"), 2),
            (serial(&this.target, ""), 1),
            (serial(&this.target, "C"), 0),
            // The same disk, exported by somebody else.
            (serial(&other.target, "A"), 0),
            ("A".to_owned(), 0),
            (String::new(), 0),
        ] {
            let found = matching(&this, &disks, &serial_number);
            assert_eq!(found.as_ref().map_or(0, Vec::len), count, "{serial_number}");
            if let Err(error) = found {
                assert!(error.to_string().contains("nothing was written"), "{error}");
            }
        }
    }
}
