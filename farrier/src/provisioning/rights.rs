//! What the conductor's process may do, and what the programs that it starts may do. A service that serves netboot has
//! some rights of root, and only the program that needs them inherits them.

use rustix::io;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, capabilities, clear_ambient_capability_set, configure_capability_in_ambient_set,
    set_capabilities,
};
use std::path::Path;
use std::thread;

/// Most files that the conductor has open: those of all its clients, twice.
const FILES: u64 = 8192;

/// What a server of DHCP needs: its port, answers to machines without an address, and the network interface for them.
const OF_DHCP: [CapabilitySet; 3] =
    [CapabilitySet::NET_BIND_SERVICE, CapabilitySet::NET_ADMIN, CapabilitySet::NET_RAW];

/// The variable in which systemd passes the private folder of the service.
const RUNTIME_DIRECTORY: &str = "RUNTIME_DIRECTORY";

/// Keeps the rights of this process to itself, and lets it open as many files as its clients need. Its temporary files,
/// some of which hold secrets, are in its own folder where there is one. Threads have what the one has that starts them,
/// so this comes before all others.
pub(crate) fn prepare_process() {
    if let Some(folder) = std::env::var_os(RUNTIME_DIRECTORY)
        && tempfile::env::override_temp_dir(Path::new(&folder)).is_err()
    {
        tracing::warn!("temporary files are in {}", tempfile::env::temp_dir().display());
    }
    if let Err(error) = clear_ambient_capability_set() {
        tracing::warn!("child processes inherit the capabilities of this process: {error}");
    }
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(FILES, |most| most.min(FILES));
    if limit.current.is_some_and(|current| current < most)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..limit })
    {
        tracing::warn!("the limit for open files cannot be raised: {error}");
    }
}

/// Starts a program that inherits the rights of a server of DHCP, as far as this process has them.
pub(crate) fn with_rights_of_dhcp<T: Send>(start: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let started = scope.spawn(|| {
            if let Err(error) = inherit(&OF_DHCP) {
                tracing::warn!("dnsmasq cannot inherit capabilities of this process: {error}");
            }
            start()
        });
        started.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Has what this thread starts inherit these rights.
fn inherit(rights: &[CapabilitySet]) -> io::Result<()> {
    let mut sets = capabilities(None)?;
    let owned: Vec<_> = rights.iter().copied().filter(|right| sets.permitted.contains(*right)).collect();
    sets.inheritable |= owned.iter().copied().collect::<CapabilitySet>();
    set_capabilities(None, sets)?;
    owned.into_iter().try_for_each(|right| configure_capability_in_ambient_set(right, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The inherited capabilities of a program, from `/proc`.
    fn ambient(start: impl FnOnce(&mut Command) -> std::process::Output) -> u64 {
        let mut command = Command::new("grep");
        let output = start(command.args(["CapAmb", "/proc/self/status"]));
        let output = String::from_utf8(output.stdout).unwrap();
        u64::from_str_radix(output.trim_start_matches("CapAmb:").trim(), 16).unwrap()
    }

    #[test]
    fn n18_only_a_server_of_dhcp_inherits_rights() {
        let permitted = capabilities(None).unwrap().permitted;
        let expected: CapabilitySet =
            OF_DHCP.into_iter().filter(|right| permitted.contains(*right)).collect();
        assert_eq!(with_rights_of_dhcp(|| ambient(|command| command.output().unwrap())), expected.bits());
        assert_eq!(ambient(|command| command.output().unwrap()), 0);
    }
}
