//! The ramdisk that `cargo xtask bench boot` measures beside Farrier's, and that `cargo xtask test lifecycle` has the
//! reference conductor lead: the Python agent on Debian.
//!
//! What it holds follows ironic-python-agent-builder for Debian, but in favour of the rival: no compiler,
//! no SSH server, no firmware, and Python files that are compiled beforehand.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::debian_packages::Packages;
use super::debian_tree::{self, DebianTree};
use super::kernel_package::{self, Kernel};
use crate::host::command::{as_root, command, is_root, run, shown};
use crate::host::python_environment;
use crate::host::workspace::Workspace;

/// Python of the Debian release.
const PYTHON: &str = "3.11";
/// Where that Python finds packages that are not Debian's.
const PYTHON_PACKAGES: &str = "usr/local/lib/python3.11/dist-packages";

const PACKAGES: &[&str] = &[
    "ca-certificates",
    "chrony",
    "curl",
    "dmidecode",
    "dosfstools",
    "e2fsprogs",
    "efibootmgr",
    "efivar",
    "gdisk",
    "genisoimage",
    "hdparm",
    "ipmitool",
    "iproute2",
    "iptables",
    "kmod",
    "lshw",
    "mdadm",
    "nvme-cli",
    "open-iscsi",
    "parted",
    "psmisc",
    "python3",
    "qemu-utils",
    "systemd-sysv",
    "udev",
    "util-linux",
];

const FILES: &[(&str, &str)] = &[
    ("etc/fstab", ""),
    ("etc/machine-id", ""),
    ("etc/systemd/network/20-all.network", "[Match]\nName=en* eth*\n[Network]\nDHCP=yes\n"),
    (
        "etc/systemd/system/ironic-python-agent.service",
        "[Unit]\n\
         Wants=network-online.target\n\
         After=network-online.target\n\
         [Service]\n\
         ExecStart=/usr/bin/python3 -c \"from ironic_python_agent.cmd.agent import run; run()\"\n\
         StandardOutput=journal+console\n\
         StandardError=journal+console\n\
         Restart=always\n\
         RestartSec=30s\n\
         [Install]\n\
         WantedBy=multi-user.target\n",
    ),
];

const SERVICES: &[&str] = &["systemd-networkd.service", "ironic-python-agent.service"];

/// What the builder leaves out as well.
const LEFT_OUT: &[&str] =
    &["usr/include", "usr/lib/locale", "usr/share/doc", "usr/share/man", "usr/share/info", "var/cache"];

/// The part of building that needs root; [`cached`] starts it through sudo.
#[derive(Debug, Args)]
pub struct RootArguments {
    folder: PathBuf,
    modules: PathBuf,
}

/// A folder with `vmlinuz`, the kernel of Farrier's own ramdisk, and `initramfs.img`, built unless one of
/// the same recipe is in the cache.
pub fn cached(workspace: &Workspace) -> Result<PathBuf> {
    let kernel = kernel_package::fetch(&Packages::of(workspace, "x86_64")?)?;
    let requirements = workspace.root.join("xtask/python-agent-requirements.txt");
    let mut hasher = DefaultHasher::new();
    (debian_tree::recipe(), PACKAGES, FILES, SERVICES, LEFT_OUT).hash(&mut hasher);
    (fs::read(&requirements)?, &kernel.modules).hash(&mut hasher);
    let folder = workspace.cache().join(format!("python-agent-{:016x}", hasher.finish()));
    if !folder.join("initramfs.img").exists() {
        build(workspace, &kernel, &requirements, &folder)?;
    }
    Ok(folder)
}

fn build(workspace: &Workspace, kernel: &Kernel, requirements: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    println!("Building the Python agent's ramdisk in {} (takes some minutes, once)", folder.display());
    fs::copy(&kernel.image, folder.join("vmlinuz"))?;
    python_environment::unpack(workspace, requirements, PYTHON, &folder.join("packages"))?;
    let this = std::env::current_exe()?;
    run(as_root(this).arg("python-ramdisk-as-root").arg(folder).arg(&kernel.modules))
}

/// Builds in a folder. It needs root, since the files in the ramdisk belong to root.
pub fn build_as_root(RootArguments { folder, modules }: &RootArguments) -> Result<()> {
    if !is_root() {
        bail!("only root can build the Python agent's ramdisk; run cargo xtask bench boot");
    }
    let (root, log) = (folder.join("tree"), folder.join("build.log"));
    let tree = DebianTree::bootstrap(&root, &log)?;
    println!("  packages and the agent");
    tree.install(PACKAGES)?;
    for (path, content) in FILES {
        tree.write(path, content)?;
    }
    run(command("cp")
        .args(["-rT", "--no-preserve=ownership"])
        .arg(folder.join("packages"))
        .arg(root.join(PYTHON_PACKAGES)))?;
    tree.run("python3", &["-m", "compileall", "-q", "/usr/lib/python3", &format!("/{PYTHON_PACKAGES}")])?;
    let release = modules.file_name().context("modules lie in a folder named after their kernel")?;
    let place = root.join("usr/lib/modules");
    fs::create_dir_all(&place)?;
    run(command("cp").args(["-r", "--no-preserve=ownership"]).arg(modules).arg(&place))?;
    tree.run("depmod", &[&release.to_string_lossy()])?;
    tree.run("systemctl", &[&["enable"], SERVICES].concat())?;
    std::os::unix::fs::symlink("sbin/init", root.join("init"))?;
    tree.remove(LEFT_OUT)?;
    tree.clean()?;
    println!("  ramdisk");
    // Renamed into place, so that a broken build leaves no ramdisk behind.
    let unfinished = folder.join("initramfs.unfinished");
    pack(&root, &unfinished)?;
    fs::rename(unfinished, folder.join("initramfs.img"))?;
    Ok(fs::remove_dir_all(&root)?)
}

/// Packs a folder as `find | cpio | gzip` does.
fn pack(folder: &Path, file: &Path) -> Result<()> {
    let mut find = command("find");
    find.args([".", "-print0"]).current_dir(folder);
    let mut cpio = command("cpio");
    cpio.args(["--null", "--create", "--quiet", "--format=newc"]).current_dir(folder);
    let mut children = Vec::new();
    let mut input = Stdio::null();
    for program in [&mut find, &mut cpio] {
        let text = shown(program);
        let child = program.stdin(input).stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot start {text}"))?;
        input = child.stdout.take().map_or_else(Stdio::null, Stdio::from);
        children.push((text, child));
    }
    let gzip =
        command("gzip").stdin(input).stdout(File::create(file)?).spawn().context("cannot start gzip")?;
    children.push(("gzip".to_owned(), gzip));
    for (text, mut child) in children {
        let status = child.wait()?;
        if !status.success() {
            bail!("{text} ended with {status}");
        }
    }
    Ok(())
}
