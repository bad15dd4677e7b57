//! Writes an image to a disk that an agent exports, as the deploy interface `iscsi` does, and without a conductor, for
//! `cargo xtask power-cut`.
//!
//! Usage: `write_exported_disk FILE`. What is written, and where, stands in the file as JSON: a secret is in no list of
//! arguments. A partition image gets a GPT, and boots from a BIOS.

use farrier_disk::iscsi_target::{Chap, IscsiName};
use farrier_disk::table::TableKind;
use farrier_drivers::iscsi::{Initiator, Job, LogicalUnit, Portal, QemuInitiator};
use farrier_imaging::cancel::CancelHandle;
use farrier_imaging::progress::ProgressHandle;
use farrier_imaging::source::{HttpSource, Options};
use farrier_protocol::image_info::ImageInfo;
use serde::Deserialize;
use std::error::Error;
use std::fs;
use tokio::runtime::Runtime;

/// What is to be done.
#[derive(Deserialize)]
struct Order {
    /// Address and port of the target.
    host: String,
    port: u16,
    /// Names of the target and of this initiator.
    target: String,
    initiator: String,
    chap_user: String,
    chap_password: String,
    /// Bytes of the disk, and of a sector of it: another one is refused.
    disk_bytes: u64,
    sector_bytes: u32,
    /// The image, as agents are told of it.
    image_info: ImageInfo,
    /// A config drive, packed, or its URL.
    configdrive: Option<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("give FILE")?;
    let order: Order = serde_json::from_slice(&fs::read(file)?)?;
    rustls::crypto::ring::default_provider().install_default().ok();
    let unit = LogicalUnit {
        portal: Portal::new(&order.host, order.port)?,
        target: IscsiName::parse("target", &order.target)?,
        initiator: IscsiName::parse("initiator", &order.initiator)?,
        chap: Chap::new(&order.chap_user, &order.chap_password)?,
    };
    let job = Job::new(&order.image_info, order.configdrive, false, TableKind::Gpt)?;
    let runtime = Runtime::new()?;
    let source = HttpSource::new(reqwest::Client::new(), runtime.handle().clone(), Options::default());
    let sizes = [(order.disk_bytes, order.sector_bytes)];
    let session = QemuInitiator::default().log_in(&unit, &sizes, &|| false)?;
    let written = job.write(session.disk(), &source, &ProgressHandle::default(), &CancelHandle::default());
    let logged_out = session.log_out();
    println!("{}", serde_json::to_string_pretty(&written?.report)?);
    Ok(logged_out?)
}
