use std::io::Read;

use super::*;
use crate::cpio::tests::unpack;
use crate::executable::tests::synthetic_executable;
use crate::kernel_image::tests::synthetic_kernel;
use crate::manifest::PackedFile;
use crate::module_tree::tests::write_tree;
use crate::package::tests::write_database;
use crate::uki::tests::synthetic_stub;

/// The helper programs' packages on that machine, with their versions and files.
const PROGRAMS: &[(&str, &str, &str)] = &[
    ("busybox-static", "1:1.35.0-4", "bin/busybox"),
    ("dropbear-bin", "2022.83-1", "usr/sbin/dropbear"),
    ("mdadm", "4.2-5", "sbin/mdadm"),
    ("e2fsprogs", "1.47.0-2", "sbin/mke2fs"),
];

/// A machine to build on: a kernel with the required modules, a static agent, busybox and boot loaders.
fn inputs(root: &Path) -> Inputs {
    let modules = root.join("lib/modules/6.1.0-test");
    let required: Vec<_> = CLASSES.iter().flat_map(|class| class.required).collect();
    for name in required {
        write_tree(&modules, &[(&format!("kernel/{name}.ko.zst"), &["depends=", "alias=pci:*"])]);
    }
    write_tree(&modules, &[("kernel/extra/special.ko", &["depends="])]);
    let (executable, stub) = (synthetic_executable(1), synthetic_stub());
    for (path, content) in [
        ("bin/busybox", &executable),
        ("usr/sbin/dropbear", &executable),
        ("sbin/mdadm", &executable),
        ("sbin/mke2fs", &executable),
        ("agent", &executable),
        ("vmlinuz", &synthetic_kernel("x86_64")),
        ("usr/lib/ISOLINUX/isolinux.bin", &vec![1; 3000]),
        ("usr/lib/ISOLINUX/isohdpfx.bin", &vec![2; 432]),
        ("usr/lib/syslinux/modules/bios/ldlinux.c32", &vec![3; 100]),
        ("usr/lib/shim/shimx64.efi.signed", &vec![4; 5000]),
        ("usr/lib/grub/x86_64-efi-signed/gcdx64.efi.signed", &vec![5; 5000]),
        ("usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed", &vec![6; 5000]),
        ("usr/lib/systemd/boot/efi/linuxx64.efi.stub", &stub),
    ] {
        write_file(&root.join(path), content).unwrap();
    }
    write_database(root, PROGRAMS);
    Inputs {
        kernel: root.join("vmlinuz"),
        modules,
        extra_modules: vec!["special".into()],
        firmware: FirmwareInputs::default(),
        agent: root.join("agent"),
        programs_root: root.to_owned(),
        cache: None,
        additions: Additions::default(),
        media: MediaInputs {
            formats: vec![Format::Iso, Format::Uki, Format::Netboot, Format::Ironic],
            boot_loaders: root.to_owned(),
            parameters: "ipa-debug=1".parse().unwrap(),
            signing: None,
        },
    }
}

fn quietly(inputs: &Inputs, output: &Path) -> Result<(Manifest, PathBuf), BuildError> {
    build(inputs, Some(output), &|_| {})
}

fn ramdisk(file: &Path) -> Vec<crate::cpio::tests::Unpacked> {
    let mut archive = Vec::new();
    flate2::read::GzDecoder::new(&*fs::read(file).unwrap()).read_to_end(&mut archive).unwrap();
    unpack(&archive)
}

