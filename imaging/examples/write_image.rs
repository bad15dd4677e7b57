//! Writes one image to a block device and prints the report, for `cargo xtask bench write`.
//!
//! Usage: `write_image DEVICE URL ALGORITHM DIGEST [DISK_FORMAT]`. Everything on the device is lost.

use anyhow::{Context, Result, bail};
use farrier_disk::{BlockDevice, choose_root_disk};
use farrier_imaging::cancel::CancelHandle;
use farrier_imaging::pipeline::{ImageRequest, Settings, write_image};
use farrier_imaging::progress::ProgressHandle;
use farrier_imaging::source::{HttpSource, Options};
use farrier_protocol::image_info::ImageInfo;
use farrier_protocol::lookup::Node;
use serde_json::json;
use std::path::Path;

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [device, url, algorithm, digest, rest @ ..] = arguments.as_slice() else {
        bail!("give DEVICE URL ALGORITHM DIGEST [DISK_FORMAT]");
    };
    rustls::crypto::ring::default_provider().install_default().ok();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let client = reqwest::Client::builder().tls_certs_only([]).no_proxy().build()?;
    let source = HttpSource::new(client, runtime.handle().clone(), Options::default());
    let info = ImageInfo {
        id: "image".to_owned(),
        urls: vec![url.clone()],
        os_hash_algo: Some(algorithm.clone()),
        os_hash_value: Some(digest.clone()),
        disk_format: rest.first().cloned(),
        ..ImageInfo::default()
    };
    let request = ImageRequest::new(&info, Settings::default())?;
    let name = Path::new(device).file_name().and_then(|name| name.to_str()).context("DEVICE is no device")?;
    let described = BlockDevice::describe(Path::new("/sys"), name)?;
    let hints = json!({"root_device": {"name": described.disk.name}});
    let node = Node { properties: serde_json::from_value(hints)?, ..Node::default() };
    let disk = choose_root_disk(&node, &[described])?.open()?;
    let (progress, cancel) = (ProgressHandle::default(), CancelHandle::default());
    let report = write_image(&request, &source, &disk, &progress, &cancel)?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
