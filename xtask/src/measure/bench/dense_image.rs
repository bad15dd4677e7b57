//! An image without a zero or a repetition, on a server: nothing of it can be left out.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context, Result};
use farrier_tests::images::server::{ImageServer, Reply};
use serde_json::{Value, json};

use crate::host::command::{command, run_quietly};

const MIB: u64 = 1 << 20;
const SECTOR: u64 = 512;

/// The image and its server, which is there until this process ends.
pub struct DenseImage {
    server: ImageServer,
    sha256: String,
}

impl DenseImage {
    /// Makes one of so many MiB in the folder, and serves it.
    pub fn serve(folder: &Path, mebibytes: u64) -> Result<Self> {
        let file = folder.join("image.raw");
        let mut output = File::create(&file)?;
        output.write_all(&partition_table(mebibytes)?)?;
        io::copy(&mut File::open("/dev/urandom")?.take(mebibytes * MIB - SECTOR), &mut output)?;
        let digest = run_quietly(command("sha256sum").arg(&file))?;
        let sha256 = digest.split_whitespace().next().context("sha256sum printed nothing")?.to_owned();
        Ok(Self { server: ImageServer::start(vec![Reply::File(file)])?, sha256 })
    }

    /// How agents are told of it: a machine on QEMU's user network.
    pub fn info_for_a_machine(&self) -> Value {
        self.info(&self.server.guest_url())
    }

    /// How a program on this computer is told of it.
    pub fn info_for_this_computer(&self) -> Value {
        self.info(&self.server.url())
    }

    fn info(&self, url: &str) -> Value {
        json!({
            "id": "image.raw", "urls": [url], "disk_format": "raw",
            "os_hash_algo": "sha256", "os_hash_value": self.sha256,
        })
    }
}

/// A table with one partition of Linux' type, from the first MiB to the end.
fn partition_table(mebibytes: u64) -> Result<[u8; SECTOR as usize]> {
    let start = u32::try_from(MIB / SECTOR)?;
    let length = u32::try_from((mebibytes - 1) * MIB / SECTOR)?;
    let mut table = [0; SECTOR as usize];
    table[450] = 0x83;
    table[454..458].copy_from_slice(&start.to_le_bytes());
    table[458..462].copy_from_slice(&length.to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    Ok(table)
}
