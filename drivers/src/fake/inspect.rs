//! Finds nothing out.

use async_trait::async_trait;
use farrier_conductor::in_band::InspectInterface;
use farrier_conductor::interfaces::{Interface, Outcome};
use farrier_conductor::{Error, Task};

/// There is nothing to look at.
#[derive(Debug)]
pub(super) struct FakeInspect;

impl Interface for FakeInspect {}

#[async_trait]
impl InspectInterface for FakeInspect {
    async fn inspect_hardware(&self, _task: &mut Task) -> Result<Outcome, Error> {
        Ok(Outcome::Done)
    }
}
