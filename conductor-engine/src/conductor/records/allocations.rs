//! Allocations: a node is looked for, and taken in one step.
//!
//! A node is taken by the write that gives it the identity of the allocation as that of its instance: no two nodes can
//! have it, and no node can have two. Whatever ends the conductor before or after that write, the next round goes on.

use crate::conductor::Catalogue;
use crate::conductor::records::nodes::check_name;
use crate::error::Error;
use crate::error::codes::NO_MATCHING_NODE;
use crate::lease::HeldTask;
use crate::records::{Allocation, AllocationState};
use crate::store::{AllocationSelection, Filter, NodeColumn, Position, Selection, StoreError};
use farrier_conductor::model::{InstanceUuid, ProvisionState};
use serde_json::json;
use uuid::Uuid;

/// Nodes that are read at a time for one allocation.
const NODES: u32 = 20;

/// Allocations that one round goes on with.
const MOST_ALLOCATIONS: u32 = 1000;

/// The key of `instance_info` with the traits that an instance wants.
const TRAITS: &str = "traits";

/// How one look for a node ended.
enum Found {
    Node(Uuid),
    /// There may be one, when the operation that works on it is done.
    Later,
    Nothing,
}

fn column(field: &str) -> NodeColumn {
    NodeColumn::named(field).expect("it is a column")
}

impl Catalogue {
    /// Writes down what is wanted, and has a node looked for.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Task), [`Error::Store`] when name or identity are taken.
    pub async fn create_allocation(&self, allocation: Allocation) -> Result<Allocation, Error> {
        allocation.name.iter().try_for_each(|name| check_name(name))?;
        if allocation.resource_class.is_none() {
            return Err(Error::invalid(
                "resource_class",
                "is missing; give the class that the node must have",
            ));
        }
        self.check_no_instance(allocation.uuid).await?;
        self.0.store().create_allocation(&allocation).await?;
        let (catalogue, uuid) = (self.clone(), allocation.uuid);
        tokio::spawn(async move {
            if let Err(error) = catalogue.allocate(uuid).await {
                tracing::error!(allocation = %uuid, "the next round looks for a node again: {error}");
            }
        });
        Ok(allocation)
    }

    /// The UUID of an allocation becomes that of its instance, and no other node may have that.
    async fn check_no_instance(&self, uuid: Uuid) -> Result<(), Error> {
        match self.node_with("instance_uuid", uuid).await? {
            None => Ok(()),
            Some(_) => Err(StoreError::Taken { what: format!("a node with instance {uuid}") }.into()),
        }
    }

    /// The first node that has a UUID in a field.
    async fn node_with(&self, field: &str, uuid: Uuid) -> Result<Option<Uuid>, Error> {
        let filters = vec![Filter::IsOneOf(column(field), vec![uuid.to_string()])];
        let found = self.0.store().identities(&Selection { filters, ..Selection::first(1) }).await?;
        Ok(found.into_iter().next())
    }

    /// Writes down that a node was taken, which has its instance already.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`InvalidState`](Error::Task), [`Error::InUse`] when it was taken by another
    /// allocation, [`Invalid`](Error::Task) when it is not as wanted, and as [`Self::create_allocation`].
    pub async fn backfill_allocation(
        &self,
        mut allocation: Allocation,
        node: &str,
    ) -> Result<Allocation, Error> {
        allocation.name.iter().try_for_each(|name| check_name(name))?;
        let mut task = HeldTask::acquire(self.0.services(), node).await?;
        let node = &mut task.node;
        if node.provision_state != ProvisionState::Active {
            return Err(Error::wrong_state(node, [ProvisionState::Active]));
        }
        let instance = node.instance_uuid.get();
        if node.allocation_uuid.is_some() || instance.is_some_and(|instance| instance != allocation.uuid) {
            let reason = "an allocation or another instance has it".to_owned();
            return Err(Error::InUse { what: format!("node {}", node.label()), reason });
        }
        let class = allocation.resource_class.take().or_else(|| node.resource_class.clone());
        if class != node.resource_class || !allocation.traits.iter().all(|name| node.traits.contains(name)) {
            let reason = format!("node {} has another resource class, or lacks traits", node.label());
            return Err(Error::invalid("node", reason));
        }
        (allocation.resource_class, allocation.state) = (class, AllocationState::Active);
        allocation.node_uuid = Some(node.uuid);
        self.0.store().create_allocation(&allocation).await?;
        node.instance_uuid.set(allocation.uuid)?;
        node.allocation_uuid = Some(allocation.uuid);
        match task.finish().await {
            Ok(()) => Ok(allocation),
            Err(error) => {
                self.0.store().delete_allocation(allocation.uuid).await?;
                Err(error)
            }
        }
    }

