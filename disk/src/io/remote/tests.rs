use super::*;
use crate::io::MemoryDisk;
use crate::io::nbd::server::{FLAGS, Server, Wrong};
use crate::partition_image;
use crate::wipe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SIZE: u64 = 64 << 20;

fn expected(sizes: &[(u64, u32)]) -> Expected {
    let patience = Duration::from_secs(20);
    Expected { name: "iqn.2008-10.org.openstack:node".to_owned(), sizes: sizes.to_vec(), patience }
}

fn open(server: &Server) -> Result<RemoteDisk, Error> {
    let size = (server.disk.size(), server.disk.sector_size());
    RemoteDisk::open(&expected(&[size]), || server.connect())
}

#[test]
fn a_disk_that_the_inventory_does_not_have_is_not_written_to() {
    let disk = Arc::new(MemoryDisk::ones(SIZE, 512));
    let server = Server::of(&disk);
    for (sizes, flags, is_it) in [
        (vec![(SIZE, 512)], FLAGS, true),
        (vec![(1 << 30, 512), (SIZE, 4096), (SIZE, 512)], FLAGS, true),
        (vec![(1 << 30, 512), (SIZE, 4096)], FLAGS, false),
        (vec![(SIZE - 512, 512), (SIZE + 512, 512)], FLAGS, false),
        (vec![], FLAGS, false),
        (vec![(SIZE, 512)], FLAGS | 1 << 1, false),
        (vec![(SIZE, 512)], 1, false),
        (vec![(SIZE, 512)], 0, false),
    ] {
        let server = Server { flags, ..server.clone() };
        let opened = RemoteDisk::open(&expected(&sizes), || server.connect());
        assert_eq!(opened.is_ok(), is_it, "{sizes:?} {flags:#x}");
        if let Err(error) = opened {
            assert!(matches!(error, Error::Remote { .. }), "{error}");
            assert!(error.to_string().contains("nothing was written"), "{error}");
        }
    }
    assert_eq!(disk.requests(), 0);
    let large = Server::of(&Arc::new(MemoryDisk::ones(SIZE, 4096)));
    assert!(
        RemoteDisk::open(&expected(&[(SIZE, 512)]), || large.connect()).is_err(),
        "its sectors are larger"
    );
}

/// A file, a device and a socket of the machine itself: the only thing that can be opened is a server that agrees.
#[test]
fn no_path_of_this_machine_becomes_a_disk() {
    for path in ["/dev/null", "/dev/zero", "/etc/hostname", "/proc/self/mem"] {
        let opened = RemoteDisk::open(&expected(&[(SIZE, 512)]), || UnixStream::connect(path));
        assert!(matches!(opened, Err(Error::Device { .. })), "{path}");
    }
    let disk = open(&Server::of(&Arc::new(MemoryDisk::ones(SIZE, 512)))).unwrap();
    assert!(!disk.path().is_absolute() && !disk.path().exists(), "{}", disk.path().display());
}

#[test]
fn all_connections_are_used_where_they_are_one_disk() {
    for (flags, count) in [(FLAGS, CONNECTIONS), (FLAGS & !(1 << 8), 1)] {
        let (disk, connections) = (Arc::new(MemoryDisk::ones(SIZE, 512)), AtomicUsize::new(0));
        let server = Server { flags, ..Server::of(&disk) };
        let connect = || {
            connections.fetch_add(1, Ordering::Relaxed);
            server.connect()
        };
        let remote = RemoteDisk::open(&expected(&[(SIZE, 512)]), connect).unwrap();
        assert_eq!(connections.into_inner(), count);
        std::thread::scope(|scope| {
            for number in 0..8_u64 {
                let remote = &remote;
                scope.spawn(move || {
                    let mut data = AlignedBuffer::zeroed(1 << 20);
                    data.fill(number as u8);
                    for row in 0..4 {
                        remote.write_all_at(&data, (row * 8 + number) << 20).unwrap();
                    }
                });
            }
        });
        for place in 0..32_u64 {
            assert_eq!(disk.content(place << 20, 1), [(place % 8) as u8]);
        }
        remote.close().unwrap();
    }
}

