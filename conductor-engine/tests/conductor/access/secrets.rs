//! Who sees what: every route of both listeners, asked without credentials, as a reader and with the token of an agent,
//! about a node with a marked secret in every field that can hold one.

use super::authorization::listener_that_asks;
use crate::stand_ins::agent::Script;
use crate::stand_ins::stage::{MAC, Stage};
use async_trait::async_trait;
use farrier_conductor::EventKind;
use farrier_conductor::interfaces::{
    BootDeviceSetting, Interface, InterfaceError, ManagementInterface, VirtualMedium,
};
use farrier_conductor::model::{
    BootDevice, InstanceInfo, LogEntry, NewNode, Node, PlannedStep, ProvisionState, RequestedStep, StepId,
    StepKind,
};
use farrier_conductor::{Drivers, HardwareType};
use farrier_engine::records::Order;
use farrier_engine::store::{Change, NodeStore, SessionChange, Terms};
use farrier_node_api::reference::{EXTENSIONS, ROUTES};
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use time::OffsetDateTime;

/// What every marked secret begins with; the place comes after it.
const MARK: &str = "oats7f3a";

/// Digits of a medium that nobody can guess, and the token of the agent.
const MEDIUM: &str = "0ca7507f3a0ca7507f3a0ca7507f3a00";
const TOKEN: &str = "oats7f3a-token-of-the-agent-of-this-node-000";

/// What the conductors of this process log, and what they use, to the level of debugging.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
            .with_writer(move || writer.clone())
            .finish();
        // Another test may have one.
        tracing_subscriber::util::SubscriberInitExt::try_init(subscriber).ok();
        log
    })
}

/// A board whose log and whose virtual drive hold secrets.
struct Board;

impl Interface for Board {}

#[async_trait]
impl ManagementInterface for Board {
    fn get_supported_boot_devices(&self, _: &Node) -> Vec<BootDevice> {
        vec![BootDevice::Disk]
    }

    async fn set_boot_device(&self, _: &Node, _: BootDevice, _: bool) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn get_boot_device(&self, _: &Node) -> Result<BootDeviceSetting, InterfaceError> {
        Ok(BootDeviceSetting::default())
    }

    async fn get_event_log(&self, _: &Node, _: OffsetDateTime) -> Result<Vec<LogEntry>, InterfaceError> {
        Ok(vec![LogEntry { at: None, said: format!("boot: {}", line("event-log")) }])
    }

    async fn get_virtual_media(&self, _: &Node) -> Result<Vec<VirtualMedium>, InterfaceError> {
        let image = Some(format!("http://192.0.2.1/media/{MEDIUM}.iso?sig={}", secret("drive")));
        Ok(vec![VirtualMedium { image, inserted: true, media_types: vec![BootDevice::Cdrom] }])
    }

    async fn get_sensors_data(&self, _: &Node) -> Result<Map<String, Value>, InterfaceError> {
        Ok(secrets("sensors"))
    }
}

fn with_board(drivers: Drivers) -> Drivers {
    let hardware = HardwareType::new("boarded").power(["fake"]).boot(["fake"]).deploy(["direct"]);
    drivers.management("board", Board).hardware_type(hardware.management(["board"]).console(["fake"]))
}

fn secret(place: &str) -> String {
    format!("{MARK}-{place}")
}

fn line(place: &str) -> String {
    format!("quiet rootpwd={0} ipa-agent-token={0} http://u:{0}@h/i?temp_url_sig={0}", secret(place))
}

/// Keys of every kind that hold secrets.
fn secrets(place: &str) -> Map<String, Value> {
    let secret = secret(place);
    let map = json!({
        "redfish_password": secret, "ipmi_hex_kg_key": secret, "snmp_auth_key": secret, "snmp_community": secret,
        "app_credential": secret, "deep": {"list": [{"token": secret}, line(place)]}, "kernel_append_params": line(place),
        "numbered_password": 7, "said": format!("it said {{\"password\": \"{secret}\"}}"),
    });
    map.as_object().unwrap().clone()
}

fn step(place: &str) -> PlannedStep {
    PlannedStep { args: secrets(place), ..PlannedStep::new("deploy", "inject_files", 50) }
}

