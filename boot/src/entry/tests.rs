use super::store::{GLOBAL, entry_name, entry_number, order_name};
use super::*;
use farrier_disk::table::PartitionKind;
use farrier_linux::efivars::{PERSISTENT, Variable};

fn option(label: &str) -> Vec<u8> {
    let kind = PartitionKind::Mbr { type_id: 0xef, disk_identifier: 1 };
    let esp = Partition { number: 1, start: 1 << 20, size: 1 << 20, kind };
    let path = r"\EFI\BOOT\BOOTX64.EFI".to_owned();
    let loader = Loader { path, label: label.to_owned(), options: String::new() };
    LoadOption::new(label, &loader, &esp, 512).to_bytes()
}

fn machine(entries: &[(u16, &[u8])], order: &[u8]) -> (tempfile::TempDir, EfiVariables) {
    let directory = tempfile::tempdir().unwrap();
    let variables = EfiVariables::at(directory.path());
    for (number, data) in entries {
        let variable = Variable { attributes: PERSISTENT, data: data.to_vec() };
        variables.write(&entry_name(*number), &variable).unwrap();
    }
    let variable = Variable { attributes: PERSISTENT, data: order.to_vec() };
    variables.write(&order_name(), &variable).unwrap();
    variables.write(&format!("BootCurrent-{GLOBAL}"), &variable).unwrap();
    (directory, variables)
}

#[test]
fn f13_f24_a_label_is_replaced_and_comes_first() {
    let shell = option("shell");
    let old = option("debian");
    let junk = [0xff; 3];
    let (_directory, variables) =
        machine(&[(0, &shell), (1, &old), (2, &junk), (5, &old)], &[1, 0, 0, 0, 5, 0, 2, 0, 9]);
    let mut store = BootStore::read(&variables).unwrap();
    assert!(store.delete_labelled(&["debian".to_owned()]).is_empty());
    assert_eq!(store.order().unwrap(), [0, 2]);
    let number = store.create(option("debian")).unwrap();
    assert_eq!(number, 1);
    store.put_first(&[number]).unwrap();
    assert_eq!(store.order().unwrap(), [1, 0, 2]);

    let again = BootStore::read(&variables).unwrap();
    assert_eq!(again.entries().iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(variables.read(&entry_name(1)).unwrap().unwrap().data, option("debian"));
}

#[test]
fn x27_f12_an_empty_or_unreadable_variable_stops_no_entry() {
    let (directory, variables) = machine(&[(1, &option("debian"))], &[1, 0]);
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path(&entry_name(0)), []).unwrap();
    std::fs::write(path(&entry_name(2)), [7]).unwrap();
    std::fs::create_dir(path(&entry_name(3))).unwrap();
    std::fs::write(path(&order_name()), []).unwrap();
    let mut store = BootStore::read(&variables).unwrap();
    assert!(store.delete_labelled(&["debian".to_owned()]).is_empty());
    assert_eq!(store.create(option("debian")).unwrap(), 1);
    store.put_first(&[1]).unwrap();
    assert_eq!(store.order().unwrap(), [1]);
    assert_eq!(store.create(option("other")).unwrap(), 4, "numbers of what cannot be read are taken");
    assert!(path(&entry_name(0)).exists() && path(&entry_name(2)).exists(), "they are somebody else's");
    clean::remove(&clean::Patterns::parse(["."]).unwrap(), &variables).unwrap();
}

#[test]
fn the_first_entry_of_an_empty_store() {
    let (_directory, variables) = machine(&[], &[]);
    let mut store = BootStore::read(&variables).unwrap();
    assert!(store.delete_labelled(&["debian".to_owned()]).is_empty());
    assert_eq!(store.create(option("debian")).unwrap(), 0);
    store.put_first(&[0]).unwrap();
    assert_eq!(store.order().unwrap(), [0]);
}

#[test]
fn only_boot_entries_are_entries() {
    for (name, expected) in [
        ("Boot0001-8be4df61-93ca-11d2-aa0d-00e098032b8c", Some(1)),
        ("BootABCD-8be4df61-93ca-11d2-aa0d-00e098032b8c", Some(0xabcd)),
        ("BootOrder-8be4df61-93ca-11d2-aa0d-00e098032b8c", None),
        ("BootCurrent-8be4df61-93ca-11d2-aa0d-00e098032b8c", None),
        ("Boot+001-8be4df61-93ca-11d2-aa0d-00e098032b8c", None),
        ("Boot0001-00000000-0000-0000-0000-000000000000", None),
        ("Boot", None),
    ] {
        assert_eq!(entry_number(name), expected, "{name}");
    }
}

