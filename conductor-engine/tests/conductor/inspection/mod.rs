//! Inspection: the ramdisk tells what its machine is made of.

mod discovery;

use crate::stand_ins::agent::script::SECOND_CARD;
use crate::stand_ins::agent::{Script, report};
use crate::stand_ins::machine::Boot;
use crate::stand_ins::stage::{MAC, PATIENCE, Stage, fault, new_node};
use farrier_conductor::Settings;
use farrier_conductor::inventory::{AddPorts, InspectionSettings, KeepPorts, hooks};
use farrier_conductor::model::{Node, PowerState, ProvisionState};
use farrier_engine::evidence::boot_trace::{BootMark, BootStage, BootTrace};
use farrier_engine::records::Order;
use farrier_engine::store::{BootTraceChange, Change, EvidenceStore, NodeStore, Terms};
use reqwest::Response;
use serde_json::{Value, json};
use std::time::Duration;
use time::OffsetDateTime;

const VERSION: &str = "X-OpenStack-Ironic-API-Version";

/// A node that is under control, and inspected in this way.
async fn manageable(script: Script, change: impl FnOnce(&mut InspectionSettings)) -> Stage {
    let stage = Stage::with(script, |settings| change(&mut settings.inspection)).await;
    stage.manageable().await;
    stage
}

/// A node that waits for a ramdisk, which is played by the test.
async fn waiting() -> Stage {
    let stage = manageable(Script { silent: true, ..Script::default() }, |_| {}).await;
    stage.conductor.order("n1", Order::Inspect).await.unwrap();
    stage.wait_for(ProvisionState::InspectWait).await;
    stage
}

async fn inspected(stage: &Stage) -> Node {
    stage.conductor.order("n1", Order::Inspect).await.unwrap();
    stage.wait_for(ProvisionState::Manageable).await
}

async fn failed(stage: &Stage) -> Node {
    stage.conductor.order("n1", Order::Inspect).await.unwrap();
    stage.wait_for(ProvisionState::InspectFailed).await
}

/// What operators read of the last inspection.
async fn inventory(stage: &Stage) -> Response {
    let request = stage.http.get(format!("{}/v1/nodes/n1/inventory", stage.node_api));
    request.header(VERSION, "1.81").send().await.unwrap()
}

async fn post(stage: &Stage, query: &str, version: Option<&str>, body: &Value) -> Response {
    let request = stage.http.post(format!("{}/v1/continue_inspection{query}", stage.ramdisk_api)).json(body);
    match version {
        Some(version) => request.header(VERSION, version),
        None => request,
    }
    .send()
    .await
    .unwrap()
}

fn addresses(node: &Node) -> Vec<(&str, bool)> {
    node.ports.iter().map(|port| (port.address.as_str(), port.pxe_enabled)).collect()
}

fn assert_put_right(stage: &Stage) {
    let state = stage.machine.state.lock().unwrap();
    assert_eq!((state.power, &state.boot), (PowerState::Off, &None));
}

#[tokio::test]
async fn a_machine_tells_what_it_is_made_of() {
    let stage = manageable(Script::default(), |_| {}).await;
    assert_eq!(inventory(&stage).await.status(), 404);
    let url = format!("{}/v1/nodes/n1/states/provision", stage.node_api);
    let order = stage.http.put(url).header(VERSION, "1.6").json(&json!({"target": "inspect"}));
    let ordered = order.send().await.unwrap();
    assert_eq!(ordered.status(), 202);
    let node = stage.wait_for(ProvisionState::Manageable).await;

    assert_eq!((&node.last_error, node.target_provision_state), (&None, None));
    assert!(node.inspection_started_at.unwrap() <= node.inspection_finished_at.unwrap());
    assert_eq!(node.properties["cpu_arch"], "x86_64");
    let stored = stage.store_node().await;
    assert_eq!(addresses(&stored), [(MAC, true), (SECOND_CARD, true)]);
    assert_put_right(&stage);
    let Some(Some(Boot::Ramdisk(parameters))) = stage.machine.power_ons().pop() else { panic!("no ramdisk") };
    let callback = format!("ipa-inspection-callback-url={}/v1/continue_inspection", stage.ramdisk_api);
    assert_eq!(parameters.to_string(), callback, "without fast track nothing else is told");

    let told: Value = inventory(&stage).await.json().await.unwrap();
    assert_eq!(told["inventory"], report(MAC)["inventory"]);
    let noted = &told["plugin_data"];
    assert_eq!(noted["all_interfaces"]["eth1"]["mac_address"], SECOND_CARD);
    assert_eq!((&noted["macs"], noted.get("logs")), (&json!([MAC, SECOND_CARD]), None));
}

