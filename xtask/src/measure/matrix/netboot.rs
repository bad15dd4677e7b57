//! `cargo xtask matrix netboot`: a machine is inspected, deployed and rescued by each boot interface and firmware.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use farrier_tests::cells::netboot::{Addresses, Cell, Life};
use farrier_tests::machine::Firmware;
use farrier_tests::network::netboot_loaders::{Architecture, Bootable};

use crate::build::dist;
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::Workspace;

const PAGE: &str = "docs/src/netboot-matrix.md";

/// Inspects, deploys and rescues a machine by each boot interface and firmware, with a conductor that serves everything.
#[derive(Debug, Args)]
pub struct NetbootArguments {
    /// Only combinations whose names, such as pxe-uefi, have all these parts, separated by commas.
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    filter: Vec<String>,
    /// Folder of a ramdisk for x86_64 that was built already: vmlinuz and initramfs.img.
    #[arg(long, value_name = "FOLDER")]
    dist: Option<PathBuf>,
    /// The same for aarch64.
    #[arg(long, value_name = "FOLDER")]
    dist_aarch64: Option<PathBuf>,
    /// Writes the page of the book with the result of all combinations.
    #[arg(long, conflicts_with = "filter")]
    page: bool,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// Runs the command. A combination that does not boot is an error once all were tried.
pub fn netboot(arguments: &NetbootArguments) -> Result<()> {
    let cells = super::chosen(Cell::ALL, &arguments.filter)?;
    let is_needed = |architecture: &Architecture| cells.iter().any(|cell| cell.architecture == *architecture);
    let architectures: Vec<_> = Architecture::ALL.into_iter().filter(is_needed).collect();
    requirements::ensure(&purposes(&architectures), !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let built = |architecture| Ok((architecture, bootable(arguments, &workspace, architecture)?));
    let bootables = architectures.into_iter().map(built).collect::<Result<BTreeMap<_, _>>>()?;
    let farrier = workspace.build_conductor()?;
    let mut outcomes = Vec::new();
    for cell in cells {
        let result = attempt(cell, &farrier, &bootables[&cell.architecture], &workspace);
        match &result {
            Ok(Life { inspect, deploy, rescue }) => {
                println!("{cell}: {inspect:.0?} to inspect, {deploy:.0?} to deploy, {rescue:.0?} to rescue");
            }
            Err(error) => println!("{cell}: {error:#}"),
        }
        outcomes.push((cell, result.ok()));
    }
    if outcomes.iter().any(|(_, life)| life.is_none()) {
        bail!("not every combination boots");
    }
    match arguments.page {
        true => workspace.write_page(PAGE, &page(&outcomes)),
        false => Ok(()),
    }
}

fn purposes(architectures: &[Architecture]) -> Vec<Purpose> {
    let mut purposes = vec![Purpose::Dist, Purpose::Machine];
    if architectures.contains(&Architecture::Aarch64) {
        // The compiler of C for another architecture is from PyPI.
        purposes.extend([Purpose::MachineAarch64, Purpose::Python]);
    }
    purposes
}

/// What machines of an architecture boot. Sizes and speed are those of the ramdisk for x86_64; the other one only has to
/// do its work.
fn bootable(
    arguments: &NetbootArguments,
    workspace: &Workspace,
    architecture: Architecture,
) -> Result<Bootable> {
    let name = architecture.as_str();
    let (built, loaders) = match architecture {
        Architecture::X86_64 => (&arguments.dist, Vec::new()),
        Architecture::Aarch64 => (&arguments.dist_aarch64, dist::network_loaders_of_aarch64(workspace)?),
    };
    let dist = match (built, architecture) {
        (Some(folder), _) => std::path::absolute(folder)?,
        (None, Architecture::X86_64) => dist::build(workspace, name, dist::Firmware::None)?.folder,
        (None, Architecture::Aarch64) => {
            dist::build_quickly(workspace, name, &workspace.build_image_builder()?)?.folder
        }
    };
    Ok(Bootable { dist, loaders })
}

/// The thread of a cell is in the network of that.
fn attempt(cell: Cell, farrier: &Path, bootable: &Bootable, workspace: &Workspace) -> Result<Life> {
    let folder = workspace.cache().join(format!("netboot-{}-{cell}", std::process::id()));
    let result = thread::scope(|scope| {
        let ran = scope.spawn(|| cell.live(farrier, bootable, &folder)).join();
        ran.unwrap_or_else(|_| Err(anyhow!("{cell} panicked")))
    });
    fs::remove_dir_all(&folder).ok();
    result
}

fn page(outcomes: &[(Cell, Option<Life>)]) -> String {
    let mut page = "# What boots from the network

This page is written by `cargo xtask matrix netboot --page`.

In each combination `farrier` alone serves a machine of QEMU: addresses by its dnsmasq, all files by its TFTP and HTTP. The
firmware is real, SeaBIOS, OVMF or, of aarch64, AAVMF; it does what DHCP says. UEFI firmware loads shim or iPXE itself. SeaBIOS loads through the iPXE on QEMU's card, which also is the iPXE of
`ipxe`. iPXE asks the boot configuration API for its script. With
`proxy`, another dnsmasq gives addresses, and UEFI too loads by the iPXE on the card. The machine is inspected, an image is
written and started, and the machine is rescued. A combination is good when each operation has come to its end, the kernel
has started with the conductor's parameters, and the trace of the node has each stage. The GRUB of `http` is [made with
the module http](netboot.md#grub-and-http-boot). Processors are emulated, and iPXE for aarch64 is that of Debian 13. The seconds are those of the run on a machine with
other work, and no measure of Farrier.

| boot interface | firmware | architecture | inspect, s | deploy, s | rescue, s |
|---|---|---|---|---|---|
"
    .to_owned();
    for (cell, life) in outcomes {
        let mut firmware = if cell.firmware == Firmware::Bios { "bios" } else { "uefi" }.to_owned();
        if cell.addresses == Addresses::Site {
            firmware += ", proxy";
        }
        let took = life.map_or_else(
            || "does not boot | |".to_owned(),
            |Life { inspect, deploy, rescue }| {
                [inspect, deploy, rescue].map(|took| took.as_secs().to_string()).join(" | ")
            },
        );
        // A text can always be written to.
        writeln!(page, "| `{}` | {firmware} | {} | {took} |", cell.method, cell.architecture)
            .unwrap_or_default();
    }
    page
}
