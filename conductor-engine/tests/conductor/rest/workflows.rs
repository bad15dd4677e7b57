//! Deploy templates and runbooks: as resources, and what nodes are led to do by them.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::Boot;
use crate::stand_ins::operator::{ask, ask_in, get, set};
use crate::stand_ins::stage::{Stage, fault, image};
use farrier_conductor::model::{PowerState, ProvisionState};
use farrier_engine::records::Order;
use reqwest::Method;
use serde_json::{Value, json};

/// Where they are, the first version of each, and the key by which their steps are placed.
const KINDS: [(&str, u16, &str); 2] = [("deploy_templates", 55, "priority"), ("runbooks", 92, "order")];

fn step(name: &str, place: &str, value: u32) -> Value {
    json!({"interface": "deploy", "step": name, "args": {}, place: value})
}

async fn create(stage: &Stage, all: &str, fields: Value) -> Value {
    let reply = ask(stage, Method::POST, &format!("/v1/{all}"), &fields).await;
    assert_eq!(reply.status(), 201, "{}", reply.text().await.unwrap());
    let path = reply.headers()["location"].to_str().unwrap().to_owned();
    let made: Value = reply.json().await.unwrap();
    assert_eq!(path, format!("{}/v1/{all}/{}", stage.node_api, made["uuid"].as_str().unwrap()));
    made
}

async fn provision(stage: &Stage, request: Value) -> (u16, String) {
    let reply = ask(stage, Method::PUT, "/v1/nodes/n1/states/provision", &request).await;
    let status = reply.status().as_u16();
    (status, if status == 202 { String::new() } else { fault(reply).await })
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn steps_by_name_are_created_listed_shown_changed_and_deleted() {
    let stage = Stage::new(Script::default()).await;
    for (all, since, place) in KINDS {
        let url = format!("/v1/{all}");
        let before = ask_in(&format!("1.{}", since - 1), &stage, Method::GET, &url, &Value::Null).await;
        assert_eq!(before.status(), 404, "{all}");
        assert_eq!(get(&stage, &url).await, json!({all: []}));
        let made = create(
            &stage,
            all,
            json!({"name": "CUSTOM_A", "steps": [step("scrub", place, 1)], "extra": {"a": 1}}),
        )
        .await;
        create(&stage, all, json!({"name": "CUSTOM_B", "steps": [step("scrub", place, 1)]})).await;
        assert_eq!((&made["name"], &made["updated_at"]), (&json!("CUSTOM_A"), &json!(null)));
        assert_eq!(made["steps"], json!([step("scrub", place, 1)]));
        let again = json!({"name": "CUSTOM_A", "steps": [step("scrub", place, 1)]});
        assert_eq!(ask(&stage, Method::POST, &url, &again).await.status(), 409);

        let list = get(&stage, &url).await;
        assert_eq!(list[all].as_array().unwrap().len(), 2);
        assert_eq!(keys(&list[all][0]), ["links", "name", "uuid"]);
        let list = get(&stage, &format!("{url}?detail=true&limit=1")).await;
        assert!(list[all][0]["steps"].is_array() && list["next"].is_string(), "{list}");
        let list = get(&stage, &format!("{url}?fields=name,steps")).await;
        assert_eq!(keys(&list[all][0]), ["name", "steps"]);
        let of_runbooks =
            ["disable_ramdisk", "owner", "public"].iter().filter(|name| keys(&made).contains(name));
        assert_eq!(of_runbooks.count(), if all == "runbooks" { 3 } else { 0 });

        let patch = json!([
            {"op": "replace", "path": "/name", "value": "CUSTOM_C"},
            {"op": "add", "path": "/steps/-", "value": step("wipe", place, 2)},
            {"op": "remove", "path": "/extra/a"},
        ]);
        let reply = ask(&stage, Method::PATCH, &format!("{url}/CUSTOM_A"), &patch).await;
        assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap());
        let changed = get(&stage, &format!("{url}/CUSTOM_C")).await;
        assert_eq!(changed["steps"], json!([step("scrub", place, 1), step("wipe", place, 2)]));
        assert_eq!((&changed["extra"], &changed["uuid"]), (&json!({}), &made["uuid"]));
        assert!(changed["updated_at"].is_string());
        let uuid = made["uuid"].as_str().unwrap();
        for id in [uuid, "CUSTOM_B"] {
            assert_eq!(ask(&stage, Method::DELETE, &format!("{url}/{id}"), &Value::Null).await.status(), 204);
            assert_eq!(ask(&stage, Method::GET, &format!("{url}/{id}"), &Value::Null).await.status(), 404);
        }
    }
}