#[tokio::test]
async fn which_hooks_run_and_which_cards_become_ports_is_a_setting() {
    let stage = manageable(Script::default(), |settings| {
        settings.hooks =
            ["ports", "root-device", "capabilities"].map(|name| hooks::named(name).unwrap()).into();
        (settings.add_ports, settings.keep_ports) = (AddPorts::All, KeepPorts::Present);
        settings.extra_kernel_params = "ipa-inspection-collectors=default".parse().unwrap();
    })
    .await;
    stage.change(|script| {
        let mut other = report("52:54:00:00:00:a1");
        other["inventory"]["boot"]["pxe_interface"] = json!(format!("01-{}", SECOND_CARD.replace(':', "-")));
        // The card by which the node is found is there, and another one is new.
        other["inventory"]["interfaces"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": "e", "mac_address": MAC}));
        script.report = Some(other);
    });
    let node = inspected(&stage).await;
    let stored = stage.store_node().await;
    // No report disables the port by which the machine was found.
    assert_eq!(addresses(&stored), [(MAC, true), ("52:54:00:00:00:a1", false), (SECOND_CARD, true)]);
    assert_eq!(node.properties["capabilities"], "boot_mode:uefi,cpu_vt:true");
    assert!(!node.properties.contains_key("cpu_arch"));
    let Some(Some(Boot::Ramdisk(parameters))) = stage.machine.power_ons().pop() else { panic!("no ramdisk") };
    assert!(parameters.to_string().ends_with(" ipa-inspection-collectors=default"), "{parameters}");

    // A card that is gone.
    stage.change(|script| script.report = Some(report(MAC)));
    inspected(&stage).await;
    let stored = stage.store_node().await;
    assert_eq!(addresses(&stored), [(MAC, true), (SECOND_CARD, true)]);
}

#[tokio::test]
async fn an_inspection_that_fails_tells_why_and_changes_nothing() {
    let stage = manageable(Script::default(), |_| {}).await;
    inspected(&stage).await;
    let before = stage.store_node().await;
    let mut broken = report(MAC);
    broken["error"] = json!("* collector lldp: no socket");
    broken["inventory"]["cpu"]["architecture"] = json!("aarch64");
    stage.change(|script| script.report = Some(broken));
    let node = failed(&stage).await;
    let error = node.last_error.unwrap();
    assert_eq!(
        error,
        "inspection hook ramdisk-error: the ramdisk says: * collector lldp: no socket [FAR-0203]"
    );
    assert_eq!((node.inspection_finished_at, &node.properties), (None, &before.properties));
    assert_put_right(&stage);
    let told: Value = inventory(&stage).await.json().await.unwrap();
    assert_eq!(told["inventory"]["cpu"]["architecture"], "x86_64", "the last one that was done");

    stage.change(|script| script.report = None);
    inspected(&stage).await;
}

#[tokio::test]
async fn an_inspection_that_waits_can_be_aborted() {
    let stage = waiting().await;
    stage.conductor.order("n1", Order::Abort).await.unwrap();
    let node = stage.wait_for(ProvisionState::InspectFailed).await;
    assert_eq!(node.last_error.as_deref(), Some("inspection aborted by request [FAR-0510]"));
    assert_put_right(&stage);
    assert_eq!(post(&stage, "", None, &report(MAC)).await.status(), 404);
    stage.conductor.order("n1", Order::Manage).await.unwrap();
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!((node.target_provision_state, node.last_error), (None, None));
}

#[tokio::test]
async fn a_ramdisk_that_never_posts_fails_the_inspection_in_time() {
    let silent = Script { silent: true, ..Script::default() };
    let stage =
        Stage::with(silent, |settings| settings.inspect_wait_timeout = Duration::from_millis(300)).await;
    stage.manageable().await;
    let error = failed(&stage).await.last_error.unwrap();
    assert!(error.contains("no agent called for 0.3 s"), "{error}");
    assert_put_right(&stage);
}

#[tokio::test]
async fn versions_of_agents_between_two_are_not_answered() {
    for (version, query, status) in [
        (Some("1.2"), "", 404),
        (Some("1.22"), "", 404),
        (Some("1.83"), "", 404),
        (None, "?node_uuid=1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11", 404),
        (Some("1.84"), "?node_uuid=x", 400),
        (Some("1.1"), "", 202),
    ] {
        let stage = waiting().await;
        let reply = post(&stage, query, version, &report(MAC)).await;
        assert_eq!(reply.status(), status, "{version:?} {query}");
        match status {
            202 => {
                let uuid = stage.node().await.uuid;
                assert_eq!(reply.json::<Value>().await.unwrap(), json!({"uuid": uuid}));
                stage.wait_for(ProvisionState::Manageable).await;
            }
            _ => assert_eq!(stage.node().await.provision_state, ProvisionState::InspectWait),
        }
    }
}

#[tokio::test]
async fn a_newer_agent_is_answered_like_by_a_lookup() {
    let stage = waiting().await;
    let uuid = stage.node().await.uuid;
    let mut unknown = report("52:54:00:00:00:77");
    unknown["inventory"]["interfaces"].as_array_mut().unwrap().pop();
    let reply = post(&stage, &format!("?node_uuid={uuid}"), Some("1.84"), &unknown).await;
    assert_eq!(reply.status(), 202);
    let reply: Value = reply.json().await.unwrap();
    assert_eq!(reply["node"]["uuid"], json!(uuid));
    assert_eq!(reply["config"]["agent_token"].as_str().unwrap().len(), 43);
    stage.wait_for(ProvisionState::Manageable).await;
}

#[tokio::test]
async fn the_first_post_counts_and_no_other() {
    let stage = waiting().await;
    let mut second = report(MAC);
    second["inventory"]["cpu"]["architecture"] = json!("aarch64");
    assert_eq!(post(&stage, "", None, &report(MAC)).await.status(), 202);
    assert_eq!(post(&stage, "", None, &second).await.status(), 404);
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!(node.properties["cpu_arch"], "x86_64");
    // Nor one that comes late, or that nobody asked for.
    assert_eq!(post(&stage, "", None, &second).await.status(), 404);
    assert_eq!(stage.node().await.provision_state, ProvisionState::Manageable);
}

#[tokio::test]
async fn every_lie_about_who_posts_looks_the_same() {
    let stage = waiting().await;
    let other = stage.conductor.create_node(new_node("other", "52:54:00:00:00:02")).await.unwrap();
    let uuid = stage.node().await.uuid;
    let with = |addresses: &[&str]| {
        let card = |address: &&str| json!({"name": address, "mac_address": address});
        json!({"inventory": {"interfaces": addresses.iter().map(card).collect::<Vec<_>>()}})
    };
    let unknown = "52:54:00:00:00:77";
    let mut texts = Vec::new();
    for (query, body) in [
        (String::new(), with(&[unknown])),
        (String::new(), with(&["52:54:00:00:00:02"])),
        (String::new(), with(&[MAC, "52:54:00:00:00:02"])),
        (String::new(), with(&["nonsense"])),
        (format!("?node_uuid={}", other.uuid), with(&[MAC])),
        (format!("?node_uuid={uuid}"), with(&["52:54:00:00:00:02"])),
        ("?node_uuid=1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11".into(), with(&[unknown])),
    ] {
        let reply = post(&stage, &query, Some("1.84"), &body).await;
        assert_eq!(reply.status(), 404, "{query} {body}");
        texts.push(fault(reply).await);
    }
    texts.dedup();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert_eq!(stage.node().await.provision_state, ProvisionState::InspectWait);
}

#[tokio::test]
async fn a_machine_of_which_no_card_is_known_is_found_by_its_bmc() {
    let stage = Stage::with(Script { silent: true, ..Script::default() }, |_| {}).await;
    for (name, mac, bmc) in
        [("a", "52:54:00:00:00:0a", "198.51.100.1"), ("b", "52:54:00:00:00:0b", "198.51.100.2")]
    {
        let mut new = new_node(name, mac);
        new.driver_info.insert("redfish_address".into(), format!("https://{bmc}").into());
        stage.conductor.create_node(new).await.unwrap();
        stage.conductor.order(name, Order::Manage).await.unwrap();
        stage.named(name, ProvisionState::Manageable).await;
        stage.conductor.order(name, Order::Inspect).await.unwrap();
        stage.named(name, ProvisionState::InspectWait).await;
    }
    let with = |address: &str, bmc: &str| {
        json!({"inventory": {"interfaces": [{"name": "e", "mac_address": address, "ipv4_address": "192.0.2.1"}],
            "bmc_address": bmc, "bmc_v6address": "::/0"}})
    };
    // The BMC of another node that waits speaks against the card.
    assert_eq!(post(&stage, "", None, &with("52:54:00:00:00:0b", "198.51.100.1")).await.status(), 404);
    // One that nobody knows does not: it may have another address in its own network.
    assert_eq!(post(&stage, "", None, &with("52:54:00:00:00:77", "203.0.113.9")).await.status(), 404);
    assert_eq!(post(&stage, "", None, &with("52:54:00:00:00:77", "198.51.100.1")).await.status(), 202);
    assert_eq!(post(&stage, "", None, &with("52:54:00:00:00:0b", "203.0.113.9")).await.status(), 202);
    stage.named("a", ProvisionState::Manageable).await;
    let b = stage.named("b", ProvisionState::Manageable).await;
    assert!(!b.driver_internal_info.others.contains_key("lookup_bmc_addresses"));
}

#[tokio::test]
async fn s49_unusable_reports_get_a_clear_refusal_and_end_no_wait() {
    // What is long takes long on a busy host.
    let patient = |settings: &mut Settings| settings.inspect_wait_timeout = PATIENCE * 5;
    let stage = Stage::with(Script { silent: true, ..Script::default() }, patient).await;
    stage.manageable().await;
    stage.conductor.order("n1", Order::Inspect).await.unwrap();
    stage.wait_for(ProvisionState::InspectWait).await;
    let deep = (0..30).fold(json!(1), |inner, _| json!([inner]));
    for (body, part) in [
        (json!([]), "JSON object"),
        (json!({}), "inventory: "),
        (json!({"inventory": {"interfaces": []}}), "inventory.interfaces: "),
        (json!({"inventory": {"interfaces": [{"name": "eth0"}]}}), "mac_address"),
        (json!({"inventory": {"interfaces": [{"mac_address": MAC}]}, "deep": deep}), "25 levels"),
    ] {
        let reply = post(&stage, "", None, &body).await;
        assert_eq!(reply.status(), 400, "{body}");
        let text = fault(reply).await;
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
    let url = format!("{}/v1/continue_inspection", stage.ramdisk_api);
    let large = stage.http.post(&url).body(vec![b' '; 100 << 20]).send().await;
    assert!(large.is_err() || large.is_ok_and(|reply| reply.status() == 413));
    assert_eq!(stage.node().await.provision_state, ProvisionState::InspectWait);
    // What is long, and not too long, is taken.
    let mut long = report(MAC);
    long["pci_devices"] = json!(vec!["x".repeat(1 << 10); 10 << 10]);
    assert_eq!(post(&stage, "", None, &long).await.status(), 202);
    stage.wait_for(ProvisionState::Manageable).await;
    let told: Value = inventory(&stage).await.json().await.unwrap();
    assert_eq!(told["plugin_data"]["pci_devices"].as_array().unwrap().len(), 10 << 10);
}

#[tokio::test]
async fn a_card_of_another_node_becomes_no_port() {
    let stage = waiting().await;
    let busy = stage.machine.power_off.lock().await;
    assert_eq!(post(&stage, "", None, &report(MAC)).await.status(), 202);
    // It is enrolled elsewhere while the inspection goes on.
    stage.conductor.create_node(new_node("other", SECOND_CARD)).await.unwrap();
    drop(busy);
    stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!(addresses(&stage.store_node().await), [(MAC, true)]);
}

/// What the medium of a machine alone has proves that its ramdisk posts, and nothing else does.
#[tokio::test]
async fn n12_a_report_proves_itself_by_the_token_of_the_medium() {
    let script = Script { silent: true, has_own_media: true, ..Script::default() };
    let stage = manageable(script, |_| {}).await;
    stage.conductor.order("n1", Order::Inspect).await.unwrap();
    let uuid = stage.wait_for(ProvisionState::InspectWait).await.uuid;
    let token = stage.store.get(uuid).await.unwrap().unwrap().session.agent_secret_token.unwrap();
    let Some(Some(Boot::Ramdisk(parameters))) = stage.machine.power_ons().pop() else { panic!("no ramdisk") };
    let proof = format!("continue_inspection?agent_token={token} ");
    assert!(parameters.to_string().contains(&proof), "{parameters}");
    let mut other = report(MAC);
    other["inventory"]["interfaces"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "evil0", "mac_address": "02:de:ad:be:ef:01", "ipv4_address": "192.0.2.66"}));
    other["inventory"]["boot"] = json!({"pxe_interface": "02:de:ad:be:ef:01"});
    for query in [String::new(), "?agent_token=".to_owned(), format!("?agent_token={}x", &token[1..])] {
        let refused = post(&stage, &query, Some("1.84"), &other).await;
        assert_eq!(refused.status(), 404, "{query}");
        assert!(!refused.text().await.unwrap().contains(&token));
    }
    assert_eq!(stage.node().await.provision_state, ProvisionState::InspectWait);
    let accepted = post(&stage, &format!("?agent_token={token}"), Some("1.84"), &report(MAC)).await;
    assert_eq!(accepted.status(), 202);
    stage.wait_for(ProvisionState::Manageable).await;
    assert!(addresses(&stage.store_node().await).contains(&(MAC, true)));
}

