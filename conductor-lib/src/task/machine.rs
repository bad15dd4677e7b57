//! What a task does to its machine, by the node's interfaces. The lease lasts while it is done.

use super::Task;
use crate::error::Error;
use crate::hardware_type::{NodeBoot, Unresolved};
use crate::heartbeat::SessionEnd;
use crate::interfaces::power::PowerInterface;
use crate::model::{InterfaceKind, PowerState};
use farrier_media::KernelParameters;
use std::sync::Arc;

impl Task {
    /// Checks that the machine can be controlled and booted, without touching it.
    pub(crate) async fn validate(&self) -> Result<(), Error> {
        let hardware = &self.services.hardware;
        hardware.composition.check_boot(&self.node)?;
        hardware.power(&self.node)?.validate(&self.node).await?;
        match hardware.boot(&self.node)? {
            Some(boot) => Ok(boot.boot.validate(&self.node).await?),
            None => Ok(()),
        }
    }

    /// The power state as the machine tells it now.
    pub(crate) async fn power_state(&self) -> Result<PowerState, Error> {
        Ok(self.power().await?.power_state(&self.node).await?)
    }

    /// Powers the machine on, which counts once saved.
    pub(crate) async fn power_on(&mut self) -> Result<(), Error> {
        self.power().await?.power_on(&self.node).await?;
        self.node.power_state = Some(PowerState::On);
        Ok(())
    }

    /// Powers the machine off, which counts once saved. The agent is forgotten before, so that no late heartbeat of it
    /// is taken for one of the next boot (pitfall 13.6).
    pub(crate) async fn power_off(&mut self) -> Result<(), Error> {
        self.forget_agent().await?;
        self.power().await?.power_off(&self.node).await?;
        self.node.power_state = Some(PowerState::Off);
        Ok(())
    }

    /// Powers the machine off and on, which counts once saved. The agent is forgotten before, as by [`Self::power_off`].
    pub(crate) async fn reboot(&mut self) -> Result<(), Error> {
        self.forget_agent().await?;
        self.power().await?.reboot(&self.node).await?;
        self.node.power_state = Some(PowerState::On);
        Ok(())
    }

    /// Forgets what the driver keeps about the machine.
    pub(crate) async fn forget_machine(&mut self) -> Result<(), Error> {
        Ok(self.power().await?.forget(&self.node).await?)
    }

    /// The kernel parameters by which an agent finds this conductor (section 6.3).
    pub(crate) fn agent_options(&self) -> Result<KernelParameters, Error> {
        let found = KernelParameters::default().with("ipa-api-url", &self.services.callback_url(&self.node));
        found.map_err(|error| Error::invalid("the conductor's API URL", error.to_string()))
    }

    /// Has the next power-on start the ramdisk with these kernel parameters. It may be asked for again and again.
    pub(crate) async fn prepare_ramdisk(&mut self, parameters: KernelParameters) -> Result<(), Error> {
        let boot = self.boot().await?;
        Ok(boot.boot.prepare_ramdisk(boot.context(&self.node), &parameters).await?)
    }

    /// Undoes [`Self::prepare_ramdisk`]; nothing happens where nothing was prepared.
    pub(crate) async fn clean_up_ramdisk(&mut self) -> Result<(), Error> {
        match self.boot_if_any().await? {
            Some(boot) => Ok(boot.boot.clean_up_ramdisk(boot.context(&self.node)).await?),
            None => Ok(()),
        }
    }

    /// Has the machine start its instance from now on.
    pub(crate) async fn prepare_instance(&mut self) -> Result<(), Error> {
        let boot = self.boot().await?;
        Ok(boot.boot.prepare_instance(boot.context(&self.node)).await?)
    }

    /// Undoes [`Self::prepare_instance`]; nothing happens where nothing was prepared.
    pub(crate) async fn clean_up_instance(&mut self) -> Result<(), Error> {
        match self.boot_if_any().await? {
            Some(boot) => Ok(boot.boot.clean_up_instance(boot.context(&self.node)).await?),
            None => Ok(()),
        }
    }

    async fn power(&self) -> Result<Arc<dyn PowerInterface>, Error> {
        self.reservation.hold().await?;
        Ok(self.services.hardware.power(&self.node)?)
    }

    async fn boot(&self) -> Result<NodeBoot, Error> {
        let hardware_type = self.node.driver.clone();
        let none = Unresolved::None { kind: InterfaceKind::Boot, hardware_type };
        Ok(self.boot_if_any().await?.ok_or(none)?)
    }

    async fn boot_if_any(&self) -> Result<Option<NodeBoot>, Error> {
        self.reservation.hold().await?;
        Ok(self.services.hardware.boot(&self.node)?)
    }

    async fn forget_agent(&mut self) -> Result<(), Error> {
        self.end_session(SessionEnd::PowerAction);
        self.save().await
    }
}
