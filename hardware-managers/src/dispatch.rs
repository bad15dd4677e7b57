//! One face for all managers of a machine (sections 4.2 and 9.1).

use crate::error::StepError;
use crate::manager::{HardwareManager, StepCall, StepDeclaration};
use farrier_protocol::step::{DeploySteps, HardwareManagerVersions};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The managers that fit this machine, the best first.
pub struct HardwareManagers {
    managers: Vec<Box<dyn HardwareManager>>,
}

impl HardwareManagers {
    /// Asks each manager how well it fits and keeps those that do. Asked once per process (F31).
    pub fn load(managers: Vec<Box<dyn HardwareManager>>) -> Self {
        let mut fitting: Vec<_> = managers
            .into_iter()
            .map(|manager| (manager.evaluate(), manager))
            .filter(|(support, _)| *support > crate::manager::Support::None)
            .collect();
        // Stable: equals keep the order in which they were given.
        fitting.sort_by_key(|(support, _)| Reverse(*support));
        Self { managers: fitting.into_iter().map(|(_, manager)| manager).collect() }
    }

    /// Versions by manager name.
    pub fn versions(&self) -> HardwareManagerVersions {
        self.managers
            .iter()
            .map(|manager| (manager.name().to_owned(), manager.version().to_owned()))
            .collect()
    }

    /// The deploy steps of all managers, each name once.
    pub fn deploy_steps(&self) -> DeploySteps {
        let mut deploy_steps = BTreeMap::<String, Vec<_>>::new();
        for (manager, step) in self.winners().into_values() {
            deploy_steps.entry(manager.class_name().to_owned()).or_default().push(step.describe());
        }
        DeploySteps { deploy_steps, hardware_manager_version: self.versions() }
    }

    /// Runs a deploy step by its name.
    ///
    /// # Errors
    ///
    /// [`StepError::Unknown`] when no manager has it, or what the step reports.
    pub fn execute_deploy_step(&self, step: &str, call: &StepCall<'_>) -> Result<Value, StepError> {
        let winners = self.winners();
        let Some((_, declaration)) = winners.get(step) else {
            let known = winners.keys().copied().collect::<Vec<_>>().join(", ");
            return Err(StepError::Unknown { step: step.to_owned(), known });
        };
        declaration.execute(call)
    }

    /// For each step name the manager that runs it: best support, then highest priority, then
    /// first class name.
    fn winners(&self) -> BTreeMap<&'static str, (&dyn HardwareManager, &'static StepDeclaration)> {
        let mut winners = BTreeMap::<_, (&dyn HardwareManager, &StepDeclaration)>::new();
        for manager in &self.managers {
            for step in manager.deploy_steps() {
                let rank = |manager: &dyn HardwareManager, step: &StepDeclaration| {
                    (Reverse(manager.evaluate()), Reverse(step.priority), manager.class_name())
                };
                let is_better = winners
                    .get(step.step)
                    .is_none_or(|(other, held)| rank(manager.as_ref(), step) < rank(*other, held));
                if is_better {
                    winners.insert(step.step, (manager.as_ref(), step));
                }
            }
        }
        winners
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generic::GenericHardwareManager;
    use crate::manager::{StepHost, Support};
    use farrier_protocol::error::CommandError;
    use farrier_protocol::lookup::Node;
    use serde_json::{Map, json};

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

        fn deploy_steps(&self) -> &'static [StepDeclaration] {
            &[StepDeclaration {
                step: "write_image",
                interface: "deploy",
                priority: 0,
                reboot_requested: true,
                arguments: &[],
                run: |_| Ok(json!("vendor")),
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
    }

    fn load(support: Support) -> HardwareManagers {
        HardwareManagers::load(vec![Box::new(GenericHardwareManager), Box::new(Vendor(support))])
    }

    fn run(managers: &HardwareManagers, step: &str, arguments: Value) -> Result<Value, StepError> {
        let arguments: Map<_, _> = serde_json::from_value(arguments).unwrap();
        let call = StepCall { node: &Node::default(), arguments: &arguments, host: &Host };
        managers.execute_deploy_step(step, &call)
    }

    #[test]
    fn a_manager_that_does_not_fit_is_not_loaded() {
        let managers = load(Support::None);
        assert_eq!(managers.versions(), [("generic_hardware_manager".into(), "1.2".into())].into());
        let steps = managers.deploy_steps();
        assert_eq!(steps.deploy_steps.keys().collect::<Vec<_>>(), ["GenericHardwareManager"]);
        assert_eq!(steps.deploy_steps["GenericHardwareManager"][0].step, "write_image");
    }

    #[test]
    fn the_better_manager_has_the_step_and_the_other_is_absent() {
        let managers = load(Support::Mainline);
        assert_eq!(managers.deploy_steps().deploy_steps.keys().collect::<Vec<_>>(), ["Vendor"]);
        assert_eq!(run(&managers, "write_image", json!({})).unwrap(), "vendor");
    }

    #[test]
    fn equal_support_is_settled_by_class_name() {
        let managers = load(Support::Generic);
        assert_eq!(
            managers.deploy_steps().deploy_steps.keys().collect::<Vec<_>>(),
            ["GenericHardwareManager"]
        );
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
            ("erase_everything", json!({}), ["erase_everything", "write_image"]),
            ("write_image", json!({"image_info": null}), ["write_image", "image_info"]),
        ] {
            let text = run(&managers, step, arguments).unwrap_err().to_string();
            assert!(expected.iter().all(|part| text.contains(part)), "{text}");
        }
    }
}
