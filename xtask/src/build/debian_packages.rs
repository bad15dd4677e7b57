//! Packages of the distribution, downloaded and unpacked but never installed: an installation of a
//! kernel or boot loader would change this machine's own boot files, and another architecture's
//! packages cannot be installed at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::host::command::{as_root, command, run, run_quietly};
use crate::host::workspace::Workspace;

/// Downloads the lists, and fails without one of them: by itself apt takes old or no lists then, and succeeds.
const UPDATE: [&str; 4] = ["-qq", "-oAcquire::Retries=3", "-oAPT::Update::Error-Mode=any", "update"];
/// File with the sources in a state of its own.
const SOURCES: &str = "sources.list";
/// Whatever is installed here decides nothing, and apt's own cache stays as it is.
const NOTHING_INSTALLED: [&str; 3] =
    ["-oDir::State::status=/dev/null", "-oDir::Cache::pkgcache=", "-oDir::Cache::srcpkgcache="];
/// Asks for no relations but those of need.
const NEEDS_ONLY: [&str; 8] = [
    "depends",
    "--recurse",
    "--no-recommends",
    "--no-suggests",
    "--no-conflicts",
    "--no-breaks",
    "--no-replaces",
    "--no-enhances",
];
/// dpkg's database below a root, which tells farrier-image what is unpacked there.
const DATABASE: &str = "var/lib/dpkg";

/// The distribution's packages for one architecture.
#[derive(Debug)]
pub struct Packages {
    cache: PathBuf,
    /// The architecture in Debian's spelling.
    architecture: &'static str,
    /// apt's state when it is not this machine's own.
    state: Option<PathBuf>,
    /// Where packages come from when those are not this machine's own sources.
    sources: Option<&'static str>,
}

/// Debian's firmware, which is no part of Debian.
const FIRMWARE_SOURCE: &str = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
                               http://deb.debian.org/debian bookworm non-free-firmware\n";

/// The first Debian whose iPXE is for aarch64 too.
const NEWER_IPXE_SOURCE: &str = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
                                 http://deb.debian.org/debian trixie main\n";

impl Packages {
    /// Packages for an architecture in the kernel's spelling.
    ///
    /// # Errors
    ///
    /// The lists of another architecture cannot be downloaded.
    pub fn of(workspace: &Workspace, arch: &str) -> Result<Self> {
        let architecture = debian_architecture(arch);
        let cache = workspace.cache().join("packages").join(arch);
        let foreign = arch != std::env::consts::ARCH;
        let state = foreign.then(|| cache.join("apt"));
        let packages = Self { cache, architecture, state, sources: None };
        packages.ensure_lists()?;
        Ok(packages)
    }

    /// Packages with the firmware of devices, the same for every architecture.
    ///
    /// # Errors
    ///
    /// Their list cannot be downloaded.
    pub fn of_firmware(workspace: &Workspace) -> Result<Self> {
        Self::of_source(workspace, "firmware", FIRMWARE_SOURCE)
    }

    /// The package with iPXE for several architectures.
    ///
    /// # Errors
    ///
    /// The list cannot be downloaded.
    pub fn of_newer_ipxe(workspace: &Workspace) -> Result<Self> {
        Self::of_source(workspace, "ipxe", NEWER_IPXE_SOURCE)
    }

    /// Packages of another source than this machine's own.
    fn of_source(workspace: &Workspace, name: &str, source: &'static str) -> Result<Self> {
        let cache = workspace.cache().join("packages").join(name);
        let (state, architecture) = (Some(cache.join("apt")), debian_architecture(std::env::consts::ARCH));
        let packages = Self { cache, architecture, state, sources: Some(source) };
        packages.ensure_lists()?;
        Ok(packages)
    }

