//! The deploy interfaces beside `direct`, over HTTP.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::Boot;
use crate::stand_ins::operator::{ask, get, set};
use crate::stand_ins::stage::{Stage, fault};
use farrier_conductor::PowerAction;
use farrier_conductor::model::{PowerState, ProvisionState, RamdiskInstance};
use farrier_engine::records::Order;
use reqwest::{Method, Response};
use serde_json::{Value, json};

/// A stage whose node is not cleaned by itself.
async fn stage(script: Script) -> Stage {
    Stage::with(script, |settings| settings.automated_clean = false).await
}

/// Orders a deployment of this instance by a deploy interface, with more arguments.
async fn order(stage: &Stage, deploy: &str, instance_info: &Value, arguments: Value) -> Response {
    let fields = json!({"/deploy_interface": deploy, "/instance_info": instance_info});
    let set = set(stage, "n1", &fields).await;
    assert_eq!(set.status(), 200, "{}", set.text().await.unwrap());
    provision(stage, "active", arguments).await
}

async fn provision(stage: &Stage, target: &str, arguments: Value) -> Response {
    let mut request = json!({"target": target});
    request.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
    ask(stage, Method::PUT, "/v1/nodes/n1/states/provision", &request).await
}

async fn deploy(stage: &Stage, deploy: &str, instance_info: &Value, arguments: Value) {
    let reply = order(stage, deploy, instance_info, arguments).await;
    assert_eq!(reply.status(), 202, "{}", reply.text().await.unwrap());
}

async fn undeploy(stage: &Stage) {
    assert_eq!(provision(stage, "deleted", json!({})).await.status(), 202);
    stage.wait_for(ProvisionState::Available).await;
}

fn step(name: &str, args: Value, priority: u32) -> Value {
    json!({"interface": "deploy", "step": name, "args": args, "priority": priority})
}

fn offer(name: &str) -> Option<Vec<Value>> {
    let argument = json!({"release": {"description": "which one", "required": false}});
    let step =
        json!({"interface": "deploy", "step": name, "priority": 0, "abortable": true, "argsinfo": argument});
    Some(vec![step])
}

fn iso() -> Value {
    json!({"boot_iso": "http://192.0.2.5/live.iso"})
}

fn in_memory(drive: Option<&str>) -> Option<Boot> {
    let iso = RamdiskInstance::Iso("http://192.0.2.5/live.iso".to_owned());
    Some(Boot::Memory(iso, drive.map(str::to_owned)))
}

/// The commands that an agent was given, but for listings.
fn commands(stage: &Stage) -> Vec<String> {
    let names = stage.script().accepted.into_iter().map(|(name, _)| name);
    names.filter(|name| !name.contains(".get_deploy_steps")).collect()
}

#[tokio::test]
async fn a_ramdisk_is_an_instance_and_no_agent_is_asked_for_anything() {
    let stage = stage(Script::default()).await;
    let info =
        json!({"kernel": "http://h/k", "ramdisk": "http://h/r", "ramdisk_kernel_arguments": "role=probe"});
    deploy(&stage, "ramdisk", &info, json!({"configdrive": "H4sIAAAA"})).await;
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!((node.power_state, node.last_error), (Some(PowerState::On), None));
    let kernel = RamdiskInstance::Kernel {
        kernel: "http://h/k".into(),
        ramdisk: "http://h/r".into(),
        parameters: "root=/dev/ram0 text role=probe".parse().unwrap(),
    };
    let booted = Some(Boot::Memory(kernel, Some("H4sIAAAA".to_owned())));
    assert_eq!(stage.machine.power_ons(), std::slice::from_ref(&booted));
    // It starts so at every power-on.
    for action in [PowerAction::Off, PowerAction::On] {
        stage.conductor.order("n1", Order::power(action)).await.unwrap();
        stage.idle().await;
    }
    assert_eq!(stage.machine.power_ons(), [booted.clone(), booted]);
    assert!(stage.script().accepted.is_empty());
    undeploy(&stage).await;
    assert_eq!(stage.machine.state.lock().unwrap().boot, None);
}