/// Where no medium has a token, and firmware asks this conductor what to boot, a machine that has asked for nothing has
/// not booted.
#[tokio::test]
async fn n12_a_report_of_a_machine_that_has_loaded_nothing_is_refused() {
    let stage = waiting().await;
    let uuid = stage.node().await.uuid;
    let now = OffsetDateTime::now_utc();
    let terms = Terms { holder: "test", now, expires_at: now + time::Duration::MINUTE };
    let (lease, mut record) = stage.store.take(uuid, &terms).await.unwrap();
    record.node.driver_internal_info.ramdisk_parameters = Some("quiet".into());
    let change = Change { ends_lease: true, boot_trace: BootTraceChange::Begin, ..Change::of(&record.node) };
    stage.store.write(&lease, &change).await.unwrap();
    assert_eq!(post(&stage, "", Some("1.84"), &report(MAC)).await.status(), 404);
    let mut trace = BootTrace::default();
    trace.reach(BootMark {
        stage: BootStage::Script,
        what: "boot.ipxe".into(),
        host_name: None,
        bytes: 1,
        total: 1,
        at: now,
    });
    stage.store.reach_boot_stages(&[(uuid, trace)]).await.unwrap();
    assert_eq!(post(&stage, "", Some("1.84"), &report(MAC)).await.status(), 202);
}