/// Marks every field of a node, which stays in its state.
async fn mark(stage: &Stage) {
    let now = OffsetDateTime::now_utc();
    let terms = Terms { holder: "test", now, expires_at: now + time::Duration::MINUTE };
    let uuid = stage.idle().await.uuid;
    let (lease, mut record) = stage.store.take(uuid, &terms).await.unwrap();
    let node = &mut record.node;
    node.driver_info.extend(secrets("driver_info"));
    node.instance_info.extend(secrets("instance_info"));
    node.properties.extend(secrets("properties"));
    node.properties.insert("root_device".into(), json!({"serial": "A1", "token": secret("hints")}));
    node.extra = secrets("extra");
    node.network_data = secrets("network_data");
    node.raid_config = secrets("raid_config");
    node.target_raid_config = secrets("target_raid_config");
    node.description = Some(line("description"));
    node.maintenance_reason = Some(line("maintenance_reason"));
    node.protected_reason = Some(line("protected_reason"));
    node.retired_reason = Some(line("retired_reason"));
    node.set_last_error(&line("last_error"));
    node.ports[0].extra = secrets("port");
    node.ports[0].local_link_connection = secrets("link");
    node.driver_internal_info.others.extend(secrets("notes"));
    node.driver_internal_info.ramdisk_parameters = Some(line("ramdisk_parameters"));
    for kind in StepKind::ALL {
        let plan = node.plan_mut(kind);
        plan.steps = vec![step("plan")];
        let id = StepId::new("deploy", "inject_files");
        plan.requested = vec![RequestedStep { id, args: secrets("requested"), priority: None }];
        *node.step_mut(kind) = Some(step("step"));
    }
    record.session.agent_secret_token = Some(TOKEN.into());
    record.session.agent_status_message = Some(line("status_message"));
    let session = SessionChange::Replace(&record.session);
    stage
        .store
        .write(&lease, &Change { ends_lease: true, session, ..Change::of(&record.node) })
        .await
        .unwrap();
}

/// Paths of all routes with something in the place of each name.
fn paths(uuid: &str) -> BTreeSet<String> {
    let fill = |path: &str| {
        let names = [
            ("{node}", uuid),
            ("{port}", MAC),
            ("{chassis}", uuid),
            ("{component}", "system"),
            ("{indicator}", "1"),
            ("{driver}", "boarded"),
        ];
        names.iter().fold(path.to_owned(), |path, (name, value)| path.replace(name, value))
    };
    let versioned = ROUTES.iter().map(|route| format!("/v1{}", fill(route.path)));
    let own = EXTENSIONS.iter().map(|route| format!("/farrier/v1{}", fill(route.path)));
    let more =
        ["/metrics", "/", "/v1", "/v1/ports/detail", "/v1/volume/targets?detail=true"].map(str::to_owned);
    versioned.chain(own).chain(more).collect()
}

async fn ask(stage: &Stage, method: Method, url: String, who: &str, body: Option<&Value>) -> (u16, String) {
    let mut request = stage.http.request(method, &url).header("X-OpenStack-Ironic-API-Version", "1.110");
    if !who.is_empty() {
        request = request.header("Authorization", who);
    }
    if let Some(body) = body {
        request = request.json(body);
    }
    let reply = request.send().await.unwrap();
    let status = reply.status().as_u16();
    let head = format!("{:?}", reply.headers());
    (status, head + &reply.text().await.unwrap())
}

/// No mark, and nothing that grants access, is in a text.
fn assert_clean(what: &str, text: &str) {
    for mark in [MARK, MEDIUM] {
        if let Some(at) = text.find(mark) {
            let (begin, end) = (at.saturating_sub(300), (at + 60).min(text.len()));
            panic!("{what} tells a secret: …{}", text.get(begin..end).unwrap_or(text));
        }
    }
}

