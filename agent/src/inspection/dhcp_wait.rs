//! Waiting for IPv4 addresses that an inventory should have (section 10.3).

use crate::settings::options::Options;
use farrier_hardware::inventory::nics;
use farrier_init::mac_address::MacAddress;
use farrier_protocol::inventory::NetworkInterface;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often to look.
const POLL: Duration = Duration::from_secs(2);

/// Interfaces that are waited for.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Nobody,
    Everybody,
    Address(String),
}

/// Waits until the interface the machine was booted from, or all of them, have an IPv4 address.
/// Running out of time is only worth a warning.
///
/// # Errors
///
/// The kernel does not list its interfaces.
pub fn wait(options: &Options) -> Result<(), String> {
    let failed = |error| format!("the network interfaces cannot be listed: {error}");
    let wanted = wanted(options);
    if let Wanted::Address(mac) = &wanted
        && nics::left_out_addresses().map_err(failed)?.contains(mac)
    {
        tracing::warn!(
            mac_address = mac,
            "BOOTIF names an interface that is left out: no address is waited for"
        );
        return Ok(());
    }
    let deadline = Instant::now() + options.inspection_dhcp_wait_timeout.duration();
    loop {
        let interfaces = nics::network_interfaces().map_err(failed)?;
        if wanted.is_satisfied_by(&interfaces) {
            return Ok(());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            tracing::warn!(?wanted, "no IPv4 address in time; the inventory goes without it");
            return Ok(());
        }
        sleep(POLL.min(left));
    }
}

fn wanted(options: &Options) -> Wanted {
    match &options.bootif {
        _ if options.inspection_dhcp_wait_timeout.duration().is_zero() => Wanted::Nobody,
        _ if options.inspection_dhcp_all_interfaces => Wanted::Everybody,
        Some(text) => match MacAddress::of_boot_interface(text) {
            Some(address) => Wanted::Address(address.to_string()),
            None => {
                tracing::warn!("BOOTIF={text} is no hardware address: the inventory waits for no interface");
                Wanted::Nobody
            }
        },
        None => Wanted::Nobody,
    }
}

impl Wanted {
    fn is_satisfied_by(&self, interfaces: &[NetworkInterface]) -> bool {
        let has_address = |nic: &NetworkInterface| nic.ipv4_address.is_some();
        match self {
            Self::Nobody => true,
            Self::Everybody => interfaces.iter().all(has_address),
            Self::Address(mac) => interfaces.iter().any(|nic| nic.mac_address == *mac && has_address(nic)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_linux::kernel_line;

    #[test]
    fn rows_of_the_contract() {
        let address = || Wanted::Address("52:54:00:12:34:ab".into());
        for (line, expected) in [
            ("", Wanted::Nobody),
            ("BOOTIF=01-52-54-00-12-34-AB", address()),
            ("BOOTIF=52:54:00:12:34:ab", address()),
            ("BOOTIF=52-54-00-12-34-ab", address()),
            ("BOOTIF=eth0", Wanted::Nobody),
            ("BOOTIF=01-52-54-00-12-34-ab ipa-inspection-dhcp-wait-timeout=0", Wanted::Nobody),
            ("ipa-inspection-dhcp-all-interfaces=1", Wanted::Everybody),
        ] {
            let (options, errors) = Options::load(&kernel_line::parse(line), &Default::default());
            assert_eq!((wanted(&options), errors.len()), (expected, 0), "{line}");
        }
    }

    #[test]
    fn addresses_of_the_wanted_interfaces_count() {
        let nic = |mac: &str, address: Option<&str>| NetworkInterface {
            mac_address: mac.into(),
            ipv4_address: address.map(str::to_owned),
            ..NetworkInterface::default()
        };
        let interfaces = [nic("a", Some("192.0.2.1")), nic("b", None)];
        for (wanted, expected) in [
            (Wanted::Nobody, true),
            (Wanted::Everybody, false),
            (Wanted::Address("a".into()), true),
            (Wanted::Address("b".into()), false),
            (Wanted::Address("c".into()), false),
        ] {
            assert_eq!(wanted.is_satisfied_by(&interfaces), expected, "{wanted:?}");
        }
    }
}
