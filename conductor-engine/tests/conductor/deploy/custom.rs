//! Deploy interfaces of somebody else.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::Boot;
use crate::stand_ins::stage::{Stage, image};
use async_trait::async_trait;
use farrier_conductor::agent::Wait;
use farrier_conductor::deploy::{AfterHeartbeat, AgentDeploy, DeployInterface, agent_base};
use farrier_conductor::interfaces::{BootNeed, Interface, InterfaceError, Outcome};
use farrier_conductor::model::{InstanceInfo, Node, PlannedStep, PowerState, ProvisionState, StepKind};
use farrier_conductor::plan::KnownStep;
use farrier_conductor::{Drivers, Error, HardwareType, Task};
use farrier_engine::records::Order;
use farrier_protocol::command::{CommandResult, CommandStatus};
use serde_json::json;

/// Does everything in one step, as interfaces did before there were steps: the agent writes the image on its first
/// heartbeat, and the machine is rebooted on the one after the end of that.
struct InOneStep;

impl InOneStep {
    async fn written(task: &Task) -> Result<Option<CommandResult>, Error> {
        let commands = task.agent().await?.commands().await?;
        Ok(commands.into_iter().find(|command| command.command_name == "prepare_image"))
    }
}

impl Interface for InOneStep {}

#[async_trait]
impl AgentDeploy for InOneStep {
    fn core_steps(&self) -> Vec<KnownStep> {
        vec![KnownStep::new(StepKind::Deploy, "deploy", "deploy", 100)]
    }

    /// The step waits for a heartbeat, also of an agent that has stayed.
    async fn execute(&self, task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error> {
        agent_base::execute(task, step).await?;
        Ok(Outcome::Wait)
    }

    async fn heartbeat(&self, task: &mut Task) -> Result<AfterHeartbeat, Error> {
        let Some(written) = Self::written(task).await? else {
            let agent = task.agent().await?;
            agent.execute("standby.prepare_image", json!({"image_info": {}}), Wait::UntilAccepted).await?;
            return Ok(AfterHeartbeat::Waits);
        };
        if written.command_status == CommandStatus::Running {
            return Ok(AfterHeartbeat::Waits);
        }
        if let Some(error) = written.command_error {
            return Err(Error::invalid("the image", error.details));
        }
        task.prepare_instance().await?;
        task.reboot().await?;
        Ok(AfterHeartbeat::Done)
    }
}

/// Needs nothing but power: the disks of its machines are written elsewhere.
struct PowerAlone;

#[async_trait]
impl Interface for PowerAlone {
    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        match node.instance_info.text("disk_is_written") {
            Ok(Some(_)) => Ok(()),
            _ => Err(InterfaceError::invalid("disk_is_written", "is missing; write the disk first")),
        }
    }
}

#[async_trait]
impl DeployInterface for PowerAlone {
    fn boot_need(&self) -> BootNeed {
        BootNeed::Nothing
    }

    async fn execute(&self, task: &mut Task, _step: &PlannedStep) -> Result<Outcome, Error> {
        task.power_on().await?;
        Ok(Outcome::Done)
    }

    async fn prepare(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(())
    }

    async fn tear_down(&self, task: &mut Task) -> Result<(), Error> {
        task.power_off().await
    }

    async fn clean_up(&self, _task: &mut Task) -> Result<(), Error> {
        Ok(())
    }
}

/// Leaves the machine as it is, and needs nothing that boots it.
struct AsItIs;

impl Interface for AsItIs {}

impl AgentDeploy for AsItIs {
    fn boot_need(&self) -> BootNeed {
        BootNeed::Nothing
    }
}

/// Nodes of type `fake` may have any of three deploy interfaces; those of type `bare` have no boot interface.
fn with_custom(drivers: Drivers) -> Drivers {
    let any = HardwareType::new("any").power(["fake"]).boot(["fake"]).console(["fake"]);
    drivers
        .deploy("in-one-step", InOneStep)
        .deploy("power-alone", PowerAlone)
        .hardware_type(any.deploy(["direct", "in-one-step", "power-alone"]))
        .deploy("as-it-is", AsItIs)
        .hardware_type(HardwareType::new("bare").power(["fake"]).deploy(["power-alone"]))
        .hardware_type(HardwareType::new("adopted").power(["fake"]).deploy(["as-it-is"]))
}

fn with(mut info: InstanceInfo, key: &str, value: &str) -> InstanceInfo {
    info.insert(key.to_owned(), value.into());
    info
}

