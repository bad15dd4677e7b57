//! Plans of a node whose steps are known.

use super::*;
use farrier_protocol::step::ArgumentInfo;
use serde_json::{Value, json};

fn step(kind: StepKind, id: &str, priority: i64) -> KnownStep {
    let (interface, step) = id.split_once('.').unwrap();
    KnownStep::new(kind, interface, step, priority)
}

/// A node with the core step, a step with arguments, and some others.
fn known_of(kind: StepKind) -> Vec<KnownStep> {
    let argument = |required| ArgumentInfo { description: "which one".into(), required };
    vec![
        step(kind, "deploy.deploy", 100),
        step(kind, "deploy.write_image", 80),
        step(kind, "deploy.boot_instance", 20),
        KnownStep {
            arguments: [("needed".to_owned(), argument(true)), ("other".to_owned(), argument(false))].into(),
            ..step(kind, "raid.apply_configuration", 0)
        },
        KnownStep { requires_ramdisk: false, ..step(kind, "bios.factory_reset", 0) },
        step(kind, "vendor.send_raw", 30),
    ]
}

fn offer<'a>(kind: StepKind, known: &'a [KnownStep], policy: &'a StepPolicy) -> Offer<'a> {
    Offer { kind, known, policy, has_ramdisk: true }
}

/// A conductor on which nobody sends raw commands.
fn no_raw_commands() -> StepPolicy {
    StepPolicy { disallowed: [StepId::new("vendor", "send_raw")].into(), ..StepPolicy::default() }
}

fn asked(id: &str, args: Value, priority: Option<i64>) -> RequestedStep {
    let (interface, step) = id.split_once('.').unwrap();
    RequestedStep { id: StepId::new(interface, step), args: args.as_object().unwrap().clone(), priority }
}

fn names(steps: &[PlannedStep]) -> Vec<&str> {
    steps.iter().map(|step| step.step.as_str()).collect()
}

fn told(faults: &[StepFault]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}

fn core() -> StepId {
    StepId::new("deploy", "deploy")
}

#[test]
fn what_has_a_priority_runs_by_itself_unless_it_is_disallowed() {
    let known = known_of(StepKind::Clean);
    let policy = no_raw_commands();
    let none = StepPolicy::default();
    let all = ["deploy", "write_image", "send_raw", "boot_instance"];
    assert_eq!(names(&offer(StepKind::Clean, &known, &none).automatic()), all);
    assert_eq!(
        names(&offer(StepKind::Clean, &known, &policy).automatic()),
        ["deploy", "write_image", "boot_instance"]
    );
}

#[test]
fn steps_by_hand_run_as_they_were_given() {
    let (known, none) = (known_of(StepKind::Clean), StepPolicy::default());
    let clean = offer(StepKind::Clean, &known, &none);
    let requested = [
        asked("deploy.boot_instance", json!({}), None),
        asked("raid.apply_configuration", json!({"needed": 1}), None),
        asked("raid.apply_configuration", json!({"needed": 2}), None),
        asked("deploy.deploy", json!({}), None),
    ];
    let steps = clean.by_hand(&requested, Missing::Refused).unwrap();
    assert_eq!(names(&steps), ["boot_instance", "apply_configuration", "apply_configuration", "deploy"]);
    assert_eq!((steps[1].args["needed"].as_i64(), steps[2].args["needed"].as_i64()), (Some(1), Some(2)));
}

#[test]
fn every_fault_of_the_steps_is_told() {
    let known = known_of(StepKind::Service);
    let policy = no_raw_commands();
    let service = Offer { has_ramdisk: false, ..offer(StepKind::Service, &known[3..], &policy) };
    let requested = [
        asked("raid.apply_configuration", json!({"wrong": 1}), None),
        asked("vendor.send_raw", json!({}), None),
        asked("deploy.erase", json!({}), None),
        asked("bios.factory_reset", json!({"x": 1}), None),
    ];
    assert_eq!(
        told(&service.by_hand(&requested, Missing::Refused).unwrap_err()),
        [
            "step raid.apply_configuration has no argument \"wrong\"; it has: needed, other",
            "step raid.apply_configuration needs the argument \"needed\": which one",
            "step raid.apply_configuration needs the ramdisk, which is disabled for this operation",
            "step vendor.send_raw is disallowed on this conductor",
            "step deploy.erase is unknown; the node has: raid.apply_configuration, bios.factory_reset, vendor.send_raw",
            "step bios.factory_reset has no argument \"x\"; it has: none",
        ]
    );
}

#[test]
fn a_deployment_is_overlaid_with_what_is_asked_for() {
    let (known, none) = (known_of(StepKind::Deploy), StepPolicy::default());
    let deploy = offer(StepKind::Deploy, &known, &none);
    let requested = [
        asked("raid.apply_configuration", json!({"needed": 1}), Some(90)),
        asked("deploy.boot_instance", json!({}), Some(0)),
        asked("vendor.send_raw", json!({}), Some(80)),
        asked("raid.of_the_agent", json!({}), Some(70)),
    ];
    let steps = deploy.overlaid(&requested, &core(), Missing::LeftOut).unwrap();
    assert_eq!(names(&steps), ["deploy", "apply_configuration", "send_raw", "write_image"]);
    assert_eq!(
        told(&deploy.overlaid(&requested, &core(), Missing::Refused).unwrap_err()),
        [
            "step raid.of_the_agent is unknown; the node has: deploy.deploy, deploy.write_image, deploy.boot_instance, \
          raid.apply_configuration, bios.factory_reset, vendor.send_raw"
        ]
    );
}

#[test]
fn the_core_step_is_disabled_or_stays_and_nothing_is_there_twice() {
    let (known, none) = (known_of(StepKind::Deploy), StepPolicy::default());
    let deploy = offer(StepKind::Deploy, &known, &none);
    let overlaid = |requested: &[RequestedStep]| deploy.overlaid(requested, &core(), Missing::Refused);
    let disabled = overlaid(&[asked("deploy.deploy", json!({}), Some(0))]).unwrap();
    assert_eq!(names(&disabled), ["write_image", "send_raw", "boot_instance"]);
    assert_eq!(names(&overlaid(&[asked("deploy.deploy", json!({}), Some(100))]).unwrap())[0], "deploy");
    assert_eq!(
        told(&overlaid(&[asked("deploy.deploy", json!({}), Some(50))]).unwrap_err()),
        ["step deploy.deploy keeps its priority of 100; it can only be disabled, with 0"]
    );
    let twice = [asked("vendor.send_raw", json!({}), Some(1)), asked("vendor.send_raw", json!({}), Some(2))];
    assert_eq!(told(&overlaid(&twice).unwrap_err()), ["step vendor.send_raw is asked for twice"]);
    // What is disabled needs no arguments.
    assert!(overlaid(&[asked("raid.apply_configuration", json!({}), Some(0))]).is_ok());
}

#[test]
fn the_current_step_stays_current_in_a_new_plan() {
    let plan = [PlannedStep::new("deploy", "a", 90), PlannedStep::new("raid", "a", 80)];
    assert_eq!(place_of(&PlannedStep::new("raid", "a", 10), &plan), Some(1));
    assert_eq!(place_of(&PlannedStep::new("raid", "b", 10), &plan), None);
}
