//! The reference conductor, led as Ironic is: over its REST interface alone.

use super::ironic::{CONDUCTOR_NAME, Cleaning, FAST_TRACK_TIMEOUT};
use super::lab::{Lab, has_guests};
use super::node_api::{Api, Conductor};
use crate::machine::free_port;
use anyhow::{Context, Result};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The conductor's process. Dropping it ends its machines and it.
#[derive(Debug)]
pub struct Farrier {
    lab: Lab,
    api: Api,
    /// Where agents and firmware find it.
    port: u16,
}

impl Farrier {
    /// Starts the conductor with its state in `folder`. Its automated cleaning is as said.
    ///
    /// # Errors
    ///
    /// It did not start; the text holds its log.
    pub fn start(program: &Path, folder: &Path, cleaning: Cleaning) -> Result<Self> {
        Self::start_cleaning(free_port()?, program, folder, cleaning, &[])
    }

    /// The same, for machines with BMCs that boot what is in `dist`, with boot loaders as packages have them below a
    /// folder.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub fn start_with_bmcs(
        program: &Path,
        folder: &Path,
        dist: &Path,
        boot_loaders: &Path,
        cleaning: Cleaning,
    ) -> Result<Self> {
        let port = free_port()?;
        // The BMC is beside the conductor, and the machine behind a router of QEMU's.
        let [media, api] = ["127.0.0.1", "10.0.2.2"].map(|host| format!("http://{host}:{port}"));
        let allowed = dist.display().to_string();
        let loaders = [
            ("bootx64.efi", "usr/lib/shim/shimx64.efi.signed"),
            ("gcdx64.efi", "usr/lib/grub/x86_64-efi-signed/gcdx64.efi.signed"),
        ];
        let loaders = loaders.map(|(name, file)| format!("{name}:{}", boot_loaders.join(file).display()));
        let options = [
            ["--enabled-hardware-types", "redfish,ipmi"],
            ["--api-url", &api],
            ["--virtual-media-url", &media],
            ["--file-url-allowed-paths", &allowed],
            ["--loader-file-paths", &loaders.join(",")],
        ];
        Self::start_cleaning(port, program, folder, cleaning, options.as_flattened())
    }

    /// Where machines find what their iPXE is to do.
    pub fn ipxe_script(&self) -> String {
        format!("http://10.0.2.2:{}/boot.ipxe", self.port)
    }

    fn start_cleaning(
        port: u16,
        program: &Path,
        folder: &Path,
        cleaning: Cleaning,
        options: &[&str],
    ) -> Result<Self> {
        let (devices, metadata) = cleaning.priorities();
        let priorities = format!("deploy.erase_devices:{devices},deploy.erase_devices_metadata:{metadata}");
        let fast_track_timeout = FAST_TRACK_TIMEOUT.as_secs().to_string();
        let usual = [
            ["--heartbeat-timeout", "30"],
            ["--fast-track-timeout", &fast_track_timeout],
            ["--clean-step-priority-override", &priorities],
        ];
        Self::start_with(port, program, folder, &[usual.as_flattened(), options].concat())
    }

    /// Starts the conductor with its state in `folder`, for nodes whose hardware is not there.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub fn start_with_fake_hardware(program: &Path, folder: &Path) -> Result<Self> {
        let options = ["--enabled-hardware-types", "fake-hardware", "--conductor-name", CONDUCTOR_NAME];
        Self::start_with(free_port()?, program, folder, &options)
    }

    fn start_with(port: u16, program: &Path, folder: &Path, options: &[&str]) -> Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, port).into(), program, folder, options)
    }

    /// Starts the conductor with its state in `folder`, with its interface for agents and firmware at this address and
    /// further options of `farrier serve`.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub fn start_at(listen: SocketAddr, program: &Path, folder: &Path, options: &[&str]) -> Result<Self> {
        let named = options.iter().position(|option| *option == "--auth-strategy");
        let strategy = match named.and_then(|named| options.get(named + 1)) {
            Some(strategy) => strategy,
            // Machines that are processes of this host reach its loopback addresses, so clients have to authenticate.
            None if has_guests(options) => "http_basic",
            None => "noauth",
        };
        let own = ["--admin-plain-http", "--auth-strategy", strategy];
        let own = if named.is_some() { &own[..1] } else { &own[..] };
        let lab = Lab::start_at(&listen.to_string(), program, folder, &[own, options].concat())?;
        let operators = lab.url().rsplit(':').next().and_then(|port| port.parse().ok());
        let api = Api::new(operators.with_context(|| format!("no port in {}", lab.url()))?);
        let api = if strategy == "noauth" { api } else { api.with_token(lab.token()?) };
        Ok(Self { lab, api, port: listen.port() })
    }

    /// The token of an administrator.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn token(&self) -> Result<String> {
        self.lab.token()
    }

    /// Its process.
    pub fn process_id(&self) -> u32 {
        self.lab.process_id()
    }

    /// Where the machine of a node listens to what is typed at its console.
    pub fn console_socket(&self, node: &str) -> PathBuf {
        self.lab.folder().join("state").join(node).join("console.sock")
    }
}

impl Conductor for Farrier {
    fn api(&self) -> &Api {
        &self.api
    }

    fn log_tail(&self) -> String {
        self.lab.log_tail()
    }
}
