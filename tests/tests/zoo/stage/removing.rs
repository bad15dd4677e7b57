//! Steps that destroy.

use super::Stage;
use crate::content::Content;
use crate::disks::{ESP, Placement, ROOT};
use crate::tables::{self, Gpt};
use anyhow::{Context, Result, bail, ensure};
use farrier_disk::guard::{RaidTarget, plan_erase, plan_raid};
use farrier_disk::layout::{Layout, Request};
use farrier_disk::table::{self, Geometry, NewPartition, PartitionKind, TableKind};
use farrier_disk::{Error, Sectors, ephemeral, partition_image, wipe};
use farrier_linux::aligned::AlignedBuffer;
use serde_json::json;
use std::ops::Range;
use uuid::Uuid;

const MIB: u64 = 1 << 20;
/// Bytes of the whole-disk image, and its partition.
const IMAGE: u64 = 24 * MIB;
pub(super) const IN_IMAGE: Range<u64> = 2 * MIB..20 * MIB;
/// What lies in that partition, everywhere.
const HAY: u8 = 0x5a;

impl Stage<'_> {
    /// The whole of an erase step for one disk: its plan, the guard, the erasing.
    pub(super) fn erase(self, guard: bool) -> Result<()> {
        let plan = plan_erase(&self.node(&json!([]))?, std::slice::from_ref(&self.described))?;
        let [target] = &plan.targets[..] else { bail!("the plan does not erase it: {:?}", plan.kept) };
        let outcome = target.open(guard).and_then(|disk| wipe::erase_metadata(&disk));
        if self.is_shared() && guard {
            return self.require_protected(outcome);
        }
        outcome?;
        self.require_gone()
    }

    pub(super) fn wipe_for_export(self) -> Result<()> {
        let outcome = self.root_disk()?.open().and_then(|disk| wipe::erase_metadata(&disk));
        if self.is_shared() {
            return self.require_protected(outcome);
        }
        outcome?;
        self.require_gone()
    }

    pub(super) fn wipe_for_partition_image(self) -> Result<()> {
        let disk = self.root_disk()?.open()?;
        let layout = layout(&disk, 0)?;
        partition_image::prepare(&disk, &layout, false)?;
        drop(disk);
        self.require_gone()
    }

    pub(super) fn write_whole_disk_image(self) -> Result<()> {
        let has_gpt = self.image_has_gpt();
        let image = image(self.disk.sector, has_gpt);
        let disk = self.root_disk()?.open()?;
        put(&image, &disk)?;
        drop(disk);
        let wanted: &[&str] = if has_gpt { &["PMBR", "gpt"] } else { &["dos"] };
        let (left, after) = self.content()?;
        if let Some(offset) = image.difference(&after, &(MIB..IMAGE)) {
            bail!("byte {offset} of the image is another one");
        }
        let partitions = left.partitions()?;
        ensure!(partitions == [IN_IMAGE], "others see the partitions {partitions:?}");
        let seen = crate::judge::seen(&left.file, &(0..left.disk.size), left.disk.sector)?;
        let foreign: Vec<_> = seen.iter().filter(|kind| !wanted.contains(&kind.as_str())).collect();
        ensure!(foreign.is_empty(), "on the disk others still see {foreign:?}");
        left.require_nothing_seen(&IN_IMAGE)?;
        // A system may make partitions where the old ones were, behind the end of the image.
        for volume in left.disk.volumes().filter(|volume| volume.range.start >= IMAGE) {
            left.require_no_marks(&after, &volume.range)?;
            left.require_nothing_seen(&volume.range)?;
        }
        Ok(())
    }

    /// Another kind of table than the disk had, so that what is left of that one shows.
    fn image_has_gpt(&self) -> bool {
        matches!(self.placement, Placement::Mbr | Placement::Logical)
    }

    /// A member partition over what nothing leads to any more.
    pub(super) fn create_over_what_is_left(self) -> Result<()> {
        let range = self.disk.occupant.range.clone();
        let end = range.end.next_multiple_of(MIB);
        let plan = plan_raid(&self.node(&json!([]))?, std::slice::from_ref(&self.described))?;
        let [target] = &plan.disks[..] else { bail!("software RAID may not use it") };
        let disk = target.open(true)?;
        let occupant = disk.occupant();
        ensure!(occupant.is_none(), "a disk that shows nothing holds {occupant:?}");
        let (kind, in_table) = match self.disk.sector {
            512 => (
                TableKind::Gpt,
                PartitionKind::Gpt { type_guid: Uuid::from_u128(7), guid: Uuid::from_u128(8) },
            ),
            _ => (TableKind::Mbr, PartitionKind::Mbr { type_id: 0xfd, disk_identifier: 0 }),
        };
        let (start, size) = (range.start, end - range.start);
        let name = "member".to_owned();
        disk.add(kind, &[NewPartition { number: 1, start, size, kind: in_table, is_booted: false, name }])?;
        let (left, after) = self.content()?;
        let partitions = left.partitions()?;
        ensure!(
            partitions == std::slice::from_ref(&(start..end)),
            "others see the partitions {partitions:?}"
        );
        left.require_no_marks(&after, &range)?;
        left.require_nothing_seen(&range)
    }

    /// Takes arrays apart on the disks that have members, as the step does, and leaves others alone.
    pub(super) fn delete(self) -> Result<()> {
        let plan = plan_raid(&self.node(&json!([]))?, std::slice::from_ref(&self.described))?;
        let [target] = &plan.disks[..] else { bail!("software RAID may not use it") };
        let refusal = self.refusal(clear_if_member(target))?;
        if self.is_member() && refusal.is_none() && !self.state.hides_occupant() {
            return self.require_gone();
        }
        let why = || format!("the step answered {refusal:?}");
        self.require_unchanged().with_context(why)
    }

    /// The outcome of a step that a damaged table may stop, but only before anything is written.
    pub(super) fn refusal(&self, outcome: Result<(), Error>) -> Result<Option<Error>> {
        match outcome {
            Err(error) if self.state.is_plain() => bail!("the table is sound, and it failed: {error}"),
            outcome => Ok(outcome.err()),
        }
    }
}

