//! The cards of a machine.

use super::query::Firmware;
use super::{Fault, Tools, VENDOR};
use crate::inventory::pci::{self, PciDevice};
use std::path::Path;

/// Beginning of the class of network controllers.
const NETWORK: &str = "02";

/// A function of a network card on the PCI bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its address, such as `0000:3b:00.1`.
    pub address: String,
    /// Kind of the card, four hexadecimal digits in lower case.
    pub device: String,
}

/// A card with its functions; what is written to one is written to all.
#[derive(Debug, PartialEq, Eq)]
pub struct Card {
    /// Its functions by number, at least one.
    pub functions: Vec<Function>,
}

impl Card {
    /// Address by which the card as a whole is known.
    pub fn address(&self) -> &str {
        &self.functions[0].address
    }

    /// Kind of the card.
    pub fn device(&self) -> &str {
        &self.functions[0].device
    }

    /// Asks the card for its firmware.
    pub fn firmware(&self, tools: &Tools) -> Result<Firmware, Fault> {
        let answer = tools.query("-d", self.address())?;
        Firmware::parse(&answer).ok_or_else(|| Fault::Silent { target: self.address().to_owned() })
    }
}

/// The vendor's network cards in the machine whose files lie below `root`, by address.
pub fn discover(root: &Path) -> Vec<Card> {
    let is_wanted = |device: &PciDevice| {
        VENDOR.trim_start_matches("0x") == device.vendor_id && device.class.starts_with(NETWORK)
    };
    let functions = pci::devices(root)
        .into_iter()
        .filter(is_wanted)
        .map(|device| Function { device: device.product_id.to_lowercase(), address: device.bus });
    let functions: Vec<_> = functions.collect();
    let cards = functions.chunk_by(|one, next| slot(&one.address) == slot(&next.address));
    cards.map(|functions| Card { functions: functions.to_vec() }).collect()
}

/// The address without the number of the function.
fn slot(address: &str) -> &str {
    address.split('.').next().unwrap_or(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mellanox::fake_cards::FakeCards;

    #[test]
    fn functions_of_one_slot_are_one_card() {
        let cards = discover(FakeCards::new().root());
        let addresses: Vec<_> = cards.iter().map(|card| (card.address(), card.functions.len())).collect();
        assert_eq!(addresses, [("0000:3b:00.0", 2), ("0000:af:00.0", 1)]);
        assert_eq!(cards[0].device(), "101b");
    }
}
