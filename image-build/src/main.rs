//! `farrier-image`: builds what a node boots to be deployed.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use farrier_image::{Inputs, Manifest, build};

/// Builds what a node boots to be deployed.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Packs a kernel, the modules of common servers and the agent into vmlinuz, initramfs.img and manifest.json.
    Build(BuildArguments),
}

#[derive(Debug, Args)]
struct BuildArguments {
    /// The kernel's file.
    #[arg(long, value_name = "VMLINUZ")]
    kernel: PathBuf,
    /// Its modules: /lib/modules/<release>.
    #[arg(long, value_name = "DIR")]
    modules: PathBuf,
    /// The agent, linked statically.
    #[arg(long, value_name = "FILE")]
    agent: PathBuf,
    /// Where the helper programs are installed.
    #[arg(long, value_name = "DIR", default_value = "/")]
    programs_root: PathBuf,
    /// Where to write [default: dist/<architecture of the agent>].
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Command::Build(arguments) = Cli::parse().command;
    let BuildArguments { kernel, modules, agent, programs_root, output } = arguments;
    match build(&Inputs { kernel, modules, agent, programs_root }, output.as_deref()) {
        Ok((manifest, output)) => {
            print_summary(&manifest, &output.display().to_string());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("farrier-image: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_summary(manifest: &Manifest, output: &str) {
    println!("kernel {}, {} modules, in {output}:", manifest.kernel_release, manifest.modules.len());
    for (name, file) in &manifest.files {
        println!("  {name:<14} {:>12} bytes", file.bytes);
    }
    for selection in manifest.selection.iter().filter(|selection| !selection.absent.is_empty()) {
        println!("  {}: this kernel has no {}", selection.class, selection.absent.join(", "));
    }
}
