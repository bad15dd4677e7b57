//! Boot loaders that a deployed system has to be given: a small system whose programs write down what they see.

#![allow(clippy::unwrap_used)]

#[path = "../../disk/tests/support/root_disk.rs"]
mod root_disk;

use farrier_boot::Error;
use farrier_boot::bootloader::{Installed, Request, install};
use farrier_boot::firmware::Firmware;
use farrier_boot::machine::Machine;
use farrier_linux::efivars::EfiVariables;
use farrier_linux::loop_device::LoopDevice;
use farrier_linux::mount::ReadOnlyMount;
use root_disk::root_disk;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const ROOT_UUID: &str = "6b2f1f6e-54a1-4c0e-9b32-0e5bd5e4a001";
/// Where the partitions begin, in sectors, and their lengths.
const ESP: (u32, u32) = (2048, 16384);
const ROOT: (u32, u32) = (18432, 32768);

/// What each program of the small system writes down.
const PROGRAM: &str = "#!/bin/busybox sh\n\
    busybox=/bin/busybox\n\
    { echo \"run ${0##*/} $*\"; $busybox env | $busybox sort; echo devices $($busybox ls /dev)\n\
    echo links $($busybox ls /dev/disk/by-uuid); test -r /proc/mounts && test -d /sys/block && echo kernel\n\
    test -x /etc/grub.d/30_os-prober && echo prober; } >> /log; true\n";

/// A small system in an image, and the disk it is deployed to.
struct System {
    folder: TempDir,
    device: LoopDevice,
}

/// Writes the files of a system: path, content, and whether it is a program.
fn write(folder: &Path, files: &[(&str, &str, bool)]) {
    for (path, content, is_program) in files {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, content).unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(if *is_program { 0o755 } else { 0o644 }))
            .unwrap();
    }
}

fn run(program: &str, arguments: &[&str], image: &Path, last: &str) {
    let mut command = Command::new(program);
    assert!(command.args(arguments).arg(image).arg(last).output().unwrap().status.success(), "{program}");
}

/// Not every kernel reads partition tables; one that did has the partition already.
fn add_partition(disk: &Path, number: u32, start: u32, length: u32) {
    let mut command = Command::new("addpart");
    command.arg(disk).args([number, start, length].map(|number| number.to_string())).output().unwrap();
    assert!(Path::new(&format!("{}p{number}", disk.display())).exists());
}

impl System {
    fn new(files: &[(&str, &str, bool)]) -> Self {
        let folder = TempDir::new().unwrap();
        let (tree, image) = (folder.path().join("tree"), folder.path().join("image"));
        write(&tree, files);
        fs::create_dir_all(tree.join("bin")).unwrap();
        fs::copy("/usr/bin/busybox", tree.join("bin/busybox")).unwrap();
        File::create(&image).unwrap().set_len(32 * MIB).unwrap();
        let mut file = File::options().read(true).write(true).open(&image).unwrap();
        let mut table = mbrman::MBR::new_from(&mut file, 512, [1, 2, 3, 4]).unwrap();
        for (number, sys, (starting_lba, sectors)) in [(1, 0xef, ESP), (2, 0x83, ROOT)] {
            let empty = mbrman::MBRPartitionEntry::empty();
            table[number] = mbrman::MBRPartitionEntry { sys, starting_lba, sectors, ..empty };
        }
        table.write_into(&mut file).unwrap();
        let offset = format!("offset={}", u64::from(ROOT.0) * 512);
        let options =
            ["-q", "-t", "ext4", "-F", "-U", ROOT_UUID, "-E", &offset, "-d", tree.to_str().unwrap()];
        run("mke2fs", &options, &image, "16M");
        run("mkfs.vfat", &["--offset", &ESP.0.to_string()], &image, "8192");
        let device = LoopDevice::attach(&image, 512).unwrap();
        for (number, (start, length)) in [(1, ESP), (2, ROOT)] {
            add_partition(device.path(), number, start, length);
        }
        Self { folder, device }
    }

    fn install(&self, may_run_programs: bool, variables: Option<&Path>) -> Result<Installed, Error> {
        let firmware = variables.map(|variables| firmware(Some(variables)));
        self.install_as(Some(ROOT_UUID), may_run_programs, firmware.as_ref())
    }

    fn install_as(
        &self,
        root_uuid: Option<&str>,
        may_run_programs: bool,
        firmware: Option<&Firmware>,
    ) -> Result<Installed, Error> {
        let request = Request { root_uuid, prep_uuid: None, may_run_programs };
        install(&root_disk(self.device.kernel_name()).unwrap(), &request, firmware)
    }

    /// Reads a file of the deployed system.
    fn read(&self, path: &str) -> Option<String> {
        let device = PathBuf::from(format!("{}p2", self.device.path().display()));
        let mounted = ReadOnlyMount::new(&device, "ext4", &self.folder.path().join("mounted")).unwrap();
        fs::read_to_string(mounted.path().join(path)).ok()
    }

    fn assert_nothing_is_mounted(&self) {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(self.device.kernel_name()), "{mounts}");
    }
}

fn firmware(variables: Option<&Path>) -> Firmware {
    Firmware { machine: Machine::of("x86_64", None).unwrap(), variables: variables.map(EfiVariables::at) }
}

