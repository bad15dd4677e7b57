//! A disk to write to, and what a write needs beside it.

use crate::disk_support::TestDisk;
use farrier_disk::Sectors;
use farrier_disk::io::view::DiskView;
use farrier_imaging::Error;
use farrier_imaging::cancel::CancelHandle;
use farrier_imaging::pipeline::{ImageRequest, Report, Settings, write_image};
use farrier_imaging::progress::ProgressHandle;
use farrier_imaging::source::{HttpSource, Options};
use farrier_linux::aligned::AlignedBuffer;
use farrier_protocol::image_info::ImageInfo;
use farrier_protocol::progress::Phase;
use farrier_tests::images::server::{ImageServer, Reply};
use reqwest::Proxy;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

pub const MIB: usize = 1 << 20;
pub const DISK: usize = 16 * MIB;

/// Six MiB and some bytes: data, a hole of three MiB, data; no whole number of sectors.
pub fn image() -> Arc<Vec<u8>> {
    let mut image: Vec<u8> = (0..6 * MIB + 700).map(|index| (index % 251) as u8).collect();
    image[2 * MIB..5 * MIB].fill(0);
    Arc::new(image)
}

pub fn request(urls: Vec<String>, image: &[u8], disk_format: Option<&str>) -> ImageRequest {
    request_with(urls, hex::encode(Sha256::digest(image)), disk_format)
}

pub fn request_with(urls: Vec<String>, sha256: String, disk_format: Option<&str>) -> ImageRequest {
    let info = ImageInfo {
        id: "image.raw".to_owned(),
        urls,
        os_hash_algo: Some("sha256".to_owned()),
        os_hash_value: Some(sha256),
        disk_format: disk_format.map(str::to_owned),
        ..ImageInfo::default()
    };
    ImageRequest::new(&info, Settings::default()).unwrap()
}

pub fn serve(replies: Vec<Reply>) -> ImageServer {
    ImageServer::start(replies).unwrap()
}

/// A disk full of what a former tenant left.
pub struct Deployment {
    pub disk: TestDisk,
    runtime: Runtime,
    pub options: Options,
    pub progress: ProgressHandle,
    pub cancel: CancelHandle,
}

impl Deployment {
    pub fn new() -> Self {
        Self::with_sectors(512)
    }

    pub fn with_sectors(sector_size: u32) -> Self {
        let deployment = Self::on(TestDisk::new(DISK as u64, sector_size));
        deployment.fill(&vec![0xaa; DISK]);
        deployment
    }

    /// On a disk as it is.
    pub fn on(disk: TestDisk) -> Self {
        Self {
            disk,
            runtime: Runtime::new().unwrap(),
            options: Options {
                connect_timeout: Duration::from_secs(5),
                read_timeout: Duration::from_secs(5),
                retries: 2,
                retry_interval: Duration::from_millis(20),
                ..Options::default()
            },
            progress: ProgressHandle::default(),
            cancel: CancelHandle::default(),
        }
    }

    /// Puts content on the disk, and zeros behind it.
    pub fn fill(&self, content: &[u8]) {
        let mut whole = AlignedBuffer::zeroed(DISK);
        whole[..content.len()].copy_from_slice(content);
        self.disk.disk().write_all_at(&whole, 0).unwrap();
    }

    pub fn write(&self, request: &ImageRequest) -> Result<Report, Error> {
        self.write_through(request, Vec::new())
    }

    pub fn write_through(&self, request: &ImageRequest, proxies: Vec<Proxy>) -> Result<Report, Error> {
        rustls::crypto::ring::default_provider().install_default().ok();
        let builder = reqwest::Client::builder().tls_certs_only([]).no_proxy();
        let client =
            proxies.into_iter().fold(builder, |builder, proxy| builder.proxy(proxy)).build().unwrap();
        let source = HttpSource::new(client, self.runtime.handle().clone(), self.options.clone());
        write_image(request, &source, self.disk.disk(), &self.progress, &self.cancel)
    }

    pub fn write_from(&self, server: &ImageServer) -> Result<Report, Error> {
        self.write(&request(vec![server.url()], &image(), Some("raw")))
    }

    pub fn content(&self) -> Vec<u8> {
        let mut content = Vec::new();
        DiskView::whole(self.disk.disk()).read_to_end(&mut content).unwrap();
        content
    }

    #[track_caller]
    pub fn assert_untouched(&self) {
        assert!(self.content().iter().all(|byte| *byte == 0xaa), "the disk was touched");
    }

    #[track_caller]
    pub fn assert_unbootable(&self, error: &Error) {
        let content = self.content();
        assert!(content[..MIB].iter().all(|byte| *byte == 0), "the first MiB is not empty");
        assert!(content[DISK - MIB..].iter().all(|byte| *byte == 0), "the last MiB is not empty");
        assert!(error.to_string().contains("without a partition table"), "{error}");
        assert_eq!(self.progress.snapshot().phase, Phase::Failed);
    }
}
