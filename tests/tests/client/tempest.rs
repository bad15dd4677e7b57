//! tempest with ironic-tempest-plugin: the tests of its API that Ironic itself is tested with.

use crate::keystone::{self, Keystone};
use crate::page;
use crate::python_tests::{self, Outcomes};
use farrier_tests::conductor::farrier::Farrier;
use farrier_tests::conductor::node_api::Conductor;
use farrier_tests::environment;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Where the tests are in the package.
const TESTS: &str = "ironic_tempest_plugin/tests/api/admin";
/// Those whose classes do not skip themselves for lack of Neutron and of a graphical console.
const RUN: usize = 386;
/// The least of these that pass.
const LEAST: usize = 380;
/// Hardware types whose interfaces tests choose.
const HARDWARE_TYPES: &str = "fake-hardware,ipmi,redfish,manual";

/// Tempest's configuration, and the accounts that it uses: one of a project and one of the system, by whose token the
/// tests call the conductor.
fn configure(folder: &Path, keystone: &Keystone) {
    let (accounts, locks) = (folder.join("accounts.yaml"), folder.join("locks"));
    fs::create_dir(&locks).unwrap();
    let account = |user: &str, scope: &str| {
        format!(
            "- username: {user}\n  user_domain_name: Default\n  password: {}\n  roles: [admin]\n{scope}",
            keystone::PASSWORD
        )
    };
    let project =
        format!("  types: [admin]\n  project_name: {}\n  project_domain_name: Default\n", keystone::PROJECT);
    fs::write(
        &accounts,
        account(keystone::USER, &project) + &account(keystone::SYSTEM_USER, "  system: all\n"),
    )
    .unwrap();
    let settings = format!(
        "[DEFAULT]
log_file = {folder}/tempest.log
[oslo_concurrency]
lock_path = {locks}
[auth]
use_dynamic_credentials = false
test_accounts_file = {accounts}
[identity]
uri_v3 = {url}
auth_version = v3
region = {region}
v3_endpoint_type = public
[identity-feature-enabled]
api_v2 = false
[service_available]
ironic = true
nova = false
glance = false
neutron = false
cinder = false
swift = false
[enforce_scope]
ironic = true
[baremetal]
driver = fake-hardware
min_microversion = 1.1
max_microversion = latest
power_timeout = 30
unprovision_timeout = 60
[compute]
build_interval = 1
build_timeout = 60
",
        folder = folder.display(),
        locks = locks.display(),
        accounts = accounts.display(),
        url = keystone.url(),
        region = keystone::REGION,
    );
    fs::write(folder.join("tempest.conf"), settings).unwrap();
}

/// What comes of the tests with a conductor that has no nodes yet: some of them leave records behind.
fn run() -> (Outcomes, String) {
    let (keystone, folder) = (Keystone::start().unwrap(), TempDir::new().unwrap());
    let options = [
        ["--enabled-hardware-types", HARDWARE_TYPES],
        ["--auth-strategy", "keystone"],
        ["--keystone-url", &keystone.url()],
    ];
    let program = environment::path("FARRIER_BIN");
    let listen = "127.0.0.1:0".parse().unwrap();
    let conductor = Farrier::start_at(listen, &program, folder.path(), options.as_flattened()).unwrap();
    keystone.catalog(format!("http://127.0.0.1:{}", conductor.api().port()));
    configure(folder.path(), &keystone);
    let environment = [("TEMPEST_CONFIG_DIR", folder.path()), ("TEMPEST_CONFIG", Path::new("tempest.conf"))];
    (python_tests::run(TESTS, &environment), conductor.log_tail())
}

#[test]
fn client_tempest_passes_the_tests_of_the_api_twice_but_for_those_that_the_book_names() {
    let told: BTreeSet<_> = page::rows("tempest").into_iter().map(|[test, _]| test).collect();
    for time in ["first", "second"] {
        let (outcomes, log) = run();
        assert_eq!(outcomes.failed, told, "{time} time: {}\n{log}", outcomes.complaints);
        let passed = outcomes.passed.len();
        assert_eq!(passed + outcomes.failed.len(), RUN, "skipped: {:?}", outcomes.skipped);
        assert!(passed >= LEAST, "{passed} of {RUN} pass");
    }
}
