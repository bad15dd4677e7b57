//! Programs that tests write.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Writes an executable script. A process of its own writes the file: a program to which this process has a file open
/// cannot be started, and each process that another test starts has it open for a moment.
pub fn install(program: &Path, script: &str) {
    let source = program.with_extension("source");
    fs::write(&source, script).unwrap();
    let installed = Command::new("install").args(["-m", "755"]).args([&source, program]).status().unwrap();
    assert!(installed.success(), "{} cannot be installed", program.display());
    fs::remove_file(source).unwrap();
}
