//! A rescue without a machine.

use async_trait::async_trait;
use farrier_conductor::in_band::RescueInterface;
use farrier_conductor::interfaces::{Interface, Outcome};
use farrier_conductor::{Error, Task};

/// There is no system to repair.
#[derive(Debug)]
pub(super) struct FakeRescue;

impl Interface for FakeRescue {}

#[async_trait]
impl RescueInterface for FakeRescue {
    async fn rescue(&self, _task: &mut Task) -> Result<Outcome, Error> {
        Ok(Outcome::Done)
    }

    async fn unrescue(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(())
    }

    async fn clean_up(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(())
    }
}
