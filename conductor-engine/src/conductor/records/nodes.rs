//! Records of nodes: enrolled, described, and changed by operators.

use crate::conductor::{Catalogue, Conductor};
use crate::error::Error;
use crate::lease::HeldTask;
use crate::records::{Forbidden, ResourceKind};
use crate::services::ENDED;
use crate::store::{ConfigDrive, Documents, Outline, Record};
use farrier_conductor::model::Erasure;
use farrier_conductor::model::{
    Activity, Event, InterfaceKind, NewNode, Node, NodeInterfaces, ProvisionState, is_name,
};
use farrier_protocol::lookup::MASKED;
use time::OffsetDateTime;
use uuid::Uuid;

/// Names that are paths of the REST interface.
const RESERVED: &[&str] = &["detail"];

/// States in which the interfaces of a machine may be others from now on.
const INTERFACES_MAY_CHANGE: &[ProvisionState] = &[
    ProvisionState::Enroll,
    ProvisionState::Inspecting,
    ProvisionState::InspectWait,
    ProvisionState::Manageable,
    ProvisionState::Available,
];

impl Conductor {
    /// Enrols a node.
    ///
    /// # Errors
    ///
    /// As [`Self::enrol`].
    pub async fn create_node(&self, new: NewNode) -> Result<Node, Error> {
        let node = self.enrol(Node::enrol(new, self.now())).await?;
        Ok(node.shown(&farrier_conductor::model::AgentSession::default()))
    }

    /// Enrols a node with everything that is known of it. One that is ready for instances at once is validated first;
    /// one that begins with `enroll` is validated when it is managed.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Task) for an unusable field, [`Unresolved`](Error::Task) for an interface that the node
    /// cannot have, [`Interface`](Error::Task) when its power interface cannot work with its `driver_info`,
    /// [`Error::Store`] when name, identity or address are taken.
    pub async fn enrol(&self, mut node: Node) -> Result<Node, Error> {
        node.name.iter().try_for_each(|name| check_name(name))?;
        check_group(&mut node)?;
        self.check_parent(&node).await?;
        self.check_chassis(&node).await?;
        let config_drive = node.instance_info.take_config_drive()?;
        if config_drive.is_some() {
            return Err(Error::invalid(
                "instance_info configdrive",
                "comes with the order to deploy, or by a patch",
            ));
        }
        node.interfaces = self.resolved(&node)?;
        if node.provision_state == ProvisionState::Available {
            if self.drives(&node) {
                self.services().hardware.power(&node)?.validate(&node).await?;
            }
            let reason = "it was enrolled as available, and not cleaned since";
            node.driver_internal_info.erasure = Some(Erasure::not_proven(self.now(), reason));
        }
        self.store().create(&node).await?;
        Ok(node)
    }

    /// Changes what operators may change of a node, at once or not at all.
    ///
    /// Ports are changed by [`Catalogue::update_port`], states by orders, maintenance too by [`Self::set_maintenance`].
    ///
    /// # Errors
    ///
    /// Those of `change`; [`InvalidState`](Error::Task) while a conductor works on the node or it waits, and for
    /// fields that may not change in its state; [`OtherInstance`](Error::Task), [`Invalid`](Error::Task),
    /// [`Unresolved`](Error::Task); [`Error::Store`] when a conductor holds the node, or its name or instance are
    /// taken.
    pub async fn update<E: From<Error>>(
        &self,
        id: &str,
        change: impl FnOnce(Node) -> Result<Node, E>,
    ) -> Result<Node, E> {
        let mut task = HeldTask::acquire(self.services(), id).await?;
        let before = task.node.clone();
        let after = change(before.clone())?;
        let drive = self.check(&before, &mut task.node, after).await?;
        let node = task.node.clone();
        let drive = match &drive {
            Drive::Keep => ConfigDrive::Keep,
            Drive::Put(content) => ConfigDrive::Put(content),
            Drive::Remove => ConfigDrive::Remove,
        };
        task.finish_with(drive).await?;
        Ok(node)
    }

    /// Deletes the record of a node, and leaves the power state and the disks of its machine unchanged.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] if it has an instance and [`InvalidState`](Error::Task) during an operation, unless it is in
    /// maintenance; [`Error::Forbidden`]; [`Error::Store`] while a conductor works on it.
    pub async fn remove_node(&self, id: &str) -> Result<(), Error> {
        let mut task = HeldTask::acquire(self.services(), id).await?;
        let node = &task.node;
        Forbidden::check(node, Event::Delete)?;
        let is_allowed = |state: &ProvisionState| state.allows_node_deletion();
        if !node.maintenance
            && let Some(instance) = node.instance_uuid.get()
        {
            return Err(Error::InUse {
                what: format!("node {}", node.label()),
                reason: format!("it belongs to instance {instance}; undeploy it first"),
            });
        }
        if !node.maintenance && !is_allowed(&node.provision_state) {
            return Err(Error::wrong_state(node, ProvisionState::ALL.iter().copied().filter(is_allowed)));
        }
        let uuid = node.uuid;
        // A driver that is not there any more keeps nothing.
        if self.services().hardware.power(node).is_ok() {
            task.forget_machine().await?;
        }
        task.delete().await?;
        self.events().forget(uuid);
        Ok(())
    }

