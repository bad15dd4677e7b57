//! The files of the Debian system.

use std::fs::{self, File};
use std::hash::Hash;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::command::{command, shown};

const MIRROR: &str = "http://deb.debian.org/debian";

const PACKAGES: &[&str] = &[
    "cloud-init",
    "dbus",
    "grub-efi-amd64-signed",
    "initramfs-tools",
    "linux-image-cloud-amd64",
    "lz4",
    "systemd-sysv",
    "udev",
];

/// Files written before packages are installed: they make the system small and its initrd quick.
const BEFORE_PACKAGES: &[(&str, &str)] = &[
    (
        "etc/dpkg/dpkg.cfg.d/90-small",
        "path-exclude=/usr/share/doc/*\n\
         path-include=/usr/share/doc/*/copyright\n\
         path-exclude=/usr/share/info/*\n\
         path-exclude=/usr/share/locale/*\n\
         path-exclude=/usr/share/man/*\n",
    ),
    (
        "etc/apt/apt.conf.d/90-small",
        "APT::Install-Recommends \"false\";\nDpkg::Options:: \"--force-unsafe-io\";\n",
    ),
    (
        "etc/apt/sources.list",
        "deb http://deb.debian.org/debian bookworm main\n\
         deb http://deb.debian.org/debian bookworm-updates main\n\
         deb http://deb.debian.org/debian-security bookworm-security main\n",
    ),
    ("etc/initramfs-tools/conf.d/farrier", "MODULES=list\nCOMPRESS=lz4\n"),
    ("etc/initramfs-tools/modules", "ahci\next4\nnvme\nsd_mod\nvirtio_blk\nvirtio_pci\nvirtio_scsi\n"),
];

/// Files written last.
const AFTER_PACKAGES: &[(&str, &str)] = &[
    // The host name is read from the config drive before the network is up; that is all the demo asks for.
    ("etc/cloud/cloud.cfg.d/90-farrier.cfg", "datasource_list: [ConfigDrive]\nnetwork: {config: disabled}\n"),
    ("etc/cloud/ds-identify.cfg", "policy: enabled\n"),
    (
        "boot/grub/grub.cfg",
        "linux /vmlinuz root=UUID=@ROOT@ ro console=ttyS0\n\
         initrd /initrd.img\n\
         boot\n",
    ),
    ("etc/fstab", "UUID=@ROOT@ / ext4 errors=remount-ro 0 1\n"),
    ("etc/machine-id", ""),
];

/// Services that a first boot on an emulated processor can do without.
const MASKED: &[&str] = &[
    "cloud-config.service",
    "cloud-final.service",
    "cloud-init.service",
    "cloud-init-hotplugd.socket",
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty@tty1.service",
    "proc-sys-fs-binfmt_misc.automount",
    "systemd-binfmt.service",
    "systemd-firstboot.service",
    "systemd-pstore.service",
];

const LEFTOVERS: &[&str] = &[
    "etc/hostname",
    "usr/sbin/policy-rc.d",
    "usr/share/locale",
    "var/cache/apt",
    "var/lib/apt/lists",
    "var/log/apt",
];

/// All that decides what is built.
pub fn recipe() -> impl Hash {
    (MIRROR, PACKAGES, BEFORE_PACKAGES, AFTER_PACKAGES, MASKED, LEFTOVERS)
}

/// Makes the system below `tree`, with `@ROOT@` in files replaced by the root file system's UUID.
pub fn build(tree: &Path, root_uuid: &str, log: &Path) -> Result<()> {
    File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    println!("  base system (debootstrap)");
    logged(log, command("debootstrap").args(["--variant=minbase", "bookworm"]).arg(tree).arg(MIRROR))?;
    for (path, content) in BEFORE_PACKAGES {
        write(tree, path, content)?;
    }
    // Nothing may be started while packages are configured.
    let policy = write(tree, "usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n")?;
    fs::set_permissions(policy, PermissionsExt::from_mode(0o755))?;

    println!("  kernel, boot loader and cloud-init");
    logged(log, inside(tree, "apt-get").args(["-q", "update"]))?;
    logged(log, inside(tree, "apt-get").args(["-q", "-y", "upgrade"]))?;
    logged(log, inside(tree, "apt-get").args(["-q", "-y", "install"]).args(PACKAGES))?;
    logged(log, inside(tree, "systemctl").arg("mask").args(MASKED))?;

    for (path, content) in AFTER_PACKAGES {
        write(tree, path, &content.replace("@ROOT@", root_uuid))?;
    }
    for path in LEFTOVERS {
        remove(&tree.join(path))?;
    }
    Ok(())
}

fn inside(tree: &Path, program: &str) -> Command {
    let mut chroot = command("chroot");
    chroot.arg(tree).args(["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"]);
    chroot.args(["DEBIAN_FRONTEND=noninteractive", program]);
    chroot
}

/// Runs with the output at the end of `log`.
fn logged(log: &Path, command: &mut Command) -> Result<()> {
    let output = File::options().append(true).open(log)?;
    let errors = output.try_clone()?;
    let status = command.stdin(Stdio::null()).stdout(output).stderr(errors).status();
    let status = status.with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        let text = fs::read_to_string(log).unwrap_or_default();
        let tail: Vec<_> = text.lines().rev().take(10).collect();
        bail!(
            "{} ended with {status}:\n{}",
            shown(command),
            tail.into_iter().rev().collect::<Vec<_>>().join("\n")
        );
    }
    Ok(())
}

fn write(tree: &Path, path: &str, content: &str) -> Result<std::path::PathBuf> {
    let file = tree.join(path);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&file, content).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

fn remove(path: &Path) -> Result<()> {
    if path.is_dir() {
        fs::remove_dir_all(path)?;
    } else if path.exists() {
        fs::remove_file(path)?;
    }
    Ok(())
}
