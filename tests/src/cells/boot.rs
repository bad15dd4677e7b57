//! One way to deploy a Debian system and to boot it: a cell of the matrix of firmware, disks, images and tables.
//!
//! A cell is run with the real ramdisk, whose agent is commanded as a conductor commands it; then the machine
//! boots from its disk to the login prompt. The host name in that prompt tells whether the config drive was seen.

use crate::agent::commanded::CommandedAgent;
use crate::agent::stub_conductor::{NODE, StubConductor};
use crate::bmc::media;
use crate::images::server::{ImageServer, Reply};
use crate::machine::{self, Boot, Firmware, Hardware, free_port};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// The disk: room for the image, and for the partitions that a partition image gets beside it.
const DISK_BYTES: u64 = 3 << 30;
/// Swap and the ephemeral partition that a partition image gets beside it.
const SCRATCH_MIB: u64 = 64;
const SERIAL: &str = "ROOT";
const MAC: &str = "52:54:00:fa:00:41";
/// Name that only the config drive knows, and the one that the system has without.
const HOST_NAME: &str = "mustang-1967";
const NO_HOST_NAME: &str = "localhost";
/// What takes longer hangs, also on a busy machine with emulated processors.
const STEP: Duration = Duration::from_secs(15 * 60);
const BOOT: Duration = Duration::from_secs(15 * 60);

/// How the disk is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bus {
    /// virtio.
    Virtio,
    /// SATA, on AHCI.
    Sata,
    /// NVMe.
    Nvme,
    /// SCSI, with sectors of 4096 bytes.
    Scsi4Kn,
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Image {
    /// An image of a whole disk, with table and boot loaders.
    WholeDisk,
    /// A root file system.
    Partition,
}

/// Kind of a partition table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// GUID partition table.
    Gpt,
    /// Master boot record.
    Mbr,
}

/// One combination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Firmware of the machine.
    pub firmware: Firmware,
    /// How its disk is attached.
    pub bus: Bus,
    /// What is written.
    pub image: Image,
    /// Table on the disk.
    pub table: Table,
    /// Whether there is a config drive.
    pub has_config_drive: bool,
}

/// A file to be deployed.
#[derive(Debug, Clone)]
pub struct DebianImage {
    /// The file.
    pub path: PathBuf,
    /// Its SHA-256, hexadecimal.
    pub sha256: String,
}

/// How long a cell took.
#[derive(Debug, Clone, Copy)]
pub struct Seconds {
    /// From power on to the end of the last command.
    pub deploy: f64,
    /// From the next power on to the login prompt.
    pub boot: f64,
}

/// What rules combinations out.
struct Rule {
    applies: fn(&Cell) -> bool,
    reason: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        applies: |cell| cell.firmware == Firmware::Bios && cell.bus == Bus::Scsi4Kn,
        reason: "SeaBIOS leaves disks out whose sectors have not 512 bytes, and GRUB for BIOS cannot read them",
    },
    Rule {
        applies: |cell| {
            (cell.firmware, cell.image, cell.table) == (Firmware::Uefi, Image::Partition, Table::Mbr)
        },
        reason: "UEFI implies GPT where the agent makes the table (D32)",
    },
];

