//! What is put on an exported disk, by the code that agents write theirs with.

use super::error::IscsiError;
use farrier_conductor::deploy::local_boot::PartitionUuids;
use farrier_disk::config_drive::{self, ConfigDrive, MAX_SIZE};
use farrier_disk::ephemeral::Format;
use farrier_disk::layout::{Layout, Request};
use farrier_disk::table::{self, Geometry, TableKind};
use farrier_disk::{Sectors, partition_image, wipe};
use farrier_imaging::cancel::CancelHandle;
use farrier_imaging::pipeline::{self, ImageRequest, Report, Settings};
use farrier_imaging::progress::ProgressHandle;
use farrier_imaging::source::HttpSource;
use farrier_imaging::target::Target;
use farrier_protocol::image_info::ImageInfo;
use farrier_protocol::progress::Phase;

/// Sizes of the partitions for firmware and boot loader, in MiB (section 5.6).
const ESP_MIB: u64 = 200;
const BIOS_BOOT_MIB: u64 = 1;

/// The contents for a disk, checked as far as that needs neither the disk nor a server.
#[derive(Debug)]
pub struct Job {
    request: ImageRequest,
    partitions: Option<Partitions>,
    /// As it came: the drive, or its URL.
    config_drive: Option<String>,
}

#[derive(Debug)]
struct Partitions {
    info: ImageInfo,
    is_uefi: bool,
    table: TableKind,
    format: Format,
}

/// What came of it.
#[derive(Debug)]
pub struct Written {
    /// By what the partitions are known.
    pub uuids: PartitionUuids,
    /// Figures of the write path.
    pub report: Report,
}

impl Job {
    /// An image, and a config drive as base64 of gzip or by its URL. `table` is that of a partition image where firmware
    /// has no wish.
    ///
    /// # Errors
    ///
    /// [`IscsiError::Image`] for an image that could not be written anywhere; [`IscsiError::EphemeralFormat`].
    pub fn new(
        info: &ImageInfo,
        config_drive: Option<String>,
        is_uefi: bool,
        table: TableKind,
    ) -> Result<Self, IscsiError> {
        let request = ImageRequest::new(info, Settings::default())?;
        let partitions = match info.is_partition() {
            true => Some(Partitions { info: info.clone(), is_uefi, table, format: ephemeral_format(info)? }),
            false => None,
        };
        Ok(Self { request, partitions, config_drive })
    }

    /// Whether the partitions that are on the disk stay.
    pub fn keeps_table(&self) -> bool {
        self.partitions.as_ref().is_some_and(|partitions| partitions.info.preserve_ephemeral)
    }

    /// Writes all of it, and proves the image. Blocks.
    ///
    /// # Errors
    ///
    /// [`IscsiError::Image`], [`IscsiError::Disk`]. The disk carries no partition table then, unless there are data on it
    /// to be preserved, or the error came before the first byte.
    pub fn write(
        &self,
        disk: &dyn Sectors,
        source: &HttpSource,
        progress: &ProgressHandle,
        cancel: &CancelHandle,
    ) -> Result<Written, IscsiError> {
        let drive = self.config_drive.as_deref().map(|text| load(text, source, cancel)).transpose()?;
        if let Some(drive) = &drive {
            drive.require_fits(disk)?;
        }
        let layout = self.partitions.as_ref().map(|one| one.layout(disk, drive.as_ref())).transpose()?;
        let target = match &layout {
            Some(layout) => {
                partition_image::prepare(disk, layout, self.keeps_table())?;
                Target::part(disk, layout.root().start, layout.root().size)
            }
            None => Target::whole(disk),
        };
        let report = pipeline::write_image(&self.request, source, target, progress, cancel)?;
        progress.enter(Phase::Finishing, None);
        let finished = match &layout {
            Some(layout) => finish_partitions(disk, layout, self.keeps_table(), drive.as_ref()),
            None => finish_whole_disk(disk, drive.as_ref()),
        };
        match finished {
            Ok(uuids) => Ok(Written { uuids, report }),
            Err(error) => {
                progress.enter(Phase::Failed, None);
                if !self.keeps_table()
                    && let Err(also) = wipe::wipe_ends(disk)
                {
                    tracing::error!("the partition table cannot be removed: {also}");
                }
                Err(error.into())
            }
        }
    }
}

impl Partitions {
    fn layout(&self, disk: &dyn Sectors, drive: Option<&ConfigDrive>) -> Result<Layout, farrier_disk::Error> {
        let request = Request {
            is_uefi: self.is_uefi,
            is_power: false,
            table: self.table,
            root_mib: self.info.root_mb.unwrap_or_default(),
            swap_mib: self.info.swap_mb.unwrap_or_default(),
            ephemeral_mib: self.info.ephemeral_mb.unwrap_or_default(),
            ephemeral_format: self.format,
            esp_mib: ESP_MIB,
            bios_boot_mib: BIOS_BOOT_MIB,
            config_drive: drive,
        };
        let geometry = Geometry { size: disk.size(), sector_size: disk.sector_size() };
        Layout::plan(&request, disk.path(), geometry)
    }
}

/// The format of the ephemeral partition, if there is one; it is supported here.
fn ephemeral_format(info: &ImageInfo) -> Result<Format, IscsiError> {
    let Some(name) = info.ephemeral_format.as_deref().filter(|_| !info.preserve_ephemeral) else {
        return Ok(Format::default());
    };
    let format = Format::named(name).ok_or_else(|| {
        let known = Format::names().collect::<Vec<_>>().join(", ");
        IscsiError::EphemeralFormat(format!("{name:?} cannot be made; ask for one of {known}"))
    })?;
    format.require().map_err(|error| IscsiError::EphemeralFormat(error.to_string()))?;
    Ok(format)
}

fn load(text: &str, source: &HttpSource, cancel: &CancelHandle) -> Result<ConfigDrive, IscsiError> {
    let Some(url) = config_drive::url(text) else { return Ok(ConfigDrive::decode(text, MAX_SIZE)?) };
    // Base64 is a third longer than what it encodes, besides line ends.
    let sent = source.fetch(url, (MAX_SIZE + MAX_SIZE / 2) as usize, cancel)?;
    Ok(ConfigDrive::from_download(sent, MAX_SIZE)?)
}

fn finish_partitions(
    disk: &dyn Sectors,
    layout: &Layout,
    keeps_table: bool,
    drive: Option<&ConfigDrive>,
) -> Result<PartitionUuids, farrier_disk::Error> {
    let found = partition_image::finish(disk, layout, keeps_table, drive)?;
    disk.flush()?;
    Ok(PartitionUuids { root: Some(found.root), esp: found.esp, prep: found.prep })
}

fn finish_whole_disk(
    disk: &dyn Sectors,
    drive: Option<&ConfigDrive>,
) -> Result<PartitionUuids, farrier_disk::Error> {
    table::finish_image(disk)?;
    if let Some(drive) = drive {
        drive.write_to(disk)?;
    }
    let root = table::disk_identifier(disk)?;
    disk.flush()?;
    Ok(PartitionUuids { root: Some(root), ..PartitionUuids::default() })
}
