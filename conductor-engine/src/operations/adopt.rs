//! The adoption of a machine that runs its instance already (section 12.6).

use crate::error::Error;
use crate::lease::HeldTask;
use farrier_conductor::deploy::DeployInterface;
use farrier_conductor::model::Event;
use farrier_conductor::steps::Progress;

/// The keys of `instance_info` that name what an instance is.
const IMAGES: [&str; 4] = ["image_source", "kernel", "ramdisk", "boot_iso"];

/// Takes over a machine as if its instance had been deployed by this conductor, which its power does not notice. When
/// it cannot be, nothing was done to it.
///
/// # Errors
///
/// What fails the adoption; [`Error::Store`], when nothing is known to have failed but the store.
pub(crate) async fn adopt(task: &mut HeldTask, deploy: &dyn DeployInterface) -> Result<Progress, Error> {
    task.validate_power().await?;
    // Who has installed a machine by other means names nothing.
    if names_image(task)? {
        task.validate().await?;
        deploy.validate(&task.node).await?;
    }
    task.node.power_state = Some(task.power_state().await?);
    deploy.prepare(task).await?;
    deploy.take_over(task).await?;
    task.node.driver_internal_info.erasure = None;
    *task.order_mut() = None;
    task.enter(Event::Done)?;
    Ok(Progress::Done)
}

/// Whether the record names what the instance of a machine is. One that is a ramdisk is started from that each time.
fn names_image(task: &HeldTask) -> Result<bool, Error> {
    let is_named = |key: &&str| task.node.instance_info.get(*key).is_some_and(|value| !value.is_null());
    Ok(IMAGES.iter().any(is_named) || task.services().hardware.composition.boots_ramdisk(&task.node)?)
}
