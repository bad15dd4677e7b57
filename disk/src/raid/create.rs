//! Making the volumes that a node wants (section 9.9).

use super::plan::{self, Boot, Disk, Plan, PlannedArray};
use crate::error::Error;
use crate::guard::{self, RaidDisk, RaidPlan};
use crate::list;
use crate::md::MemberDevice;
use crate::md::array::{Array, arrays_on, sort_for_removal};
use crate::md::assemble::assemble;
use crate::md::config::RaidConfig;
use crate::md::mdadm::{self, Format};
use crate::wipe;
use farrier_linux::sysfs;
use farrier_protocol::lookup::Node;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

const SYSFS: &str = "/sys";

/// How often, and how far apart, a new array is looked at until all its members are in it.
const ATTEMPTS: u32 = 20;
const INTERVAL: Duration = Duration::from_millis(500);

/// Checks a configuration without looking at the disks in it (section 9.9).
///
/// # Errors
///
/// [`Error::InvalidRaidConfig`] or [`Error::InvalidSkipList`].
pub fn validate(node: &Node, config: &Value) -> Result<(), Error> {
    RaidConfig::parse(config, &guard::kept_volumes(node)?).map(drop)
}

/// Makes the volumes of `config` on disks of `node`, and returns whether there was anything to make. With
/// `guard`, disks with file systems of several machines are refused.
///
/// # Errors
///
/// [`Error::InvalidRaidConfig`], [`Error::Raid`], [`Error::Protected`] or [`Error::InUse`] before anything is
/// written: the volumes are not understood, do not fit, or the disks hold something. Whatever writing brings.
pub fn create(node: &Node, config: &Value, boot: Boot, guard: bool) -> Result<bool, Error> {
    let devices = list::list(Path::new(SYSFS))?;
    let available = guard::plan_raid(node, &devices)?;
    let config = RaidConfig::parse(config, &available.kept_volumes)?;
    if config.volumes.is_empty() {
        return Ok(false);
    }
    require_expected(&config, &available)?;
    let candidates: Vec<_> = available.disks.iter().map(|target| target.device().clone()).collect();
    let chosen = plan::choose_disks(&config, &candidates)?;
    let kept = stop_kept(&available)?;
    let outcome = make(&config, &chosen, &available, boot, guard);
    if kept {
        assemble(Path::new(SYSFS))?;
    }
    outcome.map(|()| true)
}

/// The arrays that are there must be among the wanted ones, and be kept.
fn require_expected(config: &RaidConfig, available: &RaidPlan) -> Result<(), Error> {
    if let Some(array) = available.arrays.first() {
        return Err(Error::Raid {
            device: array.device().disk.name.clone().into(),
            reason: "there is an array already; run the step delete_configuration first".to_owned(),
        });
    }
    let wanted: Vec<_> = config.volumes.iter().filter_map(|volume| volume.name.as_deref()).collect();
    let missing = available.kept_volumes.iter().find(|kept| !wanted.contains(&kept.as_str()));
    missing.map_or(Ok(()), |kept| {
        let reason =
            format!("skip_block_devices keeps the volume {kept}, which is not among the wanted ones");
        Err(Error::InvalidRaidConfig { reason })
    })
}

/// Stops the kept arrays, so that the tables of their disks can be written; true when there were any.
pub(super) fn stop_kept(available: &RaidPlan) -> Result<bool, Error> {
    if available.kept_volumes.is_empty() {
        return Ok(false);
    }
    let mut names: Vec<_> =
        available.disks.iter().flat_map(|disk| arrays_on(disk.device().directory())).collect();
    names.sort();
    names.dedup();
    sort_for_removal(&mut names, |name| Path::new(SYSFS).join("block").join(name));
    // Those that are to go are stopped by whoever takes them apart.
    names.retain(|name| available.arrays.iter().all(|array| array.device().kernel_name() != name));
    names.iter().try_for_each(|name| mdadm::stop(&Path::new("/dev").join(name)))?;
    Ok(!names.is_empty())
}

