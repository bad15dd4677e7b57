//! Erasing the disks of a machine, each by the strongest means it has (secure erase, sanitize, overwriting), and
//! proving it (section 9.8).
//!
//! ```text
//! node ─ settings ─┐
//! disks ─ guard ───┴ plan ─▶ per disk: survey ▶ plant markers ▶ erase ▶ read back ─▶ certificate
//! ```
//!
//! [`disk_erase`] takes one disk through it: all of it, or what lies beside the node's volumes of software RAID, which are
//! erased before their disks. What a disk can do, and what of it is out of reach, comes from
//! [`command_set`] with one implementation for NVMe, ATA and SCSI; [`overwrite`] works on any disk. [`proof`] writes random markers before and looks for them afterwards, so that a disk that
//! reports success and keeps its data is found out. A weaker method is used only where the disk has
//! no stronger one, or where the operator consents; the [`certificate`] names the method.

mod accessible;
mod boot_area;
mod certificate;
mod command_set;
mod complete;
mod disk_erase;
mod error;
mod machine;
mod medium;
mod method;
mod overwrite;
mod parts;
mod proof;
mod settings;
mod unseen;
mod zones;

pub use error::EraseError;
pub use method::Method;
pub use unseen::{Examination, Storage, Unseen};

use crate::error::StepError;
use crate::manager::StepCall;
use certificate::Record;
use command_set::Patience;
use farrier_disk::BlockDevice;
use farrier_disk::guard::{self, BootMedium, ErasePlan, EraseTarget, KeepReason, KeptDisk, StoppedVolumes};
use farrier_disk::list;
use farrier_protocol::error::{CommandError, ErrorKind};
use serde_json::{Map, Value};
use settings::Settings;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::thread;

/// How far an erase step goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Everything that was ever written.
    Data,
    /// Everything where that takes seconds (NVMe), else the metadata.
    Express,
    /// Partition tables and signatures.
    Metadata,
}

/// The warnings of a result.
pub const WARNINGS: &str = "warnings";

/// Erases every disk of the node that is not to be kept, and returns what became of each, by name, and under
/// `warnings` which entries of the skip list name no disk.
///
/// Each disk has its own outcome, and one that fails does not keep the others from being erased.
///
/// # Errors
///
/// A `BlockDeviceEraseError` naming every disk that was not erased and why, and those that were. A disk
/// that appeared meanwhile was not, and one without a size cannot be. Nothing is erased where disks may be
/// missing: a success means that no disk of the machine has data.
pub fn erase_devices(call: &StepCall<'_>, depth: Depth) -> Result<Value, StepError> {
    let sysfs = Path::new("/sys");
    let found = complete::examine(call.node, sysfs);
    tracing::info!("examined beside the block devices: {found}");
    complete::require(&found, &call.host.missing_devices())?;
    let (mut seen, mut plan) = survey(call)?;
    let is_ending = || call.host.is_ending();
    let patience = Patience::until(&is_ending);
    if depth == Depth::Data && accessible::make(&plan, settings(call)?.guard, sysfs, &patience) {
        (seen, plan) = survey(call)?;
    }
    let mut records: Vec<Record> = complete::without_size(call.node, sysfs)?;
    complete::require_any(call.node, !records.is_empty() || !seen.is_empty())?;
    records.extend(carry_out(call, depth, &plan)?);
    let (_, later) = survey(call)?;
    records.extend(appeared(&seen, &later));
    let warnings: Vec<_> = plan.warnings.into_iter().chain(complete::not_examined(&found)).collect();
    conclude(call, records, &warnings, Some(&found))
}

/// Carries out a plan, as [`erase_devices`] does, and leaves every other disk alone. Of the machine it states nothing.
///
/// # Errors
///
/// As there.
pub fn erase_plan(call: &StepCall<'_>, depth: Depth, plan: &ErasePlan) -> Result<Value, StepError> {
    conclude(call, carry_out(call, depth, plan)?, &plan.warnings, None)
}

/// The disks and their plan.
fn survey(call: &StepCall<'_>) -> Result<(Vec<BlockDevice>, ErasePlan), StepError> {
    let devices = list::list(Path::new("/sys")).map_err(failed)?;
    let plan = guard::plan_erase(call.node, &devices).map_err(failed)?;
    Ok((devices, plan))
}

fn failed(error: farrier_disk::Error) -> StepError {
    StepError::Failed(CommandError::new(error.kind(), error.to_string()))
}

