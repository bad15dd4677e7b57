//! A machine whose disk is written by its agent, or from here.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use farrier_tests::iscsi::exporter::Exporter;
use serde_json::json;

use crate::measure::bench::dense_image::DenseImage;
use crate::measure::bench::{DISK_BYTES, write_image};
use crate::measure::exported_disk::ExportedDisk;

/// A write that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(900);

/// Who writes.
pub enum Writing<'a> {
    /// The agent.
    Agent,
    /// This program of ours, which logs in by QEMU's initiator, to the disk that the agent exports.
    Exported(&'a Path),
}

/// The machine, which is switched off when this goes.
pub struct Machine {
    exporter: Exporter,
    folder: PathBuf,
}

impl Machine {
    /// Boots the ramdisk with these parameters of the kernel; the disk is a file in the folder.
    pub fn boot(ramdisk: &Path, folder: &Path, parameters: &str) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let exporter = Exporter::boot_with(ramdisk, folder, DISK_BYTES, parameters)?;
        Ok(Self { exporter, folder: folder.to_owned() })
    }

    /// Seconds until the image is written and proven, and nothing is exported any more.
    pub fn write(&self, image: &DenseImage, writing: &Writing<'_>) -> Result<f64> {
        let Exporter { agent, unit, .. } = &self.exporter;
        let disk = ExportedDisk::of(agent)?;
        let started = Instant::now();
        match writing {
            Writing::Agent => {
                agent.succeed(
                    "deploy.execute_deploy_step",
                    &write_image(&image.info_for_a_machine()),
                    LIMIT,
                )?;
            }
            Writing::Exported(program) => {
                let order = json!({"disk": disk, "image_info": image.info_for_this_computer()});
                let exported = ExportedDisk {
                    unit: unit.clone(),
                    writer: (*program).to_owned(),
                    order: self.folder.join("order.json"),
                };
                exported.write(agent, json!({"wipe_disk_metadata": true}), order, LIMIT)?;
            }
        }
        Ok(started.elapsed().as_secs_f64())
    }
}
