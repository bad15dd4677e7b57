//! The modules of one kernel, as the distribution's package lays them out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use object::read::ReadCache;

use crate::compress::{Compression, read_decompressed};
use crate::error::BuildError;
use crate::modinfo::{ModInfo, module_name};

/// One loadable module.
#[derive(Debug, Clone)]
pub struct Module {
    /// Path below the tree's root without the compression's suffix, such as `kernel/fs/ext4/ext4.ko`.
    pub path: String,
    /// Where it is on the build machine.
    pub source: PathBuf,
    /// What it says about itself.
    pub info: ModInfo,
}

/// The folder `/lib/modules/<release>` of one kernel.
#[derive(Debug)]
pub struct ModuleTree {
    /// Release of the kernel.
    pub release: String,
    /// The folder itself.
    pub root: PathBuf,
    /// Loadable modules by name.
    pub modules: BTreeMap<String, Module>,
    /// Names of the modules that are part of the kernel's own file.
    pub built_in: BTreeSet<String>,
}

impl ModuleTree {
    /// Reads every module's description below `root`.
    ///
    /// # Errors
    ///
    /// [`BuildError`] naming the file when one cannot be read or is no module, or when there is none.
    pub fn read(root: &Path) -> Result<Self, BuildError> {
        let canonical = root.canonicalize().map_err(BuildError::reading(root))?;
        let release = canonical
            .file_name()
            .and_then(|name| name.to_str())
            .filter(|name| name.starts_with(|first: char| first.is_ascii_digit()))
            .ok_or_else(|| BuildError::NoRelease { path: canonical.clone() })?
            .to_owned();
        let mut tree =
            Self { release, built_in: read_built_in(root)?, root: root.to_owned(), modules: BTreeMap::new() };
        tree.read_folder(root)?;
        if tree.modules.is_empty() {
            return Err(BuildError::NoModules { path: root.to_owned() });
        }
        Ok(tree)
    }

    fn read_folder(&mut self, folder: &Path) -> Result<(), BuildError> {
        for entry in fs::read_dir(folder).map_err(BuildError::reading(folder))? {
            let entry = entry.map_err(BuildError::reading(folder))?;
            let path = entry.path();
            // Links such as `build` and `source` lead out of the tree.
            if entry.file_type().map_err(BuildError::reading(&path))?.is_dir() {
                self.read_folder(&path)?;
            } else if let Some((name, relative)) = self.identity(&path) {
                let info = read_info(&path)?;
                self.modules.insert(name, Module { path: relative, source: path, info });
            }
        }
        Ok(())
    }

    /// Name of the module in `file` and its path below the root, if it is a module.
    fn identity(&self, file: &Path) -> Option<(String, String)> {
        let relative = file.strip_prefix(&self.root).ok()?.to_str()?;
        let end = relative.rfind(".ko").map(|at| at + ".ko".len())?;
        let (relative, suffix) = relative.split_at(end);
        let stem = Path::new(relative).file_stem()?.to_str()?;
        Compression::of(suffix).map(|_| (module_name(stem), relative.to_owned()))
    }
}

fn read_built_in(root: &Path) -> Result<BTreeSet<String>, BuildError> {
    let path = root.join("modules.builtin");
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        result => result.map_err(BuildError::reading(&path))?,
    };
    Ok(text.lines().filter_map(|line| Some(module_name(Path::new(line).file_stem()?.to_str()?))).collect())
}

fn read_info(path: &Path) -> Result<ModInfo, BuildError> {
    let info = if path.extension().is_some_and(|extension| extension == "ko") {
        let file = File::open(path).map_err(BuildError::reading(path))?;
        // Reads the few kilobytes looked at, not the whole of several thousand files.
        let cache = ReadCache::new(file);
        ModInfo::from_elf(&cache)
    } else {
        ModInfo::from_elf(&*read_decompressed(path)?)
    };
    info.map_err(|error| BuildError::Elf { path: path.to_owned(), reason: error.to_string() })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use super::*;
    use crate::modinfo::tests::synthetic_module;

    /// A tree of modules that are not there, by their paths and fields.
    pub(crate) fn tree(modules: &[(&str, &[&str])]) -> ModuleTree {
        let module = |(path, fields): &(&str, &[&str])| {
            let info = ModInfo::from_section(fields.join("\0").as_bytes());
            let name = module_name(Path::new(path).file_stem().unwrap().to_str().unwrap());
            (name, Module { path: (*path).to_owned(), source: "/".into(), info })
        };
        ModuleTree {
            release: "6.1".into(),
            root: "/lib/modules/6.1".into(),
            modules: modules.iter().map(module).collect(),
            built_in: BTreeSet::new(),
        }
    }

    /// Writes `/lib/modules/<release>` with modules of the given paths and fields.
    pub(crate) fn write_tree(root: &Path, modules: &[(&str, &[&str])]) {
        for (path, fields) in modules {
            let file = root.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            let elf = synthetic_module(fields);
            let bytes = match file.extension().unwrap().to_str().unwrap() {
                "gz" => {
                    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                    encoder.write_all(&elf).unwrap();
                    encoder.finish().unwrap()
                }
                "xz" => {
                    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
                    encoder.write_all(&elf).unwrap();
                    encoder.finish().unwrap()
                }
                "zst" => zstd::encode_all(&*elf, 1).unwrap(),
                _ => elf,
            };
            fs::write(file, bytes).unwrap();
        }
    }

    #[test]
    fn modules_are_found_whatever_their_compression() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("6.1.0-test");
        let fields: &[&str] = &["depends=virtio"];
        let files = ["kernel/a.ko", "kernel/b/b-b.ko.gz", "kernel/c.ko.xz", "updates/d.ko.zst"];
        write_tree(&root, &files.map(|file| (file, fields)));
        fs::write(root.join("modules.builtin"), "kernel/drivers/virtio/virtio-ring.ko\n").unwrap();
        fs::write(root.join("modules.order"), "kernel/a.ko\n").unwrap();

        let tree = ModuleTree::read(&root).unwrap();
        assert_eq!(tree.release, "6.1.0-test");
        let found: Vec<_> = tree.modules.iter().map(|(name, module)| (&**name, &*module.path)).collect();
        let expected =
            [("a", "kernel/a.ko"), ("b_b", "kernel/b/b-b.ko"), ("c", "kernel/c.ko"), ("d", "updates/d.ko")];
        assert_eq!(found, expected);
        for module in tree.modules.values() {
            assert_eq!(module.info.depends, ["virtio"]);
            assert_eq!(read_decompressed(&module.source).unwrap(), synthetic_module(fields));
        }
        assert!(tree.built_in.contains("virtio_ring"));
    }

    #[test]
    fn folders_without_modules_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("6.1.0-test");
        fs::create_dir(&empty).unwrap();
        assert!(matches!(ModuleTree::read(&empty), Err(BuildError::NoModules { .. })));
        let unnamed = folder.path().join("modules");
        fs::create_dir(&unnamed).unwrap();
        assert!(matches!(ModuleTree::read(&unnamed), Err(BuildError::NoRelease { .. })));
        let missing = folder.path().join("6.2");
        assert!(matches!(ModuleTree::read(&missing), Err(BuildError::Read { .. })));
    }
}
