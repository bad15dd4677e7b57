//! `farrier-agent check-manager`: whether an external hardware manager keeps the protocol.

use super::failure::CommandFailure;
use anyhow::Context;
use clap::{Arg, ArgMatches, Command, value_parser};
use farrier_hardware::external::conformance;
use std::path::PathBuf;

/// The subcommand.
pub fn command() -> Command {
    let program = Arg::new("program")
        .value_name("FILE")
        .help("Executable of the hardware manager")
        .required(true)
        .value_parser(value_parser!(PathBuf));
    Command::new("check-manager")
        .about("Check an external hardware manager, without running its steps")
        .arg(program)
}

/// Prints which rules of the protocol a program keeps.
///
/// # Errors
///
/// It breaks one.
pub fn print(matches: &ArgMatches) -> anyhow::Result<()> {
    let program = matches.get_one::<PathBuf>("program").context("no program is given")?;
    let checks = conformance::check(program);
    for check in &checks {
        match &check.fault {
            None => println!("ok      {}", check.rule),
            Some(fault) => println!("FAILED  {}: {fault}", check.rule),
        }
    }
    match checks.iter().filter(|check| check.fault.is_some()).count() {
        0 => Ok(()),
        rules => Err(CommandFailure::ManagerBreaksRules { program: program.clone(), rules }.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn check(program: &Path) -> Result<(), String> {
        let arguments = ["farrier-agent".as_ref(), "check-manager".as_ref(), program.as_os_str()];
        let matches = crate::command_line().try_get_matches_from::<_, &OsStr>(arguments).unwrap();
        crate::dispatch(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn the_examples_pass_and_a_program_that_breaks_a_rule_fails() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hardware-managers/examples");
        for name in ["blink_leds.sh", "asset_tag.py"] {
            assert_eq!(check(&examples.join(name)), Ok(()), "{name}");
        }
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("acme");
        fs::write(&program, "#!/bin/sh\necho hello\n").unwrap();
        for (mode, faults) in [(0o755, "breaks 1 rules"), (0o777, "breaks 2 rules")] {
            fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
            let error = check(&program).unwrap_err();
            assert!(error.contains(faults) && error.contains("/acme"), "{mode:o}: {error}");
        }
        assert!(check(&folder.path().join("absent")).is_err());
    }
}
