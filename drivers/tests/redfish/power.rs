//! Power.

use crate::stage::{Stage, settings};
use crate::stand_in::Manner;
use farrier_conductor::interfaces::PowerInterface;
use farrier_conductor::model::PowerState;
use farrier_drivers::redfish::RedfishSettings;
use std::time::Duration;

const RESET: &str = "POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset";

#[tokio::test]
async fn a_machine_goes_on_and_off_and_is_ordered_once() {
    let Stage { bmc, node, power, .. } = Stage::new([]).await;
    assert_eq!(power.power_state(&node).await.unwrap(), PowerState::Off);
    power.power_on(&node).await.unwrap();
    assert_eq!(bmc.inner().machine.power, "On", "an order is carried out when it is done");
    power.power_on(&node).await.unwrap();
    assert_eq!(bmc.count(RESET), 1, "a machine that is on is not told so");
    power.reset(&node).await.unwrap();
    assert_eq!(bmc.inner().machine.started_from.len(), 2);
    power.soft_power_off(&node).await.unwrap();
    power.power_off(&node).await.unwrap();
    assert_eq!(bmc.inner().machine.power, "Off");
    power.power_off(&node).await.unwrap();
    power.reboot(&node).await.unwrap();
    assert_eq!(bmc.inner().machine.power, "On");
}

#[tokio::test]
async fn states_between_count_as_where_they_lead() {
    for (says, expected) in [
        ("PoweringOn", Some(PowerState::On)),
        ("PoweringOff", Some(PowerState::Off)),
        ("Paused", Some(PowerState::On)),
        ("Sideways", None),
    ] {
        let Stage { bmc, node, power, .. } = Stage::new([]).await;
        bmc.inner().machine.power = says;
        assert_eq!(power.power_state(&node).await.ok(), expected, "{says}");
    }
}

#[tokio::test]
async fn a_bmc_that_forgets_or_restarts_gets_the_order_again() {
    for manner in
        [Manner::ForgetsFirstReset, Manner::RestartsAtReset, Manner::OutOfServiceAtFirst, Manner::Tasks]
    {
        let Stage { bmc, node, power, .. } = Stage::new([manner]).await;
        power.power_on(&node).await.unwrap();
        power.power_off(&node).await.unwrap();
        assert_eq!(bmc.inner().machine.power, "Off", "{manner:?}");
    }
}

#[tokio::test]
async fn tasks_that_fail_or_never_end_are_reported() {
    let ms = Duration::from_millis;
    for (manner, task_timeout, part) in [
        (Manner::FailingTasks, ms(60_000), "its task ended with Exception: fuse blown, said ******"),
        (Manner::EndlessTasks, ms(100), "/redfish/v1/TaskService/TaskMonitors/1 has not ended after"),
    ] {
        let settings = RedfishSettings { task_timeout, power_wait: ms(500), ..settings() };
        let Stage { bmc, node, power, .. } = Stage::with([manner], settings).await;
        let error = power.power_on(&node).await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert_eq!(bmc.inner().machine.power, "Off");
    }
}

#[tokio::test]
async fn what_the_bmc_says_is_reported_and_never_the_password() {
    let Stage { bmc: _bmc, node, power, .. } = Stage::new([Manner::RepeatsPassword]).await;
    let error = power.power_on(&node).await.unwrap_err().to_string();
    assert!(
        error.contains("403 Forbidden (Base.1.8.InsufficientPrivilege): user with password ****** may"),
        "{error}"
    );
    let Stage { bmc: _bmc, node, power, .. } = Stage::new([Manner::SilentPower]).await;
    let error = power.power_state(&node).await.unwrap_err().to_string();
    assert!(error.contains("does not tell its power"), "{error}");
}

#[tokio::test]
async fn a_machine_that_does_not_follow_is_named() {
    let settings = RedfishSettings { power_wait: Duration::from_millis(200), ..settings() };
    let Stage { bmc, node, power, .. } = Stage::with([], settings).await;
    bmc.inner().machine.power = "Sideways";
    let error = power.power_off(&node).await.unwrap_err().to_string();
    assert!(
        error.contains("accepted the order power off, and reports nothing of its power after"),
        "{error}"
    );
}
