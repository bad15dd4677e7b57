//! Nodes, their ports, and lists of them.

use super::{SECOND, node, session, terms, with_node};
use crate::store::*;
use farrier_conductor::model::{AgentSession, Node, Port, ProvisionState};
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) async fn nodes_are_read_with_their_ports_in_order(store: Arc<dyn Store>) {
    let second = node("b", &["52:54:00:00:00:09", "52:54:00:00:00:03"]);
    let first = node("a", &["52:54:00:00:00:05"]);
    for node in [&second, &first] {
        store.create(node).await.unwrap();
    }
    let read = store.records(&Selection::first(9)).await.unwrap();
    let mut read: Vec<_> = read.into_iter().map(|record| record.node).collect();
    read.sort_by_key(Node::label);
    assert_eq!(read, [first, second]);
}

pub(super) async fn names_and_addresses_are_unique_and_a_refused_node_leaves_nothing(store: Arc<dyn Store>) {
    store.create(&node("first", &["52:54:00:00:00:01"])).await.unwrap();
    let same_name = store.create(&node("first", &["52:54:00:00:00:02"])).await.unwrap_err();
    assert!(
        same_name.to_string().starts_with("a node with the name \"first\" already exists"),
        "{same_name}"
    );
    let same_port = node("second", &["52:54:00:00:00:03", "52:54:00:00:00:01"]);
    let same_port = store.create(&same_port).await.unwrap_err();
    assert!(
        same_port.to_string().starts_with("a port with MAC address 52:54:00:00:00:01 already"),
        "{same_port}"
    );
    assert_eq!(store.by_name("second").await.unwrap(), None);
    assert!(store.owners(&["52:54:00:00:00:03".parse().unwrap()]).await.unwrap().is_empty());
}

pub(super) async fn k01_a_node_is_not_written_with_two_ports_of_one_uuid(store: Arc<dyn Store>) {
    let mut first = node("first", &["52:54:00:00:00:01"]);
    store.create(&first).await.unwrap();
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let before = first.ports[0].clone();
    first.ports.push(Port { address: "52:54:00:00:00:02".parse().unwrap(), ..before.clone() });
    let taken = store.write(&lease, &Change::of(&first)).await.unwrap_err().to_string();
    assert!(taken.starts_with(&format!("a port with UUID {} already exists", before.uuid)), "{taken}");
    let ports = store.get(first.uuid).await.unwrap().unwrap().node.ports;
    assert_eq!(ports.iter().map(|port| &port.address).collect::<Vec<_>>(), [&before.address]);
}

pub(super) async fn an_instance_belongs_to_one_node(store: Arc<dyn Store>) {
    let mut first = with_node(&*store).await;
    let mut second = node("second", &["52:54:00:00:00:02"]);
    store.create(&second).await.unwrap();
    let instance = Uuid::new_v4();
    for node in [&mut first, &mut second] {
        node.instance_uuid.set(instance).unwrap();
    }
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    store.write(&lease, &Change::of(&first)).await.unwrap();
    let (lease, _) = store.take(second.uuid, &terms("one", 0)).await.unwrap();
    let taken = store.write(&lease, &Change::of(&second)).await.unwrap_err().to_string();
    assert!(taken.starts_with(&format!("a node with instance {instance} already exists")), "{taken}");
}

/// PostgreSQL keeps no NUL in a text, and a record has to fit into every store.
pub(super) async fn e07_a_text_with_nul_is_refused_as_such_and_nothing_is_written(store: Arc<dyn Store>) {
    let mut first = with_node(&*store).await;
    let named = node("a\0b", &[]);
    assert!(matches!(store.create(&named).await, Err(StoreError::NulCharacter)));
    assert_eq!(store.get(named.uuid).await.unwrap(), None);
    let (lease, record) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    first.owner = Some("\0".into());
    assert!(matches!(store.write(&lease, &Change::of(&first)).await, Err(StoreError::NulCharacter)));
    assert_eq!(store.get(first.uuid).await.unwrap(), Some(record.clone()));
    // What is in a document is written otherwise there.
    first.owner = None;
    first.description = Some("\0".into());
    let said = session("secret");
    let change = Change { session: SessionChange::Replace(&said), ..Change::of(&first) };
    store.write(&lease, &change).await.unwrap();
    assert_eq!(store.get(first.uuid).await.unwrap().unwrap().node.description, first.description);
    let heard = AgentSession { agent_status_message: Some("half\0done".into()), ..said.clone() };
    assert!(matches!(store.hear(first.uuid, &heard).await, Err(StoreError::NulCharacter)));
    assert_eq!(store.get(first.uuid).await.unwrap().unwrap().session, said);
    let found = Selection::all(vec![Filter::Contains("description", "x".into())]);
    assert!(store.identities(&found).await.unwrap().is_empty());
}

