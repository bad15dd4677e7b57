//! Every external program that the agent may start, and where it comes from.

/// An external program that the agent may start.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Name in logs.
    pub name: &'static str,
    /// Path inside the ramdisk.
    pub path: &'static str,
    /// Package that carries it, as Debian calls it.
    pub package: &'static str,
    /// Whether it is packed only on request: it is large, and few machines need it.
    pub is_optional: bool,
}

/// Applets of busybox: the DHCP client, and login with its shell on a rescued machine.
pub const BUSYBOX: Program = always("busybox", "/usr/bin/busybox", "busybox-static");

/// The SSH server of a rescued machine.
pub const DROPBEAR: Program = always("dropbear", "/usr/sbin/dropbear", "dropbear-bin");

/// Runs containers by a service of the machine.
pub const DOCKER: Program = on_request("docker", "/usr/bin/docker", "docker.io");

/// Reads from and writes to disks and networks, and verifies what it read.
pub const FIO: Program = on_request("fio", "/usr/bin/fio", "fio");

/// Puts load on graphics processors and compares their results.
pub const GPU_BURN: Program = on_request("gpu_burn", "/opt/gpu-burn/gpu_burn", "gpu-burn");

/// Logs in to the iSCSI disks from which the firmware booted.
pub const ISCSISTART: Program = on_request("iscsistart", "/usr/sbin/iscsistart", "open-iscsi");

/// Makes, starts and stops arrays of software RAID.
pub const MDADM: Program = always("mdadm", "/usr/sbin/mdadm", "mdadm");

/// Makes the file systems ext2, ext3 and ext4.
pub const MKE2FS: Program = always("mke2fs", "/usr/sbin/mke2fs", "e2fsprogs");

/// Reads and writes the settings of NVIDIA network cards.
pub const MSTCONFIG: Program = on_request("mstconfig", "/usr/bin/mstconfig", "mstflint");

/// Reads and writes the firmware of NVIDIA network cards.
pub const MSTFLINT: Program = on_request("mstflint", "/usr/bin/mstflint", "mstflint");

/// Restarts NVIDIA network cards.
pub const MSTFWRESET: Program = on_request("mstfwreset", "/usr/bin/mstfwreset", "mstflint");

/// Runs containers.
pub const PODMAN: Program = on_request("podman", "/usr/bin/podman", "podman");

/// Has disks test themselves, and reads what they found.
pub const SMARTCTL: Program = on_request("smartctl", "/usr/sbin/smartctl", "smartmontools");

/// Puts load on processors and memory and verifies their results.
pub const STRESS_NG: Program = on_request("stress-ng", "/usr/bin/stress-ng", "stress-ng");

/// Serves disks by iSCSI, where the kernel has no target.
pub const TGTD: Program = on_request("tgtd", "/usr/sbin/tgtd", "tgt");

/// Configures the exports of `tgtd`.
pub const TGTADM: Program = on_request("tgtadm", "/usr/sbin/tgtadm", "tgt");

/// Every external program there is.
pub const PROGRAMS: &[Program] = &[
    BUSYBOX, DOCKER, DROPBEAR, FIO, GPU_BURN, ISCSISTART, MDADM, MKE2FS, MSTCONFIG, MSTFLINT, MSTFWRESET,
    PODMAN, SMARTCTL, STRESS_NG, TGTADM, TGTD,
];

const fn always(name: &'static str, path: &'static str, package: &'static str) -> Program {
    Program { name, path, package, is_optional: false }
}

const fn on_request(name: &'static str, path: &'static str, package: &'static str) -> Program {
    Program { name, path, package, is_optional: true }
}
