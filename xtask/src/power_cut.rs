//! `cargo xtask power-cut`: the power goes at random points of a deployment, again and again.
//!
//! A machine with the real ramdisk deploys to a disk that counts what it is asked for and loses its power
//! at a random one of these requests: nothing reaches the medium from then on, and of what was not
//! flushed each sector does by chance. Afterwards the medium has no partition table, or all of the image; or
//! all of what was there before, when the power went before the old table did.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use farrier_tests::commanded_agent::CommandedAgent;
use farrier_tests::image_server::{ImageServer, Reply};
use farrier_tests::instance::{GREETING, image, sha256};
use farrier_tests::machine::{Boot, Hardware, free_port};
use farrier_tests::monitor::Monitor;
use farrier_tests::stub_conductor::NODE;
use farrier_tests::volatile_disk::VolatileDisk;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;
use serde_json::{Value, json};

use crate::command::{command, run_quietly};
use crate::dist;
use crate::requirements::{self, Purpose};
use crate::workspace::{Workspace, write_json};

const MIB: usize = 1 << 20;
const IMAGE_BYTES: usize = 32 * MIB;
/// A disk that the default rule for the root disk accepts.
const DISK_BYTES: u64 = 5 << 30;
const FOREIGN: u8 = 0xaa;
const SERIAL: &str = "CUT";
/// A deployment that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(300);
const BOOT_LIMIT: Duration = Duration::from_secs(300);
const PAGE: &str = "docs/src/power-cuts.md";

/// Cuts the power of a disk at random points of deployments and looks at what is left.
#[derive(Debug, Args)]
pub struct PowerCutArguments {
    /// How often.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    cuts: u32,
    /// Makes the points the same as in another run [default: by chance].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How many of the disks with all of the image are booted.
    #[arg(long, value_name = "N", default_value_t = 3)]
    boots: u32,
    /// Folder of a ramdisk that was built already.
    #[arg(long, value_name = "FOLDER")]
    dist: Option<PathBuf>,
    /// Writes the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the page of the book with the result.
    #[arg(long)]
    page: bool,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// What a cut left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Left {
    /// What was there before, to the last byte.
    Before,
    NoTable,
    WholeImage,
}

#[derive(Debug, Serialize)]
struct Cut {
    table: &'static str,
    /// The request at which the power went, and how many a whole deployment has.
    request: u64,
    of: u64,
    left: Left,
    /// Whether the firmware started what is left.
    is_booted: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    cuts: Vec<Cut>,
}

