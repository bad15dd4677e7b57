//! Exporting the root disk by iSCSI (section 4.4), and ending that before anything else becomes of the machine.

use crate::agent::Agent;
use crate::commands::errors::{from_disk, from_iscsi};
use crate::deployment::root_disk;
use farrier_disk::wipe;
use farrier_disk::{RootDisk, Sectors};
use farrier_iscsi::target::{IscsiTarget, Medium, Terms};
use farrier_protocol::error::CommandError;

/// Exports the root disk of the cached node. One that is exported under the same terms stays so: conductors ask again
/// when an answer was lost.
///
/// # Errors
///
/// No disk fits, it is in use, another one or other terms are in effect, or the kernel refuses. Nothing new is exported
/// then.
pub fn start(agent: &Agent, terms: &Terms) -> Result<(), CommandError> {
    let target = IscsiTarget::below(&agent.root);
    let disk = root_disk::wait(agent)?;
    if target.has(&disk, terms).map_err(from_iscsi)? {
        tracing::info!(target = %terms.target, "already exported with the same parameters");
        return Ok(());
    }
    let medium = if terms.read_only {
        Medium::ReadOnly(disk.free_to_read().map_err(from_disk)?)
    } else {
        writable(&disk, terms)?
    };
    agent.status.say(format!("exporting {} by iSCSI", disk.device().disk.name));
    target.start(&disk, medium, terms).map_err(from_iscsi)
}

/// The guard decides before a remote host may write.
fn writable(disk: &RootDisk, terms: &Terms) -> Result<Medium, CommandError> {
    let held = disk.open().map_err(from_disk)?;
    if terms.wiped {
        tracing::info!(disk = %held.path().display(), "wiping its metadata");
        wipe::erase_metadata(&held).map_err(from_disk)?;
    }
    Ok(Medium::Writable(held))
}

/// Ends the export and names its target; nothing when there is none.
///
/// # Errors
///
/// The kernel keeps a part of it, or the disk cannot be flushed.
pub fn stop(agent: &Agent) -> Result<Option<String>, CommandError> {
    let exported = IscsiTarget::below(&agent.root).stop().map_err(from_iscsi)?;
    Ok(exported.and_then(|exported| exported.target))
}

/// As [`stop`], where the machine continues in any case: it stops, or belongs to its user from now on.
pub fn stop_for_good(agent: &Agent) {
    if let Err(error) = stop(agent) {
        tracing::error!("{}", error.details);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Params;
    use crate::extensions;
    use crate::network::http;
    use crate::settings::options::Options;
    use serde_json::json;
    use std::fs;
    use tokio::runtime::Handle;

    /// The files of configfs lie in a folder here, where nothing but what is closed can be seen.
    #[tokio::test]
    async fn f60_whatever_takes_the_machine_from_the_conductor_closes_the_target() {
        http::install_tls_provider();
        for (extension, command, params) in [
            ("iscsi", "stop_iscsi_target", json!({})),
            ("image", "install_bootloader", json!({"root_uuid": "0x00000000"})),
            ("rescue", "finalize_rescue", json!({"rescue_password": "oats"})),
            ("system", "lockdown", json!({})),
        ] {
            let root = tempfile::tempdir().unwrap();
            let group = root.path().join("sys/kernel/config/target/iscsi/iqn.2008-10.org.openstack:x/tpgt_1");
            for folder in [&group, &root.path().join("etc/ipa-rescue-config")] {
                fs::create_dir_all(folder).unwrap();
            }
            fs::write(group.join("enable"), "1\n").unwrap();
            let agent = Agent::new(Options::default(), root.path(), Handle::current()).unwrap();
            let (command, params) = (extensions::find(extension, command).unwrap(), params.clone());
            let ended = tokio::task::spawn_blocking(move || {
                let params: Params = serde_json::from_value(params).unwrap();
                command.run_checked(&agent, &params)
            });
            // What this folder does not let go of, the kernel does.
            ended.await.unwrap().ok();
            assert_eq!(fs::read_to_string(group.join("enable")).unwrap(), "0", "{}", command.name);
        }
    }
}
