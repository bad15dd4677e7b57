//! What the agent leaves behind when a machine becomes its user's: nothing that speaks for the operator.
//!
//! The user is the superuser of the ramdisk. The agent's token and the key of its certificate would command the
//! agent's heartbeats in its name, its settings may hold credentials, and its log tells of the operator's servers.

use farrier_linux::sysfs;
use std::fs;
use std::io;
use std::path::Path;

/// What the agent and PID 1 write while the machine runs, below the root directory.
const STATE: &str = "run/farrier";
/// Of that, what the machine's network still needs.
const NEEDED: &str = "name-servers";
/// Settings that came with the ramdisk or by virtual media, below the root directory.
const SETTINGS: [&str; 2] = ["etc/ironic-python-agent", "etc/ironic-python-agent.d"];

/// Removes all of it below `root`. What cannot be removed is logged, and keeps nothing else.
pub fn remove(root: &Path) {
    let state = root.join(STATE);
    let kept = sysfs::entries(&state).into_iter().filter(|name| name != NEEDED).map(|name| state.join(name));
    for path in kept.chain(SETTINGS.map(|path| root.join(path))) {
        if let Err(error) = remove_one(&path) {
            tracing::error!(path = %path.display(), %error, "the user of the machine can read the operator's data");
        }
    }
}

fn remove_one(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}
