//! `farrier node …`.

use crate::client::NodeApi;
use crate::inventory;
use crate::raid::RaidConfig;
use crate::record::{NodeRecord, PortRecord};
use crate::rescue::RescuePassword;
use crate::steps::Steps;
use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};
use farrier_conductor::api::nodes::ProvisionRequest;
use farrier_conductor::hardware_type::Validity;
use farrier_conductor::model::{InterfaceKind, MacAddress, PowerAction};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// What can be done with nodes.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Enrol a machine.
    Create(Create),
    /// List all nodes.
    List,
    /// Show one node.
    Show {
        /// Name or UUID.
        node: String,
        /// Print the whole record as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Tell for each interface of a node what is missing; fails when power, boot or management cannot do their part.
    Validate {
        /// Name or UUID.
        node: String,
    },
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
    /// Note the RAID volumes that a machine is to have; steps make them.
    Raid {
        /// Name or UUID.
        node: String,
        /// The volumes: a JSON object such as '{"logical_disks": [{"size_gb": "MAX", "raid_level": "1", "controller":
        /// "software"}]}', or a file with one; {} for none.
        target: RaidConfig,
    },
    /// Run clean steps on a manageable machine, in the order given.
    Clean {
        /// Name or UUID.
        node: String,
        /// The steps: a JSON list such as '[{"interface": "deploy", "step": "erase_devices"}]', or a file with one.
        #[arg(long, value_name = "FILE|JSON")]
        steps: Steps,
        /// Run them without the ramdisk: steps of the machine's own controller alone.
        #[arg(long)]
        disable_ramdisk: bool,
    },
    /// Run service steps beneath an instance, in the order given.
    Service {
        /// Name or UUID.
        node: String,
        /// The steps, as for clean.
        #[arg(long, value_name = "FILE|JSON")]
        steps: Steps,
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

/// Options of `farrier node create`.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Unique name.
    name: String,
    /// Hardware address of a network card; the machine boots from the first one given.
    #[arg(long, required = true)]
    mac: Vec<MacAddress>,
    /// Hardware type of the machine, for example qemu.
    #[arg(long)]
    driver: String,
    /// Interface to use in place of the hardware type's first, for example boot=ipxe.
    #[arg(long, value_name = "KIND=NAME", value_parser = kind_name)]
    interface: Vec<(InterfaceKind, String)>,
    /// How the driver reaches the machine and what it boots, for example
    /// deploy_kernel=/srv/vmlinuz deploy_ramdisk=/srv/initramfs.img qemu_disks=/srv/disk.img.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = key_text)]
    driver_info: Vec<(String, Value)>,
    /// Hardware properties, for example root_device='{"serial": "ROOT1"}'. A value that is JSON is
    /// taken as such, anything else as text.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = key_json)]
    property: Vec<(String, Value)>,
    /// Whether the machine is cleaned before it becomes available [default: as the conductor has it].
    #[arg(long, value_name = "BOOL")]
    automated_clean: Option<bool>,
}

fn key_text(argument: &str) -> Result<(String, Value), String> {
    let (key, value) = split(argument)?;
    Ok((key, Value::from(value)))
}

fn kind_name(argument: &str) -> Result<(InterfaceKind, String), String> {
    let (kind, name) = split(argument)?;
    let Some(kind) = InterfaceKind::named(&kind) else {
        let kinds: Vec<_> = InterfaceKind::ALL.iter().map(|kind| kind.as_str()).collect();
        return Err(format!("{kind:?} must be one of: {}", kinds.join(", ")));
    };
    Ok((kind, name.to_owned()))
}

fn key_json(argument: &str) -> Result<(String, Value), String> {
    let (key, value) = split(argument)?;
    Ok((key, serde_json::from_str(value).unwrap_or_else(|_| Value::from(value))))
}

fn split(argument: &str) -> Result<(String, &str), String> {
    match argument.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value)),
        _ => Err("must be KEY=VALUE".to_owned()),
    }
}