pub(super) async fn nodes_without_a_name_are_many_and_their_ports_come_and_go(store: Arc<dyn Store>) {
    let mut first = with_node(&*store).await;
    let nameless = || Node { name: None, ..node("x", &[]) };
    let (second, third) = (nameless(), nameless());
    store.create(&second).await.unwrap();
    store.create(&third).await.unwrap();
    assert_eq!(store.get(third.uuid).await.unwrap().unwrap().node, third);

    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let port = |text: &str, name: Option<&str>| Port {
        name: name.map(str::to_owned),
        ..Port::new(text.parse().unwrap())
    };
    first.ports.push(port("52:54:00:00:00:07", Some("left")));
    first.ports.push(port("52:54:00:00:00:08", None));
    store.write(&lease, &Change::of(&first)).await.unwrap();
    let created_at = Some(first.updated_at);
    first.ports.iter_mut().for_each(|port| port.created_at = created_at);
    assert_eq!(store.get(first.uuid).await.unwrap().unwrap().node.ports, first.ports);
    assert_eq!(store.port("left").await.unwrap().unwrap().port, first.ports[1]);

    first.ports.remove(0);
    first.ports[0].address = "52:54:00:00:00:09".parse().unwrap();
    first.ports[0].extra.insert("a".into(), json!(1));
    store.write(&lease, &Change::of(&first)).await.unwrap();
    assert_eq!(store.get(first.uuid).await.unwrap().unwrap().node.ports, first.ports);
    let all = PortSelection { node: None, address: None, after: None, limit: 9 };
    assert_eq!(store.ports(&all).await.unwrap().len(), 2);
    let one = PortSelection { address: Some("52:54:00:00:00:08".parse().unwrap()), ..all.clone() };
    let owned = OwnedPort { node: first.uuid, port: first.ports[1].clone() };
    assert_eq!(store.ports(&one).await.unwrap(), [owned]);
    assert!(store.ports(&PortSelection { node: Some(second.uuid), ..all.clone() }).await.unwrap().is_empty());

    // Names and addresses belong to one port, and what is refused leaves everything as it was.
    let stored = store.get(first.uuid).await.unwrap().unwrap().node.ports;
    for (port, what) in [
        (port("52:54:00:00:00:0a", Some("left")), "a port with the name \"left\""),
        (port("52:54:00:00:00:08", None), "a port with MAC address 52:54:00:00:00:08"),
    ] {
        let mut more = first.clone();
        more.ports.push(port);
        let error = store.write(&lease, &Change::of(&more)).await.unwrap_err().to_string();
        assert!(error.starts_with(what), "{error}");
        assert_eq!(store.get(first.uuid).await.unwrap().unwrap().node.ports, stored);
    }
}

/// What operators are shown is not read as a record first.
pub(super) async fn what_is_kept_of_a_node_is_all_of_it(store: Arc<dyn Store>) {
    let mut first = with_node(&*store).await;
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    (first.maintenance, first.description) = (true, Some("by the door".into()));
    first.driver_internal_info.others.insert("vendor_note".into(), json!({"deep": [1]}));
    let session = session("secret");
    let change = Change { session: SessionChange::Replace(&session), ..Change::of(&first) };
    store.write(&lease, &change).await.unwrap();
    let kept = store.documents(&Selection::first(9)).await.unwrap();
    let [(outline, documents)] = &kept[..] else { panic!("{kept:?}") };
    let record = store.get(first.uuid).await.unwrap().unwrap();
    let Value::Object(mut expected) = serde_json::to_value(&record.node).unwrap() else { unreachable!() };
    expected.remove("ports");
    let columns = outline.fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let texts = documents.node().unwrap().into_iter();
    let document = texts.map(|(name, text)| (name.to_owned(), serde_json::from_str(text.get()).unwrap()));
    assert_eq!(columns.chain(document).collect::<serde_json::Map<_, _>>(), expected);
    let said = |session: Value| {
        let Value::Object(session) = session else { panic!("{session}") };
        session.into_iter().filter(|(_, value)| !value.is_null()).collect::<Vec<_>>()
    };
    assert_eq!(said(json!(documents.session().unwrap())), said(json!(record.session)));
    assert_eq!((outline.uuid, outline.lease_expires_at), (first.uuid, record.lease_expires_at));
}

