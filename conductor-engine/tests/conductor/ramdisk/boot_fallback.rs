//! Boots of the ramdisk that fall back to another boot interface, in the order in which the operator has named them.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::Boot;
use crate::stand_ins::stage::{MAC, PATIENCE, Stage, new_node};
use async_trait::async_trait;
use farrier_conductor::HardwareType;
use farrier_conductor::interfaces::{BootContext, BootExtension, BootInterface, Interface, InterfaceError};
use farrier_conductor::model::{NewNode, Node, ProvisionState};
use farrier_engine::records::Order;
use farrier_media::KernelParameters;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A boot interface from which no machine boots, and what it was asked for.
#[derive(Clone)]
struct Useless {
    name: &'static str,
    /// Whether it says so; else it says that all is well.
    refuses: bool,
    /// Whether its medium has a token.
    has_token: bool,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Useless {
    fn note(&self, call: &str) {
        self.asked.lock().unwrap().push(format!("{} {call}", self.name));
    }
}

impl Interface for Useless {}

#[async_trait]
impl BootInterface for Useless {
    fn extension(&self) -> &dyn BootExtension {
        self
    }

    async fn prepare_ramdisk(&self, _: BootContext<'_>, _: &KernelParameters) -> Result<(), InterfaceError> {
        self.note("prepares");
        match self.refuses {
            true => Err(InterfaceError::driver_info("bmc_licence", "is missing")),
            false => Ok(()),
        }
    }

    async fn clean_up_ramdisk(&self, _: BootContext<'_>) -> Result<(), InterfaceError> {
        self.note("cleans up");
        Ok(())
    }

    async fn prepare_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        boot.boot_from_disk(self).await
    }

