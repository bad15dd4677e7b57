//! What is deployed while the power goes.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use farrier_tests::bmc::media;
use farrier_tests::images::instance::{image, sha256};
use farrier_tests::images::server::{ImageServer, Reply};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::loop_disk::LoopDisk;
use super::writer::Writer;
use crate::host::command::{command, run_quietly};

const MIB: usize = 1 << 20;
/// Bytes that a whole-disk image describes.
pub const IMAGE_BYTES: usize = 32 * MIB;
/// Bytes of a partition image, and of the partition it gets.
const PARTITION_IMAGE_BYTES: usize = 16 * MIB;
const ROOT_MIB: usize = 32;
const FOREIGN: u8 = 0xaa;
const CLUSTER: usize = 64 << 10;

/// Kinds of deployments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A raw image with an MBR.
    Mbr,
    /// A raw image with a GPT.
    Gpt,
    /// A qcow2 image, packed, whose tables come last: all of it waits in the spool.
    Qcow2,
    /// A raw image packed with Zstandard.
    Zstd,
    /// A raw image and a config drive.
    ConfigDrive,
    /// A partition image with swap and an ephemeral partition.
    Partition,
    /// The same again over the last one, whose ephemeral partition stays.
    PreserveEphemeral,
}

impl Kind {
    /// In the words of the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mbr => "raw, MBR",
            Self::Gpt => "raw, GPT",
            Self::Qcow2 => "qcow2 through the spool, GPT",
            Self::Zstd => "raw in zstd, GPT",
            Self::ConfigDrive => "raw, GPT, config drive",
            Self::Partition => "partition image",
            Self::PreserveEphemeral => "partition image, `preserve_ephemeral`",
        }
    }

    /// Whether the image is one of a whole disk.
    pub fn is_whole_disk(self) -> bool {
        !matches!(self, Self::Partition | Self::PreserveEphemeral)
    }

    /// Sector sizes of the disks it goes to. The MBR counts sectors of 512 bytes, for which other disks
    /// refuse it.
    pub fn sector_sizes(self) -> &'static [u32] {
        if self == Self::Mbr { &[512] } else { &[512, 4096] }
    }
}

/// A deployment that can be ordered.
pub struct Subject {
    pub kind: Kind,
    pub writer: Writer,
    pub sector_size: u32,
    /// What a disk, or the root partition, holds afterwards.
    pub content: Vec<u8>,
    info: Value,
    drive: Option<ImageServer>,
    server: ImageServer,
}

impl Subject {
    /// Makes the image in `folder` and serves it.
    pub fn new(kind: Kind, writer: Writer, sector_size: u32, folder: &Path) -> Result<Self> {
        let content = match kind {
            Kind::Mbr => with_mbr()?,
            Kind::Partition | Kind::PreserveEphemeral => file_system(kind, folder)?,
            _ => with_gpt(sector_size, folder)?,
        };
        let file = match kind {
            Kind::Qcow2 => packed(&tables_last(&content, folder)?, folder)?,
            Kind::Zstd => packed(&content, folder)?,
            _ => content.clone(),
        };
        let digest = sha256(&file);
        let server = ImageServer::start(vec![Reply::Body(file.into())])?;
        let mut info = json!({"id": "image", "os_hash_algo": "sha256", "os_hash_value": digest});
        match kind {
            Kind::Zstd => {}
            Kind::Qcow2 => info["disk_format"] = json!("qcow2"),
            _ => info["disk_format"] = json!("raw"),
        }
        if !kind.is_whole_disk() {
            info["image_type"] = json!("partition");
            info["root_mb"] = json!(ROOT_MIB);
            info["swap_mb"] = json!(8);
            info["ephemeral_mb"] = json!(16);
            info["preserve_ephemeral"] = json!(kind == Kind::PreserveEphemeral);
        }
        let drive = (kind == Kind::ConfigDrive).then(|| config_drive(folder)).transpose()?;
        Ok(Self { kind, writer, sector_size, content, info, drive, server })
    }

    /// The arguments of the step, with URLs that reach whoever writes.
    pub fn arguments(&self) -> Value {
        let url = match self.writer {
            Writer::Agent => ImageServer::guest_url,
            Writer::Conductor => ImageServer::url,
        };
        let mut info = self.info.clone();
        info["urls"] = json!([url(&self.server)]);
        json!({"image_info": info, "configdrive": self.drive.as_ref().map(url)})
    }

    /// What the disk holds before: the very same table, or that of another image, and foreign data.
    pub fn before(&self, folder: &Path) -> Result<Vec<u8>> {
        let image = if self.kind.is_whole_disk() {
            self.content.clone()
        } else {
            with_gpt(self.sector_size, folder)?
        };
        let mut before = image[..MIB].to_vec();
        before.resize(IMAGE_BYTES, FOREIGN);
        Ok(before)
    }
}

