//! One way to deploy Debian by iSCSI and to boot it: a cell of the matrix of initiators, firmware and images.
//!
//! In a cell the reference conductor fetches the image and writes it to the disk that the machine's agent exports. Then
//! the machine boots from its disk to the login prompt, whose host name only the config drive knows. By QEMU's initiator
//! the conductor runs on this host; by open-iscsi in an [`Office`], and the machine, on the same bridge, is switched as
//! an operator would.

use super::boot::{DebianImage, Image, Seconds};
use crate::conductor::lab::{Lab, Machine};
use crate::conductor::office::{Equipment, Office};
use crate::conductor::operator::{Operator, finished};
use crate::images::server::{ImageServer, Reply};
use crate::machine::{Boot, Firmware, Hardware, free_port};
use crate::network::bridge::{self, DhcpServer, network};
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
/// What the conductor is told.
const SERVE: [&str; 3] = ["--automated-clean", "false", "--enable-bios-bootloader-install"];
/// What takes longer hangs, also on a busy machine with emulated processors.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

/// What logs in to the exported disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initiator {
    /// The block layer of QEMU.
    Qemu,
    /// open-iscsi.
    OpenIscsi,
}

/// One combination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// What logs in.
    pub initiator: Initiator,
    /// Firmware of the machine.
    pub firmware: Firmware,
    /// What is written.
    pub image: Image,
}

impl Cell {
    /// Every combination.
    pub const ALL: [Self; 8] = [
        Self::new(Initiator::Qemu, Firmware::Bios, Image::Partition),
        Self::new(Initiator::Qemu, Firmware::Bios, Image::WholeDisk),
        Self::new(Initiator::Qemu, Firmware::Uefi, Image::Partition),
        Self::new(Initiator::Qemu, Firmware::Uefi, Image::WholeDisk),
        Self::new(Initiator::OpenIscsi, Firmware::Bios, Image::Partition),
        Self::new(Initiator::OpenIscsi, Firmware::Bios, Image::WholeDisk),
        Self::new(Initiator::OpenIscsi, Firmware::Uefi, Image::Partition),
        Self::new(Initiator::OpenIscsi, Firmware::Uefi, Image::WholeDisk),
    ];

    const fn new(initiator: Initiator, firmware: Firmware, image: Image) -> Self {
        Self { initiator, firmware, image }
    }

    /// Deploys the image with this equipment, and boots it. Everything of the run is kept in `folder`, which is made. By
    /// open-iscsi the calling thread, and what it starts from then on, is in the network of the cell.
    ///
    /// # Errors
    ///
    /// The deployment failed, or there was no login prompt with the right name; the text tells what machine and conductor
    /// said last.
    pub fn run(self, equipment: Equipment<'_>, image: &DebianImage, folder: &Path) -> Result<Seconds> {
        match self.initiator {
            Initiator::Qemu => self.by_qemu(equipment, image, folder),
            Initiator::OpenIscsi => self.by_open_iscsi(equipment, image, folder),
        }
    }

    fn by_qemu(self, equipment: Equipment<'_>, image: &DebianImage, folder: &Path) -> Result<Seconds> {
        let lab = Lab::start(equipment.farrier, folder, &SERVE)?;
        self.enrol(&lab, equipment.dist)?;
        let live = || -> Result<Seconds> {
            let server = ImageServer::start(vec![Reply::File(image.path.clone())])?;
            let begin = Instant::now();
            lab.operator().order(&strs(&self.deploy(&server.url(), image, folder)?))?;
            let deployed = begin.elapsed();
            is_by_iscsi(lab.operator())?;
            // Each start of a machine begins its console anew.
            lab.console(NODE).wait_for(&format!("{HOST_NAME} login:"), 0, PATIENCE)?;
            Ok(seconds(deployed, begin.elapsed() - deployed))
        };
        live().with_context(|| {
            let (console, log) = (lab.console(NODE).tail(), lab.log_tail());
            format!("{self}; its console:\n{console}\nthe conductor:\n{log}\nwhat happened")
        })
    }

    fn by_open_iscsi(self, equipment: Equipment<'_>, image: &DebianImage, folder: &Path) -> Result<Seconds> {
        network(2)?;
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let (machine, office) = (folder.join("machine"), folder.join("office"));
        for folder in [&machine, &office] {
            fs::create_dir(folder)?;
        }
        let _addresses = DhcpServer::start(folder, &[])?;
        let allowed = equipment.dist.display().to_string();
        let serve =
            [&SERVE[..], &["--enabled-hardware-types", "manual", "--file-url-allowed-paths", &allowed]];
        let office = Office::start(equipment, 0, &office, &serve.concat())?;
        let hardware = hardware(&machine)?;
        self.switched(&office, &hardware, equipment, image).with_context(|| {
            let console = hardware.console().tail();
            format!("{self}; its console:\n{console}\n{}\nwhat happened", office.said())
        })
    }

