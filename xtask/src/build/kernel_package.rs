//! The distribution's kernel for servers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::debian_packages::Packages;

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
    locate(&packages.unpacked(&names)?)
}

/// Packages of the kernel and its modules.
fn kernel_packages(packages: &Packages) -> Result<Vec<String>> {
    let os_release = fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
    let meta_package = meta_package(&os_release, packages.architecture())?;
    let mut found = packages.with_needed(&[&meta_package], is_part_of_a_kernel)?;
    found.retain(|package| *package != meta_package);
    if found.is_empty() {
        bail!("{meta_package} depends on no kernel; run apt-get update and try again");
    }
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

/// Whether a package is of one version of the kernel, and holds it or its modules.
fn is_part_of_a_kernel(package: &str) -> bool {
    let is_part = package.starts_with("linux-image-") || package.starts_with("linux-modules-");
    is_part && package.contains(|character: char| character.is_ascii_digit())
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
        for (package, expected) in [
            ("linux-image-6.8.0-31-generic", true),
            ("linux-modules-extra-6.8.0-31-generic", true),
            ("linux-image-generic", false),
            ("linux-firmware", false),
        ] {
            assert_eq!(is_part_of_a_kernel(package), expected, "{package}");
        }
    }
}
