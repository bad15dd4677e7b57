//! Running `fio` and reading its report.

use super::{BurnInError, run};
use crate::manager::StepCall;
use farrier_linux::process::FIO;
use serde::Deserialize;
use std::time::Duration;

/// The report of fio, as far as it is used.
#[derive(Debug, Deserialize)]
pub struct Report {
    /// One entry for each job, or group of jobs.
    pub jobs: Vec<Job>,
}

/// One job.
#[derive(Debug, Default, Deserialize)]
pub struct Job {
    /// Its name.
    pub jobname: String,
    /// Number of the error that ended it; 0 for none.
    #[serde(default)]
    pub error: i64,
    /// How many errors it went on after.
    #[serde(default)]
    pub total_err: u64,
    /// What was read, verification included.
    pub read: Traffic,
    /// What was written.
    pub write: Traffic,
}

/// What a job did in one direction.
#[derive(Debug, Default, Deserialize)]
pub struct Traffic {
    /// Bytes.
    pub io_bytes: u64,
}

/// How fio ended, and what it reports.
#[derive(Debug)]
pub struct Outcome {
    /// Whether it reports success.
    pub is_success: bool,
    /// Its exit code; nothing when a signal ended it.
    pub code: Option<i32>,
    /// Its report, where it made one.
    pub report: Option<Report>,
    /// The same as it wrote it, or what else it said.
    pub text: String,
    /// The failure for a caller that needs a success.
    pub failure: BurnInError,
}

/// Runs fio and reads its report.
///
/// # Errors
///
/// [`BurnInError::Program`]. That fio ended with an error is an outcome.
pub fn fio(call: &StepCall<'_>, mut arguments: Vec<String>, limit: Duration) -> Result<Outcome, BurnInError> {
    arguments.insert(0, "--output-format=json".to_owned());
    let finished = run(call, &FIO, &arguments, limit)?;
    let json = json(&finished.output);
    Ok(Outcome {
        is_success: finished.status.success(),
        code: finished.status.code(),
        report: json.and_then(|json| serde_json::from_str(json).ok()),
        text: json.unwrap_or(&finished.output).to_owned(),
        failure: finished.failure().into(),
    })
}

/// The JSON object among the notes that fio writes before it.
fn json(output: &str) -> Option<&str> {
    let start = if output.starts_with("{\n") { 0 } else { output.find("\n{\n")? + 1 };
    let end = output.rfind("\n}")? + 2;
    output.get(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_found_among_notes() {
        let report = "{\n  \"jobs\" : [\n    {\"jobname\": \"/dev/sda\", \"error\": 84, \"total_err\": 3,\n \
                      \"read\": {\"io_bytes\": 1}, \"write\": {\"io_bytes\": 2, \"bw\": 1.5}}\n  ]\n}";
        for (before, after) in [("", "\n"), ("fio: a note {here}\n", "\n"), ("note\n", "\nfio: done\n")] {
            let output = format!("{before}{report}{after}");
            let found: Report = serde_json::from_str(json(&output).unwrap()).unwrap();
            let job = &found.jobs[0];
            assert_eq!((job.jobname.as_str(), job.error, job.total_err), ("/dev/sda", 84, 3));
            assert_eq!((job.read.io_bytes, job.write.io_bytes), (1, 2));
        }
        for output in ["", "fio: no such device\n", "{", "}\n{\n"] {
            assert_eq!(json(output), None, "{output}");
        }
    }
}
