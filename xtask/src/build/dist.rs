//! `cargo xtask dist`: agent, kernel and ramdisk in `dist/<arch>`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use farrier_linux::process::PROGRAMS;
use serde::{Deserialize, Serialize};

use super::debian_packages::Packages;
use super::kernel_package;
use super::libblkid::Libblkid;
use super::zig::Zig;
use crate::host::command::{command, run, run_quietly};
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, cargo, patient_cargo, read_json, write_json};

const MEBIBYTE: u64 = 1 << 20;
/// Largest sum of kernel and initramfs without firmware; much more does not boot in 256 MiB of memory.
const BUDGET: u64 = 40 * MEBIBYTE;
/// The same with the firmware of common network cards and host bus adapters.
const BUDGET_WITH_FIRMWARE: u64 = 64 * MEBIBYTE;
/// Largest ramdisk once it is unpacked: in a machine with 256 MiB, firmware, kernel and the packed ramdisk leave
/// 85 MiB, of which a file system in memory takes half. The kernel drops what is beyond.
const BUDGET_UNPACKED: u64 = 42 * MEBIBYTE;
/// Debian's packages with that firmware.
const FIRMWARE_PACKAGES: &[&str] =
    &["firmware-bnx2", "firmware-bnx2x", "firmware-misc-nonfree", "firmware-qlogic", "firmware-realtek"];
/// Every form of the ramdisk that farrier-image makes.
const FORMATS: &str = "iso,uki,netboot,ironic";

/// Builds the agent, its ramdisk and the kernel into `dist/ARCH`, and checks their size.
#[derive(Debug, Args)]
pub struct DistArguments {
    /// Architecture to build for.
    #[arg(long, default_value = "x86_64", value_parser = ["x86_64", "aarch64"])]
    arch: String,
    /// Has the agent compiled and linked in a fraction of the time: larger than what ships, and held to no budget.
    #[arg(long)]
    quick: bool,
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
    /// The ISO image.
    pub iso_bytes: u64,
    /// The unified kernel image.
    pub uki_bytes: u64,
    /// What kernel and ramdisk may take together.
    pub budget_bytes: u64,
    /// The initial ramdisk, unpacked.
    pub unpacked_bytes: u64,
    /// What that may take.
    pub budget_unpacked_bytes: u64,
    /// The ramdisk with the firmware of common devices, where it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initramfs_with_firmware_bytes: Option<u64>,
    /// What kernel and that ramdisk may take together.
    pub budget_with_firmware_bytes: u64,
}

/// Whether a ramdisk with firmware is made too, to see that it keeps to its budget. It is measured alone:
/// the firmware is no part of Debian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firmware {
    /// No.
    None,
    /// That of common network cards and host bus adapters.
    Common,
}

/// How the agent is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Profile {
    /// Linked as a whole, by one processor for minutes.
    Shipped,
    /// As tests are, crate by crate and without optimisation, beside whatever else is done.
    Quick,
}

impl Profile {
    /// The folder below a target's in which cargo puts what it built.
    fn folder(self) -> &'static str {
        match self {
            Self::Shipped => "release",
            Self::Quick => "debug",
        }
    }
}

/// What was built.
#[derive(Debug)]
pub struct Dist {
    /// The folder `dist/<arch>`.
    pub folder: PathBuf,
    /// The modules of the kernel.
    pub modules: PathBuf,
    /// Where the boot loaders' packages are unpacked.
    pub boot_loaders: PathBuf,
    /// Where those of the helper programs are.
    pub programs: PathBuf,
    /// The builder.
    pub builder: PathBuf,
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
    #[serde(rename = "farrier.iso")]
    iso: ManifestFile,
    #[serde(rename = "farrier.efi")]
    uki: ManifestFile,
}

#[derive(Deserialize)]
struct ManifestFile {
    bytes: u64,
}

