//! Each method of the deploy interface is called where Ironic calls it (contract 5.1).

use crate::stand_ins::agent::Script;
use crate::stand_ins::stage::Stage;
use async_trait::async_trait;
use farrier_conductor::deploy::{AfterHeartbeat, DeployInterface, Direct};
use farrier_conductor::interfaces::{Interface, Outcome};
use farrier_conductor::model::{PlannedStep, ProvisionState};
use farrier_conductor::plan::KnownStep;
use farrier_conductor::{Error, HardwareType, Task};
use farrier_engine::records::{Deployment, Order};
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

type Calls = Arc<Mutex<Vec<&'static str>>>;

/// Does what `direct` does, and notes what it is called for.
struct Noted(Calls);

impl Noted {
    /// Calls that follow each other for the same reason are noted once.
    fn note(&self, call: &'static str) {
        let mut calls = self.0.lock().unwrap();
        if calls.last() != Some(&call) {
            calls.push(call);
        }
    }
}

impl Interface for Noted {}

#[async_trait]
impl DeployInterface for Noted {
    fn core_steps(&self) -> Vec<KnownStep> {
        DeployInterface::core_steps(&Direct)
    }

    fn in_band(&self) -> RangeInclusive<i64> {
        DeployInterface::in_band(&Direct)
    }

    fn runs_agents(&self) -> bool {
        true
    }

    async fn prepare(&self, task: &mut Task) -> Result<(), Error> {
        self.note("prepare");
        Direct.prepare(task).await
    }

    async fn execute(&self, task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error> {
        self.note("execute");
        DeployInterface::execute(&Direct, task, step).await
    }

    async fn heartbeat(&self, task: &mut Task) -> Result<AfterHeartbeat, Error> {
        self.note("heartbeat");
        DeployInterface::heartbeat(&Direct, task).await
    }

    async fn tear_down(&self, task: &mut Task) -> Result<(), Error> {
        self.note("tear_down");
        Direct.tear_down(task).await
    }

    async fn clean_up(&self, task: &mut Task) -> Result<(), Error> {
        self.note("clean_up");
        Direct.clean_up(task).await
    }

    async fn take_over(&self, task: &mut Task) -> Result<(), Error> {
        self.note("take_over");
        Direct.take_over(task).await
    }

    async fn prepare_cleaning(&self, task: &mut Task) -> Result<Outcome, Error> {
        self.note("prepare_cleaning");
        Direct.prepare_cleaning(task).await
    }

    async fn tear_down_cleaning(&self, task: &mut Task) -> Result<(), Error> {
        self.note("tear_down_cleaning");
        Direct.tear_down_cleaning(task).await
    }

    async fn prepare_service(&self, task: &mut Task) -> Result<Outcome, Error> {
        self.note("prepare_service");
        Direct.prepare_service(task).await
    }

    async fn tear_down_service(&self, task: &mut Task) -> Result<(), Error> {
        self.note("tear_down_service");
        Direct.tear_down_service(task).await
    }
}

/// A stage whose node has that interface, and its calls.
async fn stage(script: Script) -> (Stage, Calls) {
    let calls = Calls::default();
    let interface = Noted(Arc::clone(&calls));
    let stage = Stage::composed(script, "noted", |drivers| {
        let noted = HardwareType::new("noted").power(["fake"]).boot(["fake"]).rescue(["agent"]);
        drivers.deploy("noted", interface).hardware_type(noted.deploy(["noted"]))
    })
    .await;
    (stage, calls)
}

fn taken(calls: &Calls) -> Vec<&'static str> {
    std::mem::take(&mut *calls.lock().unwrap())
}

fn erase() -> Value {
    json!([{"interface": "deploy", "step": "erase_devices"}])
}

const DEPLOYED: [&str; 4] = ["prepare", "execute", "heartbeat", "execute"];

const CLEANED: [&str; 2] = ["prepare_cleaning", "tear_down_cleaning"];

