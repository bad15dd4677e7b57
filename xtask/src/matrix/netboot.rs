//! `cargo xtask matrix netboot`: the ramdisk is booted from the network by each boot interface and firmware.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use farrier_tests::netboot_cell::Cell;

use crate::dist;
use crate::requirements::{self, Purpose};
use crate::workspace::Workspace;

const PAGE: &str = "docs/src/netboot-matrix.md";

/// Boots the ramdisk from the network by each boot interface and firmware, with a conductor that serves everything.
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
            Ok(took) => println!("{cell}: {} s", took.as_secs()),
            Err(error) => println!("{cell}: {error:#}"),
        }
        outcomes.push((cell, result.ok()));
    }
    if outcomes.iter().any(|(_, took)| took.is_none()) {
        bail!("not every combination boots");
    }
    match arguments.page {
        true => workspace.write_page(PAGE, &page(&outcomes)),
        false => Ok(()),
    }
}

/// The thread of a cell is in the network of that.
fn attempt(cell: Cell, farrier: &Path, dist: &Path, workspace: &Workspace) -> Result<Duration> {
    let folder = workspace.cache().join(format!("netboot-{}-{cell}", std::process::id()));
    let result = thread::scope(|scope| {
        let ran = scope.spawn(|| cell.run(farrier, dist, &folder)).join();
        ran.unwrap_or_else(|_| Err(anyhow!("{cell} panicked")))
    });
    fs::remove_dir_all(&folder).ok();
    result
}

fn page(outcomes: &[(Cell, Option<Duration>)]) -> String {
    let mut page = "# What boots from the network

This page is written by `cargo xtask matrix netboot --page`.

In each combination `farrier` alone serves a machine: addresses by its dnsmasq, all files by its TFTP and HTTP. The
firmware is real, SeaBIOS or OVMF, with the iPXE that QEMU's network cards have; it does what DHCP says. A combination
is good when the kernel has started with the conductor's parameters, and the trace of the node tells of each stage. The
processor is emulated.

| boot interface | firmware | from power on to kernel and initramfs, s |
|---|---|---|
"
    .to_owned();
    for (cell, took) in outcomes {
        let name = cell.to_string();
        let (method, firmware) = name.rsplit_once('-').unwrap_or_default();
        let took = took.map_or_else(|| "does not boot".to_owned(), |took| took.as_secs().to_string());
        // A text can always be written to.
        writeln!(page, "| `{method}` | {firmware} | {took} |").unwrap_or_default();
    }
    page
}
