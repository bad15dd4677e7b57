//! Steps that keep.

use super::Stage;
use super::removing::{clear_if_member, layout};
use crate::disks::Placement;
use anyhow::{Context, Result, bail, ensure};
use farrier_disk::config_drive::{ConfigDrive, MAX_SIZE};
use farrier_disk::guard::{plan_erase, plan_raid};
use farrier_disk::{partition_image, table};
use serde_json::{Value, json};

impl Stage<'_> {
    /// `create_configuration` takes no disk that somebody uses.
    pub(super) fn create_where_somebody_lives(self) -> Result<()> {
        let plan = plan_raid(&self.node(&json!([]))?, std::slice::from_ref(&self.described))?;
        let [target] = &plan.disks[..] else { return self.require_unchanged() };
        let is_free = match target.open(true) {
            Err(_) => false,
            Ok(disk) => disk.require_unshared().is_ok() && disk.occupant().is_none(),
        };
        ensure!(!is_free, "software RAID takes the disk for a free one");
        self.require_unchanged()
    }

    /// `delete_configuration` with the occupant's array on the skip list.
    pub(super) fn delete_all_but_kept(self) -> Result<()> {
        let node = self.node(&json!([{"volume_name": "data"}]))?;
        let plan = plan_raid(&node, std::slice::from_ref(&self.described))?;
        let [target] = &plan.disks[..] else { return self.require_unchanged() };
        let before = crate::judge::partitions(self.file, self.disk.sector)?;
        let outcome = clear_if_member(target);
        let refusal = match self.placement {
            // A table of logical partitions is not written again: either way is fine.
            Placement::Logical => outcome.err(),
            _ => self.refusal(outcome)?,
        };
        if let Some(refusal) = refusal {
            return self.require_unchanged().with_context(|| format!("it was refused: {refusal}"));
        }
        let kept = self.disk.occupant.range.clone();
        let (left, after) = self.content()?;
        left.require_same(&after, &kept)?;
        // Where others saw no partition before, a step need not make one that they see.
        let is_led_to = !before.contains(&kept) || left.partitions()?.contains(&kept);
        ensure!(is_led_to, "nothing leads to the kept member any more");
        for other in &left.disk.others {
            left.require_no_marks(&after, &other.range)?;
            left.require_nothing_seen(&other.range)?;
        }
        Ok(())
    }

    /// What follows an image: its table is made to fit the disk, and the config drive is placed.
    pub(super) fn place_config_drive(self) -> Result<()> {
        let drive = ConfigDrive::from_download(self.config_drive.to_vec(), MAX_SIZE)?;
        let before = crate::judge::partitions(self.file, self.disk.sector)?;
        let disk = self.root_disk()?.open()?;
        let outcome = table::finish_image(&disk).and_then(|_| drive.write_to(&disk));
        drop(disk);
        if self.state.is_believed()
            && let Err(error) = &outcome
        {
            bail!("every system believes the table, and it failed: {error}");
        }
        let kept = self.disk.volumes().map(|volume| volume.range.clone());
        let kept: Vec<_> = kept.filter(|range| before.contains(range)).collect();
        let (left, after) = self.content()?;
        kept.iter().try_for_each(|range| left.require_same(&after, range))?;
        let now = left.partitions()?;
        for range in &before {
            ensure!(now.contains(range), "the partition at {range:?} is gone for others");
        }
        let Ok(made) = outcome else { return Ok(()) };
        let range = made.start..made.start + made.size;
        ensure!(now.contains(&range), "no other system sees the config drive at {range:?}");
        let seen = crate::judge::seen(&left.file, &range, left.disk.sector)?;
        let seen = seen.first().context("nothing is seen in the config drive")?;
        ensure!(["iso9660", "vfat"].contains(&seen.as_str()), "the config drive looks like {seen}");
        Ok(())
    }

    /// A partition image over a deployed one whose ephemeral partition stays.
    pub(super) fn preserve_ephemeral(self) -> Result<()> {
        let kept = self.disk.occupant.range.clone();
        let before = crate::judge::partitions(self.file, self.disk.sector)?;
        let disk = self.root_disk()?.open()?;
        let layout = layout(&disk, (kept.end - kept.start) >> 20)?;
        partition_image::prepare(&disk, &layout, true)?;
        let found = partition_image::finish(&disk, &layout, true, None)?;
        drop(disk);
        ensure!(found.esp.is_some(), "the EFI system partition has no file system");
        let (left, after) = self.content()?;
        left.require_same(&after, &kept)?;
        let now = left.partitions()?;
        ensure!(now == before, "others see {now:?} instead of {before:?}");
        Ok(())
    }

    /// An erase step with something of this disk on the skip list.
    pub(super) fn skip(self, skip_list: &Value) -> Result<()> {
        let plan = plan_erase(&self.node(skip_list)?, std::slice::from_ref(&self.described));
        match plan {
            Ok(plan) => ensure!(plan.targets.is_empty(), "the skip list does not keep the disk"),
            Err(error) => drop(self.refusal(Err(error))?),
        }
        self.require_unchanged()
    }
}
