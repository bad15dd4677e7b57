//! Emptying the store in which a kernel leaves its last words (section 9.8, S21).
//!
//! Crash records hold what the previous user's system had in memory. The store lies in the firmware, and
//! is only seen through the kernel's backend for it: without one, that nothing shows proves nothing.

use crate::error::StepError;
use crate::manager::{StepCall, StepDeclaration};
use farrier_linux::modules::ModuleIndex;
use farrier_linux::{mount, sysfs};
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::step::Phase;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const EFI: &str = "/sys/firmware/efi";
const PARAMETERS: &str = "/sys/module/pstore/parameters";
/// What the kernel shows where there is no backend.
const NO_BACKEND: &str = "(null)";

/// Removes all records.
pub const ERASE: StepDeclaration = StepDeclaration {
    step: "erase_pstore",
    interface: "deploy",
    priorities: &[(Phase::Clean, 0)],
    reboot_requested: false,
    abortable: Phase::ALL,
    arguments: &[],
    run: &erase,
};

/// Records were not removed, or it cannot be known.
#[derive(Debug, thiserror::Error)]
enum PstoreError {
    #[error(
        "the kernel has no backend for the persistent store, so records in it cannot be seen: boot the machine \
         by UEFI with the module efi_pstore in the ramdisk, or do without this step where there is no store"
    )]
    NoBackend,
    #[error(transparent)]
    Mount(#[from] mount::MountError),
    #[error("the persistent store cannot be read again: {0}")]
    Unmount(std::io::Error),
    #[error(
        "the record {record} cannot be removed: {source}; look for errors of the firmware in the kernel log"
    )]
    Remove { record: PathBuf, source: std::io::Error },
    #[error(
        "the backend {backend} still has these records after they were removed: {left}; reset the firmware's variables"
    )]
    Left { backend: String, left: String },
}

fn erase(_: &StepCall<'_>) -> Result<Value, StepError> {
    if Path::new(EFI).exists()
        && let Err(error) = ModuleIndex::of_running_kernel().and_then(|index| index.load("efi_pstore"))
    {
        tracing::warn!("{error}");
    }
    try_erase()
        .map_err(|error| StepError::Failed(CommandError::new(ErrorKind::CleaningError, error.to_string())))
}

fn try_erase() -> Result<Value, PstoreError> {
    let backend = backend(Path::new(PARAMETERS)).ok_or(PstoreError::NoBackend)?;
    let store = Path::new(mount::PSTORE.target);
    mount::PSTORE.mount()?;
    let removed = remove_all(store)?;
    // A record is gone when the backend does not bring it any more.
    mount::PSTORE.unmount().map_err(PstoreError::Unmount)?;
    mount::PSTORE.mount()?;
    require_empty(store, &backend)?;
    tracing::info!(backend, ?removed, "persistent store emptied");
    Ok(json!({"backend": backend, "removed": removed}))
}

fn backend(parameters: &Path) -> Option<String> {
    sysfs::attribute(parameters, "backend").filter(|backend| backend != NO_BACKEND)
}

fn remove_all(store: &Path) -> Result<Vec<String>, PstoreError> {
    let records = sysfs::entries(store);
    for record in records.iter().map(|name| store.join(name)) {
        fs::remove_file(&record).map_err(|source| PstoreError::Remove { record, source })?;
    }
    Ok(records)
}

fn require_empty(store: &Path, backend: &str) -> Result<(), PstoreError> {
    let left = sysfs::entries(store);
    if left.is_empty() {
        return Ok(());
    }
    Err(PstoreError::Left { backend: backend.to_owned(), left: left.join(", ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s21_every_record_is_removed_and_what_stays_is_named() {
        let store = tempfile::tempdir().unwrap();
        for name in ["dmesg-efi_pstore-1", "console-efi_pstore-0"] {
            fs::write(store.path().join(name), "panic").unwrap();
        }
        let text = require_empty(store.path(), "efi_pstore").unwrap_err().to_string();
        assert!(text.contains("dmesg-efi_pstore-1") && text.contains("efi_pstore still"), "{text}");
        let removed = remove_all(store.path()).unwrap();
        assert_eq!(removed, ["console-efi_pstore-0", "dmesg-efi_pstore-1"]);
        require_empty(store.path(), "efi_pstore").unwrap();
        assert_eq!(remove_all(store.path()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_record_that_cannot_be_removed_is_named() {
        let store = tempfile::tempdir().unwrap();
        // No file can be removed in place of a folder, not even by root.
        fs::create_dir(store.path().join("dmesg-erst-1")).unwrap();
        let text = remove_all(store.path()).unwrap_err().to_string();
        assert!(text.contains("dmesg-erst-1"), "{text}");
    }

    #[test]
    fn an_empty_store_without_a_backend_proves_nothing() {
        let parameters = tempfile::tempdir().unwrap();
        assert_eq!(backend(parameters.path()), None);
        for (content, expected) in [("(null)\n", None), ("efi_pstore\n", Some("efi_pstore")), ("\n", None)] {
            fs::write(parameters.path().join("backend"), content).unwrap();
            assert_eq!(backend(parameters.path()).as_deref(), expected, "{content:?}");
        }
    }
}