/// The layout of a partition image for UEFI, with an ephemeral partition of so many MiB.
pub(super) fn layout(disk: &dyn Sectors, ephemeral_mib: u64) -> Result<Layout, Error> {
    let request = Request {
        is_uefi: true,
        is_power: false,
        table: TableKind::Gpt,
        root_mib: if ephemeral_mib > 0 { ROOT } else { 1 },
        swap_mib: 0,
        ephemeral_mib,
        ephemeral_format: ephemeral::Format::default(),
        esp_mib: if ephemeral_mib > 0 { ESP } else { 1 },
        bios_boot_mib: 0,
        config_drive: None,
    };
    let geometry = Geometry { size: disk.size(), sector_size: disk.sector_size() };
    Layout::plan(&request, disk.path(), geometry)
}

/// Clears the disk if a member of an array is on it, as the step does.
pub(super) fn clear_if_member(target: &RaidTarget) -> Result<(), Error> {
    target.require_keepable()?;
    match target.has_member()? {
        true => target.open(true)?.clear(),
        false => Ok(()),
    }
}

/// Writes a whole-disk image as the write path orders it: both ends go first, the first MiB comes last.
pub(super) fn put(image: &Content, disk: &dyn Sectors) -> Result<()> {
    wipe::wipe_for_image(disk)?;
    let mut piece = AlignedBuffer::zeroed(MIB as usize);
    for number in (1..IMAGE / MIB).chain([0]) {
        piece.copy_from_slice(&image.get(number * MIB, MIB as usize));
        disk.write_all_at(&piece, number * MIB)?;
    }
    disk.flush()?;
    table::finish_image(disk)?;
    Ok(())
}

/// A whole-disk image with one partition, in which is hay.
pub(super) fn image(sector: u32, has_gpt: bool) -> Content {
    let mut image = Content::default();
    match has_gpt {
        true => Gpt { sector: sector.into(), size: IMAGE, partitions: vec![IN_IMAGE] }.write(&mut image),
        false => tables::write_mbr(&mut image, sector.into(), &[IN_IMAGE]),
    }
    for offset in IN_IMAGE.step_by(MIB as usize) {
        image.put(offset, &vec![HAY; MIB as usize]);
    }
    image
}
