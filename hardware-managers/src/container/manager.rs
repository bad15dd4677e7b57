//! Containers as a hardware manager.

use super::error::ContainerError;
use super::permit::{Origin, Request, permit};
use super::runner::Runner;
use super::settings::{Settings, Words};
use super::steps_file::{self, FileStep};
use crate::manager::{Argument, HardwareManager, StepCall, StepDeclaration, Support};
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::step::Phase;
use serde_json::{Value, json};
use std::path::Path;

/// Last bytes of a container's output that its step results in.
const SHOWN: usize = 16 << 10;
const URL: &str = "container_url";
const PULL_OPTIONS: &str = "pull_options";
const RUN_OPTIONS: &str = "run_options";
/// The step that runs a container of the caller's choice, and its old name.
const STEPS: [&str; 2] = ["generic_container_step", "container_clean_step"];

const ARGUMENTS: &[Argument] = &[
    Argument { name: URL, description: "Image of the container, such as registry/path:tag", required: true },
    Argument {
        name: PULL_OPTIONS,
        description: "Options of the runner's pull; only with allow_arbitrary_containers",
        required: false,
    },
    Argument {
        name: RUN_OPTIONS,
        description: "Options of the runner's run; only with allow_arbitrary_containers",
        required: false,
    },
];

/// Runs steps in containers, where there is a program for that.
pub struct ContainerHardwareManager {
    runner: &'static Runner,
    steps: &'static [StepDeclaration],
    fault: Option<CommandError>,
}

impl ContainerHardwareManager {
    /// A manager with the built-in steps and those of the steps file, for the machine whose files lie below
    /// `root`. What it declares is kept for the life of the process. `is_taken` knows the steps of the other
    /// managers.
    pub fn load(settings: Settings, root: &Path, is_taken: &dyn Fn(&str) -> bool) -> Self {
        let runner: &Runner = Box::leak(Box::new(Runner::new(settings.runner, root)));
        let file = root.join(settings.steps_file.strip_prefix("/").unwrap_or(&settings.steps_file));
        let settings: &Settings = Box::leak(Box::new(settings));
        let (listed, fault) = match steps_file::read(&file, is_taken) {
            Ok(steps) => (steps, None),
            Err(error) => {
                let kind = ErrorKind::HardwareManagerConfigurationError;
                (Vec::new(), Some(CommandError::new(kind, error.to_string())))
            }
        };
        let built_in = STEPS.map(|step| declare_built_in(step, runner, settings));
        let listed = listed.into_iter().map(|step| declare(step, runner, settings));
        Self { runner, steps: built_in.into_iter().chain(listed).collect::<Vec<_>>().leak(), fault }
    }
}

impl HardwareManager for ContainerHardwareManager {
    fn class_name(&self) -> &'static str {
        "ContainerHardwareManager"
    }

    fn name(&self) -> &'static str {
        "ContainerHardwareManager"
    }

    fn version(&self) -> &'static str {
        "2"
    }

    fn evaluate(&self) -> Support {
        if self.runner.is_usable() { Support::Mainline } else { Support::None }
    }

    fn steps(&self) -> &'static [StepDeclaration] {
        self.steps
    }

    fn fault(&self) -> Option<&CommandError> {
        self.fault.as_ref()
    }
}

fn declare_built_in(
    step: &'static str,
    runner: &'static Runner,
    settings: &'static Settings,
) -> StepDeclaration {
    StepDeclaration {
        step,
        interface: "deploy",
        priorities: &[(Phase::Clean, 0), (Phase::Deploy, 0), (Phase::Service, 0)],
        reboot_requested: false,
        abortable: Phase::ALL,
        arguments: ARGUMENTS,
        run: Box::leak(Box::new(move |call: &StepCall<'_>| {
            run_chosen(call, runner, settings).map_err(|error| error.of_step(call.phase))
        })),
    }
}

