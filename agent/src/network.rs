//! Waiting for the network to come up (section 2.3).

use farrier_hardware::inventory::nics;
use farrier_linux::netlink;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often to look; short, because it is part of the time to the first heartbeat.
const POLL: Duration = Duration::from_millis(20);
/// How long an interface may take to appear.
const HARDWARE_DEADLINE: Duration = Duration::from_secs(60);
/// How long to wait for an address before the process gives up and is started again.
const ADDRESS_DEADLINE: Duration = Duration::from_secs(600);
/// How often to look for something new to say of the links.
const REMINDER: Duration = Duration::from_secs(15);

/// The network did not come up.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// No usable interface.
    #[error(
        "no network interface with a hardware address appeared in {0} s: \
         is its driver in the ramdisk?"
    )]
    NoInterface(u64),
    /// No address.
    #[error("no network interface got an address in {0} s: check cables, VLANs and the DHCP server")]
    NoAddress(u64),
    /// The kernel does not tell.
    #[error("the kernel does not list its network interfaces: {0}")]
    Kernel(#[from] io::Error),
}

/// Waits for an interface that identifies this machine and returns all their addresses.
///
/// # Errors
///
/// [`NetworkError`] after a minute.
pub async fn wait_for_hardware_addresses() -> Result<Vec<String>, NetworkError> {
    let deadline = Instant::now() + HARDWARE_DEADLINE;
    loop {
        let addresses = nics::mac_addresses(&nics::network_interfaces()?);
        if !addresses.is_empty() {
            return Ok(addresses);
        }
        if Instant::now() >= deadline {
            return Err(NetworkError::NoInterface(HARDWARE_DEADLINE.as_secs()));
        }
        sleep(POLL).await;
    }
}

/// Waits until an interface has an address that reaches further than its own link.
///
/// # Errors
///
/// [`NetworkError`] after ten minutes.
pub async fn wait_for_address() -> Result<(), NetworkError> {
    let started = Instant::now();
    let mut reminder = started + REMINDER;
    let mut told = BTreeMap::new();
    while netlink::addresses()?.is_empty() {
        let now = Instant::now();
        if now >= started + ADDRESS_DEADLINE {
            return Err(NetworkError::NoAddress(ADDRESS_DEADLINE.as_secs()));
        }
        if now >= reminder {
            describe_links(&mut told);
            reminder = now + REMINDER;
        }
        sleep(POLL).await;
    }
    Ok(())
}

/// One line per interface whose state was not told yet, so that an operator at the console sees which cable
/// to look at, and no flood.
fn describe_links(told: &mut BTreeMap<String, bool>) {
    for nic in nics::network_interfaces().unwrap_or_default() {
        if told.insert(nic.name.clone(), nic.has_carrier) == Some(nic.has_carrier) {
            continue;
        }
        let link = if nic.has_carrier {
            "link up, no address yet: no DHCP server answers on its network, which is asked on"
        } else {
            "link down: check cable and switch port"
        };
        tracing::warn!(interface = nic.name, mac_address = nic.mac_address, "{link}");
    }
}

/// The kernel's host name.
pub fn host_name() -> String {
    nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default()
}
