//! The commands: what each is called by, and which part of the program runs it.

mod completions;
mod conductor;
mod configuration;
mod console;
mod database;
mod deploy;
mod disk;
mod evidence;
pub(crate) mod json_argument;
pub(crate) mod node;
mod steps;
mod templates;
mod validate;
pub(crate) mod wait;
mod watch;

use crate::access::Access;
use crate::client::{NodeApi, Workflows};
use crate::configuration::with_environment;
use crate::failure::{INVALID_OPTION, OPERATORS_FILE, WithCode};
use crate::reference::Reference;
use crate::{auth, provisioning, serve, state};
use clap::{CommandFactory, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// Puts operating systems on bare metal.
#[derive(Debug, Parser)]
#[command(name = "farrier", version, propagate_version = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the conductor until it is interrupted.
    Serve(Box<serve::Serve>),
    /// Manage nodes: enroll, show, validate, power, clean, service, rescue, delete.
    Node {
        #[command(flatten)]
        conductor: Access,
        #[command(flatten)]
        waiting: wait::Waiting,
        #[command(subcommand)]
        command: node::NodeCommand,
    },
    /// Show the conductors that share a database.
    Conductor {
        #[command(flatten)]
        conductor: Access,
        #[command(subcommand)]
        command: conductor::ConductorCommand,
    },
    /// Manage the operators of the conductor on this host: users with passwords, and tokens.
    Auth {
        #[command(flatten)]
        file: auth::AuthFile,
        #[command(flatten)]
        state_dir: state::StateDir,
        #[command(subcommand)]
        command: auth::AuthCommand,
    },
    /// Deploy an image to a node, and show the progress.
    Deploy {
        #[command(flatten)]
        conductor: Access,
        #[command(flatten)]
        deploy: deploy::DeployOptions,
    },
    /// Manage deploy templates: named lists of deploy steps, selected by an instance trait.
    Template {
        #[command(flatten)]
        conductor: Access,
        #[command(subcommand)]
        command: templates::WorkflowCommand,
    },
    /// Manage runbooks: named lists of clean or service steps, approved by a node trait.
    Runbook {
        #[command(flatten)]
        conductor: Access,
        #[command(subcommand)]
        command: templates::WorkflowCommand,
    },
    /// Watch all nodes: a table on a terminal, otherwise one line for each change.
    Watch {
        #[command(flatten)]
        conductor: Access,
        #[command(flatten)]
        watch: watch::Watch,
    },
    /// Explain the state of a node: the cause of the wait, the deadline, the evidence and the next action.
    Explain {
        #[command(flatten)]
        conductor: Access,
        #[command(flatten)]
        explain: evidence::explain::Explain,
    },
    /// Export the disk of a machine over iSCSI, to recover or to write it.
    Disk {
        #[command(flatten)]
        conductor: Access,
        #[command(subcommand)]
        command: disk::DiskCommand,
    },
    /// Show the serial console of a machine, and send input to it.
    Console {
        #[command(flatten)]
        conductor: Access,
        #[command(flatten)]
        console: console::Console,
    },
    /// Show the history of a node.
    History {
        #[command(flatten)]
        conductor: Access,
        #[command(flatten)]
        history: evidence::history::History,
    },
    /// Show and verify the certificates of erasure of a node.
    Certificates {
        #[command(flatten)]
        conductor: Access,
        #[command(flatten)]
        certificates: evidence::certificates::ShowCertificates,
    },
    /// List and fetch the ramdisk logs of failed operations.
    Logs {
        #[command(flatten)]
        conductor: Access,
        #[command(flatten)]
        logs: evidence::logs::Logs,
    },
    /// Validate the interfaces of a node. Fails if power, management or boot is invalid.
    Validate {
        #[command(flatten)]
        conductor: Access,
        #[command(flatten)]
        validate: validate::Validate,
    },
    /// Bring the tables of a database to the layout of this version, and report the migrations. `farrier serve` does the
    /// same at its start.
    Migrate(database::Migrate),
    /// Back up an SQLite database, also while conductors use it. The backup is verified.
    Backup(database::Backup),
    /// Export all records of a database, also while conductors use it, to import them into another one.
    Export(database::Export),
    /// Import an export into a database without records, in SQLite or PostgreSQL.
    Import(database::Import),
    /// Check and show the configuration of `farrier serve`.
    Config {
        #[command(subcommand)]
        command: configuration::ConfigurationCommand,
    },
    /// Print a shell completion script.
    Completions(completions::Completions),
    /// Write the pages of the book about commands, options and errors.
    #[command(hide = true)]
    Reference(Reference),
}

/// How the commands end.
const EXIT_CODES: &str =
    "Exit status: 0 success; 1 refused or failed; 2 usage error; 3 still running when --wait expired.";

