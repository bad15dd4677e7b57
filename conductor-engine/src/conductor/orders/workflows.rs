//! Deploy templates and runbooks: steps by name, which is a trait of the nodes that they are for.

use crate::conductor::Conductor;
use crate::error::Error;
use crate::records::{Resource, ResourceKind};
use farrier_conductor::model::{InterfaceKind, Node, RequestedStep, StepKind, check_trait};
use farrier_conductor::plan::{StepFault, requested, requested_by_runbook};

/// What a runbook has a node do.
pub(crate) struct Runbook {
    /// In their order.
    pub(crate) steps: Vec<RequestedStep>,
    /// Whether they run without the ramdisk.
    pub(crate) disable_ramdisk: bool,
}

impl Conductor {
    /// The steps of the deploy templates whose names an instance wants as traits.
    pub(crate) async fn steps_of_templates(&self, node: &Node) -> Result<Vec<RequestedStep>, Error> {
        let mut steps = Vec::new();
        for name in node.instance_info.traits() {
            if let Some(template) = self.store().resource(ResourceKind::DeployTemplate, name).await? {
                steps.extend(read(&template)?);
            }
        }
        Ok(steps)
    }

    /// A runbook that a node may be led by: it must have the name of the runbook as a trait.
    pub(crate) async fn runbook_for(&self, node: &Node, id: &str) -> Result<Runbook, Error> {
        let runbook = match self.catalogue().resource(ResourceKind::Runbook, id).await {
            Err(error @ Error::ResourceNotFound { .. }) => {
                return Err(Error::invalid("runbook", error.to_string()));
            }
            found => found?,
        };
        let name = runbook.name.as_deref().unwrap_or_default();
        if !node.traits.iter().any(|known| known == name) {
            let node = node.label();
            let reason =
                format!("node {node} lacks the trait {name}; give it that, if the runbook is for it");
            return Err(Error::invalid("runbook", reason));
        }
        Ok(Runbook { steps: read(&runbook)?, disable_ramdisk: runbook.flag("disable_ramdisk") })
    }
}

/// Refuses steps by name that no node could be led by.
pub(crate) fn check(workflow: &Resource) -> Result<(), Error> {
    check_trait(workflow.name.as_deref().unwrap_or_default())
        .map_err(|error| Error::invalid("name", error.to_string()))?;
    if workflow.flag("public") && workflow.text("owner").is_some() {
        return Err(Error::invalid("owner", "goes with no runbook that is public; unset one of both"));
    }
    if workflow.list("steps").is_empty() {
        return Err(Error::invalid("steps", "at least one step is needed"));
    }
    let steps = read(workflow)?;
    let mut faults = Vec::new();
    for (place, step) in steps.iter().enumerate() {
        if steps[..place].iter().any(|other| other.id == step.id) {
            faults.push(StepFault::Duplicate(step.id.clone()));
        }
        if InterfaceKind::named(&step.id.interface).is_none() {
            let reason = format!("names the interface {:?}, which no node has", step.id.interface);
            faults.push(StepFault::Unreadable { number: place + 1, reason });
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(unusable(&faults)) }
}

fn read(workflow: &Resource) -> Result<Vec<RequestedStep>, Error> {
    let steps = workflow.list("steps");
    let read = match workflow.kind {
        ResourceKind::Runbook => requested_by_runbook(steps),
        _ => requested(StepKind::Deploy, steps),
    };
    read.map_err(|faults| unusable(&faults))
}

fn unusable(faults: &[StepFault]) -> Error {
    let told: Vec<_> = faults.iter().map(ToString::to_string).collect();
    Error::invalid("steps", told.join("; "))
}
