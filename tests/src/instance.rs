//! The smallest image that a conductor takes for an operating system.

use anyhow::Result;
use sha2::{Digest, Sha256};
use std::io::{Cursor, Write};

const MIB: usize = 1 << 20;

/// Where the partition of [`image`] begins.
const ESP_START: usize = MIB;

/// A whole-disk image of 6 MiB with one partition: an EFI system partition with a boot loader's file.
///
/// # Errors
///
/// The file system cannot be made.
pub fn image() -> Result<Vec<u8>> {
    let mut image: Vec<u8> = (0..6 * MIB).map(|index| (index % 251) as u8).collect();
    image[440..512].fill(0);
    image[440..444].copy_from_slice(&0x1234_5678_u32.to_le_bytes());
    // Type 0xef, from sector 2048, 4 MiB long.
    image[446..462].copy_from_slice(&[0, 0, 2, 0, 0xef, 0, 0, 0, 0, 8, 0, 0, 0, 32, 0, 0]);
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    let mut esp = Cursor::new(vec![0; 4 * MIB]);
    fatfs::format_volume(&mut esp, fatfs::FormatVolumeOptions::new())?;
    {
        let volume = fatfs::FileSystem::new(&mut esp, fatfs::FsOptions::new())?;
        let boot = volume.root_dir().create_dir("EFI")?.create_dir("BOOT")?;
        boot.create_file("BOOTX64.EFI")?.write_all(b"no real boot loader")?;
    }
    image[ESP_START..ESP_START + 4 * MIB].copy_from_slice(esp.get_ref());
    Ok(image)
}

/// SHA-256 of an image, hexadecimal.
pub fn sha256(image: &[u8]) -> String {
    hex::encode(Sha256::digest(image))
}
