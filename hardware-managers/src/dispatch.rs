//! One face for all managers of a machine (sections 4.2 and 9.1).

use crate::error::StepError;
use crate::filter::Device;
use crate::manager::{HardwareManager, StepCall, StepDeclaration, Support};
use crate::reserved;
use farrier_protocol::step::{HardwareManagerVersions, Phase, StepDescription};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The managers that fit this machine, the best first.
pub struct HardwareManagers {
    managers: Vec<(Support, Box<dyn HardwareManager>)>,
}

impl HardwareManagers {
    /// Asks each manager how well it fits, keeps those that do, and has them ready themselves, the best first.
    /// Asked once per process (F31).
    pub fn load(managers: Vec<Box<dyn HardwareManager>>) -> Self {
        let mut fitting: Vec<_> = managers
            .into_iter()
            .map(|manager| (manager.evaluate(), manager))
            .filter(|(support, _)| *support > Support::None)
            .collect();
        // Stable: equals keep the order in which they were given.
        fitting.sort_by_key(|(support, _)| Reverse(*support));
        for (_, manager) in &fitting {
            manager.initialize();
        }
        Self { managers: fitting }
    }

    /// Versions by manager name.
    pub fn versions(&self) -> HardwareManagerVersions {
        self.managers
            .iter()
            .map(|(_, manager)| (manager.name().to_owned(), manager.version().to_owned()))
            .collect()
    }

    /// The steps of a phase by class name of their manager, each name once.
    ///
    /// # Errors
    ///
    /// [`StepError::Reserved`], or the fault of a manager: nothing is listed while it is unclear whose step a
    /// name would run.
    pub fn steps(&self, phase: Phase) -> Result<BTreeMap<String, Vec<StepDescription>>, StepError> {
        self.require_sound()?;
        let mut steps = BTreeMap::<String, Vec<_>>::new();
        for ranked in self.ranked(phase).into_values() {
            let Some((manager, step)) = ranked.into_values().next() else { continue };
            steps.entry(manager.class_name().to_owned()).or_default().extend(step.describe(phase));
        }
        Ok(steps)
    }

    /// Runs the step that a call names, in its phase: by the best manager that has it, or the next one
    /// where that cannot do it on this machine. Any other failure is final.
    ///
    /// # Errors
    ///
    /// [`StepError::Unknown`] when no manager has it in this phase, [`StepError::Incompatible`] when none
    /// that has it can do it, [`StepError::Reserved`], or what the step reports.
    pub fn execute(&self, call: &StepCall<'_>) -> Result<Value, StepError> {
        self.require_sound()?;
        let mut steps = self.ranked(call.phase);
        let Some(candidates) = steps.remove(call.step) else {
            let known = steps.keys().copied().collect::<Vec<_>>().join(", ");
            return Err(StepError::Unknown { phase: call.phase.name(), step: call.step.to_owned(), known });
        };
        let mut refusals = Vec::new();
        for (manager, step) in candidates.into_values() {
            match step.execute(call) {
                Err(StepError::Incompatible { reasons }) => {
                    tracing::info!(step = call.step, manager = manager.name(), "not done here: {reasons}");
                    refusals.push(reasons);
                }
                outcome => return outcome,
            }
        }
        Err(StepError::Incompatible { reasons: refusals.join("; ") })
    }

    /// Whether a device is shown, after each manager in turn, the best first, could change or hide it.
    pub fn filter_device(&self, mut device: Device<'_>) -> bool {
        self.managers.iter().all(|(_, manager)| manager.filter_device(&mut device))
    }

    /// Looked at when steps are listed and again when one is run (S06, S07).
    fn require_sound(&self) -> Result<(), StepError> {
        for (_, manager) in &self.managers {
            if let Some(fault) = manager.fault() {
                return Err(StepError::Failed(fault.clone()));
            }
            let Some(program) = manager.origin() else { continue };
            if let Some(step) = manager.steps().iter().find(|step| reserved::is_reserved(step.step)) {
                return Err(StepError::Reserved { program: program.to_owned(), step: step.step });
            }
        }
        Ok(())
    }

    /// For each step name of a phase the managers that have it, best first: best support, then highest
    /// priority, then first class name.
    fn ranked(&self, phase: Phase) -> BTreeMap<&'static str, Candidates<'_>> {
        let mut ranked = BTreeMap::<_, Candidates<'_>>::new();
        for (place, (support, manager)) in self.managers.iter().enumerate() {
            for step in manager.steps() {
                let Some(priority) = step.priority(phase) else { continue };
                let rank = (Reverse(*support), Reverse(priority), manager.class_name(), place);
                ranked.entry(step.step).or_default().insert(rank, (manager.as_ref(), step));
            }
        }
        ranked
    }
}

/// Support, priority, class name, and place among the loaded managers, so that no two are equal.
type Rank = (Reverse<Support>, Reverse<i64>, &'static str, usize);

/// The managers that have a step, by rank.
type Candidates<'a> = BTreeMap<Rank, (&'a dyn HardwareManager, &'static StepDeclaration)>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::bootc::Order;
    use crate::generic::GenericHardwareManager;
    use crate::manager::StepHost;
    use farrier_protocol::error::CommandError;
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
                is_abortable: false,
                arguments: &[],
                run: &|_| Ok(json!("vendor")),
            }]
        }
    }

    struct Host;

    impl StepHost for Host {
        fn prepare_image(
            &self,
            image_info: &Value,
            config_drive: Option<&str>,
        ) -> Result<Value, CommandError> {
            Ok(json!([image_info, config_drive]))
        }

        fn install_bootc(&self, _: &Order<'_>) -> Result<Value, CommandError> {
            unreachable!("no image is installed")
        }

        fn download(&self, _: &str, _: u64, _: bool) -> Result<Vec<u8>, CommandError> {
            unreachable!("nothing is fetched")
        }

        fn guards_special_filesystems(&self) -> bool {
            true
        }

        fn certify(&self, statement: &Value) -> Result<String, CommandError> {
            Ok(statement.to_string())
        }

        fn is_ending(&self) -> bool {
            false
        }

        fn post_json(&self, _: &str, _: &Value) -> Result<Value, CommandError> {
            unreachable!("nobody is asked")
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
            node: &node,
            record: &Value::Null,
            ports: &Value::Null,
            arguments: &arguments,
            host: &Host,
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
                    ("burnin_cpu", 0, None),
                    ("burnin_gpu", 0, None),
                    ("burnin_memory", 0, None),
                    ("burnin_network", 0, None),
                    ("create_configuration", 0, None),
                    ("delete_configuration", 0, None),
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
}
