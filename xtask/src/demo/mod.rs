//! `cargo xtask demo`: an empty machine gets a Debian system and boots it.

mod screens;
mod terminal;
mod timeline;

use std::fs::{self, File};
use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use farrier_tests::conductor::lab::{Event, Instance, Lab, Machine};
use farrier_tests::images::server::{ImageServer, Reply};
use farrier_tests::machine::Firmware;
use serde::Serialize;

use self::screens::Screens;
use self::timeline::{BOOTED, Moments, Phase, Timeline, in_words};
use crate::build::dist;
use crate::build::instance_image::{self, Content, InstanceImage, System};
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, write_json};

const NODE: &str = "demo";
const MAC: &str = "52:54:00:fa:00:01";
/// Longest time from the power being switched on to the login prompt, with an emulated processor.
const LIMIT: Duration = Duration::from_secs(20 * 60);
/// How much larger than the image the machine's disk is.
const DISK_BEYOND_IMAGE: u64 = 2 << 30;

/// Deploys a real Debian image to an empty virtual machine and boots it, and prints how long each phase took.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// Writes the timeline as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Memory of the machine in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    memory_mib: u32,
    /// Keeps disk, console log and database in this folder.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Takes the pictures of the README: what this prints, and the machine's screen while the image is written.
    #[arg(long)]
    screens: bool,
    #[command(flatten)]
    image: instance_image::ImageArguments,
}

#[derive(Debug, Serialize)]
struct DemoReport {
    phases: Vec<Phase>,
    accelerator: &'static str,
    memory_mib: u32,
    image_bytes: u64,
    hostname: String,
    first_bytes_equal: bool,
}

/// Runs the command.
pub fn demo(arguments: &DemoArguments) -> Result<()> {
    let purposes = [Purpose::Dist, Purpose::InstanceImage, Purpose::Machine];
    requirements::ensure(&purposes, !arguments.image.no_install)?;
    let workspace = Workspace::find()?;
    let dist = dist::build(&workspace, "x86_64", dist::Firmware::None)?.folder;
    let image =
        instance_image::cached(&workspace, arguments.image.image_size, System::Cloud, Content::USUAL)?;
    let farrier = workspace.build_conductor()?;
    let folder = match &arguments.keep {
        Some(folder) => std::path::absolute(folder)?,
        None => workspace.cache().join(format!("demo-{}", std::process::id())),
    };

    if folder.exists() {
        bail!("{} exists; a run starts from nothing, choose another folder", folder.display());
    }
    let lab = Lab::start(&farrier, &folder, &[])?;
    let console = lab.console(NODE);
    let mut show = Show::new(arguments.screens.then(|| Screens::new(&workspace, &folder)));
    let deployed = enrol(&lab, dist, arguments.memory_mib, &image, &show)
        .and_then(|disk| deploy(&lab, &disk, &image, &mut show));
    let (hostname, timeline) = deployed.with_context(|| {
        format!(
            "the demo failed; end of the serial console ({}):\n{}",
            console.file().display(),
            console.tail()
        )
    })?;
    drop(lab);

    show.sum_up(&hostname, &image, arguments.memory_mib);
    show.end()?;
    let report = DemoReport {
        phases: timeline.0,
        accelerator: console.accelerator(),
        memory_mib: arguments.memory_mib,
        image_bytes: image.bytes,
        hostname,
        first_bytes_equal: true,
    };
    if arguments.keep.is_none() {
        fs::remove_dir_all(&folder)?;
    }
    write_json(arguments.json.as_deref(), &report)
}

/// Registers the machine with an empty disk, whose file it gives.
fn enrol(lab: &Lab, dist: PathBuf, memory_mib: u32, image: &InstanceImage, show: &Show) -> Result<PathBuf> {
    let disk = lab.folder().join("disk.raw");
    File::create(&disk)?.set_len(image.bytes + DISK_BEYOND_IMAGE)?;
    lab.enrol(&Machine {
        name: NODE.to_owned(),
        mac: MAC.to_owned(),
        dist,
        firmware: Firmware::Uefi,
        memory_mib,
        disks: vec![(disk.clone(), "FARRIER-DEMO".to_owned())],
        driver_info: show.screens.as_ref().map_or_else(Vec::new, Screens::driver_info),
        properties: Vec::new(),
    })?;
    Ok(disk)
}

/// Deploys, and waits until the deployed system shows its login prompt. Gives its host name.
fn deploy(lab: &Lab, disk: &Path, image: &InstanceImage, show: &mut Show) -> Result<(String, Timeline)> {
    let hostname = random_hostname()?;
    let config_drive = lab.folder().join("config-drive");
    write_config_drive(&config_drive, &hostname)?;
    let server = ImageServer::start(vec![Reply::File(image.path.clone())])?;

    let console = lab.console(NODE);
    let (seen, sightings) = mpsc::channel();
    console.when("Linux version".to_owned(), LIMIT, seen.clone(), |at| ("kernel", at));
    console.when(format!("{hostname} login:"), LIMIT, seen, |at| (BOOTED, at));
    let instance =
        Instance { url: server.guest_url(), sha256: &image.sha256, config_drive: Some(&config_drive) };
    lab.deploy(NODE, &instance, |event| show.follow(&event))?;
    compare(disk, image)?;
    // Each watcher of the console speaks once; both have ended when there is nothing more to hear.
    for (name, at) in sightings {
        show.moments.record(name, at);
        if name == BOOTED {
            show.say_at(at, "Debian shows its login prompt");
        }
    }
    Ok((hostname, show.moments.timeline()?))
}

