//! Images made by `qemu-img`, compared with what `qemu-img convert` makes of them.

use super::in_memory::{Mode, expand, run};
use super::{Fault, MEMORY};
use proptest::prelude::*;
use proptest::sample::Index;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

const MODES: [Mode; 2] = [Mode::Ranges, Mode::Stream];
const MIB: usize = 1 << 20;

fn qemu(program: &str, arguments: &[&str], folder: &Path) {
    let output = Command::new(program).args(arguments).current_dir(folder).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{program} of the package qemu-utils: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
}

/// Text, noise, zeros and holes, on a disk whose size is a whole number of sectors only.
fn content(size: usize) -> Vec<u8> {
    let mut state = 7_u32;
    let mut content: Vec<u8> = (0..size)
        .map(|index| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Stretches of 40,000 bytes by turns, so that few of them begin with a cluster.
            match index / 40_000 % 4 {
                0 => (index % 251) as u8,
                1 => (state >> 24) as u8,
                2 => b"farrier "[index % 8],
                _ => 0,
            }
        })
        .collect();
    content[size / 3..size / 2].fill(0);
    content
}

/// An image with these options, made of the content at once.
fn converted(folder: &Path, options: &[&str]) -> Vec<u8> {
    fs::write(folder.join("disk.raw"), content(5 * MIB + 1536)).unwrap();
    let arguments = [&["convert", "-f", "raw", "-O", "qcow2"], options, &["disk.raw", "disk.qcow2"]].concat();
    qemu("qemu-img", &arguments, folder);
    fs::read(folder.join("disk.qcow2")).unwrap()
}

/// What `qemu-img` makes of the image in the folder.
fn expected(folder: &Path) -> Vec<u8> {
    qemu("qemu-img", &["convert", "-O", "raw", "disk.qcow2", "expected.raw"], folder);
    fs::read(folder.join("expected.raw")).unwrap()
}

/// The disk of that size that an image was written to.
#[track_caller]
fn written(image: &[u8], mode: Mode, size: usize, sector: u32) -> Vec<u8> {
    run(image, image, mode, size as u64, MEMORY, sector).unwrap().disk.content(0, size)
}

#[track_caller]
fn assert_expands(folder: &Path, image: &[u8]) {
    let expected = expected(folder);
    for (mode, sector) in MODES.into_iter().flat_map(|mode| [(mode, 512), (mode, 4096)]) {
        let size = (expected.len() + 32 * MIB).next_multiple_of(4096);
        let disk = written(image, mode, size, sector);
        let end = expected.len().next_multiple_of(sector as usize);
        assert!(disk[expected.len()..end].iter().all(|byte| *byte == 0), "the last sector is not filled up");
        if disk[..expected.len()] != expected {
            let first = (0..expected.len()).find(|index| disk[*index] != expected[*index]).unwrap();
            panic!("{mode:?}: byte {first} is {} instead of {}", disk[first], expected[first]);
        }
    }
}

#[test]
fn x48_every_variant_becomes_what_qemu_makes_of_it_on_sectors_of_any_size() {
    for options in [
        &[][..],
        &["-o", "compat=0.10"],
        &["-o", "compat=1.1,lazy_refcounts=on"],
        &["-o", "cluster_size=512"],
        &["-o", "cluster_size=4k"],
        &["-o", "cluster_size=2M"],
        &["-o", "cluster_size=16k,extended_l2=on"],
        &["-o", "extended_l2=on"],
        &["-o", "extended_l2=on,cluster_size=2M"],
        &["-o", "preallocation=metadata"],
        &["-o", "preallocation=falloc"],
        &["-o", "refcount_bits=1"],
        &["-c"],
        &["-c", "-o", "cluster_size=4k"],
        &["-c", "-o", "cluster_size=2M"],
        &["-c", "-o", "compat=0.10"],
        &["-c", "-o", "compression_type=zstd"],
        &["-c", "-o", "compression_type=zstd,cluster_size=2M"],
        &["-c", "-o", "compression_type=zstd,extended_l2=on"],
        &["-S", "0"],
    ] {
        println!("{options:?}");
        let folder = tempfile::tempdir().unwrap();
        let image = converted(folder.path(), options);
        assert_expands(folder.path(), &image);
    }
}

