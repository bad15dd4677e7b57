//! Waiting for the network to come up (section 2.3).

use farrier_hardware::inventory::nics;
use farrier_linux::{netlink, sysfs};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How often to look; short, because it is part of the time to the first heartbeat.
const POLL: Duration = Duration::from_millis(20);
/// How often to look for further interfaces.
const CARD_POLL: Duration = Duration::from_millis(250);
/// How long an interface may take to appear.
const HARDWARE_DEADLINE: Duration = Duration::from_secs(60);
/// How long to wait for an address before the process gives up and is started again.
const ADDRESS_DEADLINE: Duration = Duration::from_secs(600);
/// How often to look for something new to say of the links.
const REMINDER: Duration = Duration::from_secs(15);

/// The network did not come up.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// No address.
    #[error("no network interface got an address in {0} s: check cables, VLANs and the DHCP server")]
    NoAddress(u64),
    /// The kernel does not tell.
    #[error("the kernel does not list its network interfaces: {0}")]
    Kernel(#[from] io::Error),
}

/// Waits for the first interface that identifies this machine, and continues without one after a minute. Others
/// may follow.
///
/// # Errors
///
/// [`NetworkError::Kernel`].
pub async fn wait_for_card() -> Result<(), NetworkError> {
    let deadline = Instant::now() + HARDWARE_DEADLINE;
    while nics::network_interfaces()?.is_empty() {
        if Instant::now() >= deadline {
            let seconds = HARDWARE_DEADLINE.as_secs();
            tracing::warn!(
                "no network interface with a hardware address appeared in {seconds} s: is its driver in the ramdisk? \
                 Continuing without one"
            );
            break;
        }
        sleep(POLL).await;
    }
    Ok(())
}

/// Hardware addresses of the interfaces that identify this machine at this moment.
pub fn hardware_addresses() -> Vec<String> {
    nics::mac_addresses(&nics::network_interfaces().unwrap_or_default())
}

/// Rests, but no longer than until an interface is there whose hardware address is not `known`.
pub async fn rest(pause: Duration, known: &[String]) {
    let links = || sysfs::entries(Path::new("/sys/class/net"));
    rest_until_news(pause, known, links, hardware_addresses).await;
}

/// Addresses are checked when the links have changed; each excluded one is logged each time.
async fn rest_until_news(
    pause: Duration,
    known: &[String],
    links: impl Fn() -> Vec<String>,
    cards: impl Fn() -> Vec<String>,
) {
    let news = async {
        let mut seen = links();
        while cards().iter().all(|address| known.contains(address)) {
            while links() == seen {
                sleep(CARD_POLL).await;
            }
            seen = links();
        }
    };
    // The pause is over.
    timeout(pause, news).await.ok();
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

/// One line per interface whose state was not logged yet, so that an operator at the console sees which cable
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

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{CloneFlags, unshare};

    #[tokio::test(start_paused = true)]
    async fn loop_x37_a_machine_without_a_card_goes_on_after_a_minute() {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        let started = Instant::now();
        wait_for_card().await.unwrap();
        assert_eq!(started.elapsed().as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn x10_a_rest_ends_when_another_card_is_there() {
        let known = ["a".to_owned()];
        for (appears, expected) in [(101, 100..=100), (7, 7..=8), (0, 0..=0)] {
            let started = Instant::now();
            // The loopback is no card, and one that is known may get another name.
            let links = || {
                let seconds = started.elapsed().as_secs();
                let is_there = |second| seconds >= second;
                vec![is_there(3), is_there(appears)].into_iter().map(|there| there.to_string()).collect()
            };
            let cards = || {
                let is_there = started.elapsed().as_secs() >= appears;
                known.iter().cloned().chain(is_there.then(|| "b".to_owned())).collect()
            };
            rest_until_news(Duration::from_secs(100), &known, links, cards).await;
            assert!(expected.contains(&started.elapsed().as_secs()), "{appears}: {:?}", started.elapsed());
        }
    }
}
