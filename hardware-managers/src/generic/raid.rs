//! The steps that make and remove software RAID (section 9.9). Controllers with RAID of their own are the
//! business of a manager that knows them.

use crate::error::StepError;
use crate::manager::{Argument, StepCall, StepDeclaration};
use farrier_boot::firmware::Firmware;
use farrier_boot::mode;
use farrier_disk::guard;
use farrier_disk::raid::plan::Boot;
use farrier_disk::raid::{create, delete};
use farrier_protocol::error::CommandError;
use farrier_protocol::step::Phase;
use serde_json::{Value, json};

/// Removes every array that is not to be kept. Its result is nothing.
pub const DELETE: StepDeclaration = StepDeclaration {
    step: "delete_configuration",
    interface: "raid",
    priorities: &[(Phase::Clean, 0), (Phase::Service, 0)],
    reboot_requested: false,
    abortable: Phase::ALL,
    arguments: &[],
    run: &|call| delete_all(call).map(|()| Value::Null),
};

/// Makes the volumes that the node's `target_raid_config` wants. Its result is that configuration, from
/// which the conductor learns what there is; `{}` when there was nothing to make.
pub const CREATE: StepDeclaration = StepDeclaration {
    step: "create_configuration",
    run: &|call| make(call, &call.node.target_raid_config),
    ..DELETE
};

/// Creates the volumes of the step instead of the existing ones.
pub const APPLY: StepDeclaration = StepDeclaration {
    step: "apply_configuration",
    priorities: &[(Phase::Deploy, 0), (Phase::Service, 0)],
    abortable: &[],
    arguments: &[
        Argument {
            name: "raid_config",
            description: "Volumes to create, as in target_raid_config",
            required: true,
        },
        Argument {
            name: "delete_existing",
            description: "Delete existing volumes first [default: true]",
            required: false,
        },
    ],
    run: &apply,
    ..DELETE
};

fn apply(call: &StepCall<'_>) -> Result<Value, StepError> {
    let config = &call.arguments["raid_config"];
    // Before anything is removed, it must be known that something can take its place.
    create::validate(call.node, config).map_err(failed)?;
    let keeps = call.arguments.get("delete_existing").and_then(Value::as_bool) == Some(false);
    if !keeps {
        delete_all(call)?;
    }
    make(call, config)
}

fn delete_all(call: &StepCall<'_>) -> Result<(), StepError> {
    delete::delete(call.node, is_guarded(call)).map_err(failed)
}

fn make(call: &StepCall<'_>, config: &Value) -> Result<Value, StepError> {
    let is_uefi = mode::is_uefi(call.node, Firmware::system().is_some());
    let boot = Boot::new(is_uefi, mode::table(call.node));
    let is_made = create::create(call.node, config, boot, is_guarded(call)).map_err(failed)?;
    Ok(if is_made { config.clone() } else { json!({}) })
}

/// Whether disks with file systems of several machines are refused.
fn is_guarded(call: &StepCall<'_>) -> bool {
    call.host.guards_special_filesystems() && !guard::consents(call.node)
}

fn failed(error: farrier_disk::Error) -> StepError {
    StepError::Failed(CommandError::new(error.kind(), error.to_string()))
}
