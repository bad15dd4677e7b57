//! The machine that deploys, and its disk.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::agent::stub_conductor::NODE;
use farrier_tests::disk::volatile::{Event, VolatileDisk};
use farrier_tests::images::instance::GREETING;
use farrier_tests::machine::monitor::Monitor;
use farrier_tests::machine::{Boot, Firmware, Hardware, free_port};
use serde_json::json;

use super::DISK_BYTES;
use super::subject::{Kind, Subject};
use super::writer::{self, Writer};
use crate::measure::exported_disk::ExportedDisk;

const MIB: u64 = 1 << 20;
static FOREIGN: [u8; MIB as usize] = [0xaa; MIB as usize];
const SERIAL: &str = "CUT";
/// A deployment that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(600);
const BOOT_LIMIT: Duration = Duration::from_secs(300);

/// A machine whose agent waits for commands, and the disk.
pub struct Site {
    agent: CommandedAgent,
    hardware: Hardware,
    monitor: Monitor,
    exported: ExportedDisk,
    pub disk: VolatileDisk,
    pub folder: PathBuf,
    is_attached: bool,
}

impl Site {
    /// Boots the machine; `program` writes its disk as the conductor does.
    pub fn start(dist: &Path, program: &Path, folder: &Path) -> Result<Self> {
        let disk = VolatileDisk::start(folder, DISK_BYTES)?;
        let agent_port = free_port()?;
        let hardware = hardware("52:54:00:fa:00:32", agent_port, vec![], folder)?;
        let socket = folder.join("monitor");
        let devices = ["-blockdev", &disk.blockdev("disk"), "-device", "virtio-scsi-pci,id=scsi"];
        let arguments: Vec<_> =
            devices.into_iter().map(str::to_owned).chain(Monitor::arguments(&socket)).collect();
        let parameters = format!("ipa-advertise-host=127.0.0.1 ipa-advertise-port={agent_port}");
        let agent = CommandedAgent::boot(&hardware, &arguments, dist, &parameters)?;
        let mut monitor = Monitor::connect(&socket)?;
        let exported = writer::export(&mut monitor, program, folder)?;
        Ok(Self { agent, hardware, monitor, exported, disk, folder: folder.to_owned(), is_attached: false })
    }

    /// Takes the disk out and puts it in again, with what it holds before a deployment.
    pub fn exchange_disk(&mut self, subject: &Subject) -> Result<()> {
        if self.is_attached {
            self.monitor.execute("device_del", &json!({"id": SERIAL}))?;
            self.monitor.wait_for("DEVICE_DELETED")?;
        }
        if subject.kind == Kind::PreserveEphemeral {
            self.disk.settle_all_and_add(&[])?;
        } else {
            let before = subject.before(&self.folder)?;
            self.disk.fill(&[(0, &before), (DISK_BYTES - MIB, &FOREIGN)])?;
        }
        let device = json!({"driver": "scsi-hd", "bus": "scsi.0", "drive": "disk", "serial": SERIAL, "id": SERIAL,
            "logical_block_size": subject.sector_size, "physical_block_size": subject.sector_size});
        self.monitor.execute("device_add", &device)?;
        self.is_attached = true;
        Ok(())
    }

    /// Deploys to the disk that was put in, to the end, and tells what the disk was asked for.
    pub fn record(&mut self, subject: &Subject) -> Result<Vec<Event>> {
        self.disk.record();
        self.deploy(subject).with_context(|| self.hardware.console().tail())?;
        Ok(self.disk.recording())
    }

    /// Deploys to the disk that was put in, whose power goes after so many requests.
    pub fn lose_power(&mut self, subject: &Subject, requests: u64, seed: u64) -> Result<()> {
        self.disk.cut_after(Some(requests));
        let failed = self.deploy(subject).err();
        ensure!(self.disk.is_off(), "the power did not go at request {requests}: {failed:?}");
        self.disk.settle(seed, subject.sector_size as usize)
    }

    fn deploy(&self, subject: &Subject) -> Result<()> {
        if subject.writer == Writer::Conductor {
            return writer::deploy(&self.exported, &self.agent, subject, LIMIT);
        }
        let params = json!({
            "step": {"step": "write_image", "interface": "deploy", "args": subject.arguments()},
            "node": {"uuid": NODE, "properties": {"root_device": {"serial": SERIAL}, "capabilities": "disk_label:gpt"}},
            "ports": [],
        });
        self.agent.succeed("deploy.execute_deploy_step", &params, LIMIT).map(drop)
    }
}

/// Has firmware start what is in the file of a disk.
pub fn boot(disk: &Path, folder: &Path) -> Result<()> {
    let folder = folder.join("boot");
    std::fs::create_dir_all(&folder)?;
    let hardware = hardware("52:54:00:fa:00:33", free_port()?, vec![(disk.into(), SERIAL)], &folder)?;
    let machine = hardware.boot_under(Firmware::Uefi, Boot::Disks, &[])?;
    hardware.console().wait_for(GREETING, 0, BOOT_LIMIT).context("what was left does not boot")?;
    drop(machine);
    Ok(std::fs::remove_dir_all(folder)?)
}

fn hardware(
    mac: &str,
    agent_port: u16,
    disks: Vec<(PathBuf, &'static str)>,
    folder: &Path,
) -> Result<Hardware> {
    Ok(Hardware {
        mac: mac.into(),
        agent_port,
        keyboard_port: free_port()?,
        disks,
        media: vec![],
        folder: folder.into(),
    })
}
