//! The hardware managers of this agent: those that come with it, and those that lie in the ramdisk.

use crate::settings::options::Options;
use farrier_hardware::container::{ContainerHardwareManager, Settings};
use farrier_hardware::external;
use farrier_hardware::generic::GenericHardwareManager;
use farrier_hardware::intel_cna::IntelCnaHardwareManager;
use farrier_hardware::manager::HardwareManager;
use farrier_hardware::mellanox::MellanoxDeviceHardwareManager;
use std::path::Path;

type Managers = Vec<Box<dyn HardwareManager>>;

/// All of them, for the machine whose files lie below `root`, whether they fit it or not.
pub fn all(options: &Options, root: &Path) -> Managers {
    let external = external::load(&root.join(external::DIRECTORY.trim_start_matches('/')));
    with_containers(options, root, built_in(options, root).into_iter().chain(external).collect())
}

/// Those that come with the agent, as far as they declare the same everywhere.
pub fn declared() -> Managers {
    let nowhere = Path::new("/nonexistent");
    let options = Options::default();
    with_containers(&options, nowhere, built_in(&options, nowhere))
}

fn built_in(options: &Options, root: &Path) -> Managers {
    vec![
        Box::new(GenericHardwareManager::new(options.inject_files_priority)),
        Box::new(MellanoxDeviceHardwareManager::new(root)),
        Box::new(IntelCnaHardwareManager::new(root)),
    ]
}

/// No step of the containers' file may have the name of another manager's.
fn with_containers(options: &Options, root: &Path, mut managers: Managers) -> Managers {
    let is_taken = |name: &str| managers.iter().flat_map(|one| one.steps()).any(|step| step.step == name);
    let containers = ContainerHardwareManager::load(settings(options), root, &is_taken);
    managers.push(Box::new(containers));
    managers
}

/// What the operator allows containers, and prefers of them.
pub fn settings(options: &Options) -> Settings {
    Settings {
        allow_arbitrary: options.allow_arbitrary_containers,
        allowed: options.allowed_containers.0.clone(),
        steps_file: options.container_steps_file.clone().into(),
        runner: options.container_runner,
        pull_options: options.container_pull_options.clone(),
        run_options: options.container_run_options.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_hardware::dispatch::HardwareManagers;
    use farrier_hardware::reserved;
    use farrier_protocol::error::CommandError;
    use farrier_protocol::step::Phase;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn s07_every_declared_step_is_reserved() {
        for step in declared().iter().flat_map(|manager| manager.steps()) {
            assert!(reserved::is_reserved(step.step), "{}", step.step);
        }
    }

    #[test]
    fn s07_a_container_cannot_take_the_step_of_an_external_manager() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        };
        write("usr/bin/podman", "#!/bin/sh\nexit 0\n");
        let manager = r#"#!/bin/sh
read -r request
case $request in
*describe*) echo '{"result":{"class_name":"Acme","name":"acme","version":"1"}}';;
*evaluate*) echo '{"result":{"support":4}}';;
*list_steps*) echo '{"result":{"steps":[{"step":"flash_bmc","priorities":{"clean":0}}]}}';;
esac
"#;
        write("usr/lib/farrier/hardware-managers.d/acme", manager);
        for (name, is_refused) in [("flash_bmc", true), ("flash_nic", false)] {
            let step = format!(
                "steps:\n- {{name: {name}, image: x, interface: deploy, priority: 1, reboot_requested: no, \
                 abortable: no}}\n"
            );
            write("etc/ironic-python-agent.d/mysteps.yaml", &step);
            let managers = HardwareManagers::load(all(&Options::default(), root.path()));
            let outcome = managers.steps(Phase::Clean).map_err(CommandError::from);
            let told = outcome.map(|steps| steps["ContainerHardwareManager"].len());
            match told {
                Ok(count) => assert_eq!((is_refused, count), (false, 3), "{name}"),
                Err(error) => assert!(is_refused && error.details.contains(name), "{}", error.details),
            }
        }
    }
}
