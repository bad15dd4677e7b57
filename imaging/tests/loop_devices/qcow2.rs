//! qcow2 images from servers with and without ranges, and from local files.

use crate::deployment::{DISK, Deployment, MIB, image, request, serve};
use farrier_tests::images::server::{ImageServer, Reply};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

fn qemu_img(arguments: &[&str], folder: &Path) {
    let mut command = Command::new("qemu-img");
    let output = command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The image of these tests as qcow2, with options of `qemu-img convert`.
fn qcow2(options: &[&str]) -> (TempDir, PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("image.raw"), &**image()).unwrap();
    let arguments =
        [&["convert", "-f", "raw", "-O", "qcow2"], options, &["image.raw", "image.qcow2"]].concat();
    qemu_img(&arguments, folder.path());
    let path = folder.path().join("image.qcow2");
    let content = fs::read(&path).unwrap();
    (folder, path, content)
}

#[track_caller]
fn assert_deploys(deployment: &Deployment, url: String, packed: &[u8], declared: Option<&str>) {
    let report = deployment.write(&request(vec![url], packed, declared)).unwrap();
    let padded = image().len().next_multiple_of(512);
    let content = deployment.content();
    assert!(content[..image().len()] == **image(), "the disk differs from the image");
    assert!(content[image().len()..padded].iter().all(|byte| *byte == 0));
    assert_eq!(report.bytes_read, packed.len() as u64);
    assert!(report.bytes_zeroed >= 2 * MIB as u64, "{report:?}");
    assert!(report.bytes_written < 5 * MIB as u64, "{report:?}");
}

/// A converter that works on a file before its digest is known hands hostile bytes to a parser that can reach the
/// machine's files and memory, and leaves a disk that looks deployed. Here the bytes are parsed while they
/// arrive, because they fit nowhere but on the disk. What the rule is for holds all the same:
///
/// - the parser is ours, reaches nothing but the image and the target, and has caps for memory and room
///   (`s11_hostile_tables_are_refused`, `s12_the_limit_of_memory_bites`, the fuzz target `qcow2`);
/// - what proves the image is the digest of the bytes as they were received, not of what they became;
/// - until it matched, nothing is on the disk from which anything starts, and when it does not, nothing is left of
///   that: this test, for every way in which an image can be converted.
#[test]
fn loop_s46_whatever_is_converted_nothing_starts_before_the_digest_matched() {
    let gzip = |content: &[u8]| {
        let mut packed = Vec::new();
        let level = flate2::Compression::fast();
        flate2::bufread::GzEncoder::new(content, level).read_to_end(&mut packed).unwrap();
        packed
    };
    for options in [&[][..], &["-c"]] {
        let (_folder, path, plain) = qcow2(options);
        let packed = gzip(&plain);
        let replies = [
            (Reply::File(path), Some("qcow2")),
            (Reply::Body(Arc::new(plain)), Some("qcow2")),
            (Reply::Body(Arc::new(packed)), None),
        ];
        for (reply, declared) in replies {
            let deployment = Deployment::new();
            let server = serve(vec![reply]);
            let error = deployment.write(&request(vec![server.url()], b"other", declared)).unwrap_err();
            assert_eq!(error.kind().name(), "ImageChecksumError", "{options:?} {declared:?}: {error}");
            deployment.assert_unbootable(&error);
        }
    }
}

#[test]
fn loop_qcow2_is_written_in_place_from_any_source() {
    for options in [&[][..], &["-c"], &["-c", "-o", "compression_type=zstd"], &["-o", "extended_l2=on"]] {
        let (_folder, path, packed) = qcow2(options);
        let with_ranges = serve(vec![Reply::File(path.clone())]);
        let without = serve(vec![Reply::Body(Arc::new(packed.clone()))]);
        let endless = serve(vec![Reply::WithoutLength(Arc::new(packed.clone()))]);
        let file = format!("file://{}", path.display());
        for url in [without.url(), endless.url()] {
            assert_deploys(&Deployment::new(), url, &packed, Some("qcow2"));
        }
        for url in [with_ranges.url(), file] {
            let deployment = Deployment::new();
            assert_deploys(&deployment, url, &packed, Some("qcow2"));
            let content = deployment.content();
            let behind = image().len().next_multiple_of(65536);
            assert!(content[behind..DISK - MIB].iter().all(|byte| *byte == 0xaa), "more was written");
        }
    }
}

#[test]
fn loop_x48_clusters_smaller_than_the_disks_sectors_are_put_together() {
    for options in [["-o", "cluster_size=512"], ["-o", "extended_l2=on"]] {
        let (_folder, path, packed) = qcow2(&options);
        for reply in [Reply::File(path), Reply::Body(Arc::new(packed.clone()))] {
            let deployment = Deployment::with_sectors(4096);
            let server = serve(vec![reply]);
            deployment.write(&request(vec![server.url()], &packed, Some("qcow2"))).unwrap();
            let (content, padded) = (deployment.content(), image().len().next_multiple_of(4096));
            assert!(content[..image().len()] == **image(), "{options:?}: the disk differs from the image");
            assert!(content[image().len()..padded].iter().all(|byte| *byte == 0), "{options:?}");
        }
    }
}

