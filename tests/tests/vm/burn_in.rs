//! Burning an emulated machine in, with the real programs in its ramdisk.

use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::machine::monitor::Monitor;
use farrier_tests::machine::{self, Hardware, free_port};
use farrier_tests::ramdisk::{self, Addition};
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const NODE: &str = "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11";
const DISK_BYTES: usize = 16 << 20;
const BLOCK: usize = 4096;
const MARKER: [u8; 16] = *b"farrier was here";
/// How long an emulated machine may take for a step.
const STEP: Duration = Duration::from_secs(400);
const POLL: Duration = Duration::from_millis(100);
/// The programs and their libraries take more memory than a deployment does.
const MEMORY: [&str; 2] = ["-m", "1024"];
const PROGRAMS: [&str; 3] = ["/usr/bin/fio", "/usr/bin/stress-ng", "/usr/sbin/smartctl"];
/// One for each job of fio, from the contract's port on.
const PORTS: std::ops::Range<u16> = 9000..9016;
/// Address of the computer on which the machine is emulated.
const NEIGHBOUR: &str = "10.0.2.2";

/// A disk with a marker in every block.
fn marked(file: &Path) {
    let mut block = [0x5a; BLOCK];
    block[BLOCK - MARKER.len()..].copy_from_slice(&MARKER);
    fs::write(file, block.repeat(DISK_BYTES / BLOCK)).unwrap();
}

/// How many blocks of a disk still have their marker.
fn survivors(file: &Path) -> usize {
    fs::read(file).unwrap().chunks(BLOCK).filter(|block| block.ends_with(&MARKER)).count()
}

/// A machine with good disks on two buses, one that is to be kept, and one that fails in the middle.
struct Stable {
    agent: CommandedAgent,
    monitor: Monitor,
    folder: TempDir,
}

impl Stable {
    fn new(dist: &Path, folder: TempDir) -> Self {
        let file = |name: &str| folder.path().join(name);
        ["GOOD", "KEPT", "SATA", "BAD"].iter().for_each(|name| marked(&file(name)));
        let hardware = Hardware {
            mac: "52:54:00:fa:00:09".into(),
            agent_port: free_port().unwrap(),
            keyboard_port: free_port().unwrap(),
            disks: vec![(file("GOOD"), "GOOD"), (file("KEPT"), "KEPT")],
            media: Vec::new(),
            folder: folder.path().to_owned(),
        };
        let sata = machine::drive("SATA", &file("SATA"));
        // Writes to the sector in its middle fail.
        let fault = [
            "event=none".to_owned(),
            "iotype=write".to_owned(),
            "errno=5".to_owned(),
            format!("sector={}", DISK_BYTES / 1024),
        ];
        let fault: String = fault.map(|word| format!("file.inject-error.0.{word},")).concat();
        let image = format!("file.image.driver=file,file.image.filename={}", file("BAD").display());
        let bad = format!("if=none,id=BAD,driver=raw,file.driver=blkdebug,{fault}{image},werror=report");
        let socket = file("qmp");
        let mut arguments = Monitor::arguments(&socket).to_vec();
        arguments.extend(MEMORY.map(str::to_owned));
        for (drive, device) in
            [(sata, "ide-hd,bus=ide.0,drive=SATA,serial=SATA"), (bad, "virtio-blk-pci,drive=BAD,serial=BAD")]
        {
            arguments.extend(["-drive".to_owned(), drive, "-device".to_owned(), device.to_owned()]);
        }
        let parameters = "ipa-disk-wait-attempts=1";
        let agent = CommandedAgent::boot(&hardware, &arguments, dist, parameters).unwrap();
        Self { agent, monitor: Monitor::connect(&socket).unwrap(), folder }
    }

    /// Orders a burn-in with these settings, and leaves these disks alone.
    fn order(&self, step: &str, settings: Value, skipped: &[&str]) {
        let skipped: Vec<_> = skipped.iter().map(|serial| json!({"serial": serial})).collect();
        let params = json!({
            "step": {"step": step, "interface": "deploy"},
            "node": {
                "uuid": NODE,
                "driver_info": settings,
                "properties": {"skip_block_devices": skipped},
            },
            "ports": [],
        });
        self.agent.order("clean.execute_clean_step", &params).unwrap();
    }

    fn succeed(&self, step: &str, settings: Value, skipped: &[&str]) -> Value {
        self.order(step, settings, skipped);
        self.agent.wait_for_success(STEP).unwrap()["clean_result"].take()
    }

    fn survivors(&self, disk: &str) -> usize {
        survivors(&self.folder.path().join(disk))
    }

