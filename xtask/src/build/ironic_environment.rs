//! Ironic as it comes from PyPI, each version in an environment of its own, and the BMC beside it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::host::python_environment;
use crate::host::workspace::Workspace;

/// An installed Ironic.
#[derive(Debug)]
pub struct IronicEnvironment {
    /// Its version.
    pub version: String,
    /// The Python environment.
    pub folder: PathBuf,
}

/// All versions that `tests/ironic/requirements-VERSION.txt` names, installed with exactly the
/// packages of that file unless they are in the cache.
pub fn cached(workspace: &Workspace) -> Result<Vec<IronicEnvironment>> {
    let folder = workspace.root.join("tests/ironic");
    let mut environments = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let requirements = entry?.path();
        if let Some(version) = version(&requirements) {
            let folder = cached_version(workspace, &version)?;
            environments.push(IronicEnvironment { version, folder });
        }
    }
    environments.sort_by(|one, other| one.version.cmp(&other.version));
    Ok(environments)
}

/// The environment of one of these versions, installed unless it is in the cache.
pub fn cached_version(workspace: &Workspace, version: &str) -> Result<PathBuf> {
    let requirements = workspace.root.join(format!("tests/ironic/requirements-{version}.txt"));
    let folder = workspace.cache().join(format!("ironic-{version}"));
    python_environment::install(&format!("Ironic {version}"), &requirements, &folder)?;
    Ok(folder)
}

/// The environment of the release that still has the deploy interface `iscsi`, installed unless it is in the cache.
pub fn cached_with_iscsi(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.cache().join("ironic-iscsi");
    let requirements = workspace.root.join("tests/ironic/iscsi-requirements.txt");
    python_environment::install("Ironic with iSCSI", &requirements, &folder)?;
    Ok(folder)
}

/// The environment of sushy-tools, a BMC for virtual machines, installed unless it is in the cache.
pub fn cached_bmc(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.cache().join("redfish");
    python_environment::install(
        "sushy-tools",
        &workspace.root.join("tests/redfish/requirements.txt"),
        &folder,
    )?;
    Ok(folder)
}

fn version(requirements: &Path) -> Option<String> {
    let name = requirements.file_name()?.to_str()?;
    Some(name.strip_prefix("requirements-")?.strip_suffix(".txt")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_its_version() {
        for (file, expected) in [
            ("tests/ironic/requirements-39.0.0.txt", Some("39.0.0")),
            ("tests/ironic/README.md", None),
            ("tests/ironic/iscsi-requirements.txt", None),
        ] {
            assert_eq!(version(Path::new(file)).as_deref(), expected, "{file}");
        }
    }
}
