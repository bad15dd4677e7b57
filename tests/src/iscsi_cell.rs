//! One way to deploy Debian by iSCSI and to boot it: a cell of the matrix of firmware and images.
//!
//! In a cell the reference conductor fetches the image, from a server that the machine does not reach, and writes it to
//! the disk that the machine's agent exports. Then the machine boots from its disk to the login prompt, whose host name
//! only the config drive knows.

use crate::boot_cell::{DebianImage, Image, Seconds};
use crate::image_server::{ImageServer, Reply};
use crate::lab::{Lab, Machine};
use crate::machine::{Firmware, free_port};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const NODE: &str = "horse";
const MAC: &str = "52:54:00:fa:00:44";
const HOST_NAME: &str = "mustang-1967";
const DISK_BYTES: u64 = 4 << 30;
/// Room for the root file system of a partition image.
const ROOT_GIB: &str = "1";
/// Partitions that a partition image gets beside it.
const SWAP_MIB: &str = "64";
/// Debian's own needs; the ramdisk does with half of it.
const MEMORY_MIB: u32 = 512;
/// What takes longer hangs, also on a busy machine with emulated processors.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

/// One combination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Firmware of the machine.
    pub firmware: Firmware,
    /// What is written.
    pub image: Image,
}

impl Cell {
    /// Every combination.
    pub const ALL: [Self; 4] = [
        Self { firmware: Firmware::Bios, image: Image::Partition },
        Self { firmware: Firmware::Bios, image: Image::WholeDisk },
        Self { firmware: Firmware::Uefi, image: Image::Partition },
        Self { firmware: Firmware::Uefi, image: Image::WholeDisk },
    ];

    /// Deploys the image by the conductor `farrier` and the ramdisk in `dist`, and boots it. Everything of the run is
    /// kept in `folder`, which is made.
    ///
    /// # Errors
    ///
    /// The deployment failed, or there was no login prompt with the right name; the text tells what machine and conductor
    /// said last.
    pub fn run(self, farrier: &Path, dist: &Path, image: &DebianImage, folder: &Path) -> Result<Seconds> {
        let serve = ["--automated-clean", "false", "--enable-bios-bootloader-install"];
        let lab = Lab::start(farrier, folder, &serve)?;
        self.enrol(&lab, dist)?;
        let outcome = self.live(&lab, image);
        outcome.with_context(|| {
            let (console, log) = (lab.console(NODE).tail(), lab.log_tail());
            format!("{self}; its console:\n{console}\nthe conductor:\n{log}\nwhat happened")
        })
    }

    fn live(self, lab: &Lab, image: &DebianImage) -> Result<Seconds> {
        let server = ImageServer::start(vec![Reply::File(image.path.clone())])?;
        let drive = config_drive(lab.folder())?;
        let (url, sum) = (server.url(), format!("sha256:{}", image.sha256));
        let (limit, drive) = (PATIENCE.as_secs().to_string(), drive.display().to_string());
        let mut deploy = vec!["deploy", NODE, "--image", &url, "--checksum", &sum, "--timeout", &limit];
        deploy.extend(["--config-drive", &drive]);
        if self.image == Image::Partition {
            deploy.extend(["--root-gb", ROOT_GIB, "--swap-mb", SWAP_MIB]);
        }
        let begin = Instant::now();
        lab.order(&deploy)?;
        let deployed = begin.elapsed();
        let node = lab.node(NODE)?;
        let interface = &node["deploy_interface"];
        ensure!(interface == "iscsi", "it was deployed by {interface}");
        // Each start of a machine begins its console anew.
        lab.console(NODE).wait_for(&format!("{HOST_NAME} login:"), 0, PATIENCE)?;
        let boot = (begin.elapsed() - deployed).as_secs_f64();
        Ok(Seconds { deploy: deployed.as_secs_f64(), boot })
    }

    fn enrol(self, lab: &Lab, dist: &Path) -> Result<()> {
        let disk = lab.folder().join("disk.raw");
        File::create(&disk)?.set_len(DISK_BYTES)?;
        let machine = Machine {
            name: NODE.to_owned(),
            mac: MAC.to_owned(),
            dist: dist.to_owned(),
            firmware: self.firmware,
            memory_mib: MEMORY_MIB,
            disks: vec![(disk, "ROOT".to_owned())],
            driver_info: vec![format!("iscsi_portal_port={}", free_port()?)],
            properties: vec![r#"root_device={"serial": "ROOT"}"#.to_owned()],
        };
        lab.enrol_with(&machine, &["deploy=iscsi"])
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let firmware = if self.firmware == Firmware::Bios { "bios" } else { "uefi" };
        let image = if self.image == Image::WholeDisk { "whole" } else { "partition" };
        write!(f, "{firmware}-{image}")
    }
}

/// A folder with the host name, below this one.
fn config_drive(folder: &Path) -> Result<PathBuf> {
    let drive = folder.join("config-drive");
    let latest = drive.join("openstack/latest");
    fs::create_dir_all(&latest)?;
    let metadata = json!({"uuid": "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f12", "hostname": HOST_NAME});
    fs::write(latest.join("meta_data.json"), metadata.to_string())?;
    Ok(drive)
}
