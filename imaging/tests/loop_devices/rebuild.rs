//! Deploying once more to a disk that was deployed to before.

use crate::deployment::{Deployment, MIB, image, request, serve};
use crate::disk_support::TestDisk;
use crate::tables::with_gpt;
use base64::prelude::{BASE64_STANDARD, Engine};
use farrier_disk::Sectors;
use farrier_disk::config_drive::{ConfigDrive, MAX_SIZE};
use farrier_disk::table::{Partition, finish_image};
use farrier_linux::aligned::AlignedBuffer;
use farrier_tests::images::server::Reply;
use std::io::Write;
use std::process::Command;
use std::sync::Arc;

/// An ISO 9660 volume, as far as that is looked at, with `mark` in it.
fn config_drive(mark: u8) -> ConfigDrive {
    let mut content = vec![mark; 40 * 1024];
    content[32768..36864].fill(0);
    content[32768..32775].copy_from_slice(b"\x01CD001\x01");
    content[32808..32840].copy_from_slice(b"config-2                        ");
    content[34816..34823].copy_from_slice(b"\xffCD001\x01");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&content).unwrap();
    ConfigDrive::decode(&BASE64_STANDARD.encode(encoder.finish().unwrap()), MAX_SIZE).unwrap()
}

#[test]
fn loop_d27_a_rebuild_has_the_config_drive_it_was_given_or_none() {
    let image = Arc::new(with_gpt(&image(), 512));
    let server = serve(vec![Reply::Body(Arc::clone(&image))]);
    let request = request(vec![server.url()], &image, Some("raw"));
    let deployment = Deployment::on(TestDisk::new(160 * MIB as u64, 512));
    let disk = deployment.disk.disk();
    let deploy = |drive: Option<ConfigDrive>| -> (Vec<Partition>, Option<Partition>) {
        deployment.write(&request).unwrap();
        let partitions = finish_image(disk).unwrap().partitions().to_vec();
        (partitions, drive.map(|drive| drive.write_to(disk).unwrap()))
    };
    let mark_of = |partition: &Partition| {
        let mut start = AlignedBuffer::zeroed(512);
        disk.read_exact_at(&mut start, partition.start).unwrap();
        start[0]
    };

    let (of_the_image, first) = deploy(Some(config_drive(1)));
    let first = first.unwrap();
    assert_eq!((of_the_image.len(), mark_of(&first)), (2, 1));
    let (without, none) = deploy(None);
    assert_eq!((without, none), (of_the_image.clone(), None));
    let (partitions, second) = deploy(Some(config_drive(2)));
    let second = second.unwrap();
    assert_eq!((partitions, second.start, mark_of(&second)), (of_the_image, first.start, 2));
}

/// What lies behind the end of an image is not written. A partition that the new system makes there at its first boot
/// would show what an old one was known by.
#[test]
fn loop_a20_an_old_partition_behind_the_image_is_known_by_nothing_any_more() {
    let old = Deployment::on(TestDisk::new(160 * MIB as u64, 512));
    let disk = old.disk.disk();
    let sgdisk = Command::new("sgdisk").args(["--new=1:64M:+32M"]).arg(disk.path()).output().unwrap();
    assert!(sgdisk.status.success());
    let mut header = AlignedBuffer::zeroed(512);
    header[..6].copy_from_slice(b"LUKS\xba\xbe");
    disk.write_all_at(&header, 64 * MIB as u64).unwrap();
    disk.write_all_at(&header, 20 * MIB as u64).unwrap();
    old.write_from(&serve(vec![Reply::Body(image())])).unwrap();
    let mut found = AlignedBuffer::zeroed(512);
    disk.read_exact_at(&mut found, 64 * MIB as u64).unwrap();
    assert!(found.iter().all(|byte| *byte == 0));
    disk.read_exact_at(&mut found, 20 * MIB as u64).unwrap();
    assert!(*found == *header, "no table led there: the book says so");
}

/// An image whose MBR replaced a GPT without removing it.
#[test]
fn loop_a01_an_image_with_a_stale_gpt_is_the_image_afterwards_and_its_drive_is_where_systems_look() {
    for declared in [Some("raw"), None] {
        let mut image = with_gpt(&image(), 512);
        image[446..510].fill(0);
        image[450] = 0x83;
        image[454..458].copy_from_slice(&2048_u32.to_le_bytes());
        let sectors = image.len() as u32 / 512 - 2048;
        image[458..462].copy_from_slice(&sectors.to_le_bytes());
        let image = Arc::new(image);
        let server = serve(vec![Reply::Body(Arc::clone(&image))]);
        let deployment = Deployment::on(TestDisk::new(160 * MIB as u64, 512));
        deployment.write(&request(vec![server.url()], &image, declared)).unwrap();
        let disk = deployment.disk.disk();
        assert_eq!(finish_image(disk).unwrap().name(), "msdos");
        assert!(deployment.content()[..image.len()] == **image);
        let drive = config_drive(1).write_to(disk).unwrap();
        assert!(drive.start >= image.len() as u64);
        assert!(deployment.content()[2048 * 512..image.len()] == image[2048 * 512..]);
        let blkid = Command::new("blkid").args(["-p", "-o", "export"]).arg(disk.path()).output().unwrap();
        assert!(String::from_utf8_lossy(&blkid.stdout).contains("PTTYPE=dos"));
    }
}
