//! What media are made of: ISOs of servers, and kernels with their ramdisks.

use super::stage::{MediaStage, holds, iso};
use crate::stage::Stage;
use farrier_conductor::interfaces::{BootExtension, BootInterface, Interface};
use farrier_conductor::model::{ProvisionState, RamdiskInstance};
use farrier_media::KernelParameters;
use farrier_tests::images::server::{ImageServer, Reply};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A machine with this `driver_info`, in which `DIR` is the folder that images may be taken from.
async fn stage(info: Value) -> MediaStage {
    let mut stage = MediaStage::new(Stage::new([]).await);
    let text = info.to_string().replace("DIR", stage.folder.path().to_str().unwrap());
    let info: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
    stage.stage.node.driver_info.extend(info);
    // Long enough that they lie in several pieces.
    for (name, length) in [("k", 1_500_000), ("r", 3_000_000), ("rk", 5000), ("rr", 6000)] {
        fs::write(file(&stage, name), name.repeat(length / name.len())).unwrap();
    }
    stage
}

fn file(stage: &MediaStage, name: &str) -> PathBuf {
    stage.folder.path().join(name)
}

/// What the BMC is given for the ramdisk.
async fn booted(stage: &MediaStage) -> Vec<u8> {
    let parameters = "ipa-agent-token=secret".parse().unwrap();
    stage.boot.validate(&stage.stage.node).await.unwrap();
    stage.boot.prepare_ramdisk(stage.context(), &parameters).await.unwrap();
    stage.medium().await.unwrap()
}

async fn refusal(stage: &MediaStage) -> String {
    let prepared = stage.boot.prepare_ramdisk(stage.context(), &KernelParameters::default()).await;
    assert_eq!(stage.kept(), 0, "nothing is left of a medium that was not made");
    prepared.unwrap_err().to_string()
}

#[tokio::test]
async fn an_iso_of_a_server_that_sends_parts_of_it_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("farrier.iso");
    fs::write(&image, iso()).unwrap();
    let server = ImageServer::start(vec![Reply::File(image)]).unwrap();
    let stage = stage(json!({"deploy_iso": server.url()})).await;
    let medium = booted(&stage).await;
    assert!(holds(&medium, "linux /vmlinuz boot_method=vmedia ipa-agent-token=secret\n"));
    assert_eq!((medium.len(), stage.kept()), (iso().len(), 1));
    let heads = server.heads();
    assert!(heads.iter().all(|head| head.contains("range: bytes=")), "{heads:?}");
}

#[tokio::test]
async fn a_server_that_is_out_of_service_for_a_moment_is_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("farrier.iso");
    fs::write(&image, iso()).unwrap();
    let (out, image) = (Reply::Status(503), Reply::File(image));
    let server = ImageServer::start(vec![out.clone(), image.clone(), image.clone(), out, image]).unwrap();
    let stage = stage(json!({"deploy_iso": server.url()})).await;
    assert!(holds(&booted(&stage).await, "linux /vmlinuz boot_method=vmedia ipa-agent-token=secret\n"));
}

#[tokio::test]
async fn an_iso_of_a_server_that_sends_it_as_a_whole_is_kept_for_one_boot() {
    let server = ImageServer::start(vec![Reply::Body(Arc::new(iso()))]).unwrap();
    let stage = stage(json!({"deploy_iso": server.url()})).await;
    let medium = booted(&stage).await;
    assert!(holds(&medium, "linux /vmlinuz boot_method=vmedia ipa-agent-token=secret\n"));
    assert_eq!((server.requests(), stage.kept()), (1, 2));
    // Of a medium that a conductor was killed over.
    fs::write(stage.folder.path().join(format!("media/{:032x}.iso.0.copy", 7)), "half").unwrap();
    assert_eq!(stage.medium().await.unwrap(), medium);
    assert_eq!((server.requests(), stage.kept()), (1, 2));
    stage.boot.clean_up_ramdisk(stage.context()).await.unwrap();
    assert_eq!(stage.kept(), 0);
}

#[tokio::test]
async fn what_is_exchanged_on_a_server_is_not_mixed_with_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let [kernel, other] = ["kernel", "other"].map(|name| folder.path().join(name));
    fs::write(&kernel, vec![b'k'; 3 << 20]).unwrap();
    fs::write(&other, vec![b'o'; 4 << 20]).unwrap();
    // It is asked how long the kernel is, and then for the first piece of it.
    let [kernel, other] = [kernel, other].map(Reply::File);
    let replies = vec![kernel.clone(), kernel, other];
    let server = ImageServer::start(replies).unwrap();
    let stage = stage(json!({"deploy_kernel": server.url(), "deploy_ramdisk": "DIR/r"})).await;
    stage.boot.prepare_ramdisk(stage.context(), &KernelParameters::default()).await.unwrap();
    let url = stage.stage.bmc.inner().drives.cd.image.clone().unwrap();
    let medium = stage.published_media.medium(url.rsplit('/').next().unwrap()).await.unwrap();
    let read = tokio::task::spawn_blocking(move || medium.read_at(0, usize::MAX).unwrap_err().to_string());
    let error = read.await.unwrap();
    assert!(error.contains("has changed since the medium was made of it"), "{error}");
}

