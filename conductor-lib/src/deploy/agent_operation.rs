//! The agent of a cleaning or service (section 3.11).

use crate::error::Error;
use crate::interfaces::outcome::Outcome;
use crate::model::Activity;
use crate::settings::EraseSettings;
use crate::task::ramdisk;
use crate::task::{NetworkChange, Task};
use serde_json::{Map, Value, json};

/// Has an agent run for a cleaning, and tells whether its heartbeat is to be awaited.
///
/// # Errors
///
/// [`Error::Interface`], [`Error::Host`].
pub(super) async fn prepare_cleaning(task: &mut Task) -> Result<Outcome, Error> {
    let told = told_about_erasing(&task.settings().erase);
    task.node.driver_internal_info.others.extend(told);
    ramdisk::run(task).await
}

/// Undoes [`prepare_cleaning`]. A machine whose agent may stay (fast track) stays on. After a failure the conductor has
/// switched the machine as its settings say.
///
/// # Errors
///
/// As [`prepare_cleaning`].
pub(super) async fn tear_down_cleaning(task: &mut Task) -> Result<(), Error> {
    let has_failed = task.node.provision_state.activity() == Activity::Failed;
    if !has_failed && !task.keeps_agent() {
        task.power_off().await?;
    }
    task.clean_up_ramdisk().await?;
    ramdisk::leave_network(task).await
}

/// Shuts the instance down and has an agent run for a service, and tells whether its heartbeat is to be awaited.
///
/// # Errors
///
/// As [`prepare_cleaning`].
pub(super) async fn prepare_service(task: &mut Task) -> Result<Outcome, Error> {
    task.power_off().await?;
    task.clean_up_instance().await?;
    ramdisk::run(task).await
}

/// Undoes [`prepare_service`], and starts the instance.
///
/// # Errors
///
/// As [`prepare_cleaning`].
pub(super) async fn tear_down_service(task: &mut Task) -> Result<(), Error> {
    if !task.keeps_agent() {
        task.power_off().await?;
    }
    task.clean_up_ramdisk().await?;
    let mut changes = ramdisk::leaving(task);
    changes.push(NetworkChange::ConfigureTenant);
    task.change_networks(&changes).await?;
    task.prepare_instance().await?;
    task.power_on().await
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
