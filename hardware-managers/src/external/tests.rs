//! Real programs, good ones and hostile ones.

mod schema;

use super::conversation::Request;
use super::*;
use crate::dispatch::HardwareManagers;
use crate::error::StepError;
use crate::fake_host::FakeHost;
use crate::generic::GenericHardwareManager;
use crate::inventory::fake_program::install;
use crate::manager::{StepCall, Support};
use farrier_protocol::error::CommandError;
use farrier_protocol::lookup::Node;
use farrier_protocol::step::Phase;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A folder for programs.
struct Programs(TempDir);

impl Programs {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Writes a shell program; `answers` is the body of a `case` over the request.
    fn shell(&self, name: &str, answers: &str) -> PathBuf {
        let program = self.0.path().join(name);
        let text = format!("#!/bin/sh\nread -r request\ncase $request in\n{answers}\nesac\n");
        install(&program, &text);
        program
    }

    /// A manager that describes itself well, has one step, and runs it like this.
    fn manager(&self, name: &str, step: &str, run: &str) -> PathBuf {
        self.shell(name, &format!("{}\n*run_step*) {run};;", well_described(step)))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

fn well_described(step: &str) -> String {
    format!(
        r#"*describe*) echo '{{"result":{{"class_name":"Acme","name":"acme","version":"3"}}}}';;
*evaluate*) echo '{{"result":{{"support":4}}}}';;
*list_steps*) echo '{{"result":{{"steps":[{{"step":"{step}","priorities":{{"clean":7}},"silence_seconds":1}}]}}}}';;"#
    )
}

fn load_all(directory: &Path) -> HardwareManagers {
    let built_in: Box<dyn HardwareManager> = Box::new(GenericHardwareManager::default());
    HardwareManagers::load(std::iter::once(built_in).chain(load(directory)).collect())
}