pub(super) async fn lists_are_filtered_sorted_and_gone_through_in_parts(store: Arc<dyn Store>) {
    let mut names = Vec::new();
    for number in 0..20 {
        let mut node = node(&format!("n{number:02}"), &[]);
        node.resource_class = (number % 3 > 0).then(|| format!("c{}", number % 3));
        node.maintenance = number % 2 == 1;
        node.created_at += SECOND * f64::from(20 - number);
        names.push(node.label());
        store.create(&node).await.unwrap();
    }
    let column = |name| NodeColumn::named(name).unwrap();
    let walk = async |selection: Selection, field: &str| {
        let (mut found, mut selection) = (Vec::new(), selection);
        loop {
            let part = store.outlines(&selection).await.unwrap();
            let records = store.records(&selection).await.unwrap();
            assert!(records.iter().map(|record| record.node.uuid).eq(part.iter().map(|one| one.uuid)));
            let Some(last) = part.last() else { return found };
            let value = last.field(selection.sort.name()).cloned().unwrap();
            selection.after = Some(Position { value, uuid: last.uuid });
            found.extend(part.iter().map(|one| text(one, field)));
        }
    };
    let by_name = Selection { sort: column("name"), ..Selection::first(3) };
    assert_eq!(walk(by_name.clone(), "name").await, names.iter().cloned().map(Some).collect::<Vec<_>>());
    let mut oldest_first = walk(Selection::first(7), "name").await;
    oldest_first.reverse();
    assert_eq!(oldest_first, names.iter().cloned().map(Some).collect::<Vec<_>>());
    for descending in [false, true] {
        let by_class = Selection { sort: column("resource_class"), descending, ..Selection::first(4) };
        let mut classes = walk(by_class, "resource_class").await;
        assert_eq!(classes.len(), 20);
        if descending {
            classes.reverse();
        }
        assert!(classes.is_sorted(), "{classes:?}");
        let by_flag = Selection { sort: column("maintenance"), descending, ..Selection::first(6) };
        assert_eq!(walk(by_flag, "name").await.len(), 20);
    }
    for (filters, expected) in [
        (vec![Filter::Flag(column("maintenance"), true)], 10),
        (vec![Filter::IsSet(column("resource_class"), false)], 7),
        (vec![Filter::IsOneOf(column("resource_class"), vec!["c1".into(), "c2".into()])], 13),
        (vec![Filter::IsOneOf(column("resource_class"), vec![])], 0),
        (
            vec![
                Filter::Flag(column("maintenance"), false),
                Filter::IsOneOf(column("resource_class"), vec!["c1".into()]),
            ],
            3,
        ),
        (vec![Filter::IsOneOf(column("name"), vec!["' OR 1 = 1 --".into()])], 0),
        (vec![Filter::NeedsOperator(true)], 10),
        (vec![Filter::NeedsOperator(false)], 10),
    ] {
        let found = walk(Selection { filters: filters.clone(), ..by_name.clone() }, "name").await;
        assert_eq!(found.len(), expected, "{filters:?}");
    }
}

pub(super) async fn a_node_goes_with_everything_that_belongs_to_it(store: Arc<dyn Store>) {
    let first = with_node(&*store).await;
    let ports: Vec<_> = first.ports.iter().map(|port| port.address.clone()).collect();
    assert_eq!(store.owners(&ports).await.unwrap(), [first.uuid]);
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let change = Change { config_drive: ConfigDrive::Put("H4sI"), ..Change::of(&first) };
    store.write(&lease, &change).await.unwrap();
    store.delete(&lease).await.unwrap();
    assert!(store.owners(&ports).await.unwrap().is_empty());
    assert_eq!(store.get(first.uuid).await.unwrap(), None);
    assert_eq!(store.config_drive(first.uuid).await.unwrap(), None);
    assert!(store.identities(&Selection::all(Vec::new())).await.unwrap().is_empty());
    assert!(matches!(store.delete(&lease).await, Err(StoreError::Gone(_))));
    assert!(matches!(store.write(&lease, &Change::of(&first)).await, Err(StoreError::Gone(_))));
    assert!(matches!(store.take(first.uuid, &terms("one", 0)).await, Err(StoreError::Gone(_))));
}

pub(super) async fn l03_nodes_are_found_by_traits_and_addresses_of_their_bmcs(store: Arc<dyn Store>) {
    let mut first = node("first", &[]);
    let second = Node { traits: vec!["CUSTOM_A".into()], ..node("second", &[]) };
    first.traits = vec!["CUSTOM_A".into(), "CUSTOM_B".into()];
    first.provision_state = ProvisionState::InspectWait;
    for node in [&first, &second] {
        store.create(node).await.unwrap();
    }
    let with_traits = async |names: &[&str]| {
        let filters = names.iter().map(|name| Filter::HasTrait((*name).to_owned())).collect();
        store.identities(&Selection::all(filters)).await.unwrap().len()
    };
    assert_eq!(with_traits(&["CUSTOM_A"]).await, 2);
    assert_eq!(with_traits(&["CUSTOM_A", "CUSTOM_B"]).await, 1);
    let at = async |address: &str| store.at_bmc(&[address.parse().unwrap()]).await.unwrap();
    assert_eq!(at("198.51.100.1").await, Vec::<Uuid>::new());
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    let note = json!(["198.51.100.1", "2001:db8::1"]);
    first.driver_internal_info.others.insert("lookup_bmc_addresses".into(), note);
    first.traits.pop();
    store.write(&lease, &Change::of(&first)).await.unwrap();
    assert_eq!((at("198.51.100.1").await, at("2001:db8::1").await), (vec![first.uuid], vec![first.uuid]));
    assert_eq!(at("198.51.100.2").await, Vec::<Uuid>::new());
    assert_eq!(with_traits(&["CUSTOM_B"]).await, 0);
    first.provision_state = ProvisionState::Manageable;
    store.write(&lease, &Change::of(&first)).await.unwrap();
    assert_eq!(at("198.51.100.1").await, Vec::<Uuid>::new(), "it waits for no ramdisk");
}

