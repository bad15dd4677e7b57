//! What a record may name of the conductor's host. A user of the node API is no user of the host: files lie below the
//! folders that the conductor's operator allows, and neither an error nor a validation tells whether one lies elsewhere.

use super::QemuSettings;
use super::description::Description;
use super::disks::Disk;
use super::firmware::Firmware;
use crate::netboot::images::AllowedFolders;
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::Node;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Keys that are as good as a shell.
const UNSAFE: [&str; 2] = ["qemu_binary", "qemu_extra_args"];

/// End of the names of logs, so that no image is taken for one.
const LOG: &str = "log";

/// The first bytes of a qcow2 image, and where its header has what names other files: the offset of a backing file, and
/// the features that a reader must know, of which one is an external data file (QEMU, docs/interop/qcow2.txt).
const QCOW2: &[u8] = b"QFI\xfb";
const BACKING_FILE: std::ops::Range<usize> = 8..16;
const FEATURES: std::ops::Range<usize> = 72..80;
const EXTERNAL_DATA: u8 = 1 << 2;

/// Refuses programs and arguments, unless the operator of the conductor allows them.
pub(super) fn refuse_unsafe_keys(node: &Node, settings: &QemuSettings) -> Result<(), InterfaceError> {
    let given = UNSAFE.iter().find(|key| node.driver_info.get(**key).is_some_and(|value| !value.is_null()));
    match given.filter(|_| !settings.unsafe_driver_info) {
        None => Ok(()),
        Some(key) => Err(InterfaceError::driver_info(
            key,
            "would let users of the node API run programs on the conductor's host; leave it out, or start the conductor \
             with --qemu-unsafe-driver-info",
        )),
    }
}

/// Refuses names of files that are not below allowed folders.
pub(super) fn check_names(description: &Description, allowed: &AllowedFolders) -> Result<(), InterfaceError> {
    let images = [("deploy_kernel", &description.kernel), ("deploy_ramdisk", &description.ramdisk)];
    let images = images.into_iter().chain([("qemu_console_log", &description.console_log)]);
    let named = images.filter_map(|(key, file)| Some((key, file.as_deref()?)));
    let disks = description.disks.iter().map(|disk| ("qemu_disks", disk.file.as_path()));
    for (key, file) in named.chain(disks).chain(firmware(&description.firmware)) {
        allowed.check(file).map_err(|reason| InterfaceError::driver_info(key, reason))?;
    }
    let log = description.console_log.as_ref();
    match log.filter(|log| log.extension().is_none_or(|extension| extension != LOG)) {
        None => Ok(()),
        Some(_) => Err(InterfaceError::driver_info("qemu_console_log", "must have a name that ends in .log")),
    }
}

impl Description {
    /// The same with the files themselves, behind every link, which are there.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::DriverInfo`] for the first that may not be taken.
    pub(super) fn with_files(mut self, settings: &QemuSettings) -> Result<Self, InterfaceError> {
        for disk in &mut self.disks {
            disk.file = taken("qemu_disks", &disk.file, &settings.allowed)?;
            check_image(disk)?;
        }
        for (key, file) in firmware(&self.firmware) {
            taken(key, file, &settings.allowed)?;
        }
        Ok(self)
    }

    /// Kernel and initramfs of the ramdisk.
    pub(super) fn ramdisk_files(
        &self,
        settings: &QemuSettings,
    ) -> Result<(PathBuf, PathBuf), InterfaceError> {
        let file = |key, path: &Option<PathBuf>| match path {
            Some(path) => taken(key, path, &settings.allowed),
            None => Err(InterfaceError::driver_info(
                key,
                "is missing; give the file that `farrier-image build` made",
            )),
        };
        Ok((file("deploy_kernel", &self.kernel)?, file("deploy_ramdisk", &self.ramdisk)?))
    }
}

/// Files of firmware that a record names; those of the distribution are no matter of records.
fn firmware(firmware: &Firmware) -> impl Iterator<Item = (&'static str, &Path)> {
    let named = match firmware {
        Firmware::Uefi(files) if !files.is_installed() => Some(files),
        Firmware::Uefi(_) | Firmware::Bios => None,
    };
    named.into_iter().flat_map(|files| {
        [("qemu_firmware_code", files.code.as_path()), ("qemu_firmware_vars_template", &files.vars_template)]
    })
}

fn taken(key: &str, file: &Path, allowed: &AllowedFolders) -> Result<PathBuf, InterfaceError> {
    allowed.take(file).map_err(|reason| InterfaceError::driver_info(key, reason))
}

