//! The network of a machine whose firmware booted from an iSCSI disk: the cards of the table that it left
//! (iSCSI Boot Firmware Table), as the kernel shows it in sysfs.

use super::plan::{self, Automatic, Kind, Plan, PlanError, PlannedLink, Which};
use crate::mac_address::MacAddress;
use farrier_linux::netlink::Route;
use farrier_linux::sysfs;
use std::net::IpAddr;
use std::path::Path;

/// The kernel's driver for the table.
pub const DRIVER: &str = "iscsi_ibft";
/// Where the kernel shows the table.
pub const TABLE: &str = "/sys/firmware/ibft";
/// Name of the folder of each card, before its number.
const CARD: &str = "ethernet";
/// Whether an entry holds anything, in its flags.
const VALID: u32 = 1;
/// Origin of an address that DHCP gave.
const BY_DHCP: u32 = 3;

/// The plan of the cards in the table that is shown in a folder; nothing when there is none, or DHCP assigns
/// all of them. Links that are not in the table find out by themselves what they need.
///
/// # Errors
///
/// [`PlanError`] when its entries contradict each other.
pub fn plan(table: &Path) -> Result<Option<Plan>, PlanError> {
    let mut plan = Plan::automatic();
    for name in sysfs::entries(table).iter().filter(|name| name.starts_with(CARD)) {
        if let Some(card) = Card::read(&table.join(name)) {
            card.add_to(&mut plan, name);
        }
    }
    let plan = plan.checked()?;
    Ok((plan != Plan::automatic()).then_some(plan))
}

/// A card with a fixed address.
struct Card {
    mac: MacAddress,
    address: ipnet::IpNet,
    gateway: Option<IpAddr>,
    name_servers: Vec<IpAddr>,
    vlan: Option<u16>,
}

impl Card {
    fn read(entry: &Path) -> Option<Self> {
        let is_valid = sysfs::number::<u32>(entry, "flags").is_some_and(|flags| flags & VALID != 0);
        let is_leased =
            sysfs::number::<u32>(entry, "origin") == Some(BY_DHCP) || specified(entry, "dhcp").is_some();
        if !is_valid || is_leased {
            return None;
        }
        let mask =
            sysfs::attribute(entry, "prefix-len").or_else(|| sysfs::attribute(entry, "subnet-mask"))?;
        Some(Self {
            mac: MacAddress::parse(&sysfs::attribute(entry, "mac")?)?,
            address: plan::with_mask(specified(entry, "ip-addr")?, &mask)?,
            gateway: specified(entry, "gateway"),
            name_servers: ["primary-dns", "secondary-dns"]
                .iter()
                .filter_map(|file| specified(entry, file))
                .collect(),
            vlan: sysfs::number(entry, "vlan").filter(|number| *number != 0),
        })
    }

    fn add_to(self, plan: &mut Plan, name: &str) {
        let mut link = PlannedLink::new(name, Kind::Card(Which::Mac(self.mac)));
        if let Some(number) = self.vlan {
            plan.links.push(link);
            link =
                PlannedLink::new(&format!("{name}.{number}"), Kind::Vlan { number, parent: name.to_owned() });
        }
        link.addresses.push(self.address);
        link.routes.extend(self.gateway.map(Route::default_through));
        link.automatic = Automatic::NOTHING;
        plan.links.push(link);
        for server in self.name_servers {
            if !plan.name_servers.contains(&server) {
                plan.name_servers.push(server);
            }
        }
    }
}

/// An address of an entry; the kernel shows one that is not set as zeros.
fn specified(entry: &Path, file: &str) -> Option<IpAddr> {
    let address: IpAddr = sysfs::attribute(entry, file)?.parse().ok()?;
    (!address.is_unspecified()).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    fn table(cards: &[&[(&str, &str)]]) -> TempDir {
        let table = TempDir::new().unwrap();
        for (number, attributes) in cards.iter().enumerate() {
            let entry = table.path().join(format!("ethernet{number}"));
            fs::create_dir(&entry).unwrap();
            for (file, text) in *attributes {
                fs::write(entry.join(file), format!("{text}\n")).unwrap();
            }
        }
        table
    }

    const CARD: [(&str, &str); 6] = [
        ("flags", "3"),
        ("mac", "52:54:00:fa:00:01"),
        ("ip-addr", "192.0.2.15"),
        ("subnet-mask", "255.255.255.0"),
        ("gateway", "192.0.2.1"),
        ("primary-dns", "192.0.2.3"),
    ];

    fn with(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
        CARD.iter().chain(more).copied().collect()
    }

    #[test]
    fn a_fixed_address_is_had_and_other_links_find_out_by_themselves() {
        let first =
            with(&[("origin", "0"), ("dhcp", "0.0.0.0"), ("vlan", "0"), ("secondary-dns", "0.0.0.0")]);
        let second = with(&[("mac", "52:54:00:fa:00:02"), ("ip-addr", "192.0.2.16"), ("vlan", "100")]);
        let found = plan(table(&[&first, &second]).path()).unwrap().unwrap();
        assert_eq!(found.others, Automatic::ALL);
        assert_eq!(found.name_servers, ["192.0.2.3".parse::<IpAddr>().unwrap()]);
        let card = found.link("ethernet0").unwrap();
        assert_eq!(card.kind, Kind::Card(Which::Mac(MacAddress([0x52, 0x54, 0, 0xfa, 0, 1]))));
        assert_eq!(card.addresses, ["192.0.2.15/24".parse().unwrap()]);
        assert_eq!(card.routes, [Route::default_through("192.0.2.1".parse().unwrap())]);
        assert_eq!(card.automatic, Automatic::NOTHING);
        assert!(found.link("ethernet1").unwrap().addresses.is_empty());
        assert_eq!(found.link("ethernet1.100").unwrap().addresses, ["192.0.2.16/24".parse().unwrap()]);
    }

    #[test]
    fn a_card_that_dhcp_told_or_that_is_not_described_is_not_planned() {
        for more in [
            vec![("origin", "3")],
            vec![("dhcp", "192.0.2.2")],
            vec![("flags", "0")],
            vec![("ip-addr", "0.0.0.0")],
            vec![("mac", "nothing")],
        ] {
            assert_eq!(plan(table(&[&with(&more)]).path()), Ok(None), "{more:?}");
        }
        assert_eq!(plan(Path::new("/nonexistent")), Ok(None));
    }

    #[test]
    fn one_card_twice_is_refused() {
        assert!(plan(table(&[&CARD, &CARD]).path()).is_err());
    }
}
