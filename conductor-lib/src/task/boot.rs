//! What a task does to its machine, by the node's interfaces. The lease lasts while it is done.
//!
//! Every method fails with [`Error::Unresolved`] when the node has an interface that it cannot have, with
//! [`Error::Interface`] when that cannot do its part, and with [`Error::Host`] when the lease is lost.

use super::Task;
use crate::error::Error;
use crate::hardware_type::{Hardware, NodeBoot, Unresolved};
use crate::interfaces::boot::BootCapability;
use crate::interfaces::network::NetworkKind;
use crate::model::{InterfaceKind, Node, ProvisionState, RamdiskInstance};
use crate::settings::Settings;
use crate::task::change::BootTraceChange;
use farrier_media::{KernelParameterError, KernelParameters};

impl Task {
    /// Checks that the machine can be controlled, connected and booted, without touching it.
    pub async fn validate(&self) -> Result<(), Error> {
        self.node.driver_info.fast_track()?;
        self.check_reset()?;
        let hardware = self.host.hardware();
        hardware.composition.check_boot(&self.node)?;
        for (kind, interface) in hardware.that_control(&self.node)? {
            self.ask(kind, "validate", interface.validate(&self.node)).await?;
        }
        Ok(())
    }

    /// Checks that the machine can be switched, without touching it.
    pub async fn validate_power(&self) -> Result<(), Error> {
        self.check_reset()?;
        let power = self.host.hardware().power(&self.node)?;
        self.ask(InterfaceKind::Power, "validate", power.validate(&self.node)).await
    }

    /// Checks that the machine can boot the ramdisk for a rescue, and be reached by it, without touching it.
    pub(crate) async fn validate_rescue_boot(&self) -> Result<(), Error> {
        let (boot, network) = (self.boot()?, self.network()?);
        self.ask(InterfaceKind::Boot, "validate_rescue", boot.boot.validate_rescue(&self.node)).await?;
        let validates = network.validate_network(&self.node, NetworkKind::Rescuing);
        self.ask(InterfaceKind::Network, "validate_network", validates).await
    }

    /// Forgets what the driver keeps about the machine.
    pub async fn forget_machine(&mut self) -> Result<(), Error> {
        let power = self.power()?;
        self.act(InterfaceKind::Power, "forget", power.forget(&self.node)).await?;
        match self.host.hardware().console(&self.node) {
            Ok(console) => Ok(console.forget(&self.node).await?),
            // One that there is not keeps nothing.
            Err(_) => Ok(()),
        }
    }

