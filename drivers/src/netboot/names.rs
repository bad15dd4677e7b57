//! Names of boot files, as firmware and boot loaders ask for them (section 6.4).
//!
//! Every loader has spellings of its own for "the configuration of this machine". All of them are read here, into whose
//! file it is and which one. What is read is never a path: a name that is none of these spellings names nothing.

use farrier_conductor::interfaces::BootClient;
use farrier_conductor::model::MacAddress;
use std::net::{IpAddr, Ipv4Addr};
use uuid::Uuid;

/// Longest name; the longest there is has 51 bytes.
const LONGEST: usize = 96;

/// The name of a boot file of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// Whose it is.
    pub whose: Whose,
    /// Which one.
    pub item: Item,
}

/// Whose boot file it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// The machine's with a network card of this address.
    Card(MacAddress),
    /// The machine's whose node, or whose firmware, has this identity.
    Node(Uuid),
    /// The machine's that has this address now.
    Address(IpAddr),
}

/// Which boot file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// What to boot, in the language of one loader; in that of the node's, where the name says nothing.
    Config(Option<Dialect>),
    /// The kernel of the agent: for rescues, or for all else.
    Kernel(Ramdisk),
    /// The ramdisk that goes with it.
    Ramdisk(Ramdisk),
    /// The kernel of an instance that boots from the network.
    InstanceKernel,
    /// The ramdisk that goes with it.
    InstanceRamdisk,
    /// The medium of an instance that boots from the network.
    BootIso,
}

impl Item {
    /// All of them, of which a configuration is one file whatever its language.
    pub const ALL: [Self; 8] = {
        let mut all = [Self::Config(None); 8];
        let mut at = 0;
        while at < OF_NODE.len() {
            all[at] = OF_NODE[at].1;
            at += 1;
        }
        all
    };
}

/// What a ramdisk of the agent is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ramdisk {
    /// Anything but a rescue.
    Deploy,
    /// A rescue.
    Rescue,
}

/// The language of a boot loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// iPXE.
    Ipxe,
    /// PXELINUX, under BIOS.
    Pxelinux,
    /// GRUB, under UEFI.
    Grub,
}

/// The files in the folder of a node.
const OF_NODE: [(&str, Item); 8] = [
    ("config", Item::Config(None)),
    ("deploy_kernel", Item::Kernel(Ramdisk::Deploy)),
    ("deploy_ramdisk", Item::Ramdisk(Ramdisk::Deploy)),
    ("rescue_kernel", Item::Kernel(Ramdisk::Rescue)),
    ("rescue_ramdisk", Item::Ramdisk(Ramdisk::Rescue)),
    ("kernel", Item::InstanceKernel),
    ("ramdisk", Item::InstanceRamdisk),
    ("boot_iso", Item::BootIso),
];

impl Name {
    /// Reads a name; nothing for one that no loader asks for. Slashes before it do not count.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let text = text.trim_start_matches('/');
        match text.split_once('/') {
            Some(("pxelinux.cfg", name)) => of_pxelinux(name),
            Some(("grub", name)) => of_grub(name),
            Some((folder, name)) => {
                let (_, item) = OF_NODE.iter().find(|(known, _)| *known == name)?;
                Some(Self { whose: Whose::Node(uuid(folder)?), item: *item })
            }
            None => of_grub(text),
        }
    }

    /// The name of a file in the folder of a node.
    pub fn of_node(node: Uuid, item: Item) -> String {
        format!("{node}/{}", Self::key(item).1)
    }

    /// How its machine is known, given who has an address now.
    pub fn client(&self, holder: impl FnOnce(IpAddr) -> Option<MacAddress>) -> Option<BootClient> {
        match &self.whose {
            Whose::Card(card) => Some(BootClient::Card(card.clone())),
            Whose::Node(uuid) => Some(BootClient::Node(*uuid)),
            Whose::Address(address) => holder(*address).map(BootClient::Card),
        }
    }

    /// The name of a file of a node, which is also the key that a record names it by, and the field of that key.
    pub(super) fn key(item: Item) -> (&'static str, &'static str) {
        let key = OF_NODE.iter().find(|(_, known)| *known == item).map_or("config", |(name, _)| name);
        let field = match item {
            Item::Kernel(_) | Item::Ramdisk(_) | Item::Config(_) => "driver_info",
            Item::InstanceKernel | Item::InstanceRamdisk | Item::BootIso => "instance_info",
        };
        (field, key)
    }

    /// The names by which loaders ask for what a machine boots, for a server that is not ours: each is a link to `config`
    /// in the folder of its node.
    pub fn links(card: &MacAddress, dialect: Dialect) -> Vec<String> {
        let hyphens = card.as_str().replace(':', "-");
        match dialect {
            Dialect::Pxelinux => vec![format!("pxelinux.cfg/01-{hyphens}")],
            Dialect::Ipxe => vec![format!("pxelinux.cfg/{hyphens}")],
            Dialect::Grub => vec![format!("grub.cfg-01-{hyphens}"), format!("{card}.conf")],
        }
    }
}

/// PXELINUX asks for its UUID, for its hardware type and address, and for its IPv4 address; iPXE for its address.
fn of_pxelinux(name: &str) -> Option<Name> {
    let (whose, dialect) = match (typed_card(name), card(name)) {
        (Some(card), _) => (Whose::Card(card), Dialect::Pxelinux),
        (None, Some(card)) => (Whose::Card(card), Dialect::Ipxe),
        (None, None) => (uuid(name).map(Whose::Node).or_else(|| hexadecimal(name))?, Dialect::Pxelinux),
    };
    Some(Name { whose, item: Item::Config(Some(dialect)) })
}

