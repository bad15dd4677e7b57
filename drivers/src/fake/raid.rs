//! Makes no volumes.

use async_trait::async_trait;
use farrier_conductor::in_band::AgentRaid;
use farrier_conductor::interfaces::{DriverStep, Interface, InterfaceError, Properties, RaidInterface};
use farrier_conductor::model::{Node, PlannedStep, StepKind};
use farrier_conductor::plan::KnownStep;
use serde_json::{Map, Value};

/// Takes every description of volumes.
#[derive(Debug)]
pub(super) struct FakeRaid;

#[async_trait]
impl Interface for FakeRaid {
    fn steps(&self, kind: StepKind, node: &Node) -> Vec<KnownStep> {
        super::firmware::RAID.steps(kind, node)
    }

    async fn execute_step(
        &self,
        kind: StepKind,
        node: &Node,
        step: &PlannedStep,
    ) -> Result<DriverStep, InterfaceError> {
        super::firmware::RAID.execute_step(kind, node, step).await
    }
}

#[async_trait]
impl RaidInterface for FakeRaid {
    fn get_logical_disk_properties(&self) -> Properties {
        AgentRaid.get_logical_disk_properties()
    }

    async fn validate_raid_config(
        &self,
        _node: &Node,
        _target: &Map<String, Value>,
    ) -> Result<(), InterfaceError> {
        Ok(())
    }
}
