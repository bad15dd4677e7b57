//! Every method of a driver hangs, and panics, in every operation that calls it (E3, E4): the node comes to rest, its error
//! names the call, and its lease is free.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::FakeMachine;
use crate::stand_ins::stage::{Stage, image};
use async_trait::async_trait;
use farrier_conductor::interfaces::{
    BootCapability, BootContext, BootInterface, DriverStep, Interface, InterfaceError, NetworkInterface,
    NetworkKind, PowerInterface, StorageInterface,
};
use farrier_conductor::model::{
    Activity, Node, PlannedStep, PowerAction, PowerState, ProvisionState, RequestedStep, StepKind,
};
use farrier_conductor::plan::KnownStep;
use farrier_conductor::{Drivers, HardwareType};
use farrier_engine::records::Order;
use farrier_media::KernelParameters;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Hangs,
    Panics,
}

/// What is called, and what goes wrong.
#[derive(Default)]
struct Plan {
    called: BTreeSet<(&'static str, ProvisionState)>,
    fault: Option<(&'static str, Fault)>,
}

/// A machine whose driver can have each fault in each method.
#[derive(Clone)]
struct Faulty {
    machine: FakeMachine,
    plan: Arc<Mutex<Plan>>,
}

type Outcome<T> = Result<T, InterfaceError>;

impl Faulty {
    async fn call(&self, method: &'static str, node: &Node) {
        let fault = {
            let mut plan = self.plan.lock().unwrap();
            plan.called.insert((method, node.provision_state));
            plan.fault.filter(|(faulty, _)| *faulty == method).map(|(_, fault)| fault)
        };
        match fault {
            Some(Fault::Hangs) => std::future::pending().await,
            Some(Fault::Panics) => panic!("a driver panics"),
            None => {}
        }
    }
}

#[async_trait]
impl Interface for Faulty {
    async fn validate(&self, node: &Node) -> Outcome<()> {
        self.call("validate", node).await;
        Ok(())
    }

    fn steps(&self, kind: StepKind, node: &Node) -> Vec<KnownStep> {
        self.machine.steps(kind, node)
    }

    async fn validate_step(&self, node: &Node, _: &RequestedStep) -> Outcome<()> {
        self.call("validate_step", node).await;
        Ok(())
    }

    async fn execute_step(&self, kind: StepKind, node: &Node, step: &PlannedStep) -> Outcome<DriverStep> {
        self.call("execute_step", node).await;
        self.machine.execute_step(kind, node, step).await
    }

    async fn poll_step(&self, kind: StepKind, node: &Node, step: &PlannedStep) -> Outcome<DriverStep> {
        self.call("poll_step", node).await;
        self.machine.poll_step(kind, node, step).await
    }
}

#[async_trait]
impl PowerInterface for Faulty {
    async fn power_state(&self, node: &Node) -> Outcome<PowerState> {
        self.call("power_state", node).await;
        self.machine.power_state(node).await
    }

    async fn power_on(&self, node: &Node) -> Outcome<()> {
        self.call("power_on", node).await;
        self.machine.power_on(node).await
    }

    async fn power_off(&self, node: &Node) -> Outcome<()> {
        self.call("power_off", node).await;
        self.machine.power_off(node).await
    }

    async fn reboot(&self, node: &Node) -> Outcome<()> {
        self.call("reboot", node).await;
        self.machine.reboot(node).await
    }

    fn supports_soft_power_off(&self, _: &Node) -> bool {
        true
    }

    async fn soft_power_off(&self, node: &Node) -> Outcome<()> {
        self.call("soft_power_off", node).await;
        self.machine.soft_power_off(node).await
    }
}

#[async_trait]
impl BootInterface for Faulty {
    fn capabilities(&self) -> &[BootCapability] {
        &[BootCapability::RamdiskBoot]
    }

    async fn prepare_ramdisk(&self, boot: BootContext<'_>, parameters: &KernelParameters) -> Outcome<()> {
        self.call("prepare_ramdisk", boot.node).await;
        self.machine.prepare_ramdisk(boot, parameters).await
    }

    async fn clean_up_ramdisk(&self, boot: BootContext<'_>) -> Outcome<()> {
        self.call("clean_up_ramdisk", boot.node).await;
        self.machine.clean_up_ramdisk(boot).await
    }

    async fn prepare_instance(&self, boot: BootContext<'_>) -> Outcome<()> {
        self.call("prepare_instance", boot.node).await;
        self.machine.prepare_instance(boot).await
    }

    async fn clean_up_instance(&self, boot: BootContext<'_>) -> Outcome<()> {
        self.call("clean_up_instance", boot.node).await;
        self.machine.clean_up_instance(boot).await
    }

    async fn validate_rescue(&self, node: &Node) -> Outcome<()> {
        self.call("validate_rescue", node).await;
        Ok(())
    }

    async fn validate_inspection(&self, node: &Node) -> Outcome<()> {
        self.call("validate_inspection", node).await;
        Ok(())
    }
}

#[async_trait]
impl NetworkInterface for Faulty {
    async fn add_network(&self, node: &mut Node, _: NetworkKind) -> Outcome<()> {
        self.call("add_network", node).await;
        Ok(())
    }

    async fn remove_network(&self, node: &mut Node, _: NetworkKind) -> Outcome<()> {
        self.call("remove_network", node).await;
        Ok(())
    }

    async fn configure_tenant_networks(&self, node: &mut Node) -> Outcome<()> {
        self.call("configure_tenant_networks", node).await;
        Ok(())
    }

    async fn unconfigure_tenant_networks(&self, node: &mut Node) -> Outcome<()> {
        self.call("unconfigure_tenant_networks", node).await;
        Ok(())
    }

    async fn vif_list(&self, node: &Node) -> Outcome<Vec<String>> {
        self.call("vif_list", node).await;
        Ok(Vec::new())
    }

    async fn validate_network(&self, node: &Node, _: NetworkKind) -> Outcome<()> {
        self.call("validate_network", node).await;
        Ok(())
    }
}

#[async_trait]
impl StorageInterface for Faulty {
    async fn attach_volumes(&self, node: &Node) -> Outcome<()> {
        self.call("attach_volumes", node).await;
        Ok(())
    }

    async fn detach_volumes(&self, node: &Node) -> Outcome<()> {
        self.call("detach_volumes", node).await;
        Ok(())
    }
}

/// An operation: the orders before it, with the states that they lead to, and its own.
struct Life {
    before: Vec<(Order, ProvisionState)>,
    order: Order,
    ends_in: ProvisionState,
}

fn steps(names: &[&str]) -> Vec<serde_json::Value> {
    names.iter().map(|name| json!({"interface": "power", "step": name})).collect()
}

fn lives() -> Vec<Life> {
    use ProvisionState::{Active, Available, Manageable, Rescue};
    let (deployed, manageable) = ((Order::deploy(image()), Active), (Order::Manage, Manageable));
    let life = |before: Vec<(Order, ProvisionState)>, order, ends_in| Life { before, order, ends_in };
    let erase = json!({"interface": "deploy", "step": "erase_devices"});
    vec![
        life(vec![], Order::deploy(image()), Active),
        life(vec![deployed.clone()], Order::Undeploy, Available),
        life(
            vec![manageable.clone()],
            Order::clean(&[steps(&["at_once", "slow"]), vec![erase.clone()]].concat()),
            Manageable,
        ),
        life(vec![deployed.clone()], Order::service(&[steps(&["slow"]), vec![erase]].concat()), Active),
        life(vec![deployed.clone()], Order::rescue("oats"), Rescue),
        life(vec![deployed.clone(), (Order::rescue("oats"), Rescue)], Order::Unrescue, Active),
        life(vec![manageable.clone()], Order::Inspect, Manageable),
        life(vec![manageable.clone()], Order::Adopt, Active),
        life(vec![deployed.clone()], Order::power(PowerAction::Reboot), Active),
        life(vec![deployed], Order::power(PowerAction::SoftOff), Active),
    ]
}

/// A stage that is ready for the order of a life.
async fn ready(life: &Life) -> (Stage, Arc<Mutex<Plan>>) {
    let plan = Arc::new(Mutex::new(Plan::default()));
    let given = Arc::clone(&plan);
    let stage = Stage::built_with(
        Script::default(),
        |settings| {
            settings.automated_clean = false;
            settings.interface_timeout = Duration::from_millis(150);
            settings.power_state_change_timeout = Duration::from_millis(150);
            settings.soft_power_off_timeout = Duration::from_millis(150);
            settings.power_read_timeout = Duration::from_millis(100);
        },
        "faulty",
        move |machine, drivers: Drivers| {
            let faulty = Faulty { machine: machine.clone(), plan: given };
            let of = HardwareType::new("faulty").power(["faulty"]).boot(["faulty"]).network(["faulty"]);
            drivers
                .power("faulty", faulty.clone())
                .boot("faulty", faulty.clone())
                .network("faulty", faulty.clone())
                .storage("faulty", faulty)
                .hardware_type(of.storage(["faulty"]).deploy(["direct"]).rescue(["agent"]).inspect(["agent"]))
        },
    )
    .await;
    for (order, state) in &life.before {
        stage.conductor.order("n1", order.clone()).await.unwrap();
        stage.wait_for(*state).await;
        stage.idle().await;
    }
    plan.lock().unwrap().called.clear();
    (stage, plan)
}

/// The node once nothing more happens to it.
async fn at_rest(stage: &Stage) -> Node {
    let end = std::time::Instant::now() + crate::stand_ins::stage::PATIENCE;
    loop {
        let record = stage.record().await;
        let activity = record.node.provision_state.activity();
        let is_at_rest = matches!(activity, Activity::Rest | Activity::Failed) && record.order.is_none();
        if is_at_rest && record.node.reservation.is_none() {
            return record.node;
        }
        assert!(std::time::Instant::now() < end, "the node does not come to rest: {record:#?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn e03_e04(number: usize) {
    let life = &lives()[number];
    let (stage, plan) = ready(life).await;
    stage.conductor.order("n1", life.order.clone()).await.unwrap();
    assert_eq!(at_rest(&stage).await.provision_state, life.ends_in, "{:?} without a fault", life.order);
    let called = plan.lock().unwrap().called.clone();
    let methods: BTreeSet<_> = called.iter().map(|(method, _)| *method).collect();
    for method in methods {
        for fault in [Fault::Hangs, Fault::Panics] {
            let (stage, plan) = ready(life).await;
            plan.lock().unwrap().fault = Some((method, fault));
            let ordered = stage.conductor.order("n1", life.order.clone()).await;
            let node = at_rest(&stage).await;
            let error = match ordered {
                Err(error) => error.to_string(),
                Ok(()) => node.last_error.clone().unwrap_or_default(),
            };
            let is_named =
                error.contains(&format!(".{method} within")) || error.contains(&format!(".{method};"));
            let what = format!("{:?}, {method} {fault:?}: {} {error:?}", life.order, node.provision_state);
            // A reading that was not made decides nothing, and what could not be listed at the end is in the log alone.
            assert!(is_named || ["power_state", "vif_list"].contains(&method), "{what}");
            // The node is anybody's.
            plan.lock().unwrap().fault = None;
            stage.conductor.set_maintenance("n1", true, None).await.unwrap();
        }
    }
    let states: Vec<_> = called.iter().map(|(method, state)| format!("{method} in {state}")).collect();
    println!("{:?}: {}", life.order, states.join(", "));
}

macro_rules! lives {
    ($($name:ident = $number:literal,)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                e03_e04($number).await;
            }
        )*

        #[test]
        fn every_life_has_its_test() {
            assert_eq!(lives().len(), [$($number),*].len());
        }
    };
}

lives! {
    fault_e03_e04_a_deployment_survives_each_fault_of_its_driver = 0,
    fault_e03_e04_a_removal_survives_each_fault_of_its_driver = 1,
    fault_e03_e04_a_cleaning_survives_each_fault_of_its_driver = 2,
    fault_e03_e04_a_service_survives_each_fault_of_its_driver = 3,
    fault_e03_e04_a_rescue_survives_each_fault_of_its_driver = 4,
    fault_e03_e04_an_unrescue_survives_each_fault_of_its_driver = 5,
    fault_e03_e04_an_inspection_survives_each_fault_of_its_driver = 6,
    fault_e03_e04_an_adoption_survives_each_fault_of_its_driver = 7,
    fault_e03_e04_a_reboot_survives_each_fault_of_its_driver = 8,
    fault_e03_e04_a_shutdown_survives_each_fault_of_its_driver = 9,
}
