//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use farrier_image::{
    Additions, BuildError, Firmware, FirmwareInputs, Format, Inputs, KernelPackage, MediaInputs, SigningFiles,
};
use farrier_media::KernelParameters;

/// Builds the ramdisk and its boot media.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Cli {
    /// Commands.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Packs a kernel, the modules of servers and the agent into vmlinuz, initramfs.img, manifest.json and media.
    Build(Box<BuildArguments>),
    /// Makes media from a finished build with other kernel parameters.
    Media(MediaArguments),
}

/// Arguments of `build`.
#[derive(Debug, Args)]
pub struct BuildArguments {
    /// Kernel file.
    #[arg(long, value_name = "VMLINUZ", required_unless_present = "kernel_packages", requires = "modules")]
    kernel: Option<PathBuf>,
    /// Modules of the kernel: /lib/modules/<release>.
    #[arg(long, value_name = "DIR", requires = "kernel")]
    modules: Option<PathBuf>,
    /// Debian package of the kernel, instead of --kernel and --modules; may be repeated.
    #[arg(long = "kernel-package", value_name = "FILE", conflicts_with = "kernel")]
    kernel_packages: Vec<PathBuf>,
    /// Packs this kernel module with its dependencies; may be repeated.
    #[arg(long = "module", value_name = "NAME")]
    extra_modules: Vec<String>,
    /// Packs firmware: all, common, or the firmware of a PCI device such as 8086:1592; may be repeated.
    #[arg(long, value_name = "CHOICE")]
    firmware: Vec<Firmware>,
    /// Folder with the firmware.
    #[arg(long, value_name = "DIR", default_value = "/lib/firmware")]
    firmware_root: PathBuf,
    /// Statically linked agent binary.
    #[arg(long, value_name = "FILE")]
    agent: PathBuf,
    /// Root folder of the helper programs, with the dpkg database of their packages. Programs of --program may be
    /// there too.
    #[arg(long, value_name = "DIR", default_value = "/")]
    programs_root: PathBuf,
    /// Cache folder for compressed modules and firmware; later builds are faster, with the same output.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Packs this file, or this folder with its contents; may be repeated.
    #[arg(long = "file", value_name = "FILE:PATH", value_parser = file_and_path)]
    files: Vec<(PathBuf, String)>,
    /// Packs this program with its libraries; may be repeated.
    #[arg(long = "program", value_name = "FILE")]
    programs: Vec<PathBuf>,
    /// Packs this executable as an external hardware manager; may be repeated.
    #[arg(long = "hardware-manager", value_name = "FILE")]
    hardware_managers: Vec<PathBuf>,
    /// CA certificates that the agent trusts, in PEM format; may be repeated.
    #[arg(long = "ca-certificate", value_name = "FILE")]
    certificates: Vec<PathBuf>,
    /// SSH public key for the rescue login; may be repeated.
    #[arg(long = "ssh-key", value_name = "FILE")]
    ssh_keys: Vec<PathBuf>,
    /// Output folder [default: dist/<architecture of the agent>].
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    media: MediaOptions,
}

/// Arguments of `media`.
#[derive(Debug, Args)]
pub struct MediaArguments {
    /// Folder with vmlinuz, initramfs.img and manifest.json.
    #[arg(long, value_name = "DIR")]
    dist: PathBuf,
    /// Output folder.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    media: MediaOptions,
}

#[derive(Debug, Args)]
struct MediaOptions {
    /// Boot media to build, separated by commas.
    #[arg(long = "format", value_name = "FORMAT", value_enum, value_delimiter = ',')]
    formats: Vec<Format>,
    /// Root folder of the boot loader packages, installed or unpacked.
    #[arg(long, value_name = "DIR", default_value = "/")]
    boot_loaders: PathBuf,
    /// Default kernel parameters, such as "ipa-api-url=http://192.0.2.5:6385".
    #[arg(long, value_name = "WORDS", default_value = "")]
    kernel_parameters: KernelParameters,
    /// RSA key that signs unified kernel images for Secure Boot, in PEM format.
    #[arg(long, value_name = "FILE", requires = "signing_certificate")]
    signing_key: Option<PathBuf>,
    /// Certificate of the key, in PEM format.
    #[arg(long, value_name = "FILE", requires = "signing_key")]
    signing_certificate: Option<PathBuf>,
}

impl BuildArguments {
    /// Unpacks the kernel's packages, if that is where it comes from.
    ///
    /// # Errors
    ///
    /// [`BuildError::Package`].
    pub fn kernel_package(&self) -> Result<Option<KernelPackage>, BuildError> {
        let is_given = !self.kernel_packages.is_empty();
        is_given.then(|| KernelPackage::unpack(&self.kernel_packages)).transpose()
    }

    /// What to build from, and where to.
    pub fn inputs(self, package: Option<&KernelPackage>) -> (Inputs, Option<PathBuf>) {
        let additions = Additions {
            files: self.files,
            programs: self.programs,
            root: self.programs_root.clone(),
            certificates: self.certificates,
            hardware_managers: self.hardware_managers,
            ssh_keys: self.ssh_keys,
        };
        let inputs = Inputs {
            kernel: package.map(|package| package.kernel.clone()).or(self.kernel).unwrap_or_default(),
            modules: package.map(|package| package.modules.clone()).or(self.modules).unwrap_or_default(),
            extra_modules: self.extra_modules,
            firmware: FirmwareInputs { choices: self.firmware, root: self.firmware_root },
            agent: self.agent,
            programs_root: self.programs_root,
            cache: self.cache,
            additions,
            media: self.media.inputs(),
        };
        (inputs, self.output)
    }
}

impl MediaArguments {
    /// The build, the media to make of it, and where to.
    pub fn inputs(self) -> (PathBuf, MediaInputs, PathBuf) {
        (self.dist, self.media.inputs(), self.output)
    }
}

impl MediaOptions {
    fn inputs(self) -> MediaInputs {
        let files = self.signing_key.zip(self.signing_certificate);
        MediaInputs {
            signing: files.map(|(key, certificate)| SigningFiles { key, certificate }),
            formats: self.formats,
            boot_loaders: self.boot_loaders,
            parameters: self.kernel_parameters,
        }
    }
}

fn file_and_path(text: &str) -> Result<(PathBuf, String), String> {
    match text.rsplit_once(':') {
        Some((file, path)) if !file.is_empty() && path.starts_with('/') && !path.contains("/../") => {
            Ok((file.into(), path.to_owned()))
        }
        _ => Err(format!("{text} is not FILE:PATH with an absolute path inside the ramdisk")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_and_each_option_has_a_help_text() {
        use clap::CommandFactory;
        let cli = Cli::command();
        for command in cli.get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for option in command.get_arguments() {
                assert!(option.get_help().is_some(), "{} {}", command.get_name(), option.get_id());
            }
        }
    }

    #[test]
    fn arguments_are_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
        let parse = |text: &str| Cli::try_parse_from(text.split(' '));
        let build = "farrier-image build --kernel k --modules m --agent a";
        parse(&format!("{build} --format iso,uki --file a:/etc/a --module x")).unwrap();
        parse("farrier-image build --kernel-package a.deb --kernel-package b.deb --agent a").unwrap();
        for wrong in [
            "--kernel-package a.deb",
            "--file a",
            "--file a:etc/a",
            "--format cd",
            "--kernel-parameters a=$b",
        ] {
            assert!(parse(&format!("{build} {wrong}")).is_err(), "{wrong}");
        }
    }
}