    /// The kernel parameters by which an agent finds this conductor (section 6.3).
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] when the conductor's URL cannot be a kernel parameter.
    pub fn agent_options(&self) -> Result<KernelParameters, Error> {
        let found = KernelParameters::default().with("ipa-api-url", &self.callback_url());
        found.map_err(|error| Error::invalid("the conductor's API URL", error.to_string()))
    }

    /// Has the next power-on start the ramdisk with these kernel parameters. It may be asked for again and again. Where
    /// firmware asks what to boot, they are on record before, for whichever conductor is asked. Where the boot interface
    /// fails, what the operator has named to fall back to is tried in its place.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`], [`Error::Interface`], [`Error::Host`].
    pub async fn prepare_ramdisk(&mut self, parameters: KernelParameters) -> Result<(), Error> {
        loop {
            match self.prepare_ramdisk_once(parameters.clone()).await {
                Err(Error::Interface(error)) => {
                    if !self.fall_back(&error.to_string()).await? {
                        return Err(error.into());
                    }
                }
                done => return done,
            }
        }
    }

    async fn prepare_ramdisk_once(&mut self, parameters: KernelParameters) -> Result<(), Error> {
        let boot = self.boot()?;
        // Firmware that asks for its kernel line proves nothing, so what is told to it holds no token.
        let parameters = match boot.boot.extension().can_provide_config() && !is_asked(&boot) {
            true => self.with_token(parameters).await?,
            false => {
                self.forget_token_of_medium().await?;
                parameters
            }
        };
        let prepares = boot.boot.prepare_ramdisk(boot.context(&self.node), &parameters);
        self.act(InterfaceKind::Boot, "prepare_ramdisk", prepares).await?;
        self.renew_boot_trace(&boot);
        self.host.forget_diagnosis();
        if is_asked(&boot) {
            self.node.driver_internal_info.ramdisk_parameters = Some(parameters.to_string());
            self.save().await?;
        }
        Ok(())
    }

    /// Parameters with the token of the agent that is going to run, on record before anything boots with it. It is a new one
    /// for each boot: the agent before may call once more while it ends, and is not to be taken for the next. One that runs
    /// keeps what it has.
    async fn with_token(&mut self, parameters: KernelParameters) -> Result<KernelParameters, Error> {
        if self.session.agent_url.is_none() {
            self.session.agent_secret_token = None;
            self.issue_token();
            self.session.agent_secret_token_pregenerated = true;
            self.save().await?;
        }
        let token =
            self.session.agent_secret_token.as_ref().filter(|_| self.session.agent_secret_token_pregenerated);
        let Some(token) = token else { return Ok(parameters) };
        let with_token =
            with_proof(&parameters, token).and_then(|parameters| parameters.with("ipa-agent-token", token));
        with_token.map_err(|error| Error::invalid("the kernel parameters of the ramdisk", error.to_string()))
    }

    /// Forgets a token that a medium brings, where the machine boots from something else now: its agent is given one when it
    /// asks. An agent that runs keeps it until its machine is rebooted.
    async fn forget_token_of_medium(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.session.agent_secret_token_pregenerated) {
            return Ok(());
        }
        if self.session.agent_url.is_none() {
            self.session.agent_secret_token = None;
        }
        self.replace_session();
        self.save().await
    }

    /// Undoes [`Self::prepare_ramdisk`]; nothing happens where nothing was prepared.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`], [`Error::Interface`], [`Error::Host`].
    pub async fn clean_up_ramdisk(&mut self) -> Result<(), Error> {
        self.node.driver_internal_info.ramdisk_parameters = None;
        self.node.driver_internal_info.instance_waits_for_agent = false;
        if let Some(boot) = self.boot_if_any()? {
            let cleans_up = boot.boot.clean_up_ramdisk(boot.context(&self.node));
            self.act(InterfaceKind::Boot, "clean_up_ramdisk", cleans_up).await?;
        }
        self.node.driver_internal_info.boot_fallback = None;
        Ok(())
    }

    /// Has the machine start its instance from now on: the system on its disk, or a ramdisk where its deploy interface
    /// needs a boot interface that boots one. While the agent of a deployment runs from a medium, this waits until its machine
    /// starts the next time, and is done then.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`], [`Error::Interface`], [`Error::Host`]; [`Error::Invalid`] for a ramdisk that nothing can
    /// be booted by.
    pub async fn prepare_instance(&mut self) -> Result<(), Error> {
        let waits = self.agent_reads_medium().await?;
        self.node.driver_internal_info.instance_waits_for_agent = waits;
        match waits {
            true => Ok(()),
            false => self.prepare_instance_now().await,
        }
    }

    /// Whether the agent of a deployment runs from a medium, which must not be taken out until its machine is off.
    async fn agent_reads_medium(&self) -> Result<bool, Error> {
        let runs = self.session.agent_url.is_some()
            && self.node.provision_state == ProvisionState::Deploying
            && !self.is_switched_by_agent()?;
        Ok(runs && self.boot()?.boot.extension().runs_from_medium())
    }

    /// Prepares the instance where that has waited for the end of the agent, as its machine is about to start.
    pub(super) async fn prepare_waiting_instance(&mut self) -> Result<(), Error> {
        match std::mem::take(&mut self.node.driver_internal_info.instance_waits_for_agent) {
            true => self.prepare_instance_now().await,
            false => Ok(()),
        }
    }

    async fn prepare_instance_now(&mut self) -> Result<(), Error> {
        if self.node.driver_internal_info.boot_fallback.is_some() {
            self.clean_up_ramdisk().await?;
        }
        self.node.driver_internal_info.ramdisk_parameters = None;
        let boot = self.boot()?;
        self.boot_trace = BootTraceChange::End;
        if !self.host.hardware().composition.boots_ramdisk(&self.node)? {
            let prepares = boot.boot.prepare_instance(boot.context(&self.node));
            return self.act(InterfaceKind::Boot, "prepare_instance", prepares).await;
        }
        let instance = RamdiskInstance::read(&self.node)?;
        let config_drive = self.config_drive().await?;
        let context = boot.context(&self.node);
        let prepares =
            boot.boot.extension().prepare_ramdisk_instance(context, &instance, config_drive.as_deref());
        self.act(InterfaceKind::Boot, "prepare_ramdisk_instance", prepares).await?;
        self.renew_boot_trace(&boot);
        if is_asked(&boot) {
            self.node.driver_internal_info.netboots_instance = true;
            self.save().await?;
        }
        Ok(())
    }

    /// Undoes [`Self::prepare_instance`]; nothing happens where nothing was prepared.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`], [`Error::Interface`], [`Error::Host`].
    pub async fn clean_up_instance(&mut self) -> Result<(), Error> {
        self.node.driver_internal_info.netboots_instance = false;
        match self.boot_if_any()? {
            Some(boot) => {
                let cleans_up = boot.boot.clean_up_instance(boot.context(&self.node));
                self.act(InterfaceKind::Boot, "clean_up_instance", cleans_up).await
            }
            None => Ok(()),
        }
    }

    /// Attaches the node's volumes; nothing happens where they are attached.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`], [`Error::Interface`], [`Error::Host`].
    pub async fn attach_volumes(&mut self) -> Result<(), Error> {
        let storage = self.host.hardware().storage(&self.node)?;
        self.act(InterfaceKind::Storage, "attach_volumes", storage.attach_volumes(&self.node)).await
    }

    /// Detaches the node's volumes; nothing happens where they are detached.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`], [`Error::Interface`], [`Error::Host`].
    pub async fn detach_volumes(&mut self) -> Result<(), Error> {
        let storage = self.host.hardware().storage(&self.node)?;
        self.act(InterfaceKind::Storage, "detach_volumes", storage.detach_volumes(&self.node)).await
    }

    /// Has the next save end what is known of an earlier boot.
    fn renew_boot_trace(&mut self, boot: &NodeBoot) {
        self.host.forget_boot();
        let is_served = is_asked(boot) || boot.boot.extension().serves_medium();
        self.boot_trace = if is_served { BootTraceChange::Begin } else { BootTraceChange::End };
    }

    fn boot(&self) -> Result<NodeBoot, Error> {
        let hardware_type = self.node.driver.clone();
        let none = Unresolved::None { kind: InterfaceKind::Boot, hardware_type };
        Ok(self.boot_if_any()?.ok_or(none)?)
    }

    fn boot_if_any(&self) -> Result<Option<NodeBoot>, Error> {
        Ok(self.host.hardware().boot(&self.node)?)
    }
}

/// The ramdisk API as the machine of a node reaches it.
pub fn callback_url(node: &Node, hardware: &Hardware, settings: &Settings) -> String {
    let boot = hardware.boot(node).ok().flatten();
    boot.map_or_else(
        || settings.api_url.clone(),
        |boot| boot.boot.extension().callback_url(&settings.api_url),
    )
}

/// Parameters by which a ramdisk that posts its inventory proves to be booted with them: the token is in the URL that it
/// posts to.
fn with_proof(parameters: &KernelParameters, token: &str) -> Result<KernelParameters, KernelParameterError> {
    let with_proof = |word: &str| match word.strip_prefix("ipa-inspection-callback-url=") {
        Some(url) if !url.contains('?') => format!("{word}?agent_token={token}"),
        _ => word.to_owned(),
    };
    parameters.to_string().split(' ').map(with_proof).collect::<Vec<_>>().join(" ").parse()
}

/// Whether firmware asks this conductor what to boot, so that it has to be on record.
fn is_asked(boot: &NodeBoot) -> bool {
    boot.boot.capabilities().contains(&BootCapability::PxeBoot)
}
