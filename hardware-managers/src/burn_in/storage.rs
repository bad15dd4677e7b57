//! Disks, by `fio`: every block is written and read back, as often as the operator wants. What they held is
//! lost.

use super::fio::{Job, Report, fio};
use super::{BurnInError, GRACE, OutputFile, UNLIMITED, smart};
use crate::error::StepError;
use crate::manager::StepCall;
use crate::setting::Section;
use farrier_disk::Sectors;
use farrier_disk::guard::{self, ErasePlan, EraseTarget};
use farrier_disk::{WritableDisk, list};
use farrier_linux::process::{FIO, RunError, SMARTCTL};
use farrier_protocol::error::CommandError;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Duration;

/// As often as `badblocks` does it.
const LOOPS: u64 = 4;
/// Blocks that are written before they are read back: 1 GiB, more than a disk has memory of its own. Without
/// such a mark fio would remember every block of the disk.
const BACKLOG: u32 = 262_144;
/// Why an area of an eMMC device is left alone. The chip is tried by its user area.
const AREA: &str = "a hardware partition of an eMMC device";

/// What the operator wants.
#[derive(Debug)]
struct Settings {
    loops: u64,
    /// None for as long as the loops take.
    runtime: Option<Duration>,
    has_smart_test: bool,
}

/// Writes to every disk of the node that may be erased, and reads back what was written. Returns what was
/// done with each disk.
///
/// # Errors
///
/// [`StepError::InvalidSetting`], or what [`BurnInError`] says, naming each disk that failed.
pub fn burn_in(call: &StepCall<'_>) -> Result<Value, StepError> {
    let failed =
        |error: farrier_disk::Error| StepError::Failed(CommandError::new(error.kind(), error.to_string()));
    let devices = list::list(Path::new("/sys")).map_err(failed)?;
    burn_in_plan(call, &guard::plan_erase(call.node, &devices).map_err(failed)?)
}

/// Does the same with the disks of a plan.
///
/// # Errors
///
/// As there.
pub fn burn_in_plan(call: &StepCall<'_>, plan: &ErasePlan) -> Result<Value, StepError> {
    let section = Section::driver_info(call.node);
    let settings = Settings::read(section)?;
    let mut file = OutputFile::create(section, "agent_burnin_fio_disk_outputfile", "")?;
    if settings.has_smart_test {
        SMARTCTL.require().map_err(RunError::from).map_err(BurnInError::from)?;
    }
    let is_guarded = call.host.guards_special_filesystems() && !guard::consents(call.node);
    let mut course = Course::claim(plan, is_guarded);
    if course.disks.is_empty() {
        return Err(course.without_disks().into());
    }
    let outcome = fio(call, settings.arguments(&course.disks), settings.limit())?;
    file.write(&outcome.text)?;
    let Some(report) = &outcome.report else { return Err(outcome.failure.into()) };
    course.judge(report, &settings);
    if !outcome.is_success && course.failures.is_empty() {
        return Err(outcome.failure.into());
    }
    if settings.has_smart_test {
        match smart::test(call, &course.disks) {
            Ok(tests) => course.add(tests),
            // What fio found stays.
            Err(error) => course.failures.push(error.to_string()),
        }
    }
    Ok(course.conclude()?)
}

impl Settings {
    fn read(section: Section<'_>) -> Result<Self, StepError> {
        let runtime = section.duration("agent_burnin_fio_disk_runtime", Duration::ZERO)?;
        Ok(Self {
            loops: section.number("agent_burnin_fio_disk_loops", LOOPS)?.max(1),
            runtime: (!runtime.is_zero()).then_some(runtime),
            has_smart_test: section.switch("agent_burnin_fio_disk_smart_test", false)?,
        })
    }

    fn arguments(&self, disks: &[WritableDisk]) -> Vec<String> {
        let mut arguments: Vec<String> = [
            "--rw=write",
            "--bs=4k",
            "--direct=1",
            "--ioengine=libaio",
            "--iodepth=32",
            "--verify=crc32c",
            "--continue_on_error=verify",
        ]
        .map(str::to_owned)
        .to_vec();
        arguments.push(format!("--verify_backlog={BACKLOG}"));
        arguments.push(format!("--loops={}", self.loops));
        if let Some(runtime) = self.runtime {
            arguments.extend([format!("--runtime={}", runtime.as_secs()), "--time_based".to_owned()]);
        }
        for disk in disks {
            let path = disk.path().display();
            arguments.extend([format!("--name={path}"), format!("--filename={path}")]);
        }
        arguments
    }

    fn limit(&self) -> Duration {
        self.runtime.map_or(UNLIMITED, |runtime| runtime.saturating_add(GRACE))
    }
}

/// The disks of a burn-in on their way through it.
struct Course {
    /// Held until the end, so that nothing else takes them.
    disks: Vec<WritableDisk>,
    /// The report of each disk, by name.
    results: Map<String, Value>,
    /// What failed, with the name of the disk.
    failures: Vec<String>,
}

/// Why a disk is left alone that may be written.
fn reason_to_keep(target: &EraseTarget) -> Option<String> {
    let volumes = target.volumes();
    let is_area = target.device().hardware_partition().is_some();
    let member = || format!("a member of {}, which is burned in itself", volumes.join(", "));
    if is_area { Some(AREA.to_owned()) } else { (!volumes.is_empty()).then(member) }
}

impl Course {
    fn claim(plan: &ErasePlan, is_guarded: bool) -> Self {
        let mut course = Self { disks: Vec::new(), results: Map::new(), failures: Vec::new() };
        for kept in &plan.kept {
            course.note(&kept.device.disk.name, json!({"kept": kept.reason.to_string()}));
        }
        for target in &plan.targets {
            let name = &target.device().disk.name;
            if let Some(reason) = reason_to_keep(target) {
                course.note(name, json!({"kept": reason}));
                continue;
            }
            match target.open(is_guarded) {
                Ok(disk) => course.disks.push(disk),
                Err(error) => course.failures.push(format!("{name}: {error}")),
            }
        }
        course
    }

