//! The plan of an operation that consists of steps, among the notes about its node (section 1.8).

use crate::model::steps::step::{PlannedStep, RequestedStep};
use serde::{Deserialize, Serialize};

/// The plan of an operation, and how far it has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepPlan {
    /// The steps, the first one first.
    pub steps: Vec<PlannedStep>,
    /// Place of the current step; nothing before the first, and the number of steps when all are done.
    pub index: Option<usize>,
    /// Place of the step that failed, for another attempt.
    pub failed: Option<usize>,
    /// What the operator asked for.
    pub requested: Vec<RequestedStep>,
    /// False when the current step must run again: the agent was busy, or the conductor stopped.
    pub skip_current: Option<bool>,
    /// Whether the machine reboots because a step wants it, so that the next agent is a fresh one.
    pub reboot: bool,
    /// Whether the driver runs the current step, and is asked whether it has ended.
    pub polling: bool,
    /// Whether the operation runs without the ramdisk.
    pub disable_ramdisk: bool,
    /// Whether the operation has not begun to change the machine: its end has nothing to undo.
    pub untouched: bool,
    /// What was issued for this run of the current step, where an agent runs it.
    pub nonce: Option<String>,
}

impl StepPlan {
    /// Whether the deploy interface has prepared an agent for a cleaning or service, and so tears it down.
    pub fn has_agent(&self) -> bool {
        !self.disable_ramdisk && !self.untouched
    }

    /// Whether the current step must run again.
    pub fn runs_again(&self) -> bool {
        self.skip_current == Some(false)
    }

    /// Forgets how far it has come, but for the step that failed; the steps stay, to find out what was wrong.
    pub fn stop(&mut self) {
        let Self { steps, index, requested, disable_ramdisk, untouched, .. } = std::mem::take(self);
        *self = Self { steps, failed: index, requested, disable_ramdisk, untouched, ..Self::default() };
    }
}

/// The notes of a kind of operation, by the names that Ironic gives them.
macro_rules! notes_of {
    ($name:ident: $steps:literal, $index:literal, $failed:literal, $requested:literal, $skip:literal, $reboot:literal, $polling:literal,
     $disable_ramdisk:literal, $untouched:literal, $nonce:literal) => {
        #[derive(Serialize, Deserialize)]
        #[serde(remote = "StepPlan")]
        pub(in crate::model) struct $name {
            #[serde(rename = $steps, default, skip_serializing_if = "Vec::is_empty")]
            steps: Vec<PlannedStep>,
            #[serde(rename = $index, default, skip_serializing_if = "Option::is_none")]
            index: Option<usize>,
            #[serde(rename = $failed, default, skip_serializing_if = "Option::is_none")]
            failed: Option<usize>,
            #[serde(rename = $requested, default, skip_serializing_if = "Vec::is_empty")]
            requested: Vec<RequestedStep>,
            #[serde(rename = $skip, default, skip_serializing_if = "Option::is_none")]
            skip_current: Option<bool>,
            #[serde(rename = $reboot, default, skip_serializing_if = "std::ops::Not::not")]
            reboot: bool,
            #[serde(rename = $polling, default, skip_serializing_if = "std::ops::Not::not")]
            polling: bool,
            #[serde(rename = $disable_ramdisk, default, skip_serializing_if = "std::ops::Not::not")]
            disable_ramdisk: bool,
            #[serde(rename = $untouched, default, skip_serializing_if = "std::ops::Not::not")]
            untouched: bool,
            #[serde(rename = $nonce, default, skip_serializing_if = "Option::is_none")]
            nonce: Option<String>,
        }
    };
}

notes_of!(CleanNotes: "clean_steps", "clean_step_index", "failed_clean_step_index", "user_clean_steps", "skip_current_clean_step",
    "cleaning_reboot", "cleaning_polling", "cleaning_disable_ramdisk", "cleaning_untouched", "clean_step_nonce");
notes_of!(DeployNotes: "deploy_steps", "deploy_step_index", "failed_deploy_step_index", "user_deploy_steps", "skip_current_deploy_step",
    "deployment_reboot", "deployment_polling", "deployment_disable_ramdisk", "deployment_untouched", "deploy_step_nonce");
notes_of!(ServiceNotes: "service_steps", "service_step_index", "failed_service_step_index", "user_service_steps", "skip_current_service_step",
    "servicing_reboot", "servicing_polling", "service_disable_ramdisk", "service_untouched", "service_step_nonce");
