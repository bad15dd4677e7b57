//! Which of the conductors that live leads a node: a pure function of their records and the node's.

use super::rendezvous::draw;
use crate::store::{ConductorRecord, OfferedHardware};
use farrier_conductor::model::{InterfaceKind, Node};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use uuid::Uuid;

/// The conductors that live.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Members(Vec<Member>);

/// A conductor that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) conductor_group: String,
    pub(crate) hardware: OfferedHardware,
}

/// What a node needs of a conductor that leads it.
#[derive(Debug, Clone)]
pub(crate) struct Needs<'a> {
    node: Uuid,
    driver: &'a str,
    conductor_group: &'a str,
    interfaces: Vec<(InterfaceKind, &'a str)>,
    /// What its instance wants in their place.
    of_instance: Vec<(InterfaceKind, &'a str)>,
}

impl<'a> From<&'a Node> for Needs<'a> {
    fn from(node: &'a Node) -> Self {
        let interface = |kind: &InterfaceKind| Some((*kind, node.interfaces.get(*kind)?));
        let of_instance =
            |kind: &InterfaceKind| Some((*kind, node.instance_info.text(&kind.field()).ok().flatten()?));
        let interfaces = InterfaceKind::ALL.iter().filter_map(interface).collect();
        let of_instance = InterfaceKind::ALL.iter().filter_map(of_instance).collect();
        let Node { uuid, driver, conductor_group, .. } = node;
        Self { node: *uuid, driver, conductor_group, interfaces, of_instance }
    }
}

impl<'a> Needs<'a> {
    /// What a node needs whose columns are known, with the fields of its record beside them.
    pub(crate) fn of_fields(
        (node, driver, conductor_group): (Uuid, &'a str, &'a str),
        fields: &'a Map<String, Value>,
    ) -> Self {
        let named = |fields: &'a Map<String, Value>| {
            let interface = |kind: &InterfaceKind| Some((*kind, fields.get(&kind.field())?.as_str()?));
            InterfaceKind::ALL.iter().filter_map(interface).collect()
        };
        let instance_info = fields.get("instance_info").and_then(Value::as_object);
        let (interfaces, of_instance) = (named(fields), instance_info.map(named).unwrap_or_default());
        Self { node, driver, conductor_group, interfaces, of_instance }
    }
}

/// Why no conductor leads a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unserved {
    /// No conductor that runs leads its conductor group.
    #[error("no conductor runs that leads {}; give a conductor this --conductor-group, or change the node's", group(.0))]
    Group(
        /// The conductor group, which may be empty.
        String,
    ),
    /// No conductor that runs and leads its group has its hardware type.
    #[error("no conductor runs that leads {} and has hardware type {driver:?}; start one with it", group(.conductor_group))]
    Driver {
        /// The hardware type of the node.
        driver: String,
        /// Its conductor group, which may be empty.
        conductor_group: String,
    },
    /// None of those has an interface that it needs.
    #[error(
        "no conductor runs that leads {} and has {kind} interface {name:?} for hardware type {driver:?}; enable it, or \
         choose another {kind}_interface",
        group(.conductor_group)
    )]
    Interface {
        /// What the interface is for.
        kind: InterfaceKind,
        /// The interface of the node.
        name: String,
        /// The hardware type of the node.
        driver: String,
        /// Its conductor group, which may be empty.
        conductor_group: String,
    },
}

fn group(name: &str) -> String {
    match name {
        "" => "nodes without a conductor group".to_owned(),
        name => format!("conductor group {name:?}"),
    }
}

impl From<&ConductorRecord> for Member {
    fn from(record: &ConductorRecord) -> Self {
        let ConductorRecord { name, conductor_group, hardware, .. } = record.clone();
        Self { name, conductor_group, hardware }
    }
}

impl Member {
    /// Whether it has a node's hardware type, and the interfaces without which the node cannot be worked on. Its group does
    /// not matter.
    pub(crate) fn drives(&self, needs: &Needs<'_>) -> bool {
        self.lacking(needs).is_some_and(|lacking| lacking.is_none())
    }

