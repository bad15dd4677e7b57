//! Strangers that send the agent JSON which is small as text and large as values, the quick ones; `cargo xtask strangers`
//! runs all.

use farrier_tests::strangers::shape::Shape;
use farrier_tests::strangers::{Row, ramdisk};
use std::path::Path;

#[test]
fn loop_n02_values_of_commands_and_of_a_false_conductor_take_no_more_memory_than_they_may() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_farrier-agent"));
    let rows = ramdisk::rows(program, folder.path(), &[Shape::Nests]).unwrap();
    for row in &rows {
        println!("{row:?}");
    }
    let faults: Vec<_> = rows.iter().filter_map(Row::fault).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(rows.len(), 6);
}
