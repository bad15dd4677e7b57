//! A disk on a real target, written through a real initiator.

#![cfg(feature = "iscsi")]
#![allow(clippy::unwrap_used)]

use farrier_conductor::deploy::disk_export::Portal;
use farrier_disk::table::{Geometry, Partition, PartitionTable, TableKind};
use farrier_drivers::iscsi::{Initiator, IscsiError, Job, LogicalUnit, QemuInitiator, Session, Written};
use farrier_imaging::cancel::CancelHandle;
use farrier_imaging::progress::ProgressHandle;
use farrier_imaging::source::{HttpSource, Options};
use farrier_iscsi::target::layout::serial;
use farrier_iscsi::target::{Chap, IscsiName};
use farrier_protocol::image_info::ImageInfo;
use farrier_protocol::inventory::Disk;
use farrier_tests::iscsi::target::{IscsiTarget, NAME};
use farrier_tests::network::cut_line::{Cut, CutLine};
use std::env;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const MIB: u64 = 1 << 20;
const DISK: u64 = 400 * MIB;
const SECRET: &str = "correct-horse-battery";

/// A disk as an inventory has it.
fn disk(size: u64, serial: &str) -> Disk {
    Disk { size, logical_sectors: 512, serial: Some(serial.to_owned()), ..Disk::default() }
}

/// What is behind a port of this machine.
fn unit(port: u16, secret: &str) -> LogicalUnit {
    LogicalUnit {
        portal: Portal::new("127.0.0.1", port).unwrap(),
        target: IscsiName::parse("iqn", NAME).unwrap(),
        initiator: IscsiName::parse("initiators", "iqn.2026-01.org.example:conductor").unwrap(),
        chap: Chap::new("conductor", secret).unwrap(),
    }
}

fn log_in(unit: &LogicalUnit) -> Box<dyn Session> {
    let disks = [disk(DISK, "OTHER"), disk(DISK, "ROOT")];
    QemuInitiator::default().log_in(unit, &disks, &|| false).unwrap()
}

/// A disk full of ones behind a target that wants a secret, exported as agents do.
struct Stage {
    folder: TempDir,
    target: IscsiTarget,
    runtime: Runtime,
}

impl Stage {
    fn new() -> Self {
        // Another test may have done so.
        rustls::crypto::ring::default_provider().install_default().ok();
        let folder = TempDir::new().unwrap();
        let file = File::create(folder.path().join("disk")).unwrap();
        (0..DISK / MIB).for_each(|number| file.write_all_at(&[0xff; MIB as usize], number * MIB).unwrap());
        let target = IscsiTarget::start(&folder.path().join("disk"), folder.path()).unwrap();
        target.require_chap("conductor", SECRET).unwrap();
        target.set_serial(&serial(&IscsiName::parse("iqn", NAME).unwrap(), "ROOT")).unwrap();
        Self { folder, target, runtime: Runtime::new().unwrap() }
    }

    fn unit(&self, secret: &str) -> LogicalUnit {
        unit(self.target.port(), secret)
    }

    fn log_in(&self) -> Box<dyn Session> {
        log_in(&self.unit(SECRET))
    }

    fn write(&self, session: &dyn Session, job: &Job) -> Result<Written, IscsiError> {
        let source =
            HttpSource::new(reqwest::Client::new(), self.runtime.handle().clone(), Options::default());
        job.write(session.disk(), &source, &ProgressHandle::default(), &CancelHandle::default())
    }

    fn content(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut content = vec![0; length];
        let file = File::open(self.folder.path().join("disk")).unwrap();
        file.read_exact_at(&mut content, offset).unwrap();
        content
    }

    /// A file of the folder as an image.
    fn info(&self, name: &str, format: Option<&str>) -> ImageInfo {
        let file = self.folder.path().join(name);
        let sum = Command::new("sha256sum").arg(&file).output().unwrap().stdout;
        ImageInfo {
            id: name.to_owned(),
            urls: vec![format!("file://{}", file.display())],
            os_hash_algo: Some("sha256".to_owned()),
            os_hash_value: Some(String::from_utf8(sum).unwrap()[..64].to_owned()),
            disk_format: format.map(str::to_owned),
            ..ImageInfo::default()
        }
    }
}

