//! What this machine must have installed, and installing it.

use std::path::Path;

use anyhow::{Result, bail};

use super::command::{as_root, find, is_root, run};

/// What a requirement is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Building anything at all; needed for every other purpose.
    Build,
    /// Building the agent and the ramdisk.
    Dist,
    /// Building the Debian image to deploy.
    InstanceImage,
    /// Running virtual machines.
    Machine,
    /// Running those of the other architecture.
    MachineAarch64,
    /// Building the Python agent's ramdisk, beside those of the Debian image.
    Rival,
    /// Tests on loop devices.
    Disk,
    /// Measuring the write path beside other programs.
    WriteBench,
    /// Tests that compare with what other programs make.
    Unit,
    /// Measuring boots from the network beside other servers.
    NetbootBench,
    /// Installing programs from PyPI.
    Python,
    /// Tests of the page in a browser.
    Browser,
    /// Operators' clients that are not from PyPI.
    Client,
    /// What Ironic and its BMC need, also for config drives and virtual media.
    Ironic,
    /// What an Ironic needs that writes images itself.
    IronicIscsi,
    /// BMCs of virtual machines.
    Bmc,
}

#[derive(Debug)]
enum Probe {
    Command(&'static str),
    File(&'static str),
}

struct Requirement {
    probe: Probe,
    /// The package of this name in both Debian and Ubuntu.
    package: &'static str,
    purposes: &'static [Purpose],
}

const fn command(name: &'static str, package: &'static str, purposes: &'static [Purpose]) -> Requirement {
    Requirement { probe: Probe::Command(name), package, purposes }
}

const fn file(path: &'static str, package: &'static str, purposes: &'static [Purpose]) -> Requirement {
    Requirement { probe: Probe::File(path), package, purposes }
}

const REQUIREMENTS: &[Requirement] = &[
    file("/usr/include/blkid/blkid.h", "libblkid-dev", &[Purpose::Build]),
    // The crate of libblkid reads the headers with it.
    file("/var/lib/dpkg/info/libclang-dev.list", "libclang-dev", &[Purpose::Build]),
    command("pkg-config", "pkg-config", &[Purpose::Build]),
    command("make", "make", &[Purpose::Dist]),
    command("xz", "xz-utils", &[Purpose::Dist]),
    command("musl-gcc", "musl-tools", &[Purpose::Dist]),
    // A busybox that is linked dynamically has the same path.
    file("/var/lib/dpkg/info/busybox-static.list", "busybox-static", &[Purpose::Disk, Purpose::Machine]),
    command("dropbear", "dropbear-bin", &[Purpose::Unit]),
    command("debootstrap", "debootstrap", &[Purpose::InstanceImage]),
    file(
        "/usr/share/keyrings/debian-archive-keyring.gpg",
        "debian-archive-keyring",
        &[Purpose::InstanceImage, Purpose::Dist],
    ),
    command("mcopy", "mtools", &[Purpose::InstanceImage, Purpose::Disk]),
    command("mke2fs", "e2fsprogs", &[Purpose::InstanceImage, Purpose::Unit, Purpose::Disk]),
    command("mkfs.vfat", "dosfstools", &[Purpose::InstanceImage, Purpose::Disk]),
    command("mdadm", "mdadm", &[Purpose::Unit, Purpose::Disk]),
    command("sgdisk", "gdisk", &[Purpose::Disk, Purpose::IronicIscsi]),
    // Whatever may live on a disk is made by its own program: see `tests/tests/zoo/occupants.rs`.
    command("mkfs.btrfs", "btrfs-progs", &[Purpose::Disk]),
    command("mkfs.xfs", "xfsprogs", &[Purpose::Disk]),
    command("mkfs.f2fs", "f2fs-tools", &[Purpose::Disk]),
    command("mkfs.jfs", "jfsutils", &[Purpose::Disk]),
    command("mkreiserfs", "reiserfsprogs", &[Purpose::Disk]),
    command("mkfs.reiser4", "reiser4progs", &[Purpose::Disk]),
    command("mkfs.nilfs2", "nilfs-tools", &[Purpose::Disk]),
    command("mkfs.ntfs", "ntfs-3g", &[Purpose::Disk]),
    command("mkfs.exfat", "exfatprogs", &[Purpose::Disk]),
    command("mkfs.bfs", "util-linux-extra", &[Purpose::Disk]),
    command("mkudffs", "udftools", &[Purpose::Disk]),
    command("mksquashfs", "squashfs-tools", &[Purpose::Disk]),
    command("mkfs.erofs", "erofs-utils", &[Purpose::Disk]),
    command("hformat", "hfsutils", &[Purpose::Disk]),
    command("pvcreate", "lvm2", &[Purpose::Disk]),
    command("cryptsetup", "cryptsetup-bin", &[Purpose::Disk]),
    command("make-bcache", "bcache-tools", &[Purpose::Disk]),
    command("drbdmeta", "drbd-utils", &[Purpose::Disk]),
    command("mkfs.gfs2", "gfs2-utils", &[Purpose::Disk]),
    command("mkfs.ocfs2", "ocfs2-tools", &[Purpose::Disk]),
    command("partprobe", "parted", &[Purpose::IronicIscsi]),
    command("hexdump", "bsdextrautils", &[Purpose::IronicIscsi]),
    command("cpio", "cpio", &[Purpose::Rival]),
    command("qemu-img", "qemu-utils", &[Purpose::Unit, Purpose::Disk, Purpose::WriteBench]),
    command("time", "time", &[Purpose::WriteBench]),
    command("zstd", "zstd", &[Purpose::WriteBench]),
    command("qemu-system-x86_64", "qemu-system-x86", &[Purpose::Machine]),
    file("/usr/share/OVMF/OVMF_CODE_4M.fd", "ovmf", &[Purpose::Unit, Purpose::Machine]),
    command("qemu-system-aarch64", "qemu-system-arm", &[Purpose::MachineAarch64]),
    file("/usr/share/AAVMF/AAVMF_CODE.fd", "qemu-efi-aarch64", &[Purpose::MachineAarch64]),
    command("curl", "curl", &[Purpose::Unit, Purpose::Machine, Purpose::WriteBench]),
    command("etcd", "etcd-server", &[Purpose::Unit]),
    file("/usr/lib/postgresql", "postgresql", &[Purpose::Unit]),
    file("/usr/sbin/pgbouncer", "pgbouncer", &[Purpose::Unit]),
    command("ipmitool", "ipmitool", &[Purpose::Unit, Purpose::Bmc, Purpose::Client]),
    command("ipmi_sim", "openipmi", &[Purpose::Unit, Purpose::Bmc]),
    command("dnsmasq", "dnsmasq-base", &[Purpose::Disk, Purpose::Machine]),
    command("nginx", "nginx-light", &[Purpose::NetbootBench]),
    command("ip", "iproute2", &[Purpose::Disk, Purpose::Machine]),
    file("/usr/lib/PXELINUX/pxelinux.0", "pxelinux", &[Purpose::Machine]),
    file("/usr/lib/syslinux/modules/bios/ldlinux.c32", "syslinux-common", &[Purpose::Machine]),
    file("/usr/lib/SYSLINUX.EFI/efi64/syslinux.efi", "syslinux-efi", &[Purpose::Machine]),
    file("/usr/lib/shim/shimx64.efi.signed", "shim-signed", &[Purpose::Machine]),
    file(
        "/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed",
        "grub-efi-amd64-signed",
        &[Purpose::Machine],
    ),
    file("/usr/lib/ipxe/undionly.kpxe", "ipxe", &[Purpose::Ironic, Purpose::Machine]),
    command("fio", "fio", &[Purpose::Machine]),
    command("smartctl", "smartmontools", &[Purpose::Machine]),
    command("stress-ng", "stress-ng", &[Purpose::Machine]),
    command("openssl", "openssl", &[Purpose::Machine]),
    command("faketime", "faketime", &[Purpose::Machine]),
    command("podman", "podman", &[Purpose::Machine]),
    command("crun", "crun", &[Purpose::Machine]),
    command("ssh", "openssh-client", &[Purpose::Machine]),
    command("sshpass", "sshpass", &[Purpose::Machine]),
    command("python3", "python3", &[Purpose::Unit, Purpose::Python, Purpose::WriteBench]),
    file("/var/lib/dpkg/info/python3-venv.list", "python3-venv", &[Purpose::Python]),
    command("go", "golang-go", &[Purpose::Client]),
    file(
        "/usr/share/gocode/src/github.com/gophercloud/gophercloud/acceptance/openstack/baremetal",
        "golang-github-gophercloud-gophercloud-dev",
        &[Purpose::Client],
    ),
    command("chromium", "chromium", &[Purpose::Browser]),
    command("chromedriver", "chromium-driver", &[Purpose::Browser]),
    command("npm", "npm", &[Purpose::Browser]),
    command("genisoimage", "genisoimage", &[Purpose::Ironic, Purpose::Disk]),
    command("grub-mkimage", "grub-common", &[Purpose::Ironic, Purpose::Machine]),
    file("/usr/lib/grub/x86_64-efi/linuxefi.mod", "grub-efi-amd64-bin", &[Purpose::Ironic, Purpose::Machine]),
    file("/usr/lib/ipxe/qemu/efi-virtio.rom", "ipxe-qemu", &[Purpose::Ironic, Purpose::Machine]),
    command("tgtd", "tgt", &[Purpose::Unit, Purpose::Machine]),
    command("iscsistart", "open-iscsi", &[Purpose::Machine]),
    // QEMU's own initiator, and libiscsi's tools.
    file(
        "/var/lib/dpkg/info/qemu-block-extra.list",
        "qemu-block-extra",
        &[Purpose::Unit, Purpose::Machine, Purpose::IronicIscsi],
    ),
    command("qemu-io", "qemu-utils", &[Purpose::Machine]),
    command("iscsi-inq", "libiscsi-bin", &[Purpose::Unit, Purpose::Machine, Purpose::IronicIscsi]),
    file("/usr/sbin/libvirtd", "libvirt-daemon", &[Purpose::Ironic, Purpose::Bmc]),
    file(
        "/var/lib/dpkg/info/libvirt-daemon-driver-qemu.list",
        "libvirt-daemon-driver-qemu",
        &[Purpose::Ironic, Purpose::Bmc],
    ),
    // For the Python client of libvirt, which PyPI has as source only, beside pkg-config.
    file("/usr/include/libvirt/libvirt.h", "libvirt-dev", &[Purpose::Ironic, Purpose::Bmc]),
    file("/var/lib/dpkg/info/python3-dev.list", "python3-dev", &[Purpose::Ironic, Purpose::Bmc]),
];

impl Requirement {
    fn is_met(&self) -> bool {
        match self.probe {
            Probe::Command(name) => find(name).is_some(),
            Probe::File(path) => Path::new(path).exists(),
        }
    }
}

/// Installs what is missing for building and for `purposes` after saying so, or only names it when
/// `install` is false.
pub fn ensure(purposes: &[Purpose], install: bool) -> Result<()> {
    let packages = missing(purposes);
    if !install && !packages.is_empty() {
        let list = packages.join(" ");
        bail!("packages are missing: {list}; install them, or run this without --no-install");
    }
    until_nothing_is_missing(|| missing(purposes), install_packages)
}

/// Installs what is missing, and once more what the installation itself took away: apt removes a package of another
/// release that stands in the way of a new one, and that may be one of ours.
fn until_nothing_is_missing(
    missing: impl Fn() -> Vec<&'static str>,
    install: impl Fn(&[&str]) -> Result<()>,
) -> Result<()> {
    for _ in 0..2 {
        match missing().as_slice() {
            [] => return Ok(()),
            packages => install(packages)?,
        }
    }
    match missing().as_slice() {
        [] => Ok(()),
        still => bail!("after the installation there still is nothing of {}", still.join(" ")),
    }
}

fn install_packages(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    if find("apt-get").is_none() {
        bail!(
            "this needs the programs of the Debian packages {list}; install them with your system's package manager"
        );
    }
    if !is_root() && find("sudo").is_none() {
        bail!("packages are missing: {list}; install them as root (there is no sudo here)");
    }
    println!("Installing with apt-get: {list}");
    run(as_root("apt-get").args(["-qq", "update"]))?;
    let options = ["-qq", "-y", "-o", "Dpkg::Use-Pty=0", "install", "--no-install-recommends"];
    at_once_or_in_halves(packages, &|packages| {
        run(as_root("env").args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]).args(options).args(packages))
    })
}

