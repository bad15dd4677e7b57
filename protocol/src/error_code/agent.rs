//! The codes of the errors of the agent: of commands by their class, of requests to its REST API, and of the program.

use crate::error::{CommandError, ErrorKind};
use crate::error_code::ErrorCode;
use crate::error_codes;

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

error_codes! {
    /// Errors of requests to the REST API of the agent, beside the classes of commands.
    REFUSALS:
    NO_TOKEN = 431, "The request has no agent token, or a wrong one.",
        "Send the token of the lookup; a conductor that lost it must power-cycle the server.";
    WRONG_METHOD = 432, "The path of the agent does not support the method.", "See the description of the API at `/`.";
    SLOW_BODY = 433, "The body of the request came too slowly.", "Check the network between conductor and agent.";
    LARGE_BODY = 434, "The body of the request is too large for the memory of the server.",
        "Send less, for example a smaller config drive.";
}

error_codes! {
    /// Errors that end the agent, or one of its commands.
    PROGRAM_ERRORS:
    NO_NETWORK = 701, "No network interface of the server got an address.",
        "Check cables, VLANs and the DHCP server.";
    NO_CONDUCTOR = 702, "The agent did not find the conductor by multicast DNS.",
        "Set `ipa-api-url`, or announce the conductor on the network of the server.";
    HTTP_CLIENT = 703, "The options for TLS do not give a working HTTP client.",
        "Correct the option that the text names.";
    LOOKUP_FAILED = 704, "The conductor did not return the node of the server.",
        "Enroll the server with its MAC addresses, and run `farrier-agent doctor`.";
    NO_CALLBACK_ADDRESS = 705, "The agent has no address under which the conductor can send commands.",
        "Check addresses, routes and `ipa-advertise-host`.";
    CERTIFICATE = 706, "The agent has no usable certificate for its REST API.",
        "Correct the certificate, the key or the option that the text names.";
    LISTEN = 707, "The agent cannot listen on its port.",
        "Stop the program that uses the port, or set `listen_port`.";
    API_FAILED = 708, "The REST API of the agent failed.", "See the log of the ramdisk; PID 1 restarts the agent.";
    INVALID_OPTION = 709, "An option or an argument of the agent is not valid.",
        "Correct the value that the text names; see `farrier-agent COMMAND --help`.";
    FILE = 710, "A file, a folder or standard output cannot be read or written.",
        "Check the path that the text names, its permissions and its disk.";
    CONDUCTOR_NOT_REACHED = 711, "The server does not reach a conductor that has its node.",
        "See the checks that failed above the error.";
    MANAGER_BREAKS_RULES = 712, "The external hardware manager breaks rules of its protocol.",
        "Correct the manager as the output of `check-manager` shows.";
    KERNEL_MODULE = 713, "The kernel cannot load a module.",
        "Build the ramdisk with the modules of its kernel.";
    LEASE_FAILED = 714, "The lease of the DHCP server cannot be applied.", "Correct the options of the DHCP server.";
    VIRTUAL_MEDIA = 715, "The configuration on the virtual medium cannot be read.",
        "Insert the medium again, and check the log of the BMC.";
    AGENT_FAILED = 799, "The agent failed for the reason in the text.", "See the text, and the log of the ramdisk.";
}

/// The code of the error of a command, by its class.
pub fn of_command(error: &CommandError) -> &'static ErrorCode {
    let kind = ErrorKind::ALL.iter().find(|kind| kind.name() == error.kind);
    kind.map_or(OTHER_CLASS, |kind| of_class(*kind))
}

/// The code of a class of errors of commands.
pub fn of_class(kind: ErrorKind) -> &'static ErrorCode {
    match kind {
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
    }
}

/// The code of a refused request, by its HTTP status.
pub fn of_status(status: u16) -> &'static ErrorCode {
    match status {
        401 => NO_TOKEN,
        404 => NOT_FOUND,
        405 => WRONG_METHOD,
        408 => SLOW_BODY,
        409 => BUSY_AGENT,
        413 => LARGE_BODY,
        400..500 => INVALID_CONTENT,
        _ => COMMAND_FAILED,
    }
}
