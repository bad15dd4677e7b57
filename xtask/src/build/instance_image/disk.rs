//! Whole disks with boot loaders, made of the parts, without mounting anything.

use std::fs::{self, File};
use std::hash::Hash;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result};
use farrier_tests::cells::boot::Table;
use gpt::mbr::ProtectiveMBR;
use gpt::partition_types;

use super::{bios, parts};
use crate::host::command::{command, run_quietly};

const MIB: u64 = 1 << 20;

/// Where the EFI system partition starts, in MiB.
const ESP_START: u64 = 1;
/// Size of the EFI system partition in MiB; FAT32 needs 33 of them.
const ESP_SIZE: u64 = 48;
/// The EFI system partition in the image. The deployed system does not mount it.
pub const ESP_BYTES: Range<u64> = ESP_START * MIB..ROOT_START * MIB;
/// Where the root partition starts, in MiB. It ends one MiB before the disk does.
const ROOT_START: u64 = ESP_START + ESP_SIZE;

/// The path of removable media, and Debian's own.
const GRUB_PLACES: &[&str] = &["::EFI/BOOT/BOOTX64.EFI", "::EFI/debian/grubx64.efi"];

/// Types in an MBR.
const ESP_TYPE: u8 = 0xef;
const LINUX_TYPE: u8 = 0x83;

/// A partition table, and the sectors it is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DiskFormat {
    /// Kind of the table.
    pub table: Table,
    /// Bytes of a sector.
    pub sector_size: u32,
}

impl DiskFormat {
    /// What most images have. BIOS and UEFI boot it.
    pub const USUAL: Self = Self { table: Table::Gpt, sector_size: 512 };

    /// The sectors in which GRUB for BIOS keeps its core, if a BIOS reads such a disk: a partition in front
    /// of the first MiB, or the gap that an MBR leaves there.
    fn core_sectors(self) -> Option<Range<u64>> {
        let first = match self.table {
            Table::Gpt => 34,
            Table::Mbr => 1,
        };
        (self.sector_size == 512).then_some(first..MIB / 512)
    }
}

/// All that decides what is built.
pub fn recipe() -> impl Hash {
    (ESP_START, ESP_SIZE, GRUB_PLACES)
}

/// A new random UUID.
pub fn new_uuid() -> Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned())
}

/// Size of the root file system in an image of `mebibytes`, in MiB.
pub fn root_size(mebibytes: u64) -> u64 {
    mebibytes - ROOT_START - 1
}

/// Makes the sparse file `image` of `mebibytes` from the parts in `folder`.
pub fn assemble(folder: &Path, format: DiskFormat, mebibytes: u64, image: &Path) -> Result<()> {
    let file = File::create(image).with_context(|| format!("cannot write {}", image.display()))?;
    file.set_len(mebibytes * MIB)?;
    match format.table {
        Table::Gpt => write_gpt(image, format, root_size(mebibytes))?,
        Table::Mbr => write_mbr(image, format, root_size(mebibytes))?,
    }
    if let Some(sectors) = format.core_sectors() {
        bios::install(folder, sectors, &file)?;
    }
    let esp = image.with_extension("esp");
    make_esp(folder, format.sector_size, &esp)?;
    put(&esp, image, ESP_START)?;
    fs::remove_file(esp)?;
    put(&folder.join(parts::ROOT), image, ROOT_START)
}

/// Start and length of ESP and root in sectors.
fn extents(format: DiskFormat, root_size: u64) -> [(u64, u64); 2] {
    let sectors = |mebibytes: u64| mebibytes * MIB / u64::from(format.sector_size);
    [(sectors(ESP_START), sectors(ESP_SIZE)), (sectors(ROOT_START), sectors(root_size))]
}

