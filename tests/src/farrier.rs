//! The reference conductor, led as Ironic is: over its REST interface alone.

use crate::ironic::{CONDUCTOR_NAME, Cleaning, FAST_TRACK_TIMEOUT};
use crate::lab::Lab;
use crate::node_api::{Api, Conductor};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The conductor's process. Dropping it ends its machines and it.
#[derive(Debug)]
pub struct Farrier {
    lab: Lab,
    api: Api,
}

impl Farrier {
    /// Starts the conductor with its state in `folder`. Its automated cleaning is as said.
    ///
    /// # Errors
    ///
    /// It did not start; the text holds its log.
    pub fn start(program: &Path, folder: &Path, cleaning: Cleaning) -> Result<Self> {
        let (devices, metadata) = cleaning.priorities();
        let priorities = format!("deploy.erase_devices:{devices},deploy.erase_devices_metadata:{metadata}");
        let fast_track_timeout = FAST_TRACK_TIMEOUT.as_secs().to_string();
        Self::start_with(
            program,
            folder,
            &[
                "--heartbeat-timeout",
                "30",
                "--fast-track-timeout",
                &fast_track_timeout,
                "--clean-step-priority-override",
                &priorities,
            ],
        )
    }

    /// Starts the conductor with its state in `folder`, for nodes whose hardware is not there.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub fn start_with_fake_hardware(program: &Path, folder: &Path) -> Result<Self> {
        let options = ["--enabled-hardware-types", "fake-hardware", "--conductor-name", CONDUCTOR_NAME];
        Self::start_with(program, folder, &options)
    }

    fn start_with(program: &Path, folder: &Path, options: &[&str]) -> Result<Self> {
        Self::start_at("127.0.0.1:0", program, folder, options)
    }

    /// Starts the conductor with its state in `folder`, with its interface for agents and firmware at this address and
    /// further options of `farrier serve`.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub fn start_at(listen: &str, program: &Path, folder: &Path, options: &[&str]) -> Result<Self> {
        let lab = Lab::start_at(
            listen,
            program,
            folder,
            &[&["--admin-plain-http", "--auth-strategy", "noauth"], options].concat(),
        )?;
        let port = lab.url().rsplit(':').next().and_then(|port| port.parse().ok());
        let api = Api::new(port.with_context(|| format!("no port in {}", lab.url()))?);
        Ok(Self { lab, api })
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
