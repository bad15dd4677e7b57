//! Packages of the distribution, downloaded and unpacked but never installed: an installation of a
//! kernel or boot loader would change this machine's own boot files, and another architecture's
//! packages cannot be installed at all.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::{as_root, command, run, run_quietly};
use crate::workspace::Workspace;

/// Downloads the lists, and fails without one of them: by itself apt takes old or no lists then, and succeeds.
const UPDATE: [&str; 4] = ["-qq", "-oAcquire::Retries=3", "-oAPT::Update::Error-Mode=any", "update"];
/// File with the sources in a state of its own.
const SOURCES: &str = "sources.list";

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
        let cache = workspace.cache().join("packages/firmware");
        let (state, architecture) = (Some(cache.join("apt")), debian_architecture(std::env::consts::ARCH));
        let packages = Self { cache, architecture, state, sources: Some(FIRMWARE_SOURCE) };
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

    /// Makes sure that the lists know `package`.
    ///
    /// # Errors
    ///
    /// This machine's own lists cannot be updated.
    pub fn ensure_known(&self, package: &str) -> Result<()> {
        if self.state.is_none() && run_quietly(self.apt("apt-cache").args(["show", package])).is_err() {
            run(as_root("apt-get").args(UPDATE))?;
        }
        Ok(())
    }

    /// What `apt-cache depends` says.
    ///
    /// # Errors
    ///
    /// There is no such package.
    pub fn dependencies(&self, package: &str) -> Result<String> {
        run_quietly(self.apt("apt-cache").args(["depends", "--no-recommends", package]))
    }

    /// Downloads and unpacks packages into one folder, once for each set of versions.
    ///
    /// # Errors
    ///
    /// A package is not known, cannot be downloaded or unpacked.
    pub fn unpacked(&self, names: &[&str]) -> Result<PathBuf> {
        let versions = names.iter().map(|name| self.with_version(name)).collect::<Result<Vec<_>>>()?;
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
        versions.hash(&mut hasher);
        let first = versions.first().and_then(|version| version.split('=').next()).unwrap_or_default();
        self.cache.join(format!("{first}-{:016x}", hasher.finish()))
    }

    /// `name=version` of the newest version.
    fn with_version(&self, package: &str) -> Result<String> {
        self.ensure_known(package)?;
        let description = run_quietly(self.apt("apt-cache").args(["show", "--no-all-versions", package]))?;
        let version = description.lines().find_map(|line| line.strip_prefix("Version: "));
        Ok(format!("{package}={}", version.with_context(|| format!("apt knows no version of {package}"))?))
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
            fs::remove_file(&package)?;
        }
        Ok(())
    }

    fn apt(&self, program: &str) -> Command {
        let mut apt = command(program);
        if let Some(state) = &self.state {
            let state = state.display();
            if self.sources.is_some() {
                apt.arg(format!("-oDir::Etc::sourcelist={state}/{SOURCES}")).arg("-oDir::Etc::sourceparts=-");
            }
            for option in [
                format!("APT::Architecture={}", self.architecture),
                format!("APT::Architectures={}", self.architecture),
                format!("Dir::State::Lists={state}/lists"),
                "Dir::State::status=/dev/null".to_owned(),
                format!("Dir::Cache={state}"),
            ] {
                apt.arg(format!("-o{option}"));
            }
        }
        apt
    }
}

fn debian_architecture(arch: &str) -> &'static str {
    if arch == "aarch64" { "arm64" } else { "amd64" }
}
