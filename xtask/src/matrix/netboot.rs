//! `cargo xtask matrix netboot`: a machine is inspected, deployed and rescued by each boot interface and firmware.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use farrier_tests::netboot_cell::{Cell, Life};

use crate::dist;
use crate::requirements::{self, Purpose};
use crate::workspace::Workspace;

const PAGE: &str = "docs/src/netboot-matrix.md";

/// Inspects, deploys and rescues a machine by each boot interface and firmware, with a conductor that serves everything.
#[derive(Debug, Args)]
pub struct NetbootArguments {
    /// Only combinations whose names, such as pxe-uefi, have all these parts, separated by commas.
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    filter: Vec<String>,
    /// Folder of a ramdisk that was built already: vmlinuz and initramfs.img.
    #[arg(long, value_name = "FOLDER")]
    dist: Option<PathBuf>,
    /// Writes the page of the book with the result of all combinations.
    #[arg(long, conflicts_with = "filter")]
    page: bool,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// Runs the command. A combination that does not boot is an error once all were tried.
pub fn netboot(arguments: &NetbootArguments) -> Result<()> {
    requirements::ensure(&[Purpose::Dist, Purpose::Machine], !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let dist = match &arguments.dist {
        Some(folder) => std::path::absolute(folder)?,
        None => dist::build(&workspace, "x86_64", dist::Firmware::None)?.folder,
    };
    let farrier = workspace.build_conductor()?;
    let is_wanted = |cell: &Cell| {
        let name = cell.to_string();
        arguments.filter.iter().all(|part| name.split('-').any(|word| word == part))
    };
    let mut outcomes = Vec::new();
    for cell in Cell::ALL.into_iter().filter(is_wanted) {
        let result = attempt(cell, &farrier, &dist, &workspace);
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

/// The thread of a cell is in the network of that.
fn attempt(cell: Cell, farrier: &Path, dist: &Path, workspace: &Workspace) -> Result<Life> {
    let folder = workspace.cache().join(format!("netboot-{}-{cell}", std::process::id()));
    let result = thread::scope(|scope| {
        let ran = scope.spawn(|| cell.live(farrier, dist, &folder)).join();
        ran.unwrap_or_else(|_| Err(anyhow!("{cell} panicked")))
    });
    fs::remove_dir_all(&folder).ok();
    result
}

fn page(outcomes: &[(Cell, Option<Life>)]) -> String {
    let mut page = "# What boots from the network

This page is written by `cargo xtask matrix netboot --page`.

In each combination `farrier` alone serves a machine of QEMU: addresses by its dnsmasq, all files by its TFTP and HTTP. The
firmware is real, SeaBIOS or OVMF, with the iPXE that QEMU's network cards have; it does what DHCP says. iPXE asks the boot
configuration API for its script. With `proxy`, another dnsmasq gives addresses. The machine is inspected, an image is written and started, and the machine is rescued.
A combination is good when each operation has come to its end, the kernel has started with the conductor's parameters,
and the trace of the node tells of each stage. The GRUB of `http` is [made with the module http](netboot.md#grub-and-http-boot).

| boot interface | firmware | inspect, s | deploy, s | rescue, s |
|---|---|---|---|---|
"
    .to_owned();
    for (cell, life) in outcomes {
        let name = cell.to_string();
        let proxy = name.strip_suffix("-proxy");
        let (method, firmware) = proxy.unwrap_or(&name).rsplit_once('-').unwrap_or_default();
        let firmware = if proxy.is_some() { format!("{firmware}, proxy") } else { firmware.to_owned() };
        let took = life.map_or_else(
            || "does not boot | |".to_owned(),
            |Life { inspect, deploy, rescue }| {
                [inspect, deploy, rescue].map(|took| took.as_secs().to_string()).join(" | ")
            },
        );
        // A text can always be written to.
        writeln!(page, "| `{method}` | {firmware} | {took} |").unwrap_or_default();
    }
    page
}
