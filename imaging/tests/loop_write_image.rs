//! Whole deployments of images from a loopback server to loop devices.

#![allow(clippy::unwrap_used)]

#[path = "../../disk/tests/support/mod.rs"]
mod disk_support;
mod support;

use disk_support::TestDisk;
use farrier_disk::view::DiskView;
use farrier_imaging::Error;
use farrier_imaging::cancel::CancelHandle;
use farrier_imaging::pipeline::{ImageRequest, Report, write_image};
use farrier_imaging::progress::ProgressHandle;
use farrier_imaging::source::{HttpSource, Options};
use farrier_protocol::image_info::ImageInfo;
use farrier_protocol::progress::Phase;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use support::{ImageServer, Reply};
use tokio::runtime::Runtime;

const MIB: usize = 1 << 20;
const DISK: usize = 16 * MIB;

/// Six MiB and some bytes: data, a hole of three MiB, data; no whole number of sectors.
fn image() -> Arc<Vec<u8>> {
    let mut image: Vec<u8> = (0..6 * MIB + 700).map(|index| (index % 251) as u8).collect();
    image[2 * MIB..5 * MIB].fill(0);
    Arc::new(image)
}

fn request(urls: Vec<String>, image: &[u8], disk_format: Option<&str>) -> ImageRequest {
    ImageRequest::new(&ImageInfo {
        id: "image.raw".to_owned(),
        urls,
        os_hash_algo: Some("sha256".to_owned()),
        os_hash_value: Some(hex::encode(Sha256::digest(image))),
        disk_format: disk_format.map(str::to_owned),
        ..ImageInfo::default()
    })
    .unwrap()
}

/// A disk full of what a former tenant left.
struct Deployment {
    disk: TestDisk,
    runtime: Runtime,
    options: Options,
    progress: ProgressHandle,
    cancel: CancelHandle,
}

impl Deployment {
    fn new() -> Self {
        Self::with_sectors(512)
    }

    fn with_sectors(sector_size: u32) -> Self {
        let disk = TestDisk::new(DISK as u64, sector_size);
        let mut old = farrier_linux::aligned::AlignedBuffer::zeroed(DISK);
        old.fill(0xaa);
        disk.disk().write_all_at(&old, 0).unwrap();
        Self {
            disk,
            runtime: Runtime::new().unwrap(),
            options: Options {
                connect_timeout: Duration::from_secs(5),
                read_timeout: Duration::from_secs(5),
                retries: 2,
                retry_interval: Duration::from_millis(20),
                max_duration: None,
            },
            progress: ProgressHandle::default(),
            cancel: CancelHandle::default(),
        }
    }

    fn write(&self, request: &ImageRequest) -> Result<Report, Error> {
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
        let source = HttpSource::new(client, self.runtime.handle().clone(), self.options.clone());
        write_image(request, &source, self.disk.disk(), &self.progress, &self.cancel)
    }

    fn write_from(&self, server: &ImageServer) -> Result<Report, Error> {
        self.write(&request(vec![server.url()], &image(), Some("raw")))
    }

    fn content(&self) -> Vec<u8> {
        let mut content = Vec::new();
        DiskView::whole(self.disk.disk()).read_to_end(&mut content).unwrap();
        content
    }

    #[track_caller]
    fn assert_untouched(&self) {
        assert!(self.content().iter().all(|byte| *byte == 0xaa), "the disk was touched");
    }

    #[track_caller]
    fn assert_unbootable(&self, error: &Error) {
        let content = self.content();
        assert!(content[..MIB].iter().all(|byte| *byte == 0), "the first MiB is not empty");
        assert!(content[DISK - MIB..].iter().all(|byte| *byte == 0), "the last MiB is not empty");
        assert!(error.to_string().contains("without a partition table"), "{error}");
        assert_eq!(self.progress.snapshot().phase, Phase::Failed);
    }
}

