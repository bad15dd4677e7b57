//! Taking the volumes of a node apart (section 9.9).

use super::array::Array;
use super::assemble::assemble;
use super::create::stop_kept;
use super::mdadm;
use crate::error::Error;
use crate::guard::{self, RaidArray, RaidPlan};
use crate::{list, wipe};
use farrier_protocol::lookup::Node;
use std::path::Path;

const SYSFS: &str = "/sys";

/// Removes every array of `node` that is not to be kept, with all by which it could be revived (D20).
///
/// First the content of each array, then its members, then the tables of the disks: a disk on which no
/// member is found, of a running array or of one that is gone, is not touched. With `guard`, disks with
/// file systems of several machines are refused.
///
/// # Errors
///
/// [`Error::InvalidSkipList`] before anything is touched. [`Error::Raid`] naming everything that is left;
/// whatever can be removed is removed nevertheless (D25).
pub fn delete(node: &Node, guard: bool) -> Result<(), Error> {
    assemble(Path::new(SYSFS))?;
    let devices = list::list(Path::new(SYSFS))?;
    let plan = guard::plan_raid(node, &devices)?;
    let mut failures: Vec<Error> =
        plan.arrays.iter().filter_map(|array| dissolve(array, guard).err()).collect();
    let kept = stop_kept(&plan)?;
    failures.extend(clear_members(&plan, guard));
    if kept {
        assemble(Path::new(SYSFS))?;
    }
    failures.extend(require_gone(&plan).err());
    conclude(failures)
}

/// One error for everything that is left; each failure counts, whatever came after it.
fn conclude(mut failures: Vec<Error>) -> Result<(), Error> {
    match failures.len() {
        0 => Ok(()),
        1 => Err(failures.remove(0)),
        _ => {
            let texts: Vec<_> = failures.iter().map(ToString::to_string).collect();
            Err(Error::Raid { device: "/dev".into(), reason: texts.join("; ") })
        }
    }
}

/// Empties an array and stops it.
fn dissolve(array: &RaidArray, guard: bool) -> Result<(), Error> {
    let disk = array.open(guard)?;
    wipe::erase_metadata(&disk)?;
    let path = disk.path().to_owned();
    drop(disk);
    mdadm::stop(&path)?;
    tracing::info!(array = %path.display(), "removed");
    Ok(())
}

/// Clears the disks that have members, whether an array of these still ran or not.
fn clear_members(plan: &RaidPlan, guard: bool) -> Vec<Error> {
    let mut failures = Vec::new();
    for target in &plan.disks {
        let cleared = target.open(guard).and_then(|disk| {
            if disk.members_of().is_empty() {
                return Ok(());
            }
            tracing::info!(disk = %disk.path().display(), members_of = ?disk.members_of(), "clearing");
            disk.clear()
        });
        failures.extend(cleared.err());
    }
    failures
}

fn require_gone(plan: &RaidPlan) -> Result<(), Error> {
    let doomed: Vec<_> = plan.arrays.iter().map(|array| array.device().kernel_name()).collect();
    let arrays = Array::all(Path::new(SYSFS));
    match arrays.iter().find(|array| doomed.contains(&array.kernel_name.as_str())) {
        None => Ok(()),
        Some(array) => Err(Error::Raid {
            device: array.path(),
            reason: "the array still runs after it was stopped; look who uses it".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d25_every_volume_that_is_left_is_named_whichever_came_last() {
        let left = |name: &str| Error::Raid { device: name.into(), reason: "it is in use".to_owned() };
        conclude(Vec::new()).unwrap();
        for names in [&["/dev/md0"][..], &["/dev/md0", "/dev/md1"], &["/dev/md1", "/dev/sda", "/dev/md0"]] {
            let text = conclude(names.iter().map(|name| left(name)).collect()).unwrap_err().to_string();
            assert!(names.iter().all(|name| text.contains(name)), "{text}");
        }
    }
}
