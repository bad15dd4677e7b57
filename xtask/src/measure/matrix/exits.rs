//! `cargo xtask matrix exits`: machines that begin with the network, and are not to boot from there, come to their disk.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use farrier_tests::cells::exit::{Cell, Loader, Machine};
use farrier_tests::cells::netboot::Addresses;
use farrier_tests::machine::boot_machine::Firmware;
use farrier_tests::network::netboot_loaders::{Architecture, Bootable};
use serde::{Deserialize, Serialize};

use super::at_once;
use crate::book::page::machine;
use crate::build::dist;
use crate::host::command::run_quietly;
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, read_json, write_json};

const PAGE: &str = "docs/src/loader-exits.md";

/// What the name of a commit ends with where files are other ones.
const CHANGED: &str = " with changes";

/// What is no cell, and why.
const LEFT_OUT: &[[&str; 2]] = &[
    [
        "`ipxe.efi` of Debian 12",
        "it does not return to the firmware, whether its script ends with success or failure; `snponly.efi`, and `ipxe.efi` of \
         Debian 13, do",
    ],
    [
        "Secure Boot with iPXE, or with the boot interface `http`",
        "Debian signs no iPXE, and its signed GRUB has no module `http`: such firmware refuses to load the others",
    ],
    [
        "`grubnetx64-installer.efi.signed`",
        "it looks for its configuration in the folder of Debian's installer, and so never asks `farrier`",
    ],
    ["systemd-boot and rEFInd", "they read their configuration from a disk"],
    [
        "GRUB for BIOS",
        "Debian has modules and no image of it; `farrier` sends machines with BIOS to PXELINUX or iPXE",
    ],
    ["IPv6", "no firmware has booted by it yet ([why](netboot.md#dhcp))"],
];

/// A fix that was undone by hand to see whether a cell turns red.
struct Undone {
    /// The fix and where it is.
    what: &'static str,
    /// The cell that was run.
    cell: &'static str,
    /// What the machine did.
    seen: &'static str,
}

/// All of them.
const UNDONE: &[Undone] = &[
    Undone {
        what: "GRUB starts the boot loader of a disk before it ends (`grub.cfg.template`)",
        cell: "uefi-pxe-bootx64.efi-unknown",
        seen: "GRUB ends, the firmware shows its menu, and nothing starts",
    },
    Undone {
        what: "iPXE ends as one that has failed (`boot.ipxe.template`)",
        cell: "uefi-ipxe-snponly.efi-unknown",
        seen: "iPXE ends, the firmware shows its menu, and nothing starts",
    },
    Undone {
        what: "PXELINUX gets a configuration for machines without any (`provisioning/files.rs`)",
        cell: "bios-pxe-pxelinux.0-unknown",
        seen: "PXELINUX finds no configuration, and nothing starts",
    },
    Undone {
        what: "a deployed machine may have its script where there is a fallback (`serve/options/netboot.rs`)",
        cell: "bios-ipxe-boot.ipxe-fallback",
        seen: "the script of the node is refused, and the machine comes to its disk only by the order of its firmware",
    },
];

