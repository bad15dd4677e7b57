//! Networks of conductors: each conductor is in a network namespace of its own, behind a pair of virtual Ethernet cards. One
//! whose card is down is cut off from everything.

use super::error::SiteError;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

/// The first of the networks between fleet and conductors; each has four addresses.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 0);

/// The network of one conductor.
#[derive(Debug, Clone)]
pub(super) struct Link {
    card: String,
    /// The fleet's end.
    own: Ipv4Addr,
    /// The conductor's end.
    pub(super) address: Ipv4Addr,
}

/// Makes the addresses of a fleet's machines local ones of this network namespace.
pub(super) fn prepare(first: Ipv4Addr, machines: u32) -> Result<(), SiteError> {
    run(&["ip", "link", "set", "lo", "up"])?;
    run(&["ip", "route", "replace", "local", &network(first, machines), "dev", "lo"])
}

/// The smallest network with all addresses of a fleet.
fn network(first: Ipv4Addr, machines: u32) -> String {
    let first = u32::from(first);
    let last = first.saturating_add(machines.saturating_sub(1));
    let length = (first ^ last).leading_zeros();
    let mask = u32::MAX.checked_shl(32 - length).unwrap_or_default();
    format!("{}/{length}", Ipv4Addr::from(first & mask))
}

impl Link {
    /// That of the conductor with a number, from 0 on.
    pub(super) fn of(number: usize) -> Self {
        let base = u32::from(FIRST) + 4 * u32::try_from(number).unwrap_or_default();
        let [own, address] = [1, 2].map(|end| Ipv4Addr::from(base + end));
        Self { card: format!("conductor{number}"), own, address }
    }

    /// Whether a process has a network namespace of its own, which it makes when it starts.
    pub(super) fn is_of_its_own(process: u32) -> bool {
        let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net"));
        matches!((of("self"), of(&process.to_string())), (Ok(own), Ok(other)) if own != other)
    }

    /// Connects the namespace of a process.
    pub(super) fn connect(&self, process: u32) -> Result<(), SiteError> {
        let Self { card, own, address } = self;
        let (process, own_net, net) = (process.to_string(), format!("{own}/30"), format!("{address}/30"));
        let own = own.to_string();
        // The card of a process that has ended may be there still.
        run(&["ip", "link", "delete", card]).ok();
        run(&["ip", "link", "add", card, "type", "veth", "peer", "name", "eth0", "netns", &process])?;
        run(&["ip", "address", "add", &own_net, "dev", card])?;
        run(&["ip", "link", "set", card, "up"])?;
        let inside = ["nsenter", "--target", &process, "--net", "ip"];
        for command in [
            &["link", "set", "lo", "up"][..],
            &["address", "add", &net, "dev", "eth0"],
            &["link", "set", "eth0", "up"],
            &["route", "add", "default", "via", &own],
        ] {
            run(&[&inside[..], command].concat())?;
        }
        Ok(())
    }

    /// Cuts the conductor off, or connects it again.
    pub(super) fn set(&self, is_up: bool) -> Result<(), SiteError> {
        run(&["ip", "link", "set", &self.card, if is_up { "up" } else { "down" }])
    }
}

fn run(command: &[&str]) -> Result<(), SiteError> {
    let failed = |reason: String| SiteError::Program { program: command.join(" "), reason };
    let (program, arguments) = command.split_first().unwrap_or((&"", &[]));
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().replace('\n', " "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_all_machines_and_links_do_not_meet() {
        let first = Ipv4Addr::new(10, 64, 0, 1);
        for (machines, expected) in
            [(1, "10.64.0.1/32"), (2, "10.64.0.0/30"), (300, "10.64.0.0/23"), (70_000, "10.64.0.0/15")]
        {
            assert_eq!(network(first, machines), expected);
        }
        let (one, two) = (Link::of(0), Link::of(1));
        assert_eq!((one.own, one.address), (Ipv4Addr::new(10, 255, 0, 1), Ipv4Addr::new(10, 255, 0, 2)));
        assert_eq!((two.own, two.address), (Ipv4Addr::new(10, 255, 0, 5), Ipv4Addr::new(10, 255, 0, 6)));
    }
}
