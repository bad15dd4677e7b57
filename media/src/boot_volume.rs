//! The medium that boots a kernel with its ramdisk: one for BIOS and UEFI, on CD, virtual CD or USB stick.
//!
//! UEFI firmware finds GRUB in the image of an EFI system partition, and GRUB its configuration on the volume; BIOS starts
//! isolinux. Kernel and ramdisk may stay where they are: a medium is known by what lies around them.

use crate::Overlay;
use crate::boot_iso::{LABEL_WITH_NETWORK_DATA, NETWORK_DATA};
use crate::iso9660::{BootEntry, Content, Platform, SECTOR, Volume};
use bytes::Bytes;
use std::collections::BTreeMap;

const ESP: &str = "efi.img";
const ISOLINUX: &str = "isolinux/isolinux.bin";

/// Names of kernel and ramdisk, on media and wherever else both are.
pub const KERNEL: &str = "vmlinuz";
/// See [`KERNEL`].
pub const RAMDISK: &str = "initramfs.img";

/// Where the first partition table of a disk has its boot code, identifier and entries, in bytes.
const BOOT_CODE: usize = 432;
const DISK_IDENTIFIER: usize = 440;
const PARTITIONS: usize = 446;

/// What firmware starts of a medium.
#[derive(Debug, Clone)]
pub struct BootLoaders {
    /// For UEFI: an image of a FAT file system with `EFI/BOOT/BOOT….EFI`, which ends in a GRUB that reads
    /// `/boot/grub/grub.cfg` or `/EFI/BOOT/grub.cfg` of the volume.
    pub esp: Content,
    /// For BIOS, where there is such firmware.
    pub isolinux: Option<Isolinux>,
}

/// The boot loader for BIOS.
#[derive(Debug, Clone)]
pub struct Isolinux {
    /// `isolinux.bin`.
    pub program: Bytes,
    /// `ldlinux.c32`, its other half.
    pub library: Bytes,
    /// Boot code that starts it where the medium is a disk: `isohdpfx.bin`.
    pub boot_record: Bytes,
}

/// What a medium boots.
#[derive(Debug, Clone)]
pub struct Contents {
    /// The kernel.
    pub kernel: Content,
    /// Its ramdisk.
    pub ramdisk: Content,
    /// The kernel parameters.
    pub command_line: String,
    /// The network of the machine, as OpenStack's `network_data.json`; without it the file is there, and empty, for
    /// conductors that lay it over.
    pub network_data: Option<String>,
}

/// A medium, and where in it that begins which is elsewhere, in bytes.
#[derive(Debug, Clone)]
pub struct BootVolume {
    /// What is here.
    pub overlay: Overlay,
    /// The kernel.
    pub kernel: u64,
    /// The ramdisk.
    pub ramdisk: u64,
    /// The image of the EFI system partition.
    pub esp: u64,
}

/// GRUB's commands. It starts with the root at its own medium or server.
pub fn grub_configuration(command_line: &str) -> String {
    format!("linux /{KERNEL} {command_line}\ninitrd /{RAMDISK}\nboot\n")
}

impl BootVolume {
    /// The medium with these contents.
    pub fn new(contents: Contents, loaders: &BootLoaders) -> Self {
        let Contents { kernel, ramdisk, command_line, network_data } = contents;
        let label = if network_data.is_some() { LABEL_WITH_NETWORK_DATA } else { "FARRIER" };
        let grub = Content::from(grub_configuration(&command_line).into_bytes());
        let mut volume = Volume {
            label,
            files: [
                // By this file GRUB finds the medium it was started from.
                (".disk/info", b"Farrier\n".to_vec().into()),
                // Debian's GRUB looks here, and that of Ironic's media there.
                ("boot/grub/grub.cfg", grub.clone()),
                ("EFI/BOOT/grub.cfg", grub),
                (ESP, loaders.esp.clone()),
                (RAMDISK, ramdisk),
                (NETWORK_DATA, network_data.unwrap_or_default().into_bytes().into()),
                (KERNEL, kernel),
            ]
            .map(|(path, content)| (path.to_owned(), content))
            .into(),
            boot: vec![BootEntry { platform: Platform::Efi, path: ESP }],
        };
        let overlay = match &loaders.isolinux {
            Some(isolinux) => with_isolinux(&mut volume, isolinux, &command_line),
            None => volume.write(),
        };
        let place = |path| volume.place_of(path).unwrap_or_default();
        Self { kernel: place(KERNEL), ramdisk: place(RAMDISK), esp: place(ESP), overlay }
    }
}

fn with_isolinux(volume: &mut Volume, isolinux: &Isolinux, command_line: &str) -> Overlay {
    let Isolinux { program, library, boot_record } = isolinux;
    volume.boot.insert(0, BootEntry { platform: Platform::Bios, path: ISOLINUX });
    let configuration = format!(
        "DEFAULT farrier\nPROMPT 0\nLABEL farrier\n  KERNEL /{KERNEL}\n  INITRD /{RAMDISK}\n  APPEND {command_line}\n"
    );
    volume.files.insert("isolinux/isolinux.cfg".to_owned(), configuration.into_bytes().into());
    volume.files.insert("isolinux/ldlinux.c32".to_owned(), Content::Here(library.clone()));
    volume.files.insert(ISOLINUX.to_owned(), Content::Here(program.clone()));
    let sector = volume.sector_of(ISOLINUX).unwrap_or_default();
    volume.files.insert(ISOLINUX.to_owned(), with_boot_information(program, sector).into());
    let mut overlay = volume.write();
    let boot_record = master_boot_record(boot_record, sector, volume, overlay.length());
    overlay.put(0, boot_record);
    overlay
}