    /// Takes what may be changed over into the node.
    async fn check(&self, before: &Node, node: &mut Node, mut after: Node) -> Result<Drive, Error> {
        // What is kept elsewhere, or is nobody's to change.
        after.ports.clone_from(&before.ports);
        after.uuid = before.uuid;
        let frees = Node { instance_uuid: after.instance_uuid, ..before.clone() } == after
            && after.instance_uuid.get().is_none();
        if !(before.maintenance && frees) {
            check_at_rest(before)?;
        }
        if before.name != after.name {
            after.name.iter().try_for_each(|name| check_name(name))?;
        }
        if let Some(instance) = after.instance_uuid.get() {
            before.instance_uuid.clone().set(instance)?;
        }
        check_flags(before, &mut after)?;
        check_class(before, &after)?;
        check_group(&mut after)?;
        if before.parent_node != after.parent_node {
            self.check_parent(&after).await?;
        }
        if before.chassis_uuid != after.chassis_uuid {
            self.check_chassis(&after).await?;
        }
        if before.driver != after.driver || before.interfaces != after.interfaces {
            self.check_interfaces(before, &mut after)?;
        }
        follow_display_name(before, &mut after);
        let drive = Drive::of(before, &mut after)?;
        *node = after;
        Ok(drive)
    }

    fn check_interfaces(&self, before: &Node, after: &mut Node) -> Result<(), Error> {
        let may_change = before.maintenance || INTERFACES_MAY_CHANGE.contains(&before.provision_state);
        if before.interfaces != after.interfaces && !may_change {
            return Err(Error::wrong_state(before, INTERFACES_MAY_CHANGE.iter().copied()));
        }
        after.interfaces = self.resolved(after)?;
        if before.interfaces.get(InterfaceKind::Deploy) != after.interfaces.get(InterfaceKind::Deploy) {
            // What an operator chooses is the node's own from now on.
            after.driver_internal_info.original_deploy_interface = None;
        }
        Ok(())
    }

    /// All interfaces of a node: as this conductor has them, or another one that leads the node.
    fn resolved(&self, node: &Node) -> Result<NodeInterfaces, Error> {
        let resolved = self.services().hardware.composition.resolve_all(node);
        resolved.or_else(|unresolved| {
            Ok(self.services().placement.interfaces_elsewhere(node).ok_or(unresolved)?)
        })
    }

    async fn check_parent(&self, node: &Node) -> Result<(), Error> {
        match node.parent_node {
            Some(parent) if parent == node.uuid => {
                Err(Error::invalid("parent_node", "a machine is no part of itself; give another node"))
            }
            Some(parent) => match self.store().get(parent).await? {
                Some(_) => Ok(()),
                None => Err(Error::invalid("parent_node", format!("node {parent} does not exist"))),
            },
            None => Ok(()),
        }
    }

    async fn check_chassis(&self, node: &Node) -> Result<(), Error> {
        let Some(chassis) = node.chassis_uuid else { return Ok(()) };
        match self.store().resource(ResourceKind::Chassis, &chassis.to_string()).await? {
            Some(_) => Ok(()),
            None => Err(Error::invalid("chassis_uuid", format!("chassis {chassis} does not exist"))),
        }
    }

    /// A record without its secrets. A lease that has expired is nobody's.
    pub(crate) fn shown(&self, record: &Record) -> Node {
        let mut shown = record.node.shown(&record.session);
        shown.reservation.take_if(|_| self.is_over(record.lease_expires_at));
        shown
    }

    fn is_over(&self, lease_expires_at: Option<OffsetDateTime>) -> bool {
        lease_expires_at.is_none_or(|until| until <= ENDED)
    }
}

impl Catalogue {
    /// The node with this name or identity as it is kept, secrets included.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Error::Store`].
    pub async fn document(&self, id: &str) -> Result<(Outline, Documents), Error> {
        self.0.services().document(id).await
    }

    /// What the columns of a node say, without a lease that has expired, and with who leads it where they tell that.
    pub fn outlined(&self, mut outline: Outline, documents: Option<&Documents>) -> Outline {
        if self.0.is_over(outline.lease_expires_at) {
            outline.fields.retain(|(name, _)| *name != "reservation");
        }
        let leader = self.0.leader_of(&outline, documents);
        outline.fields.push(("conductor", leader.into()));
        outline
    }
}