/// Starts machines from the network that are not to boot from there, with each boot loader and firmware: the system on their
/// disk starts.
#[derive(Debug, Args)]
pub struct ExitsArguments {
    /// Only cells whose names, such as uefi-pxe-grubx64.efi-unknown, have all these parts, separated by commas.
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    filter: Vec<String>,
    /// Only tells which cells there are.
    #[arg(long)]
    list: bool,
    /// How many machines run at a time [default: one for each processor].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    machines: Option<u8>,
    /// Program of a conductor that was built already.
    #[arg(long, value_name = "FILE", conflicts_with = "page")]
    farrier: Option<PathBuf>,
    /// Writes the result as JSON, after each cell.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Goes on with what an earlier run wrote there, if only the book, xtask and tests have changed since: green cells are not run
    /// again.
    #[arg(long, requires = "json")]
    resume: bool,
    /// Writes the page of the book with the result of all cells.
    #[arg(long, conflicts_with_all = ["filter", "list"])]
    page: bool,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// Runs the command. A cell that is red is an error once all were tried.
pub fn exits(arguments: &ExitsArguments) -> Result<()> {
    let cells = super::chosen(Cell::all(), &arguments.filter)?;
    if arguments.list {
        cells.iter().for_each(|cell| println!("{cell}"));
        return Ok(());
    }
    let is_foreign = cells.iter().any(|cell| cell.loader.architecture() == Architecture::Aarch64);
    let foreign = is_foreign.then_some(Purpose::MachineAarch64);
    let purposes: Vec<_> = [Purpose::Machine].into_iter().chain(foreign).collect();
    requirements::ensure(&purposes, !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let loaders = dist::network_loaders_of_aarch64(&workspace)?;
    let farrier = match &arguments.farrier {
        Some(farrier) => std::path::absolute(farrier)?,
        None => workspace.build_conductor()?,
    };
    let file = arguments.json.as_deref();
    let earlier = earlier(arguments, Report::new(tried(&workspace.root)?))?;
    let (green, open): (Vec<_>, Vec<_>) = cells.into_iter().partition(|cell| earlier.seconds(cell).is_some());
    let kept = green.iter().map(|cell| (cell.to_string(), earlier.seconds(cell)));
    let report = Mutex::new(Report { cells: kept.collect(), ..Report::new(earlier.commit.clone()) });
    at_once(open, arguments.machines, |cell| {
        let result = attempt(cell, &farrier, &loaders, &workspace);
        match &result {
            Ok(took) => println!("{cell}: the disk starts after {took:.0?}"),
            Err(error) => println!("{cell}: RED: {error:#}"),
        }
        let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
        report.cells.insert(cell.to_string(), result.ok().map(|took| took.as_secs()));
        if let Err(error) = write_json(file, &*report) {
            println!("{error:#}");
        }
    });
    let report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{}", report.line());
    if report.red() > 0 {
        bail!("{} cells are red", report.red());
    }
    if arguments.page { workspace.write_page(PAGE, &report.page()) } else { Ok(()) }
}

/// What cells depend on: the last commit of more than the book, this program and tests of crates. Other changes make it none.
fn tried(root: &Path) -> Result<String> {
    let of_others = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(root).args(arguments).args(["--", ".", ":!*.md", ":!docs", ":!xtask", ":!*/tests/*"]);
        run_quietly(&mut git)
    };
    let is_changed = !of_others(&["status", "--porcelain"])?.is_empty();
    let commit = of_others(&["log", "-1", "--format=%h", "--abbrev=12"])?;
    Ok(commit.trim().to_owned() + if is_changed { CHANGED } else { "" })
}

/// What the run that is gone on with has found, if that was the same, or nothing.
fn earlier(arguments: &ExitsArguments, nothing: Report) -> Result<Report> {
    let file = arguments.json.as_deref().filter(|file| arguments.resume && file.exists());
    let Some(file) = file else { return Ok(nothing) };
    let earlier = read_json::<Report>(file)?;
    if earlier.commit == nothing.commit && !nothing.commit.ends_with(CHANGED) {
        return Ok(earlier);
    }
    println!("{} is of {}: all cells are run with {}", file.display(), earlier.commit, nothing.commit);
    Ok(nothing)
}

fn attempt(cell: Cell, farrier: &Path, loaders: &[PathBuf], workspace: &Workspace) -> Result<Duration> {
    let folder = workspace.cache().join(format!("exits-{}-{cell}", std::process::id()));
    // No ramdisk is ever loaded.
    let bootable = Bootable { dist: folder.clone(), loaders: loaders.to_owned() };
    let result = cell.run(farrier, &bootable, &folder);
    fs::remove_dir_all(&folder).ok();
    result
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    /// What was tried.
    commit: String,
    /// The seconds until the disk started, by the name of the cell; none for one that is red.
    cells: BTreeMap<String, Option<u64>>,
}

impl Report {
    fn new(commit: String) -> Self {
        Self { commit, cells: BTreeMap::new() }
    }

