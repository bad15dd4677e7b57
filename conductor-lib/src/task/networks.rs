//! The networks of a task's machine, and the power that its cards need while these change (sections 9.8 and 9.9). The
//! lease lasts while it is done.

use super::Task;
use super::act::{Call, act};
use crate::error::Error;
use crate::interfaces::base::InterfaceError;
use crate::interfaces::network::{NetworkInterface, NetworkKind};
use crate::model::InterfaceKind::{self, Network};
use crate::model::{BootDevice, PowerState};
use std::sync::Arc;

/// A change of a machine's networks. Each may be asked for again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkChange {
    /// It joins the network of an operation.
    Add(NetworkKind),
    /// It leaves the network of an operation; nothing happens where it is not on it.
    Remove(NetworkKind),
    /// It joins the networks of its instance.
    ConfigureTenant,
    /// It leaves the networks of its instance; nothing happens where it is on none.
    UnconfigureTenant,
}

impl NetworkChange {
    /// The method of the network interface.
    fn method(self) -> &'static str {
        match self {
            Self::Add(_) => "add_network",
            Self::Remove(_) => "remove_network",
            Self::ConfigureTenant => "configure_tenant_networks",
            Self::UnconfigureTenant => "unconfigure_tenant_networks",
        }
    }
}

impl Task {
    /// Changes the networks of the machine, in this order; what is noted in its ports counts once saved. A machine that
    /// is off, and whose cards need it to be on meanwhile, is powered on for that, and off again.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`], [`Error::Interface`], [`Error::Host`].
    pub async fn change_networks(&mut self, changes: &[NetworkChange]) -> Result<(), Error> {
        let network = self.network()?;
        self.read_port_groups().await?;
        if changes.is_empty() || !network.need_power_on(&self.node) {
            return self.apply(&*network, changes).await;
        }
        self.power_on_for_network().await?;
        let changed = self.apply(&*network, changes).await;
        // It goes off whether or not its networks could be changed.
        changed.and(self.power_off_after_network().await)
    }

    /// Has the groups of the node's ports at hand, as they are now.
    pub async fn read_port_groups(&mut self) -> Result<(), Error> {
        self.node.port_groups.clear();
        if self.node.ports.iter().any(|port| port.portgroup_id.is_some()) {
            self.node.port_groups = self.host.port_groups().await?;
        }
        Ok(())
    }

    /// Connects the machine to the network of an operation; what is noted in its ports counts once saved.
    ///
    /// # Errors
    ///
    /// As [`Self::change_networks`].
    pub async fn add_network(&mut self, kind: NetworkKind) -> Result<(), Error> {
        self.change_networks(&[NetworkChange::Add(kind)]).await
    }

    /// Undoes [`Self::add_network`]; nothing happens where nothing was connected.
    ///
    /// # Errors
    ///
    /// As [`Self::change_networks`].
    pub async fn remove_network(&mut self, kind: NetworkKind) -> Result<(), Error> {
        self.change_networks(&[NetworkChange::Remove(kind)]).await
    }

    /// Connects the machine to the networks of its instance; what is noted in its ports counts once saved.
    ///
    /// # Errors
    ///
    /// As [`Self::change_networks`].
    pub async fn configure_tenant_networks(&mut self) -> Result<(), Error> {
        self.change_networks(&[NetworkChange::ConfigureTenant]).await
    }

    /// Undoes [`Self::configure_tenant_networks`]; nothing happens where nothing was connected.
    ///
    /// # Errors
    ///
    /// As [`Self::change_networks`].
    pub async fn unconfigure_tenant_networks(&mut self) -> Result<(), Error> {
        self.change_networks(&[NetworkChange::UnconfigureTenant]).await
    }

    /// Detaches the virtual interfaces of an instance that ends (section 1.13), which counts once saved. It ends whether
    /// or not that can be done: what went wrong is in the log.
    pub async fn detach_vifs(&mut self) {
        let failed = match self.network() {
            Ok(network) => match self.ask(Network, "vif_list", network.vif_list(&self.node)).await {
                Ok(vifs) => self.detach(&*network, &vifs).await,
                Err(Error::Interface(InterfaceError::Unsupported { .. })) => Ok(()),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        if let Err(error) = failed {
            tracing::warn!(node = %self.node.label(), "virtual interfaces cannot be detached: {error}");
        }
    }

    async fn detach(&mut self, network: &dyn NetworkInterface, vifs: &[String]) -> Result<(), Error> {
        let mut outcome = Ok(());
        for vif in vifs {
            let (call, limit) =
                (Call::of(&self.node, Network, "vif_detach"), self.settings().interface_timeout);
            let detaches = network.vif_detach(&mut self.node, vif);
            outcome = outcome.and(act(&self.host, call, limit, detaches).await);
        }
        outcome
    }

    async fn apply(
        &mut self,
        network: &dyn NetworkInterface,
        changes: &[NetworkChange],
    ) -> Result<(), Error> {
        for change in changes {
            let (call, limit) =
                (Call::of(&self.node, Network, change.method()), self.settings().interface_timeout);
            let node = &mut self.node;
            let changes = async {
                match change {
                    NetworkChange::Add(kind) => network.add_network(node, *kind).await,
                    NetworkChange::Remove(kind) => network.remove_network(node, *kind).await,
                    NetworkChange::ConfigureTenant => network.configure_tenant_networks(node).await,
                    NetworkChange::UnconfigureTenant => network.unconfigure_tenant_networks(node).await,
                }
            };
            act(&self.host, call, limit, changes).await?;
        }
        Ok(())
    }

    /// Powers a machine on that is off, and records it before: the conductor that takes over after one that stopped
    /// knows that it is to be off.
    async fn power_on_for_network(&mut self) -> Result<(), Error> {
        if self.power_state().await? == PowerState::On {
            return Ok(());
        }
        self.stay_in_setup().await?;
        self.node.driver_internal_info.is_on_for_network = true;
        self.save().await?;
        self.power_on().await
    }

    /// Has the machine start its setup once, where it can be told so: nothing is to run on it now.
    async fn stay_in_setup(&self) -> Result<(), Error> {
        let management = self.host.hardware().management(&self.node)?;
        if !management.get_supported_boot_devices(&self.node).contains(&BootDevice::Bios) {
            return Ok(());
        }
        let sets = management.set_boot_device(&self.node, BootDevice::Bios, false);
        self.act(InterfaceKind::Management, "set_boot_device", sets).await
    }

    async fn power_off_after_network(&mut self) -> Result<(), Error> {
        if !self.node.driver_internal_info.is_on_for_network {
            return Ok(());
        }
        self.power_off().await?;
        self.node.driver_internal_info.is_on_for_network = false;
        self.save().await
    }

    pub(super) fn network(&self) -> Result<Arc<dyn NetworkInterface>, Error> {
        Ok(self.host.hardware().network(&self.node)?)
    }
}
