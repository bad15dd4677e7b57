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
pub struct GenericHardwareManager {
    steps: &'static [StepDeclaration],
}

impl GenericHardwareManager {
    /// A manager whose step `inject_files` has this place in an automatic deploy or service; 0 runs it only
    /// when asked for. What it declares is kept for the life of the process.
    pub fn new(inject_files_priority: u32) -> Self {
        let inject_files = inject_files::declare(inject_files_priority.into());
        let steps: Vec<_> = STEPS.iter().copied().chain([inject_files]).collect();
        Self { steps: steps.leak() }
    }
}

impl Default for GenericHardwareManager {
    fn default() -> Self {
        Self::new(0)
    }
}

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
        self.steps
    }
}

/// The steps that no option changes.
const STEPS: &[StepDeclaration] = &[
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
];

const WRITE_IMAGE: StepDeclaration = StepDeclaration {
    step: "write_image",
    interface: "deploy",
    priorities: &[(Phase::Deploy, 0), (Phase::Service, 0)],
    reboot_requested: false,
    abortable: &[],
    arguments: &[
        Argument { name: "image_info", description: "Image: id, urls, checksum and format", required: true },
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 9.13: the phases in which each step says so. Where it does not, nothing is said.
    #[test]
    fn x14_a_step_is_abortable_in_the_phases_of_the_contract() {
        for (step, expected) in [
            ("erase_devices", vec![Phase::Clean]),
            ("erase_devices_metadata", vec![Phase::Clean]),
            ("clean_uefi_nvram", vec![Phase::Clean]),
            ("erase_pstore", vec![Phase::Clean]),
            ("delete_configuration", vec![Phase::Clean, Phase::Service]),
            ("create_configuration", vec![Phase::Clean, Phase::Service]),
            ("apply_configuration", vec![]),
            ("burnin_cpu", vec![Phase::Clean, Phase::Service]),
            ("burnin_gpu", vec![Phase::Clean, Phase::Service]),
            ("burnin_memory", vec![Phase::Clean, Phase::Service]),
            ("burnin_network", vec![Phase::Clean, Phase::Service]),
            ("burnin_disk", vec![Phase::Clean]),
            ("write_image", vec![]),
            ("execute_bootc_install", vec![]),
        ] {
            let declared = STEPS.iter().find(|one| one.step == step).unwrap();
            let described =
                |phase: &Phase| declared.describe(*phase).is_some_and(|one| one.abortable == Some(true));
            let abortable: Vec<_> = Phase::ALL.iter().copied().filter(described).collect();
            assert_eq!(abortable, expected, "{step}");
        }
    }
}