#[test]
fn two_builds_are_equal_in_every_file() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let output = first.path().join("dist");
    let (manifest, folder) = quietly(&inputs(first.path()), &output).unwrap();
    let (again, other) = quietly(&inputs(second.path()), &second.path().join("dist")).unwrap();
    assert_eq!(manifest, again);
    assert_eq!((&folder, &*manifest.architecture), (&output, "x86_64"));
    for name in manifest.files.keys().map(String::as_str).chain(["manifest.json"]) {
        let (one, two) = (fs::read(output.join(name)).unwrap(), fs::read(other.join(name)).unwrap());
        assert!(one == two, "{name} differs");
    }
    let expected = [
        "farrier-agent",
        "farrier.efi",
        "farrier.iso",
        "initramfs.img",
        "ironic-python-agent.initramfs",
        "ironic-python-agent.kernel",
        "netboot/boot.ipxe",
        "netboot/bootx64.efi",
        "netboot/grub/grub.cfg",
        "netboot/grubx64.efi",
        "netboot/initramfs.img",
        "netboot/vmlinuz",
        "vmlinuz",
    ];
    assert_eq!(manifest.files.keys().collect::<Vec<_>>(), expected);
    assert_eq!(manifest.boot_loaders.len(), 7);
}

#[test]
fn the_ramdisk_holds_what_a_node_boots() {
    let folder = tempfile::tempdir().unwrap();
    let (manifest, output) = quietly(&inputs(folder.path()), &folder.path().join("dist")).unwrap();
    let image = fs::read(output.join("initramfs.img")).unwrap();
    assert_eq!(manifest.files["initramfs.img"], FileRecord::of(&image));
    let entries = ramdisk(&output.join("initramfs.img"));
    let entry = |path: &str| entries.iter().find(|entry| entry.path == path).expect(path);
    assert_eq!(entry("init").data, fs::read(folder.path().join("agent")).unwrap());
    assert_eq!(entry("usr/bin/farrier-agent").data, b"../../init");
    let position = |path: &str| entries.iter().position(|entry| entry.path.starts_with(path)).unwrap();
    assert!(position("init") < position("lib/modules"), "what memory cuts off must not be the agent");
    assert_eq!(entry("dev/console").device, (5, 1));
    for program in farrier_linux::process::PROGRAMS {
        let path = program.path.trim_start_matches('/');
        let packed = entries.iter().find(|entry| entry.path == path);
        assert_eq!(packed.map(|entry| entry.mode), (!program.is_optional).then_some(0o100_755), "{path}");
    }
    assert_eq!(entry("etc/modules-load.d/farrier.conf").data, b"af_packet\nefivarfs\n");
    assert_eq!(entry("etc/farrier/kernel-parameters").data, b"ipa-debug=1\n");
    let module = &entry("lib/modules/6.1.0-test/kernel/nvme.ko.zst").data;
    assert!(zstd::decode_all(&**module).unwrap().starts_with(b"\x7fELF"));
    entry("lib/modules/6.1.0-test/kernel/extra/special.ko.zst");
    let aliases = String::from_utf8_lossy(&entry("lib/modules/6.1.0-test/modules.alias").data);
    assert!(aliases.contains("alias pci:* nvme\n"), "{aliases}");
}

#[test]
fn x40_programs_are_those_of_named_packages_in_known_versions_or_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = inputs(folder.path());
    let (manifest, _) = quietly(&inputs, &folder.path().join("dist")).unwrap();
    let packed = manifest.programs.iter().map(|program| {
        let PackedFile { package, version, .. } = &program.file;
        (program.name, &**package, version.as_deref().unwrap())
    });
    let expected = [
        ("busybox", "busybox-static", "1:1.35.0-4"),
        ("dropbear", "dropbear-bin", "2022.83-1"),
        ("mdadm", "mdadm", "4.2-5"),
        ("mke2fs", "e2fsprogs", "1.47.0-2"),
    ];
    assert_eq!(packed.collect::<Vec<_>>(), expected);

    // The same path, of the package that is linked dynamically.
    fs::remove_file(folder.path().join("var/lib/dpkg/info/busybox-static.list")).unwrap();
    let other = [&[("busybox", "1:1.35.0-4", "bin/busybox")], &PROGRAMS[1..]].concat();
    write_database(folder.path(), &other);
    let error = quietly(&inputs, &folder.path().join("dist")).unwrap_err().to_string();
    assert!(error.contains("bin/busybox is of the package busybox, not of busybox-static"), "{error}");
    fs::remove_dir_all(folder.path().join("var/lib/dpkg")).unwrap();
    let error = quietly(&inputs, &folder.path().join("dist")).unwrap_err().to_string();
    assert!(error.contains("bin/busybox belongs to no package"), "{error}");
}