fn write_gpt(image: &Path, format: DiskFormat, root_size: u64) -> Result<()> {
    let mut file = File::options().read(true).write(true).open(image)?;
    let sectors = file.metadata()?.len() / u64::from(format.sector_size);
    ProtectiveMBR::with_lb_size(u32::try_from(sectors - 1)?).overwrite_lba0(&mut file)?;
    let block_size = gpt::disk::LogicalBlockSize::try_from(u64::from(format.sector_size))?;
    let config = gpt::GptConfig::new().writable(true).logical_block_size(block_size);
    let mut table = config.create_from_device(file, None)?;
    table.update_partitions(std::collections::BTreeMap::new())?;
    let [esp, root] = extents(format, root_size);
    table.add_partition_at("ESP", 1, esp.0, esp.1, partition_types::EFI, 0)?;
    table.add_partition_at("root", 2, root.0, root.1, partition_types::LINUX_ROOT_X64, 0)?;
    if let Some(core) = format.core_sectors() {
        table.add_partition_at("BIOS", 3, core.start, core.end - core.start, partition_types::BIOS, 0)?;
    }
    table.write()?;
    Ok(())
}

fn write_mbr(image: &Path, format: DiskFormat, root_size: u64) -> Result<()> {
    let mut file = File::options().read(true).write(true).open(image)?;
    let signature = new_uuid()?.into_bytes();
    let signature = [signature[0], signature[1], signature[2], signature[3]];
    let mut table = mbrman::MBR::new_from(&mut file, format.sector_size, signature)?;
    let [esp, root] = extents(format, root_size);
    for (number, kind, (start, length)) in [(1, ESP_TYPE, esp), (2, LINUX_TYPE, root)] {
        table[number] = mbrman::MBRPartitionEntry {
            sys: kind,
            starting_lba: u32::try_from(start)?,
            sectors: u32::try_from(length)?,
            ..mbrman::MBRPartitionEntry::empty()
        };
    }
    table.write_into(&mut file)?;
    Ok(())
}

fn make_esp(folder: &Path, sector_size: u32, esp: &Path) -> Result<()> {
    File::create(esp)?.set_len(ESP_SIZE * MIB)?;
    // Large sectors make too few clusters for FAT32. By itself mkfs.vfat would choose clusters of several
    // sectors.
    let bits = if sector_size == 512 { "32" } else { "16" };
    let options = ["-F", bits, "-s", "1", "-S", &sector_size.to_string(), "-n", "ESP"];
    run_quietly(command("mkfs.vfat").args(options).arg(esp))?;
    let volume = esp.display().to_string();
    run_quietly(command("mmd").args(["-i", &volume, "::EFI", "::EFI/BOOT", "::EFI/debian"]))?;
    let copy = |part: &str, place: &str| {
        run_quietly(command("mcopy").args(["-i", &volume]).arg(folder.join(part)).arg(place))
    };
    for place in GRUB_PLACES {
        copy(parts::GRUB, place)?;
    }
    copy(parts::CONFIGURATION, "::EFI/debian/grub.cfg").map(drop)
}

/// Puts what `part` holds besides zeros into `image`, from `mebibyte` on.
fn put(part: &Path, image: &Path, mebibyte: u64) -> Result<()> {
    let (source, target) = (File::open(part)?, File::options().write(true).open(image)?);
    let length = source.metadata()?.len();
    let mut block = vec![0; MIB as usize];
    for offset in (0..length).step_by(block.len()) {
        let block = &mut block[..MIB.min(length - offset) as usize];
        source.read_exact_at(block, offset)?;
        if block.iter().any(|byte| *byte != 0) {
            target.write_all_at(block, mebibyte * MIB + offset)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bios_finds_the_core_in_front_of_the_first_mebibyte_of_small_sectors_alone() {
        let sectors = |table, sector_size| DiskFormat { table, sector_size }.core_sectors();
        assert_eq!(sectors(Table::Gpt, 512), Some(34..2048));
        assert_eq!(sectors(Table::Mbr, 512), Some(1..2048));
        assert_eq!(sectors(Table::Mbr, 4096), None);
    }
}
