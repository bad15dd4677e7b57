//! Records beside nodes, in memory.

use super::{MemoryStore, Tables};
use crate::records::{Allocation, AllocationState, Resource, ResourceKind};
use crate::store::{
    AllocationSelection, CatalogueStore, OwnedPort, PortSelection, ResourceSelection, StoreError,
};
use async_trait::async_trait;
use uuid::Uuid;

impl Tables {
    fn owned_ports(&self) -> Vec<OwnedPort> {
        let nodes = self.nodes.values().map(|kept| &kept.record.node);
        let ports = nodes.flat_map(|node| node.ports.iter().map(|port| (node.uuid, port.clone())));
        let mut ports: Vec<_> = ports.map(|(node, port)| OwnedPort { node, port }).collect();
        ports.sort_by_key(|owned| owned.port.uuid);
        ports
    }

    fn check_allocation(&self, allocation: &Allocation) -> Result<(), StoreError> {
        let Some(name) = &allocation.name else { return Ok(()) };
        let is_taken =
            |other: &Allocation| other.uuid != allocation.uuid && other.name.as_ref() == Some(name);
        match self.allocations.values().any(is_taken) {
            true => Err(StoreError::Taken { what: format!("an allocation with the name {name:?}") }),
            false => Ok(()),
        }
    }

    fn check_resource(&self, resource: &Resource) -> Result<(), StoreError> {
        let others = || {
            let others = self.resources.values().filter(|other| other.uuid != resource.uuid);
            others.filter(|other| other.kind == resource.kind)
        };
        if let Some(name) = &resource.name
            && others().any(|other| other.name.as_ref() == Some(name))
        {
            return Err(StoreError::Taken { what: format!("a {} with the name {name:?}", resource.kind) });
        }
        if let Some(key) = resource.natural_key()
            && others().any(|other| other.natural_key().as_ref() == Some(&key))
        {
            return Err(StoreError::Taken { what: format!("a {} with {key}", resource.kind) });
        }
        Ok(())
    }
}

fn is_new<T>(records: &std::collections::BTreeMap<Uuid, T>, uuid: Uuid) -> Result<(), StoreError> {
    match records.contains_key(&uuid) {
        true => Err(StoreError::Taken { what: format!("a record with UUID {uuid}") }),
        false => Ok(()),
    }
}

#[async_trait]
impl CatalogueStore for MemoryStore {
    async fn ports(&self, selection: &PortSelection) -> Result<Vec<OwnedPort>, StoreError> {
        let PortSelection { node, address, after, limit } = selection;
        let ports = self.tables().owned_ports().into_iter().filter(|owned| {
            node.is_none_or(|node| node == owned.node)
                && address.as_ref().is_none_or(|address| *address == owned.port.address)
                && after.is_none_or(|after| owned.port.uuid > after)
        });
        Ok(ports.take(*limit as usize).collect())
    }

    async fn port(&self, id: &str) -> Result<Option<OwnedPort>, StoreError> {
        let is =
            |owned: &OwnedPort| owned.port.uuid.to_string() == id || owned.port.name.as_deref() == Some(id);
        Ok(self.tables().owned_ports().into_iter().find(is))
    }

    async fn create_allocation(&self, allocation: &Allocation) -> Result<(), StoreError> {
        let mut tables = self.tables();
        is_new(&tables.allocations, allocation.uuid)?;
        tables.check_allocation(allocation)?;
        tables.allocations.insert(allocation.uuid, allocation.clone());
        Ok(())
    }

    async fn allocation(&self, id: &str) -> Result<Option<Allocation>, StoreError> {
        let is = |one: &&Allocation| one.uuid.to_string() == id || one.name.as_deref() == Some(id);
        Ok(self.tables().allocations.values().find(is).cloned())
    }

    async fn allocations(&self, selection: &AllocationSelection) -> Result<Vec<Allocation>, StoreError> {
        let AllocationSelection { node, state, resource_class, owner, after, limit } = selection;
        let tables = self.tables();
        let found = tables.allocations.values().filter(|one| {
            (node.is_none() || one.node_uuid == *node)
                && state.is_none_or(|state| one.state == state)
                && (resource_class.is_none() || one.resource_class == *resource_class)
                && (owner.is_none() || one.owner == *owner)
                && after.is_none_or(|after| one.uuid > after)
        });
        Ok(found.take(*limit as usize).cloned().collect())
    }

    async fn write_allocation(
        &self,
        allocation: &Allocation,
        was: AllocationState,
    ) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        if tables.allocations.get(&allocation.uuid).is_none_or(|known| known.state != was) {
            return Ok(false);
        }
        tables.check_allocation(allocation)?;
        tables.allocations.insert(allocation.uuid, allocation.clone());
        Ok(true)
    }

    async fn delete_allocation(&self, uuid: Uuid) -> Result<(), StoreError> {
        self.tables().allocations.remove(&uuid);
        Ok(())
    }

    async fn create_resource(&self, resource: &Resource) -> Result<(), StoreError> {
        let mut tables = self.tables();
        is_new(&tables.resources, resource.uuid)?;
        tables.check_resource(resource)?;
        tables.resources.insert(resource.uuid, resource.clone());
        Ok(())
    }

    async fn resource(&self, kind: ResourceKind, id: &str) -> Result<Option<Resource>, StoreError> {
        let is = |one: &&Resource| {
            one.kind == kind && (one.uuid.to_string() == id || one.name.as_deref() == Some(id))
        };
        Ok(self.tables().resources.values().find(is).cloned())
    }

    async fn resources(&self, selection: &ResourceSelection) -> Result<Vec<Resource>, StoreError> {
        let ResourceSelection { kind, node, natural_key, after, limit } = selection;
        let tables = self.tables();
        let found = tables.resources.values().filter(|one| {
            one.kind == *kind
                && (node.is_none() || one.node_uuid == *node)
                && (natural_key.is_none() || one.natural_key() == *natural_key)
                && after.is_none_or(|after| one.uuid > after)
        });
        Ok(found.take(*limit as usize).cloned().collect())
    }

    async fn write_resource(&self, before: &Resource, after: &Resource) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        if tables.resources.get(&before.uuid) != Some(before) {
            return Ok(false);
        }
        tables.check_resource(after)?;
        tables.resources.insert(before.uuid, after.clone());
        Ok(true)
    }

    async fn delete_resource(&self, uuid: Uuid) -> Result<(), StoreError> {
        self.tables().resources.remove(&uuid);
        Ok(())
    }
}
