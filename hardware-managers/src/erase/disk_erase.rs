//! The course of one disk: from its description to a proven outcome.

use super::Depth;
use super::boot_area;
use super::certificate::{Record, Verdict};
use super::command_set::{self, Hidden, Patience, Reach, SecureErase};
use super::error::EraseError;
use super::medium::Medium;
use super::method::Method;
use super::overwrite::{self, overwrite};
use super::parts::Parts;
use super::proof::{Expectation, Proof};
use super::settings::{Passes, Settings};
use super::zones;
use farrier_disk::guard::{EraseTarget, StoppedVolumes};
use farrier_disk::wipe;
use farrier_disk::{Sectors, WritableDisk};
use std::path::Path;

const NO_METHOD: &str = "neither Sanitize nor Format reaches this namespace alone";

/// What is left of a disk whose turn did not come.
const NOT_BEGUN: &str = "it was not begun; run the step again";

/// Erases a disk and returns the result.
pub fn erase(target: &EraseTarget, settings: &Settings, depth: Depth, patience: &Patience<'_>) -> Record {
    let mut record = Record::begin(target.device());
    let outcome = erase_target(target, settings, depth, patience, &mut record);
    record.finish(outcome)
}

fn erase_target(
    target: &EraseTarget,
    settings: &Settings,
    depth: Depth,
    patience: &Patience<'_>,
    record: &mut Record,
) -> Result<Verdict, EraseError> {
    let device = target.device();
    if (patience.is_ending)() {
        return Err(EraseError::Ending(NOT_BEGUN));
    }
    let is_boot_area = boot_area::is_one(device);
    if is_boot_area && !(settings.boot_areas && depth == Depth::Data) {
        return Ok(Verdict::Kept(boot_area::KEPT.to_owned()));
    }
    let _writable = is_boot_area.then(|| boot_area::Writable::new(Path::new("/sys"), device)).transpose()?;
    command_set::make_ready(device, patience)?;
    target.require_whole()?;
    let disk = target.open(settings.guard)?;
    let own = command_set::of(&disk, device);
    let reach = match depth {
        Depth::Data | Depth::Express => command_set::reach(own.as_deref(), device),
        Depth::Metadata => Reach::default(),
    };
    let secure = own.filter(|_| command_set::may_erase_itself(device, settings));
    let method = match depth {
        Depth::Data => erase_data(&disk, secure.as_deref(), reach, settings, patience, record)?,
        Depth::Express => erase_quickly(&disk, secure.as_deref(), reach, patience, record)?,
        Depth::Metadata => erase_metadata(&disk, record)?,
    };
    // A device without partitions has no table to read again.
    if let Err(error) = disk.reread_partitions() {
        tracing::debug!("{error}");
    }
    // A member that fails a write is dropped, and keeps what it held.
    target.require_whole()?;
    Ok(Verdict::Erased(method))
}

/// Erases a disk outside of the node's volumes, which were erased already, and returns the result for all.
pub fn erase_beside(
    target: &EraseTarget,
    volumes: &StoppedVolumes,
    settings: &Settings,
    depth: Depth,
    patience: &Patience<'_>,
) -> Record {
    let mut record = Record::begin(target.device());
    let outcome = erase_parts(target, volumes, settings, depth, patience, &mut record);
    record.finish(outcome)
}

fn erase_parts(
    target: &EraseTarget,
    volumes: &StoppedVolumes,
    settings: &Settings,
    depth: Depth,
    patience: &Patience<'_>,
    record: &mut Record,
) -> Result<Verdict, EraseError> {
    let device = target.device();
    if (patience.is_ending)() {
        return Err(EraseError::Ending(NOT_BEGUN));
    }
    command_set::make_ready(device, patience)?;
    let disk = target.open(settings.guard)?;
    let beside = volumes.beside(target, &disk)?;
    let (method, outcome) = match depth {
        // A disk that erased itself would lose the volumes.
        Depth::Data => {
            let own = command_set::of(&disk, device);
            require_none_hidden(&note(command_set::reach(own.as_deref(), device), record))?;
            let parts = Parts::of(&disk, beside.doomed.iter());
            (Method::Overwrite, overwrite_proven(&parts, settings.passes, patience, record))
        }
        Depth::Express | Depth::Metadata => {
            (Method::Metadata, beside.erase_metadata(&disk).map_err(EraseError::from))
        }
    };
    record.tried(method, outcome.as_ref().err());
    record.beside = Some(beside);
    outcome.map(|()| Verdict::Erased(method))
}

/// Erases everything, by the strongest means first. What follows a failure needs the operator's consent, and what is
/// out of reach is erased by Sanitize alone.
pub(super) fn erase_data(
    medium: &dyn Medium,
    secure: Option<&dyn SecureErase>,
    reach: Reach,
    settings: &Settings,
    patience: &Patience<'_>,
    record: &mut Record,
) -> Result<Method, EraseError> {
    let hidden = note(reach, record);
    if let Some(secure) = secure {
        let outcome = erase_itself(medium, secure, &hidden, settings.continue_if_failed, patience, record);
        let error = match outcome {
            Ok(Some(method)) => return Ok(method),
            Ok(None) => (secure.is_indispensable() && hidden.is_empty())
                .then_some(EraseError::NoSecureErase(NO_METHOD)),
            Err(error @ EraseError::Ending(_)) => return Err(error),
            Err(error) => Some(error),
        };
        match error {
            Some(error) if settings.continue_if_failed && hidden.is_empty() => {
                tracing::warn!(disk = record.device, "overwriting it instead: {error}");
            }
            Some(error) => return Err(error),
            None => {}
        }
    }
    require_none_hidden(&hidden)?;
    let outcome = overwrite_proven(medium, settings.passes, patience, record);
    record.tried(Method::Overwrite, outcome.as_ref().err());
    outcome.map(|()| Method::Overwrite)
}