/// An image of 64 MiB on which these commands of `qemu-io` were run.
fn worked_on(folder: &Path, options: &str, commands: &[&str]) -> Vec<u8> {
    let arguments = ["create", "-f", "qcow2", "-o", options, "disk.qcow2", "64M"];
    qemu("qemu-img", &arguments, folder);
    let commands: Vec<_> = commands.iter().flat_map(|command| ["-c", command]).collect();
    qemu("qemu-io", &[commands.as_slice(), &["disk.qcow2"]].concat(), folder);
    fs::read(folder.join("disk.qcow2")).unwrap()
}

const WORK: &[&str] = &[
    "write -P 1 40M 1M",
    "write -P 2 0 64k",
    "write -P 3 20M 2500k",
    "write -z 21M 300k",
    "write -P 4 2M 3k",
    "discard 40M 256k",
    "write -P 5 40100k 5k",
    "write -P 6 67104768 4096",
    "write -P 7 1M 512",
];

#[test]
fn x48_images_that_were_written_out_of_order_are_understood() {
    for options in
        ["cluster_size=64k", "extended_l2=on", "cluster_size=512", "extended_l2=on,cluster_size=32k"]
    {
        let folder = tempfile::tempdir().unwrap();
        let image = worked_on(folder.path(), options, WORK);
        assert_expands(folder.path(), &image);
    }
}

#[test]
fn snapshots_inside_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    worked_on(folder.path(), "cluster_size=64k", WORK);
    qemu("qemu-img", &["snapshot", "-c", "one", "disk.qcow2"], folder.path());
    qemu("qemu-io", &["-c", "write -P 9 20M 4M", "disk.qcow2"], folder.path());
    let image = fs::read(folder.path().join("disk.qcow2")).unwrap();
    assert_expands(folder.path(), &image);
}

/// Moves a cluster to the end of the file: the tables that name it must be told by the caller.
fn move_to_end(image: &mut Vec<u8>, offset: usize) -> u64 {
    let end = image.len().next_multiple_of(65536);
    image.resize(end, 0);
    let cluster = image[offset..offset + 65536].to_vec();
    image.extend(cluster);
    image[offset..offset + 65536].fill(0xee);
    end as u64
}

fn put(image: &mut [u8], at: usize, value: u64) {
    image[at..at + 8].copy_from_slice(&value.to_be_bytes());
}

fn get(image: &[u8], at: usize) -> u64 {
    super::header::be64(image, at)
}

fn first_l2(image: &[u8]) -> usize {
    (get(image, get(image, 40) as usize) & 0x00ff_ffff_ffff_fe00) as usize
}

#[test]
fn what_comes_before_its_table_waits_behind_the_image() {
    for options in [&[][..], &["-c"], &["-c", "-o", "compression_type=zstd"]] {
        let folder = tempfile::tempdir().unwrap();
        let mut image = converted(folder.path(), options);
        let (l1, l2) = (get(&image, 40) as usize, first_l2(&image));
        let moved = move_to_end(&mut image, l2);
        put(&mut image, l1, moved | 1 << 63);
        let moved = move_to_end(&mut image, l1);
        put(&mut image, 40, moved);
        let expected = {
            fs::write(folder.path().join("disk.qcow2"), &image).unwrap();
            expected(folder.path())
        };
        let disk = written(&image, Mode::Stream, expected.len() + 32 * MIB, 512);
        assert!(disk[..expected.len()] == expected, "{options:?}");
        let spool = &disk[expected.len().next_multiple_of(MIB)..];
        assert!(spool[0] == 0 && spool.is_sorted(), "the spool was not cleared");
        // Not a byte of the image fits behind it.
        let fault =
            run(&image, &image, Mode::Stream, (expected.len() + MIB) as u64, MEMORY, 512).unwrap_err();
        assert!(matches!(fault, Fault::NoRoom { .. }), "{fault:?}");
        assert!(run(&image, &image, Mode::Ranges, expected.len() as u64, MEMORY, 512).is_ok());
    }
}

#[test]
fn x32_hostile_images_are_made_from_ones_that_reach_the_spool() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/qcow2");
    for name in ["late-tables.qcow2", "late-tables-deflate.qcow2", "late-tables-zstd.qcow2"] {
        let image = fs::read(seeds.join(name)).unwrap();
        let [planned, streamed] = MODES.map(|mode| expand(&image, mode, 16 << 20, 1 << 20).unwrap());
        assert!(streamed.bytes_spooled > 0, "{name} never waits");
        assert!(streamed.disk.begins_like(&planned.disk, streamed.virtual_size), "{name}");
    }
}

