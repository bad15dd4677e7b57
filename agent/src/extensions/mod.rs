//! Commands by extension (section 4).

pub mod flow;
pub mod image;
pub mod iscsi;
pub mod log;
pub mod poll;
pub mod rescue;
pub mod rescue_password;
pub mod standby;
pub mod steps;
pub mod system;

use crate::commands::Command;
use farrier_protocol::error::{CommandError, ErrorKind};

/// Every extension with its commands.
pub const EXTENSIONS: &[(&str, &[Command])] = &[
    ("clean", steps::CLEAN_COMMANDS),
    ("deploy", steps::DEPLOY_COMMANDS),
    ("flow", flow::COMMANDS),
    ("image", image::COMMANDS),
    ("iscsi", iscsi::COMMANDS),
    ("log", log::COMMANDS),
    ("poll", poll::COMMANDS),
    ("rescue", rescue::COMMANDS),
    ("service", steps::SERVICE_COMMANDS),
    ("standby", standby::COMMANDS),
    ("system", system::COMMANDS),
];

/// Finds a command.
///
/// # Errors
///
/// An unknown extension is "not found", an unknown command of a known one is "invalid"
/// (section 1.5).
pub fn find(extension: &str, command: &str) -> Result<&'static Command, CommandError> {
    let Some((_, commands)) = EXTENSIONS.iter().find(|(name, _)| *name == extension) else {
        let details = format!("Extension with id {extension} not found.");
        return Err(CommandError::new(ErrorKind::RequestedObjectNotFoundError, details));
    };
    commands.iter().find(|one| one.name == command).ok_or_else(|| {
        CommandError::new(ErrorKind::InvalidCommandError, format!("Unknown command: {command}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Kind;

    #[test]
    fn commands_are_of_the_kind_the_contract_says() {
        for (extension, command, kind) in [
            ("standby", "prepare_image", Kind::Async),
            ("standby", "execute_bootc_install", Kind::Async),
            ("standby", "run_image", Kind::Async),
            ("standby", "power_off", Kind::Async),
            ("standby", "sync", Kind::Sync),
            ("standby", "get_partition_uuids", Kind::Sync),
            ("flow", "start_flow", Kind::Async),
            ("rescue", "finalize_rescue", Kind::Sync),
            ("system", "lockdown", Kind::Sync),
            ("clean", "get_clean_steps", Kind::Sync),
            ("clean", "execute_clean_step", Kind::Async),
            ("service", "get_service_steps", Kind::Sync),
            ("service", "execute_service_step", Kind::Async),
            ("deploy", "get_deploy_steps", Kind::Sync),
            ("deploy", "execute_deploy_step", Kind::Async),
            ("image", "install_bootloader", Kind::Async),
            ("iscsi", "start_iscsi_target", Kind::Async),
            ("iscsi", "stop_iscsi_target", Kind::Async),
            ("log", "collect_system_logs", Kind::Sync),
            ("poll", "get_hardware_info", Kind::Sync),
        ] {
            assert_eq!(find(extension, command).unwrap().kind, kind, "{extension}.{command}");
        }
    }

    #[test]
    fn unknown_names_are_told_apart() {
        for (extension, command, code, text) in [
            ("nosuch", "sync", 404, "Extension with id nosuch not found."),
            ("standby", "frobnicate", 400, "Unknown command: frobnicate"),
        ] {
            let Err(error) = find(extension, command) else { panic!("{extension}.{command} was found") };
            assert_eq!((error.code, error.details.as_str()), (code, text));
        }
    }
}