fn carry_out(call: &StepCall<'_>, depth: Depth, plan: &ErasePlan) -> Result<Vec<Record>, StepError> {
    plan.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let settings = settings(call)?;
    let is_ending = || call.host.is_ending();
    let patience = Patience::until(&is_ending);
    let mut records: Vec<_> = plan.kept.iter().map(|kept| keep(kept, &settings, depth)).collect();
    let (arrays, disks): (Vec<_>, Vec<_>) = plan.targets.iter().partition(|target| target.is_array());
    // Once its volumes are stopped, a disk does not tell of them.
    let disks: Vec<_> = disks.into_iter().map(|disk| (disk, disk.volumes())).collect();
    let whole =
        |target: &EraseTarget| guarded(target, || disk_erase::erase(target, &settings, depth, &patience));
    records.extend(in_parallel(&arrays, settings.concurrency, |array| whole(array)));
    let is_erased = |device: &Path| {
        records.iter().any(|record| device == Path::new(&record.device) && record.failure().is_none())
    };
    let volumes = StoppedVolumes::stop(plan, |device| is_erased(Path::new(&device.disk.name)));
    let beside = |disk: &EraseTarget, names: &[String]| {
        let left = names.iter().find(|name| !is_erased(&Path::new("/dev").join(name)));
        match (&volumes, left) {
            (Ok(volumes), None) => {
                guarded(disk, || disk_erase::erase_beside(disk, volumes, &settings, depth, &patience))
            }
            (Ok(_), Some(name)) => {
                Record::failed(disk.device(), EraseError::Volume(format!("{name} was not erased")))
            }
            (Err(error), _) => Record::failed(disk.device(), EraseError::Volume(error.to_string())),
        }
    };
    let erased = in_parallel(&disks, settings.concurrency, |(disk, names)| match &names[..] {
        [] => whole(disk),
        names => beside(disk, names),
    });
    let started = volumes.as_ref().map_or(Ok(()), StoppedVolumes::start);
    let volume = plan.targets.iter().find(|target| target.is_volume());
    let unstarted =
        started.err().zip(volume).map(|(error, volume)| Record::failed(volume.device(), error.into()));
    Ok(records.into_iter().chain(erased).chain(unstarted).collect())
}

/// The record of a disk, also where the agent fails at it.
fn guarded(target: &EraseTarget, erase: impl FnOnce() -> Record) -> Record {
    catch_unwind(AssertUnwindSafe(erase))
        .unwrap_or_else(|_| Record::failed(target.device(), EraseError::Defect))
}

fn settings(call: &StepCall<'_>) -> Result<Settings, StepError> {
    let settings = Settings::of(call.node, call.host.guards_special_filesystems())?;
    Ok(Settings { boot_areas: call.host.erases_emmc_boot_areas(), ..settings })
}

/// Failures for the disks of `later` that were not among those `seen` (F25): a client that hears that the step
/// succeeded believes that no disk of the machine holds data.
fn appeared(seen: &[BlockDevice], later: &ErasePlan) -> Vec<Record> {
    let identity = |device: &BlockDevice| (device.disk.name.clone(), device.disk.serial.clone());
    let known: Vec<_> = seen.iter().map(identity).collect();
    // Arrays lie on disks, and get other names when they are started again.
    let disks = later.targets.iter().filter(|target| !target.is_array());
    let new = disks.filter(|target| !known.contains(&identity(target.device())));
    new.map(|target| Record::failed(target.device(), EraseError::Appeared)).collect()
}

/// A read-only disk that should have been erased is a failure, unless the operator said otherwise (D30), and so is one
/// that may or may not be what the ramdisk came from.
fn keep(kept: &KeptDisk, settings: &Settings, depth: Depth) -> Record {
    match kept.reason {
        KeepReason::ReadOnly if depth == Depth::Data && !settings.skip_read_only => {
            Record::failed(&kept.device, EraseError::ReadOnly)
        }
        KeepReason::BootMedium(medium @ BootMedium::Doubtful) => {
            Record::failed(&kept.device, EraseError::MayBeMedium(medium))
        }
        reason => Record::kept(&kept.device, reason.to_string()),
    }
}

/// Certifies every record, and the machine where it was examined, logs them, and returns the outcome of the step.
fn conclude(
    call: &StepCall<'_>,
    records: Vec<Record>,
    warnings: &[String],
    found: Option<&Examination>,
) -> Result<Value, StepError> {
    let mut result = Map::new();
    if !warnings.is_empty() {
        result.insert(WARNINGS.to_owned(), warnings.into());
    }
    for record in &records {
        let mut statement = record.statement(&call.node.uuid, call.step);
        statement["nonce"] = call.nonce.into();
        record.log(&statement);
        result.insert(record.device.clone(), certified(call, &record.device, statement));
    }
    if let Some(found) = found {
        let statement = machine::statement(call, &records, found);
        tracing::info!(%statement, "machine examined");
        result.insert(machine::MACHINE.to_owned(), certified(call, machine::MACHINE, statement));
    }
    let failures: Vec<_> = records.iter().filter_map(Record::failure).collect();
    if failures.is_empty() {
        return Ok(Value::Object(result));
    }
    let others = records.iter().filter(|record| record.failure().is_none()).map(Record::summary);
    let parts: Vec<_> = failures.into_iter().chain(others).collect();
    Err(StepError::Failed(CommandError::new(ErrorKind::BlockDeviceEraseError, parts.join("; "))))
}

/// A statement with its certificate. An agent without a key of its own (plain HTTP, or an RSA key) has none.
fn certified(call: &StepCall<'_>, subject: &str, mut statement: Value) -> Value {
    match call.host.certify(&statement) {
        Ok(certificate) => statement["certificate"] = certificate.into(),
        Err(error) => tracing::error!(subject, "not certified: {}", error.text()),
    }
    statement
}

/// Does `work` on all items, on at most `width` threads, and keeps their order.
fn in_parallel<T: Sync, R: Send>(items: &[T], width: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let queue = Mutex::new(items.iter().enumerate());
    let done = Mutex::new(Vec::new());
    let next = || queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
    thread::scope(|scope| {
        for _ in 0..width.min(items.len()) {
            scope.spawn(|| {
                while let Some((index, item)) = next() {
                    let outcome = work(item);
                    done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((index, outcome));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

#[cfg(test)]
mod tests;
