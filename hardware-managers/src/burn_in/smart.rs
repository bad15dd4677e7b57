//! The long self-test that disks carry out themselves, started and watched by `smartctl`.

use super::{BurnInError, wait};
use crate::manager::StepCall;
use farrier_disk::Sectors;
use farrier_disk::WritableDisk;
use farrier_linux::process::{Conditions, SMARTCTL};
use serde::Deserialize;
use std::time::{Duration, Instant};

/// Time for smartctl to speak with a disk.
const ANSWER: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_secs(30);
/// The largest disks need two days while they have nothing else to do.
const LIMIT: Duration = Duration::from_secs(7 * 86_400);
/// Bits of the exit code that mean that smartctl could not ask or was refused; the others tell of the disk.
const REFUSED: i32 = 0b111;

/// What became of the self-test of a disk.
#[derive(Debug)]
pub struct SelfTest {
    /// Name of the disk.
    pub disk: String,
    /// What is said about it.
    pub status: String,
    /// Whether it speaks against the disk.
    pub is_good: bool,
}

/// The output of smartctl as JSON, as far as it is used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Output {
    smartctl: Smartctl,
    ata_smart_data: Option<AtaData>,
    scsi_self_test_0: Option<ScsiTest>,
    nvme_self_test_log: Option<NvmeLog>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Smartctl {
    messages: Vec<Message>,
}

#[derive(Debug, Deserialize)]
struct Message {
    string: String,
}

#[derive(Debug, Deserialize)]
struct AtaData {
    self_test: Option<AtaTest>,
}

#[derive(Debug, Deserialize)]
struct AtaTest {
    status: Status,
}

#[derive(Debug, Deserialize)]
struct ScsiTest {
    result: Status,
}

#[derive(Debug, Deserialize)]
struct NvmeLog {
    current_self_test_operation: Status,
    #[serde(default)]
    table: Vec<NvmeTest>,
}

#[derive(Debug, Deserialize)]
struct NvmeTest {
    self_test_result: Status,
}

#[derive(Debug, Clone, Deserialize)]
struct Status {
    value: u8,
    string: String,
}

/// How far a self-test has come.
#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Running,
    Good(String),
    Bad(String),
}

/// Has all disks test themselves at the same time, and waits for the last one. A disk that knows no
/// self-test is reported as such.
///
/// # Errors
///
/// [`BurnInError::Program`] when smartctl is missing or hangs.
pub fn test(call: &StepCall<'_>, disks: &[WritableDisk]) -> Result<Vec<SelfTest>, BurnInError> {
    let mut done = Vec::new();
    let mut running = Vec::new();
    for disk in disks {
        let disk = disk.path().display().to_string();
        match start(call, &disk)? {
            None => running.push(disk),
            Some(test) => done.push(test),
        }
    }
    let started = Instant::now();
    while !running.is_empty() {
        let mut still_running = Vec::new();
        for disk in running {
            match smartctl(call, &["-a", &disk])?.0.stage() {
                Some(Stage::Running) if started.elapsed() < LIMIT => still_running.push(disk),
                Some(Stage::Good(status)) => done.push(SelfTest { disk, status, is_good: true }),
                Some(Stage::Bad(status)) => done.push(SelfTest { disk, status, is_good: false }),
                Some(Stage::Running) => {
                    let status = format!("still running after {} days", LIMIT.as_secs() / 86_400);
                    done.push(SelfTest { disk, status, is_good: false });
                }
                None => {
                    let status = "the disk does not tell any more how its test ended".to_owned();
                    done.push(SelfTest { disk, status, is_good: false });
                }
            }
        }
        running = still_running;
        if !running.is_empty() {
            tracing::info!(disks = running.join(", "), "SMART self-tests are running");
            wait(call, POLL);
        }
    }
    Ok(done)
}

/// Starts the test of a disk; a verdict when there will be none.
fn start(call: &StepCall<'_>, disk: &str) -> Result<Option<SelfTest>, BurnInError> {
    let (answer, code) = smartctl(call, &["-t", "long", disk])?;
    if code & REFUSED == 0 {
        return Ok(None);
    }
    // A disk that tells how its tests end can carry them out, and should have.
    let is_able = smartctl(call, &["-a", disk])?.0.stage().is_some();
    let reason = answer.messages();
    let status = if is_able {
        format!("it cannot be started ({reason})")
    } else {
        format!("not supported ({reason})")
    };
    Ok(Some(SelfTest { disk: disk.to_owned(), status, is_good: !is_able }))
}

