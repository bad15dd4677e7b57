//! Systems that the agent has to give a boot loader, from their partition images to their login prompts.

use farrier_tests::cells::boot::{Bus, Cell, DebianImage, Image, Table};
use farrier_tests::environment;
use farrier_tests::machine::Firmware;
use tempfile::TempDir;

fn boots(firmware: Firmware, bus: Bus, table: Table) {
    let cell = Cell { firmware, bus, image: Image::Partition, table, has_config_drive: true };
    let image = DebianImage {
        path: environment::text("FARRIER_PARTITION_IMAGE").into(),
        sha256: environment::text("FARRIER_PARTITION_IMAGE_SHA256"),
    };
    let folder = TempDir::new().unwrap();
    cell.run(environment::text("FARRIER_DIST").as_ref(), &image, folder.path()).unwrap();
}

#[test]
fn vm_f22_a_partition_image_boots_by_bios_from_an_mbr() {
    boots(Firmware::Bios, Bus::Virtio, Table::Mbr);
}

#[test]
fn vm_f16_a_partition_image_boots_by_uefi_from_sectors_of_4096_bytes() {
    boots(Firmware::Uefi, Bus::Scsi4Kn, Table::Gpt);
}
