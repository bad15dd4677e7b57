//! Taking the volumes of a node apart (section 9.9).

use super::create::stop_kept;
use crate::device::stack;
use crate::error::Error;
use crate::guard::{self, RaidArray, RaidPlan, RaidTarget};
use crate::io::Sectors;
use crate::list;
use crate::md::array::Array;
use crate::md::assemble::assemble;
use crate::md::mdadm;
use crate::wipe;
use farrier_protocol::lookup::Node;
use std::path::{Path, PathBuf};

const SYSFS: &str = "/sys";

/// Removes every array of `node` that does not stay, with all by which it could be revived (D20).
///
/// First the content of each array, then its members, then the tables of the disks: a disk on which no
/// member is found, of a running array or of one that is gone, is not touched. A disk that cannot be read
/// fails alone, and only when it is in a running array: any other has nothing that could be revived. With
/// `guard`, disks with file systems of several machines are refused.
///
/// # Errors
///
/// Before anything is touched [`Error::InvalidSkipList`], [`Error::InvalidTable`] where it does not say which members
/// stay, and [`Error::Raid`] where its table cannot keep one. [`Error::Raid`] naming everything that is left;
/// whatever can be removed is removed nevertheless (D25).
pub fn delete(node: &Node, guard: bool) -> Result<(), Error> {
    assemble(Path::new(SYSFS))?;
    let devices = list::list(Path::new(SYSFS))?;
    let plan = guard::plan_raid(node, &devices)?;
    require_keepable(&plan)?;
    let members = disks_of_arrays(&plan);
    let mut failures: Vec<Error> =
        plan.arrays.iter().filter_map(|array| dissolve(array, guard).err()).collect();
    let kept = stop_kept(&plan)?;
    failures.extend(clear_members(&plan, &members, guard));
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

/// What is to be kept can be kept on every disk. One that cannot be read fails later and alone.
fn require_keepable(plan: &RaidPlan) -> Result<(), Error> {
    plan.disks.iter().try_for_each(|target| match target.require_keepable() {
        Err(Error::Device { .. }) => Ok(()),
        outcome => outcome,
    })
}

/// Empties an array and stops it.
fn dissolve(array: &RaidArray, guard: bool) -> Result<(), Error> {
    let disk = array.open(guard)?;
    let path = disk.path().to_owned();
    wipe::erase_metadata(&disk)?;
    drop(disk);
    mdadm::stop(&path)?;
    tracing::info!(array = %path.display(), "removed");
    Ok(())
}

/// The sysfs directories of the disks that the arrays lie on while they run.
fn disks_of_arrays(plan: &RaidPlan) -> Vec<PathBuf> {
    plan.arrays.iter().flat_map(|array| stack::below(array.device().directory())).collect()
}

/// Clears the disks that have members, whether an array of these still ran or not; `running` are those of which
/// one did.
fn clear_members(plan: &RaidPlan, running: &[PathBuf], guard: bool) -> Vec<Error> {
    let clear = |target: &RaidTarget| match target.has_member() {
        Ok(false) => Ok(()),
        Ok(true) => clear(target, guard),
        Err(error) => {
            let is_in = |disk: &PathBuf| disk.file_name() == target.device().directory().file_name();
            if running.iter().any(is_in) {
                return Err(error);
            }
            tracing::warn!("RAID member skipped: {error}");
            Ok(())
        }
    };
    plan.disks.iter().filter_map(|target| clear(target).err()).collect()
}

fn clear(target: &RaidTarget, guard: bool) -> Result<(), Error> {
    let disk = target.open(guard)?;
    tracing::info!(disk = %disk.path().display(), members_of = ?disk.members_of(), "clearing");
    disk.clear()
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
    use crate::guard::fake_machine::{FakeMachine, superblock};

    #[test]
    fn x24_a_dead_disk_fails_alone_and_disks_without_members_are_not_opened() {
        let machine = FakeMachine::new();
        let member = superblock(7, "home");
        for (disk, content) in [("vda", Some(&member)), ("vdb", None), ("vdc", Some(&member)), ("vdd", None)]
        {
            let content: Vec<_> = content.iter().map(|member| (4096, member.as_slice())).collect();
            machine.add(disk, &[], &content);
        }
        machine.add("md0", &[("md/level", "raid1")], &[]);
        for disk in ["vda", "vdc"] {
            machine.stack(disk, "md0");
        }
        for dead in ["vdc", "vdd"] {
            machine.lose(dead);
        }
        let devices = ["md0", "vda", "vdb", "vdc", "vdd"].map(|name| machine.device(name));
        let plan = guard::plan_raid(&Node::default(), &devices).unwrap();
        let names = |running: &[PathBuf]| -> Vec<String> {
            let failures = clear_members(&plan, running, true);
            failures.iter().map(|error| machine.shortened(&error.to_string())).collect()
        };
        // Opening any of these files as a disk fails, which tells the ones that were opened.
        let [first, second] = &names(&disks_of_arrays(&plan))[..] else { panic!("two failures") };
        assert!(first.contains("vda") && second.contains("vdc"), "{first} {second}");
        let [only] = &names(&[])[..] else { panic!("one failure") };
        assert!(only.contains("vda"), "{only}");
    }

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
