//! Deploying a partition image: what is asked for, and the partitions around the image (section 6.2).

use crate::agent::Agent;
use crate::commands::errors::from_disk;
use farrier_boot::firmware::Firmware;
use farrier_boot::mode;
use farrier_disk::Sectors;
use farrier_disk::WritableDisk;
use farrier_disk::config_drive::ConfigDrive;
use farrier_disk::ephemeral;
use farrier_disk::layout::{Layout, Place, Request, Role};
use farrier_disk::partition_image::{self, Identifiers};
use farrier_disk::table::Geometry;
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::image_info::ImageInfo;
use serde_json::{Map, Value, json};

/// The partitions of one deployment.
pub struct Partitioning {
    layout: Layout,
    keeps_table: bool,
}

impl Partitioning {
    /// Plans the partitions; nothing for a whole-disk image.
    ///
    /// # Errors
    ///
    /// `InvalidCommandParamsError` naming the field, or what does not fit the disk.
    pub fn plan(
        agent: &Agent,
        info: &ImageInfo,
        disk: &WritableDisk,
        config_drive: Option<&ConfigDrive>,
    ) -> Result<Option<Self>, CommandError> {
        if !info.is_partition() {
            return Ok(None);
        }
        let node = agent.node()?;
        let request = Request {
            is_uefi: mode::is_uefi(&node, Firmware::system().is_some()),
            is_power: std::env::consts::ARCH.starts_with("powerpc"),
            table: mode::table(&node),
            root_mib: info.root_mb.unwrap_or_default(),
            swap_mib: info.swap_mb.unwrap_or_default(),
            ephemeral_mib: info.ephemeral_mb.unwrap_or_default(),
            ephemeral_format: ephemeral_format(info)?,
            esp_mib: agent.options.efi_system_partition_size.into(),
            bios_boot_mib: agent.options.bios_boot_partition_size.into(),
            config_drive,
        };
        let geometry = Geometry { size: disk.size(), sector_size: disk.sector_size() };
        let layout = Layout::plan(&request, disk.path(), geometry).map_err(from_disk)?;
        Ok(Some(Self { layout, keeps_table: info.preserve_ephemeral }))
    }

    /// Prepares the disk and returns the place of the image.
    ///
    /// # Errors
    ///
    /// As [`partition_image::prepare`].
    pub fn prepare(&self, disk: &WritableDisk) -> Result<Place, CommandError> {
        partition_image::prepare(disk, &self.layout, self.keeps_table).map_err(from_disk)?;
        Ok(self.layout.root())
    }

    /// Makes everything else once the image is proven, and answers as `get_partition_uuids` does.
    ///
    /// # Errors
    ///
    /// As [`partition_image::finish`].
    pub fn finish(
        &self,
        disk: &WritableDisk,
        config_drive: Option<&ConfigDrive>,
    ) -> Result<Map<String, Value>, CommandError> {
        let found = partition_image::finish(disk, &self.layout, self.keeps_table, config_drive);
        Ok(answer(&found.map_err(from_disk)?))
    }

    /// Whether the table stays although a deployment failed: it is the one with the preserved data.
    pub fn keeps_table(&self) -> bool {
        self.keeps_table
    }
}

/// The answer to `get_partition_uuids`, in the contract's words (section 5.9).
fn answer(found: &Identifiers) -> Map<String, Value> {
    let partitions: Map<String, Value> =
        found.partitions.iter().map(|(role, path)| (role.name().to_owned(), json!(path))).collect();
    let mut answer = Map::new();
    answer.insert("partitions".to_owned(), partitions.into());
    answer.insert("root uuid".to_owned(), json!(found.root));
    answer.insert(format!("{} uuid", Role::Esp.name()), json!(found.esp));
    if let Some(uuid) = &found.prep {
        answer.insert(format!("{} uuid", Role::PrepBoot.name()), json!(uuid));
    }
    answer
}

/// The format of the ephemeral partition, if there is one; it is supported.
fn ephemeral_format(info: &ImageInfo) -> Result<ephemeral::Format, CommandError> {
    if info.ephemeral_mb.unwrap_or_default() == 0 || info.preserve_ephemeral {
        return Ok(ephemeral::Format::default());
    }
    let refused = |reason: String| {
        let details = format!("image_info.ephemeral_format: {reason}");
        CommandError::new(ErrorKind::FileSystemNotSupported, details)
    };
    let name = info.ephemeral_format.as_deref();
    let format =
        name.map_or(Some(ephemeral::Format::default()), ephemeral::Format::named).ok_or_else(|| {
            let (name, known) = (name.unwrap_or_default(), ephemeral::Format::names().collect::<Vec<_>>());
            refused(format!("{name:?} cannot be made; ask for one of {}", known.join(", ")))
        })?;
    format.require().map_err(|error| refused(error.to_string()))?;
    Ok(format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_has_the_words_that_conductors_read() {
        let found = Identifiers {
            partitions: vec![(Role::Esp, "/dev/sda1".into()), (Role::Root, "/dev/sda2".into())],
            root: "6b2f1f6e".to_owned(),
            esp: Some("7C1A-9B2F".to_owned()),
            prep: None,
        };
        let expected = json!({
            "partitions": {"efi system partition": "/dev/sda1", "root": "/dev/sda2"},
            "root uuid": "6b2f1f6e",
            "efi system partition uuid": "7C1A-9B2F",
        });
        assert_eq!(Value::Object(answer(&found)), expected);
        let power = Identifiers { prep: Some("x".to_owned()), esp: None, ..found };
        assert_eq!(answer(&power)["PReP Boot partition uuid"], "x");
        assert_eq!(answer(&power)["efi system partition uuid"], Value::Null);
    }

    #[test]
    fn x37_what_cannot_be_made_is_refused_before_the_disk_is_touched() {
        for (megabytes, format, preserved, expected) in [
            (0, None, false, true),
            (0, Some("xfs"), false, true),
            (100, None, false, true),
            (100, Some("ext3"), false, true),
            (100, Some("xfs"), false, false),
            (100, Some(""), false, false),
            (100, Some("vfat"), false, true),
            (100, Some("xfs"), true, true),
        ] {
            let info = ImageInfo {
                ephemeral_mb: Some(megabytes),
                ephemeral_format: format.map(str::to_owned),
                preserve_ephemeral: preserved,
                ..ImageInfo::default()
            };
            let found = ephemeral_format(&info);
            assert_eq!(found.is_ok(), expected, "{megabytes} {format:?} {preserved}: {found:?}");
            assert!(found.is_ok() || found.is_err_and(|error| error.kind == "FileSystemNotSupported"));
        }
    }
}
