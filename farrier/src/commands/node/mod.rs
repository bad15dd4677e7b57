//! `farrier node …`.

mod create;
pub(crate) mod hardware;
mod inventory;
mod raid;
mod rescue;

use crate::client::NodeApi;
use crate::client::record::NodeRecord;
use crate::commands::node::raid::RaidConfig;
use crate::commands::node::rescue::RescuePassword;
use crate::commands::steps::ChosenSteps;
use crate::commands::validate::Validate;
use crate::commands::wait::Waiting;
use crate::failure::{FAILED, coded};
use clap::{Subcommand, ValueEnum};
use create::Create;
use farrier_conductor::model::PowerAction;
use farrier_node_api::nodes::ProvisionRequest;
use hardware::Light;
use std::num::NonZeroU64;

/// Commands for nodes.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Enroll a machine.
    Create(Create),
    /// List all nodes.
    List {
        /// Print the list as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show one node.
    Show {
        /// Name or UUID of the node.
        node: String,
        /// Print the whole record as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Validate the interfaces of a node. Fails if power, management or boot is invalid.
    Validate(Validate),
    /// Delete a node without an instance, and power its machine off.
    Delete {
        /// Name or UUID of the node.
        node: String,
    },
    /// Change the power state of a machine.
    Power {
        /// Name or UUID of the node.
        node: String,
        /// Power action.
        action: Power,
        /// Timeout in seconds [default: the timeout of the conductor].
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<NonZeroU64>,
    },
    /// Undeploy a node: power the machine off, remove the instance, and clean the machine.
    Undeploy {
        /// Name or UUID of the node.
        node: String,
    },
    /// Verify that the BMC works and move the node to `manageable`.
    Manage {
        /// Name or UUID of the node.
        node: String,
    },
    /// Make a manageable node available: clean its machine for the next instance.
    Provide {
        /// Name or UUID of the node.
        node: String,
    },
    /// Inspect the hardware of a manageable node.
    Inspect {
        /// Name or UUID of the node.
        node: String,
    },
    /// Show the inventory of the last inspection.
    Inventory {
        /// Name or UUID of the node.
        node: String,
        /// Print the inventory and the plugin data as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Switch the identify LED of the machine, by its BMC.
    Locate {
        /// Name or UUID of the node.
        node: String,
        /// State of the LED.
        #[arg(default_value = "blinking")]
        light: Light,
    },
    /// Show the firmware versions that the BMC reports.
    Firmware {
        /// Name or UUID of the node.
        node: String,
        /// Print the versions as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the sensor readings that the BMC reports.
    Sensors {
        /// Name or UUID of the node.
        node: String,
        /// Print the readings as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Set the target RAID configuration of a node; clean or deploy steps apply it.
    Raid {
        /// Name or UUID of the node.
        node: String,
        /// Target RAID configuration: a JSON object, or a file with one; {} for none. Example: '{"logical_disks":
        /// [{"size_gb": "MAX", "raid_level": "1", "controller": "software"}]}'.
        target: RaidConfig,
    },
    /// Run clean steps on a manageable node, in the given order or from a runbook.
    Clean {
        /// Name or UUID of the node.
        node: String,
        #[command(flatten)]
        chosen: ChosenSteps,
        /// Run the steps without the ramdisk; only out-of-band steps work.
        #[arg(long)]
        disable_ramdisk: bool,
    },
    /// Run service steps on a deployed node, in the given order or from a runbook.
    Service {
        /// Name or UUID of the node.
        node: String,
        #[command(flatten)]
        chosen: ChosenSteps,
        /// Run the steps without the ramdisk; only out-of-band steps work.
        #[arg(long)]
        disable_ramdisk: bool,
    },
    /// Boot the rescue ramdisk on a deployed node. The user rescue logs in by SSH or on the console.
    Rescue {
        /// Name or UUID of the node.
        node: String,
        #[command(flatten)]
        password: RescuePassword,
    },
    /// Boot the instance again after a rescue.
    Unrescue {
        /// Name or UUID of the node.
        node: String,
    },
    /// Adopt a machine that runs an instance already, as described by instance_info.
    Adopt {
        /// Name or UUID of the node.
        node: String,
    },
    /// Retry a failed operation: from the failed step, or from the beginning if its agent is gone.
    Retry {
        /// Name or UUID of the node.
        node: String,
    },
    /// Abort an operation that waits or is held: at once, or after the current step if that is not abortable.
    Abort {
        /// Name or UUID of the node.
        node: String,
    },
    /// Continue an operation that is held.
    Unhold {
        /// Name or UUID of the node.
        node: String,
    },
    /// Set or clear maintenance; clearing it also clears the fault.
    Maintenance {
        /// Name or UUID of the node.
        node: String,
        /// State of maintenance.
        switch: Switch,
        /// Reason for the maintenance.
        #[arg(long)]
        reason: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Power {
    On,
    Off,
    Reboot,
    SoftOff,
    SoftReboot,
}

impl NodeCommand {
    pub(crate) async fn run(self, api: &NodeApi, waiting: &Waiting) -> anyhow::Result<()> {
        match self {
            Self::Create(create) => {
                let (ports, is_enrolled) = (create.mac.clone(), create.enroll);
                let node = api.create(create.into_fields()?, &ports, is_enrolled).await?;
                println!("{} {}", node.uuid, node.label());
            }
            Self::List { json: true } => println!("{}", serde_json::to_string_pretty(&api.list().await?)?),
            Self::List { json: false } => print!("{}", crate::view::node::list(&api.list().await?)),
            Self::Show { node, json: true } => {
                println!("{}", serde_json::to_string_pretty(&api.describe(&node).await?)?);
            }
            Self::Show { node, json: false } => {
                print!("{}", crate::view::node::one(&api.show(&node).await?, &api.ports(&node).await?));
            }
            Self::Validate(validate) => validate.run(api).await?,
            Self::Delete { node } => {
                api.power(&node, PowerAction::Off, None).await?;
                // It is forgotten when it is off, no matter who waits for that.
                carried_out(api, &node, &Waiting::default()).await?;
                api.delete(&node).await?;
            }
            Self::Undeploy { node } => provision(api, &node, waiting, verb("deleted")).await?,
            Self::Manage { node } => provision(api, &node, waiting, verb("manage")).await?,
            Self::Provide { node } => provision(api, &node, waiting, verb("provide")).await?,
            Self::Inspect { node } => provision(api, &node, waiting, verb("inspect")).await?,
            Self::Inventory { node, json: true } => {
                println!("{}", serde_json::to_string_pretty(&api.inventory(&node).await?)?);
            }
            Self::Inventory { node, json: false } => {
                print!("{}", inventory::table(&api.inventory(&node).await?))
            }
            Self::Locate { node, light } => hardware::locate(api, &node, light).await?,
            Self::Firmware { node, json: true } => {
                println!("{}", serde_json::to_string_pretty(&api.firmware(&node).await?)?)
            }
            Self::Firmware { node, json: false } => {
                print!("{}", hardware::firmware(&api.firmware(&node).await?))
            }
            Self::Sensors { node, json: true } => {
                println!("{}", serde_json::to_string_pretty(&api.sensors(&node).await?)?)
            }
            Self::Sensors { node, json: false } => {
                print!("{}", hardware::sensors(&api.sensors(&node).await?)?)
            }
            Self::Raid { node, target } => api.set_target_raid_config(&node, &target.0).await?,
            Self::Clean { node, chosen, disable_ramdisk } => {
                let (clean_steps, runbook) = chosen.taken();
                let steps = ProvisionRequest { clean_steps, runbook, ..verb("clean") };
                let request = ProvisionRequest { disable_ramdisk: Some(disable_ramdisk), ..steps };
                provision(api, &node, waiting, request).await?;
            }
            Self::Service { node, chosen, disable_ramdisk } => {
                let (service_steps, runbook) = chosen.taken();
                let steps = ProvisionRequest { service_steps, runbook, ..verb("service") };
                let request = ProvisionRequest { disable_ramdisk: Some(disable_ramdisk), ..steps };
                provision(api, &node, waiting, request).await?;
            }
            Self::Abort { node } => {
                api.provision(&node, &verb("abort")).await?;
                if let Some(node) = waiting.rested(api, &node).await? {
                    println!("{} {}", node.provision_state, node.last_error.unwrap_or_default());
                }
            }
            Self::Unhold { node } => provision(api, &node, waiting, verb("unhold")).await?,
            Self::Maintenance { node, switch: Switch::On, reason } => {
                api.begin_maintenance(&node, reason).await?;
            }
            Self::Maintenance { node, switch: Switch::Off, .. } => api.end_maintenance(&node).await?,
            Self::Rescue { node, password } => {
                let rescue_password = Some(password.read()?);
                provision(api, &node, waiting, ProvisionRequest { rescue_password, ..verb("rescue") })
                    .await?;
            }
            Self::Adopt { node } => provision(api, &node, waiting, verb("adopt")).await?,
            Self::Retry { node } => provision(api, &node, waiting, verb("retry")).await?,
            Self::Unrescue { node } => provision(api, &node, waiting, verb("unrescue")).await?,
            Self::Power { node, action, timeout } => {
                let action = match action {
                    Power::On => PowerAction::On,
                    Power::Off => PowerAction::Off,
                    Power::Reboot => PowerAction::Reboot,
                    Power::SoftOff => PowerAction::SoftOff,
                    Power::SoftReboot => PowerAction::SoftReboot,
                };
                api.power(&node, action, timeout).await?;
                carried_out(api, &node, waiting).await?;
            }
        }
        Ok(())
    }
}

/// A verb without arguments.
fn verb(target: &str) -> ProvisionRequest {
    ProvisionRequest { target: target.to_owned(), ..ProvisionRequest::default() }
}

/// Gives an order and waits until its operation is over, or held. Ending this early changes nothing of it.
async fn provision(
    api: &NodeApi,
    node: &str,
    waiting: &Waiting,
    request: ProvisionRequest,
) -> anyhow::Result<()> {
    api.provision(node, &request).await?;
    match waiting.rested(api, node).await? {
        Some(NodeRecord { last_error: Some(error), .. }) => return Err(coded(FAILED, error)),
        Some(node) => println!("{}", node.provision_state),
        None => {}
    }
    Ok(())
}

/// Waits until an order is carried out. Ending this early changes nothing of it.
async fn carried_out(api: &NodeApi, node: &str, waiting: &Waiting) -> anyhow::Result<()> {
    match waiting.settled(api, node).await?.and_then(|node| node.last_error) {
        Some(error) => Err(coded(FAILED, error)),
        None => Ok(()),
    }
}
