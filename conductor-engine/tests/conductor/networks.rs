//! Networks that machines are on, and volumes that they have, while they are deployed, cleaned and serviced.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::FakeMachine;
use crate::stand_ins::stage::{Stage, image, new_node};
use async_trait::async_trait;
use farrier_conductor::HardwareType;
use farrier_conductor::interfaces::{
    Interface, InterfaceError, NetworkInterface, NetworkKind, StorageInterface,
};
use farrier_conductor::model::{DriverInfo, InterfaceKind, NewNode, Node, PowerState, ProvisionState};
use farrier_engine::records::Order;
use serde_json::Map;
use std::sync::{Arc, Mutex, OnceLock};

/// Notes what it is asked for, and in the node where its machine is.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn note(&self, what: impl Into<String>) -> Result<(), InterfaceError> {
        self.0.lock().unwrap().push(what.into());
        Ok(())
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[async_trait]
impl Interface for Notes {
    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        match node.driver_text("cable") {
            Some(_) => Err(InterfaceError::driver_info("cable", "is loose")),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl NetworkInterface for Notes {
    async fn add_network(&self, node: &mut Node, kind: NetworkKind) -> Result<(), InterfaceError> {
        node.ports[0].internal_info.insert("on".to_owned(), format!("{kind:?}").into());
        self.note(format!("add {kind:?}"))
    }

    async fn remove_network(&self, node: &mut Node, kind: NetworkKind) -> Result<(), InterfaceError> {
        let was_on = node.ports[0].internal_info.remove("on");
        self.note(format!("remove {kind:?}{}", if was_on.is_some() { "" } else { " in vain" }))
    }

    async fn configure_tenant_networks(&self, _node: &mut Node) -> Result<(), InterfaceError> {
        self.note("configure tenant")
    }

    async fn unconfigure_tenant_networks(&self, _node: &mut Node) -> Result<(), InterfaceError> {
        self.note("unconfigure tenant")
    }
}

#[async_trait]
impl StorageInterface for Notes {
    async fn attach_volumes(&self, _node: &Node) -> Result<(), InterfaceError> {
        self.note("attach")
    }

    async fn detach_volumes(&self, _node: &Node) -> Result<(), InterfaceError> {
        self.note("detach")
    }
}

#[tokio::test]
async fn a_machine_is_on_the_network_of_its_operation_and_then_on_that_of_its_instance() {
    let notes = Notes::default();
    let stage = Stage::composed(Script::default(), "wired", |drivers| {
        let wired = HardwareType::new("wired").power(["fake"]).boot(["fake"]).deploy(["direct"]);
        drivers
            .network("notes", notes.clone())
            .storage("notes", notes.clone())
            .hardware_type(wired.network(["notes"]).storage(["notes"]))
    })
    .await;
    let driver_info = DriverInfo(Map::from_iter([("cable".to_owned(), "loose".into())]));
    let loose = NewNode { driver: "wired".into(), driver_info, ..new_node("n2", "52:54:00:00:00:02") };
    stage.conductor.create_node(loose).await.unwrap();
    let refused = stage.conductor.order("n2", Order::deploy(image())).await.unwrap_err().to_string();
    assert_eq!(refused, "driver_info cable: is loose");
    assert!(notes.take().is_empty());

    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    let expected =
        ["attach", "unconfigure tenant", "add Provisioning", "remove Provisioning", "configure tenant"];
    assert_eq!(notes.take(), expected);
    stage.conductor.order("n1", Order::Undeploy).await.unwrap();
    stage.wait_for(ProvisionState::Available).await;
    // It may have been removed in the middle of a service or rescue.
    let in_vain = ["Provisioning", "Rescuing", "Servicing"].map(|kind| format!("remove {kind} in vain"));
    assert_eq!(
        notes.take(),
        ["detach".into(), "unconfigure tenant".into()].into_iter().chain(in_vain).collect::<Vec<String>>()
    );

    stage.machine.script.lock().unwrap().write_fails = Some("disk full".into());
    stage.deploy_and_fail().await;
    assert_eq!(notes.take(), ["attach", "unconfigure tenant", "add Provisioning", "remove Provisioning"]);
}

#[tokio::test]
async fn c25_an_inspection_that_fails_leaves_its_network() {
    let notes = Notes::default();
    let stage = Stage::composed(Script { silent: true, ..Script::default() }, "wired", |drivers| {
        let wired = HardwareType::new("wired").power(["fake"]).boot(["fake"]).deploy(["direct"]);
        let drivers = drivers.network("notes", notes.clone());
        drivers.hardware_type(wired.inspect(["agent"]).network(["notes"]))
    })
    .await;
    stage.manageable().await;
    stage.conductor.order("n1", Order::Inspect).await.unwrap();
    stage.wait_for(ProvisionState::InspectWait).await;
    stage.conductor.order("n1", Order::Abort).await.unwrap();
    stage.wait_for(ProvisionState::InspectFailed).await;
    let notes = notes.take();
    let [added, removed] = ["add ", "remove "].map(|begin| {
        notes.iter().filter_map(|note| note.strip_prefix(begin)).map(str::to_owned).collect::<Vec<_>>()
    });
    assert!(added.len() == 1 && added == removed, "{notes:?}");
}

/// A network of smart NICs: it can be changed only while the machine is on.
#[derive(Clone, Default)]
struct SmartNics {
    machine: Arc<OnceLock<FakeMachine>>,
    vifs: Arc<Mutex<Vec<String>>>,
    is_broken: Arc<Mutex<bool>>,
    changes: Arc<Mutex<Vec<String>>>,
}

impl SmartNics {
    fn change(&self, what: String) -> Result<(), InterfaceError> {
        let machine = self.machine.get().unwrap();
        assert_eq!(machine.state.lock().unwrap().power, PowerState::On, "{what}");
        self.changes.lock().unwrap().push(what);
        match *self.is_broken.lock().unwrap() {
            true => Err(InterfaceError::invalid("network", "is broken")),
            false => Ok(()),
        }
    }
}

impl Interface for SmartNics {}

#[async_trait]
impl NetworkInterface for SmartNics {
    async fn add_network(&self, _: &mut Node, kind: NetworkKind) -> Result<(), InterfaceError> {
        self.change(format!("add {kind}"))
    }

    async fn remove_network(&self, _: &mut Node, kind: NetworkKind) -> Result<(), InterfaceError> {
        self.change(format!("remove {kind}"))
    }

    async fn configure_tenant_networks(&self, _: &mut Node) -> Result<(), InterfaceError> {
        self.change("configure tenant".to_owned())
    }

    async fn unconfigure_tenant_networks(&self, _: &mut Node) -> Result<(), InterfaceError> {
        self.change("unconfigure tenant".to_owned())
    }

    async fn vif_detach(&self, _: &mut Node, vif: &str) -> Result<(), InterfaceError> {
        self.vifs.lock().unwrap().retain(|one| one != vif);
        InterfaceError::unsupported(InterfaceKind::Network, "vif_detach")
    }

    async fn vif_list(&self, _: &Node) -> Result<Vec<String>, InterfaceError> {
        Ok(self.vifs.lock().unwrap().clone())
    }

    fn need_power_on(&self, _: &Node) -> bool {
        true
    }
}

#[tokio::test]
async fn a_machine_with_smart_nics_is_on_while_its_networks_change_and_off_again() {
    let nics = SmartNics { vifs: Arc::new(Mutex::new(vec!["v1".into(), "v2".into()])), ..Default::default() };
    let stage = Stage::composed(Script::default(), "wired", |drivers| {
        let wired = HardwareType::new("wired").power(["fake"]).boot(["fake"]).deploy(["direct"]);
        drivers
            .network("nics", nics.clone())
            .supported_by_all(InterfaceKind::Network, ["nics"])
            .hardware_type(wired.network(["noop"]))
    })
    .await;
    assert!(nics.machine.set(stage.machine.clone()).is_ok());
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    let expected = ["unconfigure tenant", "add provisioning", "remove provisioning", "configure tenant"];
    assert_eq!(std::mem::take(&mut *nics.changes.lock().unwrap()), expected);
    // Ramdisk and instance, and once for each change of networks.
    assert_eq!(stage.machine.power_ons().len(), 4);
    assert!(!stage.node().await.driver_internal_info.is_on_for_network);
    assert_eq!(stage.machine.state.lock().unwrap().power, PowerState::On);

    *nics.is_broken.lock().unwrap() = true;
    stage.conductor.order("n1", Order::Undeploy).await.unwrap();
    stage.wait_for(ProvisionState::Error).await;
    assert_eq!(stage.machine.state.lock().unwrap().power, PowerState::Off);
    let node = stage.node().await;
    assert!(!node.driver_internal_info.is_on_for_network, "{node:?}");
    assert!(nics.vifs.lock().unwrap().is_empty(), "what an instance has ends with it, whatever fails");
}
