//! Erasing what the previous user left (section 9.8).

use crate::error::StepError;
use crate::manager::{StepCall, StepDeclaration};
use farrier_disk::guard::{self, EraseTarget};
use farrier_disk::{Error, list, wipe};
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::step::Phase;
use serde_json::Value;
use std::path::Path;

/// Removes partition tables and signatures from every disk, in seconds.
pub const METADATA: StepDeclaration = StepDeclaration {
    step: "erase_devices_metadata",
    interface: "deploy",
    priorities: &[(Phase::Clean, 99), (Phase::Deploy, 0)],
    reboot_requested: false,
    is_abortable: true,
    arguments: &[],
    run: erase_devices_metadata,
};

/// Each disk has its own outcome, and one that fails does not keep the others from being erased.
fn erase_devices_metadata(call: &StepCall<'_>) -> Result<Value, StepError> {
    let failed = |error: Error| StepError::Failed(CommandError::new(error.kind(), error.to_string()));
    let devices = list::list(Path::new("/sys")).map_err(failed)?;
    let plan = guard::plan_erase(call.node, &devices).map_err(failed)?;
    for (disk, reason) in &plan.kept {
        tracing::info!(disk, reason, "kept");
    }
    let is_guarded = call.host.guards_special_filesystems() && !guard::consents(call.node);
    let errors: Vec<_> = plan.targets.iter().filter_map(|target| erase(target, is_guarded).err()).collect();
    if errors.is_empty() {
        return Ok(Value::Null);
    }
    let details = errors.iter().map(Error::to_string).collect::<Vec<_>>().join("; ");
    Err(StepError::Failed(CommandError::new(ErrorKind::BlockDeviceEraseError, details)))
}

fn erase(target: &EraseTarget, guard: bool) -> Result<(), Error> {
    let disk = &target.device().disk.name;
    let outcome = target.open().and_then(|disk| wipe::erase_metadata(&disk, guard));
    match &outcome {
        Ok(outcome) => tracing::info!(disk, ?outcome, "metadata erased"),
        Err(error) => tracing::error!(disk, "metadata not erased: {error}"),
    }
    outcome.map(drop)
}
