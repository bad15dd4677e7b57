//! What a task does to its machine. The lease lasts while it is done.

use super::Task;
use crate::error::Error;
use crate::heartbeat::SessionEnd;
use crate::interfaces::{Boot, PowerInterface};
use crate::model::PowerState;
use farrier_media::KernelParameters;
use std::sync::Arc;

impl Task {
    /// The power state as the machine tells it now.
    pub(crate) async fn power_state(&self) -> Result<PowerState, Error> {
        Ok(self.machine().await?.power_state(&self.node).await?)
    }

    /// Powers the machine on, which counts once saved.
    pub(crate) async fn power_on(&mut self) -> Result<(), Error> {
        self.machine().await?.power_on(&self.node).await?;
        self.node.power_state = Some(PowerState::On);
        Ok(())
    }

    /// Powers the machine off, which counts once saved. The agent is forgotten before, so that no late heartbeat of it
    /// is taken for one of the next boot (pitfall 13.6).
    pub(crate) async fn power_off(&mut self) -> Result<(), Error> {
        self.forget_agent().await?;
        self.machine().await?.power_off(&self.node).await?;
        self.node.power_state = Some(PowerState::Off);
        Ok(())
    }

    /// Powers the machine off and on, which counts once saved. The agent is forgotten before, as by [`Self::power_off`].
    pub(crate) async fn reboot(&mut self) -> Result<(), Error> {
        self.forget_agent().await?;
        self.machine().await?.reboot(&self.node).await?;
        self.node.power_state = Some(PowerState::On);
        Ok(())
    }

    /// Has the next power-on start the ramdisk with these kernel parameters. It may be asked for again and again.
    pub(crate) async fn prepare_ramdisk(&mut self, parameters: KernelParameters) -> Result<(), Error> {
        self.set_boot(Boot::Ramdisk(parameters)).await
    }

    /// Undoes [`Self::prepare_ramdisk`]; nothing happens where nothing was prepared.
    pub(crate) async fn clean_up_ramdisk(&mut self) -> Result<(), Error> {
        self.set_boot(Boot::Disk).await
    }

    /// Has the machine start its instance from now on.
    pub(crate) async fn prepare_instance(&mut self) -> Result<(), Error> {
        self.set_boot(Boot::Disk).await
    }

    /// Undoes [`Self::prepare_instance`]; nothing happens where nothing was prepared.
    pub(crate) async fn clean_up_instance(&mut self) -> Result<(), Error> {
        self.set_boot(Boot::Disk).await
    }

    /// The kernel parameters by which an agent finds this conductor (section 6.3).
    pub(crate) async fn agent_options(&self) -> Result<KernelParameters, Error> {
        let url = self.machine().await?.conductor_url(&self.services.settings.api_url);
        let found = KernelParameters::default().with("ipa-api-url", &url);
        found.map_err(|error| Error::invalid("the conductor's API URL", error.to_string()))
    }

    /// Control of the machine.
    pub(crate) async fn machine(&self) -> Result<Arc<dyn PowerInterface>, Error> {
        self.reservation.hold().await?;
        self.services.power(&self.node)
    }

    async fn set_boot(&self, boot: Boot) -> Result<(), Error> {
        Ok(self.machine().await?.set_boot(&self.node, &boot).await?)
    }

    async fn forget_agent(&mut self) -> Result<(), Error> {
        self.end_session(SessionEnd::PowerAction);
        self.save().await
    }
}
