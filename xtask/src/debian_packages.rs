//! Packages of the distribution, downloaded and unpacked but never installed: an installation of a
//! kernel or boot loader would change this machine's own boot files, and another architecture's
//! packages cannot be installed at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{as_root, command, run, run_quietly};
use crate::workspace::Workspace;

/// The distribution's packages for one architecture.
#[derive(Debug)]
pub struct Packages {
    cache: PathBuf,
    /// The architecture in Debian's spelling.
    architecture: &'static str,
    /// apt's state when it is not this machine's own.
    state: Option<PathBuf>,
}

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
        let packages = Self { cache, architecture, state };
        if let Some(state) = &packages.state
            && !state.join("updated").exists()
        {
            for folder in ["lists/partial", "archives/partial"] {
                fs::create_dir_all(state.join(folder))?;
            }
            println!("Downloading the package lists for {arch}");
            run_quietly(packages.apt("apt-get").args(["-qq", "update"]))?;
            fs::write(state.join("updated"), "")?;
        }
        Ok(packages)
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
            run(as_root("apt-get").args(["-qq", "update"]))?;
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
        let versions: Result<Vec<_>> = names.iter().map(|name| self.with_version(name)).collect();
        let versions = versions?;
        let key = versions
            .iter()
            .map(|package| package.replace(['=', ':', '/'], "_"))
            .collect::<Vec<_>>()
            .join("+");
        let folder = self.cache.join(key);
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
        for entry in fs::read_dir(folder)? {
            let package = entry?.path();
            run(command("dpkg-deb").arg("-x").arg(&package).arg(folder))?;
            fs::remove_file(&package)?;
        }
        Ok(())
    }

    fn apt(&self, program: &str) -> Command {
        let mut apt = command(program);
        if let Some(state) = &self.state {
            let state = state.display();
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