#[test]
fn x38_the_agent_beside_the_ramdisk_can_be_run() {
    let folder = tempfile::tempdir().unwrap();
    let (_, output) = quietly(&inputs(folder.path()), &folder.path().join("dist")).unwrap();
    let mode = |name: &str| fs::metadata(output.join(name)).unwrap().permissions().mode();
    assert_eq!(mode("farrier-agent") & 0o111, (mode("farrier-agent") & 0o444) >> 2);
    assert_ne!(mode("farrier-agent") & 0o100, 0);
    assert_eq!(mode("vmlinuz") & 0o111, 0);
}

#[test]
fn media_can_be_made_anew_with_other_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = inputs(folder.path());
    let (manifest, dist) = quietly(&inputs, &folder.path().join("dist")).unwrap();
    let output = folder.path().join("media");
    let made = rebuild_media(&dist, &inputs.media, &output).unwrap();
    assert_eq!(made["farrier.iso"], manifest.files["farrier.iso"]);
    let media = MediaInputs { parameters: "a=b".parse().unwrap(), ..inputs.media.clone() };
    rebuild_media(&dist, &media, &output).unwrap();
    let image = fs::read(output.join("farrier.iso")).unwrap();
    let holds = |part: &[u8]| image.windows(part.len()).any(|window| window == part);
    for line in ["linux /vmlinuz", "  APPEND"] {
        let line = format!("{line} farrier-boot-medium=iso console=tty0 console=ttyS0,115200 a=b\n");
        assert!(holds(line.as_bytes()), "{line}");
    }
    assert!(holds(&synthetic_kernel("x86_64")));
    let script = fs::read_to_string(output.join("netboot/boot.ipxe")).unwrap();
    assert!(script.starts_with("#!ipxe\nkernel vmlinuz initrd=initramfs.img console="), "{script}");

    fs::write(dist.join("manifest.json"), "{}").unwrap();
    let error = rebuild_media(&dist, &media, &output).unwrap_err().to_string();
    assert!(error.contains("manifest.json") && error.contains("run farrier-image build"), "{error}");
}

#[test]
fn what_cannot_be_packed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = inputs(folder.path());
    let refusal = |inputs: &Inputs| quietly(inputs, &folder.path().join("dist")).unwrap_err().to_string();
    let missing = Inputs { kernel: folder.path().join("absent"), ..inputs.clone() };
    assert!(refusal(&missing).starts_with(&format!("cannot read {}", missing.kernel.display())));
    let no_module = Inputs { extra_modules: vec!["nosuch".into()], ..inputs.clone() };
    assert!(refusal(&no_module).contains("has no module nosuch"));
    fs::write(&inputs.kernel, synthetic_kernel("aarch64")).unwrap();
    assert!(refusal(&inputs).contains("vmlinuz is for aarch64"));
    fs::write(&inputs.kernel, synthetic_kernel("x86_64")).unwrap();
    fs::write(&inputs.agent, synthetic_executable(3)).unwrap();
    assert!(refusal(&inputs).contains("is linked dynamically"));
    fs::write(&inputs.agent, synthetic_executable(1)).unwrap();
    fs::remove_file(folder.path().join("usr/lib/shim/shimx64.efi.signed")).unwrap();
    assert!(refusal(&inputs).contains("the package shim-signed"));
    fs::remove_file(folder.path().join("bin/busybox")).unwrap();
    assert!(refusal(&inputs).contains("install the package busybox-static"));
}