    /// Deploys a machine that is switched here.
    fn switched(
        self,
        office: &Office,
        hardware: &Hardware,
        equipment: Equipment<'_>,
        image: &DebianImage,
    ) -> Result<Seconds> {
        let server = ImageServer::start_at(bridge::ADDRESS, vec![Reply::File(image.path.clone())])?;
        let operator = &office.operator;
        let boot_mode = if self.firmware == Firmware::Bios { "bios" } else { "uefi" };
        let dist = equipment.dist;
        let kernel = format!("deploy_kernel=file://{}", dist.join("vmlinuz").display());
        let ramdisk = format!("deploy_ramdisk=file://{}", dist.join("initramfs.img").display());
        let mut create = vec!["node", "create", NODE, "--driver", "manual", "--mac", MAC];
        create.extend(["--interface", "deploy=iscsi", "--driver-info", "iscsi_initiator=open-iscsi"]);
        create.extend(["--driver-info", &kernel, "--driver-info", &ramdisk]);
        let capabilities = format!("capabilities=boot_mode:{boot_mode}");
        create.extend(["--property", &capabilities, "--property", r#"root_device={"serial": "ROOT"}"#]);
        operator.order(&create)?;
        let begin = Instant::now();
        let deploy = self.deploy(&server.url(), image, &hardware.folder)?;
        let deploy = operator.begin(&strs(&deploy))?;
        let parameters = format!("console=ttyS0 ipa-api-url={}", Office::url_for_agents());
        let card = [
            "-netdev".to_owned(),
            bridge::place(1),
            "-device".to_owned(),
            format!("virtio-net-pci,netdev=net,romfile=,mac={MAC}"),
        ];
        let ramdisk = Boot::Ramdisk(dist, &parameters);
        let machine = hardware.boot_without_network(self.firmware, ramdisk, &card)?;
        finished(deploy.wait_with_output()?)?;
        let deployed = begin.elapsed();
        is_by_iscsi(operator)?;
        drop(machine);
        let machine = hardware.boot_without_network(self.firmware, Boot::Disks, &card)?;
        machine.console().wait_for(&format!("{HOST_NAME} login:"), 0, PATIENCE)?;
        Ok(seconds(deployed, begin.elapsed() - deployed))
    }

    /// The order to deploy the image at this URL, with a config drive in `folder`.
    fn deploy(self, url: &str, image: &DebianImage, folder: &Path) -> Result<Vec<String>> {
        let drive = config_drive(folder)?.display().to_string();
        let (sum, limit) = (format!("sha256:{}", image.sha256), PATIENCE.as_secs().to_string());
        let mut deploy = vec!["deploy", NODE, "--image", url, "--checksum", &sum, "--timeout", &limit];
        deploy.extend(["--config-drive", &drive]);
        if self.image == Image::Partition {
            deploy.extend(["--root-gb", ROOT_GIB, "--swap-mb", SWAP_MIB]);
        }
        Ok(deploy.into_iter().map(str::to_owned).collect())
    }

    fn enrol(self, lab: &Lab, dist: &Path) -> Result<()> {
        let disk = disk(lab.folder())?;
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
        let initiator = if self.initiator == Initiator::Qemu { "qemu" } else { "openiscsi" };
        let firmware = if self.firmware == Firmware::Bios { "bios" } else { "uefi" };
        let image = if self.image == Image::WholeDisk { "whole" } else { "partition" };
        write!(f, "{initiator}-{firmware}-{image}")
    }
}

fn is_by_iscsi(operator: &Operator) -> Result<()> {
    let interface = operator.node(NODE)?["deploy_interface"].clone();
    ensure!(interface == "iscsi", "it was deployed by {interface}");
    Ok(())
}

fn seconds(deploy: Duration, boot: Duration) -> Seconds {
    Seconds { deploy: deploy.as_secs_f64(), boot: boot.as_secs_f64() }
}

fn strs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

/// The disk of a machine, as a file in a folder.
fn disk(folder: &Path) -> Result<PathBuf> {
    let disk = folder.join("disk.raw");
    File::create(&disk)?.set_len(DISK_BYTES)?;
    Ok(disk)
}

/// A machine that is switched here, with its files in a folder.
fn hardware(folder: &Path) -> Result<Hardware> {
    Ok(Hardware {
        mac: MAC.to_owned(),
        agent_port: 0,
        keyboard_port: free_port()?,
        disks: vec![(disk(folder)?, "ROOT")],
        media: Vec::new(),
        folder: folder.to_owned(),
    })
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