    /// Has lists in a state of its own.
    fn ensure_lists(&self) -> Result<()> {
        let Some(state) = self.state.as_ref().filter(|state| !state.join("updated").exists()) else {
            return Ok(());
        };
        for folder in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(state.join(folder))?;
        }
        if let Some(sources) = self.sources {
            fs::write(state.join(SOURCES), sources)?;
        }
        println!("Downloading the package lists for {}", self.cache.display());
        run_quietly(self.apt("apt-get").args(UPDATE))?;
        Ok(fs::write(state.join("updated"), "")?)
    }

    /// The architecture in Debian's spelling.
    pub fn architecture(&self) -> &'static str {
        self.architecture
    }

    /// What apt-cache says, from newer lists when this machine's own do not know what it is asked for.
    fn ask(&self, question: &[&str], packages: &[&str]) -> Result<String> {
        let ask = || run_quietly(self.apt("apt-cache").args(question).args(packages));
        match ask() {
            Err(_) if self.state.is_none() => {
                run(as_root("apt-get").args(UPDATE))?;
                ask()
            }
            answer => answer,
        }
    }

    /// `roots`, and all that they need and that the needed need, among those that `is_part` names; in the order
    /// of the names.
    ///
    /// # Errors
    ///
    /// There is no such package.
    pub fn with_needed(&self, roots: &[&str], is_part: impl Fn(&str) -> bool) -> Result<Vec<String>> {
        let answer = self.ask(&NEEDS_ONLY, roots)?;
        Ok(needed(&answer, roots, is_part))
    }

    /// Downloads and unpacks packages into one folder, once for each set of versions, with dpkg's database of
    /// them.
    ///
    /// # Errors
    ///
    /// A package is not known, cannot be downloaded or unpacked.
    pub fn unpacked(&self, names: &[impl AsRef<str>]) -> Result<PathBuf> {
        let versions = self.with_versions(&names.iter().map(AsRef::as_ref).collect::<Vec<_>>())?;
        let folder = self.folder_of(&versions);
        if folder.exists() {
            return Ok(folder);
        }
        println!("Downloading {}", versions.join(" "));
        let unfinished = folder.with_extension("unfinished");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)?;
        }
        self.unpack(&versions, &unfinished)?;
        fs::rename(&unfinished, &folder)?;
        Ok(folder)
    }

    /// Named by the first package and all versions. apt-get downloads to another place without a word when
    /// the path of its folder is longer than 300 bytes.
    fn folder_of(&self, versions: &[String]) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        (DATABASE, versions).hash(&mut hasher);
        let first = versions.first().and_then(|version| version.split('=').next()).unwrap_or_default();
        self.cache.join(format!("{first}-{:016x}", hasher.finish()))
    }

    /// `name=version` of the newest versions.
    fn with_versions(&self, packages: &[&str]) -> Result<Vec<String>> {
        let answer = self.ask(&["show", "--no-all-versions"], packages)?;
        let of_each = packages.iter().map(|package| {
            let version = version(&answer, package);
            let version = version.with_context(|| format!("apt knows no version of {package}"))?;
            Ok(format!("{package}={version}"))
        });
        of_each.collect()
    }

    fn unpack(&self, packages: &[String], folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        run_quietly(self.apt("apt-get").arg("download").args(packages).current_dir(folder))?;
        let downloaded = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
        if downloaded.len() != packages.len() {
            bail!("apt-get downloaded {} files for {}", downloaded.len(), packages.join(" "));
        }
        for entry in downloaded {
            let package = entry.path();
            run(command("dpkg-deb").arg("-x").arg(&package).arg(folder))?;
            record(&package, folder)?;
            fs::remove_file(&package)?;
        }
        Ok(())
    }

    fn apt(&self, program: &str) -> Command {
        let mut apt = command(program);
        apt.args(NOTHING_INSTALLED);
        if let Some(state) = &self.state {
            let state = state.display();
            if self.sources.is_some() {
                apt.arg(format!("-oDir::Etc::sourcelist={state}/{SOURCES}")).arg("-oDir::Etc::sourceparts=-");
            }
            for option in [
                format!("APT::Architecture={}", self.architecture),
                format!("APT::Architectures={}", self.architecture),
                format!("Dir::State::Lists={state}/lists"),
                format!("Dir::Cache={state}"),
            ] {
                apt.arg(format!("-o{option}"));
            }
        }
        apt
    }
}

/// A package's version in the answer of `apt-cache show`.
fn version<'a>(answer: &'a str, package: &str) -> Option<&'a str> {
    let field = |paragraph: &'a str, name| paragraph.lines().find_map(|line| line.strip_prefix(name));
    let mut paragraphs = answer.split("\n\n");
    let own = paragraphs.find(|paragraph| field(paragraph, "Package: ") == Some(package))?;
    field(own, "Version: ")
}