/// After a rescue or a service too, the machine starts what it was given.
#[tokio::test]
async fn a_ramdisk_runs_again_after_a_rescue_and_a_service() {
    let stage = stage(Script::default()).await;
    deploy(&stage, "ramdisk", &iso(), json!({})).await;
    stage.wait_for(ProvisionState::Active).await;
    let rescue = provision(&stage, "rescue", json!({"rescue_password": "oats and barley"})).await;
    assert_eq!(rescue.status(), 202);
    stage.wait_for(ProvisionState::Rescue).await;
    assert_eq!(provision(&stage, "unrescue", json!({})).await.status(), 202);
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(stage.machine.power_ons().last(), Some(&in_memory(None)));
    let steps = json!({"service_steps": [{"interface": "deploy", "step": "erase_devices"}]});
    assert_eq!(provision(&stage, "service", steps).await.status(), 202);
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(stage.machine.power_ons().len(), 5);
    assert_eq!(stage.machine.power_ons().last(), Some(&in_memory(None)));
}

#[tokio::test]
async fn what_no_ramdisk_can_be_is_refused_at_once() {
    let stage = stage(Script::default()).await;
    let steps = json!({"deploy_steps": [step("scrub", json!({}), 80)]});
    for (info, arguments, part) in [
        (
            json!({"kernel": "http://h/k"}),
            json!({}),
            "ramdisk: is missing; give the kernel and ramdisk, or the boot_iso",
        ),
        (json!({"image_source": "http://h/i"}), json!({}), "kernel: is missing"),
        (json!({"kernel": "k", "ramdisk": "r", "kernel_append_params": "a;b"}), json!({}), "';'"),
        // No agent has a step then.
        (iso(), steps, "step deploy.scrub is unknown; the node has: deploy.deploy"),
    ] {
        let refused = order(&stage, "ramdisk", &info, arguments).await;
        assert_eq!(refused.status(), 400, "{info}");
        let text = fault(refused).await;
        assert!(text.contains(part), "{part:?} in {text:?}");
        assert_eq!(stage.node().await.provision_state, ProvisionState::Available);
    }
    assert!(stage.machine.power_ons().is_empty());
}

#[tokio::test]
async fn a_custom_agent_writes_by_its_own_steps_and_by_nothing_else() {
    let stage = stage(Script { offers: offer("write_os"), ..Script::default() }).await;
    let steps = json!({"deploy_steps": [step("write_os", json!({"release": "7"}), 80)]});
    deploy(&stage, "custom-agent", &json!({}), steps).await;
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!((node.power_state, node.last_error), (Some(PowerState::On), None));
    assert_eq!(commands(&stage), ["deploy.execute_deploy_step", "standby.power_off"]);
    let (_, sent) =
        stage.script().accepted.into_iter().find(|(name, _)| name.ends_with("deploy_step")).unwrap();
    assert_eq!(
        (&sent["step"]["step"], &sent["step"]["args"]),
        (&json!("write_os"), &json!({"release": "7"}))
    );
    assert!(matches!(&stage.machine.power_ons()[..], [Some(Boot::Ramdisk(_)), Some(Boot::Disk)]));
}

#[tokio::test]
async fn f64_a_custom_agent_that_fails_or_does_nothing_deploys_nothing() {
    let stage = stage(Script { offers: offer("write_os"), ..Script::default() }).await;
    deploy(&stage, "custom-agent", &json!({}), json!({})).await;
    let node = stage.wait_for(ProvisionState::DeployFailed).await;
    let error = node.last_error.unwrap();
    assert!(
        error.starts_with("deploy step prepare_instance_boot failed: deploy_steps: no step of the agent"),
        "{error}"
    );
    stage.change(|script| script.write_fails = Some("no space left on /dev/vda".into()));
    let steps = json!({"deploy_steps": [step("write_os", json!({}), 80)]});
    assert_eq!(provision(&stage, "active", steps.clone()).await.status(), 202);
    let node = stage.wait_for(ProvisionState::DeployFailed).await;
    assert_eq!(node.last_error.unwrap(), "deploy step write_os failed: no space left on /dev/vda [FAR-0411]");
    assert!(!stage.machine.power_ons().contains(&Some(Boot::Disk)));
}

#[tokio::test]
async fn f65_a_custom_agent_is_aborted_in_its_step() {
    let stage = stage(Script { offers: offer("write_os"), blocked: true, ..Script::default() }).await;
    let steps = json!({"deploy_steps": [step("write_os", json!({}), 80)]});
    deploy(&stage, "custom-agent", &json!({}), steps).await;
    stage.told(|script| !script.steps().is_empty()).await;
    stage.wait_for(ProvisionState::DeployWait).await;
    assert_eq!(provision(&stage, "abort", json!({})).await.status(), 202);
    let node = stage.wait_for(ProvisionState::DeployFailed).await;
    assert!(node.last_error.unwrap().contains("aborted by request (step write_os)"));
    assert_eq!(stage.idle().await.power_state, Some(PowerState::Off));
}

