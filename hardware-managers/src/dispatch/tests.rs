//! Which manager is asked, in which order, and what is listed.

use super::*;
use crate::fake_host::FakeHost;
use crate::generic::GenericHardwareManager;
use farrier_protocol::lookup::Node;
use serde_json::{Map, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

struct Vendor(Support);

impl HardwareManager for Vendor {
    fn class_name(&self) -> &'static str {
        "Vendor"
    }

    fn name(&self) -> &'static str {
        "vendor"
    }

    fn version(&self) -> &'static str {
        "7"
    }

    fn evaluate(&self) -> Support {
        self.0
    }

    fn steps(&self) -> &'static [StepDeclaration] {
        &[StepDeclaration {
            step: "write_image",
            interface: "deploy",
            priorities: &[(Phase::Deploy, 0)],
            reboot_requested: true,
            abortable: &[],
            arguments: &[],
            run: &|_| Ok(json!("vendor")),
        }]
    }
}

fn load(support: Support) -> HardwareManagers {
    HardwareManagers::load(vec![Box::new(GenericHardwareManager::default()), Box::new(Vendor(support))])
}

fn run(managers: &HardwareManagers, step: &str, arguments: Value) -> Result<Value, StepError> {
    let arguments: Map<_, _> = serde_json::from_value(arguments).unwrap();
    let node = Node::default();
    let phase = Phase::Deploy;
    managers.execute(&StepCall {
        phase,
        step,
        nonce: None,
        node: &node,
        record: &Value::Null,
        ports: &Value::Null,
        arguments: &arguments,
        host: &FakeHost {
            prepare_image: |image_info, config_drive| Ok(json!([image_info, config_drive])),
            ..FakeHost::default()
        },
    })
}

#[test]
fn a_manager_that_does_not_fit_is_not_loaded() {
    let managers = load(Support::None);
    assert_eq!(managers.versions(), [("generic_hardware_manager".into(), "1.2".into())].into());
    let steps = managers.steps(Phase::Deploy).unwrap();
    assert_eq!(steps.keys().collect::<Vec<_>>(), ["GenericHardwareManager"]);
}

/// Counts how often it is asked how well it fits.
struct Counting(Arc<AtomicUsize>);

impl HardwareManager for Counting {
    fn class_name(&self) -> &'static str {
        "Counting"
    }

    fn name(&self) -> &'static str {
        "counting"
    }

    fn version(&self) -> &'static str {
        "1"
    }

    fn evaluate(&self) -> Support {
        self.0.fetch_add(1, Ordering::Relaxed);
        Support::Mainline
    }

    fn steps(&self) -> &'static [StepDeclaration] {
        &[]
    }
}

#[test]
fn f31_the_machine_is_probed_once_and_not_for_each_call() {
    let count = Arc::new(AtomicUsize::new(0));
    let counting = Box::new(Counting(Arc::clone(&count)));
    let managers = HardwareManagers::load(vec![Box::new(GenericHardwareManager::default()), counting]);
    for phase in [Phase::Clean, Phase::Deploy, Phase::Service] {
        managers.steps(phase).unwrap();
        assert!(managers.versions().contains_key("counting"));
        run(&managers, "write_image", json!({"image_info": {}})).unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

/// Writes down that it was readied.
struct Readied(&'static str, Support, Arc<Mutex<Vec<&'static str>>>);

impl HardwareManager for Readied {
    fn class_name(&self) -> &'static str {
        self.0
    }

    fn name(&self) -> &'static str {
        self.0
    }

    fn version(&self) -> &'static str {
        "1"
    }

    fn evaluate(&self) -> Support {
        self.1
    }

    fn initialize(&self) {
        self.2.lock().unwrap().push(self.0);
    }

    fn steps(&self) -> &'static [StepDeclaration] {
        &[]
    }
}

#[test]
fn managers_that_fit_are_readied_once_the_best_first() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let managers = [
        ("any", Support::Generic),
        ("other", Support::None),
        ("exact", Support::ServiceProvider(4)),
        ("kind", Support::Mainline),
        ("second kind", Support::Mainline),
    ]
    .map(|(name, support)| Box::new(Readied(name, support, Arc::clone(&order))) as Box<_>);
    let managers = HardwareManagers::load(managers.into_iter().collect());
    managers.steps(Phase::Clean).unwrap();
    assert_eq!(*order.lock().unwrap(), ["exact", "kind", "second kind", "any"]);
}

