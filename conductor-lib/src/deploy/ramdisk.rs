//! The ramdisk deploy: the machine boots a ramdisk, or an ISO, that is its instance, and no disk is touched (section
//! 5.8).

use crate::deploy::AgentDeploy;
use crate::error::Error;
use crate::interfaces::base::{Interface, InterfaceError};
use crate::interfaces::boot::{BootCapability, BootNeed};
use crate::interfaces::outcome::Outcome;
use crate::model::{Node, PlannedStep, RamdiskInstance, StepKind};
use crate::plan::KnownStep;
use crate::task::Task;
use crate::task::event::EventKind;
use async_trait::async_trait;
use std::ops::RangeInclusive;

/// The machine boots its instance into memory, at every start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ramdisk;

#[async_trait]
impl Interface for Ramdisk {
    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        let read = RamdiskInstance::read(node);
        read.map(drop).map_err(|error| super::invalid(error.into()))
    }
}

#[async_trait]
impl AgentDeploy for Ramdisk {
    fn boot_need(&self) -> BootNeed {
        BootNeed::Capability(BootCapability::RamdiskBoot)
    }

    fn core_steps(&self) -> Vec<KnownStep> {
        let deploy = KnownStep::new(StepKind::Deploy, "deploy", "deploy", 100);
        vec![KnownStep { requires_ramdisk: false, ..deploy }]
    }

    /// No agent runs in a deployment; cleaning and service have one.
    fn in_band(&self) -> RangeInclusive<i64> {
        RangeInclusive::new(1, 0)
    }

    fn supports_deploy(&self, node: &Node) -> bool {
        let has = |key: &str| node.instance_info.get(key).is_some_and(|value| !value.is_null());
        let is_marked = node.instance_info.flag("ironic_ramdisk_deploy").is_ok_and(|mark| mark == Some(true));
        is_marked || has("boot_iso") || has("kernel") && has("ramdisk") && !has("image_source")
    }

    async fn execute(&self, task: &mut Task, _step: &PlannedStep) -> Result<Outcome, Error> {
        task.power_off().await?;
        task.attach_volumes().await?;
        task.configure_tenant_networks().await?;
        task.prepare_instance().await?;
        task.power_on().await?;
        task.emit(EventKind::Booting);
        Ok(Outcome::Done)
    }
}
