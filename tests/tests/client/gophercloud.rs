//! gophercloud, by the acceptance tests of bare metal that Debian's package has.

use crate::keystone::{self, Keystone};
use farrier_tests::conductor::farrier::Farrier;
use farrier_tests::conductor::node_api::Conductor;
use farrier_tests::environment;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Where Debian has sources of Go.
const SOURCES: &str = "/usr/share/gocode";
/// Packages with tests, each for one way to authenticate: none, a password, a token of Keystone.
const TESTS: &str = "github.com/gophercloud/gophercloud/acceptance/openstack/baremetal";
/// What is compiled of them.
const TAGS: &str = "acceptance baremetal allocations nodes ports";
/// How many tests each of the packages has.
const COUNT: usize = 6;
/// Its nodes have hardware that is not there, or is not asked.
const HARDWARE_TYPES: &str = "fake-hardware,ipmi";

/// A line of the report of `go test`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    #[serde(default)]
    test: Option<String>,
    #[serde(default)]
    output: Option<String>,
}

/// Runs the tests of a package, which all pass.
fn run(package: &str, folder: &Path, environment: &[(&str, &str)]) {
    let output = Command::new("go")
        .args(["test", "-json", "-count=1", "-tags", TAGS, &format!("{TESTS}/{package}")])
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs([("GO111MODULE", "off"), ("GOPATH", SOURCES), ("GOTOOLCHAIN", "local"), ("GOFLAGS", "")])
        .env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go"))
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let (printed, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let events: Vec<Event> = printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let said: String = events.iter().filter_map(|event| event.output.as_deref()).collect();
    let with = |actions: &[&str]| -> BTreeSet<_> {
        let events = events.iter().filter(|event| actions.contains(&event.action.as_str()));
        events.filter_map(|event| event.test.as_deref()).collect()
    };
    let others = with(&["fail", "skip"]);
    assert!(others.is_empty(), "{package}: {others:?}\n{said}\n{complained}");
    assert_eq!(with(&["pass"]).len(), COUNT, "{package}: {said}\n{complained}");
}

/// Adds the user to the operators of a conductor that has its state in `folder`.
fn add_operator(program: &Path, folder: &Path) {
    let mut adding = Command::new(program)
        .args(["auth", "add", keystone::USER, "--role", "admin", "--bcrypt-cost", "4"])
        .env("FARRIER_STATE_DIR", folder.join("state"))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(adding.stdin.take().unwrap(), "{}", keystone::PASSWORD).unwrap();
    assert!(adding.wait().unwrap().success());
}

#[test]
fn client_gophercloud_passes_its_acceptance_tests_twice_by_each_way_to_authenticate() {
    let (keystone, folder) = (Keystone::start().unwrap(), TempDir::new().unwrap());
    let program = environment::path("FARRIER_BIN");
    let start = |name: &str, options: &[[&str; 2]]| {
        let options = [&[["--enabled-hardware-types", HARDWARE_TYPES]], options].concat();
        let (listen, folder) = ("127.0.0.1:0".parse().unwrap(), folder.path().join(name));
        let conductor = Farrier::start_at(listen, &program, &folder, options.as_flattened()).unwrap();
        let endpoint = format!("http://127.0.0.1:{}/v1", conductor.api().port());
        (conductor, endpoint)
    };
    add_operator(&program, &folder.path().join("closed"));
    let (_open, open) = start("open", &[]);
    let options = [["--auth-strategy", "keystone"], ["--keystone-url", &keystone.url()]];
    let (_closed, closed) = start("closed", &options);
    keystone.catalog(closed.clone());
    let user = [("OS_USERNAME", keystone::USER), ("OS_PASSWORD", keystone::PASSWORD)];
    let url = keystone.url();
    let scope = [
        ("OS_AUTH_URL", url.as_str()),
        ("OS_REGION_NAME", keystone::REGION),
        ("OS_PROJECT_NAME", keystone::PROJECT),
        ("OS_DOMAIN_NAME", "Default"),
    ];
    for _time in 0..2 {
        run("noauth", folder.path(), &[("IRONIC_ENDPOINT", open.as_str())]);
        run("httpbasic", folder.path(), &[&user[..], &[("IRONIC_ENDPOINT", closed.as_str())]].concat());
        run("v1", folder.path(), &[&user[..], &scope].concat());
    }
}
