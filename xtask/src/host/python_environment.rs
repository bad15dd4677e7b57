//! Programs from PyPI, each in an environment of its own with exactly the packages that a file names.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::command::{command, run};
use super::workspace::Workspace;

/// Installs the packages of `requirements` in `folder`, unless they are there.
pub fn install(name: &str, requirements: &Path, folder: &Path) -> Result<()> {
    // Written last: it tells that the environment is complete, of which packages, and where. Moved elsewhere its programs
    // would look for their Python where it was.
    let mark = folder.join("requirements.txt");
    let wanted = format!("{}# in {}\n", fs::read_to_string(requirements)?, folder.display());
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    println!("Installing {name} in {} (takes a minute or two, once)", folder.display());
    run(command("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    run(command(folder.join("bin/pip"))
        .args(["install", "--quiet", "--disable-pip-version-check", "--requirement"])
        .arg(requirements))?;
    Ok(fs::write(&mark, wanted)?)
}

/// Unpacks the packages of `requirements` below `folder` as Python `version` on this architecture needs
/// them, whatever Python this machine has.
pub fn unpack(workspace: &Workspace, requirements: &Path, version: &str, folder: &Path) -> Result<()> {
    let environment = workspace.cache().join("pip");
    if !environment.join("bin/pip").exists() {
        run(command("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    }
    let mut pip = command(environment.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--upgrade", "--no-deps", "--no-compile"]);
    pip.args(["--only-binary", ":all:", "--implementation", "cp", "--python-version", version]);
    for glibc in ["manylinux2014", "manylinux_2_28"] {
        pip.args(["--platform", &format!("{glibc}_{}", std::env::consts::ARCH)]);
    }
    run(pip.args(["--platform", "any", "--requirement"]).arg(requirements).arg("--target").arg(folder))
}

/// The environment of schemathesis, which tries the agent's interface.
pub fn schemathesis(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.cache().join("schemathesis");
    install("schemathesis", &workspace.root.join("tests/openapi/requirements.txt"), &folder)?;
    Ok(folder)
}

/// The environment of operators' clients, with the tests of their own that they come with.
pub fn clients(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.cache().join("clients");
    install("operators' clients", &workspace.root.join("tests/client/requirements.txt"), &folder)?;
    Ok(folder)
}

/// The environment of Ansible, whose collections need an older library than the clients have.
pub fn ansible(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.cache().join("ansible");
    install("Ansible", &workspace.root.join("tests/client/ansible-requirements.txt"), &folder)?;
    Ok(folder)
}

/// The environment of a cloud: Keystone and Neutron.
pub fn openstack(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.cache().join("openstack");
    install("Keystone and Neutron", &workspace.root.join("tests/openstack/requirements.txt"), &folder)?;
    Ok(folder)
}
