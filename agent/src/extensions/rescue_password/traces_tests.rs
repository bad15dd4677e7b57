//! What the agent writes does not outlive the hand-over to the user of a rescued machine.

use crate::agent::Agent;
use crate::network::http;
use crate::settings::options::Options;
use crate::steps::erase_certificates;
use farrier_init::agent_end;
use farrier_init::hand_over::traces;
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn x28_nothing_of_the_agent_is_left_to_the_user_of_a_rescued_machine() {
    http::install_tls_provider();
    let root = tempfile::tempdir().unwrap();
    // Nothing to remove is no trouble.
    traces::remove(root.path());
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
    traces::remove(root.path());
    let mut left = files(root.path());
    left.sort();
    let kept = ["etc/shadow", "run/farrier/name-servers/0"].map(|path| root.path().join(path));
    assert_eq!(left, kept);
}
