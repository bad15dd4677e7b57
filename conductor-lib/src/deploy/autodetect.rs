//! Autodetect: each deployment has the interface that can deploy what its instance is (section 5.9).
//!
//! The choice is made when a deployment is ordered, or an adoption, and is in the record of the node from then on,
//! until the instance is removed: whatever is done to the instance meanwhile is done by the interface that deployed it.

use crate::deploy::AgentDeploy;
use crate::error::Error;
use crate::interfaces::base::Interface;
use crate::interfaces::outcome::Outcome;
use crate::model::PlannedStep;
use crate::task::Task;
use async_trait::async_trait;

/// Has the first of some interfaces deploy that [supports](AgentDeploy::supports_deploy) it; the last one where
/// none does.
#[derive(Debug, Clone)]
pub struct Autodetect {
    candidates: Vec<String>,
}

impl Autodetect {
    /// Chooses among these, the best one first. Those that a node cannot have are passed over.
    pub fn among(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { candidates: names.into_iter().map(Into::into).collect() }
    }
}

impl Interface for Autodetect {}

#[async_trait]
impl AgentDeploy for Autodetect {
    fn candidates(&self) -> &[String] {
        &self.candidates
    }

    /// Never deploys by itself.
    async fn execute(&self, _task: &mut Task, _step: &PlannedStep) -> Result<Outcome, Error> {
        let reason = "chooses another one when a deployment is ordered; order it again";
        Err(Error::invalid("deploy_interface", reason))
    }
}
