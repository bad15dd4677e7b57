//! Deploying an image, from the parameters to the finished disk (section 5.2).

use crate::agent::Agent;
use crate::commands::errors::{from_disk, from_imaging};
use crate::deployment::partitioning::Partitioning;
use crate::deployment::{config_drive, memory, root_disk};
use crate::network::{download, http};
use crate::settings::options::Options;
use farrier_disk::Sectors;
use farrier_disk::WritableDisk;
use farrier_disk::config_drive::ConfigDrive;
use farrier_disk::table;
use farrier_imaging::access;
use farrier_imaging::checksum::Trust;
use farrier_imaging::format::Policy;
use farrier_imaging::pipeline::{self, ImageRequest, Report, Settings};
use farrier_imaging::target::Target;
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::image_info::{ImageInfo, Secret};
use farrier_protocol::progress::Phase;
use reqwest::{Client, ClientBuilder};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::time::Instant;

/// What a deployment achieved.
pub struct Deployed {
    /// Text for the conductor, in the contract's words.
    pub text: String,
    /// Figures of the write path.
    pub report: DeployReport,
}

/// Figures of a deployment.
#[derive(Debug, Serialize)]
pub struct DeployReport {
    /// Bytes and seconds of writing and verifying.
    #[serde(flatten)]
    pub image: Report,
    /// Seconds spent on partition table and config drive.
    pub seconds_finish: f64,
    /// What lies on other disks and may be taken for what belongs to the new system.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Writes an image and a config drive to the root disk.
///
/// Everything that can be judged without the disk is judged first, so that bad input never costs
/// data.
///
/// # Errors
///
/// The contract's error object. The disk then carries no valid partition table, unless the error
/// came before the first byte was written.
pub fn deploy(
    agent: &Agent,
    image_info: &Value,
    config_drive: Option<&str>,
) -> Result<Deployed, CommandError> {
    let mut info = ImageInfo::from_params(image_info)?;
    lend_credentials(&agent.options, &mut info);
    let request = plan(agent, &info)?;
    memory::require_for_image(info.disk_format.as_deref())?;
    let client = client(agent, &info)?;
    let config_drive = config_drive.or(info.configdrive.as_deref());
    let config_drive = config_drive.map(|text| config_drive::load(agent, text)).transpose()?;
    let root = root_disk::wait(agent)?;
    let warnings = root_disk::leftovers(&root);
    let disk = root.open().map_err(from_disk)?;
    let config_drive = config_drive.as_deref();
    if let Some(drive) = config_drive {
        drive.require_fits(&disk).map_err(from_disk)?;
    }
    let partitioning = Partitioning::plan(agent, &info, &disk, config_drive)?;
    tracing::info!(disk = %disk.path().display(), image = info.id, "writing the image");
    let target = match &partitioning {
        Some(partitioning) => {
            let root = partitioning.prepare(&disk)?;
            Target::part(&disk, root.start, root.size)
        }
        None => Target::whole(&disk),
    };
    let source = download::source(agent, client);
    let image = pipeline::write_image(&request, &source, target, &agent.progress, &agent.ending)
        .map_err(from_imaging)?;
    let started = Instant::now();
    let identifiers = finish(agent, &disk, partitioning.as_ref(), config_drive)?;
    let text = with_warnings(result_text(&info, &disk, &identifiers), &warnings);
    agent.set_partition_uuids(identifiers);
    let report = DeployReport { image, seconds_finish: started.elapsed().as_secs_f64(), warnings };
    tracing::info!(?report, "image written and verified");
    Ok(Deployed { text, report })
}

/// What the conductor stores about a deployment, in the contract's words (section 5.2, step 8).
fn result_text(info: &ImageInfo, disk: &WritableDisk, identifiers: &Map<String, Value>) -> String {
    let text = |name: &str| identifiers.get(name).and_then(Value::as_str);
    let root = text("root uuid").unwrap_or_default();
    let written = format!("image ({}) written to device {} root_uuid={root}", info.id, disk.path().display());
    match (info.deploy_boot_mode.as_deref(), text("efi system partition uuid")) {
        (Some("uefi"), Some(esp)) => format!("{written} efi_system_partition_uuid={esp}"),
        _ => written,
    }
}

/// Conductors look for identifiers among the words of the text; the warnings come behind them.
pub fn with_warnings(text: String, warnings: &[String]) -> String {
    if warnings.is_empty() { text } else { format!("{text} warnings: {}", warnings.join("; ")) }
}

fn plan(agent: &Agent, info: &ImageInfo) -> Result<ImageRequest, CommandError> {
    ImageRequest::new(info, settings(agent)).map_err(from_imaging)
}

/// An image without credentials of its own is fetched with those of the configuration, all of them or
/// none (S23).
fn lend_credentials(options: &Options, info: &mut ImageInfo) {
    if !info.has_credentials() {
        info.image_server_auth_strategy = Some(options.image_server_auth_strategy.clone());
        info.image_server_user.clone_from(&options.image_server_user);
        info.image_server_password = options.image_server_password.clone().map(Secret::from);
    }
}

/// The agent's client, or one with the same settings that takes the image's proxies.
fn client(agent: &Agent, info: &ImageInfo) -> Result<Client, CommandError> {
    let proxies = access::proxies(info).map_err(from_imaging)?;
    if proxies.is_empty() {
        return Ok(agent.http.clone());
    }
    let builder = proxies.into_iter().fold(http::builder(&agent.options), ClientBuilder::proxy);
    builder.build().map_err(|error| {
        let details = format!("no HTTP client with the image's proxies: {}", http::reason(&error));
        CommandError::new(ErrorKind::ImageDownloadError, details)
    })
}

/// Creates the partitions around the image, and returns their identifiers (section 5.9).
pub fn finish(
    agent: &Agent,
    disk: &WritableDisk,
    partitioning: Option<&Partitioning>,
    config_drive: Option<&ConfigDrive>,
) -> Result<Map<String, Value>, CommandError> {
    agent.progress.enter(Phase::Finishing, None);
    let identifiers = match partitioning {
        Some(partitioning) => partitioning.finish(disk, config_drive),
        None => finish_whole_disk(disk, config_drive),
    };
    let keeps_table = partitioning.is_some_and(Partitioning::keeps_table);
    let identifiers = identifiers.inspect_err(|error| abandon(agent, disk, keeps_table, error))?;
    agent.progress.enter(Phase::Done, None);
    Ok(identifiers)
}

fn finish_whole_disk(
    disk: &WritableDisk,
    config_drive: Option<&ConfigDrive>,
) -> Result<Map<String, Value>, CommandError> {
    table::finish_image(disk).map_err(from_disk)?;
    if let Some(drive) = config_drive {
        let partition = drive.write_to(disk).map_err(from_disk)?;
        tracing::info!(partition = partition.number, "config drive written");
    }
    let identifier = table::disk_identifier(disk).map_err(from_disk)?;
    disk.flush().map_err(from_disk)?;
    Ok(Map::from_iter([("root uuid".to_owned(), json!(identifier))]))
}

/// An image whose table or config drive could not be finished must not boot by accident; a table that
/// leads to preserved data stays.
pub fn abandon(agent: &Agent, disk: &WritableDisk, keeps_table: bool, error: &CommandError) {
    agent.progress.enter(Phase::Failed, None);
    if keeps_table {
        return;
    }
    tracing::error!(disk = %disk.path().display(), "removing the partition table: {}", error.text());
    if let Err(error) = farrier_disk::wipe::wipe_ends(disk) {
        tracing::error!(%error, "the partition table cannot be removed");
    }
}

fn settings(agent: &Agent) -> Settings {
    let options = &agent.options;
    Settings {
        policy: Policy {
            permitted: options.permitted_image_formats.0.clone(),
            is_deep: !options.disable_deep_image_inspection,
        },
        verify: options.verify,
        trust: Trust { md5: options.md5_enabled, ..Trust::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a17_warnings_follow_the_identifiers_and_change_none_of_them() {
        let text =
            "image (x) written to device /dev/sda root_uuid=ab-1 efi_system_partition_uuid=CD".to_owned();
        assert_eq!(with_warnings(text.clone(), &[]), text);
        let warned = with_warnings(text, &["/dev/sdb1 has the label config-2".to_owned()]);
        assert!(warned.ends_with("uuid=CD warnings: /dev/sdb1 has the label config-2"), "{warned}");
        for (name, value) in [("root_uuid", "ab-1"), ("efi_system_partition_uuid", "CD")] {
            let words: Vec<_> = warned.split_whitespace().filter(|word| word.contains(name)).collect();
            assert_eq!(words, [format!("{name}={value}")]);
        }
    }

    #[test]
    fn s23_credentials_come_from_one_source() {
        let options = Options {
            image_server_auth_strategy: "http_basic".to_owned(),
            image_server_user: Some("configured".to_owned()),
            image_server_password: Some("secret".to_owned()),
            ..Options::default()
        };
        for (own, expected) in [
            (json!({}), Some("configured")),
            (json!({"image_server_user": "ann"}), Some("ann")),
            (json!({"image_server_password": "own"}), None),
            (json!({"image_server_auth_strategy": "noauth"}), None),
            (json!({"image_request_authorization": "QmVhcmVyIHg="}), None),
        ] {
            let mut given = json!({"id": "x", "urls": ["http://192.0.2.1/x"]});
            given.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            let mut info: ImageInfo = serde_json::from_value(given).unwrap();
            lend_credentials(&options, &mut info);
            assert_eq!(info.image_server_user.as_deref(), expected, "{own}");
            let is_lent = expected == Some("configured");
            let password = info.image_server_password.as_ref().map(Secret::reveal);
            assert_eq!(password == Some("secret"), is_lent, "{own}");
        }
    }
}
