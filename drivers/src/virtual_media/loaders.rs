//! Boot loaders of media that are made of a kernel and a ramdisk, as the distribution packages them.

use super::error::MediumError;
use crate::netboot::loaders::Loaders;
use farrier_media::boot_volume::{self, BootLoaders, Isolinux};
use farrier_media::iso9660::Content;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

const INSTEAD_OF_GRUB: &str = ", or give driver_info bootloader";

/// What a machine's medium is started by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Firmware {
    /// As Ironic spells it: `x86_64`, `aarch64`.
    pub architecture: String,
    /// Whether the machine starts by BIOS; else by UEFI, and by BIOS where the loader for that is there.
    pub is_bios: bool,
}

/// The boot loaders. All media that are read at a time share them. Clones are the same ones.
#[derive(Debug, Clone, Default)]
pub struct MediaLoaders {
    files: Loaders,
    in_use: Arc<Mutex<HashMap<Firmware, Weak<BootLoaders>>>>,
}

impl MediaLoaders {
    /// Those of the distribution, but for the operator's own.
    pub fn new(files: Loaders) -> Self {
        Self { files, in_use: Arc::default() }
    }

    /// Those for a machine.
    ///
    /// # Errors
    ///
    /// [`MediumError::Loader`].
    pub(super) fn of(&self, firmware: &Firmware) -> Result<Arc<BootLoaders>, MediumError> {
        let lock = || self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaders) = lock().get(firmware).and_then(Weak::upgrade) {
            return Ok(loaders);
        }
        let suffix = if firmware.architecture == "aarch64" { "aa64" } else { "x64" };
        let (shim, grub) = match suffix {
            "aa64" => ("bootaa64.efi", "gcdaa64.efi"),
            _ => ("bootx64.efi", "gcdx64.efi"),
        };
        let (shim, grub) = (self.read(shim, INSTEAD_OF_GRUB)?, self.read(grub, INSTEAD_OF_GRUB)?);
        let made = |source| MediumError::Read { what: "the EFI system partition of a medium".into(), source };
        let esp = boot_volume::esp(suffix, shim, grub).map_err(made)?;
        let loaders = Arc::new(BootLoaders { esp: esp.into(), isolinux: self.isolinux(firmware)? });
        lock().insert(firmware.clone(), Arc::downgrade(&loaders));
        Ok(loaders)
    }

    /// Those for a machine whose site has an EFI system partition of its own, of so many bytes.
    ///
    /// # Errors
    ///
    /// [`MediumError::Loader`].
    pub(super) fn beside(&self, esp: Content, firmware: &Firmware) -> Result<Arc<BootLoaders>, MediumError> {
        Ok(Arc::new(BootLoaders { esp, isolinux: self.isolinux(firmware)? }))
    }

    /// ISOLINUX; nothing if it is missing and not needed.
    fn isolinux(&self, firmware: &Firmware) -> Result<Option<Isolinux>, MediumError> {
        if firmware.architecture == "aarch64" {
            return Ok(None);
        }
        let read = || {
            Ok(Isolinux {
                program: self.read("isolinux.bin", "")?.into(),
                library: self.read("ldlinux.c32", "")?.into(),
                boot_record: self.read("isohdpfx.bin", "")?.into(),
            })
        };
        match read() {
            Ok(isolinux) => Ok(Some(isolinux)),
            Err(_) if !firmware.is_bios => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read(&self, name: &'static str, instead: &'static str) -> Result<Vec<u8>, MediumError> {
        let read = self.files.read(name).map_err(|source| MediumError::Loader { source, instead });
        read.map(|(_, content)| content)
    }
}
