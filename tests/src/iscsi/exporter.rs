//! An emulated machine whose agent exports its disk to this one.

use super::initiator::LogicalUnit;
use crate::agent::commanded::CommandedAgent;
use crate::agent::stub_conductor::{NODE, StubConductor};
use crate::machine::{Boot, Firmware, Hardware, free_port, user_network};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest time of a command on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);
/// Serial number of the disk.
pub const SERIAL: &str = "S4EVNX0R";

/// The machine. Dropping it switches it off.
#[derive(Debug)]
pub struct Exporter {
    /// Its agent, which exports nothing yet.
    pub agent: CommandedAgent,
    /// The disk, once it is exported with the default name at the default port.
    pub unit: LogicalUnit,
    disk: PathBuf,
}

impl Exporter {
    /// Boots the ramdisk in `dist` on a machine with an empty disk of so many bytes, which is a file in `folder`.
    ///
    /// # Errors
    ///
    /// There was no heartbeat.
    pub fn boot(dist: &Path, folder: &Path, bytes: u64) -> Result<Self> {
        Self::boot_with(dist, folder, bytes, "")
    }

    /// The same, with further parameters of the kernel.
    ///
    /// # Errors
    ///
    /// As [`Exporter::boot`].
    pub fn boot_with(dist: &Path, folder: &Path, bytes: u64, parameters: &str) -> Result<Self> {
        Self::boot_from(dist, folder, bytes, parameters, Path::to_owned)
    }

    /// The same, with a disk that cannot read one sector of 512 bytes.
    ///
    /// # Errors
    ///
    /// As [`Exporter::boot`].
    pub fn boot_failing(dist: &Path, folder: &Path, bytes: u64, sector: u64) -> Result<Self> {
        let faults = folder.join("faults");
        fs::write(
            &faults,
            format!("[inject-error]\nevent = \"read_aio\"\nerrno = \"5\"\nsector = \"{sector}\"\n"),
        )?;
        let through = |disk: &Path| format!("blkdebug:{}:{}", faults.display(), disk.display()).into();
        Self::boot_from(dist, folder, bytes, "", through)
    }

    /// The same as [`Exporter::boot_with`]; QEMU opens the disk by the name that its file is given.
    fn boot_from(
        dist: &Path,
        folder: &Path,
        bytes: u64,
        parameters: &str,
        named: impl FnOnce(&Path) -> PathBuf,
    ) -> Result<Self> {
        let disk = folder.join("disk");
        File::create(&disk)?.set_len(bytes)?;
        let hardware = Hardware {
            mac: "52:54:00:fa:00:71".into(),
            agent_port: free_port()?,
            keyboard_port: free_port()?,
            disks: vec![(named(&disk), SERIAL)],
            media: vec![],
            folder: folder.to_owned(),
        };
        let (conductor, portal) = (StubConductor::start()?, free_port()?);
        let network = format!("{},hostfwd=tcp:127.0.0.1:{portal}-:3260", user_network(hardware.agent_port));
        let card = format!("virtio-net-pci,netdev=net,romfile=,mac={}", hardware.mac);
        let arguments = ["-netdev", &network, "-device", &card].map(str::to_owned);
        let parameters = format!("console=ttyS0 ipa-api-url={} {parameters}", conductor.guest_url());
        let boot = Boot::Ramdisk(dist, &parameters);
        let machine = hardware.boot_without_network(Firmware::Bios, boot, &arguments)?;
        let agent = CommandedAgent::meet(machine, &hardware, conductor)?;
        let unit = LogicalUnit::new(portal, &format!("iqn.2008-10.org.openstack:{NODE}"));
        Ok(Self { agent, unit, disk })
    }

    /// Has the disk exported.
    ///
    /// # Errors
    ///
    /// The command fails, or answers something else than section 4.4 says.
    pub fn start(&self, params: &Value) -> Result<()> {
        let answer = self.agent.succeed("iscsi.start_iscsi_target", params, PATIENCE)?;
        ensure!(answer == json!({"iscsi_target_iqn": self.unit.target}), "the answer is {answer}");
        Ok(())
    }

    /// Has the export ended, and returns the answer.
    ///
    /// # Errors
    ///
    /// The command fails.
    pub fn stop(&self) -> Result<Value> {
        self.agent.succeed("iscsi.stop_iscsi_target", &json!({}), PATIENCE)
    }

    /// Why a command fails.
    ///
    /// # Errors
    ///
    /// It does not.
    pub fn failure(&self, command: &str, params: &Value) -> Result<String> {
        self.agent.order(command, params)?;
        let error = self.agent.wait_for_failure(PATIENCE)?;
        Ok(error["details"].as_str().context("no details")?.to_owned())
    }

    /// Whether each byte of a MiB of the disk, as it is in the file, is this one.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn has(&self, mebibyte: u64, byte: u8) -> Result<bool> {
        let mut content = vec![0; 1 << 20];
        File::open(&self.disk)?.read_exact_at(&mut content, mebibyte << 20)?;
        Ok(content.iter().all(|found| *found == byte))
    }
}
