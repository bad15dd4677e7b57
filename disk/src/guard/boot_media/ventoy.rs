//! The stick of Ventoy that a medium was started from as a file. Ventoy tells the system which disk that is: in a variable
//! of the firmware, or in an ACPI table that it makes for this boot.

use super::passes_with_reboot;
use farrier_linux::drive::Drive;
use farrier_linux::efivars::EfiVariables;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

const VARIABLE: &str = "VentoyOsParam-77772020-2e77-6576-6e74-6f792e6e6574";
/// The same GUID, with which the parameters begin.
const MARK: [u8; 16] =
    [0x20, 0x20, 0x77, 0x77, 0x77, 0x2e, 0x76, 0x65, 0x6e, 0x74, 0x6f, 0x79, 0x2e, 0x6e, 0x65, 0x74];
/// Where in the parameters the identity of the disk is, and the one of its partition table (vtoydump, `vtoydump.h`).
const IDENTITY: Range<usize> = 17..33;
const TABLE: Range<usize> = 481..485;
/// Where both are in the first sector of the disk.
const IDENTITY_AT: usize = 0x180;
const TABLE_AT: usize = 0x1b8;

const ACPI_TABLE: &str = "firmware/acpi/tables/VTOY";
/// Bytes before what a table of ACPI holds.
const ACPI_HEADER: usize = 36;

/// By what the first sector of such a stick is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VentoyDisk {
    identity: [u8; 16],
    table: [u8; 4],
}

impl VentoyDisk {
    /// The stick of this boot.
    pub fn of_this_boot(sysfs: &Path, variables: Option<&EfiVariables>) -> Option<Self> {
        let variable =
            variables.and_then(|variables| variables.read(VARIABLE).ok()?).filter(passes_with_reboot);
        variable
            .and_then(|variable| Self::parse(&variable.data))
            .or_else(|| Self::parse(fs::read(sysfs.join(ACPI_TABLE)).ok()?.get(ACPI_HEADER..)?))
    }

    fn parse(parameters: &[u8]) -> Option<Self> {
        let identity = parameters.get(IDENTITY)?.try_into().ok()?;
        let table = parameters.get(TABLE)?.try_into().ok()?;
        parameters.starts_with(&MARK).then_some(Self { identity, table })
    }

    /// Whether it is in this drive.
    pub fn is_in(&self, drive: &Drive) -> bool {
        let mut sector = [0; 512];
        let read = File::open(&drive.device).and_then(|disk| disk.read_exact_at(&mut sector, 0));
        read.is_ok()
            && sector[IDENTITY_AT..].starts_with(&self.identity)
            && sector[TABLE_AT..].starts_with(&self.table)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The first sector of a stick, and what Ventoy says of it.
    pub fn stick() -> (Vec<u8>, Vec<u8>) {
        let (mut sector, mut parameters) = (vec![0; 512], vec![0; 512]);
        sector[IDENTITY_AT..IDENTITY_AT + 16].fill(0xa7);
        sector[TABLE_AT..TABLE_AT + 4].fill(0x5e);
        parameters[..16].copy_from_slice(&MARK);
        parameters[IDENTITY].fill(0xa7);
        parameters[TABLE].fill(0x5e);
        (sector, parameters)
    }

    pub fn disk() -> VentoyDisk {
        VentoyDisk::parse(&stick().1).unwrap()
    }

    #[test]
    fn a06_ventoy_tells_its_stick_by_a_variable_of_this_boot_or_by_acpi() {
        let (_, parameters) = stick();
        let expected = Some(VentoyDisk { identity: [0xa7; 16], table: [0x5e; 4] });
        let folder = tempfile::tempdir().unwrap();
        let variables = EfiVariables::at(folder.path());
        let found = || VentoyDisk::of_this_boot(folder.path(), Some(&variables));
        assert_eq!(found(), None);
        for (attributes, expected) in [(6_u32, expected.clone()), (7, None)] {
            let content = [&attributes.to_le_bytes()[..], &parameters].concat();
            fs::write(folder.path().join(VARIABLE), content).unwrap();
            assert_eq!(found(), expected, "attributes {attributes}");
        }
        for content in [&parameters[..400], &[7; 512], &[]] {
            fs::write(folder.path().join(VARIABLE), [&6_u32.to_le_bytes()[..], content].concat()).unwrap();
            assert_eq!(found(), None);
        }
        fs::create_dir_all(folder.path().join(ACPI_TABLE).parent().unwrap()).unwrap();
        fs::write(folder.path().join(ACPI_TABLE), [&[0; ACPI_HEADER][..], &parameters].concat()).unwrap();
        assert_eq!(found(), expected);
        assert_eq!(VentoyDisk::of_this_boot(folder.path(), None), expected);
    }
}