/// Where apt finds no way to several packages at once, since one of another release stands in the way of some of them,
/// it finds one to each half of them after the other.
fn at_once_or_in_halves(packages: &[&str], install: &impl Fn(&[&str]) -> Result<()>) -> Result<()> {
    let result = install(packages);
    if result.is_ok() || packages.len() < 2 {
        return result;
    }
    let (first, others) = packages.split_at(packages.len() / 2);
    at_once_or_in_halves(first, install)?;
    at_once_or_in_halves(others, install)
}

fn missing(purposes: &[Purpose]) -> Vec<&'static str> {
    let is_wanted = |purpose: &Purpose| *purpose == Purpose::Build || purposes.contains(purpose);
    let needed = |requirement: &&Requirement| requirement.purposes.iter().any(is_wanted);
    let mut packages: Vec<_> = REQUIREMENTS
        .iter()
        .filter(needed)
        .filter(|requirement| !requirement.is_met())
        .map(|requirement| requirement.package)
        .collect();
    packages.dedup();
    packages
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn packages_that_cannot_be_installed_at_once_are_installed_in_parts() {
        let done = RefCell::new(Vec::new());
        let install = |packages: &[&str]| {
            // As Debian 12 does beside the qemu-utils of its backports.
            if packages.contains(&"broken")
                || ["x86", "arm", "block"].iter().all(|one| packages.contains(one))
            {
                bail!("generated breaks");
            }
            done.borrow_mut().extend(packages.iter().map(|package| (*package).to_owned()));
            Ok(())
        };
        at_once_or_in_halves(&["x86", "ovmf", "arm", "fio", "block"], &install).unwrap();
        assert_eq!(*done.borrow(), ["x86", "ovmf", "arm", "fio", "block"]);
        assert!(at_once_or_in_halves(&["tgt", "broken"], &install).is_err());
    }

    #[test]
    fn what_an_installation_takes_away_is_installed_again() {
        let installed = RefCell::new(vec!["qemu-utils"]);
        let missing = || {
            let is_missing = |package: &&str| !installed.borrow().contains(package);
            ["qemu-utils", "qemu-system-x86"].into_iter().filter(is_missing).collect()
        };
        let install = |packages: &[&str]| {
            let system = packages.contains(&"qemu-system-x86");
            *installed.borrow_mut() =
                if system { vec!["qemu-system-x86"] } else { vec!["qemu-system-x86", "qemu-utils"] };
            Ok(())
        };
        until_nothing_is_missing(missing, install).unwrap();
        assert_eq!(missing(), Vec::<&str>::new());
        let error = until_nothing_is_missing(|| vec!["never"], |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("nothing of never"), "{error}");
    }
}