/// A disk image with an EFI system partition that boots.
fn with_mbr() -> Result<Vec<u8>> {
    let mut content = image()?;
    content.extend((content.len()..IMAGE_BYTES).map(|place| (place / 509 % 251) as u8));
    Ok(content)
}

/// The same partition in a GPT for sectors of that size.
fn with_gpt(sector_size: u32, folder: &Path) -> Result<Vec<u8>> {
    let file = folder.join("gpt.raw");
    let mut content = with_mbr()?;
    content[..MIB].fill(0);
    fs::write(&file, &content)?;
    let disk = LoopDisk::attach(&file, sector_size)?;
    let partition = format!("--new=1:{}:+4M", MIB / sector_size as usize);
    run_quietly(command("sgdisk").args([&partition, "--typecode=1:ef00"]).arg(disk.path()))?;
    disk.detach()?;
    Ok(fs::read(file)?)
}

/// A file system of which nearly every byte says something.
fn file_system(kind: Kind, folder: &Path) -> Result<Vec<u8>> {
    let (tree, file) = (folder.join("tree"), folder.join("root.ext4"));
    fs::create_dir_all(&tree)?;
    let step = if kind == Kind::Partition { 509 } else { 521 };
    let content: Vec<u8> = (0..PARTITION_IMAGE_BYTES / 2).map(|place| (place / step % 251) as u8).collect();
    fs::write(tree.join("file"), content)?;
    fs::write(&file, vec![0; PARTITION_IMAGE_BYTES])?;
    let options = ["-q", "-F", "-t", "ext4", "-O", "^has_journal", "-d"];
    run_quietly(command("mke2fs").args(options).arg(&tree).arg(&file))?;
    Ok(fs::read(file)?)
}

/// A qcow2 image with its tables behind the clusters that they tell about.
fn tables_last(content: &[u8], folder: &Path) -> Result<Vec<u8>> {
    const OFFSET: u64 = 0x00ff_ffff_ffff_fe00;
    const L1_OFFSET: usize = 40;
    let (raw, file) = (folder.join("disk.raw"), folder.join("disk.qcow2"));
    fs::write(&raw, content)?;
    run_quietly(command("qemu-img").args(["convert", "-f", "raw", "-O", "qcow2"]).arg(raw).arg(&file))?;
    let mut image = fs::read(&file)?;
    let number =
        |image: &[u8], at: usize| -> Result<u64> { Ok(u64::from_be_bytes(image[at..at + 8].try_into()?)) };
    let l1 = number(&image, L1_OFFSET)? as usize;
    let l2 = (number(&image, l1)? & OFFSET) as usize;
    let moved = move_to_end(&mut image, l2) | 1 << 63;
    image[l1..l1 + 8].copy_from_slice(&moved.to_be_bytes());
    let moved = move_to_end(&mut image, l1);
    image[L1_OFFSET..L1_OFFSET + 8].copy_from_slice(&moved.to_be_bytes());
    fs::write(&file, &image)?;
    let raw = folder.join("again.raw");
    run_quietly(command("qemu-img").args(["convert", "-O", "raw"]).args([&file, &raw]))?;
    ensure!(fs::read(raw)? == content, "the image with its tables at the end is another one");
    Ok(image)
}

fn move_to_end(image: &mut Vec<u8>, offset: usize) -> u64 {
    let end = image.len().next_multiple_of(CLUSTER);
    image.resize(end, 0);
    image.extend_from_within(offset..offset + CLUSTER);
    image[offset..offset + CLUSTER].fill(0xee);
    end as u64
}

/// Without ranges in what is packed, the tables are learned as they come.
fn packed(content: &[u8], folder: &Path) -> Result<Vec<u8>> {
    let (file, packed) = (folder.join("image"), folder.join("image.zst"));
    fs::write(&file, content)?;
    run_quietly(command("zstd").args(["-q", "-f", "-1", "-o"]).arg(&packed).arg(&file))?;
    fs::read(&packed).with_context(|| format!("cannot read {}", packed.display()))
}

fn config_drive(folder: &Path) -> Result<ImageServer> {
    let (tree, drive) = (folder.join("config-drive"), folder.join("config-drive.iso"));
    let files = tree.join("openstack/latest");
    fs::create_dir_all(&files)?;
    fs::write(files.join("meta_data.json"), "{\"uuid\": \"1\"}")?;
    fs::write(files.join("user_data"), "content ".repeat(200_000))?;
    media::iso(&drive, "config-2", "", &tree)?;
    Ok(ImageServer::start(vec![Reply::File(drive)])?)
}