    async fn clean_up_instance(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn validate_inspection(&self, _: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }
}

impl BootExtension for Useless {
    fn can_provide_config(&self) -> bool {
        self.has_token
    }
}

fn erase() -> Value {
    json!({"interface": "deploy", "step": "erase_devices_metadata"})
}

type Asked = Arc<Mutex<Vec<String>>>;

/// A stage whose node boots by an interface that says that all is well, and falls back to those that are named.
async fn stage(fallback: &str) -> (Stage, Asked) {
    stage_with(false, fallback).await
}

/// The same, whose first interfaces have media with tokens.
async fn stage_with(has_token: bool, fallback: &str) -> (Stage, Asked) {
    let asked = Asked::default();
    let useless = |name, refuses| Useless { name, refuses, has_token, asked: Arc::clone(&asked) };
    let stage = Stage::built(
        Script::default(),
        |settings| {
            settings.boot_retry_timeout = Duration::from_millis(200);
            settings.automated_clean = false;
        },
        "stubborn",
        |drivers| {
            let stubborn = HardwareType::new("stubborn").power(["fake"]).boot(["deaf", "poor", "fake"]);
            let stubborn = stubborn.deploy(["direct"]).inspect(["agent"]);
            let drivers = drivers.boot("deaf", useless("deaf", false)).boot("poor", useless("poor", true));
            drivers.hardware_type(stubborn)
        },
    )
    .await;
    stage.change_node(|node| drop(node.driver_info.insert("boot_fallback".into(), json!(fallback)))).await;
    (stage, asked)
}

/// The kernel parameters of each boot of the machine; nothing where it started from something else.
fn boots(stage: &Stage) -> Vec<Option<String>> {
    let parameters = |boot| match boot {
        Some(Boot::Ramdisk(parameters)) => Some(parameters.to_string()),
        _ => None,
    };
    stage.machine.power_ons().into_iter().map(parameters).collect()
}

#[tokio::test]
async fn a_boot_falls_back_where_nobody_calls_and_where_it_cannot_be_prepared_and_the_next_begins_anew() {
    let (stage, asked) = stage("poor, fake").await;
    stage.manageable().await;
    for _ in 0..2 {
        stage.clean(json!([erase()])).await;
        stage.wait_for(ProvisionState::CleanWait).await;
        let node = stage.wait_for(ProvisionState::Manageable).await;
        assert_eq!((node.last_error, node.driver_internal_info.boot_fallback), (None, None));
        let expected = ["deaf prepares", "deaf cleans up", "poor prepares", "poor cleans up"];
        assert_eq!(std::mem::take(&mut *asked.lock().unwrap()), expected);
    }
    assert_eq!(stage.script().steps(), ["clean deploy.erase_devices_metadata"; 2]);
    let boots = boots(&stage);
    assert!(boots.iter().map(Option::is_some).eq([false, true, false, true]), "{boots:?}");
}

/// The deadline is that of the boot that is waited for.
#[tokio::test]
async fn e17_a_boot_that_falls_back_has_a_deadline_of_its_own() {
    let (stage, _) = stage("fake").await;
    stage.change(|script| script.silent = true);
    stage.manageable().await;
    stage.clean(json!([erase()])).await;
    let began = stage.wait_for(ProvisionState::CleanWait).await.provision_updated_at;
    let end = std::time::Instant::now() + PATIENCE;
    let node = loop {
        let node = stage.wait_for(ProvisionState::CleanWait).await;
        if node.driver_internal_info.boot_fallback.is_some() {
            break node;
        }
        assert!(std::time::Instant::now() < end, "it does not fall back: {node:#?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert!(node.provision_updated_at > began, "{began}");
}

/// Both that it cannot be prepared, and that nobody calls, with a token on the medium that no agent has got.
#[tokio::test]
async fn e02_an_agent_is_given_its_token_where_the_boot_falls_back_from_a_medium_to_the_network() {
    let (stage, asked) = stage_with(true, "poor, fake").await;
    stage.manageable().await;
    stage.clean(json!([erase()])).await;
    stage.wait_for(ProvisionState::CleanWait).await;
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!((node.last_error, node.driver_internal_info.boot_fallback), (None, None));
    assert_eq!(asked.lock().unwrap().len(), 4);
    let boots = boots(&stage);
    let lines: Vec<_> = boots.iter().flatten().collect();
    assert_eq!(lines.len(), 1, "{boots:?}");
    assert!(!lines[0].contains("ipa-agent-token="), "{lines:?}");
    assert_ne!(stage.script().looked_up.as_deref(), Some("******"));
}

#[tokio::test]
async fn an_inspection_falls_back_with_its_own_parameters() {
    let (stage, asked) = stage("fake").await;
    stage.manageable().await;
    stage.conductor.order("n1", Order::Inspect).await.unwrap();
    let node = stage.wait_for(ProvisionState::Manageable).await;
    assert_eq!((node.last_error, node.driver_internal_info.boot_fallback), (None, None));
    assert_eq!(*asked.lock().unwrap(), ["deaf prepares", "deaf cleans up"]);
    let boots = boots(&stage);
    let last = boots.last().unwrap().as_ref().unwrap();
    assert!(last.contains("ipa-inspection-callback-url="), "{last}");
}

#[tokio::test]
async fn what_is_left_when_all_have_failed_is_the_reason_of_the_last() {
    let (stage, _) = stage("poor").await;
    stage.manageable().await;
    stage.clean(json!([erase()])).await;
    let error = stage.wait_for(ProvisionState::CleanFailed).await.last_error.unwrap();
    assert!(error.contains("driver_info bmc_licence: is missing"), "{error}");
    assert_eq!(stage.idle().await.driver_internal_info.boot_fallback, None, "the next begins anew");
}

#[tokio::test]
async fn a_boot_interface_that_a_node_cannot_have_is_nothing_to_fall_back_to() {
    let (stage, _) = stage("fake").await;
    let mut node = NewNode { driver: "stubborn".into(), ..new_node("n2", &MAC.replace("01", "02")) };
    node.driver_info.insert("boot_fallback".into(), json!("fake, oats"));
    let refused = stage.conductor.create_node(node).await.unwrap_err().to_string();
    assert!(
        refused.contains(r#"boot_interface: "oats" does not work for hardware type "stubborn""#),
        "{refused}"
    );
}
