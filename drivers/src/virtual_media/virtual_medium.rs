//! A medium as BMCs read it: what is known of it, laid over what is in files and on servers.

use super::error::MediumError;
use super::loaders::{Firmware, MediaLoaders};
use super::source::Source;
use farrier_media::Overlay;
use farrier_media::boot_iso::{self, Additions};
use farrier_media::boot_volume::{BootLoaders, BootVolume, Contents};
use farrier_media::iso9660::Content;
use std::io;
use std::sync::Arc;

/// A medium, as a BMC reads it. Making and reading it block.
#[derive(Debug)]
pub struct Medium {
    overlay: Overlay,
    parts: Vec<Part>,
    /// Shared with other media for as long as they are read.
    _loaders: Option<Arc<BootLoaders>>,
}

/// What lies on a medium as it is elsewhere.
#[derive(Debug)]
struct Part {
    /// Where it begins, in bytes.
    place: u64,
    source: Source,
}

impl Part {
    fn end(&self) -> u64 {
        self.place + self.source.length()
    }
}

/// Kernel and ramdisk, with what boots them.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) kernel: Source,
    pub(super) ramdisk: Source,
    /// The image of an EFI system partition of the site's.
    pub(super) bootloader: Option<Source>,
}

impl Medium {
    /// A file as it is.
    pub(super) fn as_it_is(source: Source) -> Self {
        let overlay = Overlay::new(source.length());
        Self { overlay, parts: vec![Part { place: 0, source }], _loaders: None }
    }

    /// An ISO, with what it gets for one boot.
    pub(super) fn laid_over(
        source: Source,
        additions: &Additions,
        what: String,
    ) -> Result<Self, MediumError> {
        let overlay = boot_iso::overlay(&mut source.reader(), additions);
        let overlay = overlay.map_err(|source| MediumError::Iso { what, source })?;
        Ok(Self { overlay, ..Self::as_it_is(source) })
    }

    /// One that boots a kernel with its ramdisk.
    pub(super) fn of_kernel(
        parts: Parts,
        loaders: &MediaLoaders,
        firmware: &Firmware,
        additions: &Additions,
    ) -> Result<Self, MediumError> {
        let Parts { kernel, ramdisk, bootloader } = parts;
        let contents = Contents {
            kernel: elsewhere(&kernel)?,
            ramdisk: elsewhere(&ramdisk)?,
            command_line: additions.parameters.to_string(),
            network_data: additions.network_data.clone(),
        };
        let loaders = match &bootloader {
            Some(bootloader) => loaders.beside(elsewhere(bootloader)?, firmware)?,
            None => loaders.of(firmware)?,
        };
        let volume = BootVolume::new(contents, &loaders);
        let mut parts = vec![
            Part { place: volume.kernel, source: kernel },
            Part { place: volume.ramdisk, source: ramdisk },
        ];
        parts.extend(bootloader.map(|source| Part { place: volume.esp, source }));
        Ok(Self { overlay: volume.overlay, parts, _loaders: Some(loaders) })
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.overlay.length()
    }

    /// Reads a part of it, which may be shorter than asked for at its end.
    ///
    /// # Errors
    ///
    /// A file or a server cannot be read.
    pub fn read_at(&self, place: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let left = usize::try_from(self.length().saturating_sub(place)).unwrap_or(usize::MAX);
        let mut read = vec![0; bytes.min(left)];
        let end = place + read.len() as u64;
        for part in &self.parts {
            let (from, to) = (place.max(part.place), end.min(part.end()));
            if from < to {
                let target = &mut read[(from - place) as usize..(to - place) as usize];
                part.source.read_exact_at(from - part.place, target)?;
            }
        }
        self.overlay.lay_over(place, &mut read);
        Ok(read)
    }
}

/// What a file of a volume holds that is read from a source.
fn elsewhere(source: &Source) -> Result<Content, MediumError> {
    let too_long = |_| MediumError::TooLong { what: "a part of a medium".into(), limit: u32::MAX.into() };
    u32::try_from(source.length()).map(Content::Elsewhere).map_err(too_long)
}
