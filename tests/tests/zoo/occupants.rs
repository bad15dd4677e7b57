//! What may live on a disk or in a partition: one entry each.

use crate::by_hand::{bytes_at, firmware_raid, md, pools};
use crate::content::{Content, Mark};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Bytes of a volume where an entry names no others.
pub const USUAL: u64 = 320 * MIB;

/// Who makes an occupant.
#[derive(Clone, Copy)]
pub enum Maker {
    /// A program of Debian and its arguments. `DEVICE` is a loop device with the disk's sectors, `FILE` the file below
    /// it; `SECTOR` are the bytes of a sector, `FOLDER` a folder with a file in it, `KEY` a file with a secret.
    Tool(&'static [&'static str]),
    /// Its documented format: for a volume of these many bytes, on these sectors.
    ByHand(fn(u64, u32) -> Content),
}

/// What several machines, arrays or nobody else makes of an occupant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// One machine's alone.
    Own,
    /// A member of a Linux array, with the name [`md::NAME`] if its format has names.
    Member { is_named: bool },
    /// Several machines use it at the same time: nothing is removed without consent.
    Shared,
    /// Firmware's: only whole disks have it.
    Firmware,
}

/// Something that lives on disks.
#[derive(Clone, Copy)]
pub struct Occupant {
    /// Its name in the names of cells.
    pub name: &'static str,
    /// What libblkid calls it.
    pub kind: &'static str,
    pub maker: Maker,
    /// Bytes of its volume.
    pub size: u64,
    pub used: Use,
    /// What it has besides that wipefs does not list, in a volume of these many bytes on these sectors.
    pub also: fn(u64, u32) -> Vec<Mark>,
}

impl Occupant {
    const fn new(name: &'static str, kind: &'static str, maker: Maker) -> Self {
        Self { name, kind, maker, size: USUAL, used: Use::Own, also: |_, _| Vec::new() }
    }

    const fn of(self, size: u64) -> Self {
        Self { size, ..self }
    }

    const fn used(self, used: Use) -> Self {
        Self { used, ..self }
    }

    const fn also(self, also: fn(u64, u32) -> Vec<Mark>) -> Self {
        Self { also, ..self }
    }
}

const fn tool(name: &'static str, kind: &'static str, line: &'static [&'static str]) -> Occupant {
    Occupant::new(name, kind, Maker::Tool(line))
}

const fn by_hand(name: &'static str, kind: &'static str, make: fn(u64, u32) -> Content) -> Occupant {
    Occupant::new(name, kind, Maker::ByHand(make))
}

const fn member(name: &'static str, is_named: bool, make: fn(u64, u32) -> Content) -> Occupant {
    by_hand(name, "linux_raid_member", make).used(Use::Member { is_named })
}

const fn firmware(name: &'static str, kind: &'static str, make: fn(u64, u32) -> Content) -> Occupant {
    by_hand(name, kind, make).used(Use::Firmware)
}

/// One that also stands for others, smaller.
pub const SWAP: Occupant = tool("swap", "swap", &["mkswap", "-q", "DEVICE"]);