/// What becomes of a node's config drive.
enum Drive {
    Keep,
    Put(String),
    Remove,
}

impl Drive {
    /// Takes the config drive out of a changed node; where it is as it was, only its mask is there.
    fn of(before: &Node, after: &mut Node) -> Result<Self, Error> {
        let key =
            |node: &Node| node.instance_info.get("configdrive").filter(|drive| !drive.is_null()).cloned();
        match (key(before), key(after)) {
            (Some(was), Some(is)) if was == is && is == MASKED => Ok(Self::Keep),
            (Some(_), None) => Ok(Self::Remove),
            _ => Ok(after.instance_info.take_config_drive()?.map_or(Self::Keep, Self::Put)),
        }
    }
}

/// A node that is in the middle of something is not changed beneath it.
fn check_at_rest(node: &Node) -> Result<(), Error> {
    let is_at_rest = |state: &ProvisionState| {
        matches!(state.activity(), Activity::Rest | Activity::Failed)
            || *state == ProvisionState::InspectWait
            || *state == ProvisionState::ServiceHold
    };
    match is_at_rest(&node.provision_state) {
        true => Ok(()),
        false => Err(Error::wrong_state(node, ProvisionState::ALL.iter().copied().filter(is_at_rest))),
    }
}

/// Flags that stand for something that is there, and the reasons that belong to them.
fn check_flags(before: &Node, after: &mut Node) -> Result<(), Error> {
    use ProvisionState::{Active, Available, Rescue};
    if before.maintenance && !after.maintenance {
        (after.maintenance_reason, after.fault) = (None, None);
    }
    if after.protected && !before.protected && ![Active, Rescue].contains(&before.provision_state) {
        return Err(Error::wrong_state(before, [Active, Rescue]));
    }
    if after.retired && !before.retired && before.provision_state == Available {
        let others = ProvisionState::ALL.iter().copied().filter(|state| *state != Available);
        return Err(Error::wrong_state(before, others));
    }
    for (field, is_set, was_set, reason) in [
        ("protected_reason", after.protected, before.protected, &mut after.protected_reason),
        ("retired_reason", after.retired, before.retired, &mut after.retired_reason),
    ] {
        if is_set {
            continue;
        }
        if was_set {
            *reason = None;
        } else if reason.is_some() {
            return Err(Error::invalid(field, "belongs to a flag that is not set; set that first"));
        }
    }
    Ok(())
}

/// Schedulers have counted on the class of a node that is in use.
fn check_class(before: &Node, after: &Node) -> Result<(), Error> {
    let changes = before.resource_class.is_some() && before.resource_class != after.resource_class;
    match changes && !INTERFACES_MAY_CHANGE.contains(&before.provision_state) {
        true => Err(Error::wrong_state(before, INTERFACES_MAY_CHANGE.iter().copied())),
        false => Ok(()),
    }
}

fn check_group(node: &mut Node) -> Result<(), Error> {
    node.conductor_group.make_ascii_lowercase();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    match node.conductor_group.chars().all(is_plain) {
        true => Ok(()),
        false => Err(Error::invalid("conductor_group", "must be letters, digits, '_', '-' and '.'")),
    }
}

/// Users name their instance in `instance_info`, where nothing else names it.
fn follow_display_name(before: &Node, after: &mut Node) {
    let display_name =
        |node: &Node| node.instance_info.text("display_name").ok().flatten().map(str::to_owned);
    if after.instance_name.is_none() && display_name(before) != display_name(after) {
        after.instance_name = display_name(after);
    }
}

/// Names appear in paths and URLs, and must not be taken for an identity or another path.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    if !is_name(name) || name.starts_with('.') || name.parse::<Uuid>().is_ok() || RESERVED.contains(&name) {
        let name: String = name.chars().take(64).collect();
        let reason = format!(
            "{name:?} must be at most 255 letters, digits, '.', '_', '-' and '~', not start with '.' and be no UUID"
        );
        return Err(Error::invalid("name", reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, usable) in [
            ("demo", true),
            ("rack1-u07.dc_2", true),
            ("namespace~name", true),
            ("", false),
            (".hidden", false),
            ("a/b", false),
            ("a b", false),
            ("detail", false),
            ("1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11", false),
        ] {
            assert_eq!(check_name(name).is_ok(), usable, "{name:?}");
        }
        assert!(check_name(&"x".repeat(255)).is_ok());
        let long = check_name(&"x".repeat(4096)).unwrap_err().to_string();
        assert!(long.len() < 300, "{long}");
    }
}
