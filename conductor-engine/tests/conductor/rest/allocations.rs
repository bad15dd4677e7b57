//! Allocations: a free node that is as wanted.

use crate::stand_ins::agent::Script;
use crate::stand_ins::gate::{Gate, GatedStore};
use crate::stand_ins::machine::FakeMachine;
use crate::stand_ins::operator::{ask, ask_in, get, set};
use crate::stand_ins::stage::{PATIENCE, Stage, change_node, fault, image, new_node, quick};
use farrier_conductor::Settings;
use farrier_conductor::model::{Node, ProvisionState};
use farrier_engine::Conductor;
use farrier_engine::records::{Allocation, AllocationState};
use farrier_engine::store::NodeStore;
use farrier_engine::store::sqlite::SqliteStore;
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

/// An allocation once it has been decided on.
async fn decided(stage: &Stage, uuid: &Value) -> Value {
    let path = format!("/v1/allocations/{}", uuid.as_str().unwrap());
    let end = std::time::Instant::now() + PATIENCE;
    loop {
        let allocation = get(stage, &path).await;
        if allocation["state"] != "allocating" {
            return allocation;
        }
        assert!(std::time::Instant::now() < end, "waited for a node, but {allocation}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_allocation_takes_a_free_node_that_is_as_wanted_and_no_other_does() {
    let stage = Stage::with(Script::default(), |settings| settings.automated_clean = false).await;
    stage.change_node(|node| node.resource_class = Some("iron".into())).await;
    let want = async |body: Value| ask(&stage, Method::POST, "/v1/allocations", &body).await;
    for (body, status) in [
        (json!({}), 400),
        (json!({"resource_class": "iron", "nonsense": 1}), 400),
        (json!({"resource_class": "iron", "candidate_nodes": ["none"]}), 400),
        (json!({"resource_class": "iron", "state": "active"}), 400),
        (json!({"resource_class": "iron", "name": "a b"}), 400),
    ] {
        assert_eq!(want(body.clone()).await.status(), status, "{body}");
    }
    let gold: Value = want(json!({"resource_class": "gold"})).await.json().await.unwrap();
    let gold = decided(&stage, &gold["uuid"]).await;
    assert_eq!((&gold["state"], &gold["node_uuid"]), (&json!("error"), &json!(null)));
    assert!(gold["last_error"].as_str().unwrap().contains("\"gold\""), "{gold}");

    // Of many that want the only node, one gets it.
    let mut all = Vec::new();
    for number in 0..8 {
        let body = json!({"resource_class": "iron", "name": format!("a{number}"), "candidate_nodes": ["n1"]});
        let reply = want(body).await;
        assert_eq!(reply.status(), 201);
        all.push(reply.json::<Value>().await.unwrap()["uuid"].clone());
    }
    let mut active = Vec::new();
    for uuid in &all {
        let allocation = decided(&stage, uuid).await;
        active.extend((allocation["state"] == "active").then_some(allocation));
    }
    let [allocation] = active.as_slice() else { panic!("{active:?}") };
    let node = get(&stage, "/v1/nodes/n1").await;
    assert_eq!(
        (&node["allocation_uuid"], &node["instance_uuid"]),
        (&allocation["uuid"], &allocation["uuid"])
    );
    assert_eq!(allocation["node_uuid"], node["uuid"]);
    assert_eq!(get(&stage, "/v1/nodes/n1/allocation").await, *allocation);
    for (query, count) in
        [("", 9), ("node=n1", 1), ("state=error", 8), ("resource_class=gold", 1), ("limit=4", 4)]
    {
        let list = get(&stage, &format!("/v1/allocations?{query}")).await;
        assert_eq!(list["allocations"].as_array().unwrap().len(), count, "{query}");
    }
    let path = format!("/v1/allocations/{}", allocation["uuid"].as_str().unwrap());
    let patch = json!([{"op": "replace", "path": "/name", "value": "web"}, {"op": "add", "path": "/extra/a", "value": 1}]);
    assert_eq!(ask(&stage, Method::PATCH, &path, &patch).await.status(), 200);
    assert_eq!(get(&stage, "/v1/allocations/web").await["extra"], json!({"a": 1}));
    let state = json!([{"op": "replace", "path": "/state", "value": "error"}]);
    assert_eq!(ask(&stage, Method::PATCH, &path, &state).await.status(), 400);
    assert_eq!(ask_in("1.51", &stage, Method::GET, "/v1/allocations", &Value::Null).await.status(), 404);

    // While its instance runs it stays; it ends with it.
    set(&stage, "n1", &json!({"/instance_info": image()})).await;
    let provision = "/v1/nodes/n1/states/provision";
    assert_eq!(ask(&stage, Method::PUT, provision, &json!({"target": "active"})).await.status(), 202);
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(ask(&stage, Method::DELETE, &path, &Value::Null).await.status(), 409);
    stage.idle().await;
    assert_eq!(ask(&stage, Method::PUT, provision, &json!({"target": "deleted"})).await.status(), 202);
    stage.wait_for(ProvisionState::Available).await;
    assert_eq!(ask(&stage, Method::GET, &path, &Value::Null).await.status(), 404);

    // One that was never used frees its node.
    stage.change_node(|node| node.traits = vec!["CUSTOM_A".into()]).await;
    let again = json!({"resource_class": "iron", "traits": ["CUSTOM_A"]});
    let again: Value = want(again).await.json().await.unwrap();
    assert_eq!(decided(&stage, &again["uuid"]).await["state"], "active");
    let node = get(&stage, "/v1/nodes/n1").await;
    assert_eq!(node["instance_info"]["traits"], json!(["CUSTOM_A"]), "its deployment is to have them");
    assert_eq!(ask(&stage, Method::DELETE, "/v1/nodes/n1/allocation", &Value::Null).await.status(), 204);
    let node = get(&stage, "/v1/nodes/n1").await;
    assert_eq!((&node["allocation_uuid"], &node["instance_uuid"]), (&json!(null), &json!(null)));
    assert_eq!(node["instance_info"], json!({}));
}

#[tokio::test]
async fn an_allocation_is_written_down_for_a_node_that_has_its_instance_already() {
    let stage = Stage::new(Script::default()).await;
    stage.change_node(|node| node.resource_class = Some("iron".into())).await;
    let backfill = async |body: Value| ask(&stage, Method::POST, "/v1/allocations", &body).await;
    assert_eq!(backfill(json!({"node": "n1"})).await.status(), 409, "it is available");
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    stage.idle().await;
    let early = json!({"node": "n1"});
    assert_eq!(ask_in("1.57", &stage, Method::POST, "/v1/allocations", &early).await.status(), 406);
    for (body, part) in [
        (json!({"node": "none"}), "node: node \"none\" does not exist"),
        (json!({"node": "n1", "resource_class": "gold"}), "another resource class"),
        (json!({"node": "n1", "traits": ["CUSTOM_A"]}), "lacks traits"),
    ] {
        let refused = backfill(body.clone()).await;
        assert_eq!(refused.status(), 400, "{body}");
        let text = fault(refused).await;
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
    let reply = backfill(json!({"node": "n1", "name": "web"})).await;
    assert_eq!(reply.status(), 201);
    let made: Value = reply.json().await.unwrap();
    assert_eq!((&made["state"], &made["resource_class"]), (&json!("active"), &json!("iron")));
    let node = get(&stage, "/v1/nodes/n1").await;
    assert_eq!((&node["allocation_uuid"], &node["instance_uuid"]), (&made["uuid"], &made["uuid"]));
    assert_eq!(backfill(json!({"node": "n1"})).await.status(), 409, "it was taken");
}

/// A conductor whose tasks nobody runs but the test, with free nodes of the class `iron`, and its store behind a gate.
struct Site {
    store: Arc<SqliteStore>,
    gate: Arc<GatedStore>,
    conductor: Conductor,
    nodes: Vec<Uuid>,
    _folder: tempfile::TempDir,
}

impl Site {
    async fn new(nodes: u8) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap());
        let settings = quick("http://127.0.0.1:1");
        let gate = GatedStore::new(store.clone(), Gate::Open, settings.clone());
        let drivers = FakeMachine::new(Script::default()).drivers();
        let conductor = Conductor::builder(settings, gate.clone(), drivers).start().await.unwrap();
        let mut site = Self { store, gate, conductor, nodes: Vec::new(), _folder: folder };
        for number in 1..=nodes {
            let new = new_node(&format!("n{number}"), &format!("52:54:00:00:00:{number:02x}"));
            let uuid = site.conductor.create_node(new).await.unwrap().uuid;
            change_node(&site.store, uuid, |node| {
                node.resource_class = Some("iron".into());
                node.provision_state = ProvisionState::Available;
            })
            .await;
            site.nodes.push(uuid);
        }
        site
    }

    /// Creates an allocation of any node of the class, for which a task looks from now on.
    async fn allocate(&self) -> Uuid {
        let wanted = json!({"uuid": Uuid::new_v4(), "state": "allocating", "resource_class": "iron",
            "created_at": "2026-11-27T00:00:00Z"});
        let wanted = serde_json::from_value(wanted).unwrap();
        self.conductor.catalogue().create_allocation(wanted).await.unwrap().uuid
    }

    /// An allocation once it has been decided on.
    async fn decided(&self, uuid: Uuid) -> Allocation {
        let end = std::time::Instant::now() + PATIENCE;
        loop {
            let allocation = self.conductor.catalogue().allocation(&uuid.to_string()).await.unwrap();
            if allocation.state != AllocationState::Allocating {
                return allocation;
            }
            assert!(std::time::Instant::now() < end, "waited for a node");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    async fn node(&self, uuid: Uuid) -> Node {
        self.store.get(uuid).await.unwrap().unwrap().node
    }
}

/// The task that created an allocation and the periodic one look for its node at the same time: the second has seen no node
/// with the allocation, and then no free node, since the first has taken it in between.
#[tokio::test]
async fn an_allocation_whose_node_another_task_takes_meanwhile_is_no_error() {
    let site = Site::new(1).await;
    // The first listing looks whether an instance has the UUID, the second for the node of the allocation.
    site.gate.set(Gate::HangsAfterListing(2));
    let allocation = site.allocate().await;
    site.gate.stops().await;
    change_node(&site.store, site.nodes[0], |node| {
        node.instance_uuid.set(allocation).unwrap();
        node.allocation_uuid = Some(allocation);
    })
    .await;
    site.gate.set(Gate::Open);
    let decided = site.decided(allocation).await;
    assert_eq!((decided.last_error, decided.node_uuid), (None, Some(site.nodes[0])));
}

#[tokio::test]
async fn e11_a_node_that_cannot_be_read_keeps_no_other_from_an_allocation() {
    let site = Site::new(2).await;
    site.gate.set(Gate::Damages(site.nodes[0]));
    let allocation = site.allocate().await;
    let decided = site.decided(allocation).await;
    assert_eq!((decided.last_error, decided.node_uuid), (None, Some(site.nodes[1])));
}

/// The node was given to an allocation that does not know of it yet.
#[tokio::test]
async fn e11_an_allocation_that_is_deleted_while_it_takes_a_node_gives_the_node_back() {
    let site = Site::new(1).await;
    // The lease is taken, and the node written.
    site.gate.set(Gate::HangsAfter(site.gate.writes() + 2));
    let allocation = site.allocate().await;
    site.gate.stops().await;
    assert_eq!(site.node(site.nodes[0]).await.allocation_uuid, Some(allocation));
    let settings = Settings { conductor_name: "other".into(), ..quick("http://127.0.0.1:1") };
    let other = FakeMachine::new(Script::default()).conductor(settings, site.store.clone());
    let other = other.start().await.unwrap();
    other.catalogue().delete_allocation(&allocation.to_string()).await.unwrap();
    site.gate.set(Gate::Open);
    let node = site.node(site.nodes[0]).await;
    assert_eq!((node.allocation_uuid, node.instance_uuid.get()), (None, None));
    // The node may be taken as soon as the first task has ended.
    let runner = site.conductor.clone();
    tokio::spawn(async move { runner.run().await });
    let next = site.allocate().await;
    assert_eq!(site.decided(next).await.node_uuid, Some(site.nodes[0]));
}
