//! Memory (section 9.6): the kernel's total, and the modules as firmware describes them (F45).

use crate::smbios::Structure;
use farrier_linux::sysfs;
use farrier_protocol::inventory::Memory;
use std::fs;
use std::path::Path;

const ARRAY: u8 = 16;
const DEVICE: u8 = 17;
const MAPPED_ADDRESS: u8 = 19;
/// Use of an array that is the machine's main memory.
const SYSTEM_MEMORY: u8 = 3;
/// Size of a device that stands in its extended field.
const SIZE_IS_EXTENDED: u16 = 0x7fff;
/// Size of a device that firmware does not know.
const SIZE_UNKNOWN: u16 = 0xffff;
/// Bit of a size that is in KiB and not in MiB.
const SIZE_IN_KIB: u16 = 0x8000;

/// The memory of the machine whose root file system is at `root`.
pub fn memory(root: &Path, smbios: &[Structure]) -> Memory {
    let physical_mb =
        [modules(smbios), mapped(smbios), blocks(root)].into_iter().find(|megabytes| *megabytes > 0);
    Memory { total: total(root), physical_mb }
}

fn total(root: &Path) -> u64 {
    let text = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}

/// MiB of all modules of the main memory.
fn modules(smbios: &[Structure]) -> u64 {
    let is_main = |device: &&Structure| {
        let array = smbios.iter().find(|one| one.kind == ARRAY && Some(one.handle) == device.word(4));
        // A device whose array is missing is more likely main memory than a cache or flash.
        array.is_none_or(|array| array.byte(5) == Some(SYSTEM_MEMORY))
    };
    let devices = smbios.iter().filter(|one| one.kind == DEVICE);
    let kib: u64 = devices.filter(is_main).filter_map(module_kib).sum();
    kib / 1024
}

/// KiB of one module; nothing for an empty slot or an unknown size.
pub fn module_kib(device: &Structure) -> Option<u64> {
    match device.word(0x0c)? {
        0 | SIZE_UNKNOWN => None,
        SIZE_IS_EXTENDED => Some(u64::from(device.double_word(0x1c)? & 0x7fff_ffff) * 1024),
        size if size & SIZE_IN_KIB != 0 => Some(u64::from(size & !SIZE_IN_KIB)),
        size => Some(u64::from(size) * 1024),
    }
}

/// MiB of the address ranges that memory is mapped to.
fn mapped(smbios: &[Structure]) -> u64 {
    let bytes = |range: &Structure| match (range.double_word(4)?, range.double_word(8)?) {
        (u32::MAX, _) => range.quad_word(0x17)?.checked_sub(range.quad_word(0x0f)?)?.checked_add(1),
        (start, end) => Some((u64::from(end).checked_sub(u64::from(start))? + 1) * 1024),
    };
    let ranges = smbios.iter().filter(|one| one.kind == MAPPED_ADDRESS);
    ranges.filter_map(bytes).fold(0, u64::saturating_add) >> 20
}

/// MiB of the memory blocks the kernel has, for machines without SMBIOS.
fn blocks(root: &Path) -> u64 {
    let directory = root.join("sys/devices/system/memory");
    let size = sysfs::attribute(&directory, "block_size_bytes");
    let size = size.and_then(|text| u64::from_str_radix(&text, 16).ok()).unwrap_or_default();
    let is_block =
        |name: &String| name.strip_prefix("memory").is_some_and(|number| number.parse::<u32>().is_ok());
    let count = sysfs::entries(&directory).into_iter().filter(is_block).count() as u64;
    count.saturating_mul(size) >> 20
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::fake_root::FakeRoot;
    use crate::smbios::{parse, tests::structure};

    /// A memory device in the array 0x1000 with a size field and an extended size.
    fn device(array: u16, size: u16, extended: u32) -> Vec<u8> {
        let mut data = vec![0; 0x20 - 4];
        data[0..2].copy_from_slice(&array.to_le_bytes());
        data[8..10].copy_from_slice(&size.to_le_bytes());
        data[0x18..0x1c].copy_from_slice(&extended.to_le_bytes());
        structure(DEVICE, 0x1100, &data, &[])
    }

    #[test]
    fn f45_modules_are_summed_whatever_form_their_size_has() {
        for (size, extended, expected) in [
            (0, 0, None),
            (0xffff, 0, None),
            (16384, 0, Some(16384 * 1024)),
            (0x7fff, 65536, Some(65536 * 1024)),
            (0x8000 | 512, 0, Some(512)),
        ] {
            assert_eq!(module_kib(&parse(&device(0, size, extended))[0]), expected, "{size:#x}");
        }
        let table = [
            structure(ARRAY, 0x1000, &[3, SYSTEM_MEMORY], &[]),
            structure(ARRAY, 0x1001, &[3, 5], &[]),
            device(0x1000, 16384, 0),
            device(0x1000, 0x7fff, 65536),
            device(0x1001, 64, 0),
        ]
        .concat();
        assert_eq!(modules(&parse(&table)), 16384 + 65536);
    }

    #[test]
    fn f45_ranges_and_blocks_stand_in_for_missing_modules() {
        let root = FakeRoot::new(&[
            ("proc/meminfo", "MemTotal:        2968812 kB\nMemFree: 1 kB\n"),
            ("sys/devices/system/memory/block_size_bytes", "8000000\n"),
            ("sys/devices/system/memory/memory0/state", "online\n"),
            ("sys/devices/system/memory/memory7/state", "online\n"),
        ]);
        let found = memory(root.path(), &[]);
        assert_eq!(found, Memory { total: 2_968_812 * 1024, physical_mb: Some(256) });

        let mut range = Vec::new();
        range.extend(0_u32.to_le_bytes());
        range.extend((3 * 1024 * 1024 - 1_u32).to_le_bytes());
        let smbios = parse(&structure(MAPPED_ADDRESS, 1, &range, &[]));
        assert_eq!(memory(root.path(), &smbios).physical_mb, Some(3072));
        assert_eq!(memory(FakeRoot::new(&[]).path(), &[]), Memory::default());
    }
}