/// One request has a long report in memory as values only when somebody waits for it.
#[tokio::test]
async fn n01_a_report_is_limited_by_its_values_and_its_logs_are_kept_apart() {
    let stage = waiting().await;
    let nest = format!("{}0{}", "{\"\":".repeat(22), "}".repeat(22));
    let body = |value: &str| {
        let known = report(MAC)["inventory"].to_string();
        format!("{{\"inventory\": {known}, \"x\": {value}, \"logs\": \"{}\"}}", "AAAA".repeat(1 << 20))
    };
    let send = async |body: String| {
        let url = format!("{}/v1/continue_inspection", stage.ramdisk_api);
        stage.http.post(url).header(VERSION, "1.84").body(body).send().await.unwrap().status().as_u16()
    };
    assert_eq!(send(body(&format!("[{}]", vec![nest.as_str(); 2000].join(",")))).await, 400);
    assert_eq!(send(body("{\"a\": 1, \"a\": 2}")).await, 400);
    assert_eq!(stage.node().await.provision_state, ProvisionState::InspectWait);
    assert_eq!(send(body("1")).await, 202);
    stage.wait_for(ProvisionState::Manageable).await;
    let told: Value = inventory(&stage).await.json().await.unwrap();
    assert_eq!((&told["plugin_data"]["x"], told["plugin_data"].get("logs")), (&json!(1), None));
}

