//! Plain resources: written down, looked up, changed and forgotten.

use crate::conductor::Catalogue;
use crate::conductor::orders::workflows;
use crate::conductor::records::nodes::check_name;
use crate::error::Error;
use crate::lease::HeldTask;
use crate::records::{Resource, ResourceKind};
use crate::store::{Filter, NodeColumn, Selection};
use farrier_conductor::model::{Node, PowerState};

impl Catalogue {
    /// Writes a plain resource down.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Task) with all that is wrong with it, [`Error::Store`] when its name, its identity or what
    /// else it is known by are taken.
    pub async fn create_resource(&self, resource: Resource) -> Result<Resource, Error> {
        self.check_resource(&resource).await?;
        self.0.store().create_resource(&resource).await?;
        Ok(resource)
    }

    /// The plain resource of a kind with this name or identity.
    ///
    /// # Errors
    ///
    /// [`Error::ResourceNotFound`].
    pub async fn resource(&self, kind: ResourceKind, id: &str) -> Result<Resource, Error> {
        let found = self.0.store().resource(kind, id).await?;
        found.ok_or_else(|| Error::ResourceNotFound { kind, id: id.to_owned() })
    }

    /// Changes a plain resource, at once or not at all. An operation under way keeps what it has begun with.
    ///
    /// # Errors
    ///
    /// Those of `change`, [`Error::ResourceNotFound`], [`Error::InUse`] when another request changes it; as
    /// [`Self::create_resource`].
    pub async fn update_resource<E: From<Error>>(
        &self,
        kind: ResourceKind,
        id: &str,
        change: impl FnOnce(Resource) -> Result<Resource, E>,
    ) -> Result<Resource, E> {
        let before = self.resource(kind, id).await?;
        let lock = self.lock_changeable(&before, "update").await?;
        let Resource { uuid, created_at, .. } = before;
        let after =
            Resource { uuid, kind, created_at, updated_at: Some(self.0.now()), ..change(before.clone())? };
        self.check_resource(&after).await?;
        let written = self.0.store().write_resource(&before, &after).await.map_err(Error::from);
        leave(lock).await?;
        match written? {
            true => Ok(after),
            false => {
                let reason = "another request changed it at the same time; try again".to_owned();
                Err(Error::InUse { what: format!("{kind} {id}"), reason }.into())
            }
        }
    }

    /// Forgets a plain resource.
    ///
    /// # Errors
    ///
    /// [`Error::ResourceNotFound`], [`Invalid`](Error::Task) while something belongs to it.
    pub async fn delete_resource(&self, kind: ResourceKind, id: &str) -> Result<(), Error> {
        let resource = self.resource(kind, id).await?;
        let lock = self.lock_changeable(&resource, "deletion").await?;
        self.check_unused(&resource).await?;
        let deleted = self.0.store().delete_resource(resource.uuid).await;
        leave(lock).await?;
        Ok(deleted?)
    }

    /// Refuses what no node could have.
    async fn check_resource(&self, resource: &Resource) -> Result<(), Error> {
        match resource.kind {
            ResourceKind::DeployTemplate | ResourceKind::Runbook => workflows::check(resource),
            ResourceKind::Chassis => Ok(()),
            ResourceKind::PortGroup => {
                resource.name.iter().try_for_each(|name| check_name(name))?;
                self.node_of(resource).await.map(drop)
            }
            ResourceKind::VolumeConnector | ResourceKind::VolumeTarget => {
                self.node_of(resource).await.map(drop)
            }
        }
    }

    /// Locks the node of a volume, which waits for the task that has the lock. Volumes of a machine that is on are not
    /// changed.
    async fn lock_changeable(&self, resource: &Resource, action: &str) -> Result<Option<HeldTask>, Error> {
        use ResourceKind::{VolumeConnector, VolumeTarget};
        if ![VolumeConnector, VolumeTarget].contains(&resource.kind) {
            return Ok(None);
        }
        let node = self.node_of(resource).await?;
        let task = HeldTask::acquire(self.0.services(), &node.uuid.to_string()).await?;
        let node = &task.node;
        match node.power_state {
            Some(PowerState::Off) => Ok(Some(task)),
            // The power state has not been read yet.
            None if node.provision_state.allows_node_deletion() => Ok(Some(task)),
            _ => {
                let refusal = Error::PoweredOn {
                    action: format!("{} {action}", resource.kind),
                    node: node.label(),
                    state: node.power_state.map_or("unknown", PowerState::as_str).to_owned(),
                };
                task.leave().await?;
                Err(refusal)
            }
        }
    }

    /// Refuses to forget what something belongs to.
    async fn check_unused(&self, resource: &Resource) -> Result<(), Error> {
        let is_used = match resource.kind {
            ResourceKind::DeployTemplate
            | ResourceKind::Runbook
            | ResourceKind::VolumeConnector
            | ResourceKind::VolumeTarget => false,
            ResourceKind::Chassis => {
                let column = NodeColumn::named("chassis_uuid").expect("it is a column");
                let filters = vec![Filter::IsOneOf(column, vec![resource.uuid.to_string()])];
                let nodes = self.0.store().identities(&Selection { filters, ..Selection::first(1) }).await?;
                !nodes.is_empty()
            }
            ResourceKind::PortGroup => {
                let node = self.node_of(resource).await?;
                node.ports.iter().any(|port| port.portgroup_id == Some(resource.uuid))
            }
        };
        match is_used {
            true => Err(Error::invalid(
                resource.kind.to_string(),
                "something belongs to it; take that away first",
            )),
            false => Ok(()),
        }
    }

    async fn node_of(&self, resource: &Resource) -> Result<Node, Error> {
        let missing = || Error::invalid("node_uuid", "is missing; give the node that it belongs to");
        let node = resource.node_uuid.ok_or_else(missing)?;
        match self.0.store().get(node).await? {
            Some(record) => Ok(record.node),
            None => Err(Error::invalid("node_uuid", format!("node {node} does not exist"))),
        }
    }
}

/// Releases the lock of a node whose volumes have changed.
async fn leave(lock: Option<HeldTask>) -> Result<(), Error> {
    match lock {
        Some(task) => task.leave().await,
        None => Ok(()),
    }
}