/// Runs the command.
pub fn dist(arguments: &DistArguments) -> Result<()> {
    let mut purposes = vec![Purpose::Dist];
    if arguments.arch != std::env::consts::ARCH {
        purposes.push(Purpose::Python);
    }
    requirements::ensure(&purposes, !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let dist = if arguments.quick {
        build_quickly(&workspace, &arguments.arch, &workspace.build_image_builder()?)?
    } else {
        build(&workspace, &arguments.arch, Firmware::Common)?
    };
    write_json(arguments.json.as_deref(), &dist.sizes)
}

/// Builds `dist/<arch>` and checks it against the budget.
pub fn build(workspace: &Workspace, arch: &str, firmware: Firmware) -> Result<Dist> {
    build_with(workspace, arch, firmware, &workspace.build_image_builder()?)
}

/// As [`build`], with this builder.
pub fn build_with(workspace: &Workspace, arch: &str, firmware: Firmware, builder: &Path) -> Result<Dist> {
    let dist = assemble(workspace, arch, firmware, Profile::Shipped, builder)?;
    dist.sizes.check()?;
    Ok(dist)
}

/// Builds `dist/<arch>` with an agent that was compiled and linked quickly: to see that it boots, not to ship it or to
/// measure it.
pub fn build_quickly(workspace: &Workspace, arch: &str, builder: &Path) -> Result<Dist> {
    assemble(workspace, arch, Firmware::None, Profile::Quick, builder)
}

/// Links the agent that ships for an architecture: for minutes it keeps one processor busy, and leaves the other one to
/// others.
pub fn link_agent(workspace: &Workspace, arch: &str) -> Result<()> {
    build_agent(workspace, arch, Profile::Shipped)
}

/// Has the packages in the cache that `dist/<arch>` is made from.
pub fn fetch(workspace: &Workspace, arch: &str) -> Result<()> {
    let packages = Packages::of(workspace, arch)?;
    kernel_package::fetch(&packages)?;
    packages.unpacked(boot_loaders(arch))?;
    programs(&packages)?;
    Ok(())
}

/// Has in the cache what the agent links that is not in Rust.
pub fn compile_c(workspace: &Workspace, arch: &str) -> Result<()> {
    CompilerOfC::of(workspace, arch).map(|_| ())
}

fn assemble(
    workspace: &Workspace,
    arch: &str,
    firmware: Firmware,
    profile: Profile,
    builder: &Path,
) -> Result<Dist> {
    build_agent(workspace, arch, profile)?;
    let agent = workspace.target.join(format!("{}/{}/farrier-agent", target(arch), profile.folder()));
    let packages = Packages::of(workspace, arch)?;
    let kernel = kernel_package::fetch(&packages)?;
    let boot_loaders = packages.unpacked(boot_loaders(arch))?;
    let folder = workspace.root.join("dist").join(arch);
    let programs = programs(&packages)?;
    let cache = module_cache(workspace);
    let options = [
        ("--kernel", &kernel.image),
        ("--modules", &kernel.modules),
        ("--agent", &agent),
        ("--programs-root", &programs),
        ("--cache", &cache),
    ];
    let build = |folder: &Path| {
        let mut build = command(builder);
        build.arg("build").arg("--output").arg(folder);
        options.iter().fold(build, |mut build, (option, path)| {
            build.arg(option).arg(path);
            build
        })
    };
    run(build(&folder).args(["--format", FORMATS, "--boot-loaders"]).arg(&boot_loaders))?;
    let files = read_json::<Manifest>(&folder.join("manifest.json"))?.files;
    let initramfs_with_firmware_bytes = match firmware {
        Firmware::None => None,
        Firmware::Common => Some(with_firmware(workspace, arch, build)?),
    };
    let sizes = Sizes {
        vmlinuz_bytes: files.vmlinuz.bytes,
        initramfs_bytes: files.initramfs.bytes,
        agent_bytes: files.agent.bytes,
        iso_bytes: files.iso.bytes,
        uki_bytes: files.uki.bytes,
        budget_bytes: BUDGET,
        unpacked_bytes: unpacked_bytes(&folder.join("initramfs.img"))?,
        budget_unpacked_bytes: BUDGET_UNPACKED,
        initramfs_with_firmware_bytes,
        budget_with_firmware_bytes: BUDGET_WITH_FIRMWARE,
    };
    print!("{}", sizes.table());
    let builder = builder.to_owned();
    Ok(Dist { folder, modules: kernel.modules, boot_loaders, programs, builder, sizes })
}

/// Where compressed modules are kept between builds.
pub fn module_cache(workspace: &Workspace) -> PathBuf {
    workspace.cache().join("modules")
}

/// Unpacks the packages of the helper programs that every ramdisk has, and of the libraries they need, in the
/// distribution's newest versions: what is installed here decides nothing.
fn programs(packages: &Packages) -> Result<PathBuf> {
    let always = PROGRAMS.iter().filter(|program| !program.is_optional).map(|program| program.package);
    let is_library = |name: &str| name.starts_with("lib") || name.starts_with("zlib");
    packages.unpacked(&packages.with_needed(&always.collect::<Vec<_>>(), is_library)?)
}

/// Size of a gzip file's content, which stands in its last four bytes (RFC 1952, section 2.3.1).
fn unpacked_bytes(file: &Path) -> Result<u64> {
    let content = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let size = content.last_chunk().with_context(|| format!("{} is empty", file.display()))?;
    Ok(u64::from(u32::from_le_bytes(*size)))
}

/// Size of the ramdisk with the firmware of common devices, which `build` makes in a folder.
fn with_firmware(workspace: &Workspace, arch: &str, build: impl Fn(&Path) -> Command) -> Result<u64> {
    let firmware = Packages::of_firmware(workspace)?.unpacked(FIRMWARE_PACKAGES)?.join("lib/firmware");
    let folder = workspace.cache().join(format!("with-firmware-{arch}"));
    run(build(&folder).args(["--firmware", "common", "--firmware-root"]).arg(firmware))?;
    let bytes = fs::metadata(folder.join("initramfs.img"))?.len();
    fs::remove_dir_all(folder)?;
    Ok(bytes)
}

/// The name of the compilation target for an architecture.
fn target(arch: &str) -> String {
    format!("{arch}-unknown-linux-musl")
}

/// Builds the static agent.
fn build_agent(workspace: &Workspace, arch: &str, profile: Profile) -> Result<()> {
    let target = target(arch);
    add_target(&target)?;
    let mut build = match profile {
        Profile::Shipped => cargo(),
        Profile::Quick => patient_cargo(),
    };
    build.args(["build", "-p", "farrier-agent", "--target", &target]);
    let mut flags = Vec::new();
    match profile {
        Profile::Shipped => _ = build.arg("--release"),
        // Symbols are all that the profile of tests would leave in.
        Profile::Quick => flags.push("-Cstrip=symbols"),
    }
    let compiler = CompilerOfC::of(workspace, arch)?;
    compiler.announce(&mut build, &target.replace('-', "_"));
    if compiler.zig.is_some() {
        // The toolchain's own linker and start-up files need nothing of the system.
        build.env(cargo_variable(&target, "LINKER"), "rust-lld");
        flags.push("-Clink-self-contained=yes");
    }
    if !flags.is_empty() {
        build.env(cargo_variable(&target, "RUSTFLAGS"), flags.join(" "));
    }
    run(build.current_dir(&workspace.root))
}

/// The variable by which cargo is told something for one target.
fn cargo_variable(target: &str, name: &str) -> String {
    format!("CARGO_TARGET_{}_{name}", target.replace('-', "_").to_uppercase())
}

/// What compiles and links for an architecture what is not in Rust.
struct CompilerOfC {
    libblkid: Libblkid,
    /// Where the system's own compiler is for another architecture.
    zig: Option<Zig>,
}

impl CompilerOfC {
    /// Has it in the cache.
    fn of(workspace: &Workspace, arch: &str) -> Result<Self> {
        let is_foreign = arch != std::env::consts::ARCH;
        let zig = if is_foreign { Some(Zig::install(workspace, arch)?) } else { None };
        let libblkid = Libblkid::build(workspace, arch, zig.as_ref())?;
        Ok(Self { libblkid, zig })
    }

    /// Has `build` use it, with the target's name as variables have it.
    fn announce(&self, build: &mut Command, target: &str) {
        self.libblkid.announce(build, target);
        let Some(zig) = &self.zig else {
            build.env(format!("CC_{target}"), "musl-gcc");
            return;
        };
        build.env(format!("CC_{target}"), &zig.compiler).env(format!("AR_{target}"), &zig.archiver);
        // What it compiles without optimisation would call a library of checks that is not there.
        build.env(format!("CFLAGS_{target}"), "-fno-sanitize=undefined");
    }
}

/// Packages with the boot loaders of an architecture.
fn boot_loaders(arch: &str) -> &'static [&'static str] {
    match arch {
        "aarch64" => &["grub-efi-arm64-signed", "shim-signed", "systemd-boot-efi"],
        _ => &["grub-efi-amd64-signed", "isolinux", "shim-signed", "syslinux-common", "systemd-boot-efi"],
    }
}

