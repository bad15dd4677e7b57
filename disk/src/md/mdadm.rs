//! What `mdadm` is asked to do. Whether it was done is looked up in sysfs.

use super::MemberDevice;
use super::config::Level;
use crate::error::Error;
use farrier_linux::process::{MDADM, RunError};
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// Time for a run of mdadm, which waits for no array to be in step.
const LIMIT: Duration = Duration::from_secs(300);

/// The host in the names of new arrays: whoever boots from them may call itself anything.
const ANY_HOST: &str = "--homehost=any";

/// Format of superblocks, by where they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// At the start, for members that only Linux reads.
    AtStart,
    /// At the end, for members that firmware reads as plain file systems.
    AtEnd,
}

/// Makes the array `device` called `name` of `members`, whatever they held.
///
/// # Errors
///
/// [`Error::Raid`].
pub fn create(
    device: &Path,
    name: &str,
    level: Level,
    format: Format,
    members: &[MemberDevice],
) -> Result<(), Error> {
    let metadata = match format {
        Format::AtStart => "--metadata=1.2",
        Format::AtEnd => "--metadata=1.0",
    };
    let (level, count) = (format!("--level={}", level.number()), format!("--raid-devices={}", members.len()));
    let name = format!("--name={name}");
    let mut arguments = vec![OsStr::new("--create"), device.as_os_str()];
    arguments.extend(["--force", "--run", metadata, &level, &name, &count, ANY_HOST].map(OsStr::new));
    arguments.extend(members.iter().map(|member| member.path().as_os_str()));
    run(device, &arguments)
}

/// Adds a member that an array lost.
///
/// # Errors
///
/// [`Error::Raid`].
pub fn add(device: &Path, member: &MemberDevice) -> Result<(), Error> {
    run(device, &["--manage".as_ref(), device.as_os_str(), "--add".as_ref(), member.path().as_os_str()])
}

/// Stops an array. Its members keep all they hold.
///
/// # Errors
///
/// [`Error::Raid`].
pub fn stop(device: &Path) -> Result<(), Error> {
    run(device, &["--stop".as_ref(), device.as_os_str()])
}

/// Starts every array whose members are there. That there is none to start is no error; mdadm reports
/// both in the same way.
///
/// # Errors
///
/// mdadm cannot be started.
pub fn assemble_all() -> Result<(), RunError> {
    match MDADM.run(&["--assemble", "--scan", ANY_HOST], LIMIT) {
        Err(RunError::Start(error)) => Err(error.into()),
        Err(error) => {
            tracing::info!("{error}");
            Ok(())
        }
        Ok(text) => {
            text.lines().for_each(|line| tracing::info!("{line}"));
            Ok(())
        }
    }
}

fn run(device: &Path, arguments: &[&OsStr]) -> Result<(), Error> {
    let failed = |error: RunError| Error::Raid { device: device.to_owned(), reason: error.to_string() };
    MDADM.run(arguments, LIMIT).map(drop).map_err(failed)
}
