//! Containers in an emulated machine, run by the real podman in its ramdisk.

use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::agent::stub_conductor::NODE;
use farrier_tests::images::instance;
use farrier_tests::images::registry::{Image, Registry, Shelf};
use farrier_tests::images::server::{ImageServer, Reply};
use farrier_tests::machine::{Hardware, free_port};
use farrier_tests::ramdisk::{self, Addition};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Cursor;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// How long an emulated machine may take for a step.
const STEP: Duration = Duration::from_secs(900);
/// The programs, and what is unpacked in memory.
const MEMORY: [&str; 2] = ["-m", "2048"];
const PROGRAMS: [&str; 3] = ["/usr/bin/conmon", "/usr/bin/crun", "/usr/bin/podman"];
const POLICY: &str = "/etc/containers/policy.json";
/// Without a module of the kernel.
const STORAGE: &str = "[storage]\ndriver = \"vfs\"\nrunroot = \"/run/containers/storage\"\n\
                       graphroot = \"/var/lib/containers/storage\"\n";
const CREDENTIALS: &str = "ann:hunter2";
/// Base64 of the credentials, and again, as a conductor sends it.
const AUTH: &str = "YW5uOmh1bnRlcjI=";
const PULL_SECRET: &str = "WVc1dU9taDFiblJsY2pJPQ==";
const DISK_BYTES: u64 = 5 << 30;
/// Where the image that installs itself tells what it saw.
const REPORT: u64 = 10 << 20;

/// What installs a system on the disk that is named last, looks for credentials through the machine's first
/// process, and for something that is there, to show that it can see.
const BOOTC: &str = r#"#!/bin/busybox sh
for disk; do :; done
look() {
    for place in etc root run tmp var/tmp; do
        busybox find /proc/1/root/$place -type f -exec busybox grep -q "$1" {} \; -print
    done
}
busybox dd if=/system.img of=$disk bs=1M || exit 1
report=$(echo "arguments: $*"; echo "secret:" $(look YW5uOmh1bnRlcjI); echo "control:" $(look no_pivot_root))
echo "$report" | busybox dd of=$disk bs=4096 seek=2560 conv=sync || exit 1
busybox sync
"#;

fn registry() -> Registry {
    let busybox = fs::read("/usr/bin/busybox").unwrap();
    let command = ["/bin/busybox", "echo", "the firmware is new"];
    let tool = || Image::new(&[("bin/busybox", busybox.as_slice())], &command).unwrap();
    let system = instance::image().unwrap();
    let files = [
        ("bin/busybox", busybox.as_slice()),
        ("bin/bootc", BOOTC.as_bytes()),
        ("system.img", system.as_slice()),
    ];
    let images = [("allowed", tool()), ("other", tool()), ("system", Image::new(&files, &[]).unwrap())];
    Registry::start(Shelf { images: images.into(), credentials: [("system", CREDENTIALS)].into() }).unwrap()
}

/// Builds a ramdisk with podman and the operator's files, as the book says.
fn build_ramdisk(registry: &Registry, folder: &Path) -> PathBuf {
    let insecure = format!("[[registry]]\nlocation = \"{}\"\ninsecure = true\n", registry.guest_host());
    let agent = format!("[container]\nallowed_containers = docker://{}\n", registry.guest_name("allowed"));
    let steps = format!(
        "steps:\n- name: check_fans\n  image: {}\n  interface: deploy\n  priority: 30\n  \
         reboot_requested: false\n  abortable: true\n",
        registry.guest_name("other")
    );
    let mut additions = PROGRAMS.map(Addition::Program).to_vec();
    additions.extend([
        Addition::File(POLICY),
        Addition::Text("/etc/containers/registries.conf", &insecure),
        Addition::Text("/etc/containers/storage.conf", STORAGE),
        Addition::Text("/etc/ironic-python-agent.d/agent.conf", &agent),
        Addition::Text("/etc/ironic-python-agent.d/mysteps.yaml", &steps),
    ]);
    ramdisk::build(folder, &additions).unwrap()
}

/// A machine with podman and one empty disk.
struct Stable {
    agent: CommandedAgent,
    folder: TempDir,
}