/// All of them.
pub const OCCUPANTS: &[Occupant] = &[
    tool("ext2", "ext2", &["mke2fs", "-q", "-t", "ext2", "DEVICE"]),
    tool("ext3", "ext3", &["mke2fs", "-q", "-t", "ext3", "DEVICE"]),
    tool("ext4", "ext4", &["mke2fs", "-q", "-t", "ext4", "DEVICE"]),
    tool("xfs", "xfs", &["mkfs.xfs", "-q", "-f", "DEVICE"]).also(xfs_groups),
    tool("btrfs", "btrfs", &["mkfs.btrfs", "-q", "-f", "DEVICE"]).also(btrfs_mirrors),
    tool("btrfs-300g", "btrfs", &["mkfs.btrfs", "-q", "-f", "DEVICE"]).of(300 * GIB).also(btrfs_mirrors),
    tool("f2fs", "f2fs", &["mkfs.f2fs", "-q", "-f", "DEVICE"]).also(|_, _| mark(4096 + 1024, &F2FS)),
    tool("jfs", "jfs", &["mkfs.jfs", "-q", "DEVICE"]).also(|_, _| mark(0xf000, b"JFS1")),
    tool("reiserfs", "reiserfs", &["mkreiserfs", "-q", "-f", "-f", "DEVICE"]),
    tool("reiser4", "reiser4", &["mkfs.reiser4", "-y", "-f", "DEVICE"]),
    tool("nilfs2", "nilfs2", &["mkfs.nilfs2", "-q", "-f", "DEVICE"]),
    tool("ntfs", "ntfs", &["mkfs.ntfs", "-q", "-Q", "-F", "DEVICE"])
        .also(|size, sector| mark(size - u64::from(sector) + 3, b"NTFS")),
    tool("exfat", "exfat", &["mkfs.exfat", "DEVICE"]),
    tool("fat12", "vfat", &["mkfs.vfat", "-F", "12", "-n", "OLD", "DEVICE"]).of(8 * MIB),
    tool("fat16", "vfat", &["mkfs.vfat", "-F", "16", "-n", "OLD", "DEVICE"]),
    tool("fat32", "vfat", &["mkfs.vfat", "-F", "32", "-n", "OLD", "DEVICE"]),
    tool("minix1", "minix", &["mkfs.minix", "-1", "FILE"]).of(32 * MIB),
    tool("minix3", "minix", &["mkfs.minix", "-3", "FILE"]).of(64 * MIB),
    tool("bfs", "bfs", &["mkfs.bfs", "FILE"]).of(64 * MIB),
    tool("udf", "udf", &["mkudffs", "-b", "SECTOR", "--media-type=hd", "DEVICE"]),
    tool("iso9660", "iso9660", &["genisoimage", "-quiet", "-V", "OLD", "-o", "FILE", "FOLDER"]),
    tool("cramfs", "cramfs", &["mkfs.cramfs", "FOLDER", "FILE"]),
    tool("squashfs", "squashfs", &["mksquashfs", "FOLDER", "FILE", "-noappend", "-quiet"]),
    tool("erofs", "erofs", &["mkfs.erofs", "--quiet", "FILE", "FOLDER"]),
    tool("hfs", "hfs", &["hformat", "-l", "OLD", "DEVICE"]),
    by_hand("hfsplus", "hfsplus", pools::hfs_plus),
    SWAP,
    tool("lvm", "LVM2_member", &["pvcreate", "-q", "-y", "-ff", "--config", LVM, "DEVICE"]),
    tool(
        "luks1",
        "crypto_LUKS",
        &[
            "cryptsetup",
            "-q",
            "luksFormat",
            "--type",
            "luks1",
            "--pbkdf-force-iterations",
            "1000",
            "DEVICE",
            "KEY",
        ],
    ),
    tool(
        "luks2",
        "crypto_LUKS",
        &[
            "cryptsetup",
            "-q",
            "luksFormat",
            "--type",
            "luks2",
            "--pbkdf",
            "pbkdf2",
            "--pbkdf-force-iterations",
            "1000",
            "DEVICE",
            "KEY",
        ],
    ),
    tool("verity", "DM_verity_hash", &["veritysetup", "format", "FILE", "DEVICE", "--data-blocks=16"]),
    by_hand("snapshot", "DM_snapshot_cow", |_, _| bytes_at(0, b"SnAp\x01\0\0\0\x01\0\0\0\x10\0\0\0")),
    by_hand("vdo", "vdo", |_, _| bytes_at(0, b"dmvdo001\x05\0\0\0\x04\0\0\0")),
    by_hand("ubi", "ubi", |_, _| bytes_at(0, b"UBI#\x01\0\0\0")),
    tool("bcache-backing", "bcache", &["make-bcache", "-B", "DEVICE"]),
    tool("bcache-cache", "bcache", &["make-bcache", "-C", "DEVICE"]),
    tool("drbd8", "drbd", &["drbdmeta", "--force", "7", "v08", "DEVICE", "internal", "create-md"]),
    tool("drbd9", "drbd", &["drbdmeta", "--force", "7", "v09", "DEVICE", "internal", "create-md", "1"]),
    by_hand("zfs", "zfs_member", pools::zfs).also(zfs_uberblocks),
    by_hand("ceph", "ceph_bluestore", pools::bluestore),
    by_hand("ceph-2g", "ceph_bluestore", pools::bluestore).of(2 * GIB).also(bluestore_labels),
    by_hand("ceph-101g", "ceph_bluestore", pools::bluestore).of(101 * GIB).also(bluestore_labels),
    by_hand("ceph-1001g", "ceph_bluestore", pools::bluestore).of(1001 * GIB).also(bluestore_labels),
    member("md-0.90", false, md::version_0_90),
    member("md-1.0", true, md::version_1_0),
    member("md-1.1", true, md::version_1_1),
    member("md-1.2", true, md::version_1_2),
    tool(
        "gfs2",
        "gfs2",
        &["mkfs.gfs2", "-q", "-O", "-p", "lock_dlm", "-t", "old:old", "-j", "1", "-J", "8", "DEVICE"],
    )
    .used(Use::Shared),
    tool("ocfs2", "ocfs2", &["mkfs.ocfs2", "-q", "-F", "-x", "-b", "4K", "-M", "local", "DEVICE"])
        .used(Use::Shared),
    by_hand("vmfs", "VMFS_volume_member", pools::vmfs).used(Use::Shared),
    firmware("imsm", "isw_raid_member", firmware_raid::imsm),
    firmware("ddf", "ddf_raid_member", firmware_raid::ddf),
    firmware("lsi", "lsi_mega_raid_member", firmware_raid::lsi),
    firmware("nvidia", "nvidia_raid_member", firmware_raid::nvidia),
    firmware("jmicron", "jmicron_raid_member", firmware_raid::jmicron),
    firmware("adaptec", "adaptec_raid_member", firmware_raid::adaptec),
    firmware("promise", "promise_fasttrack_raid_member", firmware_raid::promise),
    firmware("silicon", "silicon_medley_raid_member", firmware_raid::silicon),
    firmware("via", "via_raid_member", firmware_raid::via),
    firmware("hpt45x", "hpt45x_raid_member", firmware_raid::highpoint_45x),
    firmware("hpt37x", "hpt37x_raid_member", firmware_raid::highpoint_37x),
    // Labels by which the agent knows media of its own, on disks that are none (G02).
    tool("ext4-as-floppy", "ext4", &["mke2fs", "-q", "-t", "ext4", "-L", "ir-vfd-dev", "DEVICE"]),
    tool("fat-as-floppy", "vfat", &["mkfs.vfat", "-n", "IR-VFD-DEV", "DEVICE"]),
    tool("swap-as-floppy", "swap", &["mkswap", "-q", "-L", "ir-vfd-dev", "DEVICE"]),
    tool("fat-as-config-drive", "vfat", &["mkfs.vfat", "-n", "CONFIG-2", "DEVICE"]),
];

