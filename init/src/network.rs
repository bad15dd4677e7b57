//! The network of the ramdisk.
//!
//! One thread brings the links up as they appear. [`source`] finds out what they are to be and [`links`]
//! makes it so; the clients of DHCPv4 are children of PID 1, which starts them on demand, those of IPv6 and on
//! InfiniBand are threads ([`ipv6`], [`infiniband`]). No link waits for another one, save those that stand on
//! it.

mod arp;
pub mod dhcp_client;
pub mod dhcp_event;
mod host_name;
mod ibft;
mod infiniband;
mod interface;
mod ipv6;
mod kernel_parameters;
mod lease;
mod links;
mod name_servers;
mod network_data;
mod packet_size;
mod plan;
mod source;

pub use interface::{is_vlan, set_up_vlan};
pub use plan::VLAN_NUMBERS;

use crate::events::{Change, Event};
use crate::{panic_guard, settings};
use links::Links;
use source::Source;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// How often links are looked at that something is expected of, such as a carrier.
const LOOK: Duration = Duration::from_millis(500);

/// Starts the thread. It says when the agent may start and which links want a DHCP client.
pub fn start(read: settings::Read, changes: Receiver<Change>, events: Sender<Event>) {
    thread::spawn(move || {
        let told = panic_guard::once("virtual media", || source::find(read)).flatten();
        // The agent reads what virtual media said; the receiver lives as long as PID 1.
        events.send(Event::MediaRead).ok();
        let of_firmware = || panic_guard::once("the firmware's network", source::of_firmware).flatten();
        let source = told.or_else(of_firmware).unwrap_or_else(Source::automatic);
        tracing::info!("the network is configured by {}", source.origin);
        let mut links = Links::new(Path::new("/"), source, events);
        panic_guard::rounds("the network", || turn(&mut links, &changes));
    });
}

fn turn(links: &mut Links, changes: &Receiver<Change>) -> ControlFlow<()> {
    links.settle();
    match changes.recv_timeout(LOOK) {
        Ok(Change::Appeared(name)) => links.appeared(name),
        Ok(Change::Rescued) => {
            if let Some(source) = source::of_user() {
                links.start_over(source);
            }
        }
        Err(RecvTimeoutError::Timeout) => {}
        Err(RecvTimeoutError::Disconnected) => return ControlFlow::Break(()),
    }
    ControlFlow::Continue(())
}
