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

/// Where a device has its type, details of it, technology, and its parts in bytes (SMBIOS 3.2, section 7.18).
const TYPE: usize = 0x12;
const TYPE_DETAIL: usize = 0x13;
const TECHNOLOGY: usize = 0x28;
const NON_VOLATILE_SIZE: usize = 0x34;
const VOLATILE_SIZE: usize = 0x3c;
const CACHE_SIZE: usize = 0x44;
/// Types from ROM to EPROM, and what a module for persistent memory is divided into.
const READ_ONLY_TYPES: std::ops::RangeInclusive<u8> = 0x08..=0x0c;
const LOGICAL_NON_VOLATILE: u8 = 0x1f;
/// Bit of the details that says that a module keeps its content.
const NON_VOLATILE: u16 = 1 << 12;
/// The kinds of NVDIMM, and Optane.
const PERSISTENT: std::ops::RangeInclusive<u8> = 4..=7;
/// A part of which firmware does not know the size.
const PART_UNKNOWN: u64 = u64::MAX;

/// The memory of the machine whose root file system is at `root`.
pub fn memory(root: &Path, smbios: &[Structure]) -> Memory {
    let total = total(root);
    // What the kernel has is there, whatever firmware says.
    let is_possible = |megabytes: &u64| *megabytes > 0 && *megabytes >= total >> 20;
    let by_firmware = [modules(smbios), mapped(smbios)];
    let by_kernel = [blocks(root), total >> 20];
    let physical_mb = by_firmware
        .into_iter()
        .find(is_possible)
        .or_else(|| by_kernel.into_iter().find(|megabytes| *megabytes > 0))
        .or_else(|| by_firmware.into_iter().find(|megabytes| *megabytes > 0));
    Memory { total, physical_mb }
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
    devices.filter(is_main).filter_map(ram_kib).fold(0, u64::saturating_add) / 1024
}

/// KiB of a module that are main memory: of one for persistent memory the volatile part, and of no module what is a
/// cache of another one.
fn ram_kib(device: &Structure) -> Option<u64> {
    let part = |offset: usize| device.quad_word(offset).filter(|bytes| *bytes != PART_UNKNOWN);
    let is_persistent = device.byte(TECHNOLOGY).is_some_and(|technology| PERSISTENT.contains(&technology))
        || device.word(TYPE_DETAIL).is_some_and(|detail| detail & NON_VOLATILE != 0)
        || part(NON_VOLATILE_SIZE).is_some_and(|bytes| bytes > 0);
    if device.byte(TYPE).is_some_and(|kind| kind == LOGICAL_NON_VOLATILE || READ_ONLY_TYPES.contains(&kind)) {
        return None;
    }
    let size = if is_persistent { part(VOLATILE_SIZE)? / 1024 } else { module_kib(device)? };
    Some(size.saturating_sub(part(CACHE_SIZE).unwrap_or_default() / 1024))
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

    const GIB: u64 = 1 << 30;

    /// A module as SMBIOS 3.2 describes it: size in MiB, technology, and its parts in bytes.
    fn module(size: u32, technology: u8, non_volatile: u64, volatile: u64, cache: u64) -> Vec<u8> {
        let mut data = vec![0; 0x54 - 4];
        let mut put = |offset: usize, bytes: &[u8]| data[offset - 4..][..bytes.len()].copy_from_slice(bytes);
        put(4, &0x1000_u16.to_le_bytes());
        put(0x0c, &SIZE_IS_EXTENDED.to_le_bytes());
        put(0x1c, &size.to_le_bytes());
        put(TYPE, &[0x1a]);
        put(TECHNOLOGY, &[technology]);
        put(NON_VOLATILE_SIZE, &non_volatile.to_le_bytes());
        put(VOLATILE_SIZE, &volatile.to_le_bytes());
        put(CACHE_SIZE, &cache.to_le_bytes());
        structure(DEVICE, 0x1100, &data, &[])
    }

    #[test]
    fn a13_persistent_memory_is_not_ram() {
        let dram = module(32768, 3, 0, 32 * GIB, 0);
        for (what, other, expected) in [
            ("Optane as storage", module(131_072, 7, 128 * GIB, 0, 0), 32768),
            ("Optane, half of it as memory", module(131_072, 7, 64 * GIB, 64 * GIB, 0), 32768 + 65536),
            ("NVDIMM-N", module(16384, 4, 16 * GIB, 0, 0), 32768),
            ("NVDIMM-F", module(16384, 5, 16 * GIB, 0, 0), 32768),
            ("NVDIMM-P", module(16384, 6, 16 * GIB, 0, 0), 32768),
            ("Optane of unknown parts", module(131_072, 7, PART_UNKNOWN, PART_UNKNOWN, 0), 32768),
            (
                "another technology with a part that keeps its content",
                module(16384, 2, GIB, 15 * GIB, 0),
                32768 + 15360,
            ),
            ("more DRAM", module(16384, 3, 0, 16 * GIB, 0), 32768 + 16384),
            (
                "DRAM of unknown parts",
                module(16384, 3, PART_UNKNOWN, PART_UNKNOWN, PART_UNKNOWN),
                32768 + 16384,
            ),
            ("DRAM that is a cache of Optane", module(16384, 3, 0, 16 * GIB, 16 * GIB), 32768),
            ("MRDIMM", module(16384, 8, 0, 16 * GIB, 0), 32768 + 16384),
            ("an empty slot", module(0, 3, 0, 0, 0), 32768),
        ] {
            let array = structure(ARRAY, 0x1000, &[3, SYSTEM_MEMORY], &[]);
            assert_eq!(modules(&parse(&[array, dram.clone(), other].concat())), expected, "{what}");
        }
    }

    #[test]
    fn a13_older_tables_tell_persistent_memory_by_its_type() {
        for (kind, detail, expected) in [
            (0x1a, 0x80, 16384),
            (0x1a, 0x80 | NON_VOLATILE, 0),
            (LOGICAL_NON_VOLATILE, 0, 0),
            (0x09, 0, 0),
            (0x02, 0, 16384),
        ] {
            let mut bytes = device(0x1000, 16384, 0);
            bytes[TYPE] = kind;
            bytes[TYPE_DETAIL..][..2].copy_from_slice(&u16::to_le_bytes(detail));
            assert_eq!(modules(&parse(&bytes)), expected, "{kind:#x} {detail:#x}");
        }
    }

    #[test]
    fn a13_firmware_that_tells_of_less_than_the_kernel_has_is_not_believed() {
        let tables = |megabytes: u16| parse(&device(0x1000, megabytes, 0));
        let meminfo = ("proc/meminfo", "MemTotal:       16000000 kB\n");
        let kernel = FakeRoot::new(&[meminfo]);
        for (megabytes, expected) in [(16384, 16384), (16, 15625), (0x8000 | 512, 15625)] {
            assert_eq!(memory(kernel.path(), &tables(megabytes)).physical_mb, Some(expected), "{megabytes}");
        }
        let blocks = FakeRoot::new(&[
            meminfo,
            ("sys/devices/system/memory/block_size_bytes", "400000000\n"),
            ("sys/devices/system/memory/memory0/state", "online\n"),
        ]);
        assert_eq!(memory(blocks.path(), &tables(16)).physical_mb, Some(16384));
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