/// What is no row, and why.
pub const LEFT_OUT: &[(&str, &str)] = &[
    (
        "APFS, ReFS, BitLocker, VxFS, UFS, SysV, BeFS, Stratis",
        "no program of Debian 12 makes them, and their superblocks carry checksums or trees; they lie in the first MiB, as those that are rows",
    ),
    ("HFS+ with a catalogue", "Debian 12 has no mkfs for it: its volume headers are written by hand"),
    (
        "OCFS2 of a cluster",
        "mkfs.ocfs2 asks the cluster for its name; the superblock of a local one is the same",
    ),
    ("dm-integrity", "the libblkid of Debian 12 does not know it; its superblock is in the first 512 bytes"),
    (
        "volumes inside of LVM, LUKS and arrays",
        "this kernel has neither device mapper nor md; the tests `vm_` have them",
    ),
    (
        "labels of BSD, Solaris, Sun, SGI and Apple",
        "no step makes one; the tests `a02_labels_…` of `farrier-disk` write them by hand, and see what they name gone",
    ),
    (
        "backups of superblocks of ext and UFS, and of XFS whose first one is gone",
        "no system uses them as a file system without an explicit offset, and they stay",
    ),
    ("firmware RAID in partitions", "firmware and libblkid look at whole disks only"),
    (
        "the kernel's own partition scan",
        "the kernel of the test host may lack partition parsers; partx judges by libblkid, and Debian's kernel and mdadm judge five of the worst disks in an emulated machine (`vm_a02_…`)",
    ),
];

/// No other device, no daemon, no lock that another run may hold.
const LVM: &str = "devices{filter=[\"a|^DEVICE$|\",\"r|.*|\"] use_devicesfile=0 scan_lvs=0} \
                   global{locking_dir=\"FOLDER/lock\" use_lvmpolld=0} activation{udev_sync=0 udev_rules=0} \
                   backup{backup=0 archive=0}";

const F2FS: [u8; 4] = [0x10, 0x20, 0xf5, 0xf2];

fn mark(place: u64, bytes: &[u8]) -> Vec<Mark> {
    vec![Mark { offset: place, bytes: bytes.to_vec() }]
}

fn btrfs_mirrors(size: u64, _: u32) -> Vec<Mark> {
    let mirrors = [64 * MIB, 256 * GIB].into_iter().filter(|place| *place + MIB < size);
    mirrors.flat_map(|place| mark(place + 64, b"_BHRfS_M")).collect()
}

/// Without other orders, mkfs.xfs divides a volume of this size into four allocation groups.
fn xfs_groups(size: u64, _: u32) -> Vec<Mark> {
    (1..4).flat_map(|group| mark(size / 4 * group, b"XFSB")).collect()
}

fn zfs_uberblocks(size: u64, _: u32) -> Vec<Mark> {
    let labels = pools::zfs_labels(size).into_iter();
    labels.flat_map(|label| mark(label + (128 << 10), &pools::UBERBLOCK)).collect()
}

fn bluestore_labels(size: u64, _: u32) -> Vec<Mark> {
    let places = pools::BLUESTORE.into_iter().filter(|place| *place < size);
    places.flat_map(|place| mark(place, pools::BLUESTORE_MAGIC)).collect()
}