#[tokio::test]
async fn h04_a_life_calls_each_method_where_ironic_does() {
    let (stage, calls) = stage(Script::default()).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(taken(&calls), DEPLOYED, "deploy");
    stage.conductor.order("n1", Order::Rebuild(Deployment::default())).await.unwrap();
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(taken(&calls), DEPLOYED, "rebuild");
    let steps = [json!({"interface": "deploy", "step": "erase_devices", "args": {}})];
    stage.conductor.order("n1", Order::service(&steps)).await.unwrap();
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(taken(&calls), ["prepare_service", "tear_down_service"], "service");
    stage.conductor.order("n1", Order::rescue("password")).await.unwrap();
    stage.wait_for(ProvisionState::Rescue).await;
    assert_eq!(taken(&calls), [""; 0], "rescue");
    stage.conductor.order("n1", Order::Unrescue).await.unwrap();
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(taken(&calls), ["prepare"], "unrescue");
    stage.conductor.order("n1", Order::Undeploy).await.unwrap();
    stage.wait_for(ProvisionState::Available).await;
    assert_eq!(taken(&calls), ["tear_down", "clean_up"], "undeploy");
    stage.manageable().await;
    stage.clean(erase()).await;
    stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!(taken(&calls), CLEANED, "clean");
    stage.conductor.order("n1", Order::Adopt).await.unwrap();
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(taken(&calls), ["prepare", "take_over"], "adopt");
}

#[tokio::test]
async fn h04_what_was_prepared_is_undone_where_an_operation_fails_or_is_aborted() {
    let (stage, calls) = stage(Script { write_fails: Some("no disk".into()), ..Script::default() }).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::DeployFailed).await;
    stage.idle().await;
    assert_eq!(taken(&calls), [&DEPLOYED[..], &["clean_up"]].concat(), "failed deployment");
    stage.change(|script| script.silent = true);
    stage.conductor.order("n1", Order::Rebuild(Deployment::default())).await.unwrap();
    stage.wait_for(ProvisionState::DeployWait).await;
    stage.conductor.order("n1", Order::Abort).await.unwrap();
    stage.wait_for(ProvisionState::DeployFailed).await;
    stage.idle().await;
    assert_eq!(taken(&calls), ["prepare", "execute", "clean_up"], "aborted deployment");
    stage.change(|script| script.silent = false);
    stage.conductor.order("n1", Order::Undeploy).await.unwrap();
    stage.wait_for(ProvisionState::Available).await;
    stage.manageable().await;
    taken(&calls);
    stage.clean(erase()).await;
    stage.wait_for(ProvisionState::CleanFailed).await;
    stage.idle().await;
    assert_eq!(taken(&calls), CLEANED, "failed cleaning");
    stage.change(|script| script.silent = true);
    stage.conductor.set_maintenance("n1", false, None).await.unwrap();
    stage.conductor.order("n1", Order::Manage).await.unwrap();
    stage.clean(erase()).await;
    stage.wait_for(ProvisionState::CleanWait).await;
    stage.conductor.order("n1", Order::Abort).await.unwrap();
    stage.idle().await;
    assert_eq!(taken(&calls), CLEANED, "aborted cleaning");
}

/// A service that has failed keeps its agent until somebody has looked.
#[tokio::test]
async fn h04_a_failed_service_is_torn_down_when_it_is_aborted() {
    let (stage, calls) = stage(Script::default()).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    taken(&calls);
    stage.change(|script| script.write_fails = Some("flash: bad magic".into()));
    let steps = [json!({"interface": "deploy", "step": "erase_devices", "args": {}})];
    stage.conductor.order("n1", Order::service(&steps)).await.unwrap();
    stage.wait_for(ProvisionState::ServiceFailed).await;
    assert_eq!(taken(&calls), ["prepare_service"]);
    stage.conductor.order("n1", Order::Abort).await.unwrap();
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(taken(&calls), ["tear_down_service"]);
}
