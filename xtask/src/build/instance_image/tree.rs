//! The files of the Debian system.

use std::hash::Hash;

use anyhow::Result;
use clap::ValueEnum;

use super::grub_modules;
use crate::build::debian_tree::{self, DebianTree};

/// A Debian system in an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum System {
    /// For emulated machines: a small kernel with drivers for virtual devices, and few services.
    Cloud,
    /// The same with the kernel of servers, which has drivers for SATA.
    Common,
    /// For servers: the kernel with all of its drivers, OpenSSH, and the network and users of the config drive.
    Server,
}

const PACKAGES: &[&str] = &[
    "cloud-init",
    "dbus",
    "grub-efi-amd64-bin",
    "grub-efi-amd64-signed",
    "grub-pc-bin",
    "grub2-common",
    "initramfs-tools",
    "lz4",
    "mdadm",
    "systemd-sysv",
    "udev",
];

/// Files written before packages are installed: they leave out drivers for what no emulated machine has, and make
/// the initrd quick.
const BEFORE_PACKAGES: &[(&str, &str)] = &[
    (
        "etc/dpkg/dpkg.cfg.d/91-drivers",
        "path-exclude=/lib/modules/*/kernel/sound/*\n\
         path-exclude=/lib/modules/*/kernel/drivers/*\n\
         path-include=/lib/modules/*/kernel/drivers/ata/*\n\
         path-include=/lib/modules/*/kernel/drivers/block/*\n\
         path-include=/lib/modules/*/kernel/drivers/cdrom/*\n\
         path-include=/lib/modules/*/kernel/drivers/char/hw_random/*\n\
         path-include=/lib/modules/*/kernel/drivers/md/*\n\
         path-include=/lib/modules/*/kernel/drivers/net/*.ko\n\
         path-include=/lib/modules/*/kernel/drivers/nvme/*\n\
         path-include=/lib/modules/*/kernel/drivers/scsi/*\n\
         path-include=/lib/modules/*/kernel/drivers/virtio/*\n",
    ),
    ("etc/initramfs-tools/conf.d/farrier", "MODULES=list\nCOMPRESS=lz4\n"),
    (
        "etc/initramfs-tools/modules",
        "ahci\next4\nmd_mod\nnvme\nraid1\nraid10\nsd_mod\nvirtio_blk\nvirtio_pci\nvirtio_scsi\n",
    ),
];

/// Scripts of the initrd, written before packages are installed. Debian gives a degraded array twenty seconds, one
/// call of mdadm after another, for its missing disk to come; here it comes never.
const INITRD_SCRIPTS: &[(&str, &str)] = &[(
    "etc/initramfs-tools/scripts/local-block/impatient",
    "#!/bin/sh\n\
     [ \"$1\" != prereqs ] || { echo mdadm; exit 0; }\n\
     if [ \"$(cat /run/count.mdadm.initrd)\" = 1 ]; then echo 19 > /run/count.mdadm.initrd; fi\n\
     exit 0\n",
)];

/// Files of an emulated machine that are written last.
const AFTER_PACKAGES: &[(&str, &str)] = &[
    // The host name is read from the config drive before the network is up; that is all the demo asks for. Of one
    // source alone cloud-init would not look whether it is there, and run without it too.
    (
        "etc/cloud/cloud.cfg.d/90-farrier.cfg",
        "datasource_list: [ConfigDrive, NoCloud]\nnetwork: {config: disabled}\n",
    ),
    // What a boot loader that is installed from the system itself starts: partition images have none. An emulated
    // processor translates a program anew for each address at which it finds it.
    (
        "etc/default/grub",
        "GRUB_CMDLINE_LINUX=\"console=ttyS0 norandmaps\"\nGRUB_TERMINAL=console\nGRUB_TIMEOUT=0\n",
    ),
    (
        "boot/grub/grub.cfg",
        "linux /vmlinuz root=UUID=@ROOT@ ro console=ttyS0 norandmaps\n\
         initrd /initrd.img\n\
         boot\n",
    ),
];

/// Files of every system that are written last.
const AFTER_ALL_PACKAGES: &[(&str, &str)] = &[
    ("etc/cloud/ds-identify.cfg", "policy: search,found=first,maybe=none,notfound=disabled\n"),
    ("etc/fstab", "UUID=@ROOT@ / ext4 errors=remount-ro 0 1\n"),
    ("etc/machine-id", ""),
];