#[tokio::test]
async fn steps_that_no_node_could_take_are_refused_with_all_that_is_wrong() {
    let stage = Stage::new(Script::default()).await;
    for (all, _, place) in KINDS {
        let good = || step("scrub", place, 1);
        for (fields, part) in [
            (json!({"name": "gold", "steps": [good()]}), "trait \"gold\" must be upper case"),
            (json!({"steps": [good()]}), "name: is missing"),
            (json!({"name": "CUSTOM_A"}), "steps: is missing"),
            (json!({"name": "CUSTOM_A", "steps": []}), "steps: at least one step is needed"),
            (json!({"name": "CUSTOM_A", "steps": "scrub"}), "steps: must be a list"),
            (json!({"name": "CUSTOM_A", "steps": [good(), good()]}), "deploy.scrub is asked for twice"),
            (
                json!({"name": "CUSTOM_A", "steps": [{"interface": "deploy", "step": "scrub"}]}),
                "lacks \"args\"",
            ),
            (
                json!({"name": "CUSTOM_A", "steps": [{"interface": "sound", "step": "play", "args": {}, place: 1}]}),
                "\"sound\"",
            ),
            (json!({"name": "CUSTOM_A", "steps": [good()], "colour": 1}), "no such field"),
        ] {
            let refused = ask(&stage, Method::POST, &format!("/v1/{all}"), &fields).await;
            assert_eq!(refused.status(), 400, "{all} {fields}");
            let text = fault(refused).await;
            assert!(text.contains(part), "{part:?} in {text:?}");
        }
        create(&stage, all, json!({"name": "CUSTOM_A", "steps": [good()]})).await;
        let patch = json!([{"op": "remove", "path": "/steps/0"}]);
        assert_eq!(ask(&stage, Method::PATCH, &format!("/v1/{all}/CUSTOM_A"), &patch).await.status(), 400);
        assert_eq!(get(&stage, &format!("/v1/{all}/CUSTOM_A")).await["steps"], json!([good()]));
    }
    let both =
        json!({"name": "CUSTOM_B", "steps": [step("scrub", "order", 1)], "owner": "me", "public": true});
    let refused = ask(&stage, Method::POST, "/v1/runbooks", &both).await;
    assert_eq!(refused.status(), 400);
    assert!(fault(refused).await.starts_with("owner: goes with no runbook that is public"));
}

#[tokio::test]
async fn s48_secrets_in_steps_are_masked_and_kept() {
    let stage = Stage::new(Script::default()).await;
    for (all, _, place) in KINDS {
        let mut secret = step("enter", place, 1);
        secret["args"] = json!({"bmc_password": "hunter2", "user": "me"});
        let made = create(&stage, all, json!({"name": "CUSTOM_A", "steps": [secret]})).await;
        let path = format!("/v1/{all}/CUSTOM_A");
        let masked = json!({"bmc_password": "******", "user": "me"});
        for shown in
            [&made, &get(&stage, &path).await, &get(&stage, &format!("/v1/{all}?detail=true")).await[all][0]]
        {
            assert_eq!(shown["steps"][0]["args"], masked, "{shown}");
        }
        let give_back = json!([{"op": "add", "path": "/steps", "value": made["steps"]}]);
        let refused = ask(&stage, Method::PATCH, &path, &give_back).await;
        assert_eq!(refused.status(), 400);
        assert!(fault(refused).await.contains("stands for a secret"));
        let patch = json!([{"op": "add", "path": "/extra/a", "value": 1}]);
        assert_eq!(ask(&stage, Method::PATCH, &path, &patch).await.status(), 200);
    }
}

