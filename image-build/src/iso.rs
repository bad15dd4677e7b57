//! The ISO image, of the boot loaders of the distribution.

use crate::boot_loader::BootLoaders;
use crate::error::BuildError;
use crate::role::Role;
use farrier_media::boot_volume::{self, BootVolume, Contents, Isolinux};

/// Makes the image.
///
/// # Errors
///
/// [`BuildError::BootLoader`] naming the missing package.
pub fn image(
    kernel: &[u8],
    initramfs: &[u8],
    command_line: &str,
    loaders: &mut BootLoaders,
) -> Result<Vec<u8>, BuildError> {
    let (path, shim) = loaders.read(Role::Shim)?;
    let (_, grub) = loaders.read(Role::GrubCd)?;
    let esp = boot_volume::esp(loaders.efi_suffix(), shim, grub).map_err(BuildError::reading(&path))?;
    let isolinux = match loaders.has_bios() {
        true => Some(Isolinux {
            program: loaders.read(Role::Isolinux)?.1.into(),
            library: loaders.read(Role::IsolinuxLibrary)?.1.into(),
            boot_record: loaders.read(Role::HybridMbr)?.1.into(),
        }),
        false => None,
    };
    let contents = Contents {
        kernel: kernel.to_vec().into(),
        ramdisk: initramfs.to_vec().into(),
        command_line: command_line.to_owned(),
        network_data: None,
    };
    let loaders = boot_volume::BootLoaders { esp: esp.into(), isolinux };
    Ok(BootVolume::new(contents, &loaders).overlay.to_vec())
}
