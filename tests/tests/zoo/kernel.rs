//! The judgement of a kernel that has all partition parsers, and of mdadm on it, in an emulated machine: what the host
//! kernel of the tests may lack. The disks are of the same parts as those of the cells.

use crate::by_hand::md;
use crate::content::{Content, Mark};
use crate::tables::{self, Copy, Gpt};
use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::agent::stub_conductor::NODE;
use farrier_tests::machine::{Hardware, free_port};
use farrier_tests::ramdisk::{self, Addition};
use serde_json::{Value, json};
use std::fs::File;
use std::ops::Range;
use std::time::Duration;
use tempfile::TempDir;

const MANAGER: &str = include_str!("kernel.sh");
const MIB: u64 = 1 << 20;
const SIZE: u64 = 128 * MIB;
const SECTOR: u64 = 512;
/// Longest time of a step on a busy machine.
const STEP: Duration = Duration::from_secs(300);
/// Where a member lives, who lives beside it, and where a partition was once.
const MEMBER: Range<u64> = 40 * MIB..72 * MIB;
const NEIGHBOUR: Range<u64> = 8 * MIB..24 * MIB;
const FORMER: Range<u64> = 100 * MIB..108 * MIB;

/// A disk, and what the kernel and mdadm see of it.
struct Disk {
    content: Content,
    seen: &'static [&'static str],
    /// What gives the member away.
    mark: Mark,
}

fn gpt(partitions: &[Range<u64>]) -> Gpt {
    Gpt { sector: SECTOR, size: SIZE, partitions: partitions.to_vec() }
}

/// The content of a disk with a member of an array.
fn disk(member: &Content, start: u64, seen: &'static [&'static str], tables: impl Fn(&mut Content)) -> Disk {
    let mut content = Content::default();
    tables(&mut content);
    content.overlay(member, start);
    let magic = 0xa92b_4efc_u32.to_le_bytes();
    let size = MEMBER.end - MEMBER.start;
    let places = [0, 4096, size - (64 << 10), size - (8 << 10), SIZE - (8 << 10)];
    let mark = places.into_iter().map(|place| start + place).find(|place| content.get(*place, 4) == magic);
    let mark = Mark { offset: mark.expect("a superblock"), bytes: magic.to_vec() };
    Disk { content, seen, mark }
}

/// The worst disks of the zoo.
fn disks() -> [Disk; 5] {
    let size = MEMBER.end - MEMBER.start;
    [
        disk(
            &md::version_1_2(size, 512),
            MEMBER.start,
            &["vda1:16384+32768", "vda2:81920+65536", "vda2=1.2"],
            |disk| {
                gpt(&[NEIGHBOUR, MEMBER]).write(disk);
            },
        ),
        // A GPT of an earlier life behind an MBR with logical partitions, which is what counts.
        disk(
            &md::version_0_90(size, 512),
            MEMBER.start,
            &["vdb1:16384+32768", "vdb5:81920+65536", "vdb5=0.90.00", "vdb6:151552+16384"],
            |disk| {
                gpt(&[FORMER]).write(disk);
                let (extended, last) = (38 * MIB..90 * MIB, 74 * MIB..82 * MIB);
                tables::write_logical(disk, SECTOR, &[NEIGHBOUR], &extended, &[MEMBER, last]);
            },
        ),
        disk(&md::version_1_0(SIZE, 512), 0, &["vdc=1.0"], |_| ()),
        // No kernel believes the backup alone: what it leads to is hidden, and comes back with the table.
        disk(&md::version_1_1(size, 512), MEMBER.start, &[], |disk| {
            gpt(&[NEIGHBOUR, MEMBER]).write_copy(disk, Copy::Backup);
        }),
        // The member is in a partition that the newer MBR no longer has.
        disk(&md::other(size, 512), MEMBER.start, &["vde1:204800+16384"], |disk| {
            gpt(&[NEIGHBOUR, MEMBER]).write(disk);
            tables::write_mbr(disk, SECTOR, &[FORMER]);
        }),
    ]
}

#[test]
fn vm_a02_the_kernel_and_mdadm_see_what_the_zoo_expects_and_nothing_after_the_step() {
    let folder = TempDir::new().unwrap();
    let disks = disks();
    let serials = ["ONE", "TWO", "THREE", "FOUR", "FIVE"];
    for (disk, serial) in disks.iter().zip(serials) {
        let file = File::create(folder.path().join(serial)).unwrap();
        file.set_len(SIZE).unwrap();
        disk.content.write(&file).unwrap();
    }
    let hardware = Hardware {
        mac: "52:54:00:fa:00:33".into(),
        agent_port: free_port().unwrap(),
        keyboard_port: free_port().unwrap(),
        disks: serials.map(|serial| (folder.path().join(serial), serial)).to_vec(),
        media: vec![],
        folder: folder.path().to_owned(),
    };
    let dist = ramdisk::build(folder.path(), &[Addition::HardwareManager("judge", MANAGER)]).unwrap();
    let agent = CommandedAgent::boot(&hardware, &[], &dist, "ipa-disk-wait-attempts=1").unwrap();
    let order = |step: &str| -> Value {
        let order =
            json!({"step": {"step": step, "interface": "deploy"}, "node": {"uuid": NODE}, "ports": []});
        agent.succeed("clean.execute_clean_step", &order, STEP).unwrap()["clean_result"].clone()
    };
    let look = || -> Vec<String> {
        let seen = order("look");
        let seen = seen.as_str().unwrap_or_else(|| panic!("{seen}")).split_whitespace();
        // An extended partition has a size of two sectors, or of one.
        let mut seen: Vec<_> =
            seen.filter(|one| !one.ends_with("+2") && !one.ends_with("+1")).map(str::to_owned).collect();
        seen.sort();
        seen
    };
    let mut expected: Vec<_> =
        disks.iter().flat_map(|disk| disk.seen).map(|seen| (*seen).to_owned()).collect();
    expected.sort();
    assert_eq!(look(), expected);
    let erased = order("erase_devices_metadata");
    assert_eq!(look(), Vec::<String>::new(), "after {erased}");
    for (disk, serial) in disks.iter().zip(serials) {
        let after = Content::of(&File::open(folder.path().join(serial)).unwrap()).unwrap();
        let Mark { offset, bytes } = &disk.mark;
        assert_ne!(after.get(*offset, bytes.len()), *bytes, "{serial}: a superblock is left at {offset}");
    }
}
