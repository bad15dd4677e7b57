//! A BMC that speaks Redfish: sushy-tools in front of a libvirt machine.

use super::libvirt::{Libvirt, Network, UUID};
use crate::machine::{FIRMWARE, Hardware, free_port};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);
const START: Duration = Duration::from_secs(60);

/// The user of a BMC with TLS, and its password.
pub const CREDENTIALS: [&str; 2] = ["admin", "four-horseshoes"];
/// The same as a line of its file of users, with a hash by bcrypt.
const USERS: &str = "admin:$2b$05$abcdefghijklmnopqrstuu/lmrCaZXiCEoIbW1xHGrMyhAhAeV50i\n";

/// The BMC of one machine. Dropping it switches the machine off.
#[derive(Debug)]
pub struct Bmc {
    emulator: Child,
    _libvirt: Libvirt,
    listener: SocketAddr,
}

impl Bmc {
    /// Starts the sushy-tools that are installed in `environment`, for a machine that is off and asks
    /// for `network_boot`, a URL, when it is booted from the network.
    ///
    /// # Errors
    ///
    /// libvirt or sushy-tools did not start; the text holds the log.
    pub fn start(environment: &Path, hardware: &Hardware, network_boot: Option<&str>) -> Result<Self> {
        let listener = (Ipv4Addr::LOCALHOST, free_port()?).into();
        Self::start_at(listener, environment, hardware, Network::Router { boot_file: network_boot }, "")
    }

    /// The same at the port of HTTPS of an address, for clients with [`CREDENTIALS`]. Its certificate is its own, as that
    /// of a new server is, and its machine is at a place of the bridge.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub fn start_with_tls(
        environment: &Path,
        hardware: &Hardware,
        address: Ipv4Addr,
        place: usize,
    ) -> Result<Self> {
        let folder = &hardware.folder;
        let certified = rcgen::generate_simple_self_signed(["bmc.invalid".to_owned()])?;
        let [certificate, key, users] = ["bmc.crt", "bmc.key", "bmc.users"].map(|name| folder.join(name));
        fs::write(&certificate, certified.cert.pem())?;
        fs::write(&key, certified.signing_key.serialize_pem())?;
        fs::write(&users, USERS)?;
        let lines = format!(
            "SUSHY_EMULATOR_SSL_CERT = '{}'\nSUSHY_EMULATOR_SSL_KEY = '{}'\nSUSHY_EMULATOR_AUTH_FILE = '{}'\n",
            certificate.display(),
            key.display(),
            users.display()
        );
        Self::start_at((address, 443).into(), environment, hardware, Network::Bridge { place }, &lines)
    }

    fn start_at(
        listener: SocketAddr,
        environment: &Path,
        hardware: &Hardware,
        network: Network<'_>,
        further_lines: &str,
    ) -> Result<Self> {
        let libvirt = Libvirt::start(hardware, network)?;
        let (folder, ip, port) = (&hardware.folder, listener.ip(), listener.port());
        let configuration = folder.join("sushy.conf");
        let lines = format!(
            "SUSHY_EMULATOR_LISTEN_IP = '{ip}'\nSUSHY_EMULATOR_LISTEN_PORT = {port}\n{further_lines}\
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
        let mut bmc = Self { emulator, _libvirt: libvirt, listener };
        bmc.wait_until_ready(folder)?;
        Ok(bmc)
    }

    /// URL of the BMC.
    pub fn address(&self) -> String {
        format!("http://{}", self.listener)
    }

    /// Path of the machine there.
    pub fn system(&self) -> String {
        format!("/redfish/v1/Systems/{UUID}")
    }

    fn wait_until_ready(&mut self, folder: &Path) -> Result<()> {
        let start = Instant::now();
        while TcpStream::connect(self.listener).is_err() {
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