impl Cell {
    /// Every combination, legal or not.
    pub fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for firmware in [Firmware::Bios, Firmware::Uefi] {
            for bus in [Bus::Virtio, Bus::Sata, Bus::Nvme, Bus::Scsi4Kn] {
                for image in [Image::WholeDisk, Image::Partition] {
                    for table in [Table::Gpt, Table::Mbr] {
                        let cell = |has_config_drive| Self { firmware, bus, image, table, has_config_drive };
                        cells.extend([false, true].map(cell));
                    }
                }
            }
        }
        cells
    }

    /// Why there can be no such system; nothing for a legal combination.
    pub fn obstacle(&self) -> Option<&'static str> {
        RULES.iter().find(|rule| (rule.applies)(self)).map(|rule| rule.reason)
    }

    /// Bytes of a sector of the disk.
    pub fn sector_size(&self) -> u32 {
        if self.bus == Bus::Scsi4Kn { 4096 } else { 512 }
    }

    /// Deploys the image with the ramdisk in `dist` and boots it. Everything of the machine is kept in `folder`,
    /// which is made.
    ///
    /// # Errors
    ///
    /// A command failed, or there was no login prompt with the right name; the text ends with the console.
    pub fn run(&self, dist: &Path, image: &DebianImage, folder: &Path) -> Result<Seconds> {
        fs::create_dir_all(folder)?;
        let disk = folder.join("disk.raw");
        File::create(&disk)?.set_len(DISK_BYTES)?;
        let hardware = Hardware {
            mac: MAC.to_owned(),
            agent_port: free_port()?,
            keyboard_port: free_port()?,
            disks: Vec::new(),
            media: Vec::new(),
            folder: folder.to_owned(),
        };
        let devices = self.bus.arguments(&disk);
        let started = Instant::now();
        self.deploy(&hardware, &devices, dist, image).with_context(|| format!("{self}: deploying"))?;
        let (deploy, start) = (started.elapsed(), hardware.console().length());
        let started = Instant::now();
        let _machine = hardware.boot_under(self.firmware, Boot::Disks, &devices)?;
        let name = if self.has_config_drive { HOST_NAME } else { NO_HOST_NAME };
        let prompt = format!("{name} login:");
        hardware.console().wait_for(&prompt, start, BOOT).with_context(|| format!("{self}: booting"))?;
        Ok(Seconds { deploy: deploy.as_secs_f64(), boot: started.elapsed().as_secs_f64() })
    }

    fn deploy(
        &self,
        hardware: &Hardware,
        devices: &[String],
        dist: &Path,
        image: &DebianImage,
    ) -> Result<()> {
        let conductor = StubConductor::start_with(json!({"enable_bios_bootloader_install": true}))?;
        let mut agent = CommandedAgent::boot_under(self.firmware, conductor, hardware, devices, dist, "")?;
        let drive = self.has_config_drive.then(|| config_drive(&hardware.folder)).transpose()?;
        let (image, root_mib) = (image.clone(), fs::metadata(&image.path)?.len() / MIB);
        let server = ImageServer::start(vec![Reply::File(image.path)])?;
        let mut arguments = json!({
            "image_info": {
                "id": "debian", "urls": [server.guest_url()], "disk_format": "raw",
                "os_hash_algo": "sha256", "os_hash_value": image.sha256,
                "deploy_boot_mode": self.boot_mode(),
            },
            "configdrive": drive.as_ref().map(ImageServer::guest_url),
        });
        if self.image == Image::Partition {
            arguments["image_info"]["image_type"] = json!("partition");
            let sizes = json!({"root_mb": root_mib, "swap_mb": SCRATCH_MIB, "ephemeral_mb": SCRATCH_MIB});
            for (field, size) in sizes.as_object().into_iter().flatten() {
                arguments["image_info"][field] = size.clone();
            }
        }
        let step = json!({"step": "write_image", "interface": "deploy", "args": arguments});
        let params = json!({"step": step, "node": self.node(), "ports": []});
        agent.succeed("deploy.execute_deploy_step", &params, STEP)?;
        if self.image == Image::Partition || self.firmware == Firmware::Uefi {
            let found = agent.order("standby.get_partition_uuids", &json!({}))?["command_result"].clone();
            let params = json!({
                "root_uuid": found["root uuid"],
                "efi_system_part_uuid": found["efi system partition uuid"],
                "prep_boot_part_uuid": found["PReP Boot partition uuid"],
                "target_boot_mode": self.boot_mode(),
            });
            agent.succeed("image.install_bootloader", &params, STEP)?;
        }
        agent.order("standby.power_off", &json!({}))?;
        agent.wait_until_off(STEP)
    }

    /// The record of the node.
    fn node(&self) -> Value {
        let label = match self.table {
            Table::Gpt => "gpt",
            Table::Mbr => "msdos",
        };
        let capabilities = format!("boot_mode:{},disk_label:{label}", self.boot_mode());
        let properties = json!({"root_device": {"serial": SERIAL}, "capabilities": capabilities});
        json!({"uuid": NODE, "properties": properties, "instance_info": {}, "driver_internal_info": {}})
    }

    fn boot_mode(&self) -> &'static str {
        match self.firmware {
            Firmware::Bios => "bios",
            Firmware::Uefi => "uefi",
        }
    }
}

impl Bus {
    /// Arguments of QEMU for the disk.
    fn arguments(self, file: &Path) -> Vec<String> {
        let drive = format!("{},discard=unmap", machine::drive("root", file));
        let devices: &[&str] = match self {
            Self::Virtio => &["virtio-blk-pci,drive=root,serial=ROOT"],
            Self::Sata => &["ide-hd,bus=ide.0,drive=root,serial=ROOT"],
            Self::Nvme => &["nvme,drive=root,serial=ROOT"],
            Self::Scsi4Kn => &[
                "virtio-scsi-pci",
                "scsi-hd,drive=root,serial=ROOT,logical_block_size=4096,physical_block_size=4096",
            ],
        };
        let devices = devices.iter().flat_map(|device| ["-device", *device]);
        ["-drive", &drive].into_iter().chain(devices).map(str::to_owned).collect()
    }
}

/// Serves a config drive with the host name.
fn config_drive(folder: &Path) -> Result<ImageServer> {
    let (content, drive) = (folder.join("config-drive"), folder.join("config-drive.iso"));
    let latest = content.join("openstack/latest");
    fs::create_dir_all(&latest)?;
    let metadata = json!({"uuid": NODE, "hostname": HOST_NAME, "name": HOST_NAME});
    fs::write(latest.join("meta_data.json"), metadata.to_string())?;
    media::iso(&drive, "config-2", "", &content)?;
    Ok(ImageServer::start(vec![Reply::File(drive)])?)
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bus = match self.bus {
            Bus::Virtio => "virtio",
            Bus::Sata => "sata",
            Bus::Nvme => "nvme",
            Bus::Scsi4Kn => "scsi4kn",
        };
        let image = if self.image == Image::WholeDisk { "whole" } else { "partition" };
        let table = if self.table == Table::Gpt { "gpt" } else { "mbr" };
        let drive = if self.has_config_drive { "drive" } else { "plain" };
        write!(f, "{}-{bus}-{image}-{table}-{drive}", self.boot_mode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_has_a_name_of_its_own_and_the_illegal_ones_a_reason() {
        let cells = Cell::all();
        let mut names: Vec<_> = cells.iter().map(Cell::to_string).collect();
        names.sort();
        names.dedup();
        assert_eq!((cells.len(), names.len()), (64, 64));
        assert_eq!(cells.iter().filter(|cell| cell.obstacle().is_none()).count(), 48);
        for (name, is_legal) in [
            ("bios-scsi4kn-whole-gpt-plain", false),
            ("bios-nvme-partition-mbr-drive", true),
            ("uefi-virtio-partition-mbr-drive", false),
            ("uefi-virtio-whole-mbr-drive", true),
            ("uefi-scsi4kn-partition-gpt-drive", true),
        ] {
            let cell = cells.iter().find(|cell| cell.to_string() == name).unwrap();
            assert_eq!(cell.obstacle().is_none(), is_legal, "{name}");
        }
    }
}
