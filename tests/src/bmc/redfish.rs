//! A BMC that speaks Redfish: sushy-tools in front of a libvirt machine.

use super::libvirt::{Libvirt, UUID};
use crate::machine::{FIRMWARE, Hardware, free_port};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);
const START: Duration = Duration::from_secs(60);

/// The BMC of one machine. Dropping it switches the machine off.
#[derive(Debug)]
pub struct Bmc {
    emulator: Child,
    _libvirt: Libvirt,
    port: u16,
}

impl Bmc {
    /// Starts the sushy-tools that are installed in `environment`, for a machine that is off and asks
    /// for `network_boot`, a URL, when it is booted from the network.
    ///
    /// # Errors
    ///
    /// libvirt or sushy-tools did not start; the text holds the log.
    pub fn start(environment: &Path, hardware: &Hardware, network_boot: Option<&str>) -> Result<Self> {
        let libvirt = Libvirt::start(hardware, network_boot)?;
        let (folder, port) = (&hardware.folder, free_port()?);
        let configuration = folder.join("sushy.conf");
        let lines = format!(
            "SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\nSUSHY_EMULATOR_LISTEN_PORT = {port}\n\
             SUSHY_EMULATOR_LIBVIRT_URI = '{}'\nSUSHY_EMULATOR_STATE_DIR = '{}'\n\
             SUSHY_EMULATOR_BOOT_LOADER_MAP = {{'UEFI': {{'x86_64': '{FIRMWARE}'}}, 'Legacy': {{'x86_64': None}}}}\n",
            libvirt.uri(),
            folder.display()
        );
        fs::write(&configuration, lines)?;
        let log = File::create(folder.join("sushy.log"))?;
        let mut emulator = Command::new(environment.join("bin/sushy-emulator"));
        emulator.arg("--config").arg(&configuration).env("TMPDIR", folder).stdin(Stdio::null());
        let emulator = emulator.stdout(log.try_clone()?).stderr(log).spawn();
        let emulator =
            emulator.with_context(|| format!("cannot start sushy-emulator of {}", environment.display()))?;
        let mut bmc = Self { emulator, _libvirt: libvirt, port };
        bmc.wait_until_ready(folder)?;
        Ok(bmc)
    }

    /// URL of the BMC.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Path of the machine there.
    pub fn system(&self) -> String {
        format!("/redfish/v1/Systems/{UUID}")
    }

    fn wait_until_ready(&mut self, folder: &Path) -> Result<()> {
        let start = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            let ended = self.emulator.try_wait()?;
            if ended.is_some() || start.elapsed() > START {
                let log = fs::read_to_string(folder.join("sushy.log")).unwrap_or_default();
                bail!("sushy-emulator does not listen ({ended:?}):\n{log}");
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Bmc {
    fn drop(&mut self) {
        self.emulator.kill().ok();
        self.emulator.wait().ok();
    }
}
