//! Lives of a fleet under the reference conductor, over SQLite.

#![allow(clippy::unwrap_used)]

use farrier_fleet::drive::{Credentials, Drive, Ended, Endpoint, NodeApi, Report};
use farrier_fleet::fault::Class;
use farrier_fleet::{Fleet, FleetFile};
use farrier_tests::conductor::farrier::Farrier;
use farrier_tests::conductor::first_pass::{FirstPass, loader_paths, write_loaders};
use farrier_tests::conductor::node_api::Conductor;
use farrier_tests::machine::free_port;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// The conductor: the one that `cargo xtask test` names, or that which cargo has put beside this test.
fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("FARRIER_BIN") {
        return named.into();
    }
    let own = std::env::current_exe().unwrap();
    let beside = own.parent().and_then(Path::parent).unwrap().join("farrier");
    assert!(beside.is_file(), "{} is missing; build it by cargo build -p farrier", beside.display());
    beside
}

fn conductor(folder: &Path) -> Farrier {
    let port = free_port().unwrap();
    let url = format!("http://127.0.0.1:{port}");
    write_loaders(folder).unwrap();
    let options = [
        ["--enabled-hardware-types", "redfish"],
        ["--api-url", &url],
        ["--virtual-media-url", &url],
        ["--loader-file-paths", &loader_paths(folder)],
        ["--deploy-logs-collect", "never"],
    ];
    Farrier::start_at(([127, 0, 0, 1], port).into(), &program(), folder, options.as_flattened()).unwrap()
}

/// Leads the lives of a fleet, whose file has further lines.
fn lead(more: &str) -> (Report, Vec<Ended>) {
    let folder = tempfile::tempdir().unwrap();
    let farrier = conductor(folder.path());
    let text = format!(
        "seed = 7\nshorten = 100\n{more}\n[network]\nbmc-port = 0\nagent-port = {}\n",
        free_port().unwrap()
    );
    let file = FleetFile::parse(Path::new("fleet.toml"), &text).unwrap();
    let url = format!("http://127.0.0.1:{}", farrier.api().port());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let endpoint = Endpoint { url, credentials: Credentials::None };
        let api = Arc::new(NodeApi::new(vec![endpoint]).unwrap());
        let fleet = Arc::new(Fleet::start(file, None, None).await.unwrap());
        let mut lives = Vec::new();
        let report = Drive::by(api).run(&fleet, |ended| lives.push(ended.clone())).await;
        println!("{report}{}", if report.unexplained > 0 { farrier.log_tail() } else { String::new() });
        (report, lives)
    })
}

#[test]
fn fault_lives_pass_at_first_or_are_explained_and_nothing_is_done_twice() {
    let (report, lives) = lead(
        "machines = 24
         [phases]
         erase-devices = \"3m\"
         [vendors]
         generic = 2
         dell = 1
         hpe = 1
         lenovo = 1
         supermicro = 1
         [lives]
         count = 24
         at-once = 24
         patience = \"4m\"
         [faults.bmc]
         rate = 0.3
         recoverable = true
         [faults.agent-crash]
         rate = 0.1
         recoverable = true
         [faults.dhcp-lost]
         rate = 0.1
         recoverable = true
         [faults.device-late]
         rate = 0.2
         recoverable = true
         [faults.image-digest]
         rate = 0.1
         recoverable = false
         [faults.image-server]
         rate = 0.1
         recoverable = true",
    );
    assert_eq!(report.lives, 24);
    for ended in &lives {
        let struck: Vec<_> =
            ended.faults.iter().filter(|(_, struck)| *struck).map(|(fault, _)| fault).collect();
        let has_final = struck.iter().any(|fault| !fault.recoverable);
        match &ended.failure {
            None => assert!(!has_final, "life {} has passed in spite of {struck:?}", ended.life),
            Some(failure) => assert!(
                has_final && failure.is_explained,
                "life {}: {struck:?}: {}",
                ended.life,
                failure.said
            ),
        }
        assert_eq!((&ended.twice[..], &ended.overlaps[..]), (&[][..], &[][..]), "life {}", ended.life);
    }
    let digests = report.classes.get(&Class::ImageDigest).map_or(0, |figures| figures.struck);
    assert!(digests > 0 && report.passed_at_first + digests == 24, "{digests} wrong digests");
}

/// Some hundred lives under two conductors over one database, each in a network of its own, with every class of faults.
#[test]
fn vm_f36_lives_pass_or_are_explained_while_conductors_are_struck() {
    let folder = tempfile::tempdir().unwrap();
    let lived = FirstPass {
        lives: 120,
        rate: 0.05,
        machines: 60,
        at_once: 60,
        seed: 36,
        callback_timeout: 60,
        farrier: program(),
        folder: folder.path().to_owned(),
    };
    let report = lived.run(Path::new(env!("CARGO_BIN_EXE_farrier-fleet"))).unwrap();
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    let [lives, recoverable, passed, unexplained] =
        ["lives", "recoverable", "recoverable_passed", "unexplained"]
            .map(|name| report[name].as_u64().unwrap());
    assert_eq!((lives, passed, unexplained), (120, recoverable, 0), "{report:#}");
    assert_eq!((&report["done_twice"], &report["overlaps"]), (&0.into(), &0.into()), "{report:#}");
    let struck = |class: &str| report["classes"][class]["struck"].as_u64().unwrap_or_default();
    assert!(["bmc", "conductor", "image-digest"].into_iter().all(|class| struck(class) > 0), "{report:#}");
}

/// Bad input of the command: one line each, and status 1.
#[test]
fn f36_a_fleet_or_site_that_cannot_be_is_one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file
    };
    let site = write("site.toml", "[[conductor]]\ncommand = [\"true\"]\napi-port = 1\nlog = \"l\"\n");
    for (text, expected) in [
        ("machines = 100001", "machines is 100001; give 1 to 100000"),
        ("machines = 2\n[vendors]\nasus = 1", "line 4: unknown variant `asus`"),
        (
            "machines = 2\n[faults.bmc]\nrate = 1.1\nrecoverable = true",
            "faults.bmc.rate is 1.1; give a rate from 0 to 1",
        ),
        ("machines = 2\n[lives]\ncount = 99999999", "lives.count is 99999999; give at most"),
        (
            "machines = 2\n[faults.database]\nrate = 0.1\nrecoverable = true",
            "faults.database strikes PostgreSQL, and this site has none; leave this class out of the fleet file",
        ),
    ] {
        let fleet = write("fleet.toml", &format!("seed = 1\n{text}\n"));
        let mut check = Command::new(env!("CARGO_BIN_EXE_farrier-fleet"));
        let ended = check.arg("check").arg(&fleet).arg("--site").arg(&site).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!((ended.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.contains(expected), "{expected}: {said}");
    }
}
