//! `cargo xtask bench iscsi`: writing an image to a disk that an agent exports, beside the agent that writes it itself.
//!
//! Two machines with the same ramdisk wait, one with the kernel's target (LIO), one whose kernel has none, so that its
//! agent has tgtd. In a round each of them writes the image itself, and then has it written, from the first order to the
//! last answer: login, export and their ends are within.

mod machine;
mod page;
mod report;

pub use report::IscsiReport;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use farrier_tests::ramdisk::{Addition, Parts};

use self::machine::{Machine, Writing};
use self::report::Figures;
use super::dense_image::DenseImage;
use crate::book::page as pages;
use crate::build::dist;
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, write_json};

/// Of what the agent does itself, an export has to reach at least this part.
const BUDGET: f64 = 0.8;

/// Writes an image by the agent, and to the disk that the agent exports, by the kernel's target and by tgtd, in virtual
/// machines.
#[derive(Debug, Args)]
pub struct IscsiArguments {
    /// Writes the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the page of the book with the figures.
    #[arg(long)]
    page: bool,
    /// Size of the image in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(2..=4096))]
    image_mib: u64,
    /// How many rounds there are; the median is reported.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// Runs the benchmark. An export that is too slow is an error once the figures are written.
pub fn bench(arguments: &IscsiArguments) -> Result<()> {
    requirements::ensure(&[Purpose::Dist, Purpose::Machine], !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let dist = dist::build(&workspace, "x86_64", dist::Firmware::None)?;
    let writer = workspace.build_released_writer_of_exported_disks()?;
    let folder = workspace.cache().join(format!("bench-iscsi-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let parts = Parts {
        builder: dist.builder,
        dist: dist.folder,
        modules: dist.modules,
        programs: dist.programs,
        module_cache: dist::module_cache(&workspace),
    };
    let programs = ["/usr/sbin/tgtd", "/usr/sbin/tgtadm"].map(Addition::Program);
    let ramdisk = parts.build(&folder, &programs)?;
    let report = measure(arguments, &ramdisk, &writer, &folder);
    fs::remove_dir_all(&folder)?;
    let report = report?;
    print!("{}", report.table());
    write_json(arguments.json.as_deref(), &report)?;
    if arguments.page {
        pages::write(&workspace, &report)?;
    }
    let lio = report.kernel.ratio();
    if lio < BUDGET || report.kernel.exported_s > report.tgtd.exported_s {
        bail!(
            "an export by the kernel's target reaches {lio:.2} of the agent, and has to reach {BUDGET} and tgtd"
        );
    }
    Ok(())
}

fn measure(arguments: &IscsiArguments, ramdisk: &Path, writer: &Path, folder: &Path) -> Result<IscsiReport> {
    let image = DenseImage::serve(folder, arguments.image_mib)?;
    let boot = |name: &str, parameters: &str| Machine::boot(ramdisk, &folder.join(name), parameters);
    let machines = [boot("kernel", "")?, boot("tgtd", "module_blacklist=target_core_mod")?];
    let mut seconds: [[Vec<f64>; 2]; 2] = Default::default();
    for round in 1..=arguments.rounds {
        for (machine, seconds) in machines.iter().zip(&mut seconds) {
            for (writing, seconds) in [Writing::Agent, Writing::Exported(writer)].iter().zip(seconds) {
                seconds.push(machine.write(&image, writing)?);
            }
        }
        let last = |of: &[Vec<f64>; 2]| {
            of.iter().filter_map(|all| all.last()).map(|one| format!("{one:.1}")).collect()
        };
        let [kernel, tgtd]: [Vec<String>; 2] = [last(&seconds[0]), last(&seconds[1])];
        println!(
            "round {round}: agent and LIO {} s, agent and tgtd {} s",
            kernel.join(" and "),
            tgtd.join(" and ")
        );
    }
    let [kernel, tgtd] = seconds.map(|[direct, exported]| Figures::median(direct, exported));
    Ok(IscsiReport {
        machine: pages::machine(),
        image_mib: arguments.image_mib,
        rounds: arguments.rounds,
        kernel,
        tgtd,
    })
}
