//! openstacksdk, by the functional tests of bare metal that it comes with.

use crate::page;
use farrier_tests::environment;
use farrier_tests::node_api::Conductor;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// Where its tests are in the package.
const TESTS: &str = "openstack/tests/functional/baremetal/v1";

/// The clouds that its tests know by these names are all the same one here, which has one service.
const CLOUDS: [&str; 4] = ["devstack", "devstack-alt", "devstack-admin", "devstack-system-admin"];

/// The least that is worth it: with fewer, something of the interface is gone.
const LEAST: usize = 58;

fn clouds(port: u16) -> String {
    let of = |name| {
        format!(
            "  {name}:\n    auth_type: none\n    auth: {{endpoint: 'http://127.0.0.1:{port}'}}\n    \
             region_name: here\n    has_compute: false\n    has_image: false\n    has_network: false\n"
        )
    };
    format!("clouds:\n{}", CLOUDS.map(of).concat())
}

/// Has Python's own test runner tell of each test, on a line of its own, what came of it. What tests log goes elsewhere.
const RUNNER: &str = "
import sys, unittest
class Result(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self.word = 'passed'
    def addSkip(self, test, reason):
        self.word = 'skipped'
    def addError(self, test, error):
        self.word = 'failed'
        super().addError(test, error)
    addFailure = addError
    def stopTest(self, test):
        print('came of it:', self.word, '.'.join(test.id().rsplit('.', 2)[1:]))
tests = unittest.defaultTestLoader.discover(sys.argv[1], top_level_dir='.')
result = Result()
tests.run(result)
for test, error in result.errors:
    print(test.id(), error, file=sys.stderr)
";

/// Each test by its class and function, and whether it passed.
fn results(printed: &str) -> Vec<(String, bool)> {
    let result = |line: &str| {
        let (word, test) = line.strip_prefix("came of it: ")?.split_once(' ')?;
        Some((test.to_owned(), word == "passed"))
    };
    printed.lines().filter_map(result).collect()
}

#[test]
fn client_openstacksdk_passes_its_functional_tests_but_for_those_that_the_book_names() {
    let (conductor, folder) = crate::conductor();
    let clients = environment::path("FARRIER_CLIENTS");
    let file = folder.path().join("clouds.yaml");
    fs::write(&file, clouds(conductor.api().port())).unwrap();
    let libraries = fs::read_dir(clients.join("lib")).unwrap().next().unwrap().unwrap().path();
    let packages = libraries.join("site-packages");
    let output = Command::new(clients.join("bin/python"))
        .args(["-c", RUNNER, TESTS])
        .current_dir(&packages)
        .env("OS_CLIENT_CONFIG_FILE", &file)
        // In seconds, for each test: the client waits between its attempts.
        .env("OS_TEST_TIMEOUT", "60")
        .output()
        .unwrap();
    let (printed, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let results = results(&printed);
    let failed: BTreeSet<_> =
        results.iter().filter(|(_, is_ok)| !is_ok).map(|(test, _)| test.clone()).collect();
    let told: BTreeSet<_> = page::rows("openstacksdk").into_iter().map(|[test, _]| test).collect();
    assert_eq!(failed, told, "{complained}\n{}", conductor.log_tail());
    let passed = results.len() - failed.len();
    assert!(passed >= LEAST, "{passed} of {} pass", results.len());
}
