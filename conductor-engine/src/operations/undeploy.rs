//! The removal of an instance (section 1.13).

use crate::error::{Error, Reason};
use crate::evidence::console_log;
use crate::lease::HeldTask;
use crate::operations::{Resolved, order_cleaning};
use crate::store::ConfigDrive;
use farrier_conductor::deploy::{DeployInterface, instance};
use farrier_conductor::heartbeat::SessionEnd;
use farrier_conductor::in_band::RescueInterface;
use farrier_conductor::model::{Event, masked_text};

/// Powers a machine off, removes its instance from the record, and gives the node back when it is to be cleaned. When
/// the machine stays on, or what it boots cannot be cleaned up, the removal has failed.
///
/// # Errors
///
/// [`Error::Store`].
pub(crate) async fn undeploy(
    mut task: HeldTask,
    deploy: Resolved<dyn DeployInterface>,
    rescue: Resolved<dyn RescueInterface>,
) -> Result<Option<HeldTask>, Error> {
    let is_clean = match remove(&mut task, deploy, rescue).await {
        Ok(()) => true,
        Err(error @ Error::Store(_)) => return Err(error),
        Err(error) => {
            let reason = Reason::from(&error).to_string();
            tracing::error!(node = %task.node.label(), "{}", masked_text(&reason));
            task.node.set_last_error(&reason);
            false
        }
    };
    task.detach_vifs().await;
    console_log::forget_instance(&task.node, &task.services().hardware).await;
    task.forget_diagnosis();
    task.node.end_instance();
    // One that switches its machine itself could not be had again.
    let keeps_agent = task.is_switched_by_agent().unwrap_or(false);
    task.end_session(SessionEnd::Operation { keeps_agent });
    *task.order_mut() = None;
    if is_clean {
        task.enter(Event::Clean)?;
        order_cleaning(&mut task)?;
    } else {
        task.enter(Event::Fail)?;
    }
    match task.order() {
        Some(_) => task.save_with(ConfigDrive::Remove).await.map(|()| Some(task)),
        None => task.finish_with(ConfigDrive::Remove).await.map(|()| None),
    }
}

/// Has the machine off, and nothing of its instance left. Without its deploy interface, all is done but what that alone
/// knows, which fails the removal.
async fn remove(
    task: &mut HeldTask,
    deploy: Resolved<dyn DeployInterface>,
    rescue: Resolved<dyn RescueInterface>,
) -> Result<(), Error> {
    match &deploy {
        Ok(deploy) => deploy.tear_down(task).await?,
        Err(_) => instance::tear_down(task).await?,
    }
    // It may have been rescued.
    rescue?.clean_up(task).await?;
    match &deploy {
        Ok(deploy) => deploy.clean_up(task).await?,
        Err(_) => instance::clean_up(task).await?,
    }
    // An instance that could not be switched off ends now.
    if task.node.disable_power_off && !task.is_switched_by_agent()? {
        task.reboot().await?;
    }
    deploy.map(drop)
}