/// GRUB asks for its hardware type and address, and for its IPv4 address; its first configuration sends it on to one
/// that is named by either as it shows them.
fn of_grub(name: &str) -> Option<Name> {
    let whose = match (name.strip_prefix("grub.cfg-"), name.strip_suffix(".conf")) {
        (Some(name), _) => typed_card(name).map(Whose::Card).or_else(|| hexadecimal(name))?,
        (None, Some(name)) => {
            card(name).map(Whose::Card).or_else(|| name.parse().ok().map(Whose::Address))?
        }
        (None, None) => return None,
    };
    Some(Name { whose, item: Item::Config(Some(Dialect::Grub)) })
}

/// A hardware address behind the type of its network: Ethernet, or InfiniBand.
fn typed_card(name: &str) -> Option<MacAddress> {
    card(name.strip_prefix("01-").or_else(|| name.strip_prefix("20-"))?)
}

fn card(name: &str) -> Option<MacAddress> {
    (name.len() == 17).then(|| name.parse().ok())?
}

/// With hyphens, as loaders write it, and no other of the spellings that there are.
fn uuid(name: &str) -> Option<Uuid> {
    (name.len() == 36).then(|| name.parse().ok())?
}

fn hexadecimal(name: &str) -> Option<Whose> {
    let is_hexadecimal = name.len() == 8 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bits = u32::from_str_radix(name, 16).ok().filter(|_| is_hexadecimal)?;
    Some(Whose::Address(Ipv4Addr::from_bits(bits).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "1be26c0b-03f2-4d2e-ae87-c02d7f33c123";

    #[test]
    fn every_spelling_of_every_loader_is_read() {
        let card = || Whose::Card("52:54:00:ab:cd:01".parse().unwrap());
        let address = || Whose::Address("192.0.2.17".parse().unwrap());
        let node = || Whose::Node(NODE.parse().unwrap());
        let config = |dialect| Item::Config(Some(dialect));
        use Dialect::{Grub, Ipxe, Pxelinux};
        for (text, whose, item) in [
            ("pxelinux.cfg/01-52-54-00-ab-cd-01", card(), config(Pxelinux)),
            ("/pxelinux.cfg/01-52-54-00-AB-CD-01", card(), config(Pxelinux)),
            ("pxelinux.cfg/20-52-54-00-ab-cd-01", card(), config(Pxelinux)),
            ("pxelinux.cfg/52-54-00-ab-cd-01", card(), config(Ipxe)),
            ("pxelinux.cfg/52:54:00:ab:cd:01", card(), config(Ipxe)),
            (&format!("pxelinux.cfg/{NODE}"), node(), config(Pxelinux)),
            ("pxelinux.cfg/C0000211", address(), config(Pxelinux)),
            ("//grub/grub.cfg-01-52-54-00-ab-cd-01", card(), config(Grub)),
            ("grub.cfg-01-52-54-00-ab-cd-01", card(), config(Grub)),
            ("grub.cfg-C0000211", address(), config(Grub)),
            ("52:54:00:ab:cd:01.conf", card(), config(Grub)),
            ("192.0.2.17.conf", address(), config(Grub)),
            ("2001:db8::5.conf", Whose::Address("2001:db8::5".parse().unwrap()), config(Grub)),
            (&format!("{NODE}/config"), node(), Item::Config(None)),
            (&format!("/{NODE}/rescue_ramdisk"), node(), Item::Ramdisk(Ramdisk::Rescue)),
            (&format!("{NODE}/boot_iso"), node(), Item::BootIso),
        ] {
            assert_eq!(Name::parse(text), Some(Name { whose, item }), "{text}");
        }
    }

    #[test]
    fn what_no_loader_asks_for_names_nothing() {
        for text in [
            "",
            "/",
            "..",
            "../etc/passwd",
            "pxelinux.cfg/../pxelinux.cfg/52-54-00-ab-cd-01",
            "pxelinux.cfg/52-54-00-ab-cd-01/..",
            "pxelinux.cfg/default",
            "pxelinux.cfg/C0",
            "pxelinux.cfg/+0000211",
            "pxelinux.cfg%2f52-54-00-ab-cd-01",
            "pxelinux.cfg\\52-54-00-ab-cd-01",
            "pxelinux.cfg/52-54-00-ab-cd-01\0",
            "pxelinux.cfg/ 52-54-00-ab-cd-01",
            &format!("{NODE}/deploy_kernel/"),
            &format!("{NODE}/"),
            &format!("urn:uuid:{NODE}/config"),
            &format!("{{{NODE}}}/config"),
            &format!("{}/config", NODE.replace('-', "")),
            &"a".repeat(4096),
            &format!("{}pxelinux.cfg/52-54-00-ab-cd-01", "/".repeat(4096)),
        ] {
            assert_eq!(Name::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_that_is_made_is_read_again() {
        let card: MacAddress = "52:54:00:ab:cd:01".parse().unwrap();
        for dialect in [Dialect::Ipxe, Dialect::Pxelinux, Dialect::Grub] {
            for link in Name::links(&card, dialect) {
                let item = Item::Config(Some(dialect));
                assert_eq!(
                    Name::parse(&link),
                    Some(Name { whose: Whose::Card(card.clone()), item }),
                    "{link}"
                );
            }
        }
        let node = NODE.parse().unwrap();
        for (_, item) in OF_NODE {
            let name = Name::parse(&Name::of_node(node, item));
            assert_eq!(name, Some(Name { whose: Whose::Node(node), item }));
        }
    }

    proptest::proptest! {
        #[test]
        fn no_name_is_read_that_leads_elsewhere(text in "[/a-f0-9A-F:.%\\\\-]{0,60}") {
            if let Some(name) = Name::parse(&text) {
                proptest::prop_assert!(!text.contains("..") && !text.contains(['%', '\\']), "{} is {:?}", text, name);
            }
        }
    }
}
