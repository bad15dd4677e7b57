//! Strangers that take what they can get, the quick ones; `cargo xtask strangers` runs all.

use crate::conductor::farrier;
use farrier_tests::strangers::{Extent, shares};
use std::path::Path;

#[test]
fn loop_n13_n14_n15_one_client_does_not_keep_others_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let program = farrier();
    let rows = shares::rows(Path::new(program.get_program()), folder.path(), Extent::Quick).unwrap();
    for row in &rows {
        println!("{row:?}");
    }
    let faults: Vec<_> = rows.iter().filter_map(|row| row.fault()).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(rows.len(), 4);
}