#[tokio::test]
async fn a_container_image_installs_itself() {
    let stage = stage(Script::default()).await;
    let info =
        json!({"image_source": "oci://quay.io/fedora/fedora-bootc:44", "image_pull_secret": "me:mine"});
    deploy(&stage, "bootc", &info, json!({"configdrive": "H4sIAAAA"})).await;
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!((node.power_state, node.last_error), (Some(PowerState::On), None));
    assert_eq!(commands(&stage), ["deploy.execute_deploy_step", "standby.power_off"]);
    let (_, sent) =
        stage.script().accepted.into_iter().find(|(name, _)| name.ends_with("deploy_step")).unwrap();
    let expected = json!({
        "image_source": "oci://quay.io/fedora/fedora-bootc:44", "configdrive": "H4sIAAAA",
        "oci_pull_secret": "bWU6bWluZQ==",
    });
    assert_eq!((&sent["step"]["step"], &sent["step"]["args"]), (&json!("execute_bootc_install"), &expected));
    assert_eq!(sent["node"]["instance_info"]["image_pull_secret"], "******");
    assert_eq!(stage.machine.power_ons().last(), Some(&Some(Boot::Disk)));
    // What is of the instance is in no record of its steps.
    let shown = get(&stage, "/v1/nodes/n1").await;
    assert!(!shown.to_string().contains("bWU6bWluZQ=="), "{shown}");
}

#[tokio::test]
async fn f64_a_container_image_that_cannot_be_installed_is_told_in_the_agents_words() {
    let stage = stage(Script {
        write_fails: Some("podman: 401 Unauthorized [FAR-0411]".into()),
        ..Script::default()
    })
    .await;
    let refused = order(&stage, "bootc", &json!({"image_source": "http://h/os.raw"}), json!({})).await;
    assert_eq!(refused.status(), 400);
    assert!(fault(refused).await.contains("must be oci://REGISTRY/PATH"));
    deploy(&stage, "bootc", &json!({"image_source": "oci://h/os"}), json!({})).await;
    let node = stage.wait_for(ProvisionState::DeployFailed).await;
    assert_eq!(
        node.last_error.unwrap(),
        "deploy step execute_bootc_install failed: podman: 401 Unauthorized [FAR-0411]"
    );
}

#[tokio::test]
async fn each_instance_is_deployed_by_the_interface_that_can_do_it() {
    let checksum = "a".repeat(64);
    let disk = json!({"image_source": "http://192.0.2.5/debian.raw", "image_checksum": checksum});
    let stage = stage(Script::default()).await;
    for (info, expected) in [
        (iso(), "ramdisk"),
        (json!({"kernel": "http://h/k", "ramdisk": "http://h/r"}), "ramdisk"),
        (json!({"image_source": "oci://h/os"}), "bootc"),
        (disk, "direct"),
    ] {
        deploy(&stage, "autodetect", &info, json!({})).await;
        stage.wait_for(ProvisionState::Active).await;
        let node = get(&stage, "/v1/nodes/n1").await;
        assert_eq!(node["deploy_interface"], expected, "{info}");
        assert_eq!(node["driver_internal_info"]["original_deploy_interface"], "autodetect");
        undeploy(&stage).await;
        let node = get(&stage, "/v1/nodes/n1").await;
        assert_eq!(node["deploy_interface"], "autodetect");
        assert_eq!(node["driver_internal_info"].get("original_deploy_interface"), None);
    }
}

/// The wish of an instance comes before the interface of the node, in the whole deployment and in each rebuild.
#[tokio::test]
async fn f39_the_interface_that_an_instance_wants_deploys_it() {
    let stage = stage(Script::default()).await;
    for wanted in ["autodetect", "ramdisk"] {
        let mut info = iso();
        info["deploy_interface"] = json!(wanted);
        deploy(&stage, "direct", &info, json!({})).await;
        stage.wait_for(ProvisionState::Active).await;
        assert_eq!(stage.machine.state.lock().unwrap().boot, in_memory(None), "{wanted}");
        assert_eq!(set(&stage, "n1", &json!({"/instance_info": info})).await.status(), 200);
        assert_eq!(provision(&stage, "rebuild", json!({})).await.status(), 202);
        stage.wait_for(ProvisionState::Active).await;
        assert_eq!(stage.machine.state.lock().unwrap().boot, in_memory(None), "{wanted}");
        undeploy(&stage).await;
        assert_eq!(get(&stage, "/v1/nodes/n1").await["deploy_interface"], "direct");
    }
}

