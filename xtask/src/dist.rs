//! `cargo xtask dist`: agent, kernel and ramdisk in `dist/<arch>`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::command::{command, run, run_quietly};
use crate::kernel_package;
use crate::libblkid;
use crate::requirements::{self, Purpose};
use crate::workspace::{Workspace, cargo, read_json, write_json};

const MEBIBYTE: u64 = 1 << 20;
/// Largest sum of kernel and initramfs; more does not boot in 256 MiB of memory.
const BUDGET: u64 = 40 * MEBIBYTE;

/// Builds the agent, its ramdisk and the kernel into dist/<arch>, and checks their size.
#[derive(Debug, Args)]
pub struct DistArguments {
    /// Architecture to build for.
    #[arg(long, default_value = "x86_64", value_parser = ["x86_64"])]
    arch: String,
    /// Writes the sizes as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// Sizes of what was built.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sizes {
    /// The kernel.
    pub vmlinuz_bytes: u64,
    /// The initial ramdisk, compressed.
    pub initramfs_bytes: u64,
    /// The agent in it, not compressed.
    pub agent_bytes: u64,
    /// What kernel and ramdisk may take together.
    pub budget_bytes: u64,
}

/// What was built.
#[derive(Debug)]
pub struct Dist {
    /// The folder `dist/<arch>`.
    pub folder: PathBuf,
    /// Its sizes.
    pub sizes: Sizes,
}

#[derive(Deserialize)]
struct Manifest {
    files: ManifestFiles,
}

#[derive(Deserialize)]
struct ManifestFiles {
    vmlinuz: ManifestFile,
    #[serde(rename = "initramfs.img")]
    initramfs: ManifestFile,
    #[serde(rename = "farrier-agent")]
    agent: ManifestFile,
}

#[derive(Deserialize)]
struct ManifestFile {
    bytes: u64,
}

/// Runs the command.
pub fn dist(arguments: &DistArguments) -> Result<()> {
    requirements::ensure(&[Purpose::Dist], !arguments.no_install)?;
    let dist = build(&Workspace::find()?, &arguments.arch)?;
    write_json(arguments.json.as_deref(), &dist.sizes)
}

/// Builds `dist/<arch>` and checks it against the budget.
pub fn build(workspace: &Workspace, arch: &str) -> Result<Dist> {
    let target = format!("{arch}-unknown-linux-musl");
    add_target(&target)?;
    libblkid::build(workspace, arch)?;
    let compiler = format!("CC_{}", target.replace('-', "_"));
    run(cargo()
        .args(["build", "--release", "-p", "farrier-agent", "--target", &target])
        .env(compiler, "musl-gcc")
        .current_dir(&workspace.root))?;
    let kernel = kernel_package::fetch(workspace)?;
    let folder = workspace.root.join("dist").join(arch);
    run(cargo()
        .args(["run", "--quiet", "-p", "farrier-image", "--", "build"])
        .arg("--kernel")
        .arg(&kernel.image)
        .arg("--modules")
        .arg(&kernel.modules)
        .arg("--agent")
        .arg(workspace.target.join(&target).join("release/farrier-agent"))
        .arg("--output")
        .arg(&folder)
        .current_dir(&workspace.root))?;
    let files = read_json::<Manifest>(&folder.join("manifest.json"))?.files;
    let sizes = Sizes {
        vmlinuz_bytes: files.vmlinuz.bytes,
        initramfs_bytes: files.initramfs.bytes,
        agent_bytes: files.agent.bytes,
        budget_bytes: BUDGET,
    };
    sizes.check()?;
    Ok(Dist { folder, sizes })
}

/// Adds a compilation target to the toolchain in use, if it is not there.
fn add_target(target: &str) -> Result<()> {
    let installed = run_quietly(command("rustup").args(["target", "list", "--installed"]))?;
    if installed.lines().any(|line| line == target) {
        return Ok(());
    }
    run(command("rustup").args(["target", "add", target]))
}

impl Sizes {
    fn check(&self) -> Result<()> {
        let mebibytes = |bytes: u64| bytes as f64 / MEBIBYTE as f64;
        let total = self.vmlinuz_bytes + self.initramfs_bytes;
        for (name, bytes) in [
            ("kernel", self.vmlinuz_bytes),
            ("initramfs", self.initramfs_bytes),
            ("kernel + initramfs", total),
            ("budget", self.budget_bytes),
        ] {
            println!("{name:<20} {:>7.2} MiB", mebibytes(bytes));
        }
        if total > self.budget_bytes {
            bail!("kernel and initramfs exceed the budget; look for the largest modules in manifest.json");
        }
        Ok(())
    }
}
