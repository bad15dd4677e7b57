//! Processors and memory, by `stress-ng`.

use super::{BurnInError, GRACE, OutputFile, run};
use crate::error::StepError;
use crate::manager::StepCall;
use crate::setting::Section;
use farrier_linux::process::STRESS_NG;
use serde_json::{Value, json};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);
const WHOLE_MEMORY: &str = "98%";

/// What is loaded, and by which settings.
#[derive(Debug)]
pub struct Load {
    /// Name of the stressor.
    stressor: &'static str,
    workers: &'static str,
    timeout: &'static str,
    output_file: &'static str,
    /// Setting and option for the share of the memory.
    share: Option<(&'static str, &'static str)>,
}

/// The processors.
pub const CPU: Load = Load {
    stressor: "cpu",
    workers: "agent_burnin_cpu_cpu",
    timeout: "agent_burnin_cpu_timeout",
    output_file: "agent_burnin_cpu_outputfile",
    share: None,
};

/// The memory.
pub const MEMORY: Load = Load {
    stressor: "vm",
    workers: "agent_burnin_vm_vm",
    timeout: "agent_burnin_vm_timeout",
    output_file: "agent_burnin_vm_outputfile",
    share: Some(("agent_burnin_vm_vm-bytes", "--vm-bytes")),
};

/// Puts load on a part of the machine and has the results of its work verified. No number of workers means
/// one for each processor. Returns how many operations were done.
///
/// # Errors
///
/// [`StepError::InvalidSetting`], or what [`BurnInError`] says.
pub fn burn_in(call: &StepCall<'_>, load: &Load) -> Result<Value, StepError> {
    let section = Section::driver_info(call.node);
    let timeout = section.duration(load.timeout, DAY)?.max(Duration::from_secs(1));
    let arguments = arguments(section, load, timeout)?;
    let mut file = OutputFile::create(section, load.output_file, "")?;
    let finished = run(call, &STRESS_NG, &arguments, timeout + GRACE).map_err(BurnInError::from)?;
    let report = format!("{}{}", finished.output, finished.messages);
    file.write(&report)?;
    finished.succeeded().map_err(BurnInError::from)?;
    match operations(&report, load.stressor) {
        Some(operations @ 1..) => Ok(json!({"operations": operations, "seconds": timeout.as_secs()})),
        _ => {
            let reason = format!("no operations of its stressor {}", load.stressor);
            Err(BurnInError::NoProof { program: STRESS_NG.name, reason }.into())
        }
    }
}

fn arguments(section: Section<'_>, load: &Load, timeout: Duration) -> Result<Vec<String>, StepError> {
    let workers = section.number(load.workers, 0)?.to_string();
    let mut arguments = vec![format!("--{}", load.stressor), workers];
    arguments.extend(["--timeout".to_owned(), timeout.as_secs().to_string()]);
    if let Some((key, option)) = load.share {
        arguments.extend([option.to_owned(), section.share(key, WHOLE_MEMORY)?]);
    }
    arguments.extend(["--metrics-brief", "--verify"].map(str::to_owned));
    Ok(arguments)
}

/// What stands behind the stressor's name in the table of `--metrics-brief`.
fn operations(report: &str, stressor: &str) -> Option<u64> {
    report.lines().find_map(|line| {
        let (_, row) = line.split_once("] ")?;
        let mut words = row.split_whitespace();
        (words.next() == Some(stressor)).then(|| words.next()?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_protocol::lookup::Node;

    fn node(settings: Value) -> Node {
        Node { driver_info: serde_json::from_value(settings).unwrap(), ..Node::default() }
    }

    #[test]
    fn settings_become_arguments() {
        for (load, settings, expected) in [
            (&CPU, json!({}), "--cpu 0 --timeout 9 --metrics-brief --verify"),
            (&CPU, json!({"agent_burnin_cpu_cpu": "4"}), "--cpu 4 --timeout 9 --metrics-brief --verify"),
            (&MEMORY, json!({}), "--vm 0 --timeout 9 --vm-bytes 98% --metrics-brief --verify"),
            (
                &MEMORY,
                json!({"agent_burnin_vm_vm": 2, "agent_burnin_vm_vm-bytes": "64m"}),
                "--vm 2 --timeout 9 --vm-bytes 64m --metrics-brief --verify",
            ),
        ] {
            let node = node(settings);
            let section = Section::driver_info(&node);
            let arguments = arguments(section, load, Duration::from_secs(9)).unwrap();
            assert_eq!(arguments.join(" "), expected);
        }
    }

    #[test]
    fn s04_no_setting_becomes_an_option() {
        for (load, settings) in [
            (&CPU, json!({"agent_burnin_cpu_cpu": "--exec /bin/sh"})),
            (&MEMORY, json!({"agent_burnin_vm_vm-bytes": "--log-file=/init"})),
        ] {
            let node = node(settings);
            assert!(arguments(Section::driver_info(&node), load, DAY).is_err());
        }
    }

    #[test]
    fn operations_are_read_from_the_table() {
        let report = "stress-ng: info:  [1] setting to a 5 second run per stressor\n\
                      stress-ng: metrc: [1] stressor       bogo ops real time  usr time\n\
                      stress-ng: metrc: [1]                           (secs)    (secs)\n\
                      stress-ng: metrc: [1] cpu                4410      5.01      9.97\n";
        for (stressor, expected) in [("cpu", Some(4410)), ("vm", None), ("setting", None)] {
            assert_eq!(operations(report, stressor), expected, "{stressor}");
        }
    }
}
