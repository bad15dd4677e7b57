//! An instance that is a ramdisk or an ISO: QEMU loads it itself, at every power-on, so its files are of this host.

use super::architecture::Architecture;
use super::arguments::{Boot, RamdiskBoot};
use super::{QemuError, read, remove};
use crate::netboot::images::AllowedFolders;
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::RamdiskInstance;
use farrier_media::{KernelParameters, config_drive};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Stores the boot files of a machine and its config drive.
pub(super) fn prepare(
    folder: &Path,
    instance: &RamdiskInstance,
    drive: Option<&str>,
    allowed: &AllowedFolders,
) -> Result<(), InterfaceError> {
    let file = |key: &str, url: &str| file(key, url, allowed);
    let noted = match instance {
        RamdiskInstance::Iso(iso) => json!({"iso": file("boot_iso", iso)?}),
        RamdiskInstance::Kernel { kernel, ramdisk, parameters } => json!({
            "kernel": file("kernel", kernel)?, "ramdisk": file("ramdisk", ramdisk)?,
            "parameters": parameters.to_string(),
        }),
    };
    match drive {
        Some(text) => {
            let image = config_drive::unpack(Path::new("of the instance"), text);
            write(&drive_file(folder), &image.map_err(InterfaceError::driver)?)?;
        }
        None => remove(&drive_file(folder))?,
    }
    Ok(write(&note(folder), noted.to_string().as_bytes())?)
}

/// Forgets what was noted.
pub(super) fn clean_up(folder: &Path) -> Result<(), QemuError> {
    remove(&note(folder))?;
    remove(&drive_file(folder))
}

/// The boot files of a machine of this architecture, if there are some.
pub(super) fn boot(folder: &Path, architecture: Architecture) -> Result<Option<Boot>, InterfaceError> {
    let Some(noted) = read(&note(folder))? else { return Ok(None) };
    let noted: Value = serde_json::from_str(&noted).unwrap_or_default();
    let text = |key: &str| noted[key].as_str().unwrap_or_default();
    if noted["iso"].is_string() {
        return Ok(Some(Boot::Iso(text("iso").into())));
    }
    let parameters = text("parameters").parse::<KernelParameters>().and_then(|parameters| {
        KernelParameters::default().with("console", architecture.serial_port())?.followed_by(&parameters)
    });
    let parameters =
        parameters.map_err(|error| InterfaceError::invalid("kernel_append_params", error.to_string()))?;
    let (kernel, ramdisk) = (text("kernel").into(), text("ramdisk").into());
    Ok(Some(Boot::Ramdisk(RamdiskBoot { kernel, ramdisk, parameters: parameters.to_string() })))
}

/// The config drive that is beside it, if there is one.
pub(super) fn config_drive(folder: &Path) -> Option<PathBuf> {
    Some(drive_file(folder)).filter(|file| file.exists())
}

fn note(folder: &Path) -> PathBuf {
    folder.join("instance")
}

fn drive_file(folder: &Path) -> PathBuf {
    folder.join("config-drive")
}

fn write(file: &Path, content: &[u8]) -> Result<(), QemuError> {
    std::fs::write(file, content).map_err(QemuError::file(file))
}

/// A file of this host, by its path or its URL.
fn file(key: &str, url: &str, allowed: &AllowedFolders) -> Result<PathBuf, InterfaceError> {
    let refuse = |reason: String| InterfaceError::invalid(&format!("instance_info {key}"), reason);
    let path = PathBuf::from(url.strip_prefix("file://").unwrap_or(url));
    if !path.is_absolute() {
        return Err(refuse(format!(
            "{url} must be a file of the conductor's host, such as file:///srv/live.iso"
        )));
    }
    allowed.take(&path).map_err(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Architecture::{Aarch64, X86_64};

    #[test]
    fn what_is_noted_is_started_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let folder = &folder.path().canonicalize().unwrap();
        let allowed = AllowedFolders::new(vec![folder.clone()]).unwrap();
        let source = folder.join("os.iso");
        std::fs::write(&source, "iso").unwrap();
        assert!(boot(folder, X86_64).unwrap().is_none());
        let drive = config_drive::make(&serde_json::Map::new()).unwrap();
        for url in [format!("file://{}", source.display()), source.display().to_string()] {
            prepare(folder, &RamdiskInstance::Iso(url), Some(&drive), &allowed).unwrap();
            assert!(matches!(boot(folder, X86_64).unwrap(), Some(Boot::Iso(path)) if path == source));
            assert!(std::fs::read(config_drive(folder).unwrap()).unwrap().len() > 32774);
        }
        let of_host = || source.display().to_string();
        let kernel = RamdiskInstance::Kernel {
            kernel: of_host(),
            ramdisk: of_host(),
            parameters: "root=/dev/ram0 text".parse().unwrap(),
        };
        prepare(folder, &kernel, None, &allowed).unwrap();
        let Some(Boot::Ramdisk(ramdisk)) = boot(folder, X86_64).unwrap() else { panic!("no ramdisk") };
        assert_eq!(ramdisk.parameters, "console=ttyS0 root=/dev/ram0 text");
        assert_eq!((ramdisk.kernel, config_drive(folder)), (source, None));
        let Some(Boot::Ramdisk(ramdisk)) = boot(folder, Aarch64).unwrap() else { panic!("no ramdisk") };
        assert_eq!(ramdisk.parameters, "console=ttyAMA0 root=/dev/ram0 text");
        clean_up(folder).unwrap();
        clean_up(folder).unwrap();
        assert!(boot(folder, X86_64).unwrap().is_none());
    }

    #[test]
    fn n03_files_of_an_instance_are_of_allowed_folders() {
        let folder = tempfile::tempdir().unwrap();
        let allowed = AllowedFolders::new(vec![folder.path().to_owned()]).unwrap();
        let none = folder.path().join("none.iso").display().to_string();
        for (url, part) in [
            ("http://h/live.iso", "must be a file"),
            ("file:///usr/bin/env", "not below a folder that files may be taken from"),
            ("/usr/bin/none", "not below a folder that files may be taken from"),
            (none.as_str(), "is no file that may be taken"),
        ] {
            let iso = RamdiskInstance::Iso(url.into());
            let refused = prepare(folder.path(), &iso, None, &allowed).unwrap_err().to_string();
            assert!(refused.starts_with("instance_info boot_iso: ") && refused.contains(part), "{refused}");
        }
        let iso = folder.path().join("os.iso");
        std::fs::write(&iso, "iso").unwrap();
        let instance = RamdiskInstance::Iso(iso.display().to_string());
        let refused = prepare(folder.path(), &instance, Some("nonsense"), &allowed).unwrap_err().to_string();
        assert!(refused.starts_with("config drive of the instance is neither"), "{refused}");
        assert!(boot(folder.path(), X86_64).unwrap().is_none());
    }
}
