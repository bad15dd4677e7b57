//! Deploy templates and runbooks: steps by name, which is a trait of the nodes that they are for.

use super::Conductor;
use crate::error::Error;
use crate::model::{InterfaceKind, Node, RequestedStep, StepKind, Workflow, WorkflowKind, check_trait};
use crate::plan::{StepFault, requested, requested_by_runbook};

/// What a runbook has a node do.
pub(super) struct Runbook {
    /// In their order.
    pub(super) steps: Vec<RequestedStep>,
    /// Whether they run without the ramdisk.
    pub(super) disable_ramdisk: bool,
}

impl Conductor {
    /// Writes down steps by name.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] with all that is wrong with its steps, [`Error::Store`] when name or identity are taken.
    pub async fn create_workflow(&self, workflow: Workflow) -> Result<Workflow, Error> {
        check(&workflow)?;
        self.store().create_workflow(&workflow).await?;
        Ok(workflow)
    }

    /// The steps by name of a kind with this name or identity.
    ///
    /// # Errors
    ///
    /// [`Error::WorkflowNotFound`].
    pub async fn workflow(&self, kind: WorkflowKind, id: &str) -> Result<Workflow, Error> {
        let found = self.store().workflow(kind, id).await?;
        found.ok_or_else(|| Error::WorkflowNotFound { kind, id: id.to_owned() })
    }

    /// Changes steps by name, at once or not at all. A deployment under way keeps what it has begun with.
    ///
    /// # Errors
    ///
    /// Those of `change`, [`Error::WorkflowNotFound`], [`Error::InUse`] when somebody else changes them; as
    /// [`Self::create_workflow`].
    pub async fn update_workflow<E: From<Error>>(
        &self,
        kind: WorkflowKind,
        id: &str,
        change: impl FnOnce(Workflow) -> Result<Workflow, E>,
    ) -> Result<Workflow, E> {
        let before = self.workflow(kind, id).await?;
        let Workflow { uuid, created_at, .. } = before;
        let after =
            Workflow { uuid, kind, created_at, updated_at: Some(self.now()), ..change(before.clone())? };
        check(&after)?;
        match self.store().write_workflow(&before, &after).await.map_err(Error::from)? {
            true => Ok(after),
            false => {
                let reason = "somebody else was changing it; try again".to_owned();
                Err(Error::InUse { what: format!("{kind} {id}"), reason }.into())
            }
        }
    }

    /// Forgets steps by name.
    ///
    /// # Errors
    ///
    /// [`Error::WorkflowNotFound`].
    pub async fn delete_workflow(&self, kind: WorkflowKind, id: &str) -> Result<(), Error> {
        let workflow = self.workflow(kind, id).await?;
        Ok(self.store().delete_workflow(workflow.uuid).await?)
    }

    /// The steps of the deploy templates whose names an instance wants as traits.
    pub(super) async fn steps_of_templates(&self, node: &Node) -> Result<Vec<RequestedStep>, Error> {
        let mut steps = Vec::new();
        for name in node.instance_info.traits() {
            if let Some(template) = self.store().workflow(WorkflowKind::DeployTemplate, name).await? {
                steps.extend(read(&template)?);
            }
        }
        Ok(steps)
    }

    /// A runbook that a node may be led by: it must have the name of the runbook as a trait.
    pub(super) async fn runbook_for(&self, node: &Node, id: &str) -> Result<Runbook, Error> {
        let runbook = match self.workflow(WorkflowKind::Runbook, id).await {
            Err(error @ Error::WorkflowNotFound { .. }) => {
                return Err(Error::invalid("runbook", error.to_string()));
            }
            found => found?,
        };
        if !node.traits.contains(&runbook.name) {
            let (node, name) = (node.label(), &runbook.name);
            let reason =
                format!("node {node} lacks the trait {name}; give it that, if the runbook is for it");
            return Err(Error::invalid("runbook", reason));
        }
        Ok(Runbook { steps: read(&runbook)?, disable_ramdisk: runbook.disable_ramdisk })
    }
}

/// Refuses steps by name that no node could be led by.
fn check(workflow: &Workflow) -> Result<(), Error> {
    check_trait(&workflow.name).map_err(|error| Error::invalid("name", error.to_string()))?;
    if workflow.public && workflow.owner.is_some() {
        return Err(Error::invalid("owner", "goes with no runbook that is public; unset one of both"));
    }
    if workflow.steps.is_empty() {
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

fn read(workflow: &Workflow) -> Result<Vec<RequestedStep>, Error> {
    let read = match workflow.kind {
        WorkflowKind::DeployTemplate => requested(StepKind::Deploy, &workflow.steps),
        WorkflowKind::Runbook => requested_by_runbook(&workflow.steps),
    };
    read.map_err(|faults| unusable(&faults))
}

fn unusable(faults: &[StepFault]) -> Error {
    let told: Vec<_> = faults.iter().map(ToString::to_string).collect();
    Error::invalid("steps", told.join("; "))
}