#[test]
fn loop_an_image_is_written_sparsely_and_proven() {
    for (sector_size, reply) in [(512, Reply::Body(image())), (4096, Reply::WithoutLength(image()))] {
        let deployment = Deployment::with_sectors(sector_size);
        let report = deployment.write_from(&ImageServer::new(vec![reply])).unwrap();
        let padded = image().len().next_multiple_of(sector_size as usize);
        assert_eq!(report.bytes_read, image().len() as u64);
        assert_eq!(report.bytes_zeroed, 3 * MIB as u64);
        assert_eq!(report.bytes_written + report.bytes_zeroed, padded as u64);
        assert_eq!(report.bytes_verified, padded as u64);
        let content = deployment.content();
        assert!(content[..image().len()] == **image(), "the disk differs from the image");
        assert!(content[image().len()..padded].iter().all(|byte| *byte == 0));
        assert!(content[padded..DISK - MIB].iter().all(|byte| *byte == 0xaa));
        assert_eq!(deployment.progress.snapshot().phase, Phase::Verifying);
    }
}

#[test]
fn loop_d07_a_truncated_body_is_tried_again_as_a_whole() {
    for first in [Reply::Truncated(image(), 3 * MIB + 5), Reply::Status(500), Reply::Status(429)] {
        let deployment = Deployment::new();
        let server = ImageServer::new(vec![first, Reply::Body(image())]);
        let report = deployment.write_from(&server).unwrap();
        assert_eq!(server.requests(), 2);
        assert_eq!(report.bytes_read, image().len() as u64);
        assert!(deployment.content()[..image().len()] == **image());
    }
}

#[test]
fn loop_p05_a_body_that_stays_short_fails_and_leaves_no_table() {
    let deployment = Deployment::new();
    let server = ImageServer::new(vec![Reply::Truncated(image(), 3 * MIB)]);
    let error = deployment.write_from(&server).unwrap_err();
    assert_eq!(server.requests(), 3);
    assert_eq!(error.kind().name(), "ImageDownloadError");
    assert!(error.to_string().contains(&server.url()), "{error}");
    assert!(error.to_string().contains(&image().len().to_string()), "{error}");
    deployment.assert_unbootable(&error);
}

#[test]
fn loop_f03_a_permanent_status_fails_at_once_and_touches_nothing() {
    for status in [401, 403, 404, 204] {
        let deployment = Deployment::new();
        let server = ImageServer::new(vec![Reply::Status(status)]);
        let error = deployment.write_from(&server).unwrap_err();
        assert_eq!(server.requests(), 1, "{status}");
        assert!(error.to_string().contains(&status.to_string()), "{error}");
        assert!(error.to_string().contains(&server.url()), "{error}");
        deployment.assert_untouched();
    }
}

#[test]
fn loop_the_next_url_is_used() {
    let deployment = Deployment::new();
    let bad = ImageServer::new(vec![Reply::Status(404)]);
    let good = ImageServer::new(vec![Reply::Body(image())]);
    let nobody = "http://127.0.0.1:9/image.raw".to_owned();
    let urls = vec![bad.url(), nobody, good.url()];
    deployment.write(&request(urls, &image(), Some("raw"))).unwrap();
    assert_eq!((bad.requests(), good.requests()), (1, 1));
}

#[test]
fn loop_f10_the_last_url_is_named_with_its_reason() {
    let deployment = Deployment::new();
    let bad = ImageServer::new(vec![Reply::Status(503)]);
    let nobody = "http://127.0.0.1:9/image.raw".to_owned();
    let error =
        deployment.write(&request(vec![bad.url(), nobody.clone()], &image(), None)).unwrap_err().to_string();
    // Attempts take turns: the third and last one asks the first server again.
    for named in [bad.url().as_str(), "503", "3 attempts"] {
        assert!(error.contains(named), "{named}: {error}");
    }
    let error = deployment.write(&request(vec![nobody.clone()], &image(), None)).unwrap_err().to_string();
    for named in [nobody.as_str(), "refused", "3 attempts"] {
        assert!(error.contains(named), "{named}: {error}");
    }
    deployment.assert_untouched();
}

#[test]
fn loop_f10_a_wrong_digest_is_tried_twice_and_named_in_full() {
    let mut other = (*image()).clone();
    other[5 * MIB + 1] ^= 1;
    let actual = hex::encode(Sha256::digest(&other));
    let deployment = Deployment::new();
    let server = ImageServer::new(vec![Reply::Body(Arc::new(other))]);
    let error = deployment.write_from(&server).unwrap_err();
    assert_eq!(server.requests(), 2);
    assert_eq!(error.kind().name(), "ImageChecksumError");
    for named in [server.url(), "sha256".to_owned(), hex::encode(Sha256::digest(&*image())), actual] {
        assert!(error.to_string().contains(&named), "{named}: {error}");
    }
    deployment.assert_unbootable(&error);
}

