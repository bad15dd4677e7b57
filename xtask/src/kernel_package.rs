//! The distribution's kernel for servers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::debian_packages::Packages;

/// A kernel package, unpacked.
#[derive(Debug)]
pub struct Kernel {
    /// The kernel's file.
    pub image: PathBuf,
    /// Its modules, `/lib/modules/<release>` of the package.
    pub modules: PathBuf,
}

/// Downloads and unpacks the kernel that this distribution has for servers, once.
pub fn fetch(packages: &Packages) -> Result<Kernel> {
    let names = kernel_packages(packages)?;
    locate(&packages.unpacked(&names.iter().map(String::as_str).collect::<Vec<_>>())?)
}

/// Packages of the kernel and its modules.
fn kernel_packages(packages: &Packages) -> Result<Vec<String>> {
    let os_release = fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
    let meta_package = meta_package(&os_release, packages.architecture())?;
    packages.ensure_known(&meta_package)?;
    let mut found = Vec::new();
    let mut unseen = vec![meta_package.clone()];
    while let Some(package) = unseen.pop() {
        for part in kernel_parts(&packages.dependencies(&package)?) {
            if !found.contains(&part) {
                unseen.push(part.clone());
                found.push(part);
            }
        }
    }
    if found.is_empty() {
        bail!("{meta_package} depends on no kernel; run apt-get update and try again");
    }
    found.sort();
    Ok(found)
}

/// The package whose dependencies are the newest kernel for servers.
fn meta_package(os_release: &str, architecture: &str) -> Result<String> {
    let field = |name| os_release.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let family = format!("{} {}", field("ID="), field("ID_LIKE="));
    // Ubuntu says that it is like Debian.
    if family.contains("ubuntu") {
        Ok("linux-image-generic".to_owned())
    } else if family.contains("debian") {
        Ok(format!("linux-image-{architecture}"))
    } else {
        bail!("kernel packages are known for Debian and Ubuntu, and /etc/os-release names neither");
    }
}

/// Versioned packages with parts of a kernel in the answer of `apt-cache depends`.
fn kernel_parts(dependencies: &str) -> Vec<String> {
    dependencies
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .filter(|name| name.starts_with("linux-image-") || name.starts_with("linux-modules-"))
        .filter(|name| name.contains(|character: char| character.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

fn locate(folder: &Path) -> Result<Kernel> {
    let only_entry = |parent: PathBuf, prefix: &str| {
        let entries = fs::read_dir(&parent).with_context(|| format!("cannot read {}", parent.display()))?;
        let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths
            .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
            .with_context(|| {
                format!("{} has no {prefix}*; delete {} and try again", parent.display(), folder.display())
            })
    };
    // Distributions with a merged /usr may keep the modules there.
    let modules = ["lib/modules", "usr/lib/modules"].map(|path| folder.join(path));
    let modules = modules.iter().find(|path| path.exists()).unwrap_or(&modules[0]);
    Ok(Kernel {
        image: only_entry(folder.join("boot"), "vmlinuz-")?,
        modules: only_entry(modules.clone(), "")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_decides() {
        for (os_release, expected) in [
            ("PRETTY_NAME=\"Debian\"\nID=debian\n", Some("linux-image-amd64")),
            ("ID=ubuntu\nID_LIKE=debian\n", Some("linux-image-generic")),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", Some("linux-image-generic")),
            ("ID=fedora\n", None),
        ] {
            assert_eq!(meta_package(os_release, "amd64").ok().as_deref(), expected, "{os_release}");
        }
    }

    #[test]
    fn only_versioned_parts_of_a_kernel_are_followed() {
        let answer = "linux-image-generic\n  Depends: linux-image-6.8.0-31-generic\n  \
                      Depends: linux-modules-extra-6.8.0-31-generic\n  Depends: linux-firmware\n \
                      |Depends: linux-image-unsigned\n  Conflicts: linux-image-6.7.0-1\n";
        let expected = ["linux-image-6.8.0-31-generic", "linux-modules-extra-6.8.0-31-generic"];
        assert_eq!(kernel_parts(answer), expected);
    }
}