fn grub(install: &str) -> Vec<(&'static str, String, bool)> {
    let mkconfig = format!("{PROGRAM}echo configuration > \"$2\"\n");
    vec![
        ("usr/sbin/grub-mkconfig", mkconfig, true),
        ("usr/sbin/grub-install", format!("{PROGRAM}{install}\n"), true),
        ("etc/grub.d/30_os-prober", PROGRAM.to_owned(), true),
        ("etc/fstab", "/dev/sda2 / ext4\n".to_owned(), false),
    ]
}

fn system(install: &str) -> System {
    let files = grub(install);
    let files: Vec<_> = files.iter().map(|(path, content, mode)| (*path, content.as_str(), *mode)).collect();
    System::new(&files)
}

#[test]
fn loop_s10_no_program_of_the_image_runs_unless_it_is_enabled() {
    let system = system("");
    let error = system.install(false, None).unwrap_err();
    assert_eq!(error.kind().name(), "InvalidImage");
    assert!(error.to_string().contains("enable_bios_bootloader_install"), "{error}");
    assert_eq!(system.read("log"), None);
    let variables = TempDir::new().unwrap();
    let error = system.install(false, Some(variables.path())).unwrap_err();
    assert_eq!(error.kind().name(), "InvalidImage");
    assert_eq!(system.read("log"), None);
}

#[test]
fn loop_s10_an_efi_system_partition_that_firmware_cannot_read_is_never_mounted() {
    let system = System::new(&[("boot/efi/EFI/debian/shimx64.efi", "loader", false)]);
    let (image, offset) = (system.folder.path().join("image"), format!("offset={}", u64::from(ESP.0) * 512));
    run("mke2fs", &["-q", "-t", "ext4", "-F", "-E", &offset], &image, "8M");
    let variables = TempDir::new().unwrap();
    let error = system.install(false, Some(variables.path())).unwrap_err();
    assert!(error.to_string().contains("the EFI system partition 1 cannot be read"), "{error}");
    let mounted = |device: u8| {
        let device = PathBuf::from(format!("{}p{device}", system.device.path().display()));
        ReadOnlyMount::new(&device, "ext4", &system.folder.path().join("mounted")).unwrap()
    };
    assert!(!mounted(1).path().join("EFI").exists());
    assert!(!mounted(2).path().join("etc").exists());
}

#[test]
fn loop_f22_programs_find_what_they_need_no_other_disk_and_no_prober() {
    let system = system("");
    let disk = system.device.path().to_owned();
    assert_eq!(system.install(true, None).unwrap(), Installed::Grub(vec![disk.clone()]));
    system.assert_nothing_is_mounted();
    let (log, name) = (system.read("log").unwrap(), system.device.kernel_name());
    let runs: Vec<_> = log.lines().filter(|line| line.starts_with("run ")).collect();
    let expected = [
        "run grub-mkconfig -o /boot/grub/grub.cfg".to_owned(),
        format!("run grub-install {}", disk.display()),
    ];
    assert_eq!(runs, expected, "boot code comes last");
    assert_eq!(system.read("boot/grub/grub.cfg").as_deref(), Some("configuration\n"));
    for part in ["GRUB_DISABLE_OS_PROBER=true", "GRUB_SAVEDEFAULT=true", "LC_ALL=C", "kernel", ROOT_UUID] {
        assert_eq!(log.matches(part).count(), 2, "{part} in {log}");
    }
    let devices = format!(
        "devices disk fd full {name} {name}p1 {name}p2 null random stderr stdin stdout tty urandom zero"
    );
    assert_eq!(log.lines().find(|line| line.starts_with("devices")), Some(devices.as_str()));
    assert!(!log.contains("prober") && !log.contains("CARGO"), "{log}");
}

#[test]
fn loop_f14_a_program_that_fails_is_told_with_its_last_words_and_leaves_no_mount() {
    let system = system("echo 'no room for the core'; exit 3");
    let error = system.install(true, None).unwrap_err().to_string();
    assert!(error.contains("grub-install") && error.contains("no room for the core"), "{error}");
    assert!(error.contains("ipa-ignore-bootloader-failure"), "{error}");
    system.assert_nothing_is_mounted();
    assert_eq!(system.read("boot/grub/grub.cfg").as_deref(), Some("configuration\n"));
}

#[test]
fn loop_an_image_that_boots_by_bios_already_is_left_alone() {
    let system = system("");
    let file = File::options().write(true).open(system.folder.path().join("image")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0xeb, 0x63, 0x90], 0).unwrap();
    assert_eq!(system.install(true, None).unwrap(), Installed::Present);
    let variables = TempDir::new().unwrap();
    let error = system.install(false, Some(variables.path())).unwrap_err().to_string();
    assert!(error.contains("boots by BIOS only, and the machine runs in UEFI mode"), "{error}");
    assert_eq!(system.read("log"), None);
}

#[test]
fn loop_a09_a_whole_disk_image_without_a_loader_for_this_firmware_is_no_success() {
    let system = system("");
    for variables in [None, Some(TempDir::new().unwrap())] {
        let firmware = firmware(variables.as_ref().map(TempDir::path));
        let error = system.install_as(None, true, Some(&firmware)).unwrap_err();
        assert_eq!(error.kind().name(), "InvalidImage");
        let expected = "no boot loader for UEFI (x64): use an image whose EFI system partition has one";
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(system.install_as(None, false, None).unwrap(), Installed::Present);
}