#[test]
fn loop_a_packed_qcow2_is_unpacked_on_the_way() {
    let (_folder, _, packed) = qcow2(&[]);
    let packed = zstd::encode_all(packed.as_slice(), 1).unwrap();
    for declared in [None, Some("qcow2")] {
        let server = serve(vec![Reply::Body(Arc::new(packed.clone()))]);
        assert_deploys(&Deployment::new(), server.url(), &packed, declared);
    }
}

#[test]
fn loop_tables_far_behind_are_asked_for_and_the_rest_is_one_request() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("image.raw"), &**image()).unwrap();
    // Clusters of 4 KiB: every two MiB have a table of their own.
    let arguments = ["convert", "-O", "qcow2", "-o", "cluster_size=4k", "image.raw", "image.qcow2"];
    qemu_img(&arguments, folder.path());
    let path = folder.path().join("image.qcow2");
    let packed = fs::read(&path).unwrap();
    let server = serve(vec![Reply::File(path)]);
    assert_deploys(&Deployment::new(), server.url(), &packed, None);
    let heads = server.heads();
    assert!(heads.len() > 1, "no table was asked for");
    assert!(!heads[0].contains("range: "), "{}", heads[0]);
    for head in &heads[1..] {
        assert!(head.contains("range: bytes=") && head.contains("if-range: \""), "{head}");
    }
}

/// Deploys a spoilt image and returns the error.
fn refusal(deployment: &Deployment, server: &ImageServer, packed: &[u8]) -> String {
    let error = deployment.write(&request(vec![server.url()], packed, Some("qcow2"))).unwrap_err();
    assert_eq!(error.kind().name(), "InvalidImage", "{error}");
    error.to_string()
}

#[test]
fn loop_s11_references_are_refused_before_the_disk_is_touched() {
    let (_folder, _, valid) = qcow2(&[]);
    for (at, value, reason) in
        [(15, 0x70, "backing file"), (79, 4, "another file"), (35, 1, "encrypted"), (79, 2, "corrupt")]
    {
        let mut packed = valid.clone();
        packed[at] = value;
        let server = serve(vec![Reply::Body(Arc::new(packed.clone()))]);
        let deployment = Deployment::new();
        let error = refusal(&deployment, &server, &packed);
        assert!(error.contains(reason) && error.contains(&server.url()), "{error}");
        deployment.assert_untouched();
    }
}

#[test]
fn loop_s11_s12_hostile_tables_leave_the_disk_untouched_or_unbootable() {
    let (folder, path, mut packed) = qcow2(&[]);
    let l1 = u64::from_be_bytes(packed[40..48].try_into().unwrap()) as usize;
    // The second L1 entry does not exist; the first one leads behind the end.
    packed[l1 + 2] = 0x10;
    fs::write(&path, &packed).unwrap();
    let deployment = Deployment::new();
    let error = refusal(&deployment, &serve(vec![Reply::File(path)]), &packed);
    assert!(error.contains("behind its end"), "{error}");
    deployment.assert_untouched();
    let server = serve(vec![Reply::Body(Arc::new(packed.clone()))]);
    let request = request(vec![server.url()], &packed, Some("qcow2"));
    let error = deployment.write(&request).unwrap_err();
    deployment.assert_unbootable(&error);
    drop(folder);
}

#[test]
fn loop_p05_p10_a_short_or_damaged_qcow2_is_fetched_again() {
    let (_folder, _, packed) = qcow2(&["-c"]);
    let packed = Arc::new(packed);
    let mut damaged = (*packed).clone();
    damaged[packed.len() - 70_000] ^= 0x55;
    for first in [Reply::Truncated(Arc::clone(&packed), packed.len() / 2), Reply::Body(Arc::new(damaged))] {
        let server = serve(vec![first, Reply::Body(Arc::clone(&packed))]);
        assert_deploys(&Deployment::new(), server.url(), &packed, None);
        assert_eq!(server.requests(), 2);
    }
}

#[test]
fn loop_a_disk_smaller_than_the_virtual_disk_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    qemu_img(&["create", "-f", "qcow2", "image.qcow2", "64M"], folder.path());
    let packed = fs::read(folder.path().join("image.qcow2")).unwrap();
    let server = serve(vec![Reply::Body(Arc::new(packed.clone()))]);
    let deployment = Deployment::new();
    let error = deployment.write(&request(vec![server.url()], &packed, None)).unwrap_err();
    assert!(error.to_string().contains(&(64 * MIB).to_string()), "{error}");
    deployment.assert_untouched();
}

#[test]
fn loop_an_image_as_large_as_the_disk_keeps_both_ends_back() {
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..DISK).map(|index| (index % 241) as u8 + 1).collect();
    fs::write(folder.path().join("image.raw"), &content).unwrap();
    qemu_img(&["convert", "-f", "raw", "-O", "qcow2", "image.raw", "image.qcow2"], folder.path());
    let packed = fs::read(folder.path().join("image.qcow2")).unwrap();
    for reply in [Reply::File(folder.path().join("image.qcow2")), Reply::Body(Arc::new(packed.clone()))] {
        let server = serve(vec![reply]);
        let deployment = Deployment::new();
        deployment.write(&request(vec![server.url()], &packed, None)).unwrap();
        assert!(deployment.content() == content);
        let error = deployment.write(&request(vec![server.url()], b"other", None)).unwrap_err();
        assert_eq!(error.kind().name(), "ImageChecksumError");
        deployment.assert_unbootable(&error);
    }
}