    fn note(&mut self, disk: &str, facts: Value) {
        let entry = self.results.entry(disk).or_insert_with(|| json!({}));
        if let (Value::Object(entry), Value::Object(facts)) = (entry, facts) {
            entry.extend(facts);
        }
    }

    /// Takes what fio says about each disk. A disk of which it says nothing did not stand the test.
    fn judge(&mut self, report: &Report, settings: &Settings) {
        let disks: Vec<_> =
            self.disks.iter().map(|disk| (disk.path().display().to_string(), disk.size())).collect();
        for (name, size) in disks {
            let job = report.jobs.iter().find(|job| job.jobname == name);
            if let Err(fault) = verdict(job, size, settings) {
                self.failures.push(format!("{name}: {fault}"));
            }
            let Some(job) = job else { continue };
            let facts = json!({"written_bytes": job.write.io_bytes, "verified_bytes": job.read.io_bytes, "errors": job.total_err});
            self.note(&name, facts);
        }
    }

    fn add(&mut self, tests: Vec<smart::SelfTest>) {
        for test in tests {
            if !test.is_good {
                self.failures.push(format!("{}: its SMART self-test says: {}", test.disk, test.status));
            }
            self.note(&test.disk, json!({"smart": test.status}));
        }
    }

    fn without_disks(&self) -> BurnInError {
        let kept = self
            .results
            .iter()
            .map(|(disk, entry)| format!("{disk}: kept, {}", entry["kept"].as_str().unwrap_or_default()));
        let reasons: Vec<_> = self.failures.iter().cloned().chain(kept).collect();
        BurnInError::Unprepared(format!("there is no disk to burn in ({})", reasons.join("; ")))
    }

    fn conclude(self) -> Result<Value, BurnInError> {
        if self.failures.is_empty() {
            return Ok(Value::Object(self.results));
        }
        Err(BurnInError::Faulty(self.failures.join("; ")))
    }
}

/// Why a disk did not stand the test. Without a limit of time, all of it must have been written and read
/// back in each loop, but for what is less than a block at its end.
fn verdict(job: Option<&Job>, size: u64, settings: &Settings) -> Result<(), String> {
    let Some(job) = job else { return Err(format!("{} does not report on it", FIO.name)) };
    if job.total_err > 0 {
        return Err(format!("{} blocks did not read back as they were written", job.total_err));
    }
    if job.error != 0 {
        let error = std::io::Error::from_raw_os_error(i32::try_from(job.error).unwrap_or_default());
        return Err(format!("after {} bytes: {error}", job.write.io_bytes));
    }
    let expected =
        if settings.runtime.is_some() { 4096 } else { (size / 4096 * 4096).saturating_mul(settings.loops) };
    if job.write.io_bytes < expected || job.read.io_bytes < expected {
        return Err(format!(
            "{} bytes were written and {} read back, of {expected}",
            job.write.io_bytes, job.read.io_bytes
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burn_in::fio::Traffic;

    const SIZE: u64 = 10 * 4096 + 512;

    fn job(error: i64, total_err: u64, written: u64, read: u64) -> Job {
        Job {
            jobname: "/dev/sda".to_owned(),
            error,
            total_err,
            read: Traffic { io_bytes: read },
            write: Traffic { io_bytes: written },
        }
    }

    #[test]
    fn p09_only_a_disk_that_was_written_and_read_back_whole_is_good() {
        let looped = Settings { loops: 2, runtime: None, has_smart_test: false };
        let timed = Settings { runtime: Some(Duration::from_secs(5)), ..looped };
        let all = 20 * 4096;
        for (job, settings, expected) in [
            (Some(job(0, 0, all, all)), &looped, None),
            (None, &looped, Some("does not report")),
            (Some(job(0, 0, all, all - 4096)), &looped, Some("81920 bytes were written and 77824 read back")),
            (Some(job(0, 0, 0, 0)), &looped, Some("of 81920")),
            (Some(job(84, 3, all, all)), &looped, Some("3 blocks did not read back")),
            (Some(job(5, 0, 4096, 0)), &looped, Some("after 4096 bytes: Input/output error")),
            (Some(job(0, 0, 4096, 4096)), &timed, None),
            (Some(job(0, 0, 4096, 0)), &timed, Some("0 read back")),
        ] {
            let found = verdict(job.as_ref(), SIZE, settings).err();
            match (&found, expected) {
                (None, None) => {}
                (Some(found), Some(expected)) => assert!(found.contains(expected), "{found}"),
                other => panic!("{job:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn every_disk_that_failed_is_named_and_so_is_why_none_is_left() {
        let mut course = Course { disks: Vec::new(), results: Map::new(), failures: Vec::new() };
        course.note("/dev/sdb", json!({"kept": "on the list of skipped disks"}));
        let text = course.without_disks().to_string();
        assert!(text.contains("no disk to burn in (/dev/sdb: kept, on the list of skipped disks)"), "{text}");
        let test = |disk: &str, is_good| smart::SelfTest {
            disk: disk.to_owned(),
            status: "the status".to_owned(),
            is_good,
        };
        course.add(vec![test("/dev/sda", true), test("/dev/sdc", false), test("/dev/sdd", false)]);
        let text = course.conclude().unwrap_err().to_string();
        assert!(text.starts_with("/dev/sdc: its SMART self-test says: the status; /dev/sdd: "), "{text}");
    }
}