/// A step of the file. Its place counts while cleaning only (F52).
fn declare(listed: FileStep, runner: &'static Runner, settings: &'static Settings) -> StepDeclaration {
    let place = |phase: &Phase| (*phase, if *phase == Phase::Clean { listed.priority } else { 0 });
    let priorities: Vec<_> = Phase::ALL.iter().map(place).collect();
    StepDeclaration {
        step: listed.name.clone().leak(),
        interface: listed.interface.clone().leak(),
        priorities: priorities.leak(),
        reboot_requested: listed.reboot_requested,
        abortable: if listed.abortable { Phase::ALL } else { &[] },
        arguments: &[],
        run: Box::leak(Box::new(move |call: &StepCall<'_>| {
            let request = Request {
                image: &listed.image,
                pull_options: listed.pull_options.as_ref(),
                run_options: listed.run_options.as_ref(),
                origin: Origin::StepsFile,
            };
            run(request, call, runner, settings).map_err(|error| error.of_step(call.phase))
        })),
    }
}

fn run_chosen(call: &StepCall<'_>, runner: &Runner, settings: &Settings) -> Result<Value, ContainerError> {
    let url = &call.arguments[URL];
    let image = url.as_str().ok_or_else(|| ContainerError::Image { image: url.to_string() })?;
    let pull_options = words(call, PULL_OPTIONS)?;
    let run_options = words(call, RUN_OPTIONS)?;
    let request = Request {
        image,
        pull_options: pull_options.as_ref(),
        run_options: run_options.as_ref(),
        origin: Origin::Arguments,
    };
    run(request, call, runner, settings)
}

fn words(call: &StepCall<'_>, argument: &'static str) -> Result<Option<Words>, ContainerError> {
    let given = call.arguments.get(argument).filter(|value| !value.is_null());
    given.map(|value| Words::from_json(value).ok_or(ContainerError::Options { argument })).transpose()
}

/// The result holds the end of what the container wrote.
fn run(
    request: Request<'_>,
    call: &StepCall<'_>,
    runner: &Runner,
    settings: &Settings,
) -> Result<Value, ContainerError> {
    let container = permit(settings, request)?;
    let image = container.image().as_str();
    tracing::info!(image, "running a container");
    let output = runner.run_permitted(&container, &|| call.host.is_ending())?;
    let start = output.len().saturating_sub(SHOWN);
    let start = (start..=output.len()).find(|start| output.is_char_boundary(*start)).unwrap_or_default();
    let shown = &output[start..];
    for line in shown.lines() {
        tracing::info!(image, "{line}");
    }
    Ok(json!({"image": image, "output": shown}))
}

#[cfg(test)]
mod tests {
    use super::super::fake_runner::FakeRunner;
    use super::*;
    use crate::dispatch::HardwareManagers;
    use crate::fake_host::FakeHost;
    use crate::generic::GenericHardwareManager;
    use farrier_protocol::lookup::Node;
    use std::fs;

    const ALLOWED: &str = "registry.example/tools:1";
    const STEPS_FILE: &str = "\
steps:
  - {name: upgrade_nic, image: 'registry.example/nic:2', interface: deploy, priority: 20,
     reboot_requested: true, abortable: false, run_options: --privileged}
";

    fn managers(fake: &FakeRunner, steps: Option<&str>) -> HardwareManagers {
        let settings = Settings {
            allowed: vec![ALLOWED.to_owned()],
            steps_file: "/etc/steps.yaml".into(),
            run_options: Words::parse("--rm --network=host"),
            ..Settings::default()
        };
        if let Some(text) = steps {
            fs::create_dir_all(fake.root().join("etc")).unwrap();
            fs::write(fake.root().join("etc/steps.yaml"), text).unwrap();
        }
        let containers = ContainerHardwareManager::load(settings, fake.root(), &|_| false);
        HardwareManagers::load(vec![Box::new(GenericHardwareManager::default()), Box::new(containers)])
    }

    fn execute(managers: &HardwareManagers, step: &str, arguments: Value) -> Result<Value, CommandError> {
        let arguments = serde_json::from_value(arguments).unwrap();
        let (node, phase, host) = (Node::default(), Phase::Clean, &FakeHost::default());
        let (record, ports) = (&Value::Null, &Value::Null);
        let call =
            StepCall { phase, step, nonce: None, node: &node, record, ports, arguments: &arguments, host };
        managers.execute(&call).map_err(CommandError::from)
    }