#[test]
fn s11_hostile_tables_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let valid = converted(folder.path(), &[]);
    let (l1, l2) = (get(&valid, 40) as usize, first_l2(&valid));
    let data = get(&valid, l2) & 0x00ff_ffff_ffff_fe00;
    let cases: &[(&str, usize, u64)] = &[
        ("a cluster used twice", l2 + 8, data),
        ("a cluster that is a table", l2, l2 as u64),
        ("a cluster that is the header", l2 + 8, 1 << 63),
        ("a cluster that is the L1 table", l2, l1 as u64),
        ("a cluster behind the end", l2, 1 << 40),
        ("a cluster between clusters", l2, data + 512),
        ("a table behind the end", l1, 1 << 40),
        ("a table between clusters", l1, l2 as u64 + 512),
        ("a table that is the header's neighbour", l1, 0x30000),
        ("a table of tables", l1, l1 as u64),
        ("an L1 table behind the end", 40, 1 << 40),
        ("a compressed cluster behind the end", l2, 1 << 62 | 1 << 40),
        ("a compressed cluster of noise", l2 + 8, 1 << 62 | data),
        ("a compressed cluster over others", l2 + 8, 1 << 62 | 0xff << 54 | data),
    ];
    for (what, at, value) in cases {
        let mut image = valid.clone();
        put(&mut image, *at, *value);
        for mode in MODES {
            let outcome = run(&image, &image, mode, 64 * MIB as u64, MEMORY, 512);
            // The one entry that means nothing at all is a hole.
            if *value == 1 << 63 {
                assert!(outcome.is_ok());
            } else {
                assert!(matches!(outcome, Err(Fault::Invalid(_))), "{what}, {mode:?}: {:?}", outcome.err());
            }
        }
    }
}

#[test]
fn s12_the_limit_of_memory_bites() {
    let folder = tempfile::tempdir().unwrap();
    let image = converted(folder.path(), &["-o", "cluster_size=512"]);
    for mode in MODES {
        let fault = run(&image, &image, mode, 64 * MIB as u64, 2048, 512).unwrap_err();
        assert!(matches!(fault, Fault::Memory), "{mode:?}: {fault:?}");
    }
    // The largest L1 table of clusters of 512 bytes needs more than there is.
    let mut huge = image;
    put(&mut huge, 24, 128 << 30);
    huge[36..40].copy_from_slice(&[0, 0x40, 0, 0]);
    for mode in MODES {
        let image = super::Image::open(&huge, MEMORY).unwrap();
        assert_eq!(image.virtual_size(), 128 << 30);
        let fault = run(&huge, &huge, mode, 64 * MIB as u64, MEMORY, 512).unwrap_err();
        assert!(matches!(fault, Fault::NoRoom { .. }), "{mode:?}: {fault:?}");
    }
}

#[test]
fn p05_an_image_cut_anywhere_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for options in [&[][..], &["-c"], &["-o", "extended_l2=on"]] {
        let image = converted(folder.path(), options);
        for length in [0, 50, 103, 4096, 65536, 196_610, 300_000, MIB, MIB + 7, image.len() - 2 * 65536] {
            for mode in MODES {
                let cut = &image[..length];
                assert!(
                    run(cut, cut, mode, 64 * MIB as u64, MEMORY, 512).is_err(),
                    "{options:?}, {mode:?}, {length}"
                );
            }
        }
    }
}

#[test]
fn s11_tables_that_changed_between_reading_and_passing_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    // The tables of the second GiB do not come with the first MiB.
    fs::File::create(folder.path().join("disk.raw")).unwrap().set_len(1 << 30).unwrap();
    let raw = fs::OpenOptions::new().write(true).open(folder.path().join("disk.raw")).unwrap();
    raw.write_all_at(&vec![3; 4 * MIB], 0).unwrap();
    raw.write_all_at(&vec![5; MIB], 600 << 20).unwrap();
    (&raw).flush().unwrap();
    qemu("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", "disk.raw", "disk.qcow2"], folder.path());
    let image = fs::read(folder.path().join("disk.qcow2")).unwrap();
    let l1 = get(&image, 40) as usize;
    let l2 = (get(&image, l1 + 8) & 0x00ff_ffff_ffff_fe00) as usize;
    assert!(l2 > MIB, "the table came early");
    assert!(run(&image, &image, Mode::Ranges, 1 << 30, MEMORY, 512).is_ok());
    let mut other = image.clone();
    let entry = (0..8192).map(|number| l2 + number * 8).find(|at| get(&image, *at) != 0).unwrap();
    put(&mut other, entry, 0);
    let fault = run(&image, &other, Mode::Ranges, 1 << 30, MEMORY, 512).unwrap_err();
    assert!(matches!(fault, Fault::Changed), "{fault:?}");
}