pub(super) async fn nodes_are_found_by_the_beginning_of_what_names_them(store: Arc<dyn Store>) {
    let mut named = node("Rack1-u07", &["52:54:00:ab:00:01", "52:54:00:ab:00:02"]);
    named.instance_uuid.set("0badcafe-0000-4000-8000-000000000001".parse().unwrap()).unwrap();
    let nameless = Node { name: None, ..node("", &["52:54:00:cd:00:01"]) };
    for node in [&named, &nameless] {
        store.create(node).await.unwrap();
    }
    let uuid = |node: &Node, length: usize| node.uuid.to_string()[..length].to_owned();
    for (start, expected) in [
        ("Rack1-u07", vec![&named]),
        ("Rack1", vec![&named]),
        ("rack1", vec![]),
        ("ack1", vec![]),
        (&uuid(&named, 12), vec![&named]),
        (&uuid(&nameless, 36).to_uppercase(), vec![&nameless]),
        ("0badcafe-0000-4", vec![&named]),
        ("52:54:00:ab", vec![&named]),
        ("52-54-00-CD", vec![&nameless]),
        ("%", vec![]),
        ("' OR 1 = 1 --", vec![]),
        ("\u{10FFFF}", vec![]),
    ] {
        let selection = Selection::all(vec![Filter::begins_with(start)]);
        let expected: Vec<_> = expected.iter().map(|node| node.uuid).collect();
        assert_eq!(store.identities(&selection).await.unwrap(), expected, "{start}");
    }
    let both = Selection::all(vec![Filter::begins_with("52:54")]);
    assert_eq!(store.identities(&both).await.unwrap().len(), 2);
}

pub(super) async fn nodes_are_counted_by_shard(store: Arc<dyn Store>) {
    for (name, shard) in [("a", None), ("b", Some("s1")), ("c", Some("s1"))] {
        store.create(&Node { shard: shard.map(str::to_owned), ..node(name, &[]) }).await.unwrap();
    }
    let mut counted = store.shards().await.unwrap();
    counted.sort();
    assert_eq!(counted, [(None, 1), (Some("s1".into()), 2)]);
}

pub(super) async fn k41_a_list_has_the_columns_that_it_asks_for(store: Arc<dyn Store>) {
    let first = with_node(&*store).await;
    let columns = vec![NodeColumn::NAME, NodeColumn::named("maintenance").unwrap()];
    let selection = Selection { columns, ..Selection::first(9) };
    let [outline] = &store.outlines(&selection).await.unwrap()[..] else { panic!("one node") };
    let mut fields = outline.fields.clone();
    fields.sort_by_key(|(name, _)| *name);
    let expected = [
        ("maintenance", json!(false)),
        ("name", json!("first")),
        ("reservation", Value::Null),
        ("uuid", json!(first.uuid)),
    ];
    assert_eq!(fields, expected);
}

pub(super) async fn l01_a_revision_changes_with_everything_that_a_worker_looks_at(store: Arc<dyn Store>) {
    let first = with_node(&*store).await;
    let mut seen = Vec::new();
    let mut look = async || {
        let revision = store.revision(first.uuid).await.unwrap().unwrap();
        assert!(!seen.contains(&revision), "{revision:?}");
        seen.push(revision);
    };
    look().await;
    let (lease, _) = store.take(first.uuid, &terms("one", 0)).await.unwrap();
    look().await;
    let session = session("secret");
    let session = SessionChange::Replace(&session);
    store.write(&lease, &Change { session, ..Change::of(&first) }).await.unwrap();
    look().await;
    store.write(&lease, &Change { ends_lease: true, ..Change::of(&first) }).await.unwrap();
    look().await;
    assert!(store.hear(first.uuid, &super::session("secret")).await.unwrap());
    look().await;
    assert_eq!(store.revision(Uuid::nil()).await.unwrap(), None);
}

fn text(outline: &Outline, field: &str) -> Option<String> {
    outline.field(field)?.as_str().map(str::to_owned)
}
