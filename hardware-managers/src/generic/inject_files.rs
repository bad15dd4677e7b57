//! The step that puts files into a deployed system (section 9.12).

use crate::inject_files;
use crate::manager::{Argument, StepDeclaration};
use farrier_protocol::step::Phase;

/// Puts files where the node and the step want them. Its result tells where each one is.
pub const INJECT: StepDeclaration = StepDeclaration {
    step: "inject_files",
    interface: "deploy",
    priorities: &[(Phase::Deploy, 0), (Phase::Service, 0)],
    reboot_requested: false,
    is_abortable: false,
    arguments: &[
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
    ],
    run: &inject_files::inject_files,
};