#[test]
fn zeros_are_asked_for_or_sent() {
    for flags in [FLAGS, FLAGS & !(1 << 6)] {
        let disk = Arc::new(MemoryDisk::ones(SIZE, 512));
        let remote = open(&Server { flags, ..Server::of(&disk) }).unwrap();
        remote.zero_out(512, (3 << 20) + 512).unwrap();
        assert!(disk.content(512, (3 << 20) + 512).iter().all(|byte| *byte == 0));
        assert_eq!((disk.content(511, 1), disk.content((3 << 20) + 1024, 1)), (vec![0xff], vec![0xff]));
        assert_eq!(remote.zero_by_command(0, 512).unwrap(), flags == FLAGS);
    }
}

#[test]
fn nothing_behind_its_end_is_asked_for() {
    let disk = Arc::new(MemoryDisk::ones(SIZE, 512));
    let remote = open(&Server::of(&disk)).unwrap();
    let mut data = AlignedBuffer::zeroed(1024);
    for offset in [SIZE - 512, SIZE, u64::MAX - 511] {
        assert!(remote.write_all_at(&data, offset).is_err(), "{offset}");
        assert!(remote.read_exact_at(&mut data, offset).is_err(), "{offset}");
        assert!(remote.zero_out(offset, 1024).is_err(), "{offset}");
        assert!(remote.discard(offset, 1024).is_err(), "{offset}");
        assert!(remote.signatures(offset, 1024).is_err(), "{offset}");
    }
    assert_eq!(disk.requests(), 0);
}

/// What another connection has under way when one breaks is not asked for again: nobody knows what became of it.
#[test]
fn f60_a_session_that_broke_stays_so() {
    let disk = Arc::new(MemoryDisk::ones(SIZE, 512));
    let remote = open(&Server { wrong: Wrong::ReplyNumber, ..Server::of(&disk) }).unwrap();
    assert!(remote.flush().is_err());
    let before = disk.requests();
    let error = remote.zero_out(0, 512).unwrap_err().to_string();
    assert!(error.contains("broke earlier"), "{error}");
    assert_eq!(disk.requests(), before);
    assert!(remote.close().is_err());
}

#[test]
fn signatures_at_both_ends_are_found() {
    let disk = Arc::new(MemoryDisk::zeros(SIZE, 512));
    let remote = open(&Server::of(&disk)).unwrap();
    assert_eq!(remote.signatures(1 << 20, 32 << 20).unwrap(), []);
    let mut page = [0; 4096];
    page[4086..].copy_from_slice(b"SWAPSPACE2");
    (page[1024], page[1028]) = (1, 255);
    disk.put(1 << 20, &page);
    assert_eq!(remote.signatures(1 << 20, 32 << 20).unwrap()[0].kind, "swap");
    wipe::erase_metadata(&remote).unwrap();
    assert_eq!(remote.signatures(0, SIZE).unwrap(), []);
}

/// The same layout on a disk at hand and on one far away is the same, but for identities.
#[test]
fn everything_around_a_partition_image_is_made_on_a_disk_far_away() {
    use crate::layout::{Layout, Request};
    use crate::table::{Geometry, PartitionTable, TableKind};
    for (is_uefi, kind, sector_size) in
        [(true, TableKind::Gpt, 512), (false, TableKind::Mbr, 512), (true, TableKind::Gpt, 4096)]
    {
        let size = 512 << 20;
        let request = Request {
            is_uefi,
            is_power: false,
            table: kind,
            root_mib: 64,
            swap_mib: 8,
            ephemeral_mib: 32,
            ephemeral_format: Default::default(),
            esp_mib: 200,
            bios_boot_mib: 1,
            config_drive: None,
        };
        let near = MemoryDisk::ones(size, sector_size);
        let far = Arc::new(MemoryDisk::ones(size, sector_size));
        let remote = open(&Server::of(&far)).unwrap();
        let disks: [&dyn Sectors; 2] = [&near, &remote];
        let [near, far] = disks.map(|disk| {
            let layout = Layout::plan(&request, disk.path(), Geometry { size, sector_size }).unwrap();
            partition_image::prepare(disk, &layout, false).unwrap();
            let found = partition_image::finish(disk, &layout, false, None).unwrap();
            let kinds = |place: &crate::layout::Place| {
                let found = disk.signatures(place.start, place.size).unwrap();
                (place.start, place.size, found.first().map(|one| (one.kind.clone(), one.label.clone())))
            };
            let table = PartitionTable::read(disk).unwrap();
            (layout.places.iter().map(kinds).collect::<Vec<_>>(), table.name(), found.partitions.len())
        });
        assert_eq!(near, far);
    }
}