impl NodeCommand {
    pub(crate) async fn run(self, api: &NodeApi) -> anyhow::Result<()> {
        match self {
            Self::Create(create) => {
                let ports = create.mac.clone();
                let node = api.create(create.into_fields(), &ports).await?;
                println!("{} {}", node.uuid, node.label());
            }
            Self::List => print_table(&api.list().await?),
            Self::Show { node, json: true } => {
                println!("{}", serde_json::to_string_pretty(&api.describe(&node).await?)?);
            }
            Self::Show { node, json: false } => print_node(&api.show(&node).await?, &api.ports(&node).await?),
            Self::Validate { node } => {
                let validities = api.validate(&node).await?;
                print_validities(&validities);
                controllable(&node, &validities)?;
            }
            Self::Delete { node } => {
                api.power(&node, PowerAction::Off, None).await?;
                carried_out(api, &node).await?;
                api.delete(&node).await?;
            }
            Self::Undeploy { node } => provision(api, &node, verb("deleted")).await?,
            Self::Manage { node } => provision(api, &node, verb("manage")).await?,
            Self::Provide { node } => provision(api, &node, verb("provide")).await?,
            Self::Inspect { node } => provision(api, &node, verb("inspect")).await?,
            Self::Inventory { node, json: true } => {
                println!("{}", serde_json::to_string_pretty(&api.inventory(&node).await?)?);
            }
            Self::Inventory { node, json: false } => {
                print!("{}", inventory::table(&api.inventory(&node).await?))
            }
            Self::Raid { node, target } => api.set_target_raid_config(&node, &target.0).await?,
            Self::Clean { node, steps, disable_ramdisk } => {
                let steps = ProvisionRequest { clean_steps: Some(steps.0), ..verb("clean") };
                let request = ProvisionRequest { disable_ramdisk: Some(disable_ramdisk), ..steps };
                provision(api, &node, request).await?;
            }
            Self::Service { node, steps, disable_ramdisk } => {
                let steps = ProvisionRequest { service_steps: Some(steps.0), ..verb("service") };
                let request = ProvisionRequest { disable_ramdisk: Some(disable_ramdisk), ..steps };
                provision(api, &node, request).await?;
            }
            Self::Abort { node } => {
                api.provision(&node, &verb("abort")).await?;
                if let Some(node) = api.rested(&node).await? {
                    println!("{} {}", node.provision_state, node.last_error.unwrap_or_default());
                }
            }
            Self::Unhold { node } => provision(api, &node, verb("unhold")).await?,
            Self::Maintenance { node, switch: Switch::On, reason } => {
                api.begin_maintenance(&node, reason).await?;
            }
            Self::Maintenance { node, switch: Switch::Off, .. } => api.end_maintenance(&node).await?,
            Self::Rescue { node, password } => {
                let rescue_password = Some(password.read()?);
                provision(api, &node, ProvisionRequest { rescue_password, ..verb("rescue") }).await?;
            }
            Self::Adopt { node } => provision(api, &node, verb("adopt")).await?,
            Self::Retry { node } => provision(api, &node, verb("retry")).await?,
            Self::Unrescue { node } => provision(api, &node, verb("unrescue")).await?,
            Self::Power { node, action, timeout } => {
                let action = match action {
                    Power::On => PowerAction::On,
                    Power::Off => PowerAction::Off,
                    Power::Reboot => PowerAction::Reboot,
                    Power::SoftOff => PowerAction::SoftOff,
                    Power::SoftReboot => PowerAction::SoftReboot,
                };
                api.power(&node, action, timeout).await?;
                carried_out(api, &node).await?;
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
async fn provision(api: &NodeApi, node: &str, request: ProvisionRequest) -> anyhow::Result<()> {
    api.provision(node, &request).await?;
    match api.rested(node).await? {
        Some(NodeRecord { last_error: Some(error), .. }) => bail!("{error}"),
        Some(node) => println!("{}", node.provision_state),
        None => {}
    }
    Ok(())
}

/// Waits until an order is carried out. Ending this early changes nothing of it.
async fn carried_out(api: &NodeApi, node: &str) -> anyhow::Result<()> {
    match api.settled(node).await?.and_then(|node| node.last_error) {
        Some(error) => bail!("{error}"),
        None => Ok(()),
    }
}

impl Create {
    /// The fields of the node.
    fn into_fields(self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("name".to_owned(), self.name.into());
        fields.insert("driver".to_owned(), self.driver.into());
        fields.insert("driver_info".to_owned(), Value::Object(self.driver_info.into_iter().collect()));
        fields.insert("properties".to_owned(), Value::Object(self.property.into_iter().collect()));
        fields.extend(self.interface.into_iter().map(|(kind, name)| (kind.field(), name.into())));
        fields.extend(self.automated_clean.map(|is| ("automated_clean".to_owned(), json!(is))));
        fields
    }
}

fn power_text(node: &NodeRecord) -> &'static str {
    node.power_state.map_or("unknown", |state| state.as_str())
}

fn print_table(nodes: &[NodeRecord]) {
    println!("{:36}  {:20}  {:14}  {:10}", "UUID", "NAME", "STATE", "POWER");
    for node in nodes {
        let state = node.provision_state.as_str();
        println!("{:36}  {:20}  {state:14}  {:10}", node.uuid, node.label(), power_text(node));
    }
}

fn print_validities(validities: &BTreeMap<InterfaceKind, Validity>) {
    println!("{:12}  {:6}  REASON", "INTERFACE", "RESULT");
    for (kind, validity) in validities {
        let result = validity.result.map_or("-", |result| if result { "yes" } else { "no" });
        println!("{:12}  {result:6}  {}", kind.as_str(), validity.reason.as_deref().unwrap_or_default());
    }
}

/// What deploys must have an image first, and so may be invalid.
fn controllable(node: &str, validities: &BTreeMap<InterfaceKind, Validity>) -> anyhow::Result<()> {
    let needed = [InterfaceKind::Power, InterfaceKind::Management, InterfaceKind::Boot];
    let is_invalid = |kind: &InterfaceKind| validities.get(kind).and_then(|one| one.result) == Some(false);
    let invalid: Vec<_> = needed.iter().filter(|kind| is_invalid(kind)).map(|kind| kind.as_str()).collect();
    if !invalid.is_empty() {
        bail!("node {node} cannot be controlled: see the reason of {}", invalid.join(", "));
    }
    Ok(())
}

fn print_node(node: &NodeRecord, ports: &[PortRecord]) {
    let line = |key: &str, value: &str| println!("{key:20} {value}");
    line("uuid", &node.uuid);
    line("name", node.name.as_deref().unwrap_or("-"));
    line("driver", node.text("driver").unwrap_or("-"));
    for kind in InterfaceKind::ALL {
        if let Some(name) = node.interface(*kind) {
            line(&kind.field(), name);
        }
    }
    line("provision_state", node.provision_state.as_str());
    line("power_state", power_text(node));
    line("step", node.step().unwrap_or("-"));
    if node.is("maintenance") {
        line("maintenance", node.text("maintenance_reason").unwrap_or("yes"));
    }
    line("last_error", node.last_error.as_deref().unwrap_or("-"));
    for port in ports {
        line("port", port.address.as_str());
    }
    for name in ["driver_info", "properties", "instance_info"] {
        for (key, value) in node.map(name) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            line(name, &format!("{key}={text}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn driver_info_is_text_and_properties_may_be_json() {
        assert_eq!(key_text("qemu_cpus=2").unwrap(), ("qemu_cpus".into(), json!("2")));
        assert_eq!(key_text("a=b=c").unwrap(), ("a".into(), json!("b=c")));
        assert_eq!(key_json("memory_mb=512").unwrap().1, json!(512));
        assert_eq!(key_json(r#"root_device={"serial": "R"}"#).unwrap().1, json!({"serial": "R"}));
        assert_eq!(key_json("capabilities=boot_mode:uefi").unwrap().1, json!("boot_mode:uefi"));
        assert!(key_text("=x").is_err());
        assert_eq!(kind_name("boot=ipxe").unwrap(), (InterfaceKind::Boot, "ipxe".to_owned()));
        assert!(kind_name("sound=x").unwrap_err().contains("power, raid"));
        assert!(key_json("x").is_err());
    }
}
