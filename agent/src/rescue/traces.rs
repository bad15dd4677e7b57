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

/// Removes all of it below `root`. What cannot be removed is told, and keeps nothing else.
pub fn remove(root: &Path) {
    let state = root.join(STATE);
    let kept = sysfs::entries(&state).into_iter().filter(|name| name != NEEDED).map(|name| state.join(name));
    for path in kept.chain(SETTINGS.map(|path| root.join(path))) {
        if let Err(error) = remove_one(&path) {
            tracing::error!(path = %path.display(), %error, "the machine's user can read what is the operator's");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Agent;
    use crate::options::Options;
    use crate::{agent_end, erase_certificates, http};
    use nix::sys::wait::WaitStatus;
    use nix::unistd::Pid;
    use serde_json::json;
    use std::path::PathBuf;

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }

    #[tokio::test]
    async fn x28_nothing_of_the_agent_is_left_to_the_user_of_a_rescued_machine() {
        http::install_tls_provider();
        let root = tempfile::tempdir().unwrap();
        // Nothing to remove is no trouble.
        remove(root.path());
        let options = Options { agent_token: Some("t".repeat(43)), ..Options::default() };
        let agent = Agent::new(options, root.path(), tokio::runtime::Handle::current()).unwrap();
        agent.identity("192.0.2.20".parse().unwrap()).unwrap();
        erase_certificates::certify(&agent, &json!({})).unwrap();
        agent_end::tell(root.path(), WaitStatus::Exited(Pid::from_raw(4711), 0));
        for path in [
            "run/farrier/agent.log",
            "run/farrier/agent.log.1",
            "run/farrier/virtual-media.txt",
            "run/farrier/network_data.json",
            "run/farrier/something/deeper",
            "run/farrier/name-servers/0",
            "etc/ironic-python-agent/agent.conf",
            "etc/ironic-python-agent.d/token.conf",
            "etc/shadow",
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "secret").unwrap();
        }
        assert!(files(root.path()).len() > 10, "{:?}", files(root.path()));
        remove(root.path());
        let mut left = files(root.path());
        left.sort();
        let kept = ["etc/shadow", "run/farrier/name-servers/0"].map(|path| root.path().join(path));
        assert_eq!(left, kept);
    }
}
