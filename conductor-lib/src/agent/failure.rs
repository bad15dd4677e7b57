//! What agents say of commands that failed.

use crate::model::{ErrorCode, error_codes};
use farrier_protocol::command::CommandResult;
use farrier_protocol::error::{CommandError, ErrorKind};

error_codes! {
    /// The classes of errors of agents, in the order of the agent's contract.
    AGENT_ERRORS:
    INVALID_CONTENT = 401, "The agent received a request body that is not valid.",
        "Check that conductor and agent have compatible versions.";
    INVALID_COMMAND = 402, "The agent does not know the command.",
        "Check that conductor and agent have compatible versions.";
    INVALID_PARAMETERS = 403, "A parameter of a command or an argument of a step is not valid.",
        "Correct the argument that the text names.";
    NOT_FOUND = 404, "The agent does not have what the request names.",
        "Check that conductor and agent have compatible versions.";
    OBJECT_NOT_FOUND = 405, "The agent does not have the object that the request names.",
        "Check the name in the text.";
    COMMAND_FAILED = 406, "A command of the agent failed.", "See the text and `farrier logs NODE`.";
    BUSY_AGENT = 407, "The agent runs another command.", "Wait until that command has ended, then retry.";
    CONTAINER_NOT_PERMITTED = 408, "The agent may not run the container image of a step.",
        "Permit the image in the options of the agent, or use another image.";
    IMAGE_DOWNLOAD = 409, "The image could not be downloaded.",
        "Check from the network of the server that the URL in the text works.";
    IMAGE_CHECKSUM = 410, "The downloaded image does not have the expected checksum.",
        "Compare the checksum with the publisher's, and download the image again.";
    IMAGE_WRITE = 411, "The image could not be written to the disk.",
        "Check the disk that the text names: its size, its cable and its health.";
    INVALID_IMAGE = 412, "The image is not valid, or its format is not the declared one.",
        "Set `image_disk_format`, or use another image.";
    UNKNOWN_ARGUMENT = 413, "A step got an argument that it does not have.", "Remove the argument from the step.";
    REBOOT = 414, "The server could not be rebooted by its agent.", "Power-cycle the server.";
    CLOCK = 415, "The clock of the server could not be synchronized.", "Check the NTP server of the agent.";
    ERASE = 416, "A disk could not be erased.",
        "Check the disk that the text names; replace it if its own erase command fails.";
    BLOCK_DEVICE = 417, "A disk could not be read or changed.", "Check the disk that the text names.";
    PROTECTED_DEVICE = 418, "A disk has data that the agent must not erase, such as a cluster file system.",
        "Remove that data yourself, or add the disk to `skip_block_devices`.";
    FILE_SYSTEM = 419, "A file system could not be created.", "Choose another file system for the partition.";
    NO_MANAGER = 420, "No hardware manager of the ramdisk has the requested step.",
        "Check the name of the step, or build the ramdisk with its hardware manager.";
    MANAGER_CONFIGURATION = 421, "The hardware managers of the ramdisk are not configured correctly.",
        "Correct the manager that the text names, and build the ramdisk again.";
    MANAGER_VERSIONS = 422, "The hardware managers changed during the operation.",
        "Retry the operation with one version of the ramdisk.";
    CLEAN_STEP = 423, "A clean step failed.", "See the text, and `farrier logs NODE` for the log of the ramdisk.";
    DEPLOY_STEP = 424, "A deploy step failed.", "See the text, and `farrier logs NODE` for the log of the ramdisk.";
    SERVICE_STEP = 425, "A service step failed.", "See the text, and `farrier logs NODE` for the log of the ramdisk.";
    SOFTWARE_RAID = 426, "A software RAID volume could not be created or deleted.",
        "Check the target RAID configuration and the disks that the text names.";
    ISCSI = 427, "The agent could not export a disk over iSCSI.",
        "Check that the kernel of the ramdisk has the iSCSI target.";
    NO_DEVICE = 428, "No disk matches the root device hints, or the root disk is too small.",
        "Compare the hints with `farrier node inventory NODE`.";
    OTHER_CLASS = 429, "The agent reports an error of a class that is not in its contract.",
        "See the text and the documentation of the hardware manager.";
    NO_ERROR_TEXT = 430, "A command of the agent failed without a reason.", "See `farrier logs NODE`.";
}