/// Class name of the manager that has `write_image` in a phase.
fn writer(managers: &HardwareManagers, phase: Phase) -> Option<String> {
    let steps = managers.steps(phase).unwrap();
    let mut having = steps.iter().filter(|(_, steps)| steps.iter().any(|one| one.step == "write_image"));
    having.next().map(|(class_name, _)| class_name.clone())
}

#[test]
fn the_better_manager_has_the_step_in_the_phases_it_declares() {
    for (support, deploy, service) in [
        (Support::None, "GenericHardwareManager", "GenericHardwareManager"),
        // Equals are settled by class name.
        (Support::Generic, "GenericHardwareManager", "GenericHardwareManager"),
        (Support::Mainline, "Vendor", "GenericHardwareManager"),
    ] {
        let managers = load(support);
        assert_eq!(writer(&managers, Phase::Deploy).as_deref(), Some(deploy), "{support:?}");
        assert_eq!(writer(&managers, Phase::Service).as_deref(), Some(service), "{support:?}");
        assert_eq!(writer(&managers, Phase::Clean), None, "{support:?}");
    }
    assert_eq!(run(&load(Support::Mainline), "write_image", json!({})).unwrap(), "vendor");
}

#[test]
fn f52_a_priority_counts_in_its_phase_only() {
    let managers = load(Support::None);
    for (phase, expected) in [
        (
            Phase::Clean,
            &[
                ("burnin_cpu", 0, Some(true)),
                ("burnin_disk", 0, Some(true)),
                ("burnin_gpu", 0, Some(true)),
                ("burnin_memory", 0, Some(true)),
                ("burnin_network", 0, Some(true)),
                ("clean_uefi_nvram", 0, Some(true)),
                ("create_configuration", 0, Some(true)),
                ("delete_configuration", 0, Some(true)),
                ("erase_devices", 10, Some(true)),
                ("erase_devices_express", 0, Some(true)),
                ("erase_devices_metadata", 99, Some(true)),
                ("erase_pstore", 0, Some(true)),
            ][..],
        ),
        (
            Phase::Deploy,
            &[
                ("apply_configuration", 0, None),
                ("clean_uefi_nvram", 0, None),
                ("erase_devices_metadata", 0, None),
                ("execute_bootc_install", 0, None),
                ("inject_files", 0, None),
                ("write_image", 0, None),
            ],
        ),
        (
            Phase::Service,
            &[
                ("apply_configuration", 0, None),
                ("burnin_cpu", 0, Some(true)),
                ("burnin_gpu", 0, Some(true)),
                ("burnin_memory", 0, Some(true)),
                ("burnin_network", 0, Some(true)),
                ("create_configuration", 0, Some(true)),
                ("delete_configuration", 0, Some(true)),
                ("execute_bootc_install", 0, None),
                ("inject_files", 0, None),
                ("write_image", 0, None),
            ],
        ),
    ] {
        let listed = managers.steps(phase).unwrap().remove("GenericHardwareManager").unwrap();
        let listed: Vec<_> =
            listed.iter().map(|one| (one.step.as_str(), one.priority, one.abortable)).collect();
        assert_eq!(listed, expected, "{phase:?}");
    }
}

#[test]
fn write_image_hands_its_arguments_to_the_agent() {
    let managers = load(Support::None);
    let arguments = json!({"image_info": {"id": "x"}, "configdrive": "H4sI"});
    assert_eq!(run(&managers, "write_image", arguments).unwrap(), json!([{"id": "x"}, "H4sI"]));
}

#[test]
fn unknown_steps_and_missing_arguments_are_named() {
    let managers = load(Support::None);
    for (step, arguments, expected) in [
        ("erase_everything", json!({}), ["deploy step \"erase_everything\"", "write_image"]),
        ("write_image", json!({"image_info": null}), ["write_image", "image_info"]),
    ] {
        let text = run(&managers, step, arguments).unwrap_err().to_string();
        assert!(expected.iter().all(|part| text.contains(part)), "{text}");
    }
}
