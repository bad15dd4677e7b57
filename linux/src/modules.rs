//! Loading kernel modules by name or by the alias of a device.
//!
//! Reads the text formats of kmod: `modules.dep` (`path: dependency …`) and `modules.alias`
//! (`alias PATTERN NAME`), with paths relative to the release's folder.

use nix::errno::Errno;
use nix::kmod::{ModuleInitFlags, finit_module};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The modules of one kernel release.
#[derive(Debug, Default)]
pub struct ModuleIndex {
    directory: PathBuf,
    modules: HashMap<String, ModuleFile>,
    aliases: Vec<(String, String)>,
    settled: Mutex<HashSet<String>>,
}

#[derive(Debug, PartialEq, Eq)]
struct ModuleFile {
    path: String,
    dependencies: Vec<String>,
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
    /// The module's file is missing.
    #[error("module file {path} cannot be opened: build the ramdisk again")]
    Open {
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
    /// Reads the index of the running kernel under `/lib/modules`.
    ///
    /// # Errors
    ///
    /// [`ModuleError::Index`] when there is none.
    pub fn of_running_kernel() -> Result<Self, ModuleError> {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self::open(&Path::new("/lib/modules").join(release.trim()))
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
            aliases: parse_aliases(&read("modules.alias")?),
            settled: Mutex::default(),
        })
    }

    /// Modules that claim an alias, such as a device's `modalias`. A module name is its own alias.
    pub fn claimants(&self, alias: &str) -> Vec<&str> {
        let name = normalize(alias);
        if let Some((name, _)) = self.modules.get_key_value(&name) {
            return vec![name];
        }
        let mut names: Vec<&str> = Vec::new();
        for (pattern, name) in &self.aliases {
            if matches(pattern.as_bytes(), alias.as_bytes()) && !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// Loads whatever claims an alias. Each module is tried once; a failing one does not keep the
    /// others from being loaded.
    pub fn load_alias(&self, alias: &str) -> Vec<ModuleError> {
        self.claimants(alias).into_iter().filter_map(|name| self.load(name).err()).collect()
    }

    /// Loads a module after those it needs. Loaded already is fine; unknown names are taken to be
    /// built into the kernel.
    ///
    /// # Errors
    ///
    /// [`ModuleError::Open`] or [`ModuleError::Load`].
    pub fn load(&self, name: &str) -> Result<(), ModuleError> {
        let name = normalize(name);
        let Some(module) = self.modules.get(&name) else { return Ok(()) };
        if !self.settled.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(name.clone()) {
            return Ok(());
        }
        for dependency in module.dependencies.iter().rev() {
            self.load(&module_name(dependency))?;
        }
        let path = self.directory.join(&module.path);
        let file = File::open(&path).map_err(|source| ModuleError::Open { path, source })?;
        match finit_module(&file, c"", ModuleInitFlags::empty()) {
            Ok(()) | Err(Errno::EEXIST) => Ok(()),
            Err(source) => Err(ModuleError::Load { name, source }),
        }
    }
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
            let dependencies = dependencies.split_whitespace().map(str::to_owned).collect();
            (module_name(path), ModuleFile { path: path.trim().to_owned(), dependencies })
        })
        .collect()
}

fn parse_aliases(text: &str) -> Vec<(String, String)> {
    text.lines()
        .filter_map(|line| {
            let (pattern, name) = line.strip_prefix("alias ")?.rsplit_once(' ')?;
            Some((pattern.to_owned(), normalize(name)))
        })
        .collect()
}

/// Shell-like matching with `*`, `?` and `[a-z]`, as aliases use it.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Position to fall back to: pattern after the last star, text where that star ends.
    let mut star: Option<(usize, usize)> = None;
    let (mut p, mut t) = (0, 0);
    while t < text.len() {
        let step = match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(b'?') => Some(1),
            Some(b'[') => set_length(&pattern[p..], text[t]),
            Some(byte) if *byte == text[t] => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(length), _) => {
                p += length;
                t += 1;
            }
            (None, Some((after_star, taken))) => {
                star = Some((after_star, taken + 1));
                p = after_star;
                t = taken + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Length of the set at the start of `pattern` when it holds `byte`.
fn set_length(pattern: &[u8], byte: u8) -> Option<usize> {
    let end = pattern.iter().position(|c| *c == b']')?;
    let mut set = &pattern[1..end];
    while let [first, rest @ ..] = set {
        let (last, rest) = match rest {
            [b'-', last, rest @ ..] => (last, rest),
            _ => (first, rest),
        };
        if (*first..=*last).contains(&byte) {
            return Some(end + 1);
        }
        set = rest;
    }
    None
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
            "# comment\nalias virtio:d00000001v* virtio_net\nalias net-pf-17 af-packet\n",
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
        ] {
            assert_eq!(index.claimants(alias), expected, "{alias}");
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

    #[test]
    fn patterns_match_like_a_shells() {
        for (pattern, text, expected) in [
            ("pci:v*d*sv*", "pci:v00008086d0000100Esv0000", true),
            ("a*b*c", "aXXbYYc", true),
            ("a*b*c", "aXXbYY", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("input:k*2[0-9A]*", "input:k12Az", true),
            ("x[ab]y", "xcy", false),
            ("x[", "x[", false),
            ("*", "", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }
}
