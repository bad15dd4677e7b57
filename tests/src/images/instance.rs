//! The smallest image that a conductor takes for an operating system, and that boots.
//!
//! What boots says so on the serial port and then waits. It is a boot sector for BIOS firmware, a boot loader
//! for UEFI firmware of the same few instructions, and one for that of aarch64.

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{Cursor, Write};

const MIB: usize = 1 << 20;

/// Where the partition of [`image`] begins.
const ESP_START: usize = MIB;

/// What an instance says on the serial port each time it boots.
pub const GREETING: &str = "the instance is up";

/// How both programs go on once the source index register holds the address of the greeting and DX
/// the serial port: send each byte until a zero, then halt for ever.
const SEND_AND_HALT: [u8; 11] = [0xac, 0x84, 0xc0, 0x74, 3, 0xee, 0xeb, 0xf8, 0xf4, 0xeb, 0xfd];

/// What a PE image calls an architecture.
const X86_64: u16 = 0x8664;
const AARCH64: u16 = 0xaa64;

/// A whole-disk image of 6 MiB with one partition: an EFI system partition with boot loaders.
///
/// # Errors
///
/// The file system cannot be made.
pub fn image() -> Result<Vec<u8>> {
    bootable(
        4,
        &[
            ("EFI/BOOT/BOOTX64.EFI", efi_program(X86_64, &x86_64_code())),
            ("EFI/BOOT/BOOTAA64.EFI", efi_program(AARCH64, &aarch64_code())),
        ],
    )
}

/// The same with boot loaders that firmware starts under Secure Boot: Debian's shim and GRUB, which says the greeting.
///
/// # Errors
///
/// The loaders are not installed, or the file system cannot be made.
pub fn signed_image() -> Result<Vec<u8>> {
    let read = |file: &str| fs::read(file).with_context(|| format!("cannot read {file}"));
    let menu = format!("echo \"{GREETING}\"\nsleep 86400\n");
    bootable(
        8,
        &[
            ("EFI/debian/shimx64.efi", read("/usr/lib/shim/shimx64.efi.signed")?),
            ("EFI/debian/grubx64.efi", read("/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed")?),
            ("EFI/debian/grub.cfg", menu.into_bytes()),
        ],
    )
}

/// An image with a boot sector, and with files on an EFI system partition of so many MiB.
fn bootable(mebibytes: usize, files: &[(&str, Vec<u8>)]) -> Result<Vec<u8>> {
    let size = mebibytes * MIB;
    let mut image: Vec<u8> = (0..size + 2 * MIB).map(|index| (index % 251) as u8).collect();
    let boot_sector = boot_sector();
    image[..boot_sector.len()].copy_from_slice(&boot_sector);
    image[440..512].fill(0);
    image[440..444].copy_from_slice(&0x1234_5678_u32.to_le_bytes());
    // Type 0xef, from sector 2048.
    image[446..458].copy_from_slice(&[0, 0, 2, 0, 0xef, 0, 0, 0, 0, 8, 0, 0]);
    image[458..462].copy_from_slice(&u32::try_from(size / 512)?.to_le_bytes());
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    let mut esp = Cursor::new(vec![0; size]);
    fatfs::format_volume(&mut esp, fatfs::FormatVolumeOptions::new())?;
    {
        let volume = fatfs::FileSystem::new(&mut esp, fatfs::FsOptions::new())?;
        for (path, content) in files {
            for (end, _) in path.match_indices('/') {
                volume.root_dir().create_dir(&path[..end])?;
            }
            volume.root_dir().create_file(path)?.write_all(content)?;
        }
    }
    image[ESP_START..ESP_START + size].copy_from_slice(esp.get_ref());
    Ok(image)
}

/// SHA-256 of an image, hexadecimal.
pub fn sha256(image: &[u8]) -> String {
    hex::encode(Sha256::digest(image))
}

fn greeting() -> Vec<u8> {
    format!("\r\n{GREETING}\r\n\0").into_bytes()
}

/// 16-bit code that firmware loads to 0x7c00.
fn boot_sector() -> Vec<u8> {
    // cld; xor ax, ax; mov ds, ax; mov si, 0x7c16; mov dx, 0x3f8
    let start = [0xfc, 0x31, 0xc0, 0x8e, 0xd8, 0xbe, 0x16, 0x7c, 0xba, 0xf8, 3];
    [start.as_slice(), &SEND_AND_HALT, &greeting()].concat()
}

/// 64-bit code that does not care where it lies.
fn x86_64_code() -> Vec<u8> {
    // lea rsi, [rip + 15]; mov dx, 0x3f8
    let start = [0x48, 0x8d, 0x35, 15, 0, 0, 0, 0x66, 0xba, 0xf8, 3];
    [start.as_slice(), &SEND_AND_HALT, &greeting()].concat()
}

/// The same for QEMU's `virt`, whose serial port is a PL011 at 0x9000000.
fn aarch64_code() -> Vec<u8> {
    let instructions: [u32; 8] = [
        0x1000_0101, // adr x1, greeting
        0xd2a1_2002, // mov x2, #0x9000000
        0x3840_1420, // next: ldrb w0, [x1], #1
        0x3400_0060, // cbz w0, halt
        0x3900_0040, // strb w0, [x2]
        0x17ff_fffd, // b next
        0xd503_207f, // halt: wfi
        0x17ff_ffff, // b halt
    ];
    let code = instructions.iter().flat_map(|instruction| instruction.to_le_bytes());
    code.chain(greeting()).collect()
}

/// A PE32+ image with one section of code, for the machine that a number names.
fn efi_program(machine: u16, code: &[u8]) -> Vec<u8> {
    const HEADERS: u32 = 0x200;
    const SECTION: u32 = 0x200;
    const ADDRESS: u32 = 0x1000;
    let words = |words: &[u16]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let doubles = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let mut file = b"MZ".to_vec();
    file.resize(0x3c, 0);
    file.extend(doubles(&[0x40]));
    file.extend(b"PE\0\0");
    // One section, no symbols, 240 bytes of optional header, executable for any address.
    file.extend(words(&[machine, 1, 0, 0, 0, 0, 0, 0, 240, 0x22]));
    file.extend(words(&[0x20b, 0]));
    file.extend(doubles(&[SECTION, 0, 0, ADDRESS, ADDRESS, 0, 0, ADDRESS, SECTION]));
    file.extend(words(&[0; 6]));
    file.extend(doubles(&[0, 2 * ADDRESS, HEADERS, 0]));
    // An EFI application.
    file.extend(words(&[10, 0]));
    file.extend(doubles(&[0; 9]));
    file.extend(doubles(&[16]));
    file.resize(file.len() + 16 * 8, 0);
    file.extend(b".text\0\0\0");
    file.extend(doubles(&[SECTION, ADDRESS, SECTION, HEADERS, 0, 0, 0, 0x6000_0020]));
    file.resize(HEADERS as usize, 0);
    file.extend(code);
    file.resize((HEADERS + SECTION) as usize, 0);
    file
}