    /// The allocation with this name or identity.
    ///
    /// # Errors
    ///
    /// [`Error::AllocationNotFound`].
    pub async fn allocation(&self, id: &str) -> Result<Allocation, Error> {
        self.0.store().allocation(id).await?.ok_or_else(|| Error::AllocationNotFound(id.to_owned()))
    }

    /// Changes name and extra of an allocation.
    ///
    /// # Errors
    ///
    /// Those of `change`, [`Error::AllocationNotFound`], [`Error::Store`] when the name is taken.
    pub async fn update_allocation<E: From<Error>>(
        &self,
        id: &str,
        change: impl FnOnce(Allocation) -> Result<Allocation, E>,
    ) -> Result<Allocation, E> {
        let before = self.allocation(id).await?;
        let after = change(before.clone())?;
        if before.name != after.name {
            after.name.iter().try_for_each(|name| check_name(name))?;
        }
        let Allocation { name, extra, .. } = after;
        let after = Allocation { name, extra, updated_at: Some(self.0.now()), ..before.clone() };
        match self.0.store().write_allocation(&after, before.state).await.map_err(Error::from)? {
            true => Ok(after),
            false => Err(Error::InUse {
                what: format!("allocation {id}"),
                reason: "its node was being found; try again".to_owned(),
            }
            .into()),
        }
    }

    /// Ends an allocation, and frees its node, which must have been undeployed.
    ///
    /// # Errors
    ///
    /// [`Error::AllocationNotFound`], [`InvalidState`](Error::Task), [`Error::Store`] when a conductor works on the
    /// node.
    pub async fn delete_allocation(&self, id: &str) -> Result<(), Error> {
        let allocation = self.allocation(id).await?;
        // One that is under way may have its node already.
        let taken = self.taken_node(&allocation).await?;
        if let Some(node) = allocation.node_uuid.or(taken) {
            self.free(node, allocation.uuid).await?;
        }
        Ok(self.0.store().delete_allocation(allocation.uuid).await?)
    }

    /// Gives a node back that an allocation has, unless it has an instance.
    async fn free(&self, node: Uuid, allocation: Uuid) -> Result<(), Error> {
        let mut task = HeldTask::acquire(self.0.services(), &node.to_string()).await?;
        let frees = |state: &ProvisionState| *state == ProvisionState::Available;
        if task.node.allocation_uuid == Some(allocation) {
            if !task.node.maintenance && !frees(&task.node.provision_state) {
                return Err(Error::wrong_state(&task.node, [ProvisionState::Available]));
            }
            task.node.allocation_uuid = None;
            task.node.instance_uuid.remove();
            task.node.instance_info.remove(TRAITS);
        }
        task.finish().await
    }

    /// Goes on with allocations that somebody has begun.
    pub(crate) async fn look_for_nodes(&self) -> Result<(), Error> {
        let selection = AllocationSelection {
            state: Some(AllocationState::Allocating),
            ..AllocationSelection::first(MOST_ALLOCATIONS)
        };
        for allocation in self.0.store().allocations(&selection).await? {
            // One that cannot be gone on with holds up no other.
            if let Err(error) = self.allocate(allocation.uuid).await {
                tracing::error!(allocation = %allocation.uuid, "an allocation cannot be resumed: {error}");
            }
        }
        Ok(())
    }

    /// Looks for a node, and writes down what came of it.
    async fn allocate(&self, uuid: Uuid) -> Result<(), Error> {
        let Some(mut allocation) = self.0.store().allocation(&uuid.to_string()).await? else { return Ok(()) };
        if allocation.state != AllocationState::Allocating {
            return Ok(());
        }
        match self.find_node(&allocation).await? {
            Found::Later => return Ok(()),
            Found::Node(node) => {
                allocation.state = AllocationState::Active;
                allocation.node_uuid = Some(node);
            }
            Found::Nothing => {
                let class = allocation.resource_class.as_deref().unwrap_or_default();
                allocation.state = AllocationState::Error;
                let text = format!(
                    "no available node has the resource class {class:?} and matches the request; free a node, or \
                     change the request"
                );
                allocation.last_error = Some(NO_MATCHING_NODE.after(&text));
            }
        }
        allocation.updated_at = Some(self.0.now());
        let is_written = self.0.store().write_allocation(&allocation, AllocationState::Allocating).await?;
        if let Some(node) = allocation.node_uuid
            && !is_written
            && self.0.store().allocation(&uuid.to_string()).await?.is_none()
        {
            self.free(node, uuid).await?;
        }
        Ok(())
    }