#[tokio::test]
async fn an_interface_that_does_everything_in_one_step_is_driven_by_heartbeats() {
    let stage = Stage::composed(Script::default(), "any", with_custom).await;
    let info = with(image(), "deploy_interface", "in-one-step");
    stage.conductor.order("n1", Order::deploy(info)).await.unwrap();
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!((node.power_state, node.last_error), (Some(PowerState::On), None));
    let accepted = stage.machine.script.lock().unwrap().accepted.clone();
    let names: Vec<_> = accepted.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["standby.prepare_image"]);
    assert!(matches!(&stage.machine.power_ons()[..], [Some(Boot::Ramdisk(_)), Some(Boot::Disk)]));

    // The next instance has the interface of the node again.
    stage.conductor.order("n1", Order::Undeploy).await.unwrap();
    stage.wait_for(ProvisionState::Available).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    let accepted = stage.machine.script.lock().unwrap().accepted.clone();
    assert!(accepted.iter().any(|(name, _)| name == "deploy.execute_deploy_step"), "{accepted:?}");
}

/// Fast track: the step waits for a heartbeat all the same.
#[tokio::test]
async fn f39_an_interface_that_does_everything_in_one_step_is_driven_by_an_agent_that_stayed() {
    let stage = Stage::composed(Script::default(), "any", with_custom).await;
    stage
        .change_node(|node| {
            node.driver_info.insert("fast_track".to_owned(), true.into());
        })
        .await;
    stage.manageable().await;
    stage.clean(json!([{"interface": "deploy", "step": "erase_devices"}])).await;
    stage.wait_for(ProvisionState::Manageable).await;
    stage.conductor.order("n1", Order::Provide).await.unwrap();
    stage.wait_for(ProvisionState::Available).await;
    let info = with(image(), "deploy_interface", "in-one-step");
    stage.conductor.order("n1", Order::deploy(info)).await.unwrap();
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!(node.last_error, None);
    let accepted = stage.script().accepted;
    assert!(accepted.iter().any(|(name, _)| name == "standby.prepare_image"), "{accepted:?}");
    assert!(matches!(&stage.machine.power_ons()[..], [Some(Boot::Ramdisk(_)), Some(Boot::Disk)]));
}

#[tokio::test]
async fn what_fails_in_a_hook_fails_the_deployment_with_the_agents_words() {
    let script = Script { write_fails: Some("no space left on /dev/vda".into()), ..Script::default() };
    let stage = Stage::composed(script, "any", with_custom).await;
    let info = with(image(), "deploy_interface", "in-one-step");
    stage.conductor.order("n1", Order::deploy(info)).await.unwrap();
    let node = stage.wait_for(ProvisionState::DeployFailed).await;
    let error = node.last_error.unwrap();
    assert!(error.starts_with("deploy step deploy failed: ") && error.contains("no space left"), "{error}");
}

#[tokio::test]
async fn an_interface_that_boots_nothing_needs_no_boot_interface() {
    let stage = Stage::composed(Script::default(), "bare", with_custom).await;
    let validities = stage.conductor.machines().validate("n1").await.unwrap();
    let told = json!(validities);
    assert_eq!(told["boot"], json!({"result": null, "reason": "not supported"}));
    assert_eq!(
        told["deploy"],
        json!({"result": false, "reason": "disk_is_written: is missing; write the disk first"})
    );
    let refused = stage.conductor.order("n1", Order::deploy(image())).await.unwrap_err().to_string();
    assert_eq!(refused, "disk_is_written: is missing; write the disk first");
    let refused = stage
        .conductor
        .order("n1", Order::deploy(with(image(), "deploy_interface", "direct")))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("\"direct\" does not work for hardware type \"bare\""), "{refused}");

    stage
        .conductor
        .order("n1", Order::deploy(with(InstanceInfo::default(), "disk_is_written", "yes")))
        .await
        .unwrap();
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(stage.machine.power_ons(), [None]);
    stage.conductor.order("n1", Order::Undeploy).await.unwrap();
    stage.idle().await;
    assert_eq!(stage.machine.state.lock().unwrap().power, PowerState::Off);
}

#[tokio::test]
async fn a_machine_that_nothing_boots_is_adopted() {
    let stage = Stage::composed(Script::default(), "adopted", with_custom).await;
    stage.manageable().await;
    stage.conductor.order("n1", Order::Adopt).await.unwrap();
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!(node.last_error, None);
}
