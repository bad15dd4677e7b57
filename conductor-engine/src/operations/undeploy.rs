//! The removal of an instance (section 1.13).

use crate::error::Error;
use crate::evidence::console_log;
use crate::lease::HeldTask;
use crate::operations::order_cleaning;
use crate::store::ConfigDrive;
use farrier_conductor::heartbeat::SessionEnd;
use farrier_conductor::in_band::RescueInterface;
use farrier_conductor::model::{Event, masked_text};
use farrier_conductor::task::NetworkChange;
use farrier_conductor::task::ramdisk;
use std::sync::Arc;

/// Powers a machine off, removes its instance from the record, and gives the node back when it is to be cleaned. When
/// the machine stays on, or what it boots cannot be cleaned up, the removal has failed.
///
/// # Errors
///
/// [`Error::Store`].
pub(crate) async fn undeploy(
    mut task: HeldTask,
    rescue: Result<Arc<dyn RescueInterface>, Error>,
) -> Result<Option<HeldTask>, Error> {
    let is_clean = match clean_up(&mut task, rescue).await {
        Ok(()) => true,
        Err(error @ Error::Store(_)) => return Err(error),
        Err(error) => {
            let reason = error.to_string();
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

async fn clean_up(task: &mut HeldTask, rescue: Result<Arc<dyn RescueInterface>, Error>) -> Result<(), Error> {
    task.power_off().await?;
    // It may have been rescued.
    rescue?.clean_up(task).await?;
    task.detach_volumes().await?;
    let mut changes = vec![NetworkChange::UnconfigureTenant];
    changes.extend(ramdisk::leaving(task));
    task.change_networks(&changes).await?;
    task.clean_up_ramdisk().await?;
    task.clean_up_instance().await?;
    // An instance that could not be switched off ends now.
    let stays_on = task.node.disable_power_off && !task.is_switched_by_agent()?;
    if stays_on { Ok(task.reboot().await?) } else { Ok(()) }
}
