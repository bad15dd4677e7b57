//! Developer commands: `cargo xtask COMMAND`.

mod answers;
mod bench;
#[cfg(test)]
mod book_tests;
mod command;
mod debian_packages;
mod debian_tree;
mod demo;
mod disk_room;
mod dist;
mod exported_disk;
mod fuzz;
mod instance_image;
mod ironic_environment;
mod iscsi_conformance;
mod kernel_package;
mod libblkid;
mod lint;
mod matrix;
mod page;
mod pages;
mod plot;
mod power_cut;
mod processor_time;
mod python_environment;
mod python_manager;
mod python_ramdisk;
mod record;
mod reference;
mod requirements;
mod setup;
mod strangers;
mod test;
mod test_failure;
mod test_needs;
mod test_order;
mod test_programs;
mod test_summary;
mod test_timing;
mod timeline;
mod unpacked_kernel;
mod workspace;
mod zig;
mod zoo;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Developer commands of Farrier.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Answers(answers::AnswersArguments),
    Bench(bench::BenchArguments),
    Demo(demo::DemoArguments),
    Dist(dist::DistArguments),
    Fuzz(fuzz::FuzzArguments),
    Image(instance_image::ImageArguments),
    #[command(hide = true)]
    ImageAsRoot(instance_image::RootArguments),
    IscsiConformance(iscsi_conformance::IscsiConformanceArguments),
    Lint(lint::LintArguments),
    Matrix(matrix::MatrixArguments),
    Pages(pages::PagesArguments),
    PowerCut(power_cut::PowerCutArguments),
    #[command(hide = true)]
    PythonRamdiskAsRoot(python_ramdisk::RootArguments),
    Record(record::RecordArguments),
    Reference(reference::ReferenceArguments),
    Setup(setup::SetupArguments),
    Strangers(strangers::StrangersArguments),
    Test(test::TestArguments),
    Zoo(zoo::ZooArguments),
}

fn main() -> ExitCode {
    match zig::run_as_tool() {
        Ok(None) => {}
        Ok(Some(code)) => return ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    }
    let result = match Cli::parse().command {
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Demo(arguments) => demo::demo(&arguments),
        Command::Dist(arguments) => dist::dist(&arguments),
        Command::Fuzz(arguments) => fuzz::fuzz(&arguments),
        Command::Image(arguments) => instance_image::image(&arguments),
        Command::ImageAsRoot(arguments) => instance_image::image_as_root(&arguments),
        Command::IscsiConformance(arguments) => iscsi_conformance::iscsi_conformance(&arguments),
        Command::Lint(arguments) => lint::lint(&arguments),
        Command::Matrix(arguments) => matrix::matrix(&arguments),
        Command::Pages(arguments) => pages::pages(&arguments),
        Command::PowerCut(arguments) => power_cut::power_cut(&arguments),
        Command::PythonRamdiskAsRoot(arguments) => python_ramdisk::build_as_root(&arguments),
        Command::Record(arguments) => record::record(&arguments),
        Command::Reference(arguments) => reference::reference(&arguments),
        Command::Setup(arguments) => setup::setup(&arguments),
        Command::Strangers(arguments) => strangers::strangers(&arguments),
        Command::Test(arguments) => test::test(&arguments),
        Command::Answers(arguments) => answers::answers(&arguments),
        Command::Zoo(arguments) => zoo::zoo(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
