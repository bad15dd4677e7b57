//! The power interface `ilo`.

use super::driver_info_keys::{KEYS, as_redfish, of_ilo};
use crate::redfish::{Bmcs, Lasting, RedfishPower};
use async_trait::async_trait;
use farrier_conductor::interfaces::{Interface, InterfaceError, PowerInterface, Properties};
use farrier_conductor::model::{Node, PowerState};

/// Switches machines by their iLOs.
#[derive(Debug)]
pub struct IloPower(RedfishPower);

impl IloPower {
    /// Switches the machines of these iLOs. What `lasting` says is restored whenever one is powered on.
    pub fn new(bmcs: Bmcs, lasting: Lasting) -> Self {
        Self(RedfishPower::new(bmcs, lasting))
    }
}

#[async_trait]
impl Interface for IloPower {
    fn get_properties(&self) -> Properties {
        KEYS
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        self.0.validate(&as_redfish(node)?).await.map_err(of_ilo)
    }
}

#[async_trait]
impl PowerInterface for IloPower {
    async fn power_state(&self, node: &Node) -> Result<PowerState, InterfaceError> {
        self.0.power_state(&as_redfish(node)?).await.map_err(of_ilo)
    }

    async fn power_on(&self, node: &Node) -> Result<(), InterfaceError> {
        self.0.power_on(&as_redfish(node)?).await.map_err(of_ilo)
    }

    async fn power_off(&self, node: &Node) -> Result<(), InterfaceError> {
        self.0.power_off(&as_redfish(node)?).await.map_err(of_ilo)
    }

    fn supports_reset(&self, node: &Node) -> bool {
        self.0.supports_reset(node)
    }

    async fn reset(&self, node: &Node) -> Result<(), InterfaceError> {
        self.0.reset(&as_redfish(node)?).await.map_err(of_ilo)
    }

    fn supports_soft_power_off(&self, node: &Node) -> bool {
        self.0.supports_soft_power_off(node)
    }

    async fn soft_power_off(&self, node: &Node) -> Result<(), InterfaceError> {
        self.0.soft_power_off(&as_redfish(node)?).await.map_err(of_ilo)
    }

    async fn forget(&self, node: &Node) -> Result<(), InterfaceError> {
        self.0.forget(node).await
    }

    async fn shut_down(&self) {
        self.0.shut_down().await;
    }
}