    /// The first interface that it lacks of those without which a node cannot be worked on; nothing without the node's hardware
    /// type.
    fn lacking<'a>(&self, needs: &Needs<'a>) -> Option<Option<(InterfaceKind, &'a str)>> {
        let offered = self.hardware.get(needs.driver)?;
        let mut needed = needs.interfaces.iter().filter(|(kind, _)| is_needed(*kind));
        Some(needed.find(|interface| !has(offered, interface)).copied())
    }

    /// Whether it has every interface of a node and of its instance.
    fn has_all(&self, needs: &Needs<'_>) -> bool {
        let offered = self.hardware.get(needs.driver);
        let mut wanted = needs.interfaces.iter().chain(&needs.of_instance);
        offered.is_some_and(|offered| wanted.all(|interface| has(offered, interface)))
    }
}

fn has(offered: &BTreeMap<InterfaceKind, Vec<String>>, (kind, name): &(InterfaceKind, &str)) -> bool {
    offered.get(kind).is_some_and(|enabled| enabled.iter().any(|one| one == name))
}

/// Whether a node whose interface of a kind is missing cannot be worked on at all.
fn is_needed(kind: InterfaceKind) -> bool {
    kind.is_mandatory() || kind == InterfaceKind::Boot
}

impl Members {
    /// These.
    pub(crate) fn new(members: impl IntoIterator<Item = Member>) -> Self {
        Self(members.into_iter().collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.0.iter()
    }

    /// The name of the conductor that leads a node: one of its group that has its hardware type and the interfaces without
    /// which it cannot be worked on. One that has its other interfaces too comes before one that lacks any.
    ///
    /// # Errors
    ///
    /// Why none does.
    pub(crate) fn leader(&self, needs: &Needs<'_>) -> Result<&str, Unserved> {
        let candidates = self.candidates(needs.driver, needs.conductor_group)?;
        let able = candidates.iter().filter(|member| member.drives(needs));
        let leader = able.max_by_key(|member| (member.has_all(needs), draw(&member.name, needs.node)));
        leader.map(|member| &*member.name).ok_or_else(|| {
            let lacking = candidates.iter().find_map(|member| member.lacking(needs).flatten());
            let (kind, name) = lacking.unwrap_or((InterfaceKind::Power, ""));
            let (driver, conductor_group) = (needs.driver.to_owned(), needs.conductor_group.to_owned());
            Unserved::Interface { kind, name: name.to_owned(), driver, conductor_group }
        })
    }

    /// As [`Self::leader`], of a node of which its columns are known. Nothing where the leader hangs on its interfaces,
    /// because not all conductors with its hardware type have the same ones.
    pub(crate) fn leader_by_columns(
        &self,
        node: Uuid,
        driver: &str,
        conductor_group: &str,
    ) -> Option<Result<&str, Unserved>> {
        let candidates = match self.candidates(driver, conductor_group) {
            Ok(candidates) => candidates,
            Err(unserved) => return Some(Err(unserved)),
        };
        let mut offered = candidates.iter().map(|member| member.hardware.get(driver));
        let first = offered.next()?;
        let leader = candidates.iter().max_by_key(|member| draw(&member.name, node))?;
        offered.all(|other| other == first).then_some(Ok(&leader.name))
    }

    /// Those of a group that have a hardware type: at least one.
    fn candidates(&self, driver: &str, conductor_group: &str) -> Result<Vec<&Member>, Unserved> {
        let of_group = || self.0.iter().filter(|member| member.conductor_group == conductor_group);
        if of_group().next().is_none() {
            return Err(Unserved::Group(conductor_group.to_owned()));
        }
        let candidates: Vec<_> = of_group().filter(|member| member.hardware.contains_key(driver)).collect();
        match candidates.is_empty() {
            false => Ok(candidates),
            true => Err(Unserved::Driver {
                driver: driver.to_owned(),
                conductor_group: conductor_group.to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::NewNode;
    use time::OffsetDateTime;

    /// The interfaces of each kind that a hardware type has.
    type Kinds<'a> = &'a [(InterfaceKind, &'a [&'a str])];

    fn member(name: &str, group: &str, drivers: &[(&str, Kinds<'_>)]) -> Member {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let of = |kinds: Kinds<'_>| {
            kinds.iter().map(|(kind, names)| (*kind, owned(names))).collect::<BTreeMap<_, _>>()
        };
        let hardware = drivers.iter().map(|(driver, kinds)| ((*driver).to_owned(), of(kinds))).collect();
        Member { name: name.into(), conductor_group: group.into(), hardware }
    }

    fn node(driver: &str, group: &str, interfaces: &[(InterfaceKind, &str)]) -> Node {
        let new = NewNode { driver: driver.into(), ..NewNode::default() };
        let mut node = Node::enrol(new, OffsetDateTime::UNIX_EPOCH);
        node.conductor_group = group.into();
        interfaces.iter().for_each(|(kind, name)| node.interfaces.set(*kind, *name));
        node
    }

    /// A node is led by none but one that has what it needs, whatever the numbers say.
    #[test]
    fn e08_a_node_is_led_where_its_group_driver_and_interfaces_are() {
        use InterfaceKind::{Power, Rescue};
        let strip: Kinds<'_> = &[(Power, &["strip"])];
        let both: Kinds<'_> = &[(Power, &["strip", "ipmi"]), (Rescue, &["agent"])];
        let members = Members::new([
            member("a", "", &[("rack", strip)]),
            member("b", "", &[("rack", both), ("bare", strip)]),
            member("c", "r1", &[("bare", strip)]),
        ]);
        for _ in 0..50 {
            for (driver, group, interfaces, expected) in [
                ("bare", "", &[][..], Ok("b")),
                ("bare", "r1", &[], Ok("c")),
                ("rack", "", &[(Power, "ipmi")], Ok("b")),
                // Without its rescue interface it can be worked on; with it is better.
                ("rack", "", &[(Power, "strip"), (Rescue, "agent")], Ok("b")),
                ("bare", "", &[(Power, "strip"), (Rescue, "agent")], Ok("b")),
                ("bare", "r2", &[], Err("no conductor runs that leads conductor group \"r2\";")),
                (
                    "rack",
                    "r1",
                    &[],
                    Err("no conductor runs that leads conductor group \"r1\" and has hardware type"),
                ),
                ("bar", "", &[], Err("leads nodes without a conductor group and has hardware type \"bar\"")),
                ("bare", "", &[(Power, "ipmi")], Err("has power interface \"ipmi\" for hardware type")),
            ] {
                let node = node(driver, group, interfaces);
                let leader = members.leader(&Needs::from(&node));
                match expected {
                    Ok(name) => assert_eq!(leader, Ok(name), "{driver} {group} {interfaces:?}"),
                    Err(text) => {
                        let said = leader.unwrap_err().to_string();
                        assert!(said.contains(text), "{said}");
                    }
                }
            }
        }
    }

    #[test]
    fn e08_columns_tell_the_same_leader_or_none() {
        use InterfaceKind::Power;
        let strip: Kinds<'_> = &[(Power, &["strip"])];
        let both: Kinds<'_> = &[(Power, &["strip", "ipmi"])];
        let members = Members::new([
            member("a", "", &[("rack", strip), ("bare", strip)]),
            member("b", "", &[("rack", both), ("bare", strip)]),
        ]);
        for _ in 0..50 {
            let node = node("bare", "", &[(Power, "strip")]);
            let by_columns = members.leader_by_columns(node.uuid, "bare", "");
            assert_eq!(by_columns, Some(members.leader(&Needs::from(&node))));
            let fields = serde_json::to_value(&node).unwrap();
            let needs = Needs::of_fields((node.uuid, "bare", ""), fields.as_object().unwrap());
            assert_eq!(members.leader(&needs), members.leader(&Needs::from(&node)));
            assert_eq!(members.leader_by_columns(node.uuid, "rack", ""), None);
            assert!(members.leader_by_columns(node.uuid, "rack", "r1").unwrap().is_err());
        }
    }
}
