//! Having a machine start from its disk once an image is on it (section 5.7).

use super::image::Image;
use crate::error::Error;
use crate::model::BootMode;
use crate::task::Task;
use crate::task::event::EventKind;
use serde_json::json;

/// By what the partitions of a written image are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionUuids {
    /// Identity of the root file system, or the disk identifier of an image of a whole disk.
    pub root: Option<String>,
    /// Identity of the EFI system partition that was made around a partition image.
    pub esp: Option<String>,
    /// Identity of the PReP partition that was made around a partition image.
    pub prep: Option<String>,
}

/// Has the agent make the disk bootable, where the image does not see to that itself, and the machine start from it.
///
/// # Errors
///
/// [`Error::Agent`] when the agent fails, [`Error::Interface`] when the machine cannot be made to start from its disk.
pub async fn configure(task: &mut Task, uuids: PartitionUuids) -> Result<(), Error> {
    task.node.driver_internal_info.root_uuid_or_disk_id.clone_from(&uuids.root);
    let is_partition = Image::from_instance_info(&task.node.instance_info)?.layout().is_some();
    let boot_mode = task.node.boot_mode()?;
    if is_partition || boot_mode == BootMode::Uefi {
        // An image of a whole disk has its own partitions, which the agent finds.
        let params = json!({
            "root_uuid": uuids.root,
            "efi_system_part_uuid": uuids.esp.filter(|_| is_partition),
            "prep_boot_part_uuid": uuids.prep.filter(|_| is_partition),
            "target_boot_mode": boot_mode.as_str(),
        });
        task.agent().await?.run_polled("image.install_bootloader", params).await?;
        task.emit(EventKind::BootEntry);
    }
    task.prepare_instance().await
}
