//! The user of a rescued machine comes in by SSH, with the password and with a key.

use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::environment;
use farrier_tests::machine::{Hardware, free_port};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PASSWORD: &str = "oats and barley";
/// Longest time from the command to a login, with an emulated processor.
const PATIENCE: Duration = Duration::from_secs(180);
/// What PID 1 says before it starts the server, and the fingerprint behind.
const ANNOUNCEMENT: &str = "the host key's fingerprint is ";

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

/// A new key without a password, and its public half.
fn key(folder: &Path) -> (String, String) {
    let file = folder.join("key").display().to_string();
    assert!(run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", &file]).status.success());
    let public = fs::read_to_string(format!("{file}.pub")).unwrap();
    (file, public.trim().to_owned())
}

/// Who this is, what is left of the agent, and the files with its token.
const LOOK: &str = "id; ls -A /run/farrier; ls -d /etc/ironic-python-agent*; \
                    grep -rl q3X7yVt0bUo4mQ8J2nS6 /run /etc /root /tmp";

/// Logs in as `rescue` and looks around, again until somebody answers.
fn log_in(program: &str, before: &[&str], port: u16, known_hosts: &str) -> String {
    let (port, hosts) = (port.to_string(), format!("UserKnownHostsFile={known_hosts}"));
    let look = format!("{LOOK}; true");
    let ssh =
        ["-p", &port, "-o", &hosts, "-o", "StrictHostKeyChecking=accept-new", "rescue@127.0.0.1", &look];
    let started = Instant::now();
    loop {
        let output = run(program, &[before, &ssh].concat());
        if output.status.success() {
            return String::from_utf8(output.stdout).unwrap();
        }
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(started.elapsed() < PATIENCE, "{errors}");
    }
}

#[test]
fn vm_x28_a_rescued_machine_is_entered_by_ssh_and_keeps_nothing_of_the_agent() {
    let folder = TempDir::new().unwrap();
    let hardware = Hardware {
        mac: "52:54:00:fa:00:31".into(),
        agent_port: free_port().unwrap(),
        keyboard_port: free_port().unwrap(),
        disks: vec![],
        media: vec![],
        folder: folder.path().into(),
    };
    let (file, public) = key(folder.path());
    let port = free_port().unwrap();
    // A second network, since the first one leads to the agent alone.
    let network = format!("user,id=ssh,net=10.0.3.0/24,hostfwd=tcp:127.0.0.1:{port}-:22");
    let arguments = ["-netdev", &network, "-device", "virtio-net-pci,netdev=ssh,romfile="].map(str::to_owned);
    let parameters = format!("ipa-disk-wait-attempts=1 sshkey=\"{public}\"");
    let agent =
        CommandedAgent::boot(&hardware, &arguments, &environment::path("FARRIER_DIST"), &parameters).unwrap();
    let known_hosts = folder.path().join("known_hosts").display().to_string();
    let early = run("ssh", &["-p", &port.to_string(), "-o", "BatchMode=yes", "rescue@127.0.0.1", "id"]);
    assert!(!early.status.success(), "SSH listens before the rescue");

    let params = json!({"rescue_password": PASSWORD, "hashed": false});
    agent.order("rescue.finalize_rescue", &params).unwrap();
    let console = hardware.console();
    console.wait_for(ANNOUNCEMENT, 0, PATIENCE).unwrap();
    let by_password = log_in("sshpass", &["-p", PASSWORD, "ssh"], port, &known_hosts);
    assert!(by_password.starts_with("uid=0(rescue)"), "{by_password}");
    let by_key = log_in("ssh", &["-i", &file, "-o", "BatchMode=yes"], port, &known_hosts);
    assert!(by_key.starts_with("uid=0(rescue)"), "{by_key}");
    // PID 1 goes on to log, and the network to need its name servers.
    let left: Vec<_> =
        by_key.lines().skip(1).filter(|line| !["agent.log", "name-servers"].contains(line)).collect();
    assert_eq!(left, Vec::<&str>::new(), "left of the agent");

    let text = console.text();
    let shown = text.split(ANNOUNCEMENT).nth(1).unwrap().split_whitespace().next().unwrap();
    let seen = String::from_utf8(run("ssh-keygen", &["-l", "-f", &known_hosts]).stdout).unwrap();
    assert!(seen.contains(shown), "the console says {shown}, the server {seen}");
}
