//! What comes before the first step of a cleaning or service, and after the last one (section 3.11).

use crate::error::Error;
use crate::interfaces::outcome::Outcome;
use crate::model::{Event, StepKind};
use crate::settings::EraseSettings;
use crate::task::ramdisk;
use crate::task::{NetworkChange, Task};
use serde_json::{Map, Value, json};

/// Makes the machine ready for steps; where they run in the ramdisk, and that does not run yet, the node waits for it.
pub(super) async fn prepare(task: &mut Task, kind: StepKind) -> Result<Outcome, Error> {
    if kind == StepKind::Clean {
        let told = told_about_erasing(&task.settings().erase);
        task.node.driver_internal_info.others.extend(told);
    }
    if task.node.plan(kind).disable_ramdisk {
        return Ok(Outcome::Done);
    }
    // Recorded before the machine is changed: a conductor that stops in between leaves something to undo.
    task.node.plan_mut(kind).untouched = false;
    task.save().await?;
    if kind == StepKind::Service {
        task.power_off().await?;
        task.clean_up_instance().await?;
    }
    let outcome = ramdisk::run(task).await?;
    if outcome == Outcome::Wait {
        task.enter(Event::Wait)?;
    }
    Ok(outcome)
}

/// Undoes `prepare`; where the node has an instance, its machine starts it, and where its agent may stay (fast
/// track), it stays on. It may be done again.
///
/// # Errors
///
/// [`Error::Interface`], [`Error::Host`].
pub async fn tear_down(task: &mut Task, kind: StepKind) -> Result<(), Error> {
    let plan = task.node.plan(kind);
    if kind == StepKind::Deploy || plan.disable_ramdisk || plan.untouched {
        return Ok(());
    }
    if !task.keeps_agent() {
        task.power_off().await?;
    }
    task.clean_up_ramdisk().await?;
    let mut changes = ramdisk::leaving(task);
    if kind == StepKind::Service {
        changes.push(NetworkChange::ConfigureTenant);
    }
    task.change_networks(&changes).await?;
    if kind == StepKind::Service {
        task.prepare_instance().await?;
        task.power_on().await?;
    }
    Ok(())
}

/// What agents are told about erasing, by notes of the node (section 1.8).
fn told_about_erasing(erase: &EraseSettings) -> Map<String, Value> {
    let may_go_on = erase.continue_if_secure_erase_failed;
    let notes = [
        ("agent_erase_devices_iterations", json!(erase.iterations)),
        ("agent_erase_devices_zeroize", json!(erase.zeroize)),
        ("agent_continue_if_secure_erase_failed", json!(may_go_on)),
        ("agent_continue_if_ata_erase_failed", json!(may_go_on)),
        ("agent_enable_ata_secure_erase", json!(erase.enable_ata_secure_erase)),
        ("agent_enable_nvme_secure_erase", json!(erase.enable_nvme_secure_erase)),
        ("disk_erasure_concurrency", json!(erase.disk_erasure_concurrency)),
        ("agent_erase_skip_read_only", json!(erase.skip_read_only)),
    ];
    notes.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
