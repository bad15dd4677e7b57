//! `cargo xtask matrix iscsi`: Debian is deployed by iSCSI with each firmware and kind of image, and booted.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::thread;

use anyhow::{Result, bail};
use clap::Args;
use farrier_tests::cells::boot::{DebianImage, Image, Seconds};
use farrier_tests::cells::iscsi::Cell;
use farrier_tests::conductor::office::Equipment;

use crate::build::dist;
use crate::build::instance_image::{self, Content, System, TESTED_MEBIBYTES};
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::Workspace;

const PAGE: &str = "docs/src/iscsi-matrix.md";

/// Memory of the machine on which the conductor writes images by open-iscsi.
const OFFICE_MIB: u32 = 1024;

/// Deploys Debian by iSCSI with each firmware and kind of image, with a config drive, and boots it.
#[derive(Debug, Args)]
pub struct IscsiArguments {
    /// Only combinations whose names, such as openiscsi-uefi-partition, have all these parts, separated by commas.
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
pub fn iscsi(arguments: &IscsiArguments) -> Result<()> {
    let cells = super::chosen(Cell::ALL, &arguments.filter)?;
    requirements::ensure(&[Purpose::Dist, Purpose::InstanceImage, Purpose::Machine], !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let built = dist::build(&workspace, "x86_64", dist::Firmware::None)?;
    let dist = match &arguments.dist {
        Some(folder) => std::path::absolute(folder)?,
        None => built.folder,
    };
    // Without optimisation it is too slow for an emulated processor.
    let farrier = workspace.build_released_conductor()?;
    let equipment = Equipment {
        farrier: &farrier,
        dist: &dist,
        modules: &built.modules,
        memory_mib: OFFICE_MIB,
        has_open_iscsi: true,
    };
    let mut outcomes = Vec::new();
    for cell in cells {
        let image = image_for(cell, &workspace)?;
        let folder = workspace.cache().join(format!("iscsi-{}-{cell}", std::process::id()));
        // A network of its own is one of a thread.
        let run = || cell.run(equipment, &image, &folder);
        let result = thread::scope(|scope| scope.spawn(run).join()).unwrap_or_else(|_| bail!("it crashed"));
        fs::remove_dir_all(&folder).ok();
        match &result {
            Ok(Seconds { deploy, boot }) => {
                println!("{cell}: boots (deployed in {deploy:.0} s, booted in {boot:.0} s)");
            }
            Err(error) => println!("{cell}: FAILED: {error:#}"),
        }
        outcomes.push((cell, result.ok()));
    }
    if outcomes.iter().any(|(_, seconds)| seconds.is_none()) {
        bail!("not every combination boots");
    }
    match arguments.page {
        true => workspace.write_page(PAGE, &page(&outcomes)),
        false => Ok(()),
    }
}

fn image_for(cell: Cell, workspace: &Workspace) -> Result<DebianImage> {
    let content = match cell.image {
        Image::Partition => Content::Partition,
        Image::WholeDisk => Content::USUAL,
    };
    let image = instance_image::cached(workspace, TESTED_MEBIBYTES, System::Cloud, content)?;
    Ok(DebianImage { path: image.path, sha256: image.sha256 })
}

fn page(outcomes: &[(Cell, Option<Seconds>)]) -> String {
    let mut page = "# What boots by iSCSI

This page is written by `cargo xtask matrix iscsi --page`.

In each combination `farrier` deploys Debian 12 with [the deploy interface `iscsi`](iscsi.md#deployed-by-the-conductor) to
a virtual machine with the real ramdisk and firmware, SeaBIOS or OVMF. Then the machine boots from its disk to the login
prompt, in which is the host name that only the config drive knows. A partition image gets a swap partition, and its boot
loader by the agent.

| initiator | where the conductor runs |
|---|---|
| `qemu` | on this computer; the image is on a server that the machine does not reach |
| `open-iscsi` | in another virtual machine, as root, with `iscsid` and Debian's kernel, on a bridge with the machine |

The processors are emulated, with `open-iscsi` the conductor's too: the seconds tell how long the run took, not how fast
Farrier is. [Measured](iscsi-benchmark.md) are others.

| initiator | firmware | image | deployed in s | booted in s |
|---|---|---|---|---|
"
    .to_owned();
    for (cell, seconds) in outcomes {
        let took = match seconds {
            Some(Seconds { deploy, boot }) => format!("{deploy:.0} | {boot:.0}"),
            None => "does not boot |".to_owned(),
        };
        let name = cell.to_string().replace('-', " | ");
        // A text can always be written to.
        writeln!(page, "| {name} | {took} |").unwrap_or_default();
    }
    page
}
