//! The adoption of a machine that runs its instance already (section 12.6).

use crate::error::Error;
use crate::interfaces::deploy::DeployInterface;
use crate::model::Event;
use crate::steps::Progress;
use crate::task::Task;

/// Takes over a machine as if its instance had been deployed by this conductor, which its power does not notice. When
/// it cannot be, nothing was done to it.
///
/// # Errors
///
/// What fails the adoption; [`Error::Store`], when nothing is known to have failed but the store.
pub(crate) async fn adopt(task: &mut Task, deploy: &dyn DeployInterface) -> Result<Progress, Error> {
    task.validate().await?;
    deploy.validate(&task.node).await?;
    task.node.power_state = Some(task.power_state().await?);
    deploy.take_over(task).await?;
    task.node.driver_internal_info.erasure = None;
    task.order = None;
    task.enter(Event::Done)?;
    Ok(Progress::Done)
}
