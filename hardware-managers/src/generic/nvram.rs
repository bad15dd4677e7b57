//! The step that removes boot entries of earlier users from the firmware (section 9.10).

use crate::error::StepError;
use crate::manager::{Argument, StepDeclaration};
use farrier_boot::entry::clean::{self, DEFAULT_PATTERNS, Patterns};
use farrier_linux::efivars::EfiVariables;
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::step::Phase;
use serde_json::{Value, json};

const ARGUMENT: &str = "match_patterns";

/// Removes every boot entry whose device path fits a pattern. Its result lists them.
pub const CLEAN: StepDeclaration = StepDeclaration {
    step: "clean_uefi_nvram",
    interface: "deploy",
    priorities: &[(Phase::Clean, 0), (Phase::Deploy, 0)],
    reboot_requested: false,
    abortable: &[Phase::Clean],
    arguments: &[Argument {
        name: ARGUMENT,
        description: "Regular expressions for the device paths of the entries to delete [default: those of installed systems]",
        required: false,
    }],
    run: &|call| {
        let patterns = patterns(call.arguments.get(ARGUMENT))?;
        clean(&patterns, EfiVariables::system().as_ref())
    },
};

fn patterns(argument: Option<&Value>) -> Result<Patterns, StepError> {
    let parsed = match argument {
        None | Some(Value::Null) => Patterns::parse(DEFAULT_PATTERNS.iter().copied()),
        Some(given) => Patterns::parse(strings(given)?),
    };
    parsed.map_err(failed)
}

fn strings(given: &Value) -> Result<Vec<&str>, StepError> {
    let strings = given.as_array().and_then(|list| list.iter().map(Value::as_str).collect::<Option<_>>());
    strings.ok_or_else(|| {
        let details = format!("{ARGUMENT} must be a list of regular expressions, not {given}");
        StepError::Failed(CommandError::new(ErrorKind::InvalidCommandParamsError, details))
    })
}

/// That nothing shows proves nothing where no entries can be seen.
fn clean(patterns: &Patterns, variables: Option<&EfiVariables>) -> Result<Value, StepError> {
    let variables = variables.ok_or_else(|| {
        let details = "the machine was not booted by UEFI, or its kernel shows no UEFI variables, so its boot entries \
                       cannot be seen: boot it by UEFI, without efi=noruntime, or do without this step where there \
                       are none";
        StepError::Failed(CommandError::new(ErrorKind::CleaningError, details.to_owned()))
    })?;
    let removed = clean::remove(patterns, variables).map_err(failed)?;
    let entries = removed.into_iter().map(|entry| {
        tracing::info!(number = entry.number, label = entry.label, path = entry.path, "boot entry removed");
        json!({"number": format!("{:04X}", entry.number), "label": entry.label, "path": entry.path})
    });
    Ok(entries.collect())
}

fn failed(error: farrier_boot::Error) -> StepError {
    StepError::Failed(CommandError::new(error.kind(), error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(error: StepError) -> String {
        match error {
            StepError::Failed(error) => error.details,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_no_list_of_expressions_is_refused() {
        for (argument, expected) in [
            (None, None),
            (Some(Value::Null), None),
            (Some(json!([])), None),
            (Some(json!(["a"])), None),
            (Some(json!("a")), Some("must be a list")),
            (Some(json!(["a", 1])), Some("must be a list")),
            (Some(json!(["["])), Some("is not a regular expression")),
        ] {
            let found = patterns(argument.as_ref()).err().map(details);
            match (found, expected) {
                (None, None) => {}
                (Some(found), Some(expected)) => assert!(found.contains(expected), "{found}"),
                other => panic!("{argument:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_machine_without_uefi_is_no_success() {
        let error = clean(&patterns(None).unwrap(), None).unwrap_err();
        assert!(details(error).contains("not booted by UEFI"));
    }
}
