//! The file tree of the ramdisk.

use std::fs;
use std::path::{Path, PathBuf};

use farrier_linux::kernel_line::DEFAULT_PARAMETERS;
use farrier_linux::process::{PROGRAMS, Program};
use farrier_media::KernelParameters;

use crate::closure::Closure;
use crate::compress::compressed;
use crate::cpio::Archive;
use crate::error::BuildError;
use crate::executable::Target;
use crate::kmod_index::{SUFFIX, modules_alias, modules_dep, modules_softdep};
use crate::manifest::{FileRecord, ModuleRecord, PackedFile, ProgramRecord};
use crate::package::Packages;
use crate::packer::Packer;
use crate::select::ModuleClass;

/// The agent, which is the first process. The kernel unpacks the archive in its order, which is that of
/// the names, and stops where memory ends: what stands behind is missing then, and `init` is there to say
/// so. A file system in memory takes half of what the machine has left.
const AGENT: &str = "init";

/// The agent under the names by which the DHCP client and people call it.
const AGENT_LINKS: &[(&str, &str)] =
    &[("usr/bin/farrier-agent", "../../init"), ("usr/libexec/farrier/dhcp-event", "../../../init")];

/// Programs of the user of a rescued machine.
const LOGIN_LINKS: &[(&str, &str)] = &[("bin/login", "../usr/bin/busybox"), ("bin/sh", "../usr/bin/busybox")];

/// Folders that are mounted upon or written to.
const FOLDERS: &[(&str, u32)] = &[
    ("dev", 0o755),
    ("etc", 0o755),
    ("etc/dropbear", 0o700),
    ("etc/ipa-rescue-config", 0o700),
    ("proc", 0o555),
    ("root", 0o700),
    ("run", 0o755),
    ("sbin", 0o755),
    ("sys", 0o555),
    ("tmp", 0o1777),
];

/// Adds the agent and what every ramdisk has.
pub fn add_agent(archive: &mut Archive, agent: Vec<u8>) {
    for (path, permissions) in FOLDERS {
        archive.directory(path, *permissions);
    }
    // The kernel gives PID 1 this console before anything is mounted.
    archive.character_device("dev/console", 0o600, 5, 1);
    archive.file(AGENT, 0o755, agent);
    for (link, target) in AGENT_LINKS.iter().chain(LOGIN_LINKS) {
        archive.symlink(link, target);
    }
}

/// Adds the modules with their indexes, and the list of those to load at every start.
///
/// Each module is compressed for itself: the agent unpacks only the few that the machine needs, and the
/// rest takes less of its memory.
///
/// # Errors
///
/// [`BuildError::Read`] when a module cannot be read, [`BuildError::Write`] for the cache.
pub fn add_modules(
    archive: &mut Archive,
    release: &str,
    closure: &Closure,
    classes: &[ModuleClass],
    cache: Option<&Path>,
) -> Result<Vec<(String, ModuleRecord)>, BuildError> {
    let root = format!("lib/modules/{release}");
    let mut records = Vec::new();
    let sources: Vec<_> = closure.modules.values().map(|module| &*module.source).collect();
    for ((name, module), content) in closure.modules.iter().zip(compressed(&sources, cache)?) {
        let path = format!("{}{SUFFIX}", module.path);
        archive.file(&format!("{root}/{path}"), 0o644, content.clone());
        let file = FileRecord::of(&content);
        records.push(((*name).to_owned(), ModuleRecord { path, license: module.info.license.clone(), file }));
    }
    for (index, text) in [
        ("modules.alias", modules_alias(&closure.modules)),
        ("modules.dep", modules_dep(&closure.modules)),
        ("modules.softdep", modules_softdep(&closure.modules)),
    ] {
        archive.file(&format!("{root}/{index}"), 0o644, text.into_bytes());
    }
    let always = classes.iter().flat_map(|class| class.always_loaded);
    let packed = always.filter(|name| closure.modules.contains_key(**name));
    let always: String = packed.map(|name| format!("{name}\n")).collect();
    archive.file("etc/modules-load.d/farrier.conf", 0o644, always.into_bytes());
    Ok(records)
}

/// Adds the parameters that hold where the kernel command line says nothing else.
pub fn add_parameters(archive: &mut Archive, parameters: &KernelParameters) {
    let path = DEFAULT_PARAMETERS.trim_start_matches('/');
    archive.file(path, 0o644, format!("{parameters}\n").into_bytes());
}

/// Adds the helper programs that every ramdisk has, taken from below `root`, and the libraries that these
/// need. What is packed is that of named packages in known versions, whatever machine builds.
///
/// # Errors
///
/// [`BuildError::Program`] for a missing one, [`BuildError::OtherPackage`] and [`BuildError::Owner`] for one of
/// another package or of none, or those of [`Packer::add_program_as`] for one that would not run in the ramdisk.
pub fn add_programs(
    archive: &mut Archive,
    root: &Path,
    target: Target,
) -> Result<(Vec<ProgramRecord>, Vec<PackedFile>), BuildError> {
    let packages = Packages::below(root)?;
    let mut packer = Packer::new(archive, target);
    let mut records = Vec::new();
    let packed = || PROGRAMS.iter().filter(|program| !program.is_optional);
    for program in packed() {
        let source = find_program(program, root)?;
        let content = fs::read(&source).map_err(BuildError::reading(&source))?;
        let below = source.strip_prefix(root).unwrap_or(&source).to_string_lossy().into_owned();
        let file = packages.describe(&below, program.path, FileRecord::of(&content))?;
        if file.package != program.package {
            return Err(BuildError::OtherPackage {
                path: source,
                found: file.package,
                wanted: program.package,
            });
        }
        records.push(ProgramRecord { name: program.name, file });
        packer.add_program_as(root, &source, program.path.trim_start_matches('/'))?;
    }
    let is_program = |path: &str| packed().any(|program| program.path.trim_start_matches('/') == path);
    let libraries = packer.added.into_iter().filter(|library| !is_program(&library.path));
    let libraries = libraries.map(|library| packages.describe(&library.path, &library.path, library.file));
    Ok((records, libraries.collect::<Result<_, _>>()?))
}

/// Looks where the ramdisk has the program, and where distributions with a separate `/bin` have it.
fn find_program(program: &Program, root: &Path) -> Result<PathBuf, BuildError> {
    let path = root.join(program.path.trim_start_matches('/'));
    let candidates =
        [path.clone(), root.join("bin").join(program.name), root.join("sbin").join(program.name)];
    candidates.into_iter().find(|candidate| candidate.is_file()).ok_or(BuildError::Program {
        program: program.name,
        path,
        package: program.package,
    })
}
