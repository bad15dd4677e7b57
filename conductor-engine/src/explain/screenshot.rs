//! What is on the screen of a machine that stays silent, kept beside the logs of ramdisks, where its BMC tells.

use crate::evidence::log_files;
use crate::services::Services;
use farrier_conductor::agent::LogCollection;
use farrier_conductor::interfaces::{InterfaceError, PictureFormat};
use farrier_conductor::model::{InterfaceKind, Node};
use farrier_conductor::task::act::Call;

/// The largest picture that is kept, in bytes: screens are small.
const LARGEST: usize = 4 << 20;

/// Keeps what is on the screen of a node's machine, and tells the name of the file; nothing where nobody tells, or where
/// nothing is to be kept. It takes no longer than other last words may.
///
/// # Errors
///
/// Why there is none, in words.
pub(crate) async fn keep(services: &Services, node: &Node) -> Result<Option<String>, String> {
    let settings = &services.settings;
    let is_wanted = settings.agent.deploy_logs_collect != LogCollection::Never;
    let folder = settings.agent.deploy_logs_local_path.as_deref().filter(|_| is_wanted);
    let (Some(folder), Ok(management)) = (folder, services.hardware.management(node)) else {
        return Ok(None);
    };
    let call = Call::of(node, InterfaceKind::Management, "get_screenshot");
    let image = match call.answer(settings.diagnosis_timeout, management.get_screenshot(node)).await {
        Ok(image) => image,
        Err(InterfaceError::Unsupported { .. }) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if image.len() > LARGEST {
        return Err(format!("{} bytes are too many", image.len()));
    }
    let Some(format) = PictureFormat::of(&image) else {
        return Err("a picture that is neither PNG nor JPEG; look at the driver of the node".to_owned());
    };
    let name = format!("{}_screen.{}", log_files::stem(node, services.now()), format.ending());
    match log_files::write(folder, node.uuid, &name, image, settings.agent.deploy_logs_room).await {
        Ok(()) => Ok(Some(name)),
        Err(error) => {
            let file = log_files::place(folder, node.uuid, &name);
            Err(format!("{}: {error}; check that the folder may be written", file.display()))
        }
    }
}
