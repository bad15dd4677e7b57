//! Where a config drive comes from: the command itself, or a web server (section 6.5).

use crate::agent::Agent;
use crate::commands::errors::from_disk;
use crate::network::download;
use farrier_disk::config_drive::{self, ConfigDrive, MAX_SIZE};
use farrier_protocol::error::{CommandError, ErrorKind};

/// Most bytes a server may send: base64 is a third longer than what it encodes, besides line ends.
const MAX_DOWNLOAD: usize = (MAX_SIZE + MAX_SIZE / 2) as usize;

/// Takes the drive out of `text`, which is base64 of gzip or the URL of a file. Blocks.
///
/// # Errors
///
/// `DeploymentError`: the server does not send it, or it is no config drive (D10).
pub fn load(agent: &Agent, text: &str) -> Result<ConfigDrive, CommandError> {
    let drive = match config_drive::url(text) {
        None => ConfigDrive::decode(text),
        Some(url) => ConfigDrive::from_download(fetch(agent, url)?),
    };
    Ok(drive.map_err(from_disk)?.always_rebuilt(agent.options.config_drive_rebuild))
}

fn fetch(agent: &Agent, url: &str) -> Result<Vec<u8>, CommandError> {
    let source = download::source(agent, agent.http.clone());
    source.fetch(url, MAX_DOWNLOAD, &agent.ending).map_err(|error| {
        let details = format!("the config drive cannot be fetched: {error}");
        CommandError::new(ErrorKind::DeploymentError, details)
    })
}