#[test]
fn an_unwritable_store_names_the_variable() {
    let (directory, variables) = machine(&[], &[]);
    let mut store = BootStore::read(&variables).unwrap();
    std::fs::create_dir(directory.path().join(entry_name(0))).unwrap();
    let error = Error::from(store.create(option("debian")).unwrap_err());
    assert_eq!(error.kind().name(), "DeploymentError");
    assert!(error.to_string().contains("Boot0000-8be4df61"), "{error}");
}

/// An entry that leads over the network.
fn network_option() -> Vec<u8> {
    let mut bytes = 1_u32.to_le_bytes().to_vec();
    bytes.extend([6, 0]);
    bytes.extend("pxe grub.efi\0".encode_utf16().flat_map(u16::to_le_bytes));
    bytes.extend([3, 11, 6, 0, 0x52, 0x54]);
    bytes
}

#[test]
fn entries_of_earlier_systems_are_removed_and_the_firmwares_own_stay() {
    let (disk, network) = (option("debian"), network_option());
    for (patterns, expected, order) in [
        (clean::DEFAULT_PATTERNS, vec![1, 4], vec![2, 3]),
        (&[r"bootx64\.efi"], vec![1, 4], vec![2, 3]),
        (&["mac", "grub"], vec![], vec![1, 2, 3, 4]),
        (&[], vec![], vec![1, 2, 3, 4]),
    ] {
        let entries: &[(u16, &[u8])] = &[(1, &disk), (2, &network), (3, &[0xff; 3]), (4, &disk)];
        let (_directory, variables) = machine(entries, &[1, 0, 2, 0, 3, 0, 4, 0]);
        let patterns = clean::Patterns::parse(patterns.iter().copied()).unwrap();
        let removed = clean::remove(&patterns, &variables).unwrap();
        assert_eq!(removed.iter().map(|entry| entry.number).collect::<Vec<_>>(), expected);
        for entry in removed {
            assert_eq!(entry.label, "debian");
            assert!(entry.path.ends_with(r"/File(\EFI\BOOT\BOOTX64.EFI)"), "{}", entry.path);
        }
        assert_eq!(BootStore::read(&variables).unwrap().order().unwrap(), order);
    }
}

#[test]
fn a_pattern_that_cannot_be_read_is_named() {
    let error = clean::Patterns::parse(["^HD", "("]).unwrap_err();
    assert_eq!(error.kind().name(), "InvalidCommandParamsError");
    assert!(error.to_string().starts_with("match_patterns: \"(\" is not"), "{error}");
}

fn place() -> Place {
    let kind = PartitionKind::Mbr { type_id: 0xef, disk_identifier: 1 };
    let partition = Partition { number: 1, start: 1 << 20, size: 1 << 20, kind };
    Place { partition, sector_size: 512, suffix: String::new() }
}

fn loader(path: &str, label: &str) -> Loader {
    Loader { path: path.to_owned(), label: label.to_owned(), options: String::new() }
}

#[test]
fn a08_loaders_of_one_label_each_keep_their_entry() {
    let (_directory, variables) = machine(&[(0, &option("l"))], &[0, 0]);
    let loaders = [loader(r"\a.efi", "l"), loader(r"\b.efi", "l")];
    for _ in 0..2 {
        let entries = enter(&loaders, &[place()], &variables).unwrap();
        let seen: Vec<_> = entries.iter().map(|entry| (entry.number, entry.loader.as_str())).collect();
        assert_eq!(seen, [(0, r"\a.efi"), (1, r"\b.efi")]);
        assert_eq!(BootStore::read(&variables).unwrap().order().unwrap(), [0, 1]);
    }
}

#[test]
fn a09_without_variables_the_removable_path_decides() {
    let without = Firmware { machine: crate::machine::Machine::of("x86_64", None).unwrap(), variables: None };
    let disk = Path::new("/dev/sda");
    let found = |loaders: &[Loader], removable: Option<&str>| Loaders {
        loaders: loaders.to_vec(),
        removable: removable.map(str::to_owned),
    };
    let (removable, shim) = (r"\EFI\BOOT\BOOTX64.EFI", loader(r"\EFI\debian\shimx64.efi", "debian"));
    let started_by =
        start_by(disk, found(std::slice::from_ref(&shim), Some(removable)), &[place()], &without).unwrap();
    assert_eq!(started_by, Some(StartedBy::RemovablePath(removable.to_owned())));
    let error = start_by(disk, found(&[shim], None), &[place()], &without).unwrap_err();
    assert_eq!(error.kind().name(), "InvalidImage");
    let expected =
        "/dev/sda: this kernel shows no UEFI variables, and the image has no loader at EFI/BOOT/BOOTX64.EFI";
    assert!(error.to_string().starts_with(expected), "{error}");
    assert_eq!(start_by(disk, found(&[], None), &[place()], &without).unwrap(), None);
}
