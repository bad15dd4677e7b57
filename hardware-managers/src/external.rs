//! Hardware managers that are programs of their own, in any language.
//!
//! An executable in `/usr/lib/farrier/hardware-managers.d/` is asked one thing per start: the agent
//! writes one line of JSON to its standard input, and reads lines of JSON from its standard output until
//! one of them is the answer. `docs/src/external-managers.md` is the description for those who write one.
//!
//! ```text
//! agent                                          program
//!   {"protocol":1,"request":"describe"}      ──▶
//!                                            ◀──  {"result":{"class_name":…,"name":…,"version":…}}
//!   {"protocol":1,"request":"evaluate"}      ──▶
//!                                            ◀──  {"result":{"support":3}}
//!   {"protocol":1,"request":"list_steps"}    ──▶
//!                                            ◀──  {"result":{"steps":[…]}}
//!   {"protocol":1,"request":"run_step",…}    ──▶
//!                                            ◀──  {"progress":{"percent":40,"text":"…"}}
//!                                            ◀──  {"result":…} | {"error":{…}} | {"incompatible":"…"}
//! ```
//!
//! One that crashes, hangs or talks garbage costs the agent nothing but that answer: a manager that does
//! not say who it is is not loaded, a step that ends without an answer has failed.

pub mod conformance;
mod conversation;
mod manager;
mod message;

pub use conversation::ConversationError;
pub use manager::ExternalManager;

use crate::manager::HardwareManager;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Where the programs lie.
pub const DIRECTORY: &str = "/usr/lib/farrier/hardware-managers.d";

/// Writable by group or others.
const WRITABLE_BY_OTHERS: u32 = 0o022;
const EXECUTABLE: u32 = 0o111;

/// Asks every program in `directory` who it is, in order of their names. One that does not answer well
/// is named in the log and left out.
pub fn load(directory: &Path) -> Vec<Box<dyn HardwareManager>> {
    let mut programs: Vec<_> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    programs.sort();
    programs.into_iter().filter_map(|program| load_one(&program)).collect()
}

fn load_one(program: &Path) -> Option<Box<dyn HardwareManager>> {
    let name = program.display().to_string();
    if let Err(reason) = judge(program) {
        tracing::error!(program = name, "hardware manager left out: {reason}");
        return None;
    }
    match ExternalManager::load(program) {
        Ok(manager) => {
            tracing::info!(program = name, manager = manager.name(), "hardware manager found");
            Some(Box::new(manager))
        }
        Err(error) => {
            tracing::error!("hardware manager left out: {error}");
            None
        }
    }
}

/// Only what the ramdisk's builder put there is started.
fn judge(program: &Path) -> Result<(), String> {
    let metadata = fs::metadata(program).map_err(|error| error.to_string())?;
    let mode = metadata.permissions().mode();
    if !metadata.is_file() || mode & EXECUTABLE == 0 {
        return Err("it is not an executable file".to_owned());
    }
    // The agent runs as root; whoever tries a manager by hand may run it as the one who wrote it.
    let own = fs::metadata("/proc/self").map_err(|error| error.to_string())?.uid();
    if ![0, own].contains(&metadata.uid()) || mode & WRITABLE_BY_OTHERS != 0 {
        return Err("others than root can change it; give it to root with mode 0755".to_owned());
    }
    Ok(())
}
#[cfg(test)]
mod tests;
