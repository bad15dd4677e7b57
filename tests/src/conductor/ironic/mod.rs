//! A real, unmodified Ironic, for one run.

mod boot_loader;
mod iscsi;
mod programs;
mod settings;

pub use settings::{CONDUCTOR_NAME, Cleaning, FAST_TRACK_TIMEOUT};

use crate::conductor::node_api::{Api, Conductor};
use crate::images::server::{ImageServer, Reply};
use crate::machine::free_port;
use anyhow::{Context, Result, bail};
use iscsi::Initiator;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use programs::Programs;
use settings::{Place, Settings};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(200);
const START: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(20);

/// Its processes, the conductor first, and its files. Dropping it ends them.
#[derive(Debug)]
pub struct Ironic {
    processes: Vec<Child>,
    api: Api,
    folder: PathBuf,
    files_port: u16,
    /// Of its release, the first number.
    release: u32,
    initiator: Option<Initiator>,
}

impl Ironic {
    /// Starts the Ironic that is installed in `environment` with its state in `folder`. It may read files in `dist`,
    /// and reaches other addresses than the loopback address through `proxy`. Its automated cleaning is as said.
    ///
    /// # Errors
    ///
    /// Ironic did not start; the text holds its log.
    pub fn start(
        environment: &Path,
        folder: &Path,
        dist: &Path,
        proxy: &str,
        cleaning: Cleaning,
    ) -> Result<Self> {
        make_folders(folder)?;
        boot_loader::write(&folder.join("esp.img"))?;
        let port = free_port()?;
        let files_port = ImageServer::start(vec![Reply::Folder(folder.join("http"))])?.port();
        let place = Place::USER_NETWORK;
        let configuration = Settings { folder, dist, place, port, files_port, cleaning }.file();
        Self::serve(Programs::new(environment, folder, &configuration, proxy)?, folder, port, files_port)
    }

