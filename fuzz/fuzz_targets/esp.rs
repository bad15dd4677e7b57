//! EFI system partitions: their loaders become entries of the firmware's boot menu.

#![no_main]

use farrier_boot::entry::{self, StartedBy};
use farrier_boot::firmware;
use farrier_boot::machine::Machine;
use farrier_fuzz::{Firmware, memory_disk};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

/// The first sector of a disk with an MBR of one partition, the EFI system partition, which is as large as inputs
/// are: behind them would be zeros.
static TABLE: LazyLock<[u8; 512]> = LazyLock::new(|| {
    let mut table = *include_bytes!("../seeds/mbr.sector");
    table[SECTORS_AT..SECTORS_AT + 4].copy_from_slice(&(ESP_SIZE / 512).to_le_bytes());
    table
});
/// Where the MBR has how many sectors its first partition has.
const SECTORS_AT: usize = 446 + 12;
/// Where the partition begins, and its bytes.
const ESP: u64 = 1 << 20;
const ESP_SIZE: u32 = 8 << 10;
const DISK: u64 = 2 << 20;

fuzz_target!(|volume: &[u8]| {
    let volume = &volume[..volume.len().min(ESP_SIZE as usize)];
    let disk = memory_disk(&[(0, &TABLE[..]), (ESP, volume)], DISK, 512);
    let variables = Firmware::with_entry(None);
    let machine = Machine::of("x86_64", None).expect("firmware of the PC is known");
    let firmware = firmware::Firmware { machine, variables: Some(variables.variables()) };
    if let Ok(Some(StartedBy::Entries(entries))) = entry::install_on(&disk, &firmware) {
        assert!(entries.len() <= 16, "{entries:?}");
        for entry in entries {
            assert!(entry.loader.starts_with('\\'), "{entry:?}");
        }
    }
});
