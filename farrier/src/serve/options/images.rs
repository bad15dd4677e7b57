//! Options of `farrier serve` about what nodes boot that name no images of their own.

use anyhow::Context;
use clap::Args;
use farrier_drivers::netboot::by_arch::ConfiguredImages;

/// Default images.
#[derive(Debug, Args)]
#[command(next_help_heading = "Images")]
pub(crate) struct ImageOptions {
    /// Deploy kernel for nodes without deploy_kernel: a file below a folder of --file-url-allowed-paths, or a URL.
    #[arg(long, value_name = "IMAGE")]
    deploy_kernel: Option<String>,
    /// Deploy kernel for an architecture. Example: aarch64:http://192.0.2.5/deploy_kernel.
    #[arg(long, value_name = "ARCH:IMAGE", value_parser = by_arch)]
    deploy_kernel_by_arch: Vec<(String, String)>,
    /// Deploy ramdisk for nodes without deploy_ramdisk; use it with --deploy-kernel.
    #[arg(long, value_name = "IMAGE")]
    deploy_ramdisk: Option<String>,
    /// Deploy ramdisk for an architecture. Example: aarch64:http://192.0.2.5/deploy_ramdisk.
    #[arg(long, value_name = "ARCH:IMAGE", value_parser = by_arch)]
    deploy_ramdisk_by_arch: Vec<(String, String)>,
    /// Deploy ISO for nodes that boot from virtual media and have neither deploy_iso nor deploy_kernel.
    #[arg(long, value_name = "IMAGE")]
    deploy_iso: Option<String>,
    /// Deploy ISO for an architecture. Example: aarch64:http://192.0.2.5/deploy_iso.
    #[arg(long, value_name = "ARCH:IMAGE", value_parser = by_arch)]
    deploy_iso_by_arch: Vec<(String, String)>,
    /// Rescue kernel for nodes without rescue_kernel [default: the deploy kernel].
    #[arg(long, value_name = "IMAGE")]
    rescue_kernel: Option<String>,
    /// Rescue kernel for an architecture. Example: aarch64:http://192.0.2.5/rescue_kernel.
    #[arg(long, value_name = "ARCH:IMAGE", value_parser = by_arch)]
    rescue_kernel_by_arch: Vec<(String, String)>,
    /// Rescue ramdisk for nodes without rescue_ramdisk; use it with --rescue-kernel.
    #[arg(long, value_name = "IMAGE")]
    rescue_ramdisk: Option<String>,
    /// Rescue ramdisk for an architecture. Example: aarch64:http://192.0.2.5/rescue_ramdisk.
    #[arg(long, value_name = "ARCH:IMAGE", value_parser = by_arch)]
    rescue_ramdisk_by_arch: Vec<(String, String)>,
    /// Rescue ISO for nodes that boot from virtual media and have neither rescue_iso nor rescue_kernel.
    #[arg(long, value_name = "IMAGE")]
    rescue_iso: Option<String>,
    /// Rescue ISO for an architecture. Example: aarch64:http://192.0.2.5/rescue_iso.
    #[arg(long, value_name = "ARCH:IMAGE", value_parser = by_arch)]
    rescue_iso_by_arch: Vec<(String, String)>,
    /// EFI system partition image whose GRUB boots kernel and ramdisk from virtual media, for nodes without
    /// bootloader [default: shim and GRUB of the distribution].
    #[arg(long, value_name = "IMAGE")]
    bootloader: Option<String>,
    /// EFI system partition image for an architecture. Example: aarch64:http://192.0.2.5/bootloader.
    #[arg(long, value_name = "ARCH:IMAGE", value_parser = by_arch)]
    bootloader_by_arch: Vec<(String, String)>,
}

fn by_arch(text: &str) -> anyhow::Result<(String, String)> {
    let example = "must be ARCH:IMAGE, such as aarch64:http://192.0.2.5/vmlinuz";
    let (architecture, image) = text.split_once(':').context(example)?;
    let is_named = !architecture.is_empty() && !architecture.contains('/') && !image.starts_with("//");
    anyhow::ensure!(is_named && !image.is_empty(), example);
    Ok((architecture.to_owned(), image.to_owned()))
}

impl ImageOptions {
    /// What they name.
    pub(crate) fn configured(&self) -> ConfiguredImages {
        ConfiguredImages::default()
            .with("deploy_kernel", self.deploy_kernel.clone(), self.deploy_kernel_by_arch.clone())
            .with("deploy_ramdisk", self.deploy_ramdisk.clone(), self.deploy_ramdisk_by_arch.clone())
            .with("deploy_iso", self.deploy_iso.clone(), self.deploy_iso_by_arch.clone())
            .with("rescue_kernel", self.rescue_kernel.clone(), self.rescue_kernel_by_arch.clone())
            .with("rescue_ramdisk", self.rescue_ramdisk.clone(), self.rescue_ramdisk_by_arch.clone())
            .with("rescue_iso", self.rescue_iso.clone(), self.rescue_iso_by_arch.clone())
            .with("bootloader", self.bootloader.clone(), self.bootloader_by_arch.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::by_arch;

    #[test]
    fn c05_an_image_of_an_architecture_is_no_url_without_one() {
        for (text, expected) in [
            ("aarch64:http://h/k", Some(("aarch64", "http://h/k"))),
            ("x86_64-bios:/srv/k", Some(("x86_64-bios", "/srv/k"))),
            ("http://h/k", None),
            ("/srv/k", None),
            ("aarch64:", None),
            (":/srv/k", None),
        ] {
            let found = by_arch(text).ok();
            let expected = expected.map(|(key, image)| (key.to_owned(), image.to_owned()));
            assert_eq!(found, expected, "{text}");
        }
    }
}