/// An image of 100 MiB with an MBR, one partition, and data and zeros in turns.
fn whole_disk(path: &Path) {
    let file = File::create(path).unwrap();
    file.set_len(100 * MIB).unwrap();
    let mut mbr = [0; 512];
    mbr[440..444].copy_from_slice(&[0x78, 0x56, 0x34, 0x12]);
    mbr[446 + 4] = 0x83;
    mbr[446 + 8..446 + 12].copy_from_slice(&2048_u32.to_le_bytes());
    mbr[446 + 12..446 + 16].copy_from_slice(&100_000_u32.to_le_bytes());
    mbr[510..].copy_from_slice(&[0x55, 0xaa]);
    file.write_all_at(&mbr, 0).unwrap();
    for number in (1..90).step_by(3) {
        let data: Vec<u8> = (0..MIB).map(|place| (place * 7 + number) as u8).collect();
        file.write_all_at(&data, number * MIB + 512).unwrap();
    }
}

#[test]
fn process_whole_disk_images_of_every_kind_are_written_byte_by_byte() {
    let stage = Stage::new();
    let raw = stage.folder.path().join("raw");
    whole_disk(&raw);
    let run = |program: &str, arguments: &[&str]| {
        let ended = Command::new(program).args(arguments).current_dir(stage.folder.path()).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    };
    run("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", "raw", "qcow2"]);
    run("gzip", &["--keep", "raw"]);
    let image = fs::read(&raw).unwrap();
    for (name, format) in [("raw", Some("raw")), ("qcow2", Some("qcow2")), ("raw.gz", None)] {
        let session = stage.log_in();
        let job = Job::new(&stage.info(name, format), None, false, TableKind::Mbr).unwrap();
        let written = stage.write(&*session, &job).unwrap();
        session.log_out().unwrap();
        assert_eq!(written.uuids.root.as_deref(), Some("0x12345678"), "{name}");
        assert!(written.report.bytes_written < 40 * MIB, "zeros are not transferred: {:?}", written.report);
        assert!(stage.content(0, image.len()) == image, "{name}");
        // What the next one finds.
        let file = File::options().write(true).open(stage.folder.path().join("disk")).unwrap();
        (0..100).for_each(|number| file.write_all_at(&[0xff; MIB as usize], number * MIB).unwrap());
    }
}

#[test]
fn process_a_partition_image_gets_its_partitions() {
    let stage = Stage::new();
    let root = stage.folder.path().join("root");
    File::create(&root).unwrap().set_len(32 * MIB).unwrap();
    let made = Command::new("/usr/sbin/mke2fs").args(["-q", "-t", "ext4"]).arg(&root).status().unwrap();
    assert!(made.success());
    let image = fs::read(&root).unwrap();
    for (is_uefi, kinds) in
        [(false, vec!["ext4", "swap", "ext4"]), (true, vec!["vfat", "ext4", "swap", "ext4"])]
    {
        let info = ImageInfo {
            image_type: Some("partition".to_owned()),
            root_mb: Some(64),
            swap_mb: Some(8),
            ephemeral_mb: Some(32),
            ephemeral_format: Some("ext4".to_owned()),
            ..stage.info("root", Some("raw"))
        };
        let session = stage.log_in();
        let job = Job::new(&info, None, is_uefi, TableKind::Mbr).unwrap();
        let written = stage.write(&*session, &job).unwrap();
        session.log_out().unwrap();
        let disk = stage.folder.path().join("disk");
        let mut file = File::open(&disk).unwrap();
        let geometry = Geometry { size: DISK, sector_size: 512 };
        let table = PartitionTable::parse(&mut file, geometry).unwrap();
        assert_eq!(table.name(), if is_uefi { "gpt" } else { "msdos" });
        let signature = |place: &Partition| {
            let found = farrier_linux::blkid::signatures(&file, place.start, place.size).unwrap();
            (place.start, found[0].clone())
        };
        let found: Vec<_> = table.partitions().iter().map(signature).collect();
        assert_eq!(found.iter().map(|(_, found)| found.kind.as_str()).collect::<Vec<_>>(), kinds);
        let (start, root) = found.last().unwrap();
        assert_eq!(written.uuids.root, root.uuid);
        assert!(stage.content(*start, image.len()) == image);
        assert_eq!(written.uuids.esp.is_some(), is_uefi);
    }
}

