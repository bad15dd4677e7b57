//! Loading kernel modules by name or by the alias of a device.
//!
//! Reads the text formats of kmod: `modules.dep` (`path: dependency …`) and `modules.alias`
//! (`alias PATTERN NAME`), with paths relative to the release's folder; and `modules.firmware`
//! (`NAME: path …`), with paths below `/lib/firmware`, which only ramdisks of this project have.
//!
//! Files whose names end in `.zst` are unpacked as they are needed, so that the rest of a ramdisk stays
//! small in memory. Kernels that could do it themselves are newer than many in use.

mod aliases;
mod packed;
mod pattern;
mod turns;

use aliases::Aliases;
use nix::errno::Errno;
use nix::kmod::init_module;
use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use turns::Turns;

/// Where the kernel looks for firmware.
const FIRMWARE: &str = "/lib/firmware";

/// Parameters of modules that would otherwise do something on their own.
const PARAMETERS: &[(&str, &str)] = &[("bonding", "max_bonds=0")];

/// The modules of one kernel release.
#[derive(Debug, Default)]
pub struct ModuleIndex {
    directory: PathBuf,
    modules: HashMap<String, ModuleFile>,
    firmware: HashMap<String, Vec<String>>,
    aliases: Aliases,
    /// The kernel's command line, which holds parameters of modules too.
    line: String,
    turns: Turns,
}

#[derive(Debug, PartialEq, Eq)]
struct ModuleFile {
    path: String,
    /// Paths, the ones that others need last.
    dependencies: String,
}

/// A module could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// The index is missing.
    #[error("{path} cannot be read: build the ramdisk for the kernel that boots it")]
    Index {
        /// File that was wanted.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// A file of a module or of its firmware is missing or damaged.
    #[error("{path} cannot be read or unpacked: build the ramdisk again")]
    Unpack {
        /// File that was wanted.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The kernel refused the module.
    #[error("the kernel refused module {name} ({source}): see its messages")]
    Load {
        /// Module name.
        name: String,
        /// Cause.
        #[source]
        source: Errno,
    },
}

impl ModuleIndex {
    /// The index of the running kernel under `/lib/modules`, read once.
    ///
    /// # Errors
    ///
    /// [`ModuleError::Index`] when there is none.
    pub fn of_running_kernel() -> Result<&'static Self, ModuleError> {
        static INDEX: Mutex<Option<&ModuleIndex>> = Mutex::new(None);
        let mut index = INDEX.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = *index {
            return Ok(index);
        }
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut read = Self::open(&Path::new("/lib/modules").join(release.trim()))?;
        read.line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
        Ok(index.insert(Box::leak(Box::new(read))))
    }

    /// Reads the index in a release's folder.
    ///
    /// # Errors
    ///
    /// [`ModuleError::Index`] naming the file.
    pub fn open(directory: &Path) -> Result<Self, ModuleError> {
        let read = |name: &str| {
            let path = directory.join(name);
            fs::read_to_string(&path).map_err(|source| ModuleError::Index { path, source })
        };
        Ok(Self {
            directory: directory.to_owned(),
            modules: parse_dependencies(&read("modules.dep")?),
            // Modules of a distribution come without this list.
            firmware: parse_firmware(&read("modules.firmware").unwrap_or_default()),
            aliases: Aliases::new(read("modules.alias")?),
            line: String::new(),
            turns: Turns::default(),
        })
    }

    /// Modules that claim an alias, such as a device's `modalias`. A module name is its own alias.
    pub fn claimants(&self, alias: &str) -> Vec<String> {
        let name = normalize(alias);
        if self.modules.contains_key(&name) { vec![name] } else { self.aliases.claimants(alias) }
    }

    /// Loads whatever claims an alias. Each module is tried once; a failing one does not keep the
    /// others from being loaded.
    pub fn load_alias(&self, alias: &str) -> Vec<ModuleError> {
        self.claimants(alias).iter().filter_map(|name| self.load(name).err()).collect()
    }

    /// Loads a module before its first use, where that use does not make the kernel ask for it: no program can open
    /// the node of a device that no driver made. It may be built in as well; one that is missing shows in use.
    pub fn load_unasked(name: &str) {
        if let Err(error) = Self::of_running_kernel().and_then(|index| index.load(name)) {
            tracing::debug!("{error}");
        }
    }

    /// Loads a module after those it needs. Loaded already is fine; unknown names are taken to be
    /// built into the kernel.
    ///
    /// # Errors
    ///
    /// [`ModuleError::Unpack`] or [`ModuleError::Load`].
    pub fn load(&self, name: &str) -> Result<(), ModuleError> {
        let name = normalize(name);
        let Some(module) = self.modules.get(&name) else { return Ok(()) };
        self.turns.once(&name, || self.load_file(&name, module))
    }

    fn load_file(&self, name: &str, module: &ModuleFile) -> Result<(), ModuleError> {
        for dependency in module.dependencies.split_whitespace().rev() {
            self.load(&module_name(dependency))?;
        }
        for file in self.firmware.get(name).into_iter().flatten() {
            let path = Path::new(FIRMWARE).join(file);
            packed::unpack_in_place(&path).map_err(|source| ModuleError::Unpack { path, source })?;
        }
        let path = self.directory.join(&module.path);
        let image = packed::read(&path).map_err(|source| ModuleError::Unpack { path, source })?;
        match init_module(&image, &parameters(name, &self.line)) {
            Ok(()) | Err(Errno::EEXIST) => Ok(()),
            Err(source) => Err(ModuleError::Load { name: name.to_owned(), source }),
        }
    }
}