    /// Starts a release that still has the deploy interface `iscsi`, installed in `environment`, as [`Self::start`]
    /// does. It deploys by that alone, and cleans nothing; nodes have no further kernel parameters of their own, but all
    /// have these.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub fn start_with_iscsi(
        environment: &Path,
        folder: &Path,
        dist: &Path,
        proxy: &str,
        parameters: &str,
    ) -> Result<Self> {
        make_folders(folder)?;
        let (port, portal) = (free_port()?, free_port()?);
        let files_port = ImageServer::start(vec![Reply::Folder(folder.join("http"))])?.port();
        let (place, cleaning) = (Place::USER_NETWORK, Cleaning::Metadata);
        let configuration = Settings { folder, dist, place, port, files_port, cleaning }.file();
        let initiator = Initiator::new(folder, portal)?;
        let programs = Programs::new(environment, folder, &configuration, proxy)?;
        let programs = programs
            .differing(&settings::of_iscsi(portal, free_port()?, parameters))?
            .with_path(initiator.programs())?;
        let mut ironic = Self::serve(programs, folder, port, files_port)?;
        ironic.initiator = Some(initiator);
        Ok(ironic)
    }

    /// Starts the Ironic that is installed in `environment` with its state in `folder`, for machines on the bridge of
    /// [`crate::network::bridge::network`]. It may read files in `dist`; what it writes for machines is in the folders `http`
    /// and `tftp`, which others serve: `http` at the port `files_port`.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub fn start_on_the_bridge(
        environment: &Path,
        folder: &Path,
        dist: &Path,
        files_port: u16,
    ) -> Result<Self> {
        make_folders(folder)?;
        boot_loader::write(&folder.join("esp.img"))?;
        let (place, port, cleaning) = (Place::BRIDGE, free_port()?, Cleaning::Metadata);
        let configuration = Settings { folder, dist, place, port, files_port, cleaning }.file();
        Self::serve(Programs::new(environment, folder, &configuration, "")?, folder, port, files_port)
    }

    /// Starts the Ironic that is installed in `environment` with its state in `folder`, for nodes whose hardware is not
    /// there.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub fn start_with_fake_hardware(environment: &Path, folder: &Path) -> Result<Self> {
        make_folders(folder)?;
        let port = free_port()?;
        let configuration = settings::with_fake_hardware(folder, port);
        Self::serve(Programs::new(environment, folder, &configuration, "")?, folder, port, 0)
    }

    /// Starts it. What it serves to machines has a port of its own.
    fn serve(programs: Programs, folder: &Path, port: u16, files_port: u16) -> Result<Self> {
        programs.make_schema().with_context(|| log_tail(folder))?;
        let (release, processes) = (programs.release()?, programs.start()?);
        let (api, folder) = (Api::new(port), folder.to_owned());
        let mut ironic = Self { processes, api, folder, files_port, release, initiator: None };
        ironic.wait_for_a_conductor()?;
        Ok(ironic)
    }

    fn wait_for_a_conductor(&mut self) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < START {
            for process in &mut self.processes {
                if let Some(status) = process.try_wait()? {
                    bail!("ironic ended with {status}:\n{}", log_tail(&self.folder));
                }
            }
            let drivers = self.api.request("GET", "/v1/drivers", None).unwrap_or_default();
            if drivers["drivers"].as_array().is_some_and(|drivers| !drivers.is_empty()) {
                return Ok(());
            }
            thread::sleep(POLL);
        }
        bail!("ironic has no conductor after {START:?}:\n{}", log_tail(&self.folder))
    }

    /// Port of the API on the loopback address.
    pub fn port(&self) -> u16 {
        self.api.port()
    }

    /// The process of the conductor, which is that of the API too.
    pub fn process_id(&self) -> u32 {
        self.processes[0].id()
    }

    /// Arguments of QEMU that bring a card into a machine, through which its conductor reaches what the agent exports.
    pub fn network_arguments(&self) -> Vec<String> {
        self.initiator.iter().flat_map(Initiator::network_arguments).collect()
    }

    /// URL of the script with which a machine on QEMU's user network begins to boot by iPXE.
    pub fn ipxe_script(&self) -> String {
        format!("http://10.0.2.2:{}/boot.ipxe", self.files_port)
    }

    /// The kernel's parameters in the iPXE configuration that Ironic wrote for a node.
    ///
    /// # Errors
    ///
    /// There is no such configuration.
    pub fn kernel_parameters(&self, node: &str, mac: &str) -> Result<String> {
        let file = self.folder.join("http").join(node).join("config");
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("kernel http"));
        let line = line.with_context(|| format!("no kernel in {}", file.display()))?;
        let (command, _) = line.split_once("||").unwrap_or((line, ""));
        let parameters: Vec<_> = command.split_whitespace().skip(1).collect();
        Ok(parameters.join(" ").replace("${mac}", mac))
    }

    /// Whether Ironic rescues a node whose boot interface is `redfish-virtual-media`: in release 26 that
    /// interface refuses.
    pub fn rescues_by_virtual_media(&self) -> bool {
        self.release > 26
    }
}

impl Conductor for Ironic {
    fn api(&self) -> &Api {
        &self.api
    }

    fn log_tail(&self) -> String {
        log_tail(&self.folder)
    }
}

impl Drop for Ironic {
    fn drop(&mut self) {
        // SIGTERM, because a process has children that it ends itself.
        for process in &self.processes {
            kill(Pid::from_raw(process.id().cast_signed()), Signal::SIGTERM).ok();
        }
        let start = Instant::now();
        for process in &mut self.processes {
            while start.elapsed() < STOP && matches!(process.try_wait(), Ok(None)) {
                thread::sleep(POLL);
            }
            process.kill().ok();
            process.wait().ok();
        }
    }
}

fn make_folders(folder: &Path) -> Result<()> {
    for name in ["certificates", "http", "images", "tftp", "tmp"] {
        fs::create_dir_all(folder.join(name))?;
    }
    Ok(())
}

/// The last lines of Ironic's log, without the requests it was sent.
fn log_tail(folder: &Path) -> String {
    const LINES: usize = 30;
    let text = fs::read_to_string(folder.join("ironic.log")).unwrap_or_default();
    let lines: Vec<_> = text.lines().filter(|line| !line.contains(" INFO ironic.api ")).collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