/// Puts on record what a disk says of its reach, and gives what is out of it.
fn note(reach: Reach, record: &mut Record) -> Vec<Hidden> {
    record.capabilities.extend(reach.counts);
    record.unanswered.extend(reach.unanswered);
    reach.hidden
}

fn require_none_hidden(hidden: &[Hidden]) -> Result<(), EraseError> {
    let texts: Vec<_> = hidden.iter().map(ToString::to_string).collect();
    if texts.is_empty() { Ok(()) } else { Err(EraseError::Hidden(texts.join("; "))) }
}

/// Has the disk erase itself; nothing when it has no way to. A method that the disk lists and does not have is none,
/// and where something is out of reach only Sanitize is one.
fn erase_itself(
    medium: &dyn Medium,
    secure: &dyn SecureErase,
    hidden: &[Hidden],
    try_weaker: bool,
    patience: &Patience<'_>,
    record: &mut Record,
) -> Result<Option<Method>, EraseError> {
    let survey = secure.survey()?;
    record.capabilities.extend(survey.capabilities);
    let mut failure = None;
    for method in survey.methods.into_iter().filter(|method| hidden.is_empty() || method.reaches_hidden()) {
        let outcome = erase_proven(medium, secure, method, patience, record);
        record.tried(method, outcome.as_ref().err());
        match outcome {
            Ok(()) => return Ok(Some(method)),
            Err(EraseError::Unsupported { .. }) => {
                tracing::warn!(disk = record.device, %method, "the disk lists this method and does not have it");
                continue;
            }
            Err(error @ EraseError::Ending(_)) => return Err(error),
            Err(source) => {
                tracing::error!(disk = record.device, %method, "secure erase failed: {source}");
                failure = Some(EraseError::Secure { method, source: Box::new(source) });
            }
        }
        if !try_weaker {
            break;
        }
    }
    failure.map_or(Ok(None), Err)
}

fn erase_proven(
    medium: &dyn Medium,
    secure: &dyn SecureErase,
    method: Method,
    patience: &Patience<'_>,
    record: &mut Record,
) -> Result<(), EraseError> {
    tracing::info!(disk = record.device, %method, "erasing");
    secure.prepare()?;
    let proof = Proof::plant(medium)?;
    secure.erase(method, patience)?;
    record.samples = proof.verify(medium, Expectation::Changed)?;
    Ok(())
}

fn overwrite_proven(
    medium: &dyn Medium,
    passes: Passes,
    patience: &Patience<'_>,
    record: &mut Record,
) -> Result<(), EraseError> {
    tracing::info!(disk = record.device, ?passes, "overwriting");
    let total = overwrite::writable_bytes(medium)?.max(1) * (passes.random + u64::from(passes.zero));
    let proof = Proof::plant(medium)?;
    let expectation = if passes.zero { Expectation::Zero } else { Expectation::Changed };
    let reported = std::cell::Cell::new(0);
    overwrite(medium, passes, patience.is_ending, &|done| {
        let percent = done * 100 / total;
        if percent >= reported.get() + 10 {
            reported.set(percent);
            tracing::info!(disk = record.device, percent, "overwriting");
        }
    })?;
    record.samples = proof.verify(medium, expectation)?;
    // The next user writes from the start of each.
    zones::reset_all(medium)?;
    Ok(())
}

/// NVMe disks erase themselves in seconds; the others, and those that fail, lose their metadata.
fn erase_quickly(
    disk: &WritableDisk,
    secure: Option<&dyn SecureErase>,
    reach: Reach,
    patience: &Patience<'_>,
    record: &mut Record,
) -> Result<Method, EraseError> {
    let hidden = note(reach, record);
    // Indispensable means flash behind NVMe: others may take hours.
    if let Some(secure) = secure.filter(|secure| secure.is_indispensable()) {
        match erase_itself(disk, secure, &hidden, true, patience, record) {
            Ok(Some(method)) => return Ok(method),
            Err(error @ EraseError::Ending(_)) => return Err(error),
            Ok(None) => tracing::warn!(disk = record.device, "erasing its metadata only: {NO_METHOD}"),
            Err(error) => tracing::warn!(disk = record.device, "erasing its metadata only: {error}"),
        }
    }
    erase_metadata(disk, record)
}

fn erase_metadata(disk: &WritableDisk, record: &mut Record) -> Result<Method, EraseError> {
    if !disk.zones()?.is_empty() {
        let outcome = zones::erase_metadata(disk);
        record.tried(Method::Metadata, outcome.as_ref().err());
        return outcome.map(|()| Method::Metadata);
    }
    let outcome = wipe::erase_metadata(disk).map_err(EraseError::from);
    record.tried(Method::Metadata, outcome.as_ref().err());
    outcome.map(|()| Method::Metadata)
}