    /// Finds the node of an allocation: the one that it has taken, or a free one. Several tasks may look for it, so
    /// that where none is free another task may have taken it meanwhile.
    async fn find_node(&self, allocation: &Allocation) -> Result<Found, Error> {
        if let Some(node) = self.taken_node(allocation).await? {
            return Ok(Found::Node(node));
        }
        match self.take_free_node(allocation).await? {
            Found::Nothing => Ok(self.taken_node(allocation).await?.map_or(Found::Nothing, Found::Node)),
            found => Ok(found),
        }
    }

    /// The node that has an allocation already.
    async fn taken_node(&self, allocation: &Allocation) -> Result<Option<Uuid>, Error> {
        self.node_with("allocation_uuid", allocation.uuid).await
    }

    /// Takes the node that is called as the allocation, or else the oldest one that is free and as wanted.
    async fn take_free_node(&self, allocation: &Allocation) -> Result<Found, Error> {
        let mut found = Found::Nothing;
        let mut named = free(allocation);
        named.filters.extend(allocation.name.iter().map(|name| is("name", name)));
        let selections = [named, free(allocation)];
        for mut selection in selections.into_iter().skip(usize::from(allocation.name.is_none())) {
            loop {
                let nodes = self.0.store().outlines(&selection).await?;
                for node in &nodes {
                    match self.try_to_take(allocation, node.uuid).await? {
                        Found::Nothing => {}
                        Found::Later => found = Found::Later,
                        taken @ Found::Node(_) => return Ok(taken),
                    }
                }
                let Some(last) = nodes.last().filter(|_| nodes.len() == NODES as usize) else { break };
                let value = last.field(selection.sort.name()).cloned().unwrap_or_default();
                selection.after = Some(Position { value, uuid: last.uuid });
            }
        }
        Ok(found)
    }

    /// Tries to take a node, which nobody may keep from taking another one.
    async fn try_to_take(&self, allocation: &Allocation, node: Uuid) -> Result<Found, Error> {
        match self.take_node(allocation, node).await {
            Ok(true) => Ok(Found::Node(node)),
            Ok(false) => Ok(Found::Nothing),
            // Somebody works on it; or somebody else has found a node for the allocation meanwhile.
            Err(Error::Store(
                StoreError::Held { .. }
                | StoreError::Gone(_)
                | StoreError::Overtaken(_)
                | StoreError::Taken { .. },
            )) => Ok(Found::Later),
            // One that cannot be read keeps no other from being taken.
            Err(error @ Error::Store(StoreError::Failed { .. })) => {
                tracing::error!(%node, "no allocation can take the node: {error}");
                Ok(Found::Later)
            }
            Err(error) => Err(error),
        }
    }

    /// Gives a node to an allocation, if it suits.
    async fn take_node(&self, allocation: &Allocation, node: Uuid) -> Result<bool, Error> {
        let Some(record) = self.0.store().get(node).await? else { return Ok(false) };
        if !allocation.suits(&record.node) {
            return Ok(false);
        }
        let mut task = HeldTask::try_acquire(self.0.services(), node).await?;
        if !allocation.suits(&task.node) {
            task.leave().await?;
            return Ok(false);
        }
        let mut instance = InstanceUuid::default();
        instance.set(allocation.uuid)?;
        task.node.instance_uuid = instance;
        task.node.allocation_uuid = Some(allocation.uuid);
        if !allocation.traits.is_empty() {
            // What is wanted of the node is wanted of its deployment: templates by these names lead it.
            task.node.instance_info.insert(TRAITS.to_owned(), json!(allocation.traits));
        }
        task.finish().await?;
        Ok(true)
    }
}

fn is(field: &str, text: impl ToString) -> Filter {
    Filter::IsOneOf(column(field), vec![text.to_string()])
}

/// The first nodes that an allocation may take, as far as their columns say so.
fn free(allocation: &Allocation) -> Selection {
    let mut filters = vec![
        is("resource_class", allocation.resource_class.as_deref().unwrap_or_default()),
        is("provision_state", ProvisionState::Available),
        Filter::IsSet(column("instance_uuid"), false),
    ];
    filters.extend(["maintenance", "retired", "protected"].map(|flag| Filter::Flag(column(flag), false)));
    filters.extend(allocation.traits.iter().cloned().map(Filter::HasTrait));
    filters.extend(allocation.owner.iter().map(|owner| Filter::IsOrHasNone(column("owner"), owner.clone())));
    if !allocation.candidate_nodes.is_empty() {
        let candidates = allocation.candidate_nodes.iter().map(Uuid::to_string).collect();
        filters.push(Filter::IsOneOf(NodeColumn::UUID, candidates));
    }
    Selection { filters, columns: vec![NodeColumn::CREATED_AT], ..Selection::first(NODES) }
}