#[tokio::test]
async fn f39_an_agent_that_is_to_stay_is_told_of_the_conductor_and_stays() {
    let stage = Stage::with(Script::default(), |settings| settings.fast_track = true).await;
    stage.manageable().await;
    let node = inspected(&stage).await;
    assert_eq!((node.last_error, node.power_state), (None, Some(PowerState::On)));
    stage.told(|script| script.token.is_some()).await;
    let power_ons = stage.machine.power_ons();
    let [Some(Boot::Ramdisk(parameters))] = &power_ons[..] else { panic!("{power_ons:?}") };
    assert!(parameters.to_string().starts_with("ipa-api-url="), "{parameters}");
}

#[tokio::test]
async fn a_node_without_the_means_is_not_inspected() {
    let stage = Stage::composed(Script::default(), "blind", |drivers| {
        let blind = farrier_conductor::HardwareType::new("blind").power(["fake"]).boot(["fake"]);
        drivers.hardware_type(blind.deploy(["direct"]))
    })
    .await;
    stage.manageable().await;
    let refused = stage.conductor.order("n1", Order::Inspect).await.unwrap_err().to_string();
    assert_eq!(refused, "inspect is not supported; choose another inspect_interface for the node");
    let stage = Stage::new(Script::default()).await;
    let refused = stage.conductor.order("n1", Order::Inspect).await.unwrap_err().to_string();
    assert!(refused.contains("this needs one of: manageable, inspect failed"), "{refused}");
}

