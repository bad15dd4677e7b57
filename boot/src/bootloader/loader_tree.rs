//! The loaders that an image carries as files, on the EFI system partition.

use crate::machine::Machine;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Bounds for a tree that somebody else made.
const MAX_DEPTH: usize = 8;
const MAX_ENTRIES: usize = 2000;

/// What GRUB reads beside itself.
const CONFIGURATIONS: [&str; 2] = ["grub.cfg", "grubenv"];

/// Whether there is anything in the folder.
pub fn is_filled(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// Copies the folder `loaders`, called `EFI`, onto the volume `esp`. Each folder in it gets those of GRUB's
/// configurations that it lacks, from the first of the folders `configurations` that has them.
///
/// Links are left out: they lead to files of this ramdisk. Nothing that is there is removed (D29).
///
/// # Errors
///
/// Whatever reading and writing bring, or a tree that is too large.
pub fn copy(loaders: &Path, configurations: &[PathBuf], esp: &Path) -> io::Result<()> {
    let target = esp.join("EFI");
    copy_folder(loaders, &target, 0, &mut MAX_ENTRIES.clone())?;
    for folder in folders(&target)? {
        for name in CONFIGURATIONS {
            let found = configurations.iter().map(|place| place.join(name)).find(|file| is_plain_file(file));
            if let Some(file) = found.filter(|_| !folder.join(name).exists()) {
                fs::copy(file, folder.join(name))?;
            }
        }
    }
    Ok(())
}

fn copy_folder(from: &Path, to: &Path, depth: usize, budget: &mut usize) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        *budget = budget.checked_sub(1).ok_or_else(|| io::Error::other("it has too many files"))?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() && depth < MAX_DEPTH {
            copy_folder(&entry.path(), &target, depth + 1, budget)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Puts a loader where firmware looks that has forgotten its entries, unless one is there (F16): the one of the
/// first folder that has shim and GRUB, or GRUB alone. shim starts the GRUB beside it, and a signed GRUB finds
/// its configuration in the folder it was made for, wherever it was started from.
///
/// # Errors
///
/// Whatever reading and writing bring.
pub fn ensure_fallback(esp: &Path, machine: Machine) -> io::Result<()> {
    let (loaders, fallback) = (esp.join("EFI"), esp.join(machine.removable_path()));
    if !loaders.is_dir() || fallback.exists() {
        return Ok(());
    }
    let [shim, grub, keys] = ["shim", "grub", "mm"].map(|stem| format!("{stem}{machine}.efi"));
    let folders = folders(&loaders)?;
    let Some(folder) = folders.iter().find(|folder| folder.join(&grub).is_file()) else { return Ok(()) };
    let place = fallback.parent().unwrap_or(esp);
    fs::create_dir_all(place)?;
    let first = if folder.join(&shim).is_file() {
        for file in [&grub, &keys].into_iter().filter(|file| folder.join(file).is_file()) {
            fs::copy(folder.join(file), place.join(file))?;
        }
        &shim
    } else {
        &grub
    };
    fs::copy(folder.join(first), &fallback).map(drop)
}

/// The folders in a folder, by name.
fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let mut folders: Vec<_> = entries.into_iter().filter(|path| path.is_dir()).collect();
    folders.sort();
    Ok(folders)
}

fn is_plain_file(file: &Path) -> bool {
    fs::symlink_metadata(file).is_ok_and(|found| found.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Trees {
        folder: tempfile::TempDir,
    }

    impl Trees {
        fn new(files: &[&str]) -> Self {
            let trees = Self { folder: tempfile::tempdir().unwrap() };
            for file in files {
                let path = trees.path(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, file).unwrap();
            }
            trees
        }

        fn path(&self, path: &str) -> PathBuf {
            self.folder.path().join(path)
        }

        fn content(&self, path: &str) -> Option<String> {
            fs::read_to_string(self.path(path)).ok()
        }
    }

    #[test]
    fn d29_loaders_are_added_to_what_is_there_with_their_configuration() {
        let trees = Trees::new(&[
            "image/EFI/fedora/shimx64.efi",
            "image/EFI/BOOT/BOOTX64.EFI",
            "image/EFI/BOOT/grub.cfg",
            "image/grub2/grub.cfg",
            "image/grub/grub.cfg",
            "image/grub/grubenv",
            "esp/EFI/other/loader.efi",
        ]);
        std::os::unix::fs::symlink("/etc/passwd", trees.path("image/EFI/fedora/link.efi")).unwrap();
        let configurations = [trees.path("image/grub2"), trees.path("image/grub")];
        copy(&trees.path("image/EFI"), &configurations, &trees.path("esp")).unwrap();
        for (file, content) in [
            ("esp/EFI/fedora/shimx64.efi", Some("image/EFI/fedora/shimx64.efi")),
            ("esp/EFI/fedora/grub.cfg", Some("image/grub2/grub.cfg")),
            ("esp/EFI/fedora/grubenv", Some("image/grub/grubenv")),
            ("esp/EFI/BOOT/grub.cfg", Some("image/EFI/BOOT/grub.cfg")),
            ("esp/EFI/other/loader.efi", Some("esp/EFI/other/loader.efi")),
            ("esp/EFI/fedora/link.efi", None),
        ] {
            assert_eq!(trees.content(file).as_deref(), content, "{file}");
        }
    }

    #[test]
    fn f16_the_path_for_forgetful_firmware_gets_a_loader() {
        let machine = Machine::of("aarch64", None).unwrap();
        let [shim, grub, keys] =
            ["shim", "grub", "mm"].map(|stem| format!("esp/EFI/debian/{stem}{machine}.efi"));
        let fallback = format!("esp/{}", machine.removable_path());
        let beside = format!("esp/EFI/BOOT/grub{machine}.efi");
        for (files, expected, expected_beside) in [
            (vec![&shim, &grub, &keys], Some(&shim), Some(&grub)),
            (vec![&grub], Some(&grub), None),
            (vec![&fallback, &grub], Some(&fallback), None),
            (vec![&keys], None, None),
        ] {
            let files: Vec<_> = files.into_iter().map(String::as_str).collect();
            let trees = Trees::new(&files);
            ensure_fallback(&trees.path("esp"), machine).unwrap();
            assert_eq!(trees.content(&fallback).as_ref(), expected, "{files:?}");
            assert_eq!(trees.content(&beside).as_ref(), expected_beside, "{files:?}");
        }
    }
}
