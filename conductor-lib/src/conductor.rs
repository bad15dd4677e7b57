//! The conductor: nodes, and the operations on them.

use crate::console;
use crate::deploy::DeployInterface;
use crate::deploy::direct::Direct;
use crate::deploy::image::Image;
use crate::error::Error;
use crate::events::EventLog;
use crate::interfaces::PowerInterface;
use crate::locks::NodeLocks;
use crate::model::{DriverInternalInfo, Event, NewNode, Node, PowerState, ProvisionState};
use crate::services::{Drivers, Services};
use crate::settings::Settings;
use crate::steps;
use crate::store::Store;
use crate::task::Task;
use crate::watch::Watches;
use serde_json::{Map, Value};
use std::future::Future;
use std::sync::Arc;
use time::OffsetDateTime;
use uuid::Uuid;

/// What an operator wants from the power of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerAction {
    /// Power on.
    On,
    /// Power off at once.
    Off,
    /// Power off and on.
    Reboot,
}

/// A conductor. Clones are handles to the same one.
#[derive(Clone)]
pub struct Conductor(Arc<Inner>);

struct Inner {
    services: Arc<Services>,
    deploy: Arc<dyn DeployInterface>,
    watches: Arc<Watches>,
}

impl Conductor {
    /// A conductor over these nodes. Work that an earlier conductor left unfinished is failed.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub async fn start(settings: Settings, store: Arc<dyn Store>, drivers: Drivers) -> Result<Self, Error> {
        let (locks, events) = (NodeLocks::default(), EventLog::default());
        let services = Arc::new(Services { settings, store, drivers, locks, events });
        let deploy: Arc<dyn DeployInterface> = Arc::new(Direct);
        let watches = Watches::new(Arc::clone(&services), Arc::clone(&deploy));
        let conductor = Self(Arc::new(Inner { services, deploy, watches }));
        for node in conductor.nodes().await? {
            if node.provision_state.is_worked_on() {
                let mut task = conductor.try_acquire(node.uuid).await?;
                task.fail("the conductor was stopped during the operation; start the operation again").await;
            }
        }
        Ok(conductor)
    }

    /// Fails waiting nodes whose agent is silent or whose machine is off, for as long as it is polled.
    pub async fn watch_waiting_nodes(&self) {
        let mut ticks = tokio::time::interval(self.settings().check_interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.check_waiting_nodes().await {
                tracing::error!("waiting nodes cannot be checked: {error}");
            }
        }
    }

    /// Ends what must not outlive the conductor.
    pub async fn shut_down(&self) {
        for driver in self.0.services.drivers.values() {
            driver.shut_down().await;
        }
    }

    /// What happened to the nodes.
    pub fn events(&self) -> &EventLog {
        &self.0.services.events
    }

    /// Times and addresses in use.
    pub fn settings(&self) -> &Settings {
        &self.0.services.settings
    }

    /// Enrols a node.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for an unusable field, [`Error::Power`] when the driver cannot work with
    /// its `driver_info`, [`Error::Store`] when name or address are taken.
    pub async fn create_node(&self, new: NewNode) -> Result<Node, Error> {
        check_name(&new.name)?;
        if new.ports.is_empty() {
            return Err(Error::invalid(
                "ports",
                "at least one MAC address is needed, to know the machine by",
            ));
        }
        let node = Node::enrol(new);
        self.0.services.power(&node)?.validate(&node).await?;
        self.store().create(&node).await?;
        Ok(node)
    }

    /// Every node, by name, secrets masked.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub async fn nodes(&self) -> Result<Vec<Node>, Error> {
        Ok(self.store().list().await?.iter().map(|node| self.shown(node)).collect())
    }

    /// The node with this name or identity, secrets masked.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`].
    pub async fn node(&self, id: &str) -> Result<Node, Error> {
        Ok(self.shown(&self.find(id).await?))
    }

    /// Deletes a node that has no instance, and powers its machine off.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidState`] while it has an instance or is worked on.
    pub async fn delete_node(&self, id: &str) -> Result<(), Error> {
        use ProvisionState::{Available, DeployFailed, Error as Failed};
        let mut task = Task::acquire(&self.0.services, id).await?;
        if ![Available, DeployFailed, Failed].contains(&task.node.provision_state) {
            return Err(Error::wrong_state(&task.node, [Available, DeployFailed, Failed]));
        }
        task.power_off().await?;
        task.power.forget(&task.node).await?;
        self.store().delete(task.node.uuid).await?;
        self.events().forget(task.node.uuid);
        self.0.services.locks.forget(task.node.uuid);
        Ok(())
    }

    /// Powers a machine on, off, or off and on.
    ///
    /// # Errors
    ///
    /// [`Error::Power`], [`Error::NodeLocked`].
    pub async fn set_power(&self, id: &str, action: PowerAction) -> Result<(), Error> {
        let mut task = Task::acquire(&self.0.services, id).await?;
        if action != PowerAction::On {
            task.power_off().await?;
        }
        if action != PowerAction::Off {
            task.power_on(None).await?;
        }
        Ok(())
    }

    /// Starts a deployment of the image that `instance_info` names, and returns the sequence number
    /// of its first event.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidState`], [`Error::Invalid`] for an unusable image, [`Error::Power`] when the
    /// driver cannot boot the ramdisk.
    pub async fn deploy(&self, id: &str, instance_info: Map<String, Value>) -> Result<u64, Error> {
        let mut task = Task::acquire(&self.0.services, id).await?;
        let events = [Event::Deploy, Event::Rebuild];
        let allowed = events.into_iter().find(|event| task.node.provision_state.after(*event).is_some());
        let event = allowed.ok_or_else(|| Error::not_allowed(&task.node, Event::Deploy))?;
        Image::from_instance_info(&instance_info)?;
        task.power.validate(&task.node).await?;
        task.node.instance_info = instance_info;
        task.node.last_error = None;
        task.node.driver_internal_info = DriverInternalInfo::default();
        task.apply(event).await?;
        let first = self.events().begin(task.node.uuid);
        let conductor = self.clone();
        self.supervise(task.node.uuid, async move {
            steps::start(&mut task, &*conductor.0.deploy).await;
            conductor.0.watches.start(&task.node);
        });
        Ok(first)
    }

    /// Powers a machine off and removes its instance from the record; the disk stays as it is.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidState`], [`Error::Power`] when the machine stays on.
    pub async fn undeploy(&self, id: &str) -> Result<(), Error> {
        let mut task = Task::acquire(&self.0.services, id).await?;
        task.apply(Event::Delete).await?;
        if let Err(error) = task.power_off().await {
            task.fail(&error.to_string()).await;
            return Err(error);
        }
        task.end_plan();
        task.node.instance_info.clear();
        task.node.driver_internal_info = DriverInternalInfo::default();
        // There is no automated cleaning yet.
        task.apply(Event::Clean).await?;
        task.apply(Event::Done).await
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.0.services.store.as_ref()
    }

    /// The record with this name or identity, secrets included.
    pub(crate) async fn find(&self, id: &str) -> Result<Node, Error> {
        self.0.services.find(id).await
    }

    pub(crate) fn is_locked(&self, node: Uuid) -> bool {
        self.0.services.locks.is_locked(node)
    }

    /// Locks a node at once or not at all.
    pub(crate) async fn try_acquire(&self, uuid: Uuid) -> Result<Task, Error> {
        Task::try_acquire(&self.0.services, uuid).await
    }

    /// Goes on with a node that waits for its agent, which was heard of.
    pub(crate) async fn advance(&self, task: &mut Task) {
        steps::advance(task, &*self.0.deploy).await;
        self.0.watches.start(&task.node);
    }

    /// Runs work on a node in the background. Work that panics fails the node's operation.
    pub(crate) fn supervise(&self, node: Uuid, work: impl Future<Output = ()> + Send + 'static) {
        let conductor = self.clone();
        tokio::spawn(async move {
            if tokio::spawn(work).await.is_err() {
                match conductor.try_acquire(node).await {
                    Ok(mut task) => task.fail("the conductor's own work crashed; see its log").await,
                    Err(error) => tracing::error!("work on a node crashed and cannot be failed: {error}"),
                }
            }
        });
    }

    fn shown(&self, node: &Node) -> Node {
        let mut shown = node.masked();
        shown.reservation = self.is_locked(node.uuid).then(|| "farrier".to_owned());
        shown
    }

    /// Nodes are looked at without their lock, so that no lookup or heartbeat is turned away for it.
    async fn check_waiting_nodes(&self) -> Result<(), Error> {
        for node in self.store().list().await? {
            if self.stuck(&node, &*self.0.services.power(&node)?).await.is_none() {
                continue;
            }
            // A node that is locked is being worked on, so it is not stuck.
            let Ok(mut task) = self.try_acquire(node.uuid).await else { continue };
            if let Some(reason) = self.stuck(&task.node, &*task.power).await {
                task.fail(&reason).await;
            }
        }
        Ok(())
    }

    /// Why a node that waits will not go on by itself, if so.
    async fn stuck(&self, node: &Node, power: &dyn PowerInterface) -> Option<String> {
        if node.provision_state != ProvisionState::DeployWait {
            return None;
        }
        let limit = self.settings().deploy_callback_timeout;
        let step = node.deploy_step.as_ref().map_or("deploy", |step| step.step.as_str());
        if matches!(power.power_state(node).await, Ok(PowerState::Off)) {
            return Some(format!(
                "node {}: the machine went off while it was waited for (step {step}); {}",
                node.name,
                console::hint(node, power)
            ));
        }
        if OffsetDateTime::now_utc() - node.provision_updated_at < limit {
            return None;
        }
        let agent = match &node.driver_internal_info.agent.agent_url {
            Some(url) => format!("the agent at {url} was silent"),
            None => "no agent called".to_owned(),
        };
        Some(format!(
            "node {}: {agent} for {} s (step {step}); check the machine's network (link, DHCP, way to {}) and {}",
            node.name,
            limit.as_secs_f64(),
            power.conductor_url(&self.settings().api_url),
            console::hint(node, power)
        ))
    }
}

/// Names appear in paths and URLs, and must not be taken for an identity.
fn check_name(name: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let usable = !name.is_empty() && name.len() <= 255 && name.chars().all(plain);
    if !usable || name.starts_with('.') || name.parse::<Uuid>().is_ok() {
        let reason =
            format!("{name:?} must be letters, digits, '.', '_' and '-', not start with '.' and be no UUID");
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
            ("", false),
            (".hidden", false),
            ("a/b", false),
            ("a b", false),
            ("1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11", false),
        ] {
            assert_eq!(check_name(name).is_ok(), usable, "{name:?}");
        }
    }
}
