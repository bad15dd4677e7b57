//! Making the deployed system bootable (section 7).

use crate::agent::Agent;
use crate::commands::errors::from_boot;
use crate::commands::{Command, JsonType, Kind, Parameter, Params};
use crate::deployment::{export, root_disk};
use farrier_boot::bootloader::{self, Installed, Request};
use farrier_boot::entry::StartedBy;
use farrier_boot::firmware::Firmware;
use farrier_protocol::error::CommandError;
use serde_json::Value;
use std::sync::Arc;

/// Commands of the `image` extension.
pub const COMMANDS: &[Command] = &[Command {
    name: "install_bootloader",
    help: "Makes the deployed system bootable",
    kind: Kind::Async,
    parameters: &[
        Parameter::required("root_uuid", TEXT, "UUID of the root file system, or identifier of the disk"),
        Parameter::optional("efi_system_part_uuid", TEXT, "UUID of the EFI system partition"),
        Parameter::optional("prep_boot_part_uuid", TEXT, "UUID of the PReP boot partition"),
        Parameter::optional("target_boot_mode", TEXT, "Firmware mode: uefi or bios"),
        Parameter::optional(
            "ignore_bootloader_failure",
            &[JsonType::Boolean, JsonType::Null],
            "Log a failure instead of returning it",
        ),
    ],
    validate: None,
    run: install_bootloader,
}];

const TEXT: &[JsonType] = &[JsonType::String, JsonType::Null];

/// Prefix of a disk identifier. For whole-disk images the conductor sends it as `root_uuid`.
const DISK_IDENTIFIER: &str = "0x";

fn install_bootloader(agent: &Arc<Agent>, params: &Params) -> Result<Value, CommandError> {
    let asked = params.get("ignore_bootloader_failure").and_then(Value::as_bool);
    match make_bootable(agent, params) {
        Err(error) if asked.unwrap_or(agent.options.ignore_bootloader_failure) => {
            tracing::warn!("boot loader failure ignored as requested: {}", error.text());
            Ok(Value::Null)
        }
        outcome => outcome.map(|()| Value::Null),
    }
}

/// The firmware mode of the running system decides, not the one that was asked for (F19). Who exported the disk is done
/// writing to it (section 4.4).
fn make_bootable(agent: &Agent, params: &Params) -> Result<(), CommandError> {
    export::stop(agent)?;
    let firmware = Firmware::system();
    let request = Request {
        root_uuid: root_uuid(params),
        prep_uuid: text(params, "prep_boot_part_uuid"),
        may_run_programs: agent.options.enable_bios_bootloader_install,
    };
    if firmware.is_none() && request.root_uuid.is_none() {
        return Ok(());
    }
    let installed = bootloader::install(&root_disk::wait(agent)?, &request, firmware.as_ref());
    report(&installed.map_err(from_boot)?);
    Ok(())
}

fn text<'a>(params: &'a Params, name: &str) -> Option<&'a str> {
    params.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The root file system; nothing for a whole-disk image, whatever table it has.
fn root_uuid(params: &Params) -> Option<&str> {
    text(params, "root_uuid").filter(|uuid| !uuid.starts_with(DISK_IDENTIFIER))
}

fn report(installed: &Installed) {
    match installed {
        Installed::Uefi(StartedBy::Entries(entries)) => {
            for entry in entries {
                tracing::info!(number = %format!("Boot{:04X}", entry.number), label = entry.label,
                    loader = entry.loader, "boot entry written");
            }
        }
        Installed::Uefi(StartedBy::RemovablePath(path)) => {
            tracing::info!(path, "the firmware finds the loader without a boot entry");
        }
        Installed::Grub(targets) => tracing::info!(?targets, "boot loader of the deployed system installed"),
        Installed::Present => tracing::info!("the image brought its boot loader"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::options::Options;
    use serde_json::json;

    #[test]
    fn a09_whole_disk_images_are_told_by_the_identifier_of_either_table() {
        for (given, expected) in [
            (json!("0x00000000"), None),
            (json!("0x04030201"), None),
            (json!(""), None),
            (Value::Null, None),
            (json!("6b2f1f6e-54a1-4c0e-9b32-0e5bd5e4a001"), Some("6b2f1f6e-54a1-4c0e-9b32-0e5bd5e4a001")),
            (json!("04030201-02"), Some("04030201-02")),
        ] {
            let params = Params::from_iter([("root_uuid".to_owned(), given.clone())]);
            assert_eq!(root_uuid(&params), expected, "{given}");
        }
    }

    /// The failure is that of an agent without a node: no disk is ever examined.
    #[tokio::test]
    async fn f14_a_failure_is_ignored_only_where_the_command_or_else_the_options_say_so() {
        crate::network::http::install_tls_provider();
        for (asked, option, is_ignored) in [
            (Value::Null, false, false),
            (Value::Null, true, true),
            (json!(true), false, true),
            (json!(false), true, false),
        ] {
            let root = tempfile::tempdir().unwrap();
            let options = Options { ignore_bootloader_failure: option, ..Options::default() };
            let agent = Agent::new(options, root.path(), tokio::runtime::Handle::current()).unwrap();
            let params = [("root_uuid", json!("6b2f1f6e")), ("ignore_bootloader_failure", asked.clone())];
            let params = params.map(|(name, value)| (name.to_owned(), value));
            let outcome = install_bootloader(&agent, &Params::from_iter(params));
            assert_eq!(outcome.is_ok(), is_ignored, "{asked} {option}: {outcome:?}");
        }
    }
}
