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
use anyhow::bail;
use clap::{Subcommand, ValueEnum};
use create::Create;
use farrier_conductor::model::PowerAction;
use farrier_node_api::nodes::ProvisionRequest;
use hardware::Light;
use std::num::NonZeroU64;

/// What can be done with nodes.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Enrol a machine.
    Create(Create),
    /// List all nodes.
    List {
        /// Print them as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show one node.
    Show {
        /// Name or UUID.
        node: String,
        /// Print the whole record as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Tell for each interface of a node what is missing; fails when power, boot or management cannot do their part.
    Validate(Validate),
    /// Forget a node that has no instance, and power its machine off.
    Delete {
        /// Name or UUID.
        node: String,
    },
    /// Power a machine on, off, or off and on, hard or by its system.
    Power {
        /// Name or UUID.
        node: String,
        /// What to do.
        action: Power,
        /// Seconds that it may take [default: as the conductor has it].
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<NonZeroU64>,
    },
    /// Power a machine off, take its instance out of the record, and have it cleaned for the next one.
    Undeploy {
        /// Name or UUID.
        node: String,
    },
    /// Prove that a machine is under control, or take it out of the hands of users.
    Manage {
        /// Name or UUID.
        node: String,
    },
    /// Have a manageable machine cleaned for its next instance.
    Provide {
        /// Name or UUID.
        node: String,
    },
    /// Find out what a manageable machine is made of.
    Inspect {
        /// Name or UUID.
        node: String,
    },
    /// Show what the last inspection found out.
    Inventory {
        /// Name or UUID.
        node: String,
        /// Print all of it as JSON, with what hooks made of it.
        #[arg(long)]
        json: bool,
    },
    /// Light the machine up in its rack, by its BMC.
    Locate {
        /// Name or UUID.
        node: String,
        /// What its light is to do.
        #[arg(default_value = "blinking")]
        light: Light,
    },
    /// Show the versions of the machine's firmware, as its BMC tells them.
    Firmware {
        /// Name or UUID.
        node: String,
        /// Print them as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what the machine's sensors say, as its BMC tells it.
    Sensors {
        /// Name or UUID.
        node: String,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Note the RAID volumes that a machine is to have; steps make them.
    Raid {
        /// Name or UUID.
        node: String,
        /// The volumes: a JSON object such as '{"logical_disks": [{"size_gb": "MAX", "raid_level": "1", "controller":
        /// "software"}]}', or a file with one; {} for none.
        target: RaidConfig,
    },
    /// Run clean steps on a manageable machine, in the order given or as a runbook has them.
    Clean {
        /// Name or UUID.
        node: String,
        #[command(flatten)]
        chosen: ChosenSteps,
        /// Run them without the ramdisk: steps of the machine's own controller alone.
        #[arg(long)]
        disable_ramdisk: bool,
    },
    /// Run service steps beneath an instance, in the order given or as a runbook has them.
    Service {
        /// Name or UUID.
        node: String,
        #[command(flatten)]
        chosen: ChosenSteps,
        /// Run them without the ramdisk: steps of the machine's own controller alone.
        #[arg(long)]
        disable_ramdisk: bool,
    },
    /// Boot a rescue system on the machine of an instance, which is entered as the user rescue by SSH or its console.
    Rescue {
        /// Name or UUID.
        node: String,
        #[command(flatten)]
        password: RescuePassword,
    },
    /// Start the instance of a machine again that was rescued, or was to be.
    Unrescue {
        /// Name or UUID.
        node: String,
    },
    /// Take over a machine that runs its instance already, as the node's instance_info says.
    Adopt {
        /// Name or UUID.
        node: String,
    },
    /// Try again what failed: from the step that failed, or anew where its agent is gone.
    Retry {
        /// Name or UUID.
        node: String,
    },
    /// End an operation that waits or is held: at once, or when the current step ends that must not be cut off.
    Abort {
        /// Name or UUID.
        node: String,
    },
    /// Let an operation go on that is held.
    Unhold {
        /// Name or UUID.
        node: String,
    },
    /// Take a machine into maintenance, or out of it, which ends its fault.
    Maintenance {
        /// Name or UUID.
        node: String,
        /// Whether it begins or ends.
        switch: Switch,
        /// Why it begins.
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
                let ports = create.mac.clone();
                let node = api.create(create.into_fields()?, &ports).await?;
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
        Some(NodeRecord { last_error: Some(error), .. }) => bail!("{error}"),
        Some(node) => println!("{}", node.provision_state),
        None => {}
    }
    Ok(())
}

/// Waits until an order is carried out. Ending this early changes nothing of it.
async fn carried_out(api: &NodeApi, node: &str, waiting: &Waiting) -> anyhow::Result<()> {
    match waiting.settled(api, node).await?.and_then(|node| node.last_error) {
        Some(error) => bail!("{error}"),
        None => Ok(()),
    }
}