/// Runs a command.
///
/// # Errors
///
/// Why the command failed; [`wait::GaveUp`] if the operation is still running when `--wait` expires.
pub(crate) fn run(cli: Cli) -> anyhow::Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let default_level = if matches!(cli.command, Command::Serve(_)) { "info" } else { "warn" };
    let filter = EnvFilter::try_from_env("FARRIER_LOG").unwrap_or_else(|_| EnvFilter::new(default_level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    if matches!(cli.command, Command::Serve(_)) {
        provisioning::rights::prepare_process();
    }
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        match cli.command {
            Command::Serve(serve) => serve.run(&command_line()).await,
            Command::Node { conductor, waiting, command } => command.run(&open(conductor)?, &waiting).await,
            Command::Conductor { conductor, command } => command.run(&open(conductor)?).await,
            Command::Deploy { conductor, deploy } => deploy.run(&open(conductor)?).await,
            Command::Template { conductor, command } => {
                command.run(&open(conductor)?, Workflows::Templates).await
            }
            Command::Runbook { conductor, command } => {
                command.run(&open(conductor)?, Workflows::Runbooks).await
            }
            Command::Watch { conductor, watch } => watch.run(&open(conductor)?).await,
            Command::Explain { conductor, explain } => explain.run(&open(conductor)?).await,
            Command::Disk { conductor, command } => command.run(&open(conductor)?).await,
            Command::Console { conductor, console } => console.run(&open(conductor)?).await,
            Command::History { conductor, history } => history.run(&open(conductor)?).await,
            Command::Certificates { conductor, certificates } => certificates.run(&open(conductor)?).await,
            Command::Logs { conductor, logs } => logs.run(&open(conductor)?).await,
            Command::Validate { conductor, validate } => validate.run(&open(conductor)?).await,
            Command::Migrate(migrate) => migrate.run().await,
            Command::Backup(backup) => backup.run().await,
            Command::Export(export) => export.run().await,
            Command::Import(import) => import.run().await,
            Command::Config { command } => command.run(&command_line()),
            Command::Completions(completions) => completions.print(command_line()),
            Command::Reference(reference) => reference.write(command_line()),
            Command::Auth { file, state_dir, command } => command.run(&file, &state_dir).code(OPERATORS_FILE),
        }
    })
}

/// The command line, with an environment variable for each option of `farrier serve`.
pub(crate) fn command_line() -> clap::Command {
    with_environment(Cli::command())
}

