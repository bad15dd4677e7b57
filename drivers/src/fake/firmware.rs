//! Firmware of hardware that is not there: its settings and its versions.

use async_trait::async_trait;
use farrier_conductor::interfaces::{DriverStep, Interface, InterfaceError};
use farrier_conductor::model::{InterfaceKind, Node, PlannedStep, StepKind};
use farrier_conductor::plan::KnownStep;
use farrier_protocol::step::ArgumentInfo;

/// Steps that do nothing, each with the names of its arguments.
#[derive(Debug)]
pub(super) struct FakeSteps {
    /// What they are for.
    pub(super) kind: InterfaceKind,
    /// They themselves.
    pub(super) steps: &'static [(&'static str, &'static [&'static str])],
}

/// Settings of the firmware.
pub(super) const BIOS: FakeSteps = FakeSteps {
    kind: InterfaceKind::Bios,
    steps: &[("apply_configuration", &["settings"]), ("factory_reset", &[])],
};

/// Versions of the firmware.
pub(super) const FIRMWARE: FakeSteps =
    FakeSteps { kind: InterfaceKind::Firmware, steps: &[("update", &["settings"])] };

/// RAID volumes.
pub(super) const RAID: FakeSteps = FakeSteps {
    kind: InterfaceKind::Raid,
    steps: &[
        ("create_configuration", &["create_root_volume", "create_nonroot_volumes", "delete_existing"]),
        ("delete_configuration", &[]),
    ],
};

#[async_trait]
impl Interface for FakeSteps {
    fn steps(&self, kind: StepKind, _node: &Node) -> Vec<KnownStep> {
        if kind == StepKind::Deploy {
            return Vec::new();
        }
        let described =
            |name: &&str| ((*name).to_owned(), ArgumentInfo { description: String::new(), required: false });
        let steps = self.steps.iter().map(|(step, arguments)| KnownStep {
            requires_ramdisk: false,
            arguments: arguments.iter().map(described).collect(),
            ..KnownStep::new(kind, self.kind.as_str(), step, 0)
        });
        steps.collect()
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