/// Tells isolinux where it lies on the medium: sectors of the volume descriptor and of itself, its
/// length, and the sum of its words from byte 64 on.
fn with_boot_information(isolinux: &[u8], sector: u32) -> Vec<u8> {
    let mut isolinux = isolinux.to_vec();
    isolinux.resize(isolinux.len().next_multiple_of(4).max(64), 0);
    let words = isolinux[64..]
        .chunks_exact(4)
        .map(|word| word.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte)));
    let sum = words.fold(0, u32::wrapping_add);
    let length = isolinux.len() as u32;
    isolinux[8..64].fill(0);
    for (at, number) in [(8, 16), (12, sector), (16, length), (20, sum)] {
        isolinux[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    isolinux
}

/// What makes the medium a disk as well: boot code that starts isolinux, a partition over the whole, and one
/// that is the EFI system partition.
fn master_boot_record(code: &[u8], isolinux: u32, volume: &Volume, length: u64) -> Vec<u8> {
    let in_blocks = |sectors: u32| sectors * (SECTOR as u32 / 512);
    let esp = in_blocks(volume.sector_of(ESP).unwrap_or_default());
    let esp_length = volume.files.get(ESP).map_or(0, |esp| (esp.length() / 512) as u32);
    let whole = (length / 512) as u32;
    let mut record = code[..code.len().min(BOOT_CODE)].to_vec();
    record.resize(512, 0);
    record[BOOT_CODE..BOOT_CODE + 4].copy_from_slice(&in_blocks(isolinux).to_le_bytes());
    record[DISK_IDENTIFIER..DISK_IDENTIFIER + 4].copy_from_slice(b"FARR");
    for (index, (flag, kind, start, length)) in
        [(0x80, 0x17, 0, whole), (0, 0xef, esp, esp_length)].into_iter().enumerate()
    {
        // Cylinders, heads and sectors say that the logical numbers count.
        let mut entry = vec![flag, 0xfe, 0xff, 0xff, kind, 0xfe, 0xff, 0xff];
        entry.extend(u32::to_le_bytes(start));
        entry.extend(length.to_le_bytes());
        record[PARTITIONS + 16 * index..][..16].copy_from_slice(&entry);
    }
    record[510..512].copy_from_slice(&[0x55, 0xaa]);
    record
}

/// An EFI system partition from which firmware of an architecture starts shim, and shim a GRUB.
///
/// # Errors
///
/// None that is known: names and sizes are ours.
pub fn esp(suffix: &str, shim: Vec<u8>, grub: Vec<u8>) -> std::io::Result<Vec<u8>> {
    crate::esp::image(&BTreeMap::from([
        (format!("EFI/BOOT/BOOT{}.EFI", suffix.to_uppercase()), shim),
        (format!("EFI/BOOT/grub{suffix}.efi"), grub),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents() -> Contents {
        Contents {
            kernel: vec![b'k'; 9000].into(),
            ramdisk: vec![b'r'; 70_000].into(),
            command_line: "console=ttyS0 a=b".to_owned(),
            network_data: None,
        }
    }

    fn loaders() -> BootLoaders {
        let isolinux = Isolinux {
            program: vec![1; 3000].into(),
            library: vec![2; 100].into(),
            boot_record: vec![3; 440].into(),
        };
        BootLoaders { esp: vec![b'e'; 1 << 20].into(), isolinux: Some(isolinux) }
    }

    #[test]
    fn a_medium_whose_kernel_is_elsewhere_has_the_same_bytes_around_it() {
        for isolinux in [loaders().isolinux, None] {
            let loaders = BootLoaders { isolinux, ..loaders() };
            let whole = BootVolume::new(contents(), &loaders);
            let apart = Contents {
                kernel: Content::Elsewhere(9000),
                ramdisk: Content::Elsewhere(70_000),
                ..contents()
            };
            let esp = Content::Elsewhere(1 << 20);
            let apart = BootVolume::new(apart, &BootLoaders { esp, ..loaders });
            let mut medium = apart.overlay.to_vec();
            for (place, byte, length) in
                [(apart.kernel, b'k', 9000), (apart.ramdisk, b'r', 70_000), (apart.esp, b'e', 1 << 20)]
            {
                let part = &mut medium[place as usize..place as usize + length];
                assert!(part.iter().all(|byte| *byte == 0));
                part.fill(byte);
            }
            assert!(medium == whole.overlay.to_vec());
            assert_eq!(medium.len() % (1 << 20), 0);
        }
    }

    #[test]
    fn isolinux_knows_where_it_lies_and_disks_find_it() {
        let image = BootVolume::new(contents(), &loaders()).overlay.to_vec();
        let number = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!(
            (&image[..2], &image[440..444], &image[510..512]),
            (&[3, 3][..], &b"FARR"[..], &[0x55, 0xaa][..])
        );
        let isolinux = number(432) * 512;
        assert_eq!(&image[isolinux..isolinux + 8], [1; 8]);
        assert_eq!((number(isolinux + 8), number(isolinux + 12)), (16, isolinux / 2048));
        let words = image[isolinux + 64..isolinux + 3000].chunks(4);
        let sum =
            words.fold(0u32, |sum, word| sum.wrapping_add(u32::from_le_bytes(word.try_into().unwrap())));
        assert_eq!((number(isolinux + 16), number(isolinux + 20)), (3000, sum as usize));
        // The second partition is the EFI system partition.
        let (esp, length) = (number(446 + 16 + 8) * 512, number(446 + 16 + 12) * 512);
        assert_eq!((image[446 + 16 + 4], image[esp], length), (0xef, b'e', 1 << 20));
    }
}