fn offers(steps: &[&str]) -> Script {
    let offered = steps.iter().map(|step| json!({"interface": "deploy", "step": step, "priority": 0}));
    Script { offers: Some(offered.collect()), ..Script::default() }
}

/// Deploys an instance that wants traits, with steps of its user.
async fn deploy(stage: &Stage, traits: Value, steps: &[Value]) {
    let mut info = image();
    info.insert("traits".into(), traits);
    stage.conductor.order("n1", Order::deploy_with_steps(info, steps)).await.unwrap();
}

#[tokio::test]
async fn a_deployment_has_the_steps_of_the_templates_that_its_instance_wants() {
    let stage = Stage::new(offers(&["scrub", "seal", "burn"])).await;
    create(
        &stage,
        "deploy_templates",
        json!({"name": "CUSTOM_SCRUBBED", "steps": [step("scrub", "priority", 85)]}),
    )
    .await;
    create(
        &stage,
        "deploy_templates",
        json!({"name": "CUSTOM_SEALED", "steps": [step("seal", "priority", 70)]}),
    )
    .await;
    create(
        &stage,
        "deploy_templates",
        json!({"name": "CUSTOM_BURNT", "steps": [step("burn", "priority", 50)]}),
    )
    .await;
    stage
        .change_node(|node| {
            node.traits = ["CUSTOM_SCRUBBED", "CUSTOM_SEALED", "CUSTOM_BURNT"].map(str::to_owned).into()
        })
        .await;
    deploy(&stage, json!(["CUSTOM_SEALED", "CUSTOM_SCRUBBED"]), &[]).await;
    // What a deployment has begun with stays with it.
    stage.told(|script| !script.steps().is_empty()).await;
    let deleted = ask(&stage, Method::DELETE, "/v1/deploy_templates/CUSTOM_SEALED", &Value::Null).await;
    assert_eq!(deleted.status(), 204);
    stage.wait_for(ProvisionState::Active).await;
    let expected = ["scrub", "write_image", "seal"].map(|step| format!("deploy deploy.{step}"));
    assert_eq!(stage.script().steps(), expected);
    // A trait without a template means nothing, and steps of the user take the place of templates.
    deploy(&stage, json!(["CUSTOM_SEALED", "CUSTOM_SCRUBBED"]), &[step("burn", "priority", 45)]).await;
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(
        stage.script().steps()[3..],
        ["write_image", "burn"].map(|step| format!("deploy deploy.{step}"))
    );
}

#[tokio::test]
async fn a_template_whose_steps_the_node_lacks_fails_its_deployments_with_the_reason() {
    let stage = Stage::new(offers(&[])).await;
    create(
        &stage,
        "deploy_templates",
        json!({"name": "CUSTOM_SCRUBBED", "steps": [step("scrub", "priority", 85)]}),
    )
    .await;
    create(
        &stage,
        "deploy_templates",
        json!({"name": "CUSTOM_LATE", "steps": [step("write_image", "priority", 30)]}),
    )
    .await;
    let lacks = set(
        &stage,
        "n1",
        &json!({"/instance_info": {"traits": ["CUSTOM_SCRUBBED"], "image_source": "http://h/i"}}),
    )
    .await;
    assert_eq!(lacks.status(), 200);
    let (status, text) = provision(&stage, json!({"target": "active"})).await;
    assert_eq!(status, 400);
    assert!(text.starts_with("instance_info traits: the node lacks CUSTOM_SCRUBBED"), "{text}");
    stage
        .change_node(|node| node.traits = ["CUSTOM_SCRUBBED", "CUSTOM_LATE"].map(str::to_owned).into())
        .await;
    let mut late = image();
    late.insert("traits".into(), json!(["CUSTOM_LATE"]));
    let refused = stage.conductor.order("n1", Order::deploy(late)).await.unwrap_err().to_string();
    assert!(refused.contains("from 99 down to 41"), "{refused}");
    deploy(&stage, json!(["CUSTOM_SCRUBBED"]), &[]).await;
    let node = stage.wait_for(ProvisionState::DeployFailed).await;
    assert!(node.last_error.unwrap().contains("step deploy.scrub is unknown"));
    assert!(!stage.machine.power_ons().contains(&Some(Boot::Disk)));
}

