//! The inspect interface `agent`: the ramdisk looks at its machine, and posts what it sees.

use crate::error::Error;
use crate::in_band::InspectInterface;
use crate::interfaces::base::{Interface, InterfaceError};
use crate::interfaces::network::NetworkKind;
use crate::interfaces::outcome::Outcome;
use crate::inventory::InspectionSettings;
use crate::inventory::{bmc_addresses, cards, hooks};
use crate::model::{InspectionData, InterfaceKind, Port};
use crate::task::Task;
use crate::task::act::Call;
use crate::task::ramdisk;
use async_trait::async_trait;
use farrier_media::KernelParameters;
use std::collections::BTreeSet;
use std::time::Duration;

/// Where the ramdisk posts, below the URL of the conductor.
const CALLBACK_PATH: &str = "/v1/continue_inspection";

/// How long a BMC may take to tell of network cards while an operator waits.
const BMC_LIMIT: Duration = Duration::from_secs(30);

/// Inspects machines by the agent in their ramdisk.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentInspect;

impl Interface for AgentInspect {}

#[async_trait]
impl InspectInterface for AgentInspect {
    async fn validate_inspection(&self, task: &Task) -> Result<(), Error> {
        task.boots_for_inspection().await.map(drop)
    }

    async fn inspect_hardware(&self, task: &mut Task) -> Result<Outcome, Error> {
        let boots = task.boots_for_inspection().await?;
        bmc_addresses::note(&mut task.node).await;
        match boots {
            true => boot(task).await?,
            false => {
                // Nothing tells the operator who boots the ramdisk when to do so.
                task.power_off().await?;
                task.power_on().await?;
            }
        }
        Ok(Outcome::Wait)
    }

    /// The machine is put right before anything of its record changes: its network may be known by ports that go.
    async fn continue_inspection(&self, task: &mut Task, data: InspectionData) -> Result<(), Error> {
        if task.settings().inspection.power_off && !task.keeps_agent() {
            task.power_off().await?;
        }
        task.clean_up_ramdisk().await?;
        task.remove_network(NetworkKind::Inspection).await?;
        bmc_addresses::forget(&mut task.node);
        let settings = task.settings().inspection.clone();
        let looked = take_over(task, data, &settings).await;
        task.host.collect_posted_logs(&task.node, looked.is_err()).await;
        looked
    }
}

/// Runs the hooks on the data of an inspection, and applies their changes; both count once saved.
///
/// # Errors
///
/// [`Error::Invalid`] when a hook refuses it, [`Error::Host`].
pub async fn take_over(
    task: &mut Task,
    data: InspectionData,
    settings: &InspectionSettings,
) -> Result<(), Error> {
    let looked = hooks::run(task.node.clone(), data, settings);
    let (mut node, data) = looked
        .map_err(|refused| Error::invalid(format!("inspection hook {}", refused.hook), refused.reason))?;
    node.ports = without_those_of_others(task, node.ports).await?;
    task.node = node;
    task.note_inspection(data);
    Ok(())
}

/// Adds a port for each network card that the BMC reports to a node without ports: the boot interface finds a machine
/// that boots from the network by the addresses of its ports. A BMC that reports none in time adds none.
///
/// # Errors
///
/// [`Error::Unresolved`], [`Error::Host`].
pub async fn add_ports_of_bmc(task: &mut Task) -> Result<(), Error> {
    if !task.node.ports.is_empty() {
        return Ok(());
    }
    let management = task.host.hardware().management(&task.node)?;
    let call = Call::of(&task.node, InterfaceKind::Management, "get_mac_addresses");
    let told = match call.answer(BMC_LIMIT, management.get_mac_addresses(&task.node)).await {
        Ok(told) => told,
        Err(InterfaceError::Unsupported { .. }) => Vec::new(),
        Err(error) => {
            tracing::warn!(node = %task.node.label(), "the BMC reports no network cards: {error}");
            Vec::new()
        }
    };
    let usable: BTreeSet<_> = told.into_iter().filter(cards::is_of_one_card).collect();
    task.node.ports = without_those_of_others(task, usable.into_iter().map(Port::new).collect()).await?;
    Ok(())
}

/// Powers the machine off and on with the ramdisk, whose agent inspects.
///
/// # Errors
///
/// [`Error::Interface`], [`Error::Host`]; [`Error::Invalid`] for unusable kernel parameters.
pub async fn boot(task: &mut Task) -> Result<(), Error> {
    let parameters = parameters(task)?;
    ramdisk::boot_with(task, parameters).await
}

/// An agent that is not told of the conductor's API posts its inventory, and does nothing else; one that is to stay
/// (fast track) is told.
fn parameters(task: &Task) -> Result<KernelParameters, Error> {
    let url = format!("{}{CALLBACK_PATH}", task.callback_url());
    let others = if task.keeps_agent() { task.agent_options()? } else { KernelParameters::default() };
    let found = others.with("ipa-inspection-callback-url", &url);
    let parameters =
        found.and_then(|found| found.followed_by(&task.settings().inspection.extra_kernel_params));
    parameters.map_err(|error| Error::invalid("the kernel parameters of an inspection", error.to_string()))
}

/// An address belongs to one node: a network card that another node has, because it was moved or lies, is no port here.
async fn without_those_of_others(task: &Task, ports: Vec<Port>) -> Result<Vec<Port>, Error> {
    let mut own = Vec::new();
    for port in ports {
        let owners = task.host.owners(std::slice::from_ref(&port.address)).await?;
        match owners.iter().all(|owner| *owner == task.node.uuid) {
            true => own.push(port),
            false => tracing::warn!(
                node = %task.node.uuid,
                "network card {} belongs to another node already, and is left out",
                port.address
            ),
        }
    }
    Ok(own)
}
