//! The operator's file with steps that are containers.

use super::settings::Words;
use crate::reserved;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A step of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileStep {
    /// Name.
    pub name: String,
    /// Image.
    pub image: String,
    /// Interface it belongs to.
    pub interface: String,
    /// Place in an automatic run of cleaning.
    pub priority: i64,
    /// Whether the machine must be rebooted afterwards.
    pub reboot_requested: bool,
    /// Whether an operator may abort it while cleaning.
    pub abortable: bool,
    /// Options of `pull`, where it has its own.
    #[serde(default)]
    pub pull_options: Option<Words>,
    /// Options of `run`, where it has its own.
    #[serde(default)]
    pub run_options: Option<Words>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    steps: Vec<FileStep>,
}

/// The file's steps cannot be used, none of them.
#[derive(Debug, thiserror::Error)]
#[error("container steps file {}: {reason}", .file.display())]
pub struct StepsFileError {
    file: PathBuf,
    reason: String,
}

/// Reads the steps. Only a file that does not exist has none (F51).
///
/// # Errors
///
/// [`StepsFileError`] when it cannot be read, is not as it should be, or gives a step a name that is
/// reserved (S07), stands twice or `is_taken` by another manager.
pub fn read(file: &Path, is_taken: &dyn Fn(&str) -> bool) -> Result<Vec<FileStep>, StepsFileError> {
    let fail = |reason| StepsFileError { file: file.to_owned(), reason };
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        outcome => outcome.map_err(|error| fail(error.to_string()))?,
    };
    let Content { steps } = serde_saphyr::from_str(&text).map_err(|error| fail(error.to_string()))?;
    let mut names = BTreeSet::new();
    for step in &steps {
        let name = &step.name;
        let reason = match name {
            _ if name.trim().is_empty() => "a step has no name".to_owned(),
            _ if !names.insert(name) => format!("the step {name:?} stands twice"),
            _ if reserved::is_reserved(name) => format!("the step name {name:?} is reserved; rename it"),
            _ if is_taken(name) => format!("another hardware manager has a step {name:?}; rename it"),
            _ => continue,
        };
        return Err(fail(reason));
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
steps:
  - name: upgrade_firmware
    image: docker://registry.example/firmware:1
    interface: deploy
    priority: 20
    reboot_requested: yes
    abortable: true
    pull_options:
      - --tls-verify=false
    run_options: --rm --network=host --tls-verify=false
";

    fn read_text(text: &str) -> Result<Vec<FileStep>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        read(file.path(), &|name| name == "flash_bmc").map_err(|error| {
            assert!(error.to_string().contains(file.path().to_str().unwrap()), "{error}");
            error.to_string()
        })
    }

    #[test]
    fn steps_are_read() {
        let steps = read_text(GOOD).unwrap();
        let [step] = &steps[..] else { panic!("{steps:?}") };
        assert_eq!((step.name.as_str(), step.priority), ("upgrade_firmware", 20));
        assert!(step.reboot_requested && step.abortable);
        assert_eq!(step.run_options.as_ref().unwrap().as_slice().len(), 3);
        assert_eq!(step.pull_options.as_ref().unwrap().as_slice(), ["--tls-verify=false"]);
        assert!(read_text("steps: []").unwrap().is_empty());
    }

    #[test]
    fn f51_only_a_missing_file_means_no_steps() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(&folder.path().join("absent.yaml"), &|_| false).unwrap().is_empty());
        read(folder.path(), &|_| false).unwrap_err();
        for broken in [
            "",
            "steps",
            "steps: [",
            "other: []",
            "steps: {a: b}",
            &GOOD.replace("    interface: deploy\n", ""),
            &GOOD.replace("priority: 20", "priority: high"),
            &GOOD.replace("run_options", "run_option"),
        ] {
            read_text(broken).unwrap_err();
        }
    }

    #[test]
    fn s07_no_step_of_the_file_can_stand_for_another() {
        for (name, told) in [
            ("erase_devices", "reserved"),
            ("erase_devices_quickly", "reserved"),
            ("generic_container_step", "reserved"),
            ("get_clean_steps", "reserved"),
            ("flash_bmc", "another hardware manager"),
            ("''", "no name"),
        ] {
            let error = read_text(&GOOD.replace("upgrade_firmware", name)).unwrap_err();
            assert!(error.contains(told), "{name}: {error}");
        }
        let twice = format!("{GOOD}{}", GOOD.trim_start_matches("steps:\n"));
        assert!(read_text(&twice).unwrap_err().contains("stands twice"));
    }
}
