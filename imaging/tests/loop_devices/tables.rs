//! Tables wherever an image may have them: none is to be found before the image is proven, as the tools of
//! the field see it.

use crate::deployment::{DISK, Deployment, MIB, image, request, serve};
use farrier_disk::Sectors;
use farrier_tests::images::server::Reply;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

fn run(program: &str, arguments: &[&str], file: &Path) -> String {
    let output = Command::new(program).args(arguments).arg(file).stdin(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A disk's content, with what `sgdisk` makes of it on a disk with such sectors.
pub fn with_gpt(content: &[u8], sector_size: u32) -> Vec<u8> {
    let deployment = Deployment::with_sectors(sector_size);
    deployment.fill(content);
    let path = deployment.disk.disk().path();
    let made = run("sgdisk", &["--new=1:0:+4M", "--new=2:0:0", "--typecode=1:ef00"], path);
    assert!(made.contains("completed successfully"), "{made}");
    deployment.content()
}

/// An MBR with a primary and three logical partitions, with a table before each of these.
fn with_logical_partitions() -> Vec<u8> {
    let mut content = (*image()).clone();
    content.resize(DISK, 0x11);
    let extended = 6 * 2048;
    write_mbr(&mut content, 0, &[(0x83, 2048, 2048), (0x05, extended, 8 * 2048)]);
    for number in 0..3 {
        let next = (0x05, (number + 1) * 4096, 4096);
        let here = (0x83, 2048, 2048);
        let entries = if number < 2 { vec![here, next] } else { vec![here] };
        write_mbr(&mut content, (extended + number * 4096) as usize * 512, &entries);
    }
    content
}

/// Writes type, start and length of each entry, in sectors.
fn write_mbr(content: &mut [u8], offset: usize, entries: &[(u8, u32, u32)]) {
    let sector = &mut content[offset..offset + 512];
    sector[446..].fill(0);
    for (entry, (kind, start, length)) in sector[446..510].chunks_exact_mut(16).zip(entries) {
        entry[4] = *kind;
        entry[8..12].copy_from_slice(&start.to_le_bytes());
        entry[12..].copy_from_slice(&length.to_le_bytes());
    }
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
}

/// A medium that boots from optical drives and from disks: an ISO with a boot catalogue and a GPT.
fn hybrid_iso() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("boot.img"), vec![0x90; 4096]).unwrap();
    fs::write(folder.path().join("data"), &**image()).unwrap();
    let iso = folder.path().join("image.iso");
    let options = ["-quiet", "-V", "HYBRID", "-b", "boot.img", "-no-emul-boot", "-o"];
    run("genisoimage", &[&options[..], &[iso.to_str().unwrap()]].concat(), folder.path());
    with_gpt(&fs::read(iso).unwrap(), 512)
}

/// What is found on the disk: by libblkid, and by a program that also believes a backup table.
fn found(deployment: &Deployment) -> (String, String) {
    let path = deployment.disk.disk().path();
    (run("blkid", &["-p", "-o", "export"], path), run("sgdisk", &["--print"], path))
}

#[test]
fn loop_p01_no_table_is_found_before_the_image_is_proven() {
    let gpt = with_gpt(&image(), 512);
    let short = gpt[..8 * MIB].to_vec();
    for (name, sector_size, content, mark) in [
        ("logical partitions", 512, with_logical_partitions(), "PTTYPE=dos"),
        ("GPT", 512, gpt.clone(), "PTTYPE=gpt"),
        ("GPT whose end is missing", 512, short, "PTTYPE=gpt"),
        ("GPT for 4 KiB", 4096, with_gpt(&image(), 4096), "PTTYPE=gpt"),
        ("hybrid ISO", 512, hybrid_iso(), "LABEL=HYBRID"),
    ] {
        let content = Arc::new(content);
        let proven = Deployment::with_sectors(sector_size);
        let server = serve(vec![Reply::Body(Arc::clone(&content))]);
        proven.write(&request(vec![server.url()], &content, Some("raw"))).unwrap();
        let (blkid, _) = found(&proven);
        assert!(blkid.contains(mark), "{name}: {blkid}");
        assert!(proven.content()[..content.len()] == **content, "{name}");

        // The disk carries the very table already, and all but the proof arrives.
        let error = proven.write(&request(vec![server.url()], b"other", Some("raw"))).unwrap_err();
        assert_eq!(error.kind().name(), "ImageChecksumError");
        let (blkid, sgdisk) = found(&proven);
        assert!(blkid.is_empty(), "{name}: {blkid}");
        assert!(sgdisk.contains("Creating new GPT entries"), "{name}: {sgdisk}");
        proven.assert_unbootable(&error);
    }
}

#[test]
fn loop_f11_an_old_table_for_other_sectors_is_gone_too() {
    let old = with_gpt(&[], 4096);
    let deployment = Deployment::new();
    deployment.fill(&old);
    let server = serve(vec![Reply::Truncated(image(), 3 * MIB)]);
    let error = deployment.write_from(&server).unwrap_err();
    deployment.assert_unbootable(&error);
    let content = deployment.content();
    assert!(!content.windows(8).step_by(512).any(|sector| sector == b"EFI PART"));
}

#[test]
fn loop_x23_an_mbr_for_other_sectors_is_refused_and_leaves_nothing_bootable() {
    // Partitions to the image's end: with sectors of 4 KiB they would end behind the disk, or behind the image.
    for (partition, length) in [(4096, DISK), (1024, 3 * MIB)] {
        let mut content = vec![0x11; length];
        write_mbr(&mut content, 0, &[(0x83, 2048, partition)]);
        let server = serve(vec![Reply::Body(Arc::new(content.clone()))]);
        let order = request(vec![server.url()], &content, Some("raw"));
        let large = Deployment::with_sectors(4096);
        let error = large.write(&order).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind().name(), "InvalidImage");
        assert!(text.contains("sectors of 512 bytes") && text.contains("has sectors of 4096"), "{text}");
        assert!(found(&large).0.is_empty());

        let server = serve(vec![Reply::Body(Arc::new(content.clone()))]);
        let small = Deployment::new();
        small.write(&request(vec![server.url()], &content, Some("raw"))).unwrap();
        assert!(found(&small).0.contains("PTTYPE=dos"));
    }
    let mut content = vec![0x11; DISK];
    write_mbr(&mut content, 0, &[(0x83, 256, 3840)]);
    let server = serve(vec![Reply::Body(Arc::new(content.clone()))]);
    let fitting = Deployment::with_sectors(4096);
    fitting.write(&request(vec![server.url()], &content, Some("raw"))).unwrap();
    assert!(fitting.content() == content);
}
