//! An example of every statement whose text depends on what is asked for.

use super::{Dialect, selected};
use crate::records::{AllocationState, ResourceKind};
use crate::store::selection::{NODE, NodeColumn, Position};
use crate::store::{AllocationSelection, Filter, Lease, PortSelection, ResourceSelection, Selection};
use uuid::Uuid;

/// What a statement may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Reads {
    /// The rows that an index has for these columns.
    Found(&'static [&'static str]),
    /// As many rows as a page has, in the order of an index.
    Page,
    /// The same, in the order of the index with this name.
    PageOf(&'static str),
    /// All rows.
    All,
}

/// A statement, and what it may read.
pub(in crate::store) struct Example {
    /// What is asked for.
    pub(in crate::store) name: String,
    pub(in crate::store) reads: Reads,
    pub(in crate::store) text: String,
}

/// An example of each.
pub(in crate::store) fn every(dialect: Dialect) -> Vec<Example> {
    let mut examples = nodes(dialect);
    examples.extend(beside_nodes());
    let leases = [1, 2].map(|epoch| Lease { node: Uuid::nil(), epoch, follows_crash: false });
    let renewed = selected::renew_all(&leases, 0);
    examples.push(Example { name: "renew_all".into(), reads: Reads::Found(&["uuid"]), text: renewed.0 });
    for (name, (text, _)) in [
        ("conductors", selected::conductors(dialect)),
        ("renew_conductor", selected::renew_conductor(dialect, Vec::new())),
    ] {
        examples.push(Example { name: name.into(), reads: Reads::All, text });
    }
    examples
}

fn column(name: &str) -> NodeColumn {
    NodeColumn::named(name).unwrap()
}

/// Filters, and what a statement with each may read.
fn filters() -> Vec<(Vec<Filter>, Reads)> {
    let is = |name: &str| Filter::IsOneOf(column(name), vec!["x".into()]);
    let several = |name: &str| Filter::IsOneOf(column(name), vec!["x".into(), "y".into()]);
    let free = vec![
        is("resource_class"),
        is("provision_state"),
        Filter::IsSet(column("instance_uuid"), false),
        Filter::Flag(column("maintenance"), false),
        Filter::Flag(column("retired"), false),
        Filter::Flag(column("protected"), false),
        Filter::HasTrait("CUSTOM_A".into()),
        Filter::IsOrHasNone(column("owner"), "x".into()),
    ];
    let failed = vec![is("fault"), Filter::Flag(column("maintenance"), true)];
    vec![
        (vec![is("uuid")], Reads::Found(&["uuid"])),
        (vec![several("uuid")], Reads::Found(&["uuid"])),
        (vec![is("name")], Reads::Found(&["name"])),
        (vec![is("instance_uuid")], Reads::Found(&["instance_uuid"])),
        (vec![is("allocation_uuid")], Reads::Found(&["allocation_uuid"])),
        (vec![is("chassis_uuid")], Reads::Found(&["chassis_uuid"])),
        (vec![is("provision_state")], Reads::Found(&["provision_state"])),
        (vec![Filter::Flag(column("console_enabled"), true)], Reads::Found(&["console_enabled"])),
        (failed, Reads::Found(&["fault"])),
        (free, Reads::Found(&["resource_class", "provision_state"])),
        (vec![], Reads::Page),
        (vec![Filter::IsSet(column("parent_node"), false)], Reads::Page),
        (vec![Filter::IsSet(column("instance_uuid"), false)], Reads::Page),
        (vec![Filter::IsSet(column("shard"), true)], Reads::Page),
        (vec![Filter::Flag(column("maintenance"), true)], Reads::Page),
        (vec![Filter::AnyIs(vec![column("owner"), column("lessee")], "x".into())], Reads::Page),
        (vec![Filter::Contains("description", "50 %".into())], Reads::Page),
        (vec![Filter::NeedsOperator(true)], Reads::PageOf("nodes_for_operators")),
        (vec![Filter::NeedsOperator(true), is("driver")], Reads::PageOf("nodes_for_operators")),
        (vec![Filter::NeedsOperator(false)], Reads::Page),
        (vec![Filter::begins_with("node-1")], Reads::Found(&["uuid"])),
        (vec![Filter::begins_with("node-1"), Filter::NeedsOperator(false)], Reads::Found(&["uuid"])),
        (vec![Filter::IsOneOf(column("name"), Vec::new())], Reads::All),
    ]
}

fn nodes(dialect: Dialect) -> Vec<Example> {
    let mut examples = Vec::new();
    let mut add = |selection: &Selection, reads: Reads| {
        for (name, (text, _)) in [
            ("identities", selected::identities(dialect, selection)),
            ("outlines", selected::outlines(dialect, selection)),
            ("documents", selected::documents(dialect, selection)),
            ("records", selected::records(dialect, selection)),
        ] {
            examples.push(Example { name: format!("{name} {selection:?}"), reads, text });
        }
    };
    for descending in [false, true] {
        for after in [None, Some(Position { value: "x".into(), uuid: Uuid::nil() })] {
            let place = Selection { descending, after, ..Selection::first(9) };
            for (filters, reads) in filters() {
                add(&Selection { filters, ..place.clone() }, reads);
            }
            for (name, _) in NODE.iter().chain([&("uuid", NodeColumn::UUID.kind)]) {
                let is_page = ["uuid", "created_at", "name", "provision_updated_at"].contains(name);
                let reads = if is_page { Reads::Page } else { Reads::All };
                add(&Selection { sort: column(name), ..place.clone() }, reads);
            }
        }
    }
    examples
}

/// Ports, allocations and resources by each set of what they can be chosen by.
fn beside_nodes() -> Vec<Example> {
    let mut examples = Vec::new();
    for chosen in 0..32_u8 {
        let is = |bit: u8| chosen & 1 << bit != 0;
        let (after, limit) = (is(0).then(Uuid::nil), 9);
        let (node, text) = (is(1).then(Uuid::nil), |bit| is(bit).then(|| "x".to_owned()));
        let address = is(2).then(|| "52:54:00:00:00:01".parse().unwrap());
        let ports = PortSelection { node, address, after, limit };
        let reads = match (is(1), is(2)) {
            (_, true) => Reads::Found(&["address"]),
            (true, false) => Reads::Found(&["node"]),
            (false, false) => Reads::Page,
        };
        examples.push(Example { name: format!("{ports:?}"), reads, text: selected::ports(&ports).0 });
        let state = is(2).then_some(AllocationState::Allocating);
        let (resource_class, owner) = (text(3), text(4));
        let allocations = AllocationSelection { node, state, resource_class, owner, after, limit };
        let reads = match (is(1), is(2)) {
            (true, _) => Reads::Found(&["node_uuid"]),
            (false, true) => Reads::Found(&["state"]),
            (false, false) => Reads::Page,
        };
        let text_of = selected::allocations(&allocations).0;
        examples.push(Example { name: format!("{allocations:?}"), reads, text: text_of });
        let resources =
            ResourceSelection { kind: ResourceKind::Chassis, node, natural_key: text(2), after, limit };
        let reads = match (is(1), is(2)) {
            (_, true) => Reads::Found(&["kind", "natural_key"]),
            (true, false) => Reads::Found(&["node", "kind"]),
            (false, false) => Reads::Found(&["kind"]),
        };
        examples.push(Example {
            name: format!("{resources:?}"),
            reads,
            text: selected::resources(&resources).0,
        });
    }
    examples
}