    fn seconds(&self, cell: &Cell) -> Option<u64> {
        self.cells.get(&cell.to_string()).copied().flatten()
    }

    fn red(&self) -> usize {
        self.cells.values().filter(|seconds| seconds.is_none()).count()
    }

    fn line(&self) -> String {
        let seconds: u64 = self.cells.values().flatten().sum();
        format!("{} cells, {seconds} s of emulated machines, {} cells red", self.cells.len(), self.red())
    }

    fn page(&self) -> String {
        let mut page = format!(
            "# From the network to the disk

This page is written by `cargo xtask matrix exits --page`.

A cell is an emulated machine whose boot order begins with the network, and which should not boot from there: the boot loader
has to give way to the disk. The firmware is SeaBIOS, OVMF, OVMF with Microsoft's keys (Secure Boot) or AAVMF (aarch64). The
boot loader is the one in Debian's package; GRUB for `http` is [made of Debian's modules](netboot.md#grub-and-http-boot), and
`ipxe-arm64.efi` and `ipxe.efi` are those of Debian 13. `farrier` serves all files. Its own dnsmasq, or one of the site with the options of
[this book](netboot.md#boot-sequence-with-ipxe), serves DHCP.

| machine | meaning |
|---|---|
| unknown | `farrier` has no node for it |
| deployed | its node is `active`, and the instance is on the disk |
| fallback | the same, with `farrier serve --enable-netboot-fallback true` |
| script | unknown, with `farrier serve --ipxe-fallback-script`, and a script that ends with success |

A cell is green if the firmware has loaded the boot loader, the boot loader has printed `farrier`'s configuration for
this machine, and the system on the disk has started. The columns have the seconds from power on, with emulated processors, on a machine
with other work. UEFI firmware tries its other network protocols after iPXE, half a minute each. A *script* is the same however iPXE
was loaded: it is tried with the loaders that `farrier`'s own DHCP names.

{}, of commit {}, on {}.

| firmware | boot interface | loader | addresses by | unknown | deployed | fallback | script |
|---|---|---|---|---|---|---|---|
",
            self.line(),
            self.commit,
            machine(),
        );
        for loader in Loader::ALL {
            let Loader { method, file, .. } = loader;
            let firmware = match loader.firmware {
                Firmware::SeaBios => "SeaBIOS",
                Firmware::Aavmf => "AAVMF",
                Firmware::OvmfMicrosoft | Firmware::OvmfTestKey => "OVMF, Secure Boot",
                Firmware::Ovmf => "OVMF",
            };
            let by = if loader.addresses == Addresses::Conductor { "`farrier`" } else { "the site" };
            let seconds = Machine::ALL.map(|machine| {
                self.seconds(&Cell { loader, machine }).map(|seconds| seconds.to_string()).unwrap_or_default()
            });
            // Writing to a string cannot fail.
            writeln!(page, "| {firmware} | `{method}` | `{file}` | {by} | {} |", seconds.join(" | ")).ok();
        }
        page.push_str("\n`boot.ipxe` is loaded by the iPXE on QEMU's network card.\n");
        page.push_str(
            "\n## Left out\n\nThe first reason was seen; the others are what the packages contain.\n\n| what | why |\n|---|---|\n",
        );
        for [what, why] in LEFT_OUT {
            // Writing to a string cannot fail.
            writeln!(page, "| {what} | {why} |").ok();
        }
        page.push_str(
            "\n## What undoing a fix turns red\n\nEach was undone on its own, and the cell was run.\n\n\
             | undone | cell | what was seen |\n|---|---|---|\n",
        );
        for Undone { what, cell, seen } in UNDONE {
            writeln!(page, "| {what} | `{cell}` | {seen} |").ok();
        }
        page
    }
}
