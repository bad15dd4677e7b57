//! The step that puts files into a deployed system (section 9.12).

use crate::inject_files;
use crate::manager::{Argument, StepDeclaration};
use farrier_protocol::step::Phase;

/// Puts files where the node and the step want them, at this place in an automatic run. Its result tells where
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
        description: "Files to write or remove, beside those of the node's property inject_files",
        required: false,
    },
    Argument {
        name: "verify_ca",
        description: "Whether servers must prove who they are; true when it is not given",
        required: false,
    },
];