    #[test]
    fn s06_every_way_to_a_container_asks_the_allow_list() {
        let fake = FakeRunner::new("exit 0");
        let managers = managers(&fake, None);
        for step in STEPS {
            let error = execute(&managers, step, json!({URL: "registry.example/other"})).unwrap_err();
            assert_eq!(error.kind, "ContainerNotPermittedError", "{step}");
            assert!(error.details.contains("registry.example/other"), "{}", error.details);
        }
        assert_eq!(fake.calls(), ["--version"], "nothing was run");
    }

    #[test]
    fn an_allowed_container_is_fetched_and_run_with_the_configured_options() {
        let fake = FakeRunner::new("[ $1 = run ] && { echo upgraded; echo done >&2; }; exit 0");
        let managers = managers(&fake, None);
        let arguments =
            json!({URL: format!("docker://{ALLOWED}"), RUN_OPTIONS: "--privileged", PULL_OPTIONS: null});
        let result = execute(&managers, STEPS[0], arguments).unwrap();
        assert_eq!(result, json!({"image": ALLOWED, "output": "upgraded\ndone\n"}));
        let [_, pull, run] = &fake.calls()[..] else { panic!("{:?}", fake.calls()) };
        assert_eq!(pull, "pull registry.example/tools:1");
        assert!(run.starts_with("run --pull=never --cidfile=/"), "{run}");
        assert!(run.ends_with(" --rm --network=host registry.example/tools:1"), "{run}");
    }

    #[test]
    fn steps_of_the_file_are_listed_and_run_as_it_says() {
        let fake = FakeRunner::new("exit 0");
        let managers = managers(&fake, Some(STEPS_FILE));
        for (phase, priority, abortable) in
            [(Phase::Clean, 20, None), (Phase::Deploy, 0, None), (Phase::Service, 0, None)]
        {
            let steps = managers.steps(phase).unwrap().remove("ContainerHardwareManager").unwrap();
            let step = steps.iter().find(|one| one.step == "upgrade_nic").unwrap();
            assert_eq!((step.priority, step.abortable, step.reboot_requested), (priority, abortable, true));
            assert!(STEPS.iter().all(|name| steps.iter().any(|one| one.step == *name)), "{phase:?}");
        }
        execute(&managers, "upgrade_nic", json!({})).unwrap();
        assert!(fake.calls()[2].ends_with(" --privileged registry.example/nic:2"), "{:?}", fake.calls());
        assert_eq!(managers.versions()["ContainerHardwareManager"], "2");
    }

    #[test]
    fn s07_a_steps_file_that_cannot_be_used_stops_the_listing_and_every_step() {
        let fake = FakeRunner::new("exit 0");
        let shadowing = STEPS_FILE.replace("upgrade_nic", "erase_devices");
        for text in [shadowing.as_str(), "steps: ["] {
            let managers = managers(&fake, Some(text));
            let error = CommandError::from(managers.steps(Phase::Clean).unwrap_err());
            assert_eq!(error.kind, "HardwareManagerConfigurationError");
            assert!(error.details.contains("etc/steps.yaml"), "{}", error.details);
            let error = execute(&managers, "erase_devices_metadata", json!({})).unwrap_err();
            assert_eq!(error.kind, "HardwareManagerConfigurationError");
        }
    }

    #[test]
    fn what_is_wrong_with_an_order_or_a_container_is_said() {
        let fake = FakeRunner::new("[ $1 = run ] && { echo no such card >&2; exit 3; }; exit 0");
        let managers = managers(&fake, None);
        for (arguments, kind, told) in [
            (json!({}), "InvalidCommandParamsError", URL),
            (json!({URL: 7}), "InvalidCommandParamsError", "7"),
            (json!({URL: ""}), "InvalidCommandParamsError", URL),
            (json!({URL: ALLOWED, RUN_OPTIONS: 7}), "InvalidCommandParamsError", RUN_OPTIONS),
            (json!({URL: ALLOWED}), "CleaningError", "exit status: 3: no such card"),
        ] {
            let error = execute(&managers, STEPS[0], arguments).unwrap_err();
            assert_eq!(error.kind, kind, "{}", error.details);
            assert!(error.details.contains(told), "{}", error.details);
        }
    }

    #[test]
    fn without_a_runner_there_are_no_container_steps() {
        let managers = managers(&FakeRunner::new("exit 1"), Some("steps: ["));
        assert!(!managers.versions().contains_key("ContainerHardwareManager"));
        managers.steps(Phase::Clean).unwrap();
    }
}