/// What this agent and the Python agent posted to real Ironics.
const RECORDINGS: [&str; 3] = [
    include_str!("../../../../tests/golden/ironic-26.1.6.jsonl"),
    include_str!("../../../../tests/golden/ironic-39.0.0.jsonl"),
    include_str!("../../../../tests/golden/ironic-39.0.0-python-agent-13.0.0-inspect.jsonl"),
];

#[tokio::test]
async fn x34_what_agents_posted_to_a_real_ironic_is_understood_by_every_hook() {
    for recording in RECORDINGS {
        let mut exchanges = recording.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let posted = exchanges.find(|exchange| exchange["path"] == "/v1/continue_inspection").unwrap();
        let (body, inventory) = (&posted["request"], &posted["request"]["inventory"]);
        let address = inventory["interfaces"][0]["mac_address"].as_str().unwrap();
        let silent = Script { silent: true, ..Script::default() };
        let stage = manageable(silent, |settings| settings.hooks = hooks::HOOKS.to_vec()).await;
        stage.conductor.create_node(new_node("recorded", address)).await.unwrap();
        stage.conductor.order("recorded", Order::Manage).await.unwrap();
        stage.named("recorded", ProvisionState::Manageable).await;
        stage.conductor.order("recorded", Order::Inspect).await.unwrap();
        let node = stage.named("recorded", ProvisionState::InspectWait).await;

        let reply = post(&stage, "", None, body).await;
        assert_eq!(json!(reply.status().as_u16()), posted["status"]);
        assert_eq!(reply.json::<Value>().await.unwrap(), json!({"uuid": node.uuid}));
        let node = stage.named("recorded", ProvisionState::Manageable).await;
        assert_eq!((&node.last_error, &node.properties["cpu_arch"]), (&None, &json!("x86_64")));
        assert!(node.properties["local_gb"].is_u64(), "{:?}", node.properties);
        let capabilities = node.properties["capabilities"].as_str().unwrap();
        assert!(capabilities.starts_with("boot_mode:uefi"), "{capabilities}");
        let told = stage.conductor.evidence().inventory("recorded").await.unwrap().unwrap();
        assert_eq!(json!(told.inventory), *inventory);
    }
}
