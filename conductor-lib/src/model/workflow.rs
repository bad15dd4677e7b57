//! Deploy templates and runbooks: steps by name (Ironic's API from versions 1.55 and 1.92 on).

use super::mask::mask;
use super::states::named_states;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use time::OffsetDateTime;
use uuid::Uuid;

named_states! {
    /// What steps by name are for.
    WorkflowKind {
        /// Deployments of instances that want the name as a trait.
        DeployTemplate = "deploy template",
        /// Cleaning and service of nodes that have the name as a trait.
        Runbook = "runbook",
    }
}

/// Steps by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    /// Identity.
    pub uuid: Uuid,
    /// What it is for.
    pub kind: WorkflowKind,
    /// Name, which no other one of its kind has, and which is a trait.
    pub name: String,
    /// The steps as they were given.
    pub steps: Vec<Value>,
    /// Whether the steps of a runbook run without the ramdisk.
    #[serde(default)]
    pub disable_ramdisk: bool,
    /// Whether a runbook is for everybody.
    #[serde(default)]
    pub public: bool,
    /// The project that owns a runbook.
    #[serde(default)]
    pub owner: Option<String>,
    /// What operators keep.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// When it was created.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When it last changed.
    #[serde(default, with = "time::serde::rfc3339::option")]
    pub updated_at: Option<OffsetDateTime>,
}

impl Workflow {
    /// It as it leaves the conductor: with the secrets in its steps masked (lesson S48).
    #[must_use]
    pub fn shown(mut self) -> Self {
        self.steps.iter_mut().filter_map(Value::as_object_mut).for_each(mask);
        self
    }
}
