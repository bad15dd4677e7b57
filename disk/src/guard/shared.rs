//! What other machines may be using, wherever it would be lost with a disk (D03): file systems that they share,
//! and what they have reserved.

use super::reservation;
use crate::device::{BlockDevice, stack};
use crate::error::Error;
use crate::list;
use crate::md::array;
use crate::probe::{Member, ReadableDisk};
use crate::table::Partition;

/// Refuses a device with which such a thing would be lost. This comes before anything on it is stopped.
///
/// # Errors
///
/// [`Error::Protected`], or [`Error::Device`] when it cannot be read.
pub(super) fn require_none(device: &BlockDevice) -> Result<(), Error> {
    refuse(device, find(device, &[])?)
}

/// How disks are attached that one machine alone reaches. Nobody else can be using what lies there.
const LOCAL: [&str; 4] = ["ata", "mmc", "sata", "usb"];
/// What reading sectors that are broken, or that nothing was written to, ends with.
const UNREAD: [i32; 4] = [libc::EIO, libc::ENODATA, libc::EILSEQ, libc::EREMOTEIO];

/// Lets a disk be erased on which such a thing could not be looked for because its own sectors cannot be read, where
/// this machine alone reaches it: its erasure may be what mends it. Elsewhere what cannot be read is not free.
///
/// # Errors
///
/// [`Error::Protected`] for a disk that other machines may reach; any other error as it is.
pub(super) fn allow_unread(device: &BlockDevice, error: Error) -> Result<(), Error> {
    let Error::Device { device: unread, source, .. } = &error else { return Err(error) };
    let is_unread = source.raw_os_error().is_some_and(|code| UNREAD.contains(&code));
    if !is_unread || unread.as_os_str() != device.disk.name.as_str() {
        return Err(error);
    }
    if device.disk.tran.as_deref().is_some_and(|transport| LOCAL.contains(&transport)) {
        tracing::warn!(
            disk = device.disk.name,
            "erasing the disk although its content could not be read: {error}"
        );
        return Ok(());
    }
    refuse(device, Some(format!("sectors that cannot be read ({source})")))
}

/// The error for a device with this content.
pub(super) fn refuse(device: &BlockDevice, content: Option<String>) -> Result<(), Error> {
    match content {
        Some(content) => Err(Error::Protected { device: device.disk.name.clone().into(), content }),
        None => Ok(()),
    }
}

/// What would be lost with a device, in words: a reservation, or a file system on it, in a running array that
/// lies on it, or in one that does not run and shows on another of its disks. What lies in the partitions `kept`
/// stays.
///
/// # Errors
///
/// [`Error::Device`] when the device or an array cannot be read.
pub(super) fn find(device: &BlockDevice, kept: &[Partition]) -> Result<Option<String>, Error> {
    if reservation::is_held(device)? {
        return Ok(Some("a reservation of another machine".to_owned()));
    }
    let mut disk = ReadableDisk::open(device)?;
    if let Some(name) = disk.shared_file_system(kept)? {
        return Ok(Some(name.to_owned()));
    }
    for array in arrays_on(device) {
        if let Some(name) = ReadableDisk::open(&array)?.shared_file_system(&[])? {
            return Ok(Some(format!("{name} in the array {}", array.disk.name)));
        }
    }
    let members = disk.members(kept)?;
    if members.is_empty() {
        return Ok(None);
    }
    let others = list::list(device.sysfs())?;
    Ok(others.iter().find_map(|other| in_array_with(other, &members)))
}

/// The arrays that lie on a device at any depth. One that was not started has no size and shows nothing.
fn arrays_on(device: &BlockDevice) -> impl Iterator<Item = BlockDevice> {
    let arrays = stack::above(device.directory()).into_iter().filter(|above| array::is_array(above));
    arrays.filter_map(|array| device.relative(&array)).filter(|array| array.disk.size > 0)
}

