//! What a vendor has who makes nothing: a step, so that cleaning and service have one to run.

use async_trait::async_trait;
use farrier_conductor::interfaces::{DriverStep, Interface, InterfaceError, Properties, VendorInterface};
use farrier_conductor::model::{Node, PlannedStep, StepKind};
use farrier_conductor::plan::KnownStep;

/// Its step does nothing, and is over when it begins.
#[derive(Debug)]
pub(super) struct FakeVendor;

/// Keys that clients look for, and nothing reads.
const KEYS: Properties =
    &[("B1", "a key of hardware that is not there"), ("B2", "another key of hardware that is not there")];

#[async_trait]
impl Interface for FakeVendor {
    fn get_properties(&self) -> Properties {
        KEYS
    }

    fn steps(&self, kind: StepKind, _node: &Node) -> Vec<KnownStep> {
        let priority = match kind {
            StepKind::Clean => 1,
            StepKind::Service => 0,
            StepKind::Deploy => return Vec::new(),
        };
        let step = KnownStep::new(kind, "vendor", "log_passthrough", priority);
        vec![KnownStep { requires_ramdisk: false, ..step }]
    }

    async fn execute_step(
        &self,
        _kind: StepKind,
        _node: &Node,
        _step: &PlannedStep,
    ) -> Result<DriverStep, InterfaceError> {
        Ok(DriverStep::Done)
    }
}

impl VendorInterface for FakeVendor {}