/// The conductor that the command is for.
fn open(conductor: Access) -> anyhow::Result<NodeApi> {
    Ok(NodeApi::new(conductor.open().code(INVALID_OPTION)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command_line().debug_assert();
    }

    #[test]
    fn commands_parse() {
        for line in [
            "farrier serve",
            "farrier serve --automated-clean false --clean-step-priority-override deploy.erase_devices:0,deploy.x:7",
            "farrier serve --listen 0.0.0.0:0 --admin-listen 127.0.0.1:0 --state-dir /tmp/x --database /tmp/x/db",
            "farrier serve --database postgres://farrier@db.example/farrier?sslmode=verify-full",
            "farrier serve --tls-cert c --tls-key k --ramdisk-tls-cert c --ramdisk-tls-key k --auth-file f",
            "farrier serve --admin-plain-http --auth-strategy noauth --api-url https://c.example:6385",
            "farrier serve --enable-ramdisk-endpoints false",
            "farrier serve --enabled-hardware-types qemu,fake-hardware",
            "farrier serve --tftp-listen 0.0.0.0:69 --file-url-allowed-paths /a,/b --loader-file-paths x.efi:/x.efi",
            "farrier serve --dhcp-provider dnsmasq --dhcp-interface eno2 --dhcp-range 192.0.2.1,192.0.2.9 --tftp-server 192.0.2.1",
            "farrier serve --ipxe-use-boot-config-api false --restrict-boot-config false --http-url http://h:1",
            "farrier config check --config-file f",
            "farrier config show --effective --config-dir f",
            "farrier conductor list --json --url http://127.0.0.1:1",
            "farrier auth add me --role admin --state-dir /tmp/x",
            "farrier auth --auth-file f token ci --role reader",
            "farrier auth remove me",
            "farrier auth list",
            "farrier node create n1 --mac 52:54:00:00:00:01 --driver qemu --driver-info qemu_cpus=2 --property a=1",
            "farrier node create n1 --mac 52:54:00:00:00:01 --driver redfish --enroll",
            "farrier node list --url http://127.0.0.1:1",
            "farrier node list --url https://h:1 --ca ca.pem --credentials f",
            "farrier node show n1 --json",
            "farrier node validate n1",
            "farrier node create n1 --mac 52:54:00:00:00:01 --driver qemu --interface boot=qemu --interface raid=no-raid",
            "farrier node power n1 reboot",
            "farrier node power n1 soft-off --timeout 30",
            "farrier node rescue n1 --password-file /run/password",
            "farrier node rescue n1",
            "farrier node unrescue n1",
            "farrier node adopt n1",
            "farrier node retry n1",
            "farrier serve --fast-track true --deploy-logs-collect on_failure --rescue-password-hash-algorithm sha512",
            "farrier node manage n1",
            "farrier node inspect n1",
            "farrier node raid n1 {}",
            "farrier node inventory n1 --json",
            "farrier serve --inspection-hooks ramdisk-error,root-device --add-ports all --keep-ports present",
            "farrier node provide n1",
            "farrier node clean n1 --steps [] --disable-ramdisk",
            "farrier node service n1 --steps []",
            "farrier node clean n1 --runbook CUSTOM_WIPED",
            "farrier node service n1 --runbook CUSTOM_WIPED --disable-ramdisk",
            "farrier template create CUSTOM_RAID --steps []",
            "farrier template list --json",
            "farrier runbook show CUSTOM_WIPED --url http://127.0.0.1:1",
            "farrier runbook delete CUSTOM_WIPED",
            "farrier node abort n1",
            "farrier node unhold n1",
            "farrier node maintenance n1 on --reason fan",
            "farrier node provide n1 --no-wait",
            "farrier node --wait 60 undeploy n1",
            "farrier node list --json",
            "farrier watch --once --interval 5",
            "farrier watch --json --url http://127.0.0.1:1",
            "farrier explain n1 --json",
            "farrier disk export n1",
            "farrier disk export n1 --read-only --secrets /tmp/s --url http://127.0.0.1:1",
            "farrier disk release n1",
            "farrier history n1 --long",
            "farrier certificates n1 --verify --json",
            "farrier logs n1",
            "farrier logs n1 --fetch latest --output /tmp/logs.tar.gz",
            "farrier validate n1 --json",
            "farrier migrate --database postgres://farrier@db.example/farrier",
            "farrier backup /tmp/b --state-dir /tmp/x",
            "farrier export - --database /tmp/x",
            "farrier import /tmp/e --database /tmp/x",
            "farrier completions bash",
            "farrier deploy n1 --image http://h/i --checksum sha256:00 --config-drive /d --json --timeout 60",
            "farrier deploy --resource-class c --trait CUSTOM_A --trait CUSTOM_B --candidate n1 --image http://h/i --checksum 0",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
        for line in [
            "farrier",
            "farrier serve --tls-cert c",
            "farrier serve --auth-strategy none",
            "farrier serve --enabled-hardware-types toaster",
            "farrier serve --boot-transfers 0",
            "farrier serve --dhcp-provider dnsmasq",
            "farrier serve --dhcp-range 192.0.2.9,192.0.2.1",
            "farrier serve --loader-file-paths x.efi",
            "farrier auth add me",
            "farrier auth add me --role root",
            "farrier auth add me --role admin --bcrypt-cost 3",
            "farrier node list --fingerprint 00",
            "farrier disk export",
            "farrier disk export n1 --password x",
            "farrier node list --password secret",
            "farrier deploy n1 --image http://h/i",
            "farrier deploy --image http://h/i --checksum 0",
            "farrier deploy n1 --resource-class c --image http://h/i --checksum 0",
            "farrier deploy n1 --trait CUSTOM_A --image http://h/i --checksum 0",
            "farrier node power n1 sideways",
            "farrier node provide n1 --no-wait --wait 5",
            "farrier watch --interval 0",
            "farrier logs n1 --output f",
            "farrier completions tcsh",
            "farrier backup",
            "farrier export",
            "farrier import --database /tmp/x",
            "farrier node power n1 soft-off --timeout 0",
            "farrier node rescue n1 oats",
            "farrier serve --fast-track-timeout 301",
            "farrier node clean n1",
            "farrier node clean n1 --steps [] --runbook CUSTOM_WIPED",
            "farrier template create CUSTOM_RAID",
            "farrier serve --inspection-hooks port",
            "farrier serve --add-ports some",
            "farrier node clean n1 --steps no-such-file",
            "farrier node create n1 --mac 1 --driver qemu",
            "farrier node create n1 --mac 52:54:00:00:00:01 --driver qemu --interface sound=x",
            "farrier node create n1 --mac 52:54:00:00:00:01 --driver qemu --driver-info novalue",
        ] {
            assert_eq!(Cli::try_parse_from(line.split(' ')).unwrap_err().exit_code(), 2, "{line}");
        }
    }
}
