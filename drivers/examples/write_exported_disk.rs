//! Writes an image to a disk that an agent exports, as the deploy interface `iscsi` does, and without a conductor, for
//! `cargo xtask power-cut`.
//!
//! Usage: `write_exported_disk FILE`. What is written, and where, stands in the file as JSON: a secret is in no list of
//! arguments. A partition image gets a GPT, and boots from a BIOS.

use farrier_conductor::deploy::disk_export::DiskExport;
use farrier_disk::table::TableKind;
use farrier_drivers::iscsi::{Initiator, Job, LogicalUnit, QemuInitiator};
use farrier_imaging::cancel::CancelHandle;
use farrier_imaging::progress::ProgressHandle;
use farrier_imaging::source::{HttpSource, Options};
use farrier_protocol::image_info::ImageInfo;
use farrier_protocol::inventory::Disk;
use serde::Deserialize;
use std::error::Error;
use std::fs;
use tokio::runtime::Runtime;

/// What is to be done.
#[derive(Deserialize)]
struct Order {
    /// How the disk is reached.
    export: DiskExport,
    /// The disk, as the agent's inventory has it: another one is refused.
    disk: Disk,
    /// The image, as agents are told of it.
    image_info: ImageInfo,
    /// A config drive, packed, or its URL.
    configdrive: Option<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("give FILE")?;
    let order: Order = serde_json::from_slice(&fs::read(file)?)?;
    rustls::crypto::ring::default_provider().install_default().ok();
    let unit = LogicalUnit::of(&order.export)?;
    let job = Job::new(&order.image_info, order.configdrive, false, TableKind::Gpt)?;
    let runtime = Runtime::new()?;
    let source = HttpSource::new(reqwest::Client::new(), runtime.handle().clone(), Options::default());
    let session = QemuInitiator::default().log_in(&unit, &[order.disk], &|| false)?;
    let written = job.write(session.disk(), &source, &ProgressHandle::default(), &CancelHandle::default());
    let logged_out = session.log_out();
    println!("{}", serde_json::to_string_pretty(&written?.report)?);
    Ok(logged_out?)
}