/// Asks every route, and gives how many answered with something.
async fn ask_all(stage: &Stage, operators: &str, when: &str) -> usize {
    let uuid = stage.node().await.uuid.to_string();
    let mut answered = 0;
    for path in paths(&uuid) {
        for (who, url) in [("", operators), ("reader", operators), ("", &stage.ramdisk_api)] {
            let (status, text) = ask(stage, Method::GET, format!("{url}{path}"), who, None).await;
            assert_clean(&format!("{when}: {who} GET {path} {status}"), &text);
            answered += usize::from(status == 200);
        }
        // What changes something is refused with nothing told.
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let (status, text) =
                ask(stage, method, format!("{operators}{path}"), "reader", Some(&json!({}))).await;
            assert!(status == 403 || status == 405 || status == 404, "{path} {status}");
            assert_clean(&format!("{when}: reader {path}"), &text);
        }
        // Administrators see consoles, media and logs, and no secret of a record.
        if !["console", "explanation", "vmedia", "logs"].iter().any(|open| path.ends_with(open)) {
            let (status, text) = ask(stage, Method::GET, format!("{operators}{path}"), "admin", None).await;
            assert_clean(&format!("{when}: admin GET {path} {status}"), &text);
        }
    }
    for path in [
        format!("/v1/lookup?addresses={MAC}"),
        format!("/v1/lookup?node_uuid={uuid}"),
        format!("/v1/boot/{MAC}/boot.ipxe"),
    ] {
        let (status, text) = ask(stage, Method::GET, format!("{}{path}", stage.ramdisk_api), "", None).await;
        assert_clean(&format!("{when}: {path} {status}"), &text);
        answered += usize::from(status == 200);
    }
    let heartbeat = |token: &str| json!({"callback_url": "https://127.0.0.1:1", "agent_token": token, "agent_version": "1", "agent_verify_ca": "x"});
    for token in ["wrong", TOKEN] {
        let url = format!("{}/v1/heartbeat/{uuid}", stage.ramdisk_api);
        let (_, text) = ask(stage, Method::POST, url, "", Some(&heartbeat(token))).await;
        assert_clean(&format!("{when}: heartbeat"), &text);
    }
    let report = json!({"inventory": {"interfaces": [{"mac_address": MAC}]}});
    let url = format!("{}/v1/continue_inspection", stage.ramdisk_api);
    let (_, text) = ask(stage, Method::POST, url, "", Some(&report)).await;
    assert_clean(&format!("{when}: report"), &text);
    let events = json!(stage.conductor.events().since(uuid.parse().unwrap(), 0)).to_string();
    assert_clean(&format!("{when}: events"), &events);
    answered
}

#[tokio::test]
async fn n24_no_answer_shows_a_secret_to_whoever_may_not_see_it() {
    let log = log();
    let script = Script { silent: true, ..Script::default() };
    let stage = Stage::built(
        script,
        |settings| {
            settings.automated_clean = false;
            settings.deploy_callback_timeout = Duration::from_secs(3600);
        },
        "boarded",
        with_board,
    )
    .await;
    let operators = listener_that_asks(&stage).await;
    // Other resources.
    let steps =
        json!([{"interface": "deploy", "step": "inject_files", "args": secrets("template"), "priority": 10}]);
    let uuid = stage.node().await.uuid;
    for (path, body) in [
        (
            "/v1/deploy_templates",
            json!({"name": "CUSTOM_A", "steps": steps, "extra": secrets("template-extra")}),
        ),
        (
            "/v1/runbooks",
            json!({"name": "CUSTOM_B", "steps": [{"interface": "deploy", "step": "x", "args": secrets("runbook"), "order": 1}]}),
        ),
        ("/v1/chassis", json!({"description": line("chassis"), "extra": secrets("chassis")})),
        (
            "/v1/volume/targets",
            json!({"node_uuid": uuid, "volume_type": "iscsi", "boot_index": 0, "volume_id": "1", "properties": secrets("target")}),
        ),
    ] {
        let (status, text) =
            ask(&stage, Method::POST, format!("{operators}{path}"), "admin", Some(&body)).await;
        assert_eq!(status, 201, "{path} {text}");
        assert_clean(path, &text);
    }
    // A console with the password of an instance, which nothing can mask.
    let console = stage.machine.console.clone().unwrap();
    let said = format!(
        "password for user debian is {}\r\n[ 0.0] Command line: {}\r\n",
        secret("console"),
        line("console")
    );
    std::fs::write(&console, said).unwrap();
    let mut image = crate::stand_ins::stage::image();
    image.extend(Map::from_iter([("configdrive".to_owned(), json!(secret("configdrive")))]));
    stage.conductor.order("n1", Order::deploy(InstanceInfo(image.0))).await.unwrap();
    stage.wait_for(ProvisionState::DeployWait).await;
    mark(&stage).await;
    stage.conductor.events().push(uuid, EventKind::Failed { error: line("event") });
    let answered = ask_all(&stage, &operators, "waiting").await;
    assert!(answered > 20, "{answered} answered");
    // And when it has failed, in words that hold secrets.
    stage.machine.go_off();
    let node = stage.wait_for(ProvisionState::DeployFailed).await;
    assert!(node.last_error.is_some());
    mark(&stage).await;
    ask_all(&stage, &operators, "failed").await;
    let said = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(said.contains("DEBUG") && said.contains("state=deploy failed"), "{said}");
    assert_clean("the log", &said);
}

