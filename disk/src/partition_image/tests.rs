use super::*;
use crate::ephemeral;
use crate::io::MemoryDisk;
use crate::layout::Request;
use crate::table::{Geometry, TableKind};

const MIB: u64 = 1 << 20;
const DISK: u64 = 400 * MIB;

fn layout(is_uefi: bool, table: TableKind, sector_size: u32) -> Layout {
    let request = Request {
        is_uefi,
        is_power: false,
        table,
        root_mib: 64,
        swap_mib: 8,
        ephemeral_mib: 16,
        ephemeral_format: ephemeral::Format::named("vfat").unwrap(),
        esp_mib: 200,
        bios_boot_mib: 1,
        config_drive: None,
    };
    Layout::plan(&request, "/dev/memory".as_ref(), Geometry { size: DISK, sector_size }).unwrap()
}

#[test]
fn d17_everything_around_a_partition_image_is_made_on_sectors_of_any_size() {
    for (is_uefi, table, sector_size) in [
        (true, TableKind::Gpt, 512),
        (true, TableKind::Gpt, 4096),
        (false, TableKind::Gpt, 4096),
        (false, TableKind::Mbr, 512),
        (false, TableKind::Mbr, 4096),
    ] {
        let disk = MemoryDisk::zeros(DISK, sector_size);
        let layout = layout(is_uefi, table, sector_size);
        prepare(&disk, &layout, false).unwrap();
        disk.put(layout.root().start, b"an image");
        assert_eq!(PartitionTable::read(&disk).unwrap().name(), "none", "the table comes last");
        let found = finish(&disk, &layout, false, None).unwrap();
        let table = PartitionTable::read(&disk).unwrap();
        assert_eq!(found.root, table.partitions().last().unwrap().partuuid(), "a root without a file system");
        assert_eq!(found.esp.is_some(), is_uefi);
        for place in &layout.places {
            let kinds: Vec<_> =
                disk.signatures(place.start, place.size).unwrap().into_iter().map(|one| one.kind).collect();
            let expected = match place.role {
                Role::Esp | Role::Ephemeral => vec!["vfat"],
                Role::Swap => vec!["swap"],
                _ => vec![],
            };
            assert_eq!(kinds, expected, "{:?}", place.role);
        }
        assert_eq!(disk.content(layout.root().start, 8), b"an image");
        // A rebuild finds its own partitions, and refuses others.
        prepare(&disk, &layout, true).unwrap();
        finish(&disk, &layout, true, None).unwrap();
        let mut other = layout.clone();
        other.places.remove(0);
        assert!(matches!(prepare(&disk, &other, true), Err(Error::NoRoom { .. })));
    }
}

#[test]
fn without_its_last_sector_a_disk_gets_no_table_that_is_believed() {
    let layout = layout(true, TableKind::Gpt, 512);
    let disk = MemoryDisk::zeros(DISK, 512);
    prepare(&disk, &layout, false).unwrap();
    let disk = disk.broken_at(DISK - 512);
    assert!(matches!(finish(&disk, &layout, false, None), Err(Error::Device { .. })));
    assert_eq!(disk.content(0, 512), [0; 512], "no MBR announces a table");
}