fn smartctl(call: &StepCall<'_>, arguments: &[&str]) -> Result<(Output, i32), BurnInError> {
    let arguments = [&["--json=c"], arguments].concat();
    let conditions = Conditions { limit: ANSWER, is_stopped: &|| call.host.is_ending(), folder: None };
    let finished = SMARTCTL.finish(&arguments, &conditions)?;
    let Ok(output) = serde_json::from_str(&finished.output) else { return Err(finished.failure().into()) };
    // Ended by a signal, it would have told nothing.
    Ok((output, finished.status.code().unwrap_or(REFUSED)))
}

impl Output {
    /// Where the disk's newest self-test is; nothing when the disk does not tell.
    fn stage(&self) -> Option<Stage> {
        if let Some(test) = self.ata_smart_data.as_ref().and_then(|data| data.self_test.as_ref()) {
            // The code of the last test is in the upper half of the byte (ATA8-ACS, SMART READ DATA).
            return Some(stage(&test.status, test.status.value >> 4));
        }
        if let Some(test) = &self.scsi_self_test_0 {
            // SPC-4, self-test results log page.
            return Some(stage(&test.result, test.result.value));
        }
        let log = self.nvme_self_test_log.as_ref()?;
        if log.current_self_test_operation.value != 0 {
            return Some(Stage::Running);
        }
        match log.table.first() {
            // NVMe base specification, device self-test log page.
            Some(test) => Some(stage(&test.self_test_result, test.self_test_result.value & 0xf)),
            None => Some(Stage::Bad("no test on record".to_owned())),
        }
    }

    fn messages(&self) -> String {
        let texts: Vec<_> = self.smartctl.messages.iter().map(|message| &*message.string).collect();
        if texts.is_empty() { "the disk reports no self-tests".to_owned() } else { texts.join("; ") }
    }
}

/// All three standards have 0 for a test without error and 15 for one that is running.
fn stage(status: &Status, code: u8) -> Stage {
    match code {
        0 => Stage::Good(status.string.clone()),
        15 => Stage::Running,
        _ => Stage::Bad(status.string.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn ata(value: u8) -> Value {
        json!({"ata_smart_data": {"self_test": {"status": {"value": value, "string": "text"}}}})
    }

    fn nvme(operation: u8, results: &[u8]) -> Value {
        let status = |value: &u8| json!({"value": value, "string": "text"});
        let table: Vec<_> = results.iter().map(|one| json!({"self_test_result": status(one)})).collect();
        json!({"nvme_self_test_log": {"current_self_test_operation": status(&operation), "table": table}})
    }

    fn scsi(value: u8) -> Value {
        json!({"scsi_self_test_0": {"result": {"value": value, "string": "text"}}})
    }

    #[test]
    fn p09_only_a_test_that_ended_well_is_good() {
        let good = || Some(Stage::Good("text".to_owned()));
        let bad = || Some(Stage::Bad("text".to_owned()));
        for (output, expected) in [
            (ata(0), good()),
            (ata(0xf3), Some(Stage::Running)),
            // Aborted by the host, and a read failure.
            (ata(0x10), bad()),
            (ata(0x79), bad()),
            (scsi(0), good()),
            (scsi(15), Some(Stage::Running)),
            (scsi(3), bad()),
            (nvme(2, &[0]), Some(Stage::Running)),
            (nvme(0, &[0, 7]), good()),
            (nvme(0, &[7, 0]), bad()),
            (nvme(0, &[]), Some(Stage::Bad("no test on record".to_owned()))),
            (json!({"ata_smart_data": {}}), None),
            (json!({"smartctl": {"messages": [{"string": "no device type", "severity": "error"}]}}), None),
        ] {
            let parsed: Output = serde_json::from_value(output.clone()).unwrap();
            assert_eq!(parsed.stage(), expected, "{output}");
        }
    }

    #[test]
    fn a_disk_without_self_tests_is_told_with_smartctls_words() {
        let output = json!({"smartctl": {"messages": [{"string": "no device type", "severity": "error"}]}});
        let parsed: Output = serde_json::from_value(output).unwrap();
        assert_eq!(parsed.messages(), "no device type");
    }
}