/// Tells the database below `folder` what `package` brought there.
fn record(package: &Path, folder: &Path) -> Result<()> {
    let control = run_quietly(command("dpkg-deb").arg("-f").arg(package))?;
    let name = control.lines().find_map(|line| line.strip_prefix("Package: "));
    let name = name.with_context(|| format!("{} does not tell its name", package.display()))?;
    let content = run_quietly(command("dpkg-deb").arg("-c").arg(package))?;
    let paths = content.lines().filter_map(|line| line.split_whitespace().nth(5));
    let list: String = paths.map(|path| format!("{}\n", path.trim_start_matches('.'))).collect();
    let database = folder.join(DATABASE);
    fs::create_dir_all(database.join("info"))?;
    fs::write(database.join("info").join(format!("{name}.list")), list)?;
    let mut status = File::options().append(true).create(true).open(database.join("status"))?;
    Ok(writeln!(status, "{}\n", control.trim_end())?)
}

/// Reads the answer of `apt-cache depends --recurse`; see [`Packages::with_needed`].
fn needed(answer: &str, roots: &[&str], is_part: impl Fn(&str) -> bool) -> Vec<String> {
    let mut needs: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut package = "";
    for line in answer.lines() {
        match line.trim().split_once("Depends: ") {
            // The other alternatives follow, and the last one has no bar.
            Some(("" | "Pre", need)) => needs.entry(package).or_default().push(need),
            _ if !line.starts_with(' ') => package = line,
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    let mut unseen = roots.to_vec();
    while let Some(next) = unseen.pop() {
        if found.insert(next) {
            let needed = needs.get(next).into_iter().flatten();
            unseen.extend(needed.copied().filter(|name| is_part(name)));
        }
    }
    found.into_iter().map(str::to_owned).collect()
}

fn debian_architecture(arch: &str) -> &'static str {
    if arch == "aarch64" { "arm64" } else { "amd64" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_package_has_its_own_version() {
        let answer = "Package: a\nVersion: 1\n\nPackage: b\nArchitecture: all\nVersion: 2:3\n";
        assert_eq!((version(answer, "a"), version(answer, "b")), (Some("1"), Some("2:3")));
        assert_eq!(version(answer, "c"), None);
    }

    #[test]
    fn needs_are_followed_among_the_parts_alone() {
        let answer = "mke2fs\n  PreDepends: libc6\n |Depends: liba\n  Depends: libb\n  Depends: perl\n\
                      libc6\n  Depends: libgcc-s1\n  Conflicts: libold\nlibb\n  Depends: libc6\n\
                      perl\n  Depends: libperl\n<virtual>\n    libx\n";
        let expected = ["libb", "libc6", "libgcc-s1", "mke2fs"];
        assert_eq!(needed(answer, &["mke2fs"], |name| name.starts_with("lib")), expected);
    }

    #[test]
    fn x40_an_unpacked_tree_tells_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let (source, root) = (folder.path().join("source"), folder.path().join("root"));
        fs::create_dir_all(source.join("DEBIAN")).unwrap();
        fs::create_dir_all(source.join("bin")).unwrap();
        fs::write(source.join("bin/busybox"), "x").unwrap();
        let control = "Package: busybox-static\nVersion: 1:1.35-4\nArchitecture: all\nMaintainer: me <me@x>\n\
                       Description: x\n";
        fs::write(source.join("DEBIAN/control"), control).unwrap();
        let package = folder.path().join("a.deb");
        run_quietly(command("dpkg-deb").arg("-b").arg(&source).arg(&package)).unwrap();
        for _ in 0..2 {
            record(&package, &root).unwrap();
        }
        let read = |path: &str| fs::read_to_string(root.join(DATABASE).join(path)).unwrap();
        assert!(read("info/busybox-static.list").lines().any(|line| line == "/bin/busybox"));
        assert_eq!(read("status").matches("Version: 1:1.35-4\n").count(), 2);
        assert_eq!(read("status").split("\n\n").filter(|paragraph| !paragraph.is_empty()).count(), 2);
    }
}
