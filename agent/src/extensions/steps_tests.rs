//! The steps of all phases as a conductor meets them (sections 4.1, 4.2 and 16.7).

use super::*;
use crate::commands::Command;
use crate::deployment::root_disk;
use crate::extensions;
use crate::settings::options::Options;
use farrier_hardware::dispatch::HardwareManagers;
use farrier_hardware::manager::Device;
use farrier_hardware::manager::{DeviceFilter, HardwareManager, StepDeclaration, Support};
use farrier_protocol::lookup::Node;

/// What an extension, its phase and its keys are called.
const PHASES: [&str; 3] = ["clean", "deploy", "service"];

fn agent() -> (Arc<Agent>, tempfile::TempDir) {
    crate::network::http::install_tls_provider();
    let root = tempfile::tempdir().unwrap();
    let agent = Agent::new(Options::default(), root.path(), tokio::runtime::Handle::current()).unwrap();
    (agent, root)
}

fn command(extension: &str, name: &str) -> &'static Command {
    extensions::find(extension, name).unwrap_or_else(|error| panic!("{extension}: {}", error.details))
}

fn params(value: Value) -> Params {
    serde_json::from_value(value).unwrap()
}

fn node() -> Value {
    json!({"uuid": "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11", "properties": {}})
}

fn run_step(agent: &Arc<Agent>, phase: &str, mut extra: Value) -> Result<Value, CommandError> {
    let mut given = params(json!({"node": node(), "ports": []}));
    given.append(extra.as_object_mut().unwrap());
    (command(phase, &format!("execute_{phase}_step")).run)(agent, &given)
}

#[tokio::test]
async fn lists_have_the_keys_of_their_phase() {
    let (agent, _root) = agent();
    for phase in PHASES {
        let given = params(json!({"node": node(), "ports": []}));
        let listed = (command(phase, &format!("get_{phase}_steps")).run)(&agent, &given).unwrap();
        let listed = listed.as_object().unwrap();
        assert_eq!(listed.len(), 2, "{listed:?}");
        assert_eq!(listed["hardware_manager_version"], json!({"generic_hardware_manager": "1.2"}));
        for step in listed[&format!("{phase}_steps")]["GenericHardwareManager"].as_array().unwrap() {
            assert!(step["step"].is_string() && step["interface"].is_string(), "{step}");
            assert!(step["priority"].is_i64() && step["reboot_requested"].is_boolean(), "{step}");
        }
        assert_eq!(agent.node().unwrap().uuid.to_string(), "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11");
    }
}

#[tokio::test]
async fn x49_a_node_is_whatever_its_conductor_calls_it() {
    let (agent, _root) = agent();
    for (node, uuid) in [(json!({"uuid": "1"}), "1"), (json!({}), "")] {
        for phase in PHASES {
            let given = params(json!({"node": node, "ports": []}));
            (command(phase, &format!("get_{phase}_steps")).run)(&agent, &given).unwrap();
            assert_eq!(agent.node().unwrap().uuid, uuid);
        }
    }
}

#[tokio::test]
async fn inject_files_priority_is_listed_while_deploying_and_in_service() {
    crate::network::http::install_tls_provider();
    let root = tempfile::tempdir().unwrap();
    let options = Options { inject_files_priority: 70, ..Options::default() };
    let agent = Agent::new(options, root.path(), tokio::runtime::Handle::current()).unwrap();
    for (phase, expected) in [("clean", None), ("deploy", Some(70)), ("service", Some(70))] {
        let given = params(json!({"node": node(), "ports": []}));
        let listed = (command(phase, &format!("get_{phase}_steps")).run)(&agent, &given).unwrap();
        let steps = listed[&format!("{phase}_steps")]["GenericHardwareManager"].as_array().unwrap();
        let step = steps.iter().find(|step| step["step"] == "inject_files");
        assert_eq!(step.and_then(|step| step["priority"].as_i64()), expected, "{phase}");
    }
}

