//! The conductor's own notes about a node (section 1.8).

use crate::model::steps::step::StepKind;
use crate::model::steps::step_plan::{CleanNotes, DeployNotes, ServiceNotes, StepPlan};
use crate::model::typed_maps::erasure::Erasure;
use crate::model::typed_maps::noted_export::NotedExport;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The conductor's own notes about a node. Notes that this conductor does not know, of another version or of a
/// driver, stay with it. What is known of the agent that runs now is not here: see
/// [`AgentSession`](crate::model::AgentSession).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DriverInternalInfo {
    /// The plan of a cleaning: `clean_steps`, `clean_step_index`, and so on.
    #[serde(flatten, with = "CleanNotes")]
    pub clean: StepPlan,
    /// The plan of a deployment: `deploy_steps`, `deploy_step_index`, and so on.
    #[serde(flatten, with = "DeployNotes")]
    pub deploy: StepPlan,
    /// The plan of a service: `service_steps`, `service_step_index`, and so on.
    #[serde(flatten, with = "ServiceNotes")]
    pub service: StepPlan,
    /// Root file system UUID, or disk identifier of a whole-disk image, of the written instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_uuid_or_disk_id: Option<String>,
    /// Seconds that the power action which is ordered may take, where its operator has said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_action_timeout: Option<u64>,
    /// The deploy interface of the node, where its instance was deployed by one that this one has chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_deploy_interface: Option<String>,
    /// The boot interface that the ramdisk is booted by now, where that is one which a boot fell back to, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_fallback: Option<BootFallback>,
    /// Kernel parameters of the ramdisk, while the machine's firmware may ask what to boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramdisk_parameters: Option<String>,
    /// Whether the machine's firmware may ask for its instance at every start, which boots from the network.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub netboots_instance: bool,
    /// Whether the machine is made to start its instance when it starts the next time, since its agent runs from a
    /// medium until then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub instance_waits_for_agent: bool,
    /// Whether the machine was powered on only for its networks to be changed, and will be powered off again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_on_for_network: bool,
    /// Whether the disks are proven to be erased, from the moment that the node is available until its next deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erasure: Option<Erasure>,
    /// The export of the disk that an operator has ordered, until it is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_export: Option<NotedExport>,
    /// How often the operation of the node was taken up again because its conductor had stopped in the middle, whatever was
    /// ordered beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interruptions: Option<u64>,
    /// Everything else.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// What a boot of the ramdisk fell back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootFallback {
    /// Name of the boot interface.
    pub boot_interface: String,
    /// Why the one before it did not do.
    pub reason: String,
}

/// The note of a driver with the firmware that it is about to update.
const FIRMWARE_UPDATES: &str = "redfish_fw_updates";

/// The note with the layout that is on the disk.
const LAYOUT: &str = "instance";

/// Other notes of a deployment, which end with its instance (section 1.13).
const OF_THE_INSTANCE: &[&str] = &[
    LAYOUT,
    "is_whole_disk_image",
    "is_source_a_path",
    "deploy_boot_mode",
    "deployment_uuids",
    "iscsi_target",
];

impl DriverInternalInfo {
    /// The plan of an operation of this kind.
    pub fn plan(&self, kind: StepKind) -> &StepPlan {
        match kind {
            StepKind::Clean => &self.clean,
            StepKind::Deploy => &self.deploy,
            StepKind::Service => &self.service,
        }
    }

    /// The plan of an operation of this kind, to be changed.
    pub fn plan_mut(&mut self, kind: StepKind) -> &mut StepPlan {
        match kind {
            StepKind::Clean => &mut self.clean,
            StepKind::Deploy => &mut self.deploy,
            StepKind::Service => &mut self.service,
        }
    }

    /// Forgets every plan.
    pub fn end_plans(&mut self) {
        for kind in StepKind::ALL {
            *self.plan_mut(kind) = StepPlan::default();
        }
    }

    /// Whether firmware that was written waits for a reboot of the machine.
    pub fn awaits_firmware(&self) -> bool {
        let is_something = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Array(updates) => !updates.is_empty(),
            _ => true,
        };
        self.others.get(FIRMWARE_UPDATES).is_some_and(is_something)
    }

    /// The layout of the partition image that is on the disk.
    pub fn layout(&self) -> Option<&Value> {
        self.others.get(LAYOUT)
    }

    /// Notes the layout of the partition image that is on the disk.
    pub fn note_layout(&mut self, layout: Value) {
        self.others.insert(LAYOUT.to_owned(), layout);
    }

    /// Forgets what was noted of an instance that is deployed again, but for the layout that is on the disk.
    pub fn renew_instance(&mut self) {
        self.erasure = None;
        let layout = self.others.remove_entry(LAYOUT);
        self.end_instance();
        self.others.extend(layout);
    }

    /// Forgets the instance, and what was noted while it was deployed.
    pub fn end_instance(&mut self) {
        self.end_plans();
        self.root_uuid_or_disk_id = None;
        self.netboots_instance = false;
        for key in OF_THE_INSTANCE {
            self.others.remove(*key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_notes_are_kept_until_they_end() {
        let stored = json!({
            "deploy_steps": [{"interface": "deploy", "step": "write_image", "priority": 80}],
            "deploy_step_index": 0,
            "root_uuid_or_disk_id": "0x1",
            "deploy_boot_mode": "uefi",
            "last_power_state_change": "2026-11-23T03:00:00Z",
            "vendor_note": {"deep": [1, 2]},
        });
        let mut notes: DriverInternalInfo = serde_json::from_value(stored.clone()).unwrap();
        let mut renewed = notes.clone();
        renewed.note_layout(json!({"root_mb": 1}));
        renewed.renew_instance();
        assert_eq!(renewed.layout(), Some(&json!({"root_mb": 1})));
        assert_eq!(renewed.others.get("deploy_boot_mode"), None);
        assert_eq!(serde_json::to_value(&notes).unwrap(), stored);
        notes.end_instance();
        assert_eq!(
            serde_json::to_value(&notes).unwrap(),
            json!({
                "last_power_state_change": "2026-11-23T03:00:00Z",
                "vendor_note": {"deep": [1, 2]},
            })
        );
    }
}
