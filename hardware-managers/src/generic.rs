//! The generic manager: what works on any machine (section 9.13).

mod bootc;
mod burn_in;
mod erase;
mod inject_files;
mod nvram;
mod pstore;
mod raid;

use crate::error::StepError;
use crate::manager::{Argument, HardwareManager, StepCall, StepDeclaration, Support};
use farrier_protocol::step::Phase;
use serde_json::Value;

/// Manager of last resort; fits every machine.
#[derive(Debug, Default)]
pub struct GenericHardwareManager;

impl HardwareManager for GenericHardwareManager {
    fn class_name(&self) -> &'static str {
        "GenericHardwareManager"
    }

    fn name(&self) -> &'static str {
        "generic_hardware_manager"
    }

    fn version(&self) -> &'static str {
        "1.2"
    }

    fn evaluate(&self) -> Support {
        Support::Generic
    }

    fn steps(&self) -> &'static [StepDeclaration] {
        &[
            erase::DEVICES,
            erase::EXPRESS,
            erase::METADATA,
            pstore::ERASE,
            nvram::CLEAN,
            raid::DELETE,
            raid::CREATE,
            raid::APPLY,
            burn_in::CPU,
            burn_in::DISK,
            burn_in::GPU,
            burn_in::MEMORY,
            burn_in::NETWORK,
            WRITE_IMAGE,
            bootc::INSTALL,
            inject_files::INJECT,
        ]
    }
}

const WRITE_IMAGE: StepDeclaration = StepDeclaration {
    step: "write_image",
    interface: "deploy",
    priorities: &[(Phase::Deploy, 0), (Phase::Service, 0)],
    reboot_requested: false,
    is_abortable: false,
    arguments: &[
        Argument {
            name: "image_info",
            description: "What to write: id, urls, checksum and format of the image",
            required: true,
        },
        Argument {
            name: "configdrive",
            description: "Config drive as base64 text of a gzip file, or its URL",
            required: false,
        },
    ],
    run: &write_image,
};

fn write_image(call: &StepCall<'_>) -> Result<Value, StepError> {
    let config_drive = call.arguments.get("configdrive").and_then(Value::as_str);
    let image_info = &call.arguments["image_info"];
    call.host.prepare_image(image_info, config_drive).map_err(StepError::Failed)
}