#[tokio::test]
async fn a_runbook_leads_the_nodes_that_have_its_name_as_a_trait() {
    let stage = Stage::new(Script::default()).await;
    let steps = json!([step("erase_devices", "order", 2), step("erase_devices_metadata", "order", 1)]);
    let made = create(&stage, "runbooks", json!({"name": "CUSTOM_WIPE", "steps": steps})).await;
    stage.manageable().await;
    let clean = |runbook: &Value| json!({"target": "clean", "runbook": runbook});
    for (request, status, part) in [
        (clean(&json!("CUSTOM_WIPE")), 400, "runbook: node n1 lacks the trait CUSTOM_WIPE"),
        (clean(&json!("CUSTOM_NONE")), 400, "runbook: runbook \"CUSTOM_NONE\" does not exist"),
        (json!({"target": "clean"}), 400, "clean_steps: at least one step is needed"),
        (
            json!({"target": "provide", "runbook": "CUSTOM_WIPE"}),
            400,
            "does not belong to target \"provide\"",
        ),
        (
            json!({"target": "clean", "runbook": "CUSTOM_WIPE", "clean_steps": [{"interface": "deploy", "step": "a"}]}),
            400,
            "runbook: takes the place of clean_steps; give one of both",
        ),
    ] {
        let refused = provision(&stage, request.clone()).await;
        assert!(refused.0 == status && refused.1.contains(part), "{request}: {refused:?}");
        assert_eq!(stage.node().await.provision_state, ProvisionState::Manageable);
    }
    let path = "/v1/nodes/n1/states/provision";
    let early = ask_in("1.91", &stage, Method::PUT, path, &clean(&json!("CUSTOM_WIPE"))).await;
    assert_eq!(early.status(), 406);

    stage.change_node(|node| node.traits = vec!["CUSTOM_WIPE".into()]).await;
    for id in [json!("CUSTOM_WIPE"), made["uuid"].clone()] {
        let before = stage.script().steps().len();
        assert_eq!(provision(&stage, clean(&id)).await.0, 202);
        stage.wait_for(ProvisionState::Manageable).await;
        let expected = ["erase_devices_metadata", "erase_devices"].map(|step| format!("clean deploy.{step}"));
        assert_eq!(stage.script().steps()[before..], expected);
    }
}

#[tokio::test]
async fn a_runbook_services_an_instance_and_may_do_without_the_ramdisk() {
    let stage = Stage::new(Script::default()).await;
    let at_once = json!([{"interface": "power", "step": "at_once", "args": {}, "order": 0}]);
    let without = json!({"name": "CUSTOM_QUICK", "steps": at_once, "disable_ramdisk": true, "public": true});
    create(&stage, "runbooks", without).await;
    create(&stage, "runbooks", json!({"name": "CUSTOM_DEEP", "steps": [step("erase_devices", "order", 1)]}))
        .await;
    stage.change_node(|node| node.traits = ["CUSTOM_QUICK", "CUSTOM_DEEP"].map(str::to_owned).into()).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    let boots = stage.machine.power_ons().len();
    assert_eq!(provision(&stage, json!({"target": "service", "runbook": "CUSTOM_QUICK"})).await.0, 202);
    stage.told(|script| script.driven == ["at_once"]).await;
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!((node.last_error, stage.machine.power_ons().len()), (None, boots));
    let boots = stage.machine.power_ons().len();
    let request = json!({"target": "service", "runbook": "CUSTOM_DEEP", "disable_ramdisk": true});
    assert_eq!(provision(&stage, request).await.0, 202);
    let node = stage.wait_for(ProvisionState::ServiceFailed).await;
    assert!(node.last_error.unwrap().contains("deploy.erase_devices is unknown"));
    assert_eq!(
        (node.power_state, stage.machine.power_ons().len()),
        (Some(PowerState::On), boots),
        "the instance runs on"
    );
    assert_eq!(provision(&stage, json!({"target": "service", "runbook": "CUSTOM_DEEP"})).await.0, 202);
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(stage.script().steps().last().unwrap(), "service deploy.erase_devices");
}