#[test]
fn d04_a_step_answers_its_result_and_itself_as_it_was_given() {
    let step = json!({"step": "erase_devices_metadata", "interface": "deploy", "args": null, "x": 1});
    for (phase, expected) in [
        (Phase::Clean, json!({"clean_result": null, "clean_step": step})),
        (Phase::Deploy, json!({"deploy_result": null, "deploy_step": step})),
        (Phase::Service, json!({"service_result": null, "service_step": step})),
    ] {
        assert_eq!(answer(phase, Value::Null, &step), expected);
    }
}

#[tokio::test]
async fn steps_that_cannot_run_say_why() {
    let (agent, _root) = agent();
    let other = json!({"generic_hardware_manager": "1.1"});
    for (phase, extra, kind, named) in [
        ("clean", json!({"step": {"step": "write_image"}}), "HardwareManagerMethodNotFound", "write_image"),
        (
            "service",
            json!({"step": {"step": "no_such_step"}}),
            "HardwareManagerMethodNotFound",
            "service step",
        ),
        ("deploy", json!({"step": {"step": "write_image"}}), "InvalidCommandParamsError", "image_info"),
        ("clean", json!({"step": {"interface": "deploy"}}), "InvalidCommandParamsError", "step"),
        ("clean", json!({"step": {"step": "x"}, "clean_version": other}), "VersionMismatch", "1.1"),
        ("deploy", json!({"step": {"step": "x"}, "deploy_version": {}}), "VersionMismatch", "1.2"),
        ("service", json!({"step": {"step": "x"}, "service_version": other}), "VersionMismatch", "1.1"),
        (
            "clean",
            json!({"step": {"step": "x"}, "clean_version": null}),
            "HardwareManagerMethodNotFound",
            "x",
        ),
    ] {
        let (agent, given) = (Arc::clone(&agent), extra.clone());
        // Commands run on threads of their own.
        let outcome = tokio::task::spawn_blocking(move || run_step(&agent, phase, given)).await.unwrap();
        let error = outcome.unwrap_err();
        assert_eq!(error.kind, kind, "{extra}");
        assert!(error.details.contains(named), "{}", error.details);
    }
}

#[test]
fn d04_arguments_of_the_step_win_over_further_parameters() {
    let given = params(json!({
        "node": {}, "ports": [], "clean_version": null, "step": {}, "a": 1, "b": 1,
    }));
    let step: Step = serde_json::from_value(json!({"step": "x", "args": {"b": 2, "c": 2}})).unwrap();
    let arguments = arguments(&given, &step, Phase::Clean);
    assert_eq!(Value::Object(arguments), json!({"a": 1, "b": 2, "c": 2}));
}

#[test]
fn a_defect_has_the_error_type_of_its_phase() {
    for (phase, kind) in [
        (Phase::Clean, "CleaningError"),
        (Phase::Deploy, "DeploymentError"),
        (Phase::Service, "ServicingError"),
    ] {
        for panic in [&"index out of bounds" as &(dyn Any + Send), &"index out of bounds".to_owned()] {
            let error = defect(phase, "some_step", panic);
            assert_eq!(error.kind, kind);
            assert!(error.details.contains("some_step ended by"), "{}", error.details);
            assert!(error.details.contains("index out of bounds"), "{}", error.details);
        }
    }
}

/// Hides every disk, and shows in a step which disks that step is to leave alone.
struct Hiding;

impl HardwareManager for Hiding {
    fn class_name(&self) -> &'static str {
        "Hiding"
    }

    fn name(&self) -> &'static str {
        "hiding"
    }

    fn version(&self) -> &'static str {
        "1"
    }

    fn evaluate(&self) -> Support {
        Support::Mainline
    }

    fn steps(&self) -> &'static [StepDeclaration] {
        &[StepDeclaration {
            step: "tell_skipped_disks",
            interface: "deploy",
            priorities: &[(Phase::Clean, 0)],
            reboot_requested: false,
            abortable: &[],
            arguments: &[],
            run: &|call| {
                Ok(json!([call.node.skip_block_devices(), call.record["properties"]["skip_block_devices"]]))
            },
        }]
    }

    fn device_filter(&self) -> Option<&dyn DeviceFilter> {
        Some(self)
    }
}

