//! The ISO image: one medium for BIOS and UEFI, on CD, virtual CD or USB stick.

use std::collections::BTreeMap;

use crate::boot_loader::BootLoaders;
use crate::error::BuildError;
use crate::esp;
use crate::iso9660::{BootEntry, Platform, SECTOR, Volume};
use crate::netboot;
use crate::role::Role;
use farrier_media::boot_iso::NETWORK_DATA;

const ESP: &str = "efi.img";
const ISOLINUX: &str = "isolinux/isolinux.bin";

/// Makes the image.
///
/// # Errors
///
/// [`BuildError::BootLoader`] naming the missing package.
pub fn image(
    kernel: &[u8],
    initramfs: &[u8],
    command_line: &str,
    loaders: &mut BootLoaders,
) -> Result<Vec<u8>, BuildError> {
    let suffix = loaders.efi_suffix();
    let (shim, first) = loaders.read(Role::Shim)?;
    let (_, grub) = loaders.read(Role::GrubCd)?;
    let programs = [
        (format!("EFI/BOOT/BOOT{}.EFI", suffix.to_uppercase()), first),
        (format!("EFI/BOOT/grub{suffix}.efi"), grub),
    ];
    let esp = esp::image(&programs).map_err(BuildError::reading(&shim))?;
    let mut volume = Volume {
        label: "FARRIER",
        files: BTreeMap::from([
            // By this file GRUB finds the medium it was started from.
            (".disk/info".to_owned(), b"Farrier\n".to_vec()),
            ("boot/grub/grub.cfg".to_owned(), netboot::grub_configuration(command_line).into_bytes()),
            (ESP.to_owned(), esp),
            ("initramfs.img".to_owned(), initramfs.to_vec()),
            // For conductors that put the network of a machine here.
            (NETWORK_DATA.to_owned(), Vec::new()),
            ("vmlinuz".to_owned(), kernel.to_vec()),
        ]),
        boot: vec![BootEntry { platform: Platform::Efi, path: ESP }],
    };
    if !loaders.has_bios() {
        return Ok(volume.write());
    }
    volume.boot.insert(0, BootEntry { platform: Platform::Bios, path: ISOLINUX });
    volume.files.insert("isolinux/isolinux.cfg".to_owned(), isolinux_configuration(command_line));
    volume.files.insert("isolinux/ldlinux.c32".to_owned(), loaders.read(Role::IsolinuxLibrary)?.1);
    let (_, isolinux) = loaders.read(Role::Isolinux)?;
    volume.files.insert(ISOLINUX.to_owned(), isolinux.clone());
    let sector = volume.sector_of(ISOLINUX).unwrap_or_default();
    volume.files.insert(ISOLINUX.to_owned(), with_boot_information(isolinux, sector));
    let mut image = volume.write();
    add_boot_record(&mut image, &loaders.read(Role::HybridMbr)?.1, sector, &volume);
    Ok(image)
}

fn isolinux_configuration(command_line: &str) -> Vec<u8> {
    format!(
        "DEFAULT farrier\nPROMPT 0\nLABEL farrier\n  KERNEL /vmlinuz\n  INITRD /initramfs.img\n  \
         APPEND {command_line}\n"
    )
    .into_bytes()
}

/// Tells isolinux where it lies on the medium: sectors of the volume descriptor and of itself, its
/// length, and the sum of its words from byte 64 on.
fn with_boot_information(mut isolinux: Vec<u8>, sector: u32) -> Vec<u8> {
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

/// Makes the image a disk as well: boot code that starts isolinux, a partition over the whole, and one
/// that is the EFI system partition.
fn add_boot_record(image: &mut [u8], code: &[u8], isolinux: u32, volume: &Volume) {
    const CODE: usize = 432;
    let in_blocks = |sectors: u32| sectors * (SECTOR as u32 / 512);
    let esp = in_blocks(volume.sector_of(ESP).unwrap_or_default());
    let esp_length = (volume.files[ESP].len() / 512) as u32;
    let whole = (image.len() / 512) as u32;
    image[..code.len().min(CODE)].copy_from_slice(&code[..code.len().min(CODE)]);
    image[CODE..CODE + 4].copy_from_slice(&in_blocks(isolinux).to_le_bytes());
    image[440..444].copy_from_slice(b"FARR"); // disk identifier
    for (index, (flag, kind, start, length)) in
        [(0x80, 0x17, 0, whole), (0, 0xef, esp, esp_length)].into_iter().enumerate()
    {
        // Cylinders, heads and sectors say that the logical numbers count.
        let mut entry = vec![flag, 0xfe, 0xff, 0xff, kind, 0xfe, 0xff, 0xff];
        entry.extend(u32::to_le_bytes(start));
        entry.extend(length.to_le_bytes());
        image[446 + 16 * index..][..16].copy_from_slice(&entry);
    }
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
}