    /// Lets the neighbour connect to what listens in the machine.
    fn forward(&mut self) {
        for port in PORTS {
            let line = format!("hostfwd_add net tcp:127.0.0.1:{port}-:{port}");
            self.monitor.execute("human-monitor-command", &json!({"command-line": line})).unwrap();
        }
    }
}

/// The other machine of a burn-in of the network: fio, as the contract has the Python agent start it.
fn fio(words: &[&str]) -> Child {
    let mut fio = Command::new("fio");
    fio.args(["--ioengine", "net", "--port", "9000", "--fill_device", "1", "--group_reporting"]);
    fio.args(["--gtod_reduce", "1", "--numjobs", "16"]).args(words);
    fio.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The other machine again, which reads what one job of fio sends: fio itself does not see that a connection was taken
/// and broken off at once, as it is before the machine listens.
fn reader(port: u16) -> usize {
    let end = Instant::now() + STEP;
    while Instant::now() < end {
        let mut job = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        job.set_read_timeout(Some(STEP)).unwrap();
        let (mut buffer, mut bytes) = (vec![0; 1 << 20], 0);
        while let Ok(read @ 1..) = job.read(&mut buffer) {
            bytes += read;
        }
        if bytes > 0 {
            return bytes;
        }
        thread::sleep(POLL);
    }
    panic!("the machine does not listen to port {port}");
}

#[test]
fn vm_p09_a_machine_is_burnt_in_and_its_bad_disk_is_named() {
    let folder = TempDir::new().unwrap();
    let dist = ramdisk::build(folder.path(), &PROGRAMS.map(Addition::Program)).unwrap();
    let mut stable = Stable::new(&dist, folder);

    for (step, settings) in [
        ("burnin_cpu", json!({"agent_burnin_cpu_timeout": 3, "agent_burnin_cpu_outputfile": "/tmp/cpu"})),
        (
            "burnin_memory",
            json!({"agent_burnin_vm_timeout": "3s", "agent_burnin_vm_vm": 1, "agent_burnin_vm_vm-bytes": "32m"}),
        ),
    ] {
        let result = stable.succeed(step, settings, &[]);
        assert!(result["operations"].as_u64().unwrap() > 0, "{result}");
    }

    let settings = json!({"agent_burnin_fio_disk_loops": 2, "agent_burnin_fio_disk_smart_test": true});
    let result = stable.succeed("burnin_disk", settings.clone(), &["KEPT", "BAD"]);
    let all = 2 * DISK_BYTES;
    let entries: Vec<_> = result.as_object().unwrap().values().collect();
    let count = |expected: &Value| entries.iter().filter(|entry| **entry == expected).count();
    assert_eq!(count(&json!({"kept": "on the list of skipped disks"})), 2, "{result}");
    let is_whole = |entry: &&&Value| entry["written_bytes"] == all && entry["verified_bytes"] == all;
    let burnt: Vec<_> =
        entries.iter().filter(is_whole).map(|entry| entry["smart"].as_str().unwrap()).collect();
    assert_eq!(burnt.len(), 2, "{result}");
    assert!(burnt.iter().any(|smart| smart.starts_with("completed without error")), "{result}");
    assert!(burnt.iter().any(|smart| smart.starts_with("not supported")), "{result}");
    assert_eq!(
        ["GOOD", "SATA", "KEPT", "BAD"].map(|disk| stable.survivors(disk) * BLOCK),
        [0, 0, DISK_BYTES, DISK_BYTES]
    );

    stable.order("burnin_disk", settings, &["KEPT"]);
    let error = stable.agent.wait_for_failure(STEP).unwrap();
    assert_eq!(error["type"], "CleaningError", "{error}");
    let details = error["details"].as_str().unwrap();
    assert!(details.contains("I/O error (os error 5)") && details.matches("/dev/").count() == 1, "{details}");
    assert_eq!(stable.survivors("KEPT") * BLOCK, DISK_BYTES);

    let mut writer =
        fio(&["--name", "writer", "--rw", "write", "--runtime", "3", "--time_based", "--listen"]);
    let config = json!({"role": "reader", "partner": NEIGHBOUR});
    let settings = json!({
        "agent_burnin_fio_network_config": config,
        "agent_burnin_fio_network_runtime": 3,
    });
    stable.order("burnin_network", settings, &[]);
    assert!(writer.wait().unwrap().success());
    stable.forward();
    let readers = PORTS.map(|port| thread::spawn(move || reader(port))).collect::<Vec<_>>();
    assert!(readers.into_iter().all(|reader| reader.join().unwrap() > 0));
    let result = &stable.agent.wait_for_success(STEP).unwrap()["clean_result"];
    for role in ["reader_bytes", "writer_bytes"] {
        assert!(result[role].as_u64().unwrap() > 0, "{result}");
    }
    assert_eq!(result["partner"], NEIGHBOUR);
}