fn make(
    config: &RaidConfig,
    chosen: &[Vec<usize>],
    available: &RaidPlan,
    boot: Boot,
    guard: bool,
) -> Result<(), Error> {
    let is_chosen = |index: &usize| chosen.iter().flatten().any(|one| one == index);
    let (mut open, mut disks) = (Vec::new(), Vec::new());
    for (index, target) in available.disks.iter().enumerate() {
        let disk = is_chosen(&index).then(|| target.open(guard)).transpose()?;
        disk.iter().try_for_each(RaidDisk::require_free)?;
        let kept = disk.as_ref().map(|disk| disk.kept().to_vec()).unwrap_or_default();
        disks.push(Disk { device: target.device().clone(), kept });
        open.push(disk);
    }
    let kept = present_volumes(&open, &available.kept_volumes);
    let plan = plan::plan(config, chosen, &disks, &kept, boot, free_numbers())?;
    let members = make_partitions(&plan, open, boot)?;
    for array in &plan.arrays {
        let member = |(disk, number): &(usize, u32)| {
            let place = plan.partitions[*disk].iter().position(|one| one.number == *number);
            members[*disk][place.expect("the plan has every member it names")].clone()
        };
        let members: Vec<_> = array.members.iter().map(member).collect();
        make_array(array, &members)?;
    }
    Ok(())
}

/// The kept volumes that are there; one that is not is made.
fn present_volumes(open: &[Option<RaidDisk>], kept: &[String]) -> Vec<String> {
    let names: Vec<_> = open.iter().flatten().flat_map(RaidDisk::members_of).collect();
    let is_present = |kept: &&String| names.iter().any(|name| crate::md::superblock::is_named(name, kept));
    kept.iter().filter(is_present).cloned().collect()
}

/// Numbers that no device has.
pub(super) fn free_numbers() -> impl Iterator<Item = u32> {
    let block = Path::new(SYSFS).join("block");
    (0..).filter(move |number| !block.join(format!("md{number}")).exists())
}

fn make_partitions(
    plan: &Plan,
    open: Vec<Option<RaidDisk>>,
    boot: Boot,
) -> Result<Vec<Vec<MemberDevice>>, Error> {
    let make = |(disk, partitions): (Option<RaidDisk>, _)| match disk {
        Some(disk) if !Vec::is_empty(partitions) => disk.add(boot.table, partitions),
        _ => Ok(Vec::new()),
    };
    open.into_iter().zip(&plan.partitions).map(make).collect()
}

/// Makes an array and empties it: its data may begin where those of an array of an earlier user began, and then it
/// shows what that held.
fn make_array(array: &PlannedArray, members: &[MemberDevice]) -> Result<(), Error> {
    let device = PathBuf::from(format!("/dev/md{}", array.number));
    mdadm::create(&device, &array.name, array.level, Format::AtStart, members)?;
    let made = require_complete(&device, members)?;
    wipe::erase_metadata(&guard::open_array(&made, members)?)?;
    tracing::info!(array = %device.display(), name = array.name, level = ?array.level, "made");
    Ok(())
}

/// Waits until every member is in the array, which it gives; one that was dropped is added again (D34).
///
/// # Errors
///
/// [`Error::Raid`] naming the members that are missing.
pub(super) fn require_complete(device: &Path, members: &[MemberDevice]) -> Result<Array, Error> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut missing = Vec::new();
    for _ in 0..ATTEMPTS {
        let arrays = Array::all(Path::new(SYSFS));
        let array = arrays.iter().find(|array| array.kernel_name == name(device));
        let is_missing =
            |member: &&MemberDevice| array.is_none_or(|array| !array.members.contains(&name(member.path())));
        missing = members.iter().filter(is_missing).collect();
        if let Some(array) = array
            && missing.is_empty()
            && array.is_active
            && !is_degraded(&array.kernel_name)
        {
            return Ok(array.clone());
        }
        for member in &missing {
            if let Err(error) = mdadm::add(device, member) {
                tracing::warn!("{error}");
            }
        }
        thread::sleep(INTERVAL);
    }
    let missing: Vec<_> = missing.iter().map(|member| member.path().display().to_string()).collect();
    let reason = format!(
        "the array was made and does not work with all its members (missing: {}); look for errors of the \
         disks in the kernel log",
        missing.join(", ")
    );
    Err(Error::Raid { device: device.to_owned(), reason })
}

/// Arrays without redundancy do not say.
fn is_degraded(kernel_name: &str) -> bool {
    let attributes = Path::new(SYSFS).join("block").join(kernel_name).join("md");
    sysfs::number::<u32>(&attributes, "degraded").is_some_and(|count| count > 0)
}