#[test]
fn process_f60_whatever_goes_wrong_nothing_stays_and_nothing_boots() {
    let stage = Stage::new();
    let error =
        QemuInitiator::default().log_in(&stage.unit("wrong-horse-battery"), &[disk(DISK, "ROOT")], &|| false);
    assert!(matches!(error, Err(IscsiError::Login { .. })), "{error:?}");
    // Another disk than those of the inventory: by its serial number, and by the size of the one that has it.
    for disks in [vec![disk(DISK, "OTHER")], vec![disk(DISK, "OTHER"), disk(DISK + 512, "ROOT")], vec![]] {
        let other = QemuInitiator::default().log_in(&stage.unit(SECRET), &disks, &|| false);
        assert!(matches!(other, Err(IscsiError::Disk(farrier_disk::Error::Remote { .. }))), "{other:?}");
    }
    assert!(stage.content(0, DISK as usize).iter().all(|byte| *byte == 0xff), "nothing was written");
    whole_disk(&stage.folder.path().join("raw"));
    let wrong = ImageInfo { os_hash_value: Some("0".repeat(64)), ..stage.info("raw", Some("raw")) };
    let session = stage.log_in();
    let job = Job::new(&wrong, None, false, TableKind::Mbr).unwrap();
    assert!(stage.write(&*session, &job).is_err());
    session.log_out().unwrap();
    assert!(stage.content(0, MIB as usize).iter().all(|byte| *byte == 0), "no table");
    // A session that is dropped ends, and another one is had at once.
    drop(stage.log_in());
    let session = stage.log_in();
    assert_eq!(session.disk().size(), DISK);
    session.log_out().unwrap();
}

/// A whole image is written over a line that is cut in the middle.
fn write_over(cut: Cut) {
    const MIDDLE: u64 = 12 * MIB;
    let stage = Stage::new();
    let raw = stage.folder.path().join("raw");
    whole_disk(&raw);
    let line = CutLine::new(stage.target.port(), MIDDLE, cut).unwrap();
    let session = log_in(&unit(line.port(), SECRET));
    let job = Job::new(&stage.info("raw", Some("raw")), None, false, TableKind::Mbr).unwrap();
    stage.write(&*session, &job).unwrap();
    session.log_out().unwrap();
    let image = fs::read(&raw).unwrap();
    assert!(stage.content(0, image.len()) == image, "{cut:?}");
    assert!(line.sent() > 2 * MIDDLE, "{cut:?}: it was cut at the end");
}

#[test]
fn process_a_connection_that_ends_in_the_middle_of_a_write_costs_nothing_but_time() {
    write_over(Cut::End);
}

#[test]
fn process_a_network_that_is_away_for_half_a_minute_costs_nothing_but_time() {
    write_over(Cut::Silence(Duration::from_secs(30)));
}

/// The conductor is this program once more.
#[test]
fn process_f60_a_conductor_that_is_killed_in_the_middle_leaves_no_session() {
    const PORT: &str = "FARRIER_TEST_PORTAL_PORT";
    const LIMIT: Duration = Duration::from_secs(60);
    if let Ok(port) = env::var(PORT) {
        let session = log_in(&unit(port.parse().unwrap(), SECRET));
        loop {
            session.disk().write_all_at(&[0; MIB as usize], 0).unwrap();
        }
    }
    let stage = Stage::new();
    let name = "process_f60_a_conductor_that_is_killed_in_the_middle_leaves_no_session";
    let mut conductor = Command::new(env::current_exe().unwrap());
    conductor.args(["--exact", name]).env(PORT, stage.target.port().to_string());
    let mut conductor = conductor.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        let end = Instant::now() + LIMIT;
        while !is_so() {
            assert!(Instant::now() < end, "waited for {what}");
            thread::sleep(Duration::from_millis(20));
        }
    };
    until("the first write", &|| stage.content(0, 1) == [0]);
    conductor.kill().unwrap();
    conductor.wait().unwrap();
    until("the end of the session", &|| stage.target.connections().unwrap() == 0);
    let session = stage.log_in();
    session.disk().write_all_at(&[7; 512], 0).unwrap();
    session.log_out().unwrap();
    assert_eq!(stage.content(0, 512), [7; 512]);
}
