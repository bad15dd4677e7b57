//! A machine that is not there: it is switched and booted, and notes what it was told.

use super::super::Drivers;
use crate::hardware_type::HardwareType;
use crate::interfaces::{BootContext, BootInterface, Interface, InterfaceError, PowerInterface};
use crate::model::{Node, PowerState};
use async_trait::async_trait;
use farrier_media::KernelParameters;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The hardware type of nodes with such a machine, and its power and boot interfaces.
pub(super) const NAME: &str = "fake";

/// A machine that is not there, off at first. Clones are the same machine.
#[derive(Debug, Clone, Default)]
pub struct FakeMachine(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    is_on: bool,
    told: Vec<String>,
    fails: Option<String>,
}

impl FakeMachine {
    /// The drivers, with a hardware type whose nodes have this machine and these deploy interfaces, the first of them
    /// by default.
    pub fn drivers(&self, drivers: Drivers, deploy: impl IntoIterator<Item = &'static str>) -> Drivers {
        let hardware_type = HardwareType::new(NAME).power([NAME]).boot([NAME]).deploy(deploy);
        drivers.power(NAME, self.clone()).boot(NAME, self.clone()).hardware_type(hardware_type)
    }

    /// Its orders, the first one first: `power on`, `power off`, `boot ramdisk …`, `clean up ramdisk`, `boot instance`.
    pub fn told(&self) -> Vec<String> {
        self.state().told.clone()
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.state().is_on
    }

    /// Lets it refuse every order from now on, for this reason.
    pub fn fail(&self, reason: impl Into<String>) {
        self.state().fails = Some(reason.into());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, what: impl Into<String>) -> Result<MutexGuard<'_, State>, InterfaceError> {
        let mut state = self.state();
        if let Some(reason) = state.fails.clone() {
            return Err(InterfaceError::driver(std::io::Error::other(reason)));
        }
        state.told.push(what.into());
        Ok(state)
    }
}

impl Interface for FakeMachine {}

#[async_trait]
impl PowerInterface for FakeMachine {
    async fn power_state(&self, _node: &Node) -> Result<PowerState, InterfaceError> {
        Ok(if self.is_on() { PowerState::On } else { PowerState::Off })
    }

    async fn power_on(&self, _node: &Node) -> Result<(), InterfaceError> {
        self.tell("power on")?.is_on = true;
        Ok(())
    }

    async fn power_off(&self, _node: &Node) -> Result<(), InterfaceError> {
        self.tell("power off")?.is_on = false;
        Ok(())
    }
}

#[async_trait]
impl BootInterface for FakeMachine {
    async fn prepare_ramdisk(
        &self,
        _boot: BootContext<'_>,
        parameters: &KernelParameters,
    ) -> Result<(), InterfaceError> {
        self.tell(format!("boot ramdisk {parameters}")).map(drop)
    }

    async fn clean_up_ramdisk(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        self.tell("clean up ramdisk").map(drop)
    }

    async fn prepare_instance(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        self.tell("boot instance").map(drop)
    }

    async fn clean_up_instance(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(())
    }
}