fn run(managers: &HardwareManagers, step: &str, arguments: Value) -> Result<Value, StepError> {
    let arguments: Map<_, _> = serde_json::from_value(arguments).unwrap();
    managers.execute(&StepCall {
        phase: Phase::Clean,
        step,
        nonce: None,
        node: &Node::default(),
        record: &json!({"uuid": "u", "properties": {"asset_tag": "A-7"}}),
        ports: &json!([]),
        arguments: &arguments,
        host: &FakeHost::default(),
    })
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

#[test]
fn a_step_is_listed_and_run_with_node_and_arguments() {
    let programs = Programs::new();
    let echo = r#"echo '{"progress":{"percent":10}}'; echo "{\"result\":$request}""#;
    programs.manager("acme", "flash_bmc", echo);
    let managers = load_all(programs.path());
    assert_eq!(managers.versions()["acme"], "3");
    let listed = managers.steps(Phase::Clean).unwrap().remove("Acme").unwrap();
    assert_eq!((listed[0].step.as_str(), listed[0].priority), ("flash_bmc", 7));
    let result = run(&managers, "flash_bmc", json!({"file": "x"})).unwrap();
    for (key, expected) in [
        ("protocol", json!(1)),
        ("request", json!("run_step")),
        ("phase", json!("clean")),
        ("step", json!("flash_bmc")),
        ("arguments", json!({"file": "x"})),
        ("ports", json!([])),
    ] {
        assert_eq!(result[key], expected, "{key}");
    }
    assert_eq!(result["node"]["properties"]["asset_tag"], "A-7");
}

#[test]
fn a_hostile_program_fails_its_step_only_and_soon() {
    for (run_step, expected) in [
        ("exit 3", "ended without an answer (exit status: 3)"),
        ("kill -9 $$", "signal: 9"),
        ("echo no JSON", "none of the protocol's lines"),
        (r#"echo '{"result":1,"error":{"message":"x"}}'"#, "none of the protocol's lines"),
        (r#"echo '{"result":1}'; exit 1"#, "did not end well"),
        (r#"echo '{"error":{"message":"no firmware at /x"}}'"#, "no firmware at /x"),
        ("sleep 300", "silent for 1 s"),
        // It ignores its end of input, and what it started holds the pipe open.
        ("sleep 300 & exec sleep 300", "silent for 1 s"),
        ("exec >&-; sleep 300", "ended without an answer"),
        ("head -c 3000000 /dev/zero | tr '\\0' a", "none of the protocol's lines"),
    ] {
        let programs = Programs::new();
        programs.manager("bad", "flash_bmc", run_step);
        programs.manager("good", "read_sensors", r#"echo '{"result":"fine"}'"#);
        let managers = load_all(programs.path());
        let started = Instant::now();
        let text = run(&managers, "flash_bmc", json!({})).unwrap_err().to_string();
        assert!(text.contains(expected) && text.contains("/bad"), "{run_step}: {text}");
        assert!(started.elapsed() < Duration::from_secs(30), "{run_step}");
        assert_eq!(run(&managers, "read_sensors", json!({})).unwrap(), "fine", "{run_step}");
    }
}

#[test]
fn a_step_that_hangs_is_told_to_stop_and_nothing_of_it_stays() {
    let programs = Programs::new();
    let told = programs.path().join("told");
    let child = programs.path().join("child");
    let run_step = format!(
        "sleep 300 & echo $! > {}; read -r order; echo \"$order\" > {}; exec sleep 300",
        child.display(),
        told.display()
    );
    let program = programs.manager("hangs", "flash_bmc", &run_step);
    let request = Request {
        program: &program,
        name: "run_step",
        content: json!({"step": "flash_bmc"}),
        silence: Duration::from_secs(1),
        is_total: false,
    };
    request.ask(&mut |_| {}).unwrap_err();
    let order: Value = serde_json::from_str(&fs::read_to_string(&told).unwrap()).unwrap();
    assert_eq!(order["request"], "cancel");
    assert!(schema::is_request(&order), "{order}");
    let pid: u32 = fs::read_to_string(child).unwrap().trim().parse().unwrap();
    let state = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A busy kernel takes its time to end what was killed.
    let deadline = Instant::now() + Duration::from_secs(30);
    let is_gone = || state().is_empty() || state().contains(") Z ");
    while !is_gone() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert!(is_gone(), "{pid} is still there: {}", state());
}

#[test]
fn progress_keeps_a_slow_step_alive() {
    let programs = Programs::new();
    let slow = r#"for i in 1 2 3 4; do sleep 0.5; echo "{\"progress\":{\"percent\":$i}}"; done; echo '{"result":4}'"#;
    programs.manager("slow", "flash_bmc", slow);
    assert_eq!(run(&load_all(programs.path()), "flash_bmc", json!({})).unwrap(), 4);
}

#[test]
fn a_program_that_does_not_say_who_it_is_is_left_out() {
    for answers in [
        "*) exit 1;;",
        "*) echo hello;;",
        r#"*describe*) echo '{"result":{"class_name":"Acme"}}';;"#,
        r#"*describe*) echo '{"result":{"class_name":"A","name":"a","version":"1"}}';; *) echo '{"result":{"support":-1}}';;"#,
    ] {
        let programs = Programs::new();
        programs.shell("bad", answers);
        assert_eq!(load(programs.path()).len(), 0, "{answers}");
    }
    for (steps, why) in [
        (r#"{"step":"a","priorities":{}}"#, "in no phase"),
        (r#"{"step":"a","priorities":{"clean":1}},{"step":"a","priorities":{"clean":1}}"#, "stands twice"),
        (r#"{"step":"a","priorities":{"later":1}}"#, "unknown variant"),
        (r#"{"step":"a","priorities":{"clean":1},"run":"rm"}"#, "unknown field"),
        (r#"{"step":"a","priorities":{"clean":1},"silence_seconds":0}"#, "silence_seconds"),
    ] {
        let programs = Programs::new();
        let described = well_described("x");
        let described: Vec<_> = described.lines().take(2).collect();
        let answers = format!("{}\n*) echo '{{\"result\":{{\"steps\":[{steps}]}}}}';;", described.join("\n"));
        let program = programs.shell("bad", &answers);
        let error = ExternalManager::load(&program).map(drop).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_program_that_others_can_change_is_not_started() {
    let programs = Programs::new();
    let program = programs.manager("acme", "flash_bmc", "true");
    for mode in [0o777, 0o775, 0o644] {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(load(programs.path()).len(), 0, "{mode:o}");
    }
    assert_eq!(load(Path::new("/nonexistent")).len(), 0);
}

#[test]
fn s07_a_reserved_name_stops_listing_and_running_and_names_the_file() {
    for step in ["erase_devices", "erase_devices_metadata", "burnin_gpu", "write_image"] {
        let programs = Programs::new();
        programs.manager("shadow", step, r#"echo '{"result":"erased"}'"#);
        let managers = load_all(programs.path());
        for text in [
            managers.steps(Phase::Clean).unwrap_err().to_string(),
            run(&managers, step, json!({})).unwrap_err().to_string(),
        ] {
            assert!(text.contains("/shadow") && text.contains(step), "{text}");
        }
    }
}

#[test]
fn a_manager_that_cannot_do_it_here_leaves_it_to_the_next() {
    let incompatible = r#"echo '{"incompatible":"no such card"}'"#;
    for (second, expected) in
        [(r#"echo '{"result":"second"}'"#, Ok("second")), (incompatible, Err("no such card"))]
    {
        let programs = Programs::new();
        programs.manager("a", "flash_bmc", incompatible);
        programs.manager("b", "flash_bmc", second);
        let managers = load_all(programs.path());
        match (run(&managers, "flash_bmc", json!({})), expected) {
            (Ok(result), Ok(expected)) => assert_eq!(result, expected),
            (Err(error), Err(text)) => {
                assert!(error.to_string().contains(text), "{error}");
                assert_eq!(CommandError::from(error).kind, "HardwareManagerMethodNotFound");
            }
            other => panic!("{other:?}"),
        }
        // Listed once all the same.
        assert_eq!(managers.steps(Phase::Clean).unwrap()["Acme"].len(), 1);
    }
}

#[test]
fn the_examples_conform_and_work() {
    for name in ["blink_leds.sh", "asset_tag.py"] {
        for check in conformance::check(&example(name)) {
            assert_eq!(check.fault, None, "{name}: {}", check.rule);
        }
    }
    let shell = ExternalManager::load(&example("blink_leds.sh")).unwrap();
    assert_eq!((shell.evaluate(), shell.steps()[0].step), (Support::ServiceProvider(3), "blink_leds"));
    let managers = HardwareManagers::load(vec![Box::new(shell)]);
    assert_eq!(run(&managers, "blink_leds", json!({"times": 3})).unwrap(), json!({"blinked": 3}));
    let python = ExternalManager::load(&example("asset_tag.py")).unwrap();
    let step = python.steps()[0];
    assert_eq!(
        (step.step, step.priority(Phase::Clean), step.arguments.len()),
        ("check_asset_tag", Some(20), 1)
    );
    let lines = fs::read_to_string(example("asset_tag.py")).unwrap().lines().count();
    assert!(lines < 60, "{lines} lines");
    // The machine on which tests run has this tag, another one, or none; it never hangs or crashes.
    let managers = HardwareManagers::load(vec![Box::new(python)]);
    match run(&managers, "check_asset_tag", json!({})) {
        Ok(result) => assert_eq!(result, json!({"asset_tag": "A-7"})),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("asset tag is") || text.contains("has no asset tag"), "{text}");
        }
    }
}

/// How a program refuses a request that it does not know.
const REFUSE: &str = r#"*) echo '{"error":{"message":"not known"}}';;"#;

#[test]
fn conformance_names_what_is_wrong() {
    let good = well_described("flash_bmc");
    let moody = good.replace(r#""version":"3""#, r#""version":"'$$'""#);
    for (answers, mode, expected) in [
        (format!("{good}\n{REFUSE}"), 0o755, &[][..]),
        (format!("{good}\n{REFUSE}"), 0o775, &["others than root can change it"]),
        (format!("{good}\n{REFUSE}"), 0o644, &["not an executable file", "check that it is executable"]),
        (format!("{}\n{REFUSE}", well_described("erase_devices")), 0o755, &["reserved: erase_devices"]),
        (format!("{moody}\n{REFUSE}"), 0o755, &["the second time they were others"]),
        ("*) echo hello;;".to_owned(), 0o755, &["none of the protocol's lines"]),
        ("*) kill -9 $$;;".to_owned(), 0o755, &["signal: 9"]),
        (good.clone(), 0o755, &["ended without an answer"]),
        (format!("{good}\n*) echo '{{\"result\":null}}';;"), 0o755, &["it answered null"]),
        // It waits until it is told to stop.
        (format!("{good}\n*) read -r order;;"), 0o755, &["silent for 10 s"]),
    ] {
        let programs = Programs::new();
        let program = programs.shell("acme", &answers);
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let faults: Vec<_> =
            conformance::check(&program).into_iter().filter_map(|check| check.fault).collect();
        assert_eq!(faults.len(), expected.len(), "{answers}: {faults:?}");
        for (fault, expected) in faults.iter().zip(expected) {
            assert!(fault.contains(expected), "{answers}: {fault}");
        }
    }
}