/// Refuses an image that names other files in its header: a machine may have written that to a raw disk.
fn check_image(disk: &Disk) -> Result<(), InterfaceError> {
    if disk.format == "raw" {
        return Ok(());
    }
    let refuse = |reason: String| {
        Err(InterfaceError::driver_info("qemu_disks", format!("{}: {reason}", disk.file.display())))
    };
    let mut header = Vec::new();
    let read =
        File::open(&disk.file).and_then(|file| file.take(FEATURES.end as u64).read_to_end(&mut header));
    match (read, header.get(BACKING_FILE), header.get(FEATURES)) {
        (Err(error), ..) => refuse(format!("cannot be read: {error}")),
        (Ok(_), Some(backing), Some(features)) if header.starts_with(QCOW2) => {
            let is_version_2 = header.get(4..8) == Some(&2u32.to_be_bytes());
            let has_data_elsewhere =
                !is_version_2 && features.last().is_some_and(|byte| byte & EXTERNAL_DATA != 0);
            match backing.iter().any(|byte| *byte != 0) || has_data_elsewhere {
                true => refuse("names another file; flatten it by qemu-img convert".to_owned()),
                false => Ok(()),
            }
        }
        (Ok(_), ..) => refuse("is no qcow2 image".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::node;
    use super::*;
    use serde_json::{Value, json};

    /// Which key is refused, and how.
    fn refused(result: Result<(), InterfaceError>) -> Option<(String, String)> {
        match result {
            Ok(()) => None,
            Err(InterfaceError::DriverInfo { key, reason }) => Some((key, reason)),
            Err(other) => panic!("{other}"),
        }
    }

    /// An allowed folder with a file `f`, a link out of it, and what is refused of a record.
    struct Stage {
        folder: tempfile::TempDir,
        settings: QemuSettings,
    }

    impl Stage {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let inside = folder.path().join("in");
            std::fs::create_dir(&inside).unwrap();
            std::fs::write(inside.join("f"), "f").unwrap();
            std::fs::write(folder.path().join("secret"), "s").unwrap();
            std::os::unix::fs::symlink(folder.path().join("secret"), inside.join("link")).unwrap();
            let allowed = AllowedFolders::new(vec![inside]).unwrap();
            Self { folder, settings: QemuSettings { allowed, unsafe_driver_info: false } }
        }

        fn path(&self, name: &str) -> String {
            self.folder.path().join(name).display().to_string()
        }

        fn refused(&self, info: Value) -> Option<(String, String)> {
            let mut all = json!({
                "qemu_firmware_code": self.path("in/f"), "qemu_firmware_vars_template": self.path("in/f"),
                "deploy_kernel": self.path("in/f"), "deploy_ramdisk": self.path("in/f"),
            });
            all.as_object_mut().unwrap().extend(info.as_object().unwrap().clone());
            let read = Description::read(&node(&all), &self.settings);
            let read = read.and_then(|description| description.with_files(&self.settings));
            refused(read.and_then(|description| description.ramdisk_files(&self.settings)).map(drop))
        }
    }

    #[test]
    fn n03_files_lie_below_allowed_folders_and_nothing_is_shown_of_others() {
        let stage = Stage::new();
        assert_eq!(stage.refused(json!({"qemu_disks": stage.path("in/f")})), None);
        for key in [
            "qemu_disks",
            "deploy_kernel",
            "deploy_ramdisk",
            "qemu_firmware_code",
            "qemu_firmware_vars_template",
            "qemu_console_log",
        ] {
            let said = |name: &str| {
                let (named, reason) = stage.refused(json!({key: stage.path(name)})).unwrap();
                assert_eq!(named, key);
                reason.replace(&stage.path(name), "FILE")
            };
            assert_eq!(said("secret"), said("none"), "{key}: one is there, the other is not");
            assert_eq!(said("in/../secret"), said("in/../none"), "{key}");
            assert!(said("secret").contains("is not below a folder that files may be taken from"), "{key}");
            if key != "qemu_console_log" {
                assert_eq!(said("in/link"), said("in/none"), "{key}: a link out of the folder");
            }
        }
        let (_, reason) = stage.refused(json!({"qemu_console_log": stage.path("in/f")})).unwrap();
        assert!(reason.contains("ends in .log"), "{reason}");
    }

    #[test]
    fn n03_programs_and_arguments_are_taken_from_records_with_an_option_alone() {
        let mut stage = Stage::new();
        let keys = [("qemu_binary", "/bin/sh"), ("qemu_extra_args", "-incoming exec:id>/tmp/pwned")];
        for (key, value) in keys {
            let (named, reason) = stage.refused(json!({key: value})).unwrap();
            assert!(named == key && reason.contains("--qemu-unsafe-driver-info"), "{reason}");
        }
        stage.settings.unsafe_driver_info = true;
        for (key, value) in keys {
            assert_eq!(stage.refused(json!({key: value})), None);
        }
    }

    #[test]
    fn n03_an_image_that_names_another_file_is_not_opened() {
        let stage = Stage::new();
        let mut header = [QCOW2, &3u32.to_be_bytes()].concat();
        header.resize(104, 0);
        let (mut backed, mut data_elsewhere) = (header.clone(), header.clone());
        backed[15] = 104;
        data_elsewhere[79] = EXTERNAL_DATA;
        for (content, expected) in [
            (header, None),
            (backed, Some("names another file")),
            (data_elsewhere, Some("names another file")),
            (b"raw".to_vec(), Some("is no qcow2 image")),
        ] {
            std::fs::write(stage.path("in/disk"), content).unwrap();
            let disk = format!("{};format=qcow2", stage.path("in/disk"));
            let found = stage.refused(json!({"qemu_disks": disk}));
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            assert!(found.is_none_or(|(_, reason)| reason.contains(expected.unwrap_or_default())));
        }
    }
}