/// What goes to an agent with a step are its own arguments, and nothing of the plan.
#[tokio::test]
async fn n04_an_agent_gets_the_arguments_of_its_own_step_alone() {
    let argument = json!({"description": "Something", "required": false});
    let offer = |step: &str| {
        json!({"interface": "deploy", "step": step, "priority": 0,
            "argsinfo": {"admin_password": argument, "words": argument}})
    };
    let offers = vec![offer("unlock"), offer("wipe")];
    let stage =
        Stage::new(Script { offers: Some(offers), produces: json!("done"), ..Script::default() }).await;
    stage.manageable().await;
    let step = |name: &str| json!({"interface": "deploy", "step": name, "args": {"admin_password": secret(name), "words": secret(name)}});
    stage.clean(json!([step("unlock"), step("wipe")])).await;
    stage.wait_for(ProvisionState::Manageable).await;
    let sent = stage.script().accepted;
    let sent: Vec<_> = sent.iter().filter(|(name, _)| name == "clean.execute_clean_step").collect();
    assert_eq!(sent.len(), 2);
    for ((_, params), (own, other)) in sent.iter().zip([("unlock", "wipe"), ("wipe", "unlock")]) {
        assert_eq!(params["step"]["args"]["admin_password"], secret(own));
        let mut rest = params.clone();
        rest["step"] = Value::Null;
        assert!(!rest.to_string().contains(MARK), "{rest}");
        assert!(!params.to_string().contains(&secret(other)), "{params}");
    }
}

/// Whoever knows an address learns what an agent reads, and no more.
#[tokio::test]
async fn e00_a_lookup_tells_what_agents_read_and_nothing_else() {
    let stage = Stage::new(Script { silent: true, ..Script::default() }).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::DeployWait).await;
    mark(&stage).await;
    let (status, text) =
        ask(&stage, Method::GET, format!("{}/v1/lookup?addresses={MAC}", stage.ramdisk_api), "", None).await;
    assert_eq!(status, 200);
    assert_clean("a lookup", &text);
    let reply: Value = stage.get(&format!("/v1/lookup?addresses={MAC}"), "1.68").await.json().await.unwrap();
    let keys = |field: &str| reply["node"][field].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys("properties"), ["root_device"]);
    assert_eq!(reply["node"]["properties"]["root_device"]["serial"], "A1");
    assert_eq!(keys("driver_internal_info"), Vec::<String>::new());
    assert_eq!(keys("instance_info"), ["configdrive"]);
}

/// Nobody who has no token learns which nodes there are.
#[tokio::test]
async fn n22_a_heartbeat_without_a_token_tells_nobody_which_nodes_there_are() {
    let stage = Stage::new(Script { silent: true, ..Script::default() }).await;
    stage.conductor.create_node(NewNode { driver: "fake".into(), ..NewNode::default() }).await.unwrap();
    let mut answers = BTreeSet::new();
    let uuid = stage.node().await.uuid.to_string();
    for node in ["n1", "none", &uuid, "00000000-0000-0000-0000-000000000001", "a%2fb"] {
        for token in [Value::Null, json!("x"), json!("x".repeat(43))] {
            let body =
                json!({"callback_url": "https://127.0.0.1:1", "agent_token": token, "agent_version": "1"});
            let reply = stage.heartbeat(node, &body).await;
            answers.insert((reply.status().as_u16(), reply.text().await.unwrap()));
        }
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
}