/// The BMC has begun to read it, and a conductor that restarts goes on.
#[tokio::test]
async fn what_is_exchanged_while_no_conductor_runs_is_not_mixed_with_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let on_server = folder.path().join("kernel");
    let server = ImageServer::start(vec![Reply::File(on_server.clone())]).unwrap();
    let change = |file: &Path, content: u8, second: u64| {
        fs::write(file, vec![content; 3 << 20]).unwrap();
        let file = File::options().write(true).open(file).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second)).unwrap();
    };
    for (kernel, file) in [(server.url(), Some(on_server)), ("DIR/k".to_owned(), None)] {
        let stage = stage(json!({"deploy_kernel": kernel, "deploy_ramdisk": "DIR/r"})).await;
        let file = file.unwrap_or_else(|| self::file(&stage, "k"));
        change(&file, b'k', 100);
        let medium = booted(&stage).await;
        assert!(holds(&medium, [b'k'; 5000]), "{kernel}");
        change(&file, b'o', 200);
        assert!(stage.medium().await.is_none(), "{kernel}");
        change(&file, b'k', 100);
        assert!(stage.medium().await.unwrap() == medium, "{kernel}");
    }
}

#[tokio::test]
async fn a_medium_whose_making_is_cut_off_leaves_nothing() {
    let server = ImageServer::start(vec![Reply::Stalled(Arc::new(iso()), 5000)]).unwrap();
    let stage = stage(json!({"deploy_iso": server.url()})).await;
    let parameters = KernelParameters::default();
    let mut prepares = stage.boot.prepare_ramdisk(stage.context(), &parameters);
    while stage.kept() == 0 {
        let waited = tokio::time::timeout(Duration::from_millis(5), &mut prepares).await;
        assert!(waited.is_err(), "{waited:?}");
    }
    drop(prepares);
    assert_eq!(stage.kept(), 0);
}

