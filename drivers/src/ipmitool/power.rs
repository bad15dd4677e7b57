//! The power interface `ipmitool` (section 9.7). An order counts as carried out when the machine says so; one that the BMC
//! forgot is given again.

use super::bmcs::{Bmc, Bmcs};
use super::connection::{self, Connection};
use super::error::IpmiError;
use async_trait::async_trait;
use farrier_conductor::interfaces::{Interface, InterfaceError, PowerInterface, Properties};
use farrier_conductor::model::{Node, PowerState};
use tokio::time::Instant;

pub(super) const STATUS: &[&str] = &["power", "status"];

/// Switches machines by ipmitool.
#[derive(Debug)]
pub struct IpmiPower {
    bmcs: Bmcs,
}

impl IpmiPower {
    /// Switches the machines of these BMCs.
    pub fn new(bmcs: Bmcs) -> Self {
        Self { bmcs }
    }

    /// Repeats a power order until the machine is on or off. The rate limit of its BMC is the pause between two readings; one that fails, and
    /// an order that is refused, decide nothing while there is time: what counts is what the machine says next.
    async fn drive(&self, node: &Node, wanted: PowerState) -> Result<(), InterfaceError> {
        let (bmc, settings) = (self.bmcs.bmc(node)?, self.bmcs.settings());
        let (start, mut ordered_at, mut failure) = (Instant::now(), None::<Instant>, None);
        loop {
            let state = state(&bmc).await;
            match &state {
                Ok(state) if *state == wanted => return Ok(()),
                Err(error) if error.is_final() || ordered_at.is_none() => return Ok(state.map(drop)?),
                _ => {}
            }
            if start.elapsed() >= settings.power_wait {
                return Err(failure.unwrap_or_else(|| self.not_done(&bmc, wanted, state)).into());
            }
            if ordered_at.is_none_or(|at| at.elapsed() >= settings.power_retry) {
                let order = if wanted == PowerState::On { "on" } else { "off" };
                failure = bmc.run(&["power", order]).await.err();
                ordered_at = Some(Instant::now());
            }
            if let Some(error) = failure.take_if(|error| error.is_final()) {
                return Err(error.into());
            }
        }
    }

    fn not_done(&self, bmc: &Bmc, wanted: PowerState, state: Result<PowerState, IpmiError>) -> IpmiError {
        match state {
            Ok(state) => {
                let (bmc, limit) = (bmc.connection.label(), self.bmcs.settings().power_wait);
                IpmiError::NotDone { bmc, order: wanted.to_string(), says: state.to_string(), limit }
            }
            Err(error) => error,
        }
    }
}

async fn state(bmc: &Bmc) -> Result<PowerState, IpmiError> {
    let said = bmc.run(STATUS).await?;
    let power = said.lines().find_map(|line| line.trim().rsplit_once("Power is ")).map(|(_, power)| power);
    match power.map(str::to_ascii_lowercase).as_deref() {
        Some("on") => Ok(PowerState::On),
        Some("off") => Ok(PowerState::Off),
        _ => Err(bmc.nonsense(STATUS, said.trim())),
    }
}

#[async_trait]
impl Interface for IpmiPower {
    fn get_properties(&self) -> Properties {
        connection::KEYS
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        Connection::read(node).map(drop)
    }
}

#[async_trait]
impl PowerInterface for IpmiPower {
    async fn power_state(&self, node: &Node) -> Result<PowerState, InterfaceError> {
        Ok(state(&self.bmcs.bmc(node)?).await?)
    }

    async fn power_on(&self, node: &Node) -> Result<(), InterfaceError> {
        self.drive(node, PowerState::On).await
    }

    async fn power_off(&self, node: &Node) -> Result<(), InterfaceError> {
        self.drive(node, PowerState::Off).await
    }

    fn supports_reset(&self, _node: &Node) -> bool {
        true
    }

    async fn reset(&self, node: &Node) -> Result<(), InterfaceError> {
        Ok(self.bmcs.bmc(node)?.run_once(&["power", "reset"]).await.map(drop)?)
    }

    fn supports_soft_power_off(&self, _node: &Node) -> bool {
        true
    }

    async fn soft_power_off(&self, node: &Node) -> Result<(), InterfaceError> {
        Ok(self.bmcs.bmc(node)?.run_once(&["power", "soft"]).await.map(drop)?)
    }
}
