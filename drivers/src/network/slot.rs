//! What a virtual interface can be attached to: a card, or a group of cards that is one to the network.

use farrier_conductor::model::{Node, Port, PortGroup};
use std::collections::BTreeSet;
use std::fmt;
use uuid::Uuid;

/// The note of a port with the virtual interface of its instance. Each card of a group has it.
pub(super) const TENANT_VIF: &str = "tenant_vif_port_id";

/// The virtual interface of an instance that is attached to a port.
pub(super) fn tenant_vif(port: &Port) -> Option<&str> {
    port.internal_info.get(TENANT_VIF)?.as_str()
}

/// One card, or the cards of a group; it has a card in any case.
#[derive(Debug, Clone)]
pub(super) struct Slot<'a> {
    /// The group; nothing where it is a card by itself.
    pub(super) group: Option<&'a PortGroup>,
    pub(super) cards: Vec<&'a Port>,
}

impl<'a> Slot<'a> {
    /// A card by itself.
    pub(super) fn card(port: &'a Port) -> Self {
        Self { group: None, cards: vec![port] }
    }

    /// All of a node, each group where its first card is.
    pub(super) fn all(node: &'a Node) -> Vec<Self> {
        let mut slots: Vec<Self> = Vec::new();
        for port in &node.ports {
            let group = group_of(node, port);
            let known = slots.iter_mut().find(|slot| group.is_some() && slot.group == group);
            match known {
                Some(slot) => slot.cards.push(port),
                None => slots.push(Self { group, cards: vec![port] }),
            }
        }
        slots
    }

    /// Those that have a virtual interface, each with it. A card of a group that alone of several has one has it by itself.
    pub(super) fn attached(node: &'a Node) -> Vec<(&'a str, Self)> {
        let mut attached = Vec::new();
        for slot in Self::all(node) {
            let vifs: BTreeSet<_> = slot.cards.iter().map(|port| tenant_vif(port)).collect();
            match (vifs.len(), slot.vif()) {
                (_, None) => {}
                (1, Some(vif)) => attached.push((vif, slot)),
                _ => {
                    let cards = slot.cards.into_iter();
                    attached.extend(cards.filter_map(|port| Some((tenant_vif(port)?, Self::card(port)))));
                }
            }
        }
        attached
    }

    /// The virtual interface that one of its cards has.
    pub(super) fn vif(&self) -> Option<&'a str> {
        self.cards.iter().find_map(|port| tenant_vif(port))
    }

    /// The address that it is known by. A group need not have one: it takes that of its virtual interface.
    pub(super) fn address(&self) -> Option<&'a str> {
        match self.group {
            Some(group) => group.address.as_deref(),
            None => self.cards.first().map(|port| port.address.as_str()),
        }
    }

    /// The physical network that its cables lead to.
    pub(super) fn physical_network(&self) -> Option<&'a str> {
        let of_cards = self.cards.iter().find_map(|port| port.physical_network.as_deref());
        of_cards.or_else(|| self.group?.physical_network.as_deref())
    }

    /// Whether the machine may boot from it.
    pub(super) fn is_bootable(&self) -> bool {
        self.cards.iter().any(|port| port.pxe_enabled)
    }

    /// The first of its cards that has a system of its own.
    pub(super) fn smart_nic(&self) -> Option<&'a Port> {
        self.cards.iter().find(|port| port.is_smartnic).copied()
    }

    /// The client identifier of InfiniBand.
    pub(super) fn client_id(&self) -> Option<&'a str> {
        let extra = match self.group {
            Some(group) => &group.extra,
            None => &self.cards.first()?.extra,
        };
        extra.get("client-id")?.as_str()
    }

    /// Its cards, by identity.
    pub(super) fn identities(&self) -> Vec<Uuid> {
        self.cards.iter().map(|port| port.uuid).collect()
    }
}

impl fmt::Display for Slot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.group, self.cards.first()) {
            (Some(PortGroup { name: Some(name), .. }), _) => write!(f, "port group {name}"),
            (Some(group), _) => write!(f, "port group {}", group.uuid),
            (None, port) => write!(f, "port {}", port.map_or("of none", |port| port.address.as_str())),
        }
    }
}

/// The group of a card.
pub(super) fn group_of<'a>(node: &'a Node, port: &Port) -> Option<&'a PortGroup> {
    node.port_groups.iter().find(|group| Some(group.uuid) == port.portgroup_id)
}
