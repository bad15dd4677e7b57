//! The Debian images that the demo and the tests deploy, all from one tree, and their cache.

mod bios;
mod disk;
mod grub_modules;
mod parts;
mod tree;

pub use disk::{DiskFormat, ESP_BYTES, new_uuid};
pub use tree::System;

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use farrier_tests::cells::boot::Table;

use crate::build::debian_tree::DebianTree;
use crate::host::command::{as_root, command, is_root, run, run_quietly};
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::Workspace;

/// Size of the image unless another is asked for: many times the memory of a node that must be able to deploy it.
pub const DEFAULT_MEBIBYTES: u64 = 2048;

/// Size of the image that tests deploy: more than twice the memory of their machines. An emulated processor takes a
/// minute for each GiB, and has seven images to deploy.
pub const TESTED_MEBIBYTES: u64 = 576;

/// Builds the Debian image that demo and tests deploy, or one for servers, and prints its path.
#[derive(Debug, Args)]
pub struct ImageCommand {
    /// Builds an image for servers, with all drivers and OpenSSH. Its users and its network are those of the config
    /// drive.
    #[arg(long)]
    server: bool,
    /// Copies the image to FILE, and writes its checksum to SHA256SUMS in the same folder.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    image: ImageArguments,
}

/// Options of all commands that build an image.
#[derive(Debug, Args)]
pub struct ImageArguments {
    /// Size of the image in MiB.
    #[arg(long, value_name = "MIB", default_value_t = DEFAULT_MEBIBYTES, value_parser = clap::value_parser!(u64).range(TESTED_MEBIBYTES..))]
    pub image_size: u64,
    /// Only names packages that are missing.
    #[arg(long)]
    pub no_install: bool,
}

/// The part of building that needs root; the other commands start it through sudo.
#[derive(Debug, Args)]
pub struct RootArguments {
    folder: PathBuf,
    mebibytes: u64,
    system: System,
}

/// What an image holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The root file system alone, with the packages of GRUB and no boot loader.
    Partition,
    /// A whole disk with boot loaders.
    Disk(DiskFormat),
}

/// A raw image.
#[derive(Debug)]
pub struct InstanceImage {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, hexadecimal.
    pub sha256: String,
}

impl Content {
    /// The usual whole-disk image.
    pub const USUAL: Self = Self::Disk(DiskFormat::USUAL);

    fn file_name(self) -> String {
        match self {
            Self::Partition => parts::ROOT.to_owned(),
            Self::USUAL => "image.raw".to_owned(),
            Self::Disk(DiskFormat { table: Table::Gpt, sector_size }) => format!("gpt-{sector_size}.raw"),
            Self::Disk(DiskFormat { table: Table::Mbr, sector_size }) => format!("mbr-{sector_size}.raw"),
        }
    }
}

/// Runs the command.
pub fn image(ImageCommand { server, output, image }: &ImageCommand) -> Result<()> {
    requirements::ensure(&[Purpose::InstanceImage], !image.no_install)?;
    let system = if *server { System::Server } else { System::Cloud };
    let built = cached(&Workspace::find()?, image.image_size, system, Content::USUAL)?;
    let path = match output {
        Some(file) => {
            copy(&built, file)?;
            file
        }
        None => &built.path,
    };
    println!("{} ({} bytes, sha256:{})", path.display(), built.bytes, built.sha256);
    Ok(())
}

/// Copies an image, and writes its checksum beside it as `sha256sum` prints it.
fn copy(image: &InstanceImage, file: &Path) -> Result<()> {
    let name = file.file_name().context("--output must be a file")?.to_string_lossy();
    let folder = file.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    run_quietly(command("cp").args(["--sparse=always", "--reflink=auto"]).arg(&image.path).arg(file))?;
    let sums = folder.join("SHA256SUMS");
    fs::write(&sums, format!("{}  {name}\n", image.sha256))
        .with_context(|| format!("cannot write {}", sums.display()))
}

/// The image with this content, made unless one of the same recipe is in the cache. `mebibytes` is the size of
/// a whole disk.
pub fn cached(
    workspace: &Workspace,
    mebibytes: u64,
    system: System,
    content: Content,
) -> Result<InstanceImage> {
    let mut hasher = DefaultHasher::new();
    (tree::recipe(system), parts::recipe(), disk::recipe(), mebibytes).hash(&mut hasher);
    let folder = workspace.cache().join(format!("debian-{:016x}", hasher.finish()));
    let partition = folder.join(parts::ROOT);
    if !digest_file(&partition).exists() {
        build(&folder, mebibytes, system)?;
        write_digest(&partition)?;
    }
    let path = folder.join(content.file_name());
    if let Content::Disk(format) = content
        && !digest_file(&path).exists()
    {
        println!("  {}", path.display());
        disk::assemble(&folder, format, mebibytes, &path)?;
        write_digest(&path)?;
    }
    let bytes = fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?.len();
    let sha256 = fs::read_to_string(digest_file(&path))?;
    Ok(InstanceImage { path, bytes, sha256 })
}

/// Written last: it tells that the image is complete.
fn digest_file(image: &Path) -> PathBuf {
    image.with_extension("sha256")
}

fn write_digest(image: &Path) -> Result<()> {
    let digest = run_quietly(command("sha256sum").arg(image))?;
    let digest = digest.split_whitespace().next().context("sha256sum printed nothing")?;
    Ok(fs::write(digest_file(image), digest)?)
}

fn build(folder: &Path, mebibytes: u64, system: System) -> Result<()> {
    fs::create_dir_all(folder)?;
    println!("Building Debian images in {} (takes a few minutes, once)", folder.display());
    let this = std::env::current_exe()?;
    run(as_root(this).arg("image-as-root").arg(folder).arg(mebibytes.to_string()).arg(system.name()))
}

/// Builds the parts in a folder. It needs root, since the files in the image belong to root.
pub fn image_as_root(RootArguments { folder, mebibytes, system }: &RootArguments) -> Result<()> {
    if !is_root() {
        bail!("only root can build the Debian image; run cargo xtask image");
    }
    let (root, log) = (folder.join("tree"), folder.join("build.log"));
    let root_uuid = new_uuid()?;
    let tree = DebianTree::bootstrap(&root, &log)?;
    tree::build(&tree, &root_uuid, *system)?;
    parts::make(&tree, &root_uuid, disk::root_size(*mebibytes), folder)?;
    Ok(fs::remove_dir_all(&root)?)
}