#[test]
fn loop_an_image_larger_than_the_disk_is_refused() {
    let large = Arc::new(vec![1; DISK + 1]);
    let deployment = Deployment::new();
    let server = ImageServer::new(vec![Reply::Body(large.clone())]);
    let error = deployment.write_from(&server).unwrap_err();
    assert_eq!(error.kind().name(), "ImageWriteError");
    assert!(error.to_string().contains(&(DISK + 1).to_string()), "{error}");
    assert_eq!(server.requests(), 1);
    deployment.assert_untouched();

    let server = ImageServer::new(vec![Reply::WithoutLength(large)]);
    let error = deployment.write_from(&server).unwrap_err();
    assert!(error.to_string().contains("choose a larger disk"), "{error}");
    assert_eq!(server.requests(), 1);
    deployment.assert_unbootable(&error);
}

#[test]
fn loop_f01_a_stall_and_a_slow_server_are_noticed() {
    let mut deployment = Deployment::new();
    let server = ImageServer::new(vec![Reply::Stalled(image(), 2 * MIB)]);
    deployment.options.read_timeout = Duration::from_millis(100);
    let error = deployment.write_from(&server).unwrap_err();
    assert_eq!(server.requests(), 3);
    assert!(error.to_string().contains("nothing came for 0.1 s"), "{error}");
    deployment.assert_unbootable(&error);

    deployment.options.read_timeout = Duration::from_secs(60);
    deployment.options.max_duration = Some(Duration::from_millis(300));
    let started = Instant::now();
    let error = deployment.write_from(&server).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(server.requests(), 4, "the limit of the whole is not retried");
    assert!(error.to_string().contains("took longer than"), "{error}");
}

#[test]
fn loop_p01_p11_the_first_mib_comes_last_and_cancelling_is_a_failure() {
    let deployment = Deployment::new();
    let server = ImageServer::new(vec![Reply::Stalled(image(), 6 * MIB)]);
    let (cancel, progress) = (deployment.cancel.clone(), deployment.progress.clone());
    let path = deployment.disk.disk().path().to_owned();
    let observer = thread::spawn(move || {
        let deadline = Instant::now() + Duration::from_secs(30);
        while progress.snapshot().bytes < 2 * MIB as u64 && Instant::now() < deadline {
            thread::yield_now();
        }
        let mut start = vec![0; 2 * MIB];
        File::open(path).unwrap().read_exact(&mut start).unwrap();
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
    let mut qcow2 = (*image()).clone();
    qcow2[..4].copy_from_slice(b"QFI\xfb");
    let server = ImageServer::new(vec![Reply::Body(Arc::new(qcow2.clone()))]);
    let deployment = Deployment::new();
    for declared in [None, Some("unknown")] {
        let error = deployment.write(&request(vec![server.url()], &qcow2, declared)).unwrap_err();
        assert_eq!(error.kind().name(), "InvalidImage");
        assert!(error.to_string().contains("qcow2"), "{error}");
        deployment.assert_untouched();
    }
    deployment.write(&request(vec![server.url()], &qcow2, Some("raw"))).unwrap();
    assert!(deployment.content()[..qcow2.len()] == qcow2);
}

#[test]
fn loop_an_empty_image_is_no_image() {
    let deployment = Deployment::new();
    let server = ImageServer::new(vec![Reply::Body(Arc::new(Vec::new()))]);
    let error = deployment.write(&request(vec![server.url()], &[], Some("raw"))).unwrap_err();
    assert!(error.to_string().contains("is empty"), "{error}");
    deployment.assert_untouched();
}

#[test]
fn loop_f11_an_image_for_other_sectors_is_refused_before_writing() {
    let mut gpt = (*image()).clone();
    gpt[512..520].copy_from_slice(b"EFI PART");
    let server = ImageServer::new(vec![Reply::Body(Arc::new(gpt.clone()))]);
    let deployment = Deployment::with_sectors(4096);
    let error = deployment.write(&request(vec![server.url()], &gpt, Some("raw"))).unwrap_err();
    assert!(error.to_string().contains("made for sectors of 512 bytes"), "{error}");
    deployment.assert_untouched();
}
