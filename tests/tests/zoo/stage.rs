//! A disk on a loop device, on which a step runs, and what must be true afterwards.

mod beside;
mod keeping;
mod removing;

use crate::cells::Cell;
use crate::content::Content;
use crate::disks::{Disk, Placement, State};
use crate::judge;
use crate::occupants::{Occupant, Use};
use crate::steps::Step;
use anyhow::{Context, Result, bail, ensure};
use farrier_disk::{BlockDevice, Error, RootDisk, choose_root_disk};
use farrier_linux::loop_device::LoopDevice;
use farrier_protocol::lookup::Node;
use serde_json::{Value, json};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A step on its disk.
pub struct Stage<'a> {
    pub step: Step,
    pub occupant: &'static Occupant,
    pub placement: Placement,
    pub state: State,
    pub disk: &'a Disk,
    /// An ISO 9660 of settings.
    pub config_drive: &'a [u8],
    /// The file of the disk.
    pub file: &'a Path,
    device: LoopDevice,
    described: BlockDevice,
}

impl<'a> Stage<'a> {
    /// Attaches the disk.
    ///
    /// # Errors
    ///
    /// There is no loop device.
    pub fn new(
        Cell { occupant, placement, state, step, .. }: Cell,
        disk: &'a Disk,
        config_drive: &'a [u8],
        file: &'a Path,
    ) -> Result<Self> {
        let device = LoopDevice::attach(file, disk.sector).context("loop devices need root")?;
        let described = BlockDevice::describe(Path::new("/sys"), device.kernel_name())?;
        Ok(Self { step, occupant, placement, state, disk, config_drive, file, device, described })
    }

    /// Runs the step and judges.
    ///
    /// # Errors
    ///
    /// What is wrong with the disk afterwards, or with the answer.
    pub fn run(self) -> Result<()> {
        let skipped = json!([{"name": self.described.disk.name}]);
        match self.step {
            Step::EraseMetadata => self.erase(true),
            Step::EraseUnguarded => self.erase(false),
            Step::WipeForExport => self.wipe_for_export(),
            Step::WipeForPartitionImage => self.wipe_for_partition_image(),
            Step::WholeDiskImage => self.write_whole_disk_image(),
            Step::CreateRefused => self.create_where_somebody_lives(),
            Step::CreateOver => self.create_over_what_is_left(),
            Step::Delete => self.delete(),
            Step::DeleteKept => self.delete_all_but_kept(),
            Step::ConfigDrive => self.place_config_drive(),
            Step::PreserveEphemeral => self.preserve_ephemeral(),
            Step::SkipDisk => self.skip(&skipped),
            Step::EraseBeside => self.erase_beside(),
            Step::DeployBeside => self.deploy_beside(),
            Step::SkipVolume => self.skip(&json!([{"volume_name": "data"}])),
        }
    }

    /// A node with this skip list, whose root disk this is.
    fn node(&self, skip_list: &Value) -> Result<Node> {
        let properties = json!({
            "root_device": {"name": self.described.disk.name},
            "skip_block_devices": skip_list,
        });
        Ok(Node { properties: serde_json::from_value(properties)?, ..Node::default() })
    }

    /// The disk as the root disk of its node.
    fn root_disk(&self) -> Result<RootDisk> {
        Ok(choose_root_disk(&self.node(&json!([]))?, std::slice::from_ref(&self.described))?)
    }

    fn is_shared(&self) -> bool {
        self.occupant.used == Use::Shared
    }

    fn is_member(&self) -> bool {
        matches!(self.occupant.used, Use::Member { .. })
    }

    /// Lets go of the disk, and reads it.
    fn content(self) -> Result<(Left<'a>, Content)> {
        let Self { disk, file, device, .. } = self;
        File::open(device.path())?.sync_all()?;
        drop(device);
        let content = judge::content(file)?;
        Ok((Left { disk, file: file.to_owned() }, content))
    }

    /// Makes sure that nothing is left of anybody, for everyone who looks.
    fn require_gone(self) -> Result<()> {
        let ranges = self.disk.ranges();
        let (left, after) = self.content()?;
        left.require_no_marks(&after, &(0..left.disk.size))?;
        ranges.iter().try_for_each(|range| left.require_nothing_seen(range))
    }

    /// Makes sure that every byte is what it was.
    fn require_unchanged(self) -> Result<()> {
        let (left, after) = self.content()?;
        left.require_same(&after, &(0..left.disk.size))
    }

    /// Makes sure that what the guard protects is refused by its name and still there.
    fn require_protected(self, outcome: Result<(), Error>) -> Result<()> {
        match outcome {
            Err(Error::Protected { .. }) => self.require_unchanged(),
            Err(error) => bail!("it is protected, and the refusal says: {error}"),
            Ok(()) => bail!("what several machines use was not protected"),
        }
    }
}

/// A disk after a step.
struct Left<'a> {
    disk: &'a Disk,
    file: PathBuf,
}

impl Left<'_> {
    fn require_no_marks(&self, after: &Content, range: &Range<u64>) -> Result<()> {
        let marks = self.disk.volumes().flat_map(|volume| &volume.marks);
        for mark in marks.filter(|mark| range.contains(&mark.offset)) {
            ensure!(
                after.get(mark.offset, mark.bytes.len()) != mark.bytes,
                "the mark {:02x?} is still at byte {}",
                mark.bytes,
                mark.offset
            );
        }
        Ok(())
    }

    fn require_nothing_seen(&self, range: &Range<u64>) -> Result<()> {
        let seen = judge::seen(&self.file, range, self.disk.sector)?;
        ensure!(seen.is_empty(), "in bytes {range:?} others still see {}", seen.join(", "));
        Ok(())
    }

    fn require_same(&self, after: &Content, range: &Range<u64>) -> Result<()> {
        match self.disk.content.difference(after, range) {
            None => Ok(()),
            Some(offset) => bail!("byte {offset} was to stay and has changed"),
        }
    }

    fn partitions(&self) -> Result<Vec<Range<u64>>> {
        judge::partitions(&self.file, self.disk.sector)
    }
}
