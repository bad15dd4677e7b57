//! The rescue interface `agent`: the ramdisk is the rescue system (contract 2.7).
//!
//! Its agent takes the hash of a password, leaves it to the ramdisk's login service, and ends. The ramdisk stays until
//! the machine is switched off, and starts from the disk of the instance then.

use crate::agent::{AgentError, Wait, failure_text};
use crate::error::Error;
use crate::in_band::RescueInterface;
use crate::interfaces::base::Interface;
use crate::interfaces::network::NetworkKind;
use crate::interfaces::outcome::Outcome;
use crate::task::Task;
use crate::task::ramdisk;
use async_trait::async_trait;
use farrier_protocol::command::CommandStatus;
use serde_json::json;

/// The command, by which the agent ends.
const COMMAND: &str = "rescue.finalize_rescue";

/// Rescues machines with the ramdisk.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentRescue;

impl Interface for AgentRescue {}

#[async_trait]
impl RescueInterface for AgentRescue {
    async fn validate_rescue(&self, task: &Task) -> Result<(), Error> {
        task.validate_rescue_boot().await
    }

    async fn rescue(&self, task: &mut Task) -> Result<Outcome, Error> {
        task.power_off().await?;
        task.clean_up_instance().await?;
        ramdisk::boot(task).await?;
        Ok(Outcome::Wait)
    }

    /// The answer itself must say that the agent has the password: it can be asked no more afterwards.
    async fn finalize_rescue(&self, task: &mut Task) -> Result<(), Error> {
        let Some(hash) = task.node.instance_info.hashed_rescue_password() else {
            return Err(Error::invalid("hashed_rescue_password", "is missing; order the rescue again"));
        };
        let params = json!({"rescue_password": hash, "hashed": true});
        let answer = task.agent().await?.execute(COMMAND, params, Wait::UntilAccepted).await?;
        match answer.command_status {
            CommandStatus::Succeeded => Ok(()),
            _ => Err(AgentError::Failed { reason: failure_text(COMMAND, &answer) }.into()),
        }
    }

    async fn unrescue(&self, task: &mut Task) -> Result<(), Error> {
        task.power_off().await?;
        self.clean_up(task).await?;
        task.configure_tenant_networks().await?;
        task.prepare_instance().await?;
        task.power_on().await
    }

    async fn clean_up(&self, task: &mut Task) -> Result<(), Error> {
        task.node.instance_info.forget_rescue_password();
        task.clean_up_ramdisk().await?;
        task.remove_network(NetworkKind::Rescuing).await
    }
}