/// The parameters of a module: those it always has, then those that a command line of the kernel gives it as
/// `module.parameter=value`, for the last one wins.
fn parameters(name: &str, line: &str) -> CString {
    let own = PARAMETERS.iter().filter(|(module, _)| *module == name).map(|(_, text)| *text);
    let given = line.split_whitespace().filter_map(|word| {
        let (module, parameter) = word.split_once('.')?;
        (normalize(module) == name).then_some(parameter)
    });
    // No line of the kernel has a zero in it.
    CString::new(own.chain(given).collect::<Vec<_>>().join(" ")).unwrap_or_default()
}

/// Sets the program that loads the modules that it asks for (`kernel.modprobe`).
///
/// # Errors
///
/// The kernel has no such setting, or `/proc` is not mounted.
pub fn tell_modprobe(program: &str) -> io::Result<()> {
    fs::write("/proc/sys/kernel/modprobe", program)
}

/// The aliases of the devices on a bus, such as `pci`, read from sysfs.
pub fn bus_aliases(sysfs: &Path, bus: &str) -> Vec<String> {
    let devices = sysfs.join("bus").join(bus).join("devices");
    let names = crate::sysfs::entries(&devices);
    names.iter().filter_map(|name| crate::sysfs::attribute(&devices.join(name), "modalias")).collect()
}

/// The aliases of every device present, read from sysfs.
pub fn device_aliases(sysfs: &Path) -> Vec<String> {
    let mut aliases = HashSet::new();
    let mut pending = vec![sysfs.join("devices")];
    while let Some(directory) = pending.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            // file_type does not follow links, so the walk stays inside the tree.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push(entry.path()),
                Ok(kind) if kind.is_file() && entry.file_name() == "modalias" => {
                    aliases.extend(crate::sysfs::attribute(&directory, "modalias"));
                }
                _ => {}
            }
        }
    }
    let mut aliases: Vec<_> = aliases.into_iter().collect();
    aliases.sort();
    aliases
}

/// Module names treat `-` and `_` alike.
fn normalize(name: &str) -> String {
    name.replace('-', "_")
}

fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    normalize(file.split(".ko").next().unwrap_or(file))
}

fn parse_dependencies(text: &str) -> HashMap<String, ModuleFile> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(path, dependencies)| {
            let file = ModuleFile { path: path.trim().to_owned(), dependencies: dependencies.to_owned() };
            (module_name(path), file)
        })
        .collect()
}

fn parse_firmware(text: &str) -> HashMap<String, Vec<String>> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(name, files)| (normalize(name), files.split_whitespace().map(str::to_owned).collect()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> ModuleIndex {
        let directory = tempfile::tempdir().unwrap();
        fs::write(
            directory.path().join("modules.dep"),
            "kernel/net/virtio_net.ko: kernel/net/net_failover.ko kernel/net/failover.ko\n\
             kernel/net/net_failover.ko: kernel/net/failover.ko\n\
             kernel/net/failover.ko:\n\
             kernel/net/af_packet.ko.zst:\n",
        )
        .unwrap();
        fs::write(
            directory.path().join("modules.alias"),
            "# comment\nalias virtio:d00000001v* virtio_net\nalias net-pf-17 af-packet\n\
             alias acpi*:IPI0001:* ipmi-si\nalias acpi:IPI0001:IPI* ipmi-msghandler\n",
        )
        .unwrap();
        ModuleIndex::open(directory.path()).unwrap()
    }

    #[test]
    fn aliases_find_their_modules() {
        let index = index();
        for (alias, expected) in [
            ("virtio:d00000001v00001AF4", vec!["virtio_net"]),
            ("net-pf-17", vec!["af_packet"]),
            ("virtio-net", vec!["virtio_net"]),
            ("virtio:d00000002v00001AF4", vec![]),
            ("acpi:IPI0001:IPI0100:", vec!["ipmi_msghandler", "ipmi_si"]),
        ] {
            assert_eq!(index.claimants(alias), expected, "{alias}");
        }
    }

    #[test]
    fn parameters_come_from_the_kernel_line() {
        let line =
            "quiet scsi-debug.delay=250 console=ttyS0,115200 scsi_debug.num_tgts=2 scsi_mod.scan=sync a.b";
        for (module, expected) in [
            ("scsi_debug", "delay=250 num_tgts=2"),
            ("scsi_mod", "scan=sync"),
            ("bonding", "max_bonds=0"),
            ("ahci", ""),
        ] {
            assert_eq!(parameters(module, line).to_str(), Ok(expected), "{module}");
        }
    }

    #[test]
    fn an_unknown_module_is_taken_to_be_built_in() {
        assert!(index().load("ext4").is_ok());
    }

    #[test]
    fn a_missing_file_names_its_path() {
        let text = index().load("failover").unwrap_err().to_string();
        assert!(text.contains("kernel/net/failover.ko"), "{text}");
    }
}
