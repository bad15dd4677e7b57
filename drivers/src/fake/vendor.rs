//! What a vendor has who makes nothing: a step, so that cleaning and service have one to run.

use farrier_conductor::interfaces::{Interface, VendorInterface};
use farrier_conductor::model::{Node, StepKind};
use farrier_conductor::plan::KnownStep;

/// Its step does nothing, and is over when it begins.
#[derive(Debug)]
pub(super) struct FakeVendor;

impl Interface for FakeVendor {
    fn steps(&self, kind: StepKind, _node: &Node) -> Vec<KnownStep> {
        let priority = match kind {
            StepKind::Clean => 1,
            StepKind::Service => 0,
            StepKind::Deploy => return Vec::new(),
        };
        let step = KnownStep::new(kind, "vendor", "log_passthrough", priority);
        vec![KnownStep { requires_ramdisk: false, ..step }]
    }
}

impl VendorInterface for FakeVendor {}
