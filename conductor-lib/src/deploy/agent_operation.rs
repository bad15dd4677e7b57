//! The agent of a cleaning or service (section 3.11).

use crate::error::Error;
use crate::interfaces::outcome::Outcome;
use crate::model::{Activity, StepKind};
use crate::settings::EraseSettings;
use crate::task::ramdisk;
use crate::task::{NetworkChange, Task};
use serde_json::{Map, Value, json};

/// Has an agent run, and tells whether its heartbeat is to be awaited. Of a machine with an instance, the instance is shut
/// down before.
///
/// # Errors
///
/// [`Error::Interface`], [`Error::Host`].
pub(super) async fn prepare(task: &mut Task, kind: StepKind) -> Result<Outcome, Error> {
    match kind {
        StepKind::Clean => {
            let told = told_about_erasing(&task.settings().erase);
            task.node.driver_internal_info.others.extend(told);
        }
        StepKind::Service => {
            task.power_off().await?;
            task.clean_up_instance().await?;
        }
        StepKind::Deploy => {}
    }
    ramdisk::run(task).await
}

/// Undoes [`prepare`]. A machine with an instance starts it; one whose agent may stay (fast track) stays on.
///
/// # Errors
///
/// [`Error::Interface`], [`Error::Host`].
pub(super) async fn tear_down(task: &mut Task, kind: StepKind) -> Result<(), Error> {
    // After a cleaning that has failed, the conductor has switched the machine as its settings say.
    let is_switched = kind == StepKind::Clean && task.node.provision_state.activity() == Activity::Failed;
    if !is_switched && !task.keeps_agent() {
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
