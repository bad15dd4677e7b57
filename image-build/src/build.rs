//! From inputs to `dist/<arch>`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use farrier_media::KernelParameters;
use farrier_media::boot_volume::{KERNEL, RAMDISK};

use crate::additions::Additions;
use crate::boot_loader::BootLoaders;
use crate::closure::Closure;
use crate::compress::gzip;
use crate::cpio::Archive;
use crate::error::BuildError;
use crate::executable::{Target, static_architecture};
use crate::firmware::FirmwareInputs;
use crate::kernel_image::KernelImage;
use crate::manifest::{FileRecord, Manifest};
use crate::media::{self, Format, Parts};
use crate::module_tree::ModuleTree;
use crate::output::write_file;
use crate::ramdisk::{add_agent, add_modules, add_parameters, add_programs};
use crate::select::CLASSES;
use crate::signing::{SigningFiles, SigningKey};

/// Name of the agent beside the ramdisk: a program that runs on any system.
const AGENT: &str = "farrier-agent";

/// What a ramdisk is built from.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// The kernel's file.
    pub kernel: PathBuf,
    /// Its modules, a folder named after the kernel's release.
    pub modules: PathBuf,
    /// Names of modules beyond those of servers.
    pub extra_modules: Vec<String>,
    /// Firmware for its modules.
    pub firmware: FirmwareInputs,
    /// The agent, linked statically.
    pub agent: PathBuf,
    /// Folder below which the packages of the helper programs are installed or unpacked, with dpkg's database.
    pub programs_root: PathBuf,
    /// Folder where compressed modules and firmware are kept for the next build.
    pub cache: Option<PathBuf>,
    /// What else is packed.
    pub additions: Additions,
    /// The media to make.
    pub media: MediaInputs,
}

/// Which media are made, and with what.
#[derive(Debug, Clone, Default)]
pub struct MediaInputs {
    /// The forms.
    pub formats: Vec<Format>,
    /// Folder below which the boot loaders' packages are unpacked or installed.
    pub boot_loaders: PathBuf,
    /// Default kernel parameters.
    pub parameters: KernelParameters,
    /// What unified kernel images are signed with.
    pub signing: Option<SigningFiles>,
}

impl MediaInputs {
    /// Reads the signing key, if there is one.
    fn signing_key(&self) -> Result<Option<SigningKey>, BuildError> {
        self.signing.as_ref().map(|files| SigningKey::read(&files.key, &files.certificate)).transpose()
    }
}

/// Builds into `output`, or into `dist/<architecture of the agent>`; `progress` hears what is being done.
///
/// Gives the description that is also written there as `manifest.json`, and the folder.
///
/// # Errors
///
/// [`BuildError`], naming the file and what to do.
pub fn build(
    inputs: &Inputs,
    output: Option<&Path>,
    progress: &dyn Fn(&'static str),
) -> Result<(Manifest, PathBuf), BuildError> {
    let agent = fs::read(&inputs.agent).map_err(BuildError::reading(&inputs.agent))?;
    let signing = inputs.media.signing_key()?;
    let remedy = "build it with --target x86_64-unknown-linux-musl";
    let architecture = static_architecture(&inputs.agent, &agent, remedy)?;
    let target = Target { agent: &inputs.agent, architecture };
    let kernel = fs::read(&inputs.kernel).map_err(BuildError::reading(&inputs.kernel))?;
    let kernel = KernelImage::parse(&inputs.kernel, kernel)?;
    target.check(&inputs.kernel, kernel.architecture)?;
    progress("reading the kernel's modules");
    let tree = ModuleTree::read(&inputs.modules)?;
    let closure = Closure::of(&tree, CLASSES, &inputs.extra_modules)?;

    let mut archive = Archive::default();
    let cache = inputs.cache.as_deref();
    progress("packing modules");
    let modules = add_modules(&mut archive, &tree.release, &closure, CLASSES, cache)?;
    let firmware = inputs.firmware.add(&mut archive, &tree.release, &closure, cache)?;
    let (programs, libraries) = add_programs(&mut archive, &inputs.programs_root, target)?;
    let additions = inputs.additions.add(&mut archive, target)?;
    add_parameters(&mut archive, &inputs.media.parameters);
    add_agent(&mut archive, agent.clone());
    progress("compressing the ramdisk");
    let initramfs = gzip(&archive.to_bytes()?);

    let output = output.map_or_else(|| Path::new("dist").join(architecture), Path::to_owned);
    let mut files = BTreeMap::new();
    for (name, content) in [(KERNEL, &kernel.to_file()), (RAMDISK, &initramfs), (AGENT, &agent)] {
        write_file(&output.join(name), content)?;
        files.insert(name.to_owned(), FileRecord::of(content));
    }
    make_executable(&output.join(AGENT))?;
    let parts = Parts {
        kernel,
        release: tree.release.clone(),
        initramfs,
        parameters: inputs.media.parameters.clone(),
        signing,
    };
    progress("making media");
    let mut loaders = BootLoaders::new(&inputs.media.boot_loaders, architecture);
    files.extend(media::write(&inputs.media.formats, &parts, &mut loaders, &output)?);
    let manifest = Manifest {
        farrier_version: env!("CARGO_PKG_VERSION").to_owned(),
        architecture: architecture.to_owned(),
        kernel_release: parts.release,
        kernel_parameters: inputs.media.parameters.to_string(),
        files,
        programs,
        libraries,
        additions,
        firmware,
        boot_loaders: loaders.into_used(),
        modules: modules.into_iter().collect(),
        selection: closure.selection,
    };
    manifest.write(&output)?;
    Ok((manifest, output))
}

/// Makes a file executable for all who may read it.
fn make_executable(file: &Path) -> Result<(), BuildError> {
    let mode = fs::metadata(file).map_err(BuildError::reading(file))?.permissions().mode();
    let permissions = fs::Permissions::from_mode(mode | (mode & 0o444) >> 2);
    fs::set_permissions(file, permissions).map_err(BuildError::writing(file))
}

/// Makes media from the kernel and the ramdisk in `dist`, with other parameters for the kernel.
///
/// # Errors
///
/// [`BuildError`], naming the file and what to do.
pub fn rebuild_media(
    dist: &Path,
    media: &MediaInputs,
    output: &Path,
) -> Result<BTreeMap<String, FileRecord>, BuildError> {
    let read = |name| {
        let path = dist.join(name);
        fs::read(&path).map_err(BuildError::reading(&path))
    };
    let release = Manifest::kernel_release(&dist.join("manifest.json"))?;
    let kernel = KernelImage::parse(&dist.join(KERNEL), read(KERNEL)?)?;
    let mut loaders = BootLoaders::new(&media.boot_loaders, kernel.architecture);
    let (initramfs, signing) = (read(RAMDISK)?, media.signing_key()?);
    let parts = Parts { kernel, release, initramfs, parameters: media.parameters.clone(), signing };
    media::write(&media.formats, &parts, &mut loaders, output)
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
