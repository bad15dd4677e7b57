//! openstacksdk, by the functional tests of bare metal that it comes with.

use crate::{page, python_tests};
use farrier_tests::conductor::node_api::Conductor;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where its tests are in the package.
const TESTS: &str = "openstack/tests/functional/baremetal/v1";

/// The clouds that its tests know by these names are all the same one here, which has one service.
const CLOUDS: [&str; 4] = ["devstack", "devstack-alt", "devstack-admin", "devstack-system-admin"];

/// The least that is worth it: with fewer, something of the interface is gone.
const LEAST: usize = 58;

/// Writes a file in `folder` that tells programs with this library where the conductor is.
pub fn configure(port: u16, folder: &Path) -> PathBuf {
    let of = |name| {
        format!(
            "  {name}:\n    auth_type: none\n    auth: {{endpoint: 'http://127.0.0.1:{port}'}}\n    \
             region_name: here\n    has_compute: false\n    has_image: false\n    has_network: false\n"
        )
    };
    let file = folder.join("clouds.yaml");
    fs::write(&file, format!("clouds:\n{}", CLOUDS.map(of).concat())).unwrap();
    file
}

#[test]
fn client_openstacksdk_passes_its_functional_tests_but_for_those_that_the_book_names() {
    let (conductor, folder) = crate::conductor();
    let file = configure(conductor.api().port(), folder.path());
    let outcomes = python_tests::run(TESTS, &[("OS_CLIENT_CONFIG_FILE", &file)]);
    let others: BTreeSet<_> = outcomes.failed.union(&outcomes.skipped).cloned().collect();
    let told: BTreeSet<_> = page::rows("openstacksdk").into_iter().map(|[test, _]| test).collect();
    assert_eq!(others, told, "{}\n{}", outcomes.complaints, conductor.log_tail());
    assert!(outcomes.passed.len() >= LEAST, "{} of {} pass", outcomes.passed.len(), outcomes.count());
}
