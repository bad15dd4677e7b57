//! `farrier-image`: builds what a node boots to be deployed.

mod command_line;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
use command_line::{Cli, Command};
use farrier_image::{FileRecord, Manifest, build, rebuild_media};
use farrier_protocol::error_code::ErrorCode;
use farrier_protocol::error_code::image_build::{INVALID_OPTION, OUTPUT};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if is_refusal(&error) => {
            eprintln!("{}", INVALID_OPTION.after(error.render().to_string().trim_end()));
            return ExitCode::from(2);
        }
        Err(help) => help.exit(),
    };
    let result = match cli.command {
        Command::Build(arguments) => arguments.kernel_package().and_then(|package| {
            let (inputs, output) = arguments.inputs(package.as_ref());
            let (manifest, output) = build(&inputs, output.as_deref(), &show_progress)?;
            Ok(summary(&manifest, &output.display().to_string()))
        }),
        Command::Media(arguments) => {
            let (dist, media, output) = arguments.inputs();
            rebuild_media(&dist, &media, &output).map(|files| {
                let line = |(name, file): (_, &FileRecord)| format!("{}  {name}\n", file.sha256);
                files.iter().map(line).collect()
            })
        }
    };
    match result {
        Ok(text) => print(&text),
        Err(error) => {
            clear_progress();
            fail(error.code(), &error.to_string())
        }
    }
}

/// Whether the arguments are not valid; a user who requests the help gets it.
fn is_refusal(error: &clap::Error) -> bool {
    error.use_stderr() && error.kind() != DisplayHelpOnMissingArgumentOrSubcommand
}

/// Prints an error with its code at the end.
fn fail(code: &ErrorCode, text: &str) -> ExitCode {
    eprintln!("farrier-image: {}", code.after(text));
    ExitCode::FAILURE
}

/// Shows what is being done, on a terminal only.
fn show_progress(step: &'static str) {
    if io::stderr().is_terminal() {
        eprint!("\r\x1b[K{step} …");
    }
}

fn clear_progress() {
    if io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
}

/// Prints the result. A reader that has gone away is no failure of the build.
fn print(text: &str) -> ExitCode {
    clear_progress();
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            fail(OUTPUT, &format!("cannot print the summary: {error}"))
        }
        _ => ExitCode::SUCCESS,
    }
}

fn summary(manifest: &Manifest, output: &str) -> String {
    let mut text =
        format!("kernel {}, {} modules, in {output}:\n", manifest.kernel_release, manifest.modules.len());
    for (name, file) in &manifest.files {
        text += &format!("  {name:<30} {:>12} bytes\n", file.bytes);
    }
    for selection in manifest.selection.iter().filter(|selection| !selection.absent.is_empty()) {
        text += &format!("  {}: this kernel has no {}\n", selection.class, selection.absent.join(", "));
    }
    text
}
