//! Boots nothing.

use async_trait::async_trait;
use farrier_conductor::interfaces::{BootContext, BootInterface, Interface, InterfaceError};
use farrier_conductor::model::Node;
use farrier_media::KernelParameters;

/// There is no machine that would boot.
#[derive(Debug)]
pub(super) struct FakeBoot;

impl Interface for FakeBoot {}

#[async_trait]
impl BootInterface for FakeBoot {
    async fn prepare_ramdisk(
        &self,
        _boot: BootContext<'_>,
        _parameters: &KernelParameters,
    ) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn clean_up_ramdisk(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn prepare_instance(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn clean_up_instance(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn validate_rescue(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn validate_inspection(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }
}
