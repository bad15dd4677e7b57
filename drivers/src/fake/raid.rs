//! Makes no volumes.

use async_trait::async_trait;
use farrier_conductor::interfaces::{Interface, InterfaceError, RaidInterface};
use farrier_conductor::model::Node;
use serde_json::{Map, Value};

/// Takes every description of volumes.
#[derive(Debug)]
pub(super) struct FakeRaid;

impl Interface for FakeRaid {}

#[async_trait]
impl RaidInterface for FakeRaid {
    async fn validate_raid_config(
        &self,
        _node: &Node,
        _target: &Map<String, Value>,
    ) -> Result<(), InterfaceError> {
        Ok(())
    }
}
