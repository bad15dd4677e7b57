//! The course of one disk: from its description to a proven outcome.

use super::Depth;
use super::certificate::{Record, Verdict};
use super::command_set;
use super::error::EraseError;
use super::medium::Medium;
use super::method::Method;
use super::overwrite::overwrite;
use super::proof::{Expectation, Proof};
use super::secure::{Patience, SecureErase};
use super::settings::{Passes, Settings};
use farrier_disk::guard::EraseTarget;
use farrier_disk::wipe::{self, Erased};
use farrier_disk::{Sectors, WritableDisk};

const NO_METHOD: &str = "neither Sanitize nor Format reaches this namespace alone";

/// Erases a disk and tells what became of it.
pub fn erase(target: &EraseTarget, settings: &Settings, depth: Depth) -> Record {
    let mut record = Record::begin(target.device());
    let outcome = erase_target(target, settings, depth, &mut record);
    record.finish(outcome)
}

fn erase_target(
    target: &EraseTarget,
    settings: &Settings,
    depth: Depth,
    record: &mut Record,
) -> Result<Verdict, EraseError> {
    let device = target.device();
    let disk = match claim(target, settings.guard)? {
        Claim::Taken(disk) => disk,
        Claim::Kept(reason) => return Ok(Verdict::Kept(reason)),
    };
    let secure = command_set::of(&disk, device, settings);
    let patience = Patience::default();
    let method = match depth {
        Depth::Data => erase_data(&disk, secure.as_deref(), settings, &patience, record)?,
        Depth::Express => erase_quickly(&disk, secure.as_deref(), &patience, record)?,
        Depth::Metadata => erase_metadata(&disk, record)?,
    };
    // A device without partitions has no table to read again.
    if let Err(error) = disk.reread_partitions() {
        tracing::debug!("{error}");
    }
    Ok(Verdict::Erased(method))
}

/// A disk that is to be destroyed.
pub enum Claim {
    /// It is held, and its content may go.
    Taken(WritableDisk),
    /// It is to be kept, for this reason.
    Kept(String),
}

/// Takes hold of a disk, unless its content is to be kept; `guard` keeps what other machines may be using.
///
/// # Errors
///
/// The disk is in use, here or by another machine, changed, or cannot be read.
pub fn claim(target: &EraseTarget, guard: bool) -> Result<Claim, EraseError> {
    let volumes = target.volumes();
    if !volumes.is_empty() {
        return Ok(Claim::Kept(format!("a member of {}, which is erased itself", volumes.join(", "))));
    }
    Ok(Claim::Taken(target.open(guard)?))
}

/// Erases everything, by the strongest means first. What follows a failure needs the operator's consent.
pub(super) fn erase_data(
    medium: &dyn Medium,
    secure: Option<&dyn SecureErase>,
    settings: &Settings,
    patience: &Patience,
    record: &mut Record,
) -> Result<Method, EraseError> {
    if let Some(secure) = secure {
        let outcome = erase_itself(medium, secure, settings.continue_if_failed, patience, record);
        let error = match outcome {
            Ok(Some(method)) => return Ok(method),
            Ok(None) => secure.is_indispensable().then_some(EraseError::NoSecureErase(NO_METHOD)),
            Err(error) => Some(error),
        };
        match error {
            Some(error) if settings.continue_if_failed => {
                tracing::warn!(disk = record.device, "overwriting it instead: {error}");
            }
            Some(error) => return Err(error),
            None => {}
        }
    }
    let outcome = overwrite_proven(medium, settings.passes, record);
    record.tried(Method::Overwrite, outcome.as_ref().err());
    outcome.map(|()| Method::Overwrite)
}

/// Has the disk erase itself; nothing when it has no way to.
fn erase_itself(
    medium: &dyn Medium,
    secure: &dyn SecureErase,
    try_weaker: bool,
    patience: &Patience,
    record: &mut Record,
) -> Result<Option<Method>, EraseError> {
    let survey = secure.survey()?;
    record.capabilities = survey.capabilities;
    let mut failure = None;
    for method in survey.methods {
        let outcome = erase_proven(medium, secure, method, patience, record);
        record.tried(method, outcome.as_ref().err());
        match outcome {
            Ok(()) => return Ok(Some(method)),
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
    patience: &Patience,
    record: &mut Record,
) -> Result<(), EraseError> {
    tracing::info!(disk = record.device, %method, "erasing");
    secure.prepare()?;
    let proof = Proof::plant(medium)?;
    secure.erase(method, patience)?;
    record.samples = proof.verify(medium, Expectation::Changed)?;
    Ok(())
}

fn overwrite_proven(medium: &dyn Medium, passes: Passes, record: &mut Record) -> Result<(), EraseError> {
    tracing::info!(disk = record.device, ?passes, "overwriting");
    let proof = Proof::plant(medium)?;
    let expectation = if passes.zero { Expectation::Zero } else { Expectation::Changed };
    let total = medium.size().max(1) * (passes.random + u64::from(passes.zero));
    let reported = std::cell::Cell::new(0);
    overwrite(medium, passes, &|done| {
        let percent = done * 100 / total;
        if percent >= reported.get() + 10 {
            reported.set(percent);
            tracing::info!(disk = record.device, percent, "overwriting");
        }
    })?;
    record.samples = proof.verify(medium, expectation)?;
    Ok(())
}

/// NVMe disks erase themselves in seconds; the others, and those that fail, lose their metadata.
fn erase_quickly(
    disk: &WritableDisk,
    secure: Option<&dyn SecureErase>,
    patience: &Patience,
    record: &mut Record,
) -> Result<Method, EraseError> {
    // Indispensable means flash behind NVMe: others may take hours.
    if let Some(secure) = secure.filter(|secure| secure.is_indispensable()) {
        match erase_itself(disk, secure, true, patience, record) {
            Ok(Some(method)) => return Ok(method),
            Ok(None) => tracing::warn!(disk = record.device, "erasing its metadata only: {NO_METHOD}"),
            Err(error) => tracing::warn!(disk = record.device, "erasing its metadata only: {error}"),
        }
    }
    erase_metadata(disk, record)
}

fn erase_metadata(disk: &WritableDisk, record: &mut Record) -> Result<Method, EraseError> {
    let outcome = wipe::erase_metadata(disk, &wipe::is_virtual_media).map_err(EraseError::from);
    record.tried(Method::Metadata, outcome.as_ref().err());
    match outcome? {
        Erased::Yes => Ok(Method::Metadata),
        // The plan has no such disk.
        Erased::VirtualMedia => Err(EraseError::Defect),
    }
}