/// Unpacks what machines of aarch64 load from the network before their kernel, and what GRUB is made of.
///
/// # Errors
///
/// A package cannot be downloaded.
pub fn network_loaders_of_aarch64(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let grub = ["grub-efi-arm64-bin", "grub-efi-arm64-signed", "shim-signed"];
    Ok(vec![
        Packages::of(workspace, "aarch64")?.unpacked(&grub)?,
        Packages::of_newer_ipxe(workspace)?.unpacked(&["ipxe"])?,
    ])
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
    fn total(&self) -> u64 {
        self.vmlinuz_bytes + self.initramfs_bytes
    }

    /// Nothing when it was not made.
    fn total_with_firmware(&self) -> Option<u64> {
        self.initramfs_with_firmware_bytes.map(|bytes| self.vmlinuz_bytes + bytes)
    }

    /// What was measured beside what is allowed.
    fn table(&self) -> String {
        let mebibytes = |bytes: u64| format!("{:.2} MiB", bytes as f64 / MEBIBYTE as f64);
        let mut table = format!("{:<30} {:>10}  {:>10}\n", "", "measured", "budget");
        for (name, bytes, budget) in [
            ("kernel", Some(self.vmlinuz_bytes), None),
            ("initramfs", Some(self.initramfs_bytes), None),
            ("kernel + initramfs", Some(self.total()), Some(self.budget_bytes)),
            ("the same with firmware", self.total_with_firmware(), Some(self.budget_with_firmware_bytes)),
            ("initramfs, unpacked", Some(self.unpacked_bytes), Some(self.budget_unpacked_bytes)),
            ("agent, not compressed", Some(self.agent_bytes), None),
            ("ISO image", Some(self.iso_bytes), None),
            ("unified kernel image", Some(self.uki_bytes), None),
        ] {
            let Some(bytes) = bytes else { continue };
            let budget = budget.map(mebibytes).unwrap_or_default();
            table += format!("{name:<30} {:>10}  {budget:>10}", mebibytes(bytes)).trim_end();
            table.push('\n');
        }
        table
    }

    fn check(&self) -> Result<()> {
        if self.total() > self.budget_bytes {
            bail!("kernel and initramfs exceed the budget; look for the largest modules in manifest.json");
        }
        if self.unpacked_bytes > self.budget_unpacked_bytes {
            bail!("the unpacked ramdisk exceeds its budget; look for the largest files in manifest.json");
        }
        if self.total_with_firmware().is_some_and(|bytes| bytes > self.budget_with_firmware_bytes) {
            bail!("kernel and initramfs with firmware exceed the budget; look at what counts as common");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(initramfs_bytes: u64, initramfs_with_firmware_bytes: Option<u64>) -> Sizes {
        Sizes {
            vmlinuz_bytes: 8 * MEBIBYTE,
            initramfs_bytes,
            agent_bytes: 0,
            iso_bytes: 0,
            uki_bytes: 0,
            budget_bytes: BUDGET,
            unpacked_bytes: BUDGET_UNPACKED,
            budget_unpacked_bytes: BUDGET_UNPACKED,
            initramfs_with_firmware_bytes,
            budget_with_firmware_bytes: BUDGET_WITH_FIRMWARE,
        }
    }

    #[test]
    fn what_exceeds_a_budget_fails() {
        let (plain, firmware) = (32 * MEBIBYTE, 56 * MEBIBYTE);
        for (sizes, expected) in [
            (sizes(plain, None), None),
            (sizes(plain, Some(firmware)), None),
            (sizes(plain + 1, None), Some("kernel and initramfs exceed the budget")),
            (sizes(plain, Some(firmware + 1)), Some("with firmware exceed the budget")),
            (
                Sizes { unpacked_bytes: BUDGET_UNPACKED + 1, ..sizes(plain, None) },
                Some("unpacked ramdisk exceeds"),
            ),
        ] {
            let error = sizes.check().err().map(|error| error.to_string());
            match expected {
                None => assert_eq!(error, None),
                Some(text) => assert!(error.as_ref().is_some_and(|error| error.contains(text)), "{error:?}"),
            }
        }
    }

    #[test]
    fn the_table_shows_what_was_measured_beside_its_budget() {
        let table = sizes(32 * MEBIBYTE, Some(48 * MEBIBYTE)).table();
        assert!(table.contains("kernel + initramfs              40.00 MiB   40.00 MiB\n"), "{table}");
        assert!(table.contains("the same with firmware          56.00 MiB   64.00 MiB\n"), "{table}");
        assert!(!sizes(1, None).table().contains("firmware"));
    }
}