/// Why a command failed, in the agent's words, with the code of its error class.
pub fn failure_text(name: &str, result: &CommandResult) -> String {
    match &result.command_error {
        Some(error) => code_of(error).after(error.text()),
        None => NO_ERROR_TEXT
            .after(&format!("command {name} ended as {:?} without an error text", result.command_status)),
    }
}

fn code_of(error: &CommandError) -> &'static ErrorCode {
    let kind = ErrorKind::ALL.iter().find(|kind| kind.name() == error.kind);
    kind.map_or(OTHER_CLASS, |kind| match kind {
        ErrorKind::InvalidContentError => INVALID_CONTENT,
        ErrorKind::InvalidCommandError => INVALID_COMMAND,
        ErrorKind::InvalidCommandParamsError => INVALID_PARAMETERS,
        ErrorKind::NotFound => NOT_FOUND,
        ErrorKind::RequestedObjectNotFoundError => OBJECT_NOT_FOUND,
        ErrorKind::CommandExecutionError => COMMAND_FAILED,
        ErrorKind::AgentIsBusy => BUSY_AGENT,
        ErrorKind::ContainerNotPermittedError => CONTAINER_NOT_PERMITTED,
        ErrorKind::ImageDownloadError => IMAGE_DOWNLOAD,
        ErrorKind::ImageChecksumError => IMAGE_CHECKSUM,
        ErrorKind::ImageWriteError => IMAGE_WRITE,
        ErrorKind::InvalidImage => INVALID_IMAGE,
        ErrorKind::TypeError => UNKNOWN_ARGUMENT,
        ErrorKind::SystemRebootError => REBOOT,
        ErrorKind::ClockSyncError => CLOCK,
        ErrorKind::BlockDeviceEraseError => ERASE,
        ErrorKind::BlockDeviceError => BLOCK_DEVICE,
        ErrorKind::ProtectedDeviceError => PROTECTED_DEVICE,
        ErrorKind::FileSystemNotSupported => FILE_SYSTEM,
        ErrorKind::HardwareManagerMethodNotFound => NO_MANAGER,
        ErrorKind::HardwareManagerConfigurationError => MANAGER_CONFIGURATION,
        ErrorKind::VersionMismatch => MANAGER_VERSIONS,
        ErrorKind::CleaningError => CLEAN_STEP,
        ErrorKind::DeploymentError => DEPLOY_STEP,
        ErrorKind::ServicingError => SERVICE_STEP,
        ErrorKind::SoftwareRAIDError => SOFTWARE_RAID,
        ErrorKind::ISCSIError => ISCSI,
        ErrorKind::DeviceNotFound => NO_DEVICE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_an_error_decides_its_code() {
        for (kind, expected) in [
            (Some("ImageChecksumError"), "digests differ [FAR-0410]"),
            (Some("SomebodysOwnError"), "digests differ [FAR-0429]"),
            (None, "command deploy.x ended as Failed without an error text [FAR-0430]"),
        ] {
            let error = kind.map(|kind| {
                serde_json::json!({"type": kind, "code": 500, "message": "m", "details": "digests differ"})
            });
            let result: CommandResult = serde_json::from_value(serde_json::json!({
                "id": "5f3c0a1e-7d6b-4c2a-9e8f-1a2b3c4d5e6f", "command_name": "x", "command_status": "FAILED", "command_error": error,
                "command_result": null,
            }))
            .unwrap();
            assert_eq!(failure_text("deploy.x", &result), expected);
        }
    }
}