/// Shows the progress of the demonstration, and remembers it.
#[derive(Debug)]
struct Show {
    /// What was printed.
    lines: Vec<String>,
    moments: Moments,
    /// The bar of the current phase, which is drawn over itself.
    bar: Option<String>,
    screens: Option<Screens>,
    /// Why a picture could not be taken.
    trouble: Option<anyhow::Error>,
}

impl Show {
    fn new(screens: Option<Screens>) -> Self {
        Self { lines: Vec::new(), moments: Moments::default(), bar: None, screens, trouble: None }
    }

    fn say(&mut self, text: &str) {
        if let Some(bar) = self.bar.take() {
            if std::io::stdout().is_terminal() {
                println!();
            } else {
                println!("{bar}");
            }
            self.lines.push(bar);
        }
        println!("{text}");
        self.lines.extend(text.split('\n').map(str::to_owned));
    }

    /// Says something with the time since power on.
    fn say_at(&mut self, at: f64, text: &str) {
        let since = at - self.moments.power_on().unwrap_or(at);
        self.say(&format!("{:>10}  {text}", in_words(since)));
    }

    /// Shows an event, and records it when it is a moment of the timeline.
    fn follow(&mut self, event: &Event) {
        let (moment, text) = match event.event.as_str() {
            "progress" => return self.progress(event),
            "power_on" => (Some("power on"), "power on: the machine boots the ramdisk"),
            "first_heartbeat" => (Some("first heartbeat"), "first heartbeat of the agent"),
            "write_started" => (None, "the agent streams the image to the disk"),
            "image_written" => (Some("image written"), "image written"),
            "image_verified" => (Some("verified"), "image verified"),
            "boot_entry" => (None, "boot entry written to the firmware"),
            "powered_off" => (None, "power off"),
            "booting" => (None, "power on: the machine boots its disk"),
            "active" => (None, "node active"),
            other => (None, other),
        };
        if let Some(name) = moment {
            self.moments.record(name, event.at);
        }
        self.say_at(event.at, text);
    }

    fn progress(&mut self, event: &Event) {
        let bar = terminal::bar(&event.phase, event.bytes, event.total_bytes);
        if std::io::stdout().is_terminal() {
            print!("\r{bar}");
            // What cannot be shown is shown with the next line.
            std::io::stdout().flush().ok();
        }
        self.bar = Some(bar);
        if let Some(Err(error)) = self.screens.as_mut().map(|screens| screens.look(event)) {
            self.trouble = Some(error);
        }
    }

    /// Says what was shown.
    fn sum_up(&mut self, hostname: &str, image: &InstanceImage, memory_mib: u32) {
        let gib = image.bytes as f64 / f64::from(1 << 30);
        self.say("");
        self.say(&format!("A machine with {memory_mib} MiB of memory got a Debian image of {gib:.1} GiB."));
        self.say("The downloaded bytes had the right checksum before the disk could boot.");
        self.say("Boot code and EFI system partition on the disk equal the image, byte by byte.");
        self.say(&format!("The login prompt has the host name of the config drive: {hostname}."));
    }

    /// Draws what was printed, where that is wanted.
    fn end(&mut self) -> Result<()> {
        if let Some(error) = self.trouble.take() {
            return Err(error.context("the machine's screen could not be photographed"));
        }
        self.screens.as_ref().map_or(Ok(()), |screens| screens.draw(&self.lines))
    }
}

/// Compares what the running system does not change: boot code and EFI system partition. Partition
/// table and root file system legitimately differ by now.
fn compare(disk: &Path, image: &InstanceImage) -> Result<()> {
    let ranges = [0..440, instance_image::ESP_BYTES];
    ranges.into_iter().try_for_each(|range| equal_bytes(disk, &image.path, range))
}

fn write_config_drive(folder: &Path, hostname: &str) -> Result<()> {
    let latest = folder.join("openstack/latest");
    fs::create_dir_all(&latest)?;
    let uuid = instance_image::new_uuid()?;
    let metadata = serde_json::json!({"uuid": uuid, "hostname": hostname, "name": hostname});
    Ok(fs::write(latest.join("meta_data.json"), metadata.to_string())?)
}

/// A name that no earlier run can have left anywhere.
fn random_hostname() -> Result<String> {
    let uuid = instance_image::new_uuid()?;
    Ok(format!("farrier-{}", uuid.split('-').next().unwrap_or(&uuid)))
}

/// Whether `range` of the machine's disk and the image are equal byte by byte.
fn equal_bytes(disk: &Path, image: &Path, range: Range<u64>) -> Result<()> {
    const CHUNK: u64 = 1 << 20;
    let (disk, image) = (File::open(disk)?, File::open(image)?);
    let mut at = range.start;
    while at < range.end {
        let size = CHUNK.min(range.end - at) as usize;
        let (mut written, mut expected) = (vec![0; size], vec![0; size]);
        disk.read_exact_at(&mut written, at)?;
        image.read_exact_at(&mut expected, at)?;
        if let Some(offset) = written.iter().zip(&expected).position(|(one, other)| one != other) {
            bail!("the deployed disk differs from the image at byte {}", at + offset as u64);
        }
        at += size as u64;
    }
    Ok(())
}
