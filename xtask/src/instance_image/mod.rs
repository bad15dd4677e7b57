//! The Debian image that the demo and the tests deploy, and its cache.

mod bios;
mod disk;
mod tree;

pub use disk::{ESP_BYTES, new_uuid};

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::command::{as_root, command, is_root, run, run_quietly};
use crate::debian_tree::DebianTree;
use crate::requirements::{self, Purpose};
use crate::workspace::Workspace;

/// Smallest image that is built: what a node with little memory must be able to deploy.
pub const DEFAULT_MEBIBYTES: u64 = 2048;

/// Builds the Debian image that demo and tests deploy, and prints its path.
#[derive(Debug, Args)]
pub struct ImageArguments {
    /// Size of the image in MiB.
    #[arg(long, value_name = "MIB", default_value_t = DEFAULT_MEBIBYTES, value_parser = clap::value_parser!(u64).range(1024..))]
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
}

/// A raw image of a whole disk.
#[derive(Debug)]
pub struct InstanceImage {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, hexadecimal.
    pub sha256: String,
}

/// Runs the command.
pub fn image(arguments: &ImageArguments) -> Result<()> {
    requirements::ensure(&[Purpose::InstanceImage], !arguments.no_install)?;
    let image = cached(&Workspace::find()?, arguments.image_size)?;
    println!("{} ({} bytes, sha256:{})", image.path.display(), image.bytes, image.sha256);
    Ok(())
}

/// The image of this size, built unless one of the same recipe is in the cache.
pub fn cached(workspace: &Workspace, mebibytes: u64) -> Result<InstanceImage> {
    let mut hasher = DefaultHasher::new();
    (tree::recipe(), disk::recipe(), mebibytes).hash(&mut hasher);
    let folder = workspace.cache().join(format!("debian-{:016x}", hasher.finish()));
    if !folder.join("image.sha256").exists() {
        build(&folder, mebibytes)?;
    }
    let path = folder.join("image.raw");
    let bytes = fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?.len();
    let sha256 = fs::read_to_string(folder.join("image.sha256"))?;
    Ok(InstanceImage { path, bytes, sha256 })
}

fn build(folder: &Path, mebibytes: u64) -> Result<()> {
    fs::create_dir_all(folder)?;
    println!("Building a Debian image in {} (takes a few minutes, once)", folder.display());
    let this = std::env::current_exe()?;
    run(as_root(this).arg("image-as-root").arg(folder).arg(mebibytes.to_string()))?;
    let digest = run_quietly(command("sha256sum").arg(folder.join("image.raw")))?;
    let digest = digest.split_whitespace().next().context("sha256sum printed nothing")?;
    // Written last: it tells that the image is complete.
    fs::write(folder.join("image.sha256"), digest)?;
    Ok(())
}

/// Builds in a folder. It needs root, since the files in the image belong to root.
pub fn image_as_root(RootArguments { folder, mebibytes }: &RootArguments) -> Result<()> {
    if !is_root() {
        bail!("only root can build the Debian image; run cargo xtask image");
    }
    let (root, log) = (folder.join("tree"), folder.join("build.log"));
    let root_uuid = new_uuid()?;
    let tree = DebianTree::bootstrap(&root, &log)?;
    tree::build(&tree, &root_uuid)?;
    disk::assemble(&tree, &root_uuid, *mebibytes, &folder.join("image.raw"))?;
    Ok(fs::remove_dir_all(&root)?)
}
