//! Firmware that drivers send to their devices.
//!
//! Modules name the files they may ask for; those that exist are packed, each compressed for itself, with a
//! list by which the agent unpacks them before it loads the module.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::closure::Closure;
use crate::compress::compressed;
use crate::cpio::Archive;
use crate::error::BuildError;
use crate::manifest::{Addition, FileRecord};
use crate::module_tree::Module;

/// Drivers of the network cards and host bus adapters that do not work without firmware from a file.
const COMMON: &[&str] =
    &["bfa", "bna", "bnx2", "bnx2x", "cxgb3", "cxgb4", "ice", "isci", "qed", "qla2xxx", "r8169", "tg3"];

/// Whose firmware is packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Firmware {
    /// That of every packed module.
    All,
    /// That of common network cards and host bus adapters.
    Common,
    /// That of the modules for one PCI device: vendor and device.
    Pci(u16, u16),
}

/// What is packed, and from where.
#[derive(Debug, Clone, Default)]
pub struct FirmwareInputs {
    /// Whose.
    pub choices: Vec<Firmware>,
    /// Folder such as `/lib/firmware`.
    pub root: PathBuf,
}

impl FromStr for Firmware {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text| u16::from_str_radix(text, 16).ok();
        let device = text.split_once(':').and_then(|(vendor, device)| number(vendor).zip(number(device)));
        match (text, device) {
            ("all", _) => Ok(Self::All),
            ("common", _) => Ok(Self::Common),
            (_, Some((vendor, device))) => Ok(Self::Pci(vendor, device)),
            _ => Err(format!("{text} is not all, common or a PCI device such as 8086:1592")),
        }
    }
}

impl fmt::Display for Firmware {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::All => formatter.write_str("all"),
            Self::Common => formatter.write_str("common"),
            Self::Pci(vendor, device) => write!(formatter, "{vendor:04x}:{device:04x}"),
        }
    }
}

impl Firmware {
    fn covers(&self, name: &str, module: &Module) -> bool {
        match self {
            Self::All => true,
            Self::Common => COMMON.contains(&name),
            Self::Pci(vendor, device) => {
                let start = format!("pci:v{vendor:08X}d");
                let devices = module.info.aliases.iter().filter_map(|alias| alias.strip_prefix(&start));
                devices
                    .into_iter()
                    .any(|rest| rest.starts_with(['*']) || rest.starts_with(&format!("{device:08X}")))
            }
        }
    }
}

impl FirmwareInputs {
    /// Adds the chosen firmware, and the list of it in the modules' folder of the kernel's `release`.
    ///
    /// # Errors
    ///
    /// [`BuildError::Firmware`] when there is none for a choice, or those of [`compressed`].
    pub fn add(
        &self,
        archive: &mut Archive,
        release: &str,
        closure: &Closure,
        cache: Option<&Path>,
    ) -> Result<Vec<Addition>, BuildError> {
        let mut files = BTreeMap::new();
        let mut list = String::new();
        let mut served = BTreeSet::new();
        for (name, module) in &closure.modules {
            let covering: Vec<_> =
                (0..).zip(&self.choices).filter(|(_, one)| one.covers(name, module)).collect();
            if covering.is_empty() {
                continue;
            }
            let found: Vec<_> =
                module.info.firmware.iter().filter_map(|file| Some((file, self.find(file)?))).collect();
            if !found.is_empty() {
                served.extend(covering.iter().map(|(index, _)| *index));
                let names: Vec<_> = found.iter().map(|(file, _)| file.as_str()).collect();
                list += &format!("{name}: {}\n", names.join(" "));
            }
            files.extend(found);
        }
        if let Some((_, choice)) = (0..).zip(&self.choices).find(|(index, _)| !served.contains(index)) {
            return Err(BuildError::Firmware { choice: choice.to_string(), root: self.root.clone() });
        }
        archive.file(&format!("lib/modules/{release}/modules.firmware"), 0o644, list.into_bytes());
        let sources: Vec<_> = files.values().map(PathBuf::as_path).collect();
        let mut added = Vec::new();
        for (name, content) in files.keys().zip(compressed(&sources, cache)?) {
            let path = format!("lib/firmware/{name}.zst");
            added.push(Addition { path: path.clone(), file: FileRecord::of(&content) });
            archive.file(&path, 0o644, content);
        }
        Ok(added)
    }

    /// The file, whatever its compression.
    fn find(&self, name: &str) -> Option<PathBuf> {
        let candidate = |suffix| Path::new(&self.root).join(format!("{name}{suffix}"));
        ["", ".zst", ".xz", ".gz"].into_iter().map(candidate).find(|path| path.is_file())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cpio::tests::unpack;
    use crate::module_tree::tests::tree;

    #[test]
    fn choices_are_read() {
        for (text, expected) in [
            ("all", Some(Firmware::All)),
            ("common", Some(Firmware::Common)),
            ("8086:1592", Some(Firmware::Pci(0x8086, 0x1592))),
            ("8086", None),
            ("8086:x", None),
        ] {
            assert_eq!(text.parse::<Firmware>().ok(), expected, "{text}");
        }
    }

    #[test]
    fn what_exists_for_the_choice_is_packed_and_listed() {
        let tree = tree(&[
            ("ice.ko", &["firmware=intel/ice.pkg", "firmware=absent.bin", "alias=pci:v00008086d00001592sv*"]),
            ("wifi.ko", &["firmware=wifi.bin", "alias=pci:v000014E4d*sv*"]),
            ("plain.ko", &[]),
        ]);
        let names = ["ice", "wifi", "plain"].map(str::to_owned);
        let closure = Closure::of(&tree, &[], &names).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("intel")).unwrap();
        let packed = zstd::encode_all(&b"ice"[..], 1).unwrap();
        fs::write(folder.path().join("intel/ice.pkg.zst"), packed).unwrap();
        fs::write(folder.path().join("wifi.bin"), "wifi").unwrap();
        let pack = |choices: &[Firmware]| {
            let mut archive = Archive::default();
            let inputs = FirmwareInputs { choices: choices.to_vec(), root: folder.path().to_owned() };
            inputs.add(&mut archive, "6.1", &closure, None).map(|_| unpack(&archive.to_bytes().unwrap()))
        };
        for (choice, list) in [
            (Firmware::Common, "ice: intel/ice.pkg\n"),
            (Firmware::Pci(0x8086, 0x1592), "ice: intel/ice.pkg\n"),
            (Firmware::Pci(0x14e4, 1), "wifi: wifi.bin\n"),
            (Firmware::All, "ice: intel/ice.pkg\nwifi: wifi.bin\n"),
        ] {
            let entries = pack(&[choice]).unwrap();
            let entry = |path: &str| entries.iter().find(|entry| entry.path == path).expect(path);
            assert_eq!(String::from_utf8_lossy(&entry("lib/modules/6.1/modules.firmware").data), list);
            if list.contains("ice") {
                let content = zstd::decode_all(&*entry("lib/firmware/intel/ice.pkg.zst").data).unwrap();
                assert_eq!(content, b"ice");
            }
        }
        let error = pack(&[Firmware::All, Firmware::Pci(0x8086, 1)]).unwrap_err().to_string();
        assert!(error.contains("8086:0001"), "{error}");
    }
}