/// Runs the command. A disk with anything else than nothing or all is an error, and is kept.
pub fn power_cut(arguments: &PowerCutArguments) -> Result<()> {
    requirements::ensure(&[Purpose::Dist, Purpose::Machine, Purpose::Disk], !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let dist = match &arguments.dist {
        Some(folder) => folder.clone(),
        None => dist::build(&workspace, "x86_64", dist::Firmware::None)?.folder,
    };
    let seed = arguments.seed.unwrap_or_else(rand::random);
    println!("seed {seed}");
    let folder = workspace.cache().join(format!("power-cut-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let report = Report { seed, cuts: cuts(arguments, seed, &dist, &folder)? };
    fs::remove_dir_all(&folder)?;
    println!("{}", report.line());
    if arguments.page {
        workspace.write_page(PAGE, &report.page())?;
    }
    write_json(arguments.json.as_deref(), &report)
}

fn cuts(arguments: &PowerCutArguments, seed: u64, dist: &Path, folder: &Path) -> Result<Vec<Cut>> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut site = Site::start(dist, folder)?;
    let images = [Image::mbr()?, Image::gpt(folder)?];
    let mut lengths = Vec::new();
    for image in &images {
        let requests = site.deploy(image, None)?;
        ensure!(site.judge(image)? == Left::WholeImage, "a deployment without a cut left no image");
        lengths.push(requests);
    }
    let mut cuts = Vec::new();
    let mut boots = 0;
    for number in 0..arguments.cuts as usize {
        let (image, of) = (&images[number % images.len()], lengths[number % images.len()]);
        let request = chance.random_range(0..of);
        site.deploy(image, Some(request))?;
        site.disk.settle(chance.random())?;
        let left = site.judge(image).with_context(|| format!("cut {number}, at request {request}"))?;
        let is_booted = left == Left::WholeImage && boots < arguments.boots;
        if is_booted {
            site.boot().with_context(|| format!("cut {number}, at request {request}"))?;
            boots += 1;
        }
        println!(
            "{number:3}: {} at request {request} of {of}: {left:?}{}",
            image.table,
            if is_booted { ", boots" } else { "" }
        );
        cuts.push(Cut { table: image.table, request, of, left, is_booted });
    }
    Ok(cuts)
}

/// A disk image with an EFI system partition that boots.
struct Image {
    table: &'static str,
    content: Vec<u8>,
    server: ImageServer,
}

impl Image {
    fn mbr() -> Result<Self> {
        let mut content = image()?;
        content.extend((content.len()..IMAGE_BYTES).map(|place| (place / 509 % 251) as u8));
        Self::serve("MBR", content)
    }

    /// The same partition in a GPT.
    fn gpt(folder: &Path) -> Result<Self> {
        let file = folder.join("gpt.raw");
        let mut content = Self::mbr()?.content;
        content[..MIB].fill(0);
        fs::write(&file, &content)?;
        let partition = ["--new=1:2048:+4M", "--typecode=1:ef00"];
        run_quietly(command("sgdisk").args(partition).arg(&file))?;
        Self::serve("GPT", fs::read(file)?)
    }

    fn serve(table: &'static str, content: Vec<u8>) -> Result<Self> {
        let server = ImageServer::start(vec![Reply::Body(content.clone().into())])?;
        Ok(Self { table, content, server })
    }

    /// What the disk holds before: the very same table, and foreign data.
    fn before(&self) -> Vec<u8> {
        let mut content = self.content[..MIB].to_vec();
        content.resize(IMAGE_BYTES, FOREIGN);
        content
    }

    fn info(&self) -> Value {
        json!({"id": "image", "urls": [self.server.guest_url()], "disk_format": "raw",
            "os_hash_algo": "sha256", "os_hash_value": sha256(&self.content)})
    }
}

/// A machine whose agent waits for commands, and the disk.
struct Site {
    agent: CommandedAgent,
    hardware: Hardware,
    monitor: Monitor,
    disk: VolatileDisk,
    folder: PathBuf,
    is_attached: bool,
}

impl Site {
    fn start(dist: &Path, folder: &Path) -> Result<Self> {
        let disk = VolatileDisk::start(folder, DISK_BYTES)?;
        let agent_port = free_port()?;
        let hardware = Hardware {
            mac: "52:54:00:fa:00:32".into(),
            agent_port,
            keyboard_port: free_port()?,
            disks: vec![],
            media: vec![],
            folder: folder.into(),
        };
        let socket = folder.join("monitor");
        let devices = ["-blockdev", &disk.blockdev("disk"), "-device", "virtio-scsi-pci,id=scsi"];
        let arguments: Vec<_> =
            devices.into_iter().map(str::to_owned).chain(Monitor::arguments(&socket)).collect();
        let parameters = format!("ipa-advertise-host=127.0.0.1 ipa-advertise-port={agent_port}");
        let agent = CommandedAgent::boot(&hardware, &arguments, dist, &parameters)?;
        let monitor = Monitor::connect(&socket)?;
        Ok(Self { agent, hardware, monitor, disk, folder: folder.to_owned(), is_attached: false })
    }

    /// Deploys to the disk full of old content until the power goes, or to the end. Returns how many requests
    /// the disk got.
    fn deploy(&mut self, image: &Image, cut_after: Option<u64>) -> Result<u64> {
        self.exchange_disk(image)?;
        let before = self.disk.requests();
        self.disk.cut_after(cut_after);
        let params = json!({
            "step": {"step": "write_image", "interface": "deploy", "args": {"image_info": image.info()}},
            "node": {"uuid": NODE, "properties": {"root_device": {"serial": SERIAL}}},
            "ports": [],
        });
        self.agent.order("deploy.execute_deploy_step", &params)?;
        let result = self.agent.wait_for_end(LIMIT)?;
        if cut_after.is_none() {
            ensure!(result["command_status"] == "SUCCEEDED", "{result}\n{}", self.hardware.console().tail());
        }
        Ok(self.disk.requests() - before)
    }

    /// Takes the disk out and puts it in again, with the table of an older deployment and foreign data.
    fn exchange_disk(&mut self, image: &Image) -> Result<()> {
        if self.is_attached {
            self.monitor.execute("device_del", &json!({"id": SERIAL}))?;
            self.monitor.wait_for("DEVICE_DELETED")?;
        }
        self.disk.fill(&[(0, &image.before()), (DISK_BYTES - MIB as u64, &[FOREIGN; MIB])])?;
        let device =
            json!({"driver": "scsi-hd", "bus": "scsi.0", "drive": "disk", "serial": SERIAL, "id": SERIAL});
        self.monitor.execute("device_add", &device)?;
        self.is_attached = true;
        Ok(())
    }

    /// Nothing or all: a disk without a table, as libblkid sees it, or every byte of the image but those
    /// that a deployment itself changes, in its table.
    fn judge(&self, image: &Image) -> Result<Left> {
        let medium = VolatileDisk::medium(&self.folder);
        // It ends with 2 when there is nothing.
        let found = command("blkid").args(["-p", "-s", "PTTYPE", "-o", "value"]).arg(&medium).output()?;
        if found.stdout.is_empty() {
            return Ok(Left::NoTable);
        }
        let mut content = vec![0; IMAGE_BYTES];
        std::os::unix::fs::FileExt::read_exact_at(&fs::File::open(&medium)?, &mut content, 0)?;
        if content == image.before() {
            return Ok(Left::Before);
        }
        let table_end = if image.table == "GPT" { MIB } else { 0 };
        let backup = if image.table == "GPT" { IMAGE_BYTES - 33 * 512 } else { IMAGE_BYTES };
        if content[table_end..backup] != image.content[table_end..backup] {
            bail!("the disk has a table, and not all of the image; it is kept in {}", medium.display());
        }
        Ok(Left::WholeImage)
    }

    /// Has firmware start what is on the medium.
    fn boot(&self) -> Result<()> {
        let folder = self.folder.join("boot");
        fs::create_dir_all(&folder)?;
        let hardware = Hardware {
            mac: "52:54:00:fa:00:33".into(),
            agent_port: free_port()?,
            keyboard_port: free_port()?,
            disks: vec![(VolatileDisk::medium(&self.folder), SERIAL)],
            media: vec![],
            folder: folder.clone(),
        };
        let machine = hardware.boot(Boot::Disks)?;
        hardware.console().wait_for(GREETING, 0, BOOT_LIMIT)?;
        drop(machine);
        Ok(fs::remove_dir_all(folder)?)
    }
}

impl Report {
    fn count(&self, left: Left) -> usize {
        self.cuts.iter().filter(|cut| cut.left == left).count()
    }

    fn line(&self) -> String {
        format!(
            "{} cuts: {} disks as they were before, {} without a table, {} with all of the image, of which {} were \
             booted",
            self.cuts.len(),
            self.count(Left::Before),
            self.count(Left::NoTable),
            self.count(Left::WholeImage),
            self.cuts.iter().filter(|cut| cut.is_booted).count()
        )
    }

    fn page(&self) -> String {
        let mut page = format!(
            "# Power cuts

This page is written by `cargo xtask power-cut --page --seed {} --cuts {}`.

A virtual machine with the real ramdisk deploys an image of {} MiB, with an MBR and with a GPT in turns, to
a disk that carries an older table and foreign data. At a random request the disk loses its power: nothing
reaches the medium from then on. Of what it had taken and not yet been told to flush, each sector of 512
bytes is on the medium or not, by chance. Afterwards the medium has to show no partition table to libblkid,
or to hold every byte of the image, or, when the power went before the old table did, every byte of what was
there before. Some of those with the image are booted by UEFI firmware.

{}.

| cut | table | at request | of | left |
|---|---|---|---|---|
",
            self.seed,
            self.cuts.len(),
            IMAGE_BYTES / MIB,
            self.line()
        );
        for (number, cut) in self.cuts.iter().enumerate() {
            let left = match (cut.left, cut.is_booted) {
                (Left::Before, _) => "what was there before",
                (Left::NoTable, _) => "no table",
                (Left::WholeImage, false) => "all of the image",
                (Left::WholeImage, true) => "all of the image, boots",
            };
            // Writing to a string cannot fail.
            writeln!(page, "| {number} | {} | {} | {} | {left} |", cut.table, cut.request, cut.of).ok();
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_counts_what_is_left() {
        let cut = |left, is_booted| Cut { table: "GPT", request: 7, of: 90, left, is_booted };
        let cuts = vec![cut(Left::NoTable, false), cut(Left::WholeImage, true), cut(Left::WholeImage, false)];
        let page = Report { seed: 5, cuts }.page();
        for part in [
            "--seed 5 --cuts 3",
            "3 cuts: 0 disks as they were before, 1 without a table, 2 with all of the image, of which 1 were booted.",
            "| 1 | GPT | 7 | 90 | all of the image, boots |",
        ] {
            assert!(page.contains(part), "{page}");
        }
    }
}
