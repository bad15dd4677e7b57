//! The steps that erase what the previous user left on the disks (section 9.8).

use crate::erase::{self, Depth};
use crate::manager::StepDeclaration;
use farrier_protocol::step::Phase;
use serde_json::{Value, json};

/// Erases every disk by the strongest means it has.
pub const DEVICES: StepDeclaration = StepDeclaration {
    step: "erase_devices",
    interface: "deploy",
    priorities: &[(Phase::Clean, 10)],
    reboot_requested: false,
    abortable: Phase::ALL,
    arguments: &[],
    run: &|call| erase::erase_devices(call, Depth::Data),
};

/// Erases NVMe disks, and the metadata of the others.
pub const EXPRESS: StepDeclaration = StepDeclaration {
    step: "erase_devices_express",
    priorities: &[(Phase::Clean, 0)],
    run: &|call| erase::erase_devices(call, Depth::Express),
    ..DEVICES
};

/// Removes partition tables and signatures from every disk, in seconds. Its result is nothing (section 9.8).
pub const METADATA: StepDeclaration = StepDeclaration {
    step: "erase_devices_metadata",
    priorities: &[(Phase::Clean, 99), (Phase::Deploy, 0)],
    abortable: &[Phase::Clean],
    run: &|call| erase::erase_devices(call, Depth::Metadata).map(only_warnings),
    ..DEVICES
};

/// Conductors expect no result of this step; warnings are logged anyway.
fn only_warnings(mut result: Value) -> Value {
    match result[erase::WARNINGS].take() {
        Value::Null => Value::Null,
        warnings => json!({erase::WARNINGS: warnings}),
    }
}