#[tokio::test]
async fn a_medium_is_made_of_a_kernel_and_a_ramdisk_wherever_they_are() {
    let server = ImageServer::start(vec![Reply::Body(vec![b'n'; 70_000].into())]).unwrap();
    let both = json!({"deploy_kernel": "DIR/k", "deploy_ramdisk": "DIR/r"});
    let with = |more: Value| {
        let mut info = both.clone();
        info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        info
    };
    let line = "vmlinuz nofb vga=normal boot_method=vmedia ipa-agent-token=secret\n";
    let append = "APPEND console=ttyS1 boot_method=vmedia ipa-agent-token=secret\n";
    let (kernel, ramdisk) = ("k".repeat(1_500_000), "r".repeat(3_000_000));
    for (info, parts) in [
        (both.clone(), [line, "APPEND nofb", "bootx64.efi", &kernel, &ramdisk]),
        (with(json!({"deploy_ramdisk": server.url()})), [line, "gcdx64.efi", "FARRIER", &kernel, "nnnnnnnn"]),
        (
            with(json!({"kernel_append_params": "console=ttyS1"})),
            [append, "ldlinux.c32", "isohdpfx.bin", &kernel, &ramdisk],
        ),
        (with(json!({"bootloader": "DIR/isohdpfx.bin"})), [line, "isohdpfx.bin", "EFI", &kernel, &ramdisk]),
    ] {
        let stage = stage(info.clone()).await;
        let medium = booted(&stage).await;
        for part in parts {
            assert!(holds(&medium, part), "{info}: {part:.40}");
        }
        assert_eq!(holds(&medium, "bootx64.efi"), info.get("bootloader").is_none(), "{info}");
        stage.boot.clean_up_ramdisk(stage.context()).await.unwrap();
        assert_eq!(stage.kept(), 0);
    }
    let mut stage = stage(both).await;
    stage.stage.node.network_data.insert("links".into(), json!([{"id": "oats"}]));
    let medium = booted(&stage).await;
    assert!(holds(&medium, r#"{"links":[{"id":"oats"}]}"#) && holds(&medium, "config-2  "));
}

/// An ISO of the site goes before a kernel and a ramdisk, and what is for rescues before what is for deployments.
#[tokio::test]
async fn what_is_for_rescues_alone_is_booted_for_rescues_alone() {
    let iso = "linux /vmlinuz boot_method";
    for (more, deploy, rescue) in [
        (json!({}), "kkkkkkkkkk", "kkkkkkkkkk"),
        (json!({"rescue_kernel": "DIR/rk", "rescue_ramdisk": "DIR/rr"}), "kkkkkkkkkk", "rkrkrkrkrk"),
        (json!({"rescue_iso": "DIR/farrier.iso"}), "kkkkkkkkkk", iso),
        (json!({"deploy_iso": "DIR/farrier.iso"}), iso, iso),
        (
            json!({"deploy_iso": "DIR/farrier.iso", "rescue_kernel": "DIR/rk", "rescue_ramdisk": "DIR/rr"}),
            iso,
            "rkrkrkrkrk",
        ),
    ] {
        let mut info = json!({"deploy_kernel": "DIR/k", "deploy_ramdisk": "DIR/r"});
        info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut stage = stage(info).await;
        assert!(holds(&booted(&stage).await, deploy), "{more}");
        stage.stage.node.provision_state = ProvisionState::Rescuing;
        assert!(holds(&booted(&stage).await, rescue), "{more}");
    }
}

#[tokio::test]
async fn an_instance_that_is_a_kernel_with_its_ramdisk_is_a_medium_too() {
    let mut stage = stage(json!({})).await;
    for (key, name) in [("kernel", "k"), ("ramdisk", "r")] {
        let file = file(&stage, name);
        stage.stage.node.instance_info.insert(key.into(), json!(file));
    }
    let instance = RamdiskInstance::read(&stage.stage.node).unwrap();
    stage.boot.prepare_ramdisk_instance(stage.context(), &instance, None).await.unwrap();
    assert!(holds(&stage.medium().await.unwrap(), "linux /vmlinuz root=/dev/ram0 text\n"));
    stage.boot.clean_up_instance(stage.context()).await.unwrap();
    assert_eq!(stage.kept(), 0);
}

#[tokio::test]
async fn what_a_server_does_not_send_is_reported_without_its_password() {
    let body = Arc::new(iso());
    for (reply, part) in [
        (Reply::Status(404), "it answers 404 Not Found; see whether the URL is right"),
        (Reply::Encoded(Arc::clone(&body), "gzip"), "it sends something compressed"),
        (Reply::Truncated(Arc::clone(&body), 40_000), "/farrier.iso cannot be loaded: "),
        (Reply::Body(Arc::new(b"oats".to_vec())), "it is no ISO 9660 image"),
    ] {
        let server = ImageServer::start(vec![reply]).unwrap();
        let url = format!("http://smith:horseshoe@127.0.0.1:{}/farrier.iso?key=horseshoe", server.port());
        let refused = refusal(&stage(json!({"deploy_iso": url})).await).await;
        assert!(refused.contains(part) && !refused.contains("horseshoe"), "{refused}");
    }
    let refused = refusal(&stage(json!({"deploy_iso": "http://127.0.0.1:1/farrier.iso"})).await).await;
    assert!(refused.contains("http://127.0.0.1:1/farrier.iso cannot be loaded: "), "{refused}");
}

#[tokio::test]
async fn a_boot_loader_that_is_missing_is_named_with_its_package() {
    let mut stage = stage(json!({"deploy_kernel": "DIR/k", "deploy_ramdisk": "DIR/r"})).await;
    fs::remove_file(file(&stage, "isohdpfx.bin")).unwrap();
    stage.boot.validate(&stage.stage.node).await.unwrap();
    stage.stage.node.properties.insert("capabilities".into(), json!("boot_mode:bios"));
    let refused = stage.boot.validate(&stage.stage.node).await.unwrap_err().to_string();
    assert!(refused.ends_with("install isolinux, or name another by --loader-file-paths isohdpfx.bin:FILE"));
    stage.stage.node.properties.clear();
    stage.stage.node.properties.insert("cpu_arch".into(), json!("aarch64"));
    let refused = stage.boot.validate(&stage.stage.node).await.unwrap_err().to_string();
    assert!(refused.contains("the boot loader bootaa64.efi must be at /usr/lib/shim/shimaa64"), "{refused}");
    stage.stage.node.properties.clear();
    fs::remove_file(file(&stage, "gcdx64.efi")).unwrap();
    let refused = stage.boot.validate(&stage.stage.node).await.unwrap_err().to_string();
    assert!(refused.contains("install grub-efi-amd64-signed, or name another"), "{refused}");
    assert!(refused.ends_with("gcdx64.efi:FILE, or give driver_info bootloader"), "{refused}");
    for (key, value, part) in [
        ("bootloader", "DIR/none", "driver_info bootloader: is no file"),
        ("deploy_kernel", "DIR/none", "kernel: is no file"),
        ("deploy_kernel", "tftp://h/k", "a medium is made of files, and of http and https"),
    ] {
        let value = value.replace("DIR", stage.folder.path().to_str().unwrap());
        stage.stage.node.driver_info.insert(key.into(), json!(value));
        let refused = stage.boot.validate(&stage.stage.node).await.unwrap_err().to_string();
        assert!(refused.contains(part), "{refused}");
        stage.stage.node.driver_info.remove("bootloader");
    }
}
