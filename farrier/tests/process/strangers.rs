//! Strangers that take what they can get, the quick ones; `cargo xtask strangers` runs all.

use crate::conductor::farrier;
use farrier_tests::strangers::shape::Shape;
use farrier_tests::strangers::{Extent, Row, operator, services, shares, structure};
use std::path::{Path, PathBuf};

/// The shape that takes the most where values are not limited.
const SHAPES: &[Shape] = &[Shape::Nests];

/// How long an agent waits for its conductor, in milliseconds.
const PATIENCE_MS: f64 = 30_000.0;

fn program() -> PathBuf {
    Path::new(farrier().get_program()).to_owned()
}

/// Each takes no more than it may, and honest clients are served. How long they wait is told by the page: here, other tests
/// have the processors.
fn without_faults(rows: &[Row]) {
    for row in rows {
        println!("{row:?}");
    }
    let served = rows.iter().map(|row| Row { honest_limit_ms: PATIENCE_MS, ..row.clone() });
    let faults: Vec<_> = served.filter_map(|row| row.fault()).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn loop_n13_n14_n15_one_client_does_not_keep_others_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let rows = shares::rows(&program(), folder.path(), Extent::Quick).unwrap();
    without_faults(&rows);
    assert_eq!(rows.len(), 4);
}

#[test]
fn process_n01_n02_values_of_clients_and_agents_take_no_more_memory_than_they_may() {
    let folder = tempfile::tempdir().unwrap();
    let rows = structure::rows(&program(), folder.path(), SHAPES).unwrap();
    without_faults(&rows);
    assert_eq!(rows.len(), 9);
}

#[test]
fn process_n02_n19_values_of_services_take_no_more_memory_than_they_may() {
    let folder = tempfile::tempdir().unwrap();
    let rows = services::rows(&program(), folder.path(), SHAPES).unwrap();
    without_faults(&rows);
    assert_eq!(rows.len(), 4);
}

#[test]
fn process_n02_values_of_a_false_conductor_take_no_more_memory_of_a_command_than_they_may() {
    let rows = operator::rows(&program(), SHAPES).unwrap();
    without_faults(&rows);
    assert_eq!(rows.len(), 1);
}