impl Stable {
    fn new(registry: &Registry) -> Self {
        let folder = TempDir::new().unwrap();
        let dist = build_ramdisk(registry, folder.path());
        let disk = folder.path().join("disk.raw");
        File::create(&disk).unwrap().set_len(DISK_BYTES).unwrap();
        let hardware = Hardware {
            mac: "52:54:00:fa:00:0c".into(),
            agent_port: free_port().unwrap(),
            keyboard_port: free_port().unwrap(),
            disks: vec![(disk, "ROOT")],
            media: Vec::new(),
            folder: folder.path().to_owned(),
        };
        let agent = CommandedAgent::boot(&hardware, &MEMORY.map(str::to_owned), &dist, "").unwrap();
        Self { agent, folder }
    }

    fn order(&self, phase: &str, step: &str, arguments: &Value) {
        let step = json!({"step": step, "interface": "deploy", "args": arguments});
        let node = json!({"uuid": NODE, "instance_info": {"bootc_authorized_keys": "ssh-ed25519 AAAA ann"}});
        let params = json!({"step": step, "node": node, "ports": []});
        self.agent.order(&format!("{phase}.execute_{phase}_step"), &params).unwrap();
    }

    fn succeed(&self, phase: &str, step: &str, arguments: &Value) -> Value {
        self.order(phase, step, arguments);
        self.agent.wait_for_success(STEP).unwrap()[format!("{phase}_result")].take()
    }

    /// Class and text of a step's failure.
    fn fail(&self, phase: &str, step: &str, arguments: &Value) -> (String, String) {
        self.order(phase, step, arguments);
        let error = self.agent.wait_for_failure(STEP).unwrap();
        let text = |key: &str| error[key].as_str().unwrap().to_owned();
        (text("type"), text("details"))
    }

    fn read(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        File::open(self.folder.path().join("disk.raw")).unwrap().read_exact_at(&mut bytes, offset).unwrap();
        bytes
    }
}

/// A server with a config drive.
fn config_drive() -> ImageServer {
    let mut volume = Cursor::new(vec![0; 1 << 20]);
    let options = fatfs::FormatVolumeOptions::new().volume_label(*b"CONFIG-2   ");
    fatfs::format_volume(&mut volume, options).unwrap();
    ImageServer::start(vec![Reply::Body(Arc::new(volume.into_inner()))]).unwrap()
}

#[test]
fn vm_s06_s09_containers_run_as_the_operator_allows_and_install_without_seeing_credentials() {
    let registry = registry();
    let stable = Stable::new(&registry);

    let url = |image: &str| json!({"container_url": registry.guest_name(image)});
    let (kind, told) = stable.fail("clean", "generic_container_step", &url("other"));
    assert_eq!(kind, "ContainerNotPermittedError", "{told}");
    assert_eq!(registry.requests(), Vec::<String>::new(), "nothing was fetched");
    let result = stable.succeed("clean", "generic_container_step", &url("allowed"));
    assert_eq!(result["output"], "the firmware is new\n", "{result}");
    let result = stable.succeed("service", "check_fans", &json!({}));
    assert_eq!(result["output"], "the firmware is new\n", "{result}");

    let drive = config_drive();
    let order = |image: &str| {
        let source = format!("oci://{}", registry.guest_name(image));
        json!({"image_source": source, "oci_pull_secret": PULL_SECRET, "configdrive": drive.guest_url()})
    };
    let (kind, told) = stable.fail("deploy", "execute_bootc_install", &order("allowed"));
    assert!(kind == "ImageDownloadError" && told.contains("executable file `bootc` not found"), "{told}");
    assert_eq!(stable.read(510, 2), [0, 0], "nothing to boot from");

    let result = stable.succeed("deploy", "execute_bootc_install", &order("system"));
    let expected =
        format!("Container image (oci://{}) written to device /dev/vda", registry.guest_name("system"));
    assert!(result["result"].as_str().unwrap().ends_with(&expected), "{result}");
    let report = String::from_utf8_lossy(&stable.read(REPORT, 4096)).trim_end_matches('\0').to_owned();
    let lines: Vec<_> = report.lines().collect();
    let start = "arguments: install to-disk --wipe --skip-fetch-check --root-size=4352M --disable-selinux \
                 --root-ssh-authorized-keys=/run/";
    assert!(lines[0].starts_with(start) && lines[0].ends_with(" /dev/vda"), "{report}");
    assert_eq!(lines[1], "secret:", "{AUTH} is still there");
    assert!(lines[2].contains("/etc/containers/containers.conf.d/01-ipa.conf"), "{report}");
    assert_eq!(stable.read(510, 2), [0x55, 0xaa], "the system is not there");
    assert_ne!(stable.read(446 + 16 + 4, 1), [0], "the config drive is not there");
}
