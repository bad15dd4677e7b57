//! How machines are told apart: address, network card and serial number follow from the number of each.

use std::net::Ipv4Addr;
use uuid::Uuid;

/// Networks for measurements (RFC 2544), whose addresses nobody has: what an agent says of its card where it is reached by
/// a loopback address, which no card has.
const SHOWN: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// By what a machine is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Its number, from 0 on.
    pub number: u32,
    /// Where its BMC and its agent are reached.
    pub address: Ipv4Addr,
}

impl Identity {
    /// That of a machine of a fleet whose first one has an address.
    pub fn of(number: u32, first: Ipv4Addr) -> Self {
        Self { number, address: after(first, number) }
    }

    /// The address of its network card.
    pub fn mac(&self) -> String {
        let [_, a, b, c] = self.number.to_be_bytes();
        // The bit of addresses that are given locally is set.
        format!("02:f1:ee:{a:02x}:{b:02x}:{c:02x}")
    }

    /// What its agent says that the address of its card is.
    pub fn shown_address(&self) -> Ipv4Addr {
        if self.address.is_loopback() { after(SHOWN, self.number) } else { self.address }
    }

    /// Its serial number, and a name for its node.
    pub fn serial(&self) -> String {
        format!("fleet-{:06}", self.number)
    }

    /// Its identity as firmware tells it.
    pub fn uuid(&self) -> Uuid {
        Uuid::from_u128(0xf1ee_7000_0000_4000_8000_0000_0000_0000 | u128::from(self.number))
    }
}

fn after(first: Ipv4Addr, number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(first).wrapping_add(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_machine_has_its_own() {
        let machine = Identity::of(0x0001_0203, Ipv4Addr::new(127, 64, 0, 1));
        assert_eq!(machine.address, Ipv4Addr::new(127, 65, 2, 4));
        assert_eq!(machine.shown_address(), Ipv4Addr::new(198, 19, 2, 4));
        assert_eq!(machine.mac(), "02:f1:ee:01:02:03");
        assert_eq!(machine.serial(), "fleet-066051");
        assert_eq!(machine.uuid().get_version_num(), 4);
        let elsewhere = Identity::of(1, Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(elsewhere.shown_address(), elsewhere.address);
    }
}
