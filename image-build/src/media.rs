//! From kernel and initial ramdisk to what firmware and boot loaders start.

use std::collections::BTreeMap;
use std::path::Path;

use clap::ValueEnum;
use farrier_media::KernelParameters;
use farrier_media::boot_volume::grub_configuration;
use farrier_media::ramdisk_media::{BOOT_MEDIUM, ISO};

use crate::boot_loader::BootLoaders;
use crate::error::BuildError;
use crate::kernel_image::KernelImage;
use crate::manifest::FileRecord;
use crate::output::write_file;
use crate::role::Role;
use crate::signing::SigningKey;
use crate::{iso, netboot, uki};

/// A boot medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Format {
    /// farrier.iso, for BIOS and UEFI, on a CD or a USB stick.
    Iso,
    /// farrier.efi, a unified kernel image.
    Uki,
    /// netboot/, a tree for TFTP and HTTP servers with iPXE and GRUB.
    Netboot,
    /// Kernel and ramdisk under the names that Ironic deployments use.
    Ironic,
}

/// What media are made of.
#[derive(Debug)]
pub struct Parts {
    /// The kernel.
    pub kernel: KernelImage,
    /// Release of the kernel.
    pub release: String,
    /// The initial ramdisk.
    pub initramfs: Vec<u8>,
    /// Default kernel parameters.
    pub parameters: KernelParameters,
    /// What unified kernel images are signed with.
    pub signing: Option<SigningKey>,
}

/// Writes the formats into `output`. Gives the new files by their path in `output`.
///
/// # Errors
///
/// [`BuildError::BootLoader`] naming the missing package, [`BuildError::Write`].
pub fn write(
    formats: &[Format],
    parts: &Parts,
    loaders: &mut BootLoaders,
    output: &Path,
) -> Result<BTreeMap<String, FileRecord>, BuildError> {
    let mut files = BTreeMap::new();
    for format in formats {
        for (name, content) in contents(*format, parts, loaders)? {
            write_file(&output.join(&name), &content)?;
            files.insert(name, FileRecord::of(&content));
        }
    }
    Ok(files)
}

/// The consoles a server may have, then these parameters. The last console is the main one.
fn with_consoles(parameters: &KernelParameters, architecture: &str) -> String {
    let serial = if architecture == "x86_64" { "ttyS0,115200" } else { "ttyAMA0,115200" };
    format!("console=tty0 console={serial} {parameters}").trim_end().to_owned()
}

/// The files of a format.
fn contents(
    format: Format,
    parts: &Parts,
    loaders: &mut BootLoaders,
) -> Result<Vec<(String, Vec<u8>)>, BuildError> {
    let line = with_consoles(&parts.parameters, parts.kernel.architecture);
    let named = |name: &str, content| (name.to_owned(), content);
    Ok(match format {
        Format::Iso => {
            // By this the ramdisk knows that it came from a medium, and leaves that alone.
            let line = format!("{BOOT_MEDIUM}={ISO} {line}");
            let image = iso::image(&parts.kernel.program, &parts.initramfs, &line, loaders)?;
            vec![named("farrier.iso", image)]
        }
        Format::Uki => {
            let (path, stub) = loaders.read(Role::Stub)?;
            let sections = uki::Parts {
                kernel: &parts.kernel.program,
                release: &parts.release,
                initramfs: &parts.initramfs,
                command_line: &line,
            };
            let mut image = uki::assemble(&path, &stub, &sections)?;
            if let Some(key) = &parts.signing {
                key.sign(&mut image)?;
            }
            vec![named("farrier.efi", image)]
        }
        Format::Netboot => {
            let suffix = loaders.efi_suffix();
            vec![
                named("netboot/vmlinuz", parts.kernel.to_file()),
                named("netboot/initramfs.img", parts.initramfs.clone()),
                named("netboot/boot.ipxe", netboot::ipxe_script(&line).into_bytes()),
                named("netboot/grub/grub.cfg", grub_configuration(&line).into_bytes()),
                named(&format!("netboot/boot{suffix}.efi"), loaders.read(Role::Shim)?.1),
                named(&format!("netboot/grub{suffix}.efi"), loaders.read(Role::GrubNet)?.1),
            ]
        }
        Format::Ironic => vec![
            named("ironic-python-agent.kernel", parts.kernel.to_file()),
            named("ironic-python-agent.initramfs", parts.initramfs.clone()),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f63_no_medium_turns_mode_setting_off() {
        for (architecture, line) in [
            ("x86_64", "console=tty0 console=ttyS0,115200"),
            ("aarch64", "console=tty0 console=ttyAMA0,115200"),
        ] {
            assert_eq!(with_consoles(&KernelParameters::default(), architecture), line);
        }
    }
}
