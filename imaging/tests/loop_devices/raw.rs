//! Raw images, from servers that behave.

use crate::deployment::{DISK, Deployment, MIB, image, request, serve};
use farrier_disk::Sectors;
use farrier_protocol::progress::Phase;
use farrier_tests::images::server::Reply;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a piece that are read back when not everything is.
const SAMPLED: usize = 128 << 10;

#[test]
fn loop_an_image_is_written_sparsely_and_proven() {
    for (sector_size, reply) in [(512, Reply::Body(image())), (4096, Reply::WithoutLength(image()))] {
        let deployment = Deployment::with_sectors(sector_size);
        let report = deployment.write_from(&serve(vec![reply])).unwrap();
        let padded = image().len().next_multiple_of(sector_size as usize);
        assert_eq!(report.bytes_read, image().len() as u64);
        assert_eq!(report.bytes_zeroed, 3 * MIB as u64);
        assert_eq!(report.bytes_written + report.bytes_zeroed, padded as u64);
        // All of the first MiB, the beginnings of two others and of the zeros, and the last sectors.
        assert_eq!(report.bytes_verified, (MIB + 3 * SAMPLED + (padded - 6 * MIB)) as u64);
        let content = deployment.content();
        assert!(content[..image().len()] == **image(), "the disk differs from the image");
        assert!(content[image().len()..padded].iter().all(|byte| *byte == 0));
        assert!(content[padded..DISK - MIB].iter().all(|byte| *byte == 0xaa));
        assert_eq!(deployment.progress.snapshot().phase, Phase::Verifying);
    }
}

#[test]
fn loop_an_image_larger_than_the_disk_is_refused() {
    let large = Arc::new(vec![1; DISK + 1]);
    let deployment = Deployment::new();
    let server = serve(vec![Reply::Body(large.clone())]);
    let error = deployment.write_from(&server).unwrap_err();
    assert_eq!(error.kind().name(), "ImageWriteError");
    assert!(error.to_string().contains(&(DISK + 1).to_string()), "{error}");
    assert_eq!(server.requests(), 1);
    deployment.assert_untouched();

    let server = serve(vec![Reply::WithoutLength(large)]);
    let error = deployment.write_from(&server).unwrap_err();
    assert!(error.to_string().contains("choose a larger disk"), "{error}");
    assert_eq!(server.requests(), 1);
    deployment.assert_unbootable(&error);
}

#[test]
fn loop_p01_p11_the_first_mib_comes_last_and_cancelling_is_a_failure() {
    let deployment = Deployment::new();
    let server = serve(vec![Reply::Stalled(image(), 6 * MIB)]);
    let (cancel, progress) = (deployment.cancel.clone(), deployment.progress.clone());
    let path = deployment.disk.disk().path().to_owned();
    let observer = thread::spawn(move || {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut start = vec![0; 2 * MIB];
        while start[MIB..] != image()[MIB..2 * MIB] && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
            File::open(&path).unwrap().read_exact_at(&mut start, 0).unwrap();
        }
        assert!(progress.snapshot().bytes >= 2 * MIB as u64);
        cancel.cancel();
        start
    });
    let error = deployment.write_from(&server).unwrap_err();
    let start = observer.join().unwrap();
    assert!(
        start[..MIB].iter().all(|byte| *byte == 0),
        "the first MiB was written before the digest was known"
    );
    assert!(start[MIB..] == image()[MIB..2 * MIB], "the second MiB is not there yet");
    assert!(error.to_string().contains("cancelled"), "{error}");
    assert_eq!(server.requests(), 1);
    deployment.assert_unbootable(&error);
}

#[test]
fn loop_s11_d08_undeclared_formats_are_refused_and_declared_raw_is_exact() {
    let mut vmdk = (*image()).clone();
    vmdk[..4].copy_from_slice(b"KDMV");
    let server = serve(vec![Reply::Body(Arc::new(vmdk.clone()))]);
    let deployment = Deployment::new();
    for declared in [None, Some("unknown"), Some("qcow2")] {
        let error = deployment.write(&request(vec![server.url()], &vmdk, declared)).unwrap_err();
        assert_eq!(error.kind().name(), "InvalidImage");
        assert!(error.to_string().contains("vmdk"), "{error}");
        deployment.assert_untouched();
    }
    deployment.write(&request(vec![server.url()], &vmdk, Some("raw"))).unwrap();
    assert!(deployment.content()[..vmdk.len()] == vmdk);
}

#[test]
fn loop_an_empty_image_is_no_image() {
    let deployment = Deployment::new();
    let server = serve(vec![Reply::Body(Arc::new(Vec::new()))]);
    let error = deployment.write(&request(vec![server.url()], &[], Some("raw"))).unwrap_err();
    assert!(error.to_string().contains("is empty"), "{error}");
    deployment.assert_untouched();
}

#[test]
fn loop_f11_an_image_for_other_sectors_is_refused_before_writing() {
    let mut gpt = (*image()).clone();
    gpt[512..520].copy_from_slice(b"EFI PART");
    let server = serve(vec![Reply::Body(Arc::new(gpt.clone()))]);
    let deployment = Deployment::with_sectors(4096);
    let error = deployment.write(&request(vec![server.url()], &gpt, Some("raw"))).unwrap_err();
    assert!(error.to_string().contains("made for sectors of 512 bytes"), "{error}");
    deployment.assert_untouched();
}