impl DeviceFilter for Hiding {
    fn filter(&self, device: &mut Device<'_>) -> bool {
        !matches!(device, Device::Disk(_))
    }
}

#[tokio::test]
async fn a_hidden_disk_is_left_alone_by_steps_and_is_no_root_disk() {
    let (agent, _root) = agent();
    let managers = HardwareManagers::load(vec![Box::new(Hiding)]);
    agent.use_managers(managers);
    let disks = list::list(Path::new("/sys")).unwrap();
    let expected: Vec<_> = disks.iter().map(|device| json!({"name": device.disk.name})).collect();
    let chosen = root_disk::choose(agent.managers(), &Node::default());
    assert!(chosen.is_err_and(|error| error.kind == "DeviceNotFound"));
    let step = json!({"step": {"step": "tell_skipped_disks"}});
    let outcome = tokio::task::spawn_blocking(move || run_step(&agent, "clean", step)).await.unwrap();
    assert_eq!(outcome.unwrap()["clean_result"], json!([expected, expected]));
}

#[tokio::test]
async fn x11_managers_judge_the_machine_when_its_drivers_are_loaded() {
    let (agent, root) = agent();
    let write = |path: &str, text: &str| {
        let file = root.path().join("sys").join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    write("module/mlx5_core/initstate", "coming");
    let listing = tokio::task::spawn_blocking(move || {
        let given = params(json!({"node": node(), "ports": []}));
        (command("clean", "get_clean_steps").run)(&agent, &given).unwrap()
    });
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    assert!(!listing.is_finished(), "the driver is still being loaded");
    write("class/net/eth0/device/vendor", "0x15b3\n");
    write("module/mlx5_core/initstate", "live");
    let versions = &listing.await.unwrap()["hardware_manager_version"];
    let expected = json!({"generic_hardware_manager": "1.2", "MellanoxDeviceHardwareManager": "1"});
    assert_eq!(*versions, expected);
}

/// What the Python agent's own functional test sends, and the like.
#[tokio::test]
async fn x39_what_the_python_agent_takes_is_taken() {
    let (agent, _root) = agent();
    let short = json!({"uuid": "1", "properties": {}, "instance_info": {}});
    for phase in PHASES {
        for (record, ports) in [(&short, json!({})), (&short, json!([])), (&node(), json!(null))] {
            let listing = command(phase, &format!("get_{phase}_steps"));
            let given = params(json!({"node": record, "ports": ports}));
            let asked = Arc::clone(&agent);
            // Commands run on threads of their own.
            let listed =
                tokio::task::spawn_blocking(move || listing.run_checked(&asked, &given)).await.unwrap();
            let listed = listed.unwrap_or_else(|error| panic!("{ports}: {error:?}"));
            assert!(listed[format!("{phase}_steps")].is_object(), "{listed}");
            for args in [json!(null), json!({}), json!([]), json!(""), json!(false)] {
                let step = json!({"step": "no_such_step", "interface": "deploy", "args": args});
                let given = params(json!({"node": record, "ports": ports, "step": step}));
                let (agent, run) = (Arc::clone(&agent), command(phase, &format!("execute_{phase}_step")));
                let outcome =
                    tokio::task::spawn_blocking(move || run.run_checked(&agent, &given)).await.unwrap();
                // Everything was understood.
                assert_eq!(outcome.unwrap_err().kind, "HardwareManagerMethodNotFound", "{args}");
            }
        }
        for (name, value) in [("ports", json!({"a": 1})), ("ports", json!("x")), ("node", json!([]))] {
            let mut given = params(json!({"node": node(), "ports": []}));
            given.insert(name.to_owned(), value);
            let (agent, listing) = (Arc::clone(&agent), command(phase, &format!("get_{phase}_steps")));
            let outcome = tokio::task::spawn_blocking(move || listing.run_checked(&agent, &given)).await;
            let error = outcome.unwrap().unwrap_err();
            assert_eq!(error.kind, "InvalidCommandParamsError", "{}", error.details);
        }
    }
    assert_eq!(agent.node().unwrap().uuid.to_string(), "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11");
}