/// What a server has beside that.
const SERVER_PACKAGES: &[&str] = &["iproute2", "openssh-server", "sudo"];

/// Files of a server that are written before packages are installed.
const BEFORE_SERVER_PACKAGES: &[(&str, &str)] = &[("etc/initramfs-tools/conf.d/farrier", "COMPRESS=lz4\n")];

/// Files of a server that are written last.
const AFTER_SERVER_PACKAGES: &[(&str, &str)] = &[
    ("etc/cloud/cloud.cfg.d/90-farrier.cfg", "datasource_list: [ConfigDrive, NoCloud]\n"),
    (
        "boot/grub/grub.cfg",
        "linux /vmlinuz root=UUID=@ROOT@ ro console=tty0 console=ttyS0\n\
         initrd /initrd.img\n\
         boot\n",
    ),
];

/// Services that a first boot on an emulated processor can do without.
const MASKED: &[&str] = &[
    "cloud-config.service",
    "cloud-final.service",
    "cloud-init.service",
    "cloud-init-hotplugd.socket",
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dev-hugepages.mount",
    "dev-mqueue.mount",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty@tty1.service",
    "kmod-static-nodes.service",
    "modprobe@configfs.service",
    "modprobe@dm_mod.service",
    "modprobe@drm.service",
    "modprobe@fuse.service",
    "modprobe@loop.service",
    "proc-sys-fs-binfmt_misc.automount",
    "sys-fs-fuse-connections.mount",
    "sys-kernel-config.mount",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "systemd-binfmt.service",
    "systemd-firstboot.service",
    "systemd-logind.service",
    "systemd-modules-load.service",
    "systemd-pstore.service",
    "systemd-sysctl.service",
    "systemd-update-utmp.service",
    "systemd-update-utmp-runlevel.service",
];

impl System {
    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cloud => "cloud",
            Self::Common => "common",
            Self::Server => "server",
        }
    }

    fn kernel_package(self) -> &'static str {
        match self {
            Self::Cloud => "linux-image-cloud-amd64",
            Self::Common | Self::Server => "linux-image-amd64",
        }
    }
}

/// All that decides what is built.
pub fn recipe(system: System) -> impl Hash {
    let (emulated, server) = match system {
        System::Cloud | System::Common => {
            let boot_loader = grub_modules::dpkg_configuration();
            (Some((BEFORE_PACKAGES, boot_loader, INITRD_SCRIPTS, AFTER_PACKAGES, MASKED)), None)
        }
        System::Server => (None, Some((SERVER_PACKAGES, BEFORE_SERVER_PACKAGES, AFTER_SERVER_PACKAGES))),
    };
    (system, debian_tree::recipe(), PACKAGES, AFTER_ALL_PACKAGES, emulated, server)
}

/// Makes the system of `tree`, with `@ROOT@` in files replaced by the root file system's UUID.
pub fn build(tree: &DebianTree<'_>, root_uuid: &str, system: System) -> Result<()> {
    println!("  kernel, boot loaders and cloud-init");
    match system {
        System::Cloud | System::Common => build_emulated(tree, system)?,
        System::Server => build_server(tree)?,
    }
    let last = if system == System::Server { AFTER_SERVER_PACKAGES } else { AFTER_PACKAGES };
    for (path, content) in AFTER_ALL_PACKAGES.iter().chain(last) {
        tree.write(path, &content.replace("@ROOT@", root_uuid))?;
    }
    tree.clean()
}

/// A system that an emulated processor starts quickly.
fn build_emulated(tree: &DebianTree<'_>, system: System) -> Result<()> {
    for (path, content) in BEFORE_PACKAGES {
        tree.write(path, content)?;
    }
    tree.write("etc/dpkg/dpkg.cfg.d/92-grub", &grub_modules::dpkg_configuration())?;
    for (path, script) in INITRD_SCRIPTS {
        tree.write_program(path, script)?;
    }
    tree.install(&[PACKAGES, &[system.kernel_package()]].concat())?;
    tree.run("systemctl", &[&["mask"], MASKED].concat())
}

/// A system that configures its network and its users by the config drive.
fn build_server(tree: &DebianTree<'_>) -> Result<()> {
    for (path, content) in BEFORE_SERVER_PACKAGES {
        tree.write(path, content)?;
    }
    tree.install(&[PACKAGES, SERVER_PACKAGES, &[System::Server.kernel_package()]].concat())?;
    tree.run("systemctl", &["enable", "systemd-networkd.service"])
}
