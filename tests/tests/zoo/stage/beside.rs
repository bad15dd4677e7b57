//! Steps that work on one disk while the occupant lives on another: nothing of it is touched, and what may be taken for
//! the new system's is told.

use super::Stage;
use super::removing::{IN_IMAGE, image, put};
use anyhow::{Context, Result, bail, ensure};
use farrier_disk::guard::{plan_erase, survey};
use farrier_disk::{BlockDevice, choose_root_disk, wipe};
use farrier_linux::loop_device::LoopDevice;
use farrier_protocol::lookup::Node;
use serde_json::json;
use std::ops::Range;
use std::path::Path;
use tempfile::NamedTempFile;

const SIZE: u64 = 32 << 20;
/// The partition of its old table.
const OLD: Range<u64> = 2 << 20..20 << 20;
/// The label by which cloud-init finds settings, as warnings name it.
const SETTINGS: &str = "the label CONFIG-2";

/// The disk that the step is for. It has an old table.
struct Workplace {
    file: NamedTempFile,
    _device: LoopDevice,
    described: BlockDevice,
}

impl Workplace {
    fn new(sector: u32) -> Result<Self> {
        let file = NamedTempFile::new()?;
        file.as_file().set_len(SIZE)?;
        let mut content = crate::content::Content::default();
        crate::tables::write_mbr(&mut content, sector.into(), std::slice::from_ref(&OLD));
        content.write(file.as_file())?;
        let device = LoopDevice::attach(file.path(), sector).context("loop devices need root")?;
        let described = BlockDevice::describe(Path::new("/sys"), device.kernel_name())?;
        Ok(Self { file, _device: device, described })
    }

    /// A node whose root disk it is.
    fn node(&self, skipped: &[&BlockDevice]) -> Result<Node> {
        let skipped: Vec<_> = skipped.iter().map(|disk| json!({"name": disk.disk.name})).collect();
        let root = json!({"name": self.described.disk.name});
        let properties = json!({"root_device": root, "skip_block_devices": skipped});
        Ok(Node { properties: serde_json::from_value(properties)?, ..Node::default() })
    }
}

impl Stage<'_> {
    /// The disk beside the occupant's loses its metadata.
    pub(super) fn erase_beside(self) -> Result<()> {
        let place = Workplace::new(self.disk.sector)?;
        let node = place.node(&[&self.described])?;
        let plan = plan_erase(&node, &[self.described.clone(), place.described.clone()])?;
        let [target] = &plan.targets[..] else { bail!("the plan erases {:?}", plan.targets) };
        ensure!(target.device() == &place.described, "the plan erases {}", target.device().disk.name);
        wipe::erase_metadata(&target.open(true)?)?;
        let seen = crate::judge::seen(place.file.path(), &(0..SIZE), self.disk.sector)?;
        ensure!(seen.is_empty(), "on the erased disk others still see {seen:?}");
        self.require_unchanged()
    }

    /// A system is deployed to the disk beside the occupant's.
    pub(super) fn deploy_beside(self) -> Result<()> {
        let place = Workplace::new(self.disk.sector)?;
        let devices = [self.described.clone(), place.described.clone()];
        let node = place.node(&[])?;
        let told = survey(&node, &devices)?.warnings;
        let names_settings = told.iter().any(|warning| warning.contains(SETTINGS));
        let is_settings = self.occupant.name == "fat-as-config-drive";
        // What no table leads to is found by no system either.
        if self.state.is_believed() && !self.state.hides_occupant() || !is_settings {
            ensure!(names_settings == is_settings, "of the other disk it says {told:?}");
        }
        let disk = choose_root_disk(&node, &devices)?.open()?;
        put(&image(self.disk.sector, true), &disk)?;
        drop(disk);
        let partitions = crate::judge::partitions(place.file.path(), self.disk.sector)?;
        ensure!(partitions == [IN_IMAGE], "on the deployed disk others see {partitions:?}");
        self.require_unchanged()
    }
}