/// What an array of these members carries, when it begins on the disk `other`. Another disk that cannot be
/// read tells nothing.
fn in_array_with(other: &BlockDevice, members: &[Member]) -> Option<String> {
    let is_of_same = |found: &Member| members.iter().any(|member| member.array == found.array);
    let found = ReadableDisk::open(other).and_then(|mut disk| disk.members(&[])).ok()?;
    let name = found.into_iter().filter(is_of_same).find_map(|member| member.shared)?;
    Some(format!("{name} in an array with {}", other.disk.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::fake_machine::{FakeMachine, superblock};
    use crate::guard::{choose_root_disk, plan_erase, plan_raid};
    use farrier_protocol::lookup::Node;
    use std::fs;

    const GFS2: (u64, &[u8]) = (64 << 10, &[0x01, 0x16, 0x19, 0x70]);

    /// What would be lost with a device, without the folder of the files.
    fn found(machine: &FakeMachine, name: &str) -> Option<String> {
        find(&machine.device(name), &[]).unwrap().map(|content| machine.shortened(&content))
    }

    #[test]
    fn d03_d20_a_running_array_of_anybody_protects_its_disks_before_it_is_stopped() {
        let machine = FakeMachine::new();
        for disk in ["vda", "vdb", "vdc"] {
            machine.add(disk, &[], &[]);
        }
        let array = [("md/level", "raid0")];
        machine.add("md0", &array, &[]);
        machine.add("md1", &array, &[GFS2]);
        for (lower, upper) in [("vda", "md0"), ("vdb", "md0"), ("md0", "md1")] {
            machine.stack(lower, upper);
        }
        for (device, expected) in [
            ("vda", Some("GFS2 in the array md1")),
            ("vdb", Some("GFS2 in the array md1")),
            ("vdc", None),
            ("md0", Some("GFS2 in the array md1")),
            ("md1", Some("GFS2")),
        ] {
            assert_eq!(found(&machine, device).as_deref(), expected, "{device}");
        }

        let (node, vda) = (Node::default(), [machine.device("vda")]);
        let hints = serde_json::json!({"root_device": {"name": vda[0].disk.name}});
        let hinted = Node { properties: serde_json::from_value(hints).unwrap(), ..Node::default() };
        for refused in [
            plan_erase(&node, &vda).unwrap().targets[0].open(true),
            choose_root_disk(&hinted, &vda).unwrap().open(),
            plan_raid(&node, &[machine.device("md1")]).unwrap().arrays[0].open(true),
        ] {
            let error = refused.unwrap_err();
            assert!(matches!(error, Error::Protected { .. }), "{error}");
        }
    }

    #[test]
    fn d03_d20_an_array_that_does_not_run_protects_all_its_disks() {
        let machine = FakeMachine::new();
        let (data, other) = (superblock(7, ""), superblock(8, ""));
        let mark = ((1 << 20) + GFS2.0, GFS2.1);
        machine.add("vda", &[], &[(4096, &data), mark]);
        machine.add("vdb", &[], &[(4096, &data)]);
        machine.add("vdc", &[], &[(4096, &other)]);
        machine.add("vdd", &[], &[]);
        for (device, expected) in
            [("vda", Some("GFS2")), ("vdb", Some("GFS2 in an array with vda")), ("vdc", None), ("vdd", None)]
        {
            assert_eq!(found(&machine, device).as_deref(), expected, "{device}");
        }
        // A disk that cannot be read keeps no other one.
        machine.lose("vda");
        assert_eq!(found(&machine, "vdb"), None);
    }

    #[test]
    fn d03_an_array_that_was_not_started_shows_nothing() {
        let machine = FakeMachine::new();
        machine.add("vda", &[], &[]);
        machine.add("md0", &[("md/array_state", "inactive"), ("md/level", "raid1")], &[]);
        fs::write(machine.device("md0").directory().join("size"), "0").unwrap();
        machine.stack("vda", "md0");
        assert_eq!(found(&machine, "vda"), None);
    }
    #[test]
    fn g07_what_cannot_be_read_is_free_where_no_other_machine_reaches_it() {
        let machine = FakeMachine::new();
        machine.add("vda", &[], &[]);
        for (code, transport, is_own, expected) in [
            (libc::EIO, Some("sata"), true, None),
            (libc::ENODATA, Some("usb"), true, None),
            (libc::EILSEQ, Some("mmc"), true, None),
            (libc::EREMOTEIO, Some("ata"), true, None),
            (libc::EIO, Some("sas"), true, Some("wipe_special_filesystems")),
            (libc::EIO, Some("fc"), true, Some("sectors that cannot be read")),
            (libc::EIO, Some("nvme"), true, Some("wipe_special_filesystems")),
            (libc::EIO, None, true, Some("wipe_special_filesystems")),
            // Not the disk's sectors, or not the disk's.
            (libc::ENOENT, Some("sata"), true, Some("No such file")),
            (libc::EIO, Some("sata"), false, Some("/dev/md7")),
        ] {
            let mut device = machine.device("vda");
            device.disk.tran = transport.map(str::to_owned);
            let error = Error::Device {
                device: if is_own { device.disk.name.clone().into() } else { "/dev/md7".into() },
                action: "looking for shared file systems".to_owned(),
                source: std::io::Error::from_raw_os_error(code),
            };
            let outcome = allow_unread(&device, error).map_err(|error| error.to_string());
            match expected {
                None => outcome.unwrap(),
                Some(text) => assert!(outcome.unwrap_err().contains(text), "{code} {transport:?}"),
            }
        }
        let protected = Error::Protected { device: "/dev/vda".into(), content: "GFS2".to_owned() };
        assert!(allow_unread(&machine.device("vda"), protected).is_err());
    }
}
