//! The power interface `ipmitool` (section 9.7). An order counts as carried out when the machine says so; one that the BMC
//! forgot is given again.

use super::bmcs::{Bmc, Bmcs};
use super::connection::{self, Connection};
use super::error::IpmiError;
use async_trait::async_trait;
use farrier_conductor::interfaces::{Interface, InterfaceError, PowerInterface, Properties};
use farrier_conductor::model::{Node, PowerState};
use tokio::time::Instant;

const STATUS: &[&str] = &["power", "status"];

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

    /// Tells a machine to be on or off until it is. The pace of its BMC is the pause between two readings.
    async fn drive(&self, node: &Node, wanted: PowerState) -> Result<(), InterfaceError> {
        let (bmc, settings) = (self.bmcs.bmc(node)?, self.bmcs.settings());
        let (start, mut told) = (Instant::now(), None::<Instant>);
        loop {
            let state = state(&bmc).await?;
            if state == wanted {
                return Ok(());
            }
            if start.elapsed() >= settings.power_wait {
                let (bmc, limit) = (bmc.connection.label(), settings.power_wait);
                let (told, says) = (wanted.to_string(), state.to_string());
                return Err(IpmiError::NotDone { bmc, told, says, limit }.into());
            }
            if told.is_none_or(|told| told.elapsed() >= settings.power_retry) {
                let order = if wanted == PowerState::On { "on" } else { "off" };
                bmc.run(&["power", order]).await?;
                told = Some(Instant::now());
            }
        }
    }
}

async fn state(bmc: &Bmc) -> Result<PowerState, IpmiError> {
    let said = bmc.run(STATUS).await?;
    match said.trim() {
        "Chassis Power is on" => Ok(PowerState::On),
        "Chassis Power is off" => Ok(PowerState::Off),
        other => Err(bmc.nonsense(STATUS, other)),
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
        Ok(self.bmcs.bmc(node)?.run(&["power", "reset"]).await.map(drop)?)
    }

    fn supports_soft_power_off(&self, _node: &Node) -> bool {
        true
    }

    async fn soft_power_off(&self, node: &Node) -> Result<(), InterfaceError> {
        Ok(self.bmcs.bmc(node)?.run(&["power", "soft"]).await.map(drop)?)
    }
}
