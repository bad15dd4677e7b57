use super::*;
use farrier_conductor::interfaces::{ManagementInterface, PowerInterface};
use farrier_conductor::model::clock::{Clock, SystemClock};
use farrier_conductor::model::{BootDevice, NewNode, Node, PowerState, ProvisionState};

fn interfaces(state_dir: &Path) -> (ManualPower, ManualManagement) {
    let pending_actions = PendingActions::below(state_dir);
    (ManualPower::new(pending_actions.clone()), ManualManagement::new(pending_actions))
}

#[tokio::test]
async fn what_is_to_be_done_outlives_the_conductor_and_goes_with_the_node() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = Node::enrol(NewNode::default(), SystemClock.now());
    node.provision_state = ProvisionState::Deploying;
    let (power, management) = interfaces(folder.path());
    management.set_boot_device(&node, BootDevice::Pxe, false).await.unwrap();
    assert_eq!(power.hand_work(&node), None, "nothing has to be done before the machine is to be on");
    power.power_on(&node).await.unwrap();
    let (power, management) = interfaces(folder.path());
    let work = power.hand_work(&node).unwrap();
    assert_eq!(work.what, "power the machine on, or off and on, and have it start from pxe this time");
    let setting = management.get_boot_device(&node).await.unwrap();
    assert_eq!((setting.device, setting.persistent), (Some(BootDevice::Pxe), Some(false)));
    // While it is worked on, what was ordered counts; at rest somebody has to say so.
    node.power_state = Some(PowerState::On);
    assert_eq!(power.power_state(&node).await.unwrap(), PowerState::On);
    node.provision_state = ProvisionState::Active;
    let error = power.power_state(&node).await.unwrap_err().to_string();
    assert!(error.contains("report the new power state with `farrier node power NODE on`"), "{error}");
    power.power_on(&node).await.unwrap();
    assert_eq!(power.power_state(&node).await.unwrap(), PowerState::On);
    power.forget(&node).await.unwrap();
    power.forget(&node).await.unwrap();
    assert_eq!(std::fs::read_dir(folder.path().join("manual")).unwrap().count(), 0);
    let blocked = folder.path().join("blocked");
    std::fs::write(&blocked, "").unwrap();
    let error = interfaces(&blocked).0.power_off(&node).await.unwrap_err().to_string();
    assert!(error.contains("cannot be used for the orders to operators"), "{error}");
}
