//! The step that puts files into a deployed system (section 9.12).

use crate::inject_files;
use crate::manager::{Argument, StepDeclaration};
use farrier_protocol::step::Phase;

/// Puts files where the node and the step want them, at this place in an automatic run. Its result has the place where
/// each one is.
pub fn declare(priority: i64) -> StepDeclaration {
    StepDeclaration {
        step: "inject_files",
        interface: "deploy",
        priorities: vec![(Phase::Deploy, priority), (Phase::Service, priority)].leak(),
        reboot_requested: false,
        abortable: &[],
        arguments: ARGUMENTS,
        run: &inject_files::inject_files,
    }
}

const ARGUMENTS: &[Argument] = &[
    Argument {
        name: "files",
        description: "Files to write or delete, in addition to the property inject_files of the node",
        required: false,
    },
    Argument {
        name: "verify_ca",
        description: "Verify the certificates of servers [default: true]",
        required: false,
    },
];