/// What nobody can deploy is told by the last one; a rebuild chooses anew.
#[tokio::test]
async fn f39_autodetect_chooses_again_for_what_is_another_instance() {
    let stage = stage(Script::default()).await;
    let refused = order(&stage, "autodetect", &json!({}), json!({})).await;
    assert_eq!(refused.status(), 400);
    assert!(fault(refused).await.starts_with("image_source: is missing"));
    let validity = get(&stage, "/v1/nodes/n1/validate").await;
    assert_eq!(validity["deploy"]["reason"], "image_source: is missing; give the URL of an image");
    assert_eq!(get(&stage, "/v1/nodes/n1").await["deploy_interface"], "autodetect");

    deploy(&stage, "autodetect", &iso(), json!({})).await;
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(get(&stage, "/v1/nodes/n1/validate").await["deploy"], json!({"result": true}));
    assert_eq!(
        set(&stage, "n1", &json!({"/instance_info": {"image_source": "oci://h/os"}})).await.status(),
        200
    );
    assert_eq!(provision(&stage, "rebuild", json!({})).await.status(), 202);
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!(json!(node)["deploy_interface"], "bootc");
    assert_eq!(stage.machine.power_ons().last(), Some(&Some(Boot::Disk)));
    undeploy(&stage).await;
    assert_eq!(get(&stage, "/v1/nodes/n1").await["deploy_interface"], "autodetect");
}

/// A deployment that failed goes on by the interface that began it.
#[tokio::test]
async fn a_retry_stays_with_what_autodetect_has_chosen() {
    let stage = stage(Script { write_fails: Some("disk full".into()), ..Script::default() }).await;
    deploy(&stage, "autodetect", &json!({"image_source": "oci://h/os"}), json!({})).await;
    stage.wait_for(ProvisionState::DeployFailed).await;
    assert_eq!(get(&stage, "/v1/nodes/n1").await["deploy_interface"], "bootc");
    stage.change(|script| script.write_fails = None);
    assert_eq!(provision(&stage, "retry", json!({})).await.status(), 202);
    stage.wait_for(ProvisionState::Active).await;
    undeploy(&stage).await;
    assert_eq!(get(&stage, "/v1/nodes/n1").await["deploy_interface"], "autodetect");
}

/// What an operator chooses in the middle of it all is not taken back.
#[tokio::test]
async fn an_interface_that_is_chosen_by_hand_stays() {
    let stage = stage(Script::default()).await;
    deploy(&stage, "autodetect", &iso(), json!({})).await;
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(set(&stage, "n1", &json!({"/maintenance": true})).await.status(), 200);
    assert_eq!(set(&stage, "n1", &json!({"/deploy_interface": "custom-agent"})).await.status(), 200);
    assert_eq!(set(&stage, "n1", &json!({"/maintenance": false})).await.status(), 200);
    undeploy(&stage).await;
    assert_eq!(get(&stage, "/v1/nodes/n1").await["deploy_interface"], "custom-agent");
}

#[tokio::test]
async fn an_installer_is_refused_with_what_to_use_in_its_place() {
    let stage = stage(Script::default()).await;
    let refused = set(&stage, "n1", &json!({"/deploy_interface": "anaconda"})).await;
    assert_eq!(refused.status(), 400);
    let text = fault(refused).await;
    assert!(text.starts_with("deploy_interface: \"anaconda\" is not supported, because"), "{text}");
    assert!(text.contains("by \"direct\"") && text.contains("by \"ramdisk\""), "{text}");
    let new = json!({"name": "n2", "driver": "fake", "deploy_interface": "anaconda"});
    assert_eq!(ask(&stage, Method::POST, "/v1/nodes", &new).await.status(), 400);
}

/// A machine that runs its instance in memory is taken over with it.
#[tokio::test]
async fn an_instance_in_memory_is_adopted() {
    let stage = stage(Script::default()).await;
    stage.manageable().await;
    stage.machine.state.lock().unwrap().power = PowerState::On;
    let fields = json!({"/deploy_interface": "autodetect", "/instance_info": iso()});
    assert_eq!(set(&stage, "n1", &fields).await.status(), 200);
    assert_eq!(provision(&stage, "adopt", json!({})).await.status(), 202);
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!(json!(node)["deploy_interface"], "ramdisk");
    assert!(stage.machine.power_ons().is_empty());
    assert_eq!(stage.machine.state.lock().unwrap().boot, in_memory(None));
}
