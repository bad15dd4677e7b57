//! A node is led by one conductor that can (section 12.1).

use super::site::{Host, Site, is_in, step};
use farrier_conductor::PowerAction;
use farrier_conductor::model::ProvisionState::{CleanWait, Manageable};
use farrier_engine::Error;
use farrier_engine::records::Order;
use farrier_node_api::nodes::nodes_router;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpListener;

/// Nodes that each of two conductors can lead: that one leads all of them happens once in 30,000 runs.
const COMMON: usize = 16;

/// One conductor lacks the hardware type of some of the nodes, its clock is an hour ahead, and its host stands still for longer
/// than a lease.
#[test]
fn e08_a_node_is_acted_on_by_one_conductor_and_failed_by_none_that_cannot_serve_it() {
    let site = Site::new();
    let few = site.begin("c1", &["common"]);
    few.clock.jump(time::Duration::hours(1));
    let all = site.begin("c2", &["common", "rare"]);
    few.until_it_sees(2);
    all.until_it_sees(2);
    let names: Vec<_> = (0..COMMON + 4).map(|number| format!("n{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        // By way of a conductor that may lack its hardware type.
        few.create(name, if number < COMMON { "common" } else { "rare" });
        few.order(name, Order::Manage).unwrap();
    }
    site.until_all(is_in(Manageable));
    site.seen.lock().unwrap().holds_steps = true;
    for name in &names {
        few.order(name, step("polled")).unwrap();
    }
    site.until_all(is_in(CleanWait));
    {
        let seen = site.seen.lock().unwrap();
        let by_first = seen.actors.values().filter(|actors| actors.contains("c1")).count();
        assert!(by_first > 0, "of {COMMON} nodes c1 leads some: {:?}", seen.actors);
        assert!(by_first < COMMON, "of {COMMON} nodes c2 leads some: {:?}", seen.actors);
        for record in site.records().iter().filter(|record| record.node.driver == "rare") {
            assert!(!seen.actors[&record.node.uuid].contains("c1"), "{:?}", seen.actors);
        }
    }

    let resume = few.suspend();
    all.until_it_sees(1);
    site.seen.lock().unwrap().holds_steps = false;
    // What the one that stands still leads, the other one goes on with.
    site.until_all(is_in(Manageable));
    drop(resume);
    few.until_it_sees(2);
    all.until_it_sees(2);
    for name in &names {
        all.order(name, Order::power(PowerAction::On)).unwrap();
    }
    site.until_all(|record| is_in(Manageable)(record) && record.node.power_state.is_some());
    // Several passes of the power sync of both.
    std::thread::sleep(Duration::from_millis(500));
    for record in site.records() {
        let node = &record.node;
        assert_eq!((node.maintenance, node.fault, &node.last_error), (false, None, &None), "{node:#?}");
    }
    let seen = site.seen.lock().unwrap();
    assert_eq!(seen.clashes, [""; 0]);
    assert_eq!(seen.begun.len(), names.len(), "a step ran twice: {:?}", seen.begun);
}

/// A node that no conductor can serve waits, says so, and goes on when one can.
#[test]
fn e08_a_node_without_a_conductor_waits_and_says_so() {
    let site = Site::new();
    let (few, all) = (site.begin("c1", &["common"]), site.begin("c2", &["common", "rare"]));
    few.until_it_sees(2);
    few.create("n1", "rare");
    few.order("n1", Order::Manage).unwrap();
    site.until_all(is_in(Manageable));
    site.seen.lock().unwrap().holds_steps = true;
    few.order("n1", step("polled")).unwrap();
    site.until_all(is_in(CleanWait));
    all.stop();
    let node = few.runtime.block_on(site.store_node());
    few.until(|conductor| conductor.leader(&node).is_none());
    let reason =
        "no conductor runs that leads nodes without a conductor group and has hardware type \"rare\"";
    let (explanation, validity, led_by, refused) = few.runtime.block_on(async {
        let explanation = few.conductor.evidence().explain("n1").await.unwrap();
        let validity = few.conductor.machines().validate("n1").await.unwrap();
        let led_by = few.conductor.leader(&site.store_node().await);
        (explanation, validity, led_by, few.conductor.order("n1", Order::Abort).await.unwrap_err())
    });
    assert!(explanation.waits_for.contains(reason), "{explanation:#?}");
    assert_eq!((explanation.until, led_by), (None, None));
    assert!(validity.values().all(|one| one.reason.as_ref().is_some_and(|why| why.contains(reason))));
    assert!(matches!(&refused, Error::Unserved { .. }), "{refused}");
    // Its deadline does not run, and the power sync leaves it alone.
    std::thread::sleep(Duration::from_millis(500));
    let record = site.record("n1");
    assert_eq!((record.node.provision_state, record.node.maintenance), (CleanWait, false));
    site.seen.lock().unwrap().holds_steps = false;
    let again = site.begin("c2", &["common", "rare"]);
    site.until_all(is_in(Manageable));
    assert_eq!(site.record("n1").node.last_error, None);
    again.stop();
}

/// Nodes of a conductor group are led by the conductors of that group alone.
#[test]
fn e08_a_conductor_leads_the_nodes_of_its_group() {
    let site = Site::new();
    let none = site.begin("c1", &["common"]);
    let rack =
        site.try_begin("c2", &["common"], |settings| settings.conductor_group = "Rack1".into()).unwrap();
    none.until_it_sees(2);
    rack.until_it_sees(2);
    for name in ["n1", "n2", "n3", "n4"] {
        none.create(name, "common");
        let group = if name < "n3" { "" } else { "rack1" };
        let changed = none.conductor.update(name, |mut node| {
            node.conductor_group = group.to_owned();
            Ok::<_, Error>(node)
        });
        none.runtime.block_on(changed).unwrap();
        rack.order(name, Order::Manage).unwrap();
    }
    site.until_all(is_in(Manageable));
    for name in ["n1", "n2", "n3", "n4"] {
        none.order(name, Order::power(PowerAction::On)).unwrap();
    }
    site.until_all(|record| is_in(Manageable)(record) && record.node.power_state.is_some());
    site.until(|records| records.iter().all(|record| record.node.power_state.is_some()));
    let seen = site.seen.lock().unwrap();
    for (name, leader) in [("n1", "c1"), ("n2", "c1"), ("n3", "c2"), ("n4", "c2")] {
        let actors: Vec<_> = seen.actors[&site.record(name).node.uuid].iter().collect();
        assert_eq!(actors, [leader], "{name}");
    }
}

/// A conductor resumes the operations under its name, so that two of one name would undo each other.
#[test]
fn e08_a_second_process_with_the_name_of_a_conductor_that_lives_is_refused() {
    let site = Site::new();
    let first = site.begin("c1", &["common"]);
    let refused = site.try_begin("c1", &["common"], |_| {}).err().unwrap();
    assert!(matches!(&refused, Error::NameTaken(name) if name == "c1"), "{refused}");
    assert!(refused.to_string().contains("give this one another --conductor-name"), "{refused}");
    // The first one is none the worse for it, and a name is free when its process has ended, be it without a word.
    first.create("n1", "common");
    first.order("n1", Order::Manage).unwrap();
    site.until_all(is_in(Manageable));
    first.kill();
    site.begin("c1", &["common"]).stop();
    site.begin("c1", &["common"]).stop();
}

/// Every conductor tells the same of all, also of one that was dead before it started.
#[test]
fn n28_conductors_of_a_database_are_told_by_each_of_them_alive_or_not() {
    let site = Site::new();
    let first = site.begin("c1", &["common"]);
    let rack = |settings: &mut farrier_conductor::Settings| settings.conductor_group = "rack1".to_owned();
    let second = site.try_begin("c2", &["common", "rare"], rack).unwrap();
    let lost = site.begin("c3", &["rare"]);
    first.until_it_sees(3);
    lost.kill();
    first.until_it_sees(2);
    second.until_it_sees(2);
    // It does not take the silent one for alive because it has never seen it before.
    let third = site.begin("c4", &["common"]);
    first.until_it_sees(3);
    second.until_it_sees(3);
    let expected = json!([
        {"hostname": "c1", "conductor_group": "", "alive": true, "drivers": ["common"]},
        {"hostname": "c2", "conductor_group": "rack1", "alive": true, "drivers": ["common", "rare"]},
        {"hostname": "c3", "conductor_group": "", "alive": false, "drivers": ["rare"]},
        {"hostname": "c4", "conductor_group": "", "alive": true, "drivers": ["common"]},
    ]);
    let node = first.create("n1", "common");
    let leader = first.conductor.leader(&node).unwrap();
    for host in [&third, &first, &second] {
        let fields = "fields=hostname,conductor_group,alive,drivers";
        let mut told = told_by(host, &format!("/v1/conductors?{fields}"))["conductors"].take();
        for conductor in told.as_array_mut().unwrap() {
            conductor.as_object_mut().unwrap().remove("links");
        }
        assert_eq!(told, expected);
        assert_eq!(told_by(host, "/v1/conductors/c3")["alive"], false);
        for (name, nodes) in [(leader.as_str(), 1), ("c2", 0), ("c3", 0)] {
            let led = told_by(host, &format!("/v1/nodes?conductor={name}"));
            assert_eq!(led["nodes"].as_array().unwrap().len(), nodes, "{name}");
        }
    }
    for host in [first, second, third] {
        host.stop();
    }
}

/// What the node API of a conductor answers.
fn told_by(host: &Host, path: &str) -> Value {
    let (conductor, path) = (host.conductor.clone(), path.to_owned());
    host.runtime.block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}{path}", listener.local_addr().unwrap());
        tokio::spawn(axum::serve(listener, nodes_router(conductor)).into_future());
        let http = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
        let request = http.get(url).header("X-OpenStack-Ironic-API-Version", "1.110");
        let reply = request.send().await.unwrap();
        assert_eq!(reply.status(), 200);
        reply.json().await.unwrap()
    })
}
