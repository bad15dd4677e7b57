//! Having a container image install itself on the root disk (section 12.1).

use crate::agent::Agent;
use crate::commands::errors::from_disk;
use crate::deployment::{config_drive, image, root_disk};
use farrier_disk::RootDisk;
use farrier_disk::Sectors;
use farrier_hardware::container::bootc::{self, Order};
use farrier_hardware::container::{ContainerError, Runner, RunnerKind};
use farrier_hardware::manager::StepHost;
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::progress::Phase;
use std::path::Path;

/// Fetches the image, has it install itself, and writes the config drive. The text is for the conductor, in
/// the contract's words.
///
/// Everything that can be judged without the disk is judged first, so that bad input never costs data.
///
/// # Errors
///
/// The contract's error object. The disk then carries no valid partition table, unless the error came
/// before the image was run.
pub fn install(agent: &Agent, order: &Order<'_>) -> Result<String, CommandError> {
    if agent.options.disable_bootc_deploy {
        let details = "disable_bootc_deploy is set in the agent's configuration: deploy a disk image instead";
        return Err(CommandError::new(ErrorKind::CommandExecutionError, details));
    }
    let config_drive = order.config_drive.map(|text| config_drive::load(agent, text)).transpose()?;
    let disk = root_disk::wait(agent)?;
    let warnings = root_disk::leftovers(&disk);
    let runner = Runner::new(RunnerKind::Podman, &agent.root);
    agent.status.say(format!("fetching {}", order.image_source));
    let image = bootc::fetch(&runner, order, &|| agent.is_ending()).map_err(ContainerError::of_install)?;
    agent.status.say(format!("installing {}", order.image_source));
    let held = disk.open().map_err(from_disk)?;
    if let Some(drive) = &config_drive {
        drive.require_fits(&held).map_err(from_disk)?;
    }
    let target = held.hand_over();
    agent.progress.enter(Phase::Writing, None);
    bootc::install(&runner, &image, &target, &agent.root, &|| agent.is_ending())
        .map_err(ContainerError::of_install)
        .inspect_err(|error| spoil(agent, &disk, error))?;
    let held = disk.open().map_err(from_disk)?;
    let identifiers = image::finish(agent, &held, None, config_drive.as_deref())?;
    agent.set_partition_uuids(identifiers);
    Ok(result_text(order.image_source, held.path(), &warnings))
}

/// What the conductor stores about the installation, in the contract's words, and what lies on other disks and may be
/// taken for what belongs to the new system.
fn result_text(source: &str, device: &Path, warnings: &[String]) -> String {
    let written = format!("Container image ({source}) written to device {}", device.display());
    image::with_warnings(written, warnings)
}

/// What an image that failed leaves behind must not boot.
fn spoil(agent: &Agent, disk: &RootDisk, error: &CommandError) {
    match disk.open() {
        Ok(held) => image::abandon(agent, &held, false, error),
        Err(cause) => {
            tracing::error!("the failed installation stays on the disk, which cannot be opened: {cause}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a17_what_other_disks_hold_is_told_with_an_image_that_installed_itself() {
        let text = |warnings: &[String]| result_text("oci://r/i:1", Path::new("/dev/sda"), warnings);
        let written = "Container image (oci://r/i:1) written to device /dev/sda";
        assert_eq!(text(&[]), written);
        let warning = "/dev/sdb1 has the label config-2".to_owned();
        assert_eq!(text(std::slice::from_ref(&warning)), format!("{written} warnings: {warning}"));
    }
}