/// Whether `qemu-img` opens the image.
fn qemu_opens(folder: &Path, image: &[u8]) -> bool {
    fs::write(folder.join("opened.qcow2"), image).unwrap();
    let mut command = Command::new("qemu-img");
    command.args(["info", "-f", "qcow2", "opened.qcow2"]).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

#[test]
fn x48_a_header_that_qemu_refuses_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let valid = converted(folder.path(), &[]);
    let narrow = [
        (4, 4),   // version
        (20, 4),  // bits of a cluster
        (32, 4),  // encryption
        (36, 4),  // entries of the L1 table
        (56, 4),  // clusters of the table of refcounts
        (60, 4),  // snapshots
        (96, 4),  // width of a refcount
        (100, 4), // length of the header
        (104, 1), // compression
    ];
    let wide = [8, 24, 40, 48, 64, 72].map(|at| (at, 8));
    let mut refused = 0;
    for (at, length) in narrow.into_iter().chain(wide) {
        let was = valid[at..at + length].iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        for value in
            [0, 1, 5, 7, 22, was / 2, was + 1, was + 512, was << 8, 1 << 16, 1 << 23, 1 << 31, 1 << 62, !0]
        {
            let mut image = valid.clone();
            image[at..at + length].copy_from_slice(&value.to_be_bytes()[8 - length..]);
            if qemu_opens(folder.path(), &image) {
                continue;
            }
            refused += 1;
            for mode in MODES {
                let outcome = run(&image, &image, mode, 64 * MIB as u64, MEMORY, 512);
                assert!(outcome.is_err(), "{mode:?} takes {value:#x} at {at}, QEMU does not");
            }
        }
    }
    assert!(refused > 50, "QEMU refused {refused} only");
}

/// An image, and the places of its header and of its tables.
type Kind = (Vec<u8>, [Range<usize>; 4]);

/// Small images of every kind.
static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let options: [&[&str]; 6] = [
        &[],
        &["-o", "cluster_size=512"],
        &["-o", "cluster_size=4k"],
        &["-o", "extended_l2=on"],
        &["-c", "-o", "cluster_size=4k"],
        &["-c"],
    ];
    let kind = |options: &&[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let image = converted(folder.path(), options);
        let (l1, counts) = (get(&image, 40) as usize, get(&image, 48) as usize);
        let l2 = first_l2(&image);
        (image, [0..112, l1..l1 + 16, l2..l2 + 96, counts..counts + 16])
    };
    options.iter().map(kind).collect()
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn x48_an_image_is_refused_in_both_modes_or_in_none(
        kind in 0..6_usize,
        changes in proptest::collection::vec(
            (0..4_usize, any::<Index>(), any::<Index>(), any::<Index>(), 0..6_u8, 0..64_u32),
            1..3,
        ),
        moves_table: bool,
        sector in prop_oneof![Just(512_u32), Just(4096)],
    ) {
        let (image, places) = &KINDS[kind];
        let mut image = image.clone();
        for (place, at, from, other, how, bit) in changes {
            let at = places[place].start + at.index(places[place].len() / 8) * 8;
            let from = places[from.index(4)].clone();
            let another = get(&image, from.start + other.index(from.len() / 8) * 8);
            let value = match how {
                0 => 0,
                1 => another,
                2 => get(&image, at) ^ 1 << bit,
                3 => get(&image, at).wrapping_add(512),
                4 => from.start as u64 | 1 << 63,
                _ => another & 0x00ff_ffff_ffff_fe00 | 1 << 62,
            };
            put(&mut image, at, value);
        }
        if moves_table && get(&image, 40) == places[1].start as u64 && places[1].start.is_multiple_of(65536) {
            let moved = move_to_end(&mut image, places[1].start);
            put(&mut image, 40, moved);
        }
        let outcomes = MODES.map(|mode| run(&image, &image, mode, 16 * MIB as u64, MEMORY, sector));
        match outcomes {
            [Ok(one), Ok(other)] => {
                let size = get(&image, 24);
                prop_assert!(one.disk.begins_like(&other.disk, size), "the two ways to write it differ");
            }
            // What an image needs may differ; what it may be does not.
            [Err(Fault::Memory | Fault::NoRoom { .. }), _] | [_, Err(Fault::Memory | Fault::NoRoom { .. })] => {}
            [Err(_), Err(_)] => {}
            [one, other] => prop_assert!(false, "{:?} and {:?}", one.err(), other.err()),
        }
    }
}
