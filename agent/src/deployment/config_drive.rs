//! Where a config drive comes from: the command itself, or a web server (section 6.5).

use crate::agent::Agent;
use crate::commands::allowance::Claim;
use crate::commands::errors::from_disk;
use crate::network::download;
use farrier_disk::config_drive::{self, ConfigDrive, MAX_SIZE};
use farrier_protocol::error::{CommandError, ErrorKind};
use std::ops::Deref;

/// Most bytes a server may send: base64 is a third longer than what it encodes, besides line ends.
const MAX_DOWNLOAD: usize = (MAX_SIZE + MAX_SIZE / 2) as usize;

/// How often a drive is in memory at a time: as it is, and as what a server sent or as the largest of its files,
/// when it is rebuilt.
const COPIES: usize = 2;

/// A config drive, and the memory that it takes.
pub struct Held {
    drive: ConfigDrive,
    _claim: Claim,
}

impl Deref for Held {
    type Target = ConfigDrive;

    fn deref(&self) -> &ConfigDrive {
        &self.drive
    }
}

/// Takes the drive out of `text`, which is base64 of gzip or the URL of a file. Blocks.
///
/// # Errors
///
/// `DeploymentError`: the server does not send it, it is no config drive (D10), or it is larger than the memory
/// that the agent's allowance has left.
pub fn load(agent: &Agent, text: &str) -> Result<Held, CommandError> {
    let mut claim = agent.allowance.claim();
    claim.take_rest(COPIES * MAX_DOWNLOAD);
    let limit = claim.bytes() / COPIES;
    let drive = match config_drive::url(text) {
        None => ConfigDrive::decode(text, limit as u64),
        Some(url) => ConfigDrive::from_download(fetch(agent, url, limit.min(MAX_DOWNLOAD))?, limit as u64),
    };
    let drive = drive.map_err(from_disk)?.always_rebuilt(agent.options.config_drive_rebuild);
    // Less than what it had.
    let _ = claim.resize(COPIES * drive.size() as usize);
    Ok(Held { drive, _claim: claim })
}

fn fetch(agent: &Agent, url: &str, most: usize) -> Result<Vec<u8>, CommandError> {
    let source = download::source(agent, agent.http.clone());
    source.fetch(url, most, &agent.ending).map_err(|error| {
        let details = format!("the config drive cannot be fetched: {error}");
        CommandError::new(ErrorKind::DeploymentError, details)
    })
}
