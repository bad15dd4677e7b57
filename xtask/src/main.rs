//! Developer commands: `cargo xtask COMMAND`.

mod book;
mod build;
mod demo;
mod host;
mod lint;
mod measure;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use book::reference;
use build::{dist, instance_image, python_ramdisk, zig};
use host::setup;
use measure::{answers, bench, fuzz, iscsi_conformance, matrix, pages, power_cut, strangers, zoo};
use test::record;

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
    Image(instance_image::ImageCommand),
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
