//! Where the plan of the network comes from.
//!
//! What the conductor put on the boot medium goes before the kernel command line, which an operator
//! often writes once for all machines, and that before what firmware left that booted from an iSCSI disk. What
//! cannot be used is said in one line, and every link finds out by itself what it needs. Once the machine is
//! rescued, its user's config drive has the say.

use super::plan::Plan;
use super::{ibft, kernel_parameters, network_data};
use crate::hand_over::config_drive;
use crate::settings::{self, Settings};
use crate::virtual_media;
use farrier_linux::kernel_line;
use farrier_linux::modules::ModuleIndex;
use std::fmt::Display;
use std::path::Path;

/// A plan and who made it.
#[derive(Debug)]
pub struct Source {
    /// The plan.
    pub plan: Plan,
    /// Who made it, for messages.
    pub origin: &'static str,
}

/// Nobody made a plan.
const AUTOMATIC: &str = "DHCP and routers";

/// The plan of this boot, if there is one. Waits for virtual media when the machine was booted from them.
pub fn find(read: settings::Read) -> Option<Source> {
    let kernel = kernel_line::of_running_kernel();
    let parameters = virtual_media::merge(kernel.clone()).unwrap_or_else(|error| {
        tracing::error!("{error}");
        kernel
    });
    let ip = kernel_line::values_of_running_kernel("ip");
    of_medium(Path::new("/")).or_else(|| of_parameters(&ip, &read(&parameters)))
}

/// What firmware left that booted from an iSCSI disk, if it did.
pub fn of_firmware() -> Option<Source> {
    ModuleIndex::load_unasked(ibft::DRIVER);
    let read = ibft::plan(Path::new(ibft::TABLE)).transpose()?;
    Some(source("the firmware's table for booting from iSCSI", read))
}

/// The plan of the machine's user, on the config drive that was deployed with the machine. Without one
/// that can be used, the network stays as it is.
pub fn of_user() -> Option<Source> {
    let text = config_drive::network_data()?;
    let origin = "network_data.json on the config drive";
    match network_data::read(&text) {
        Ok(plan) if plan.links.is_empty() => None,
        Ok(plan) => Some(Source { plan, origin }),
        Err(error) => {
            tracing::error!("{origin} is not used: {error}; the network stays as it is");
            None
        }
    }
}

impl Source {
    /// Every link for itself.
    pub fn automatic() -> Self {
        Self { plan: Plan::automatic(), origin: AUTOMATIC }
    }
}

/// What the boot medium says, if it says something.
fn of_medium(root: &Path) -> Option<Source> {
    let read = network_data::read(&virtual_media::network_data(root)?);
    Some(source("network_data.json on the boot medium", read))
}

/// What the kernel command line says, if it says something.
fn of_parameters(ip: &[String], settings: &Settings) -> Option<Source> {
    let of_firmware = || {
        let found = of_firmware();
        if found.is_none() {
            tracing::warn!(
                "ip=ibft: firmware left no network of an iSCSI disk; links find out by themselves"
            );
        }
        found.unwrap_or_else(Source::automatic).plan
    };
    let read = kernel_parameters::plan(ip, settings, of_firmware).transpose()?;
    Some(source("the kernel command line", read))
}

fn source<E: Display>(origin: &'static str, read: Result<Plan, E>) -> Source {
    match read {
        Ok(plan) => Source { plan, origin },
        Err(error) => {
            tracing::error!("{origin} is not used: {error}; every link asks DHCP and its router instead");
            Source::automatic()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn unusable_network_data_leaves_every_link_to_dhcp() {
        for (text, origin) in [
            (None, None),
            (Some(r#"{"links": []}"#), Some("network_data.json on the boot medium")),
            (Some("{"), Some(AUTOMATIC)),
            (Some(r#"{"networks": [{"id": "n", "link": "x", "type": "ipv4_dhcp"}]}"#), Some(AUTOMATIC)),
        ] {
            let root = tempfile::tempdir().unwrap();
            if let Some(text) = text {
                let file = root.path().join(virtual_media::NETWORK_DATA);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            let found = of_medium(root.path());
            assert_eq!(found.as_ref().map(|source| source.origin), origin, "{text:?}");
            if origin == Some(AUTOMATIC) {
                assert_eq!(found.unwrap().plan, Plan::automatic());
            }
        }
    }
}
