//! The configuration by a command line of a few options.

use super::effective::Effective;
use super::error::ConfigurationError;
use super::files::ConfigurationFiles;
use super::reload::Reload;
use super::{arguments, ironic, pages, with_environment};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run.
    Serve(Serve),
    /// Anything else.
    Other,
}

#[derive(Debug, Args)]
struct Serve {
    #[command(flatten)]
    files: ConfigurationFiles,
    /// Timeout of a heartbeat.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    heartbeat_timeout: u64,
    /// Certificate.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key.
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Database.
    #[arg(long, value_name = "URL", env = "FARRIER_TEST_DATABASE")]
    database: Option<String>,
    #[command(flatten)]
    limits: Limits,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct Limits {
    /// Deployments at a time.
    #[arg(long, value_name = "COUNT", default_value_t = 250)]
    max_concurrent_deploy: usize,
    /// Drivers.
    #[arg(long, value_name = "TYPE", value_delimiter = ',', default_value = "qemu")]
    types: Vec<String>,
    /// Kind of work.
    #[arg(long, value_enum, default_value_t = Kind::Fast)]
    kind: Kind,
    /// Be silent.
    #[arg(long)]
    silent: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Fast,
    Slow,
}

fn cli() -> clap::Command {
    with_environment(Cli::command())
}

/// A configuration file, and a folder of further ones.
struct Files(TempDir);

impl Files {
    fn new(text: &str) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        fs::create_dir(files.folder()).unwrap();
        files.write(&files.file(), text);
        files
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("farrier.toml")
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("farrier.d")
    }

    fn write(&self, path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    }

    /// `serve` with these files, and with further arguments.
    fn arguments(&self, further: &[&str]) -> Result<Vec<std::ffi::OsString>, ConfigurationError> {
        let (file, folder) = (self.file(), self.folder());
        let files = [
            "farrier",
            "serve",
            "--config-file",
            file.to_str().unwrap(),
            "--config-dir",
            folder.to_str().unwrap(),
        ];
        arguments(&cli(), files.iter().chain(further).map(|&text| text.into()).collect())
    }

    fn serve(&self, further: &[&str]) -> Result<Serve, String> {
        let arguments = self.arguments(further).map_err(|error| error.to_string())?;
        let matches = cli().try_get_matches_from(arguments).map_err(|error| error.to_string())?;
        match Cli::from_arg_matches(&matches).unwrap().command {
            Command::Serve(serve) => Ok(serve),
            Command::Other => panic!("another command"),
        }
    }

    fn effective(&self) -> Effective {
        Effective::read(&cli(), &self.serve(&[]).unwrap().files).unwrap()
    }
}

#[test]
fn the_command_line_overrides_a_later_file_which_overrides_an_earlier_one() {
    let files = Files::new(
        "heartbeat_timeout = 20\n[limits]\nmax_concurrent_deploy = 2\ntypes = [\"redfish\", \"ipmi\"]\nsilent = true\nkind = \"slow\"\n",
    );
    let limits = files.serve(&[]).unwrap().limits;
    assert_eq!((limits.max_concurrent_deploy, limits.silent, limits.kind), (2, true, Kind::Slow));
    assert_eq!(limits.types, ["redfish", "ipmi"]);
    files.write(
        &files.folder().join("20.toml"),
        "[limits]\nmax_concurrent_deploy = 4\ntypes = \"ilo,redfish\"\n",
    );
    files.write(&files.folder().join("10.toml"), "[limits]\nmax_concurrent_deploy = 3\nsilent = false\n");
    files.write(&files.folder().join("30.toml.old"), "nonsense\n");
    let serve = files.serve(&["--heartbeat-timeout", "7", "--types", "fake"]).unwrap();
    assert_eq!(
        (serve.heartbeat_timeout, serve.limits.max_concurrent_deploy, serve.limits.silent),
        (7, 4, false)
    );
    assert_eq!(serve.limits.types, ["fake"]);
    assert_eq!(files.serve(&[]).unwrap().limits.types, ["ilo", "redfish"]);
}

#[test]
fn commands_other_than_serve_read_no_file() {
    let files = Files::new("nonsense = 1\n");
    let given: Vec<std::ffi::OsString> = ["farrier", "other"].iter().map(Into::into).collect();
    assert_eq!(arguments(&cli(), given.clone()).unwrap(), given);
    assert!(files.arguments(&[]).is_err());
}

#[test]
fn a_line_that_cannot_be_used_is_named_with_its_file_and_what_the_option_takes() {
    for (text, expected) in [
        (
            "heartbeat_timout = 3",
            "farrier.toml:1: unknown key heartbeat_timout; the nearest key is heartbeat_timeout",
        ),
        (
            "\nmax_concurrent_deploy = 3",
            "farrier.toml:2: unknown key max_concurrent_deploy; the nearest key is [limits] max_concurrent_deploy",
        ),
        (
            "[limits]\nheartbeat_timeout = 3",
            "farrier.toml:2: unknown key [limits] heartbeat_timeout; the nearest key is heartbeat_timeout",
        ),
        (
            "[limit]\ntypes = []",
            "farrier.toml:2: unknown key [limit] types; the nearest key is [limits] types",
        ),
        ("config_file = \"a\"", "farrier.toml:1: unknown key config_file; the nearest key is "),
        (
            "heartbeat_timeout = \"5m\"",
            "farrier.toml:1: heartbeat_timeout: invalid value \"5m\" for SECONDS: invalid digit found in string",
        ),
        ("heartbeat_timeout = [3]", "farrier.toml:1: heartbeat_timeout: it takes one SECONDS"),
        ("heartbeat_timeout = 3.5", "farrier.toml:1: heartbeat_timeout: it takes one SECONDS"),
        (
            "[limits]\nkind = \"late\"",
            "farrier.toml:2: [limits] kind: invalid value \"late\" for KIND; use one of: fast, slow",
        ),
        ("[limits]\nsilent = 1", "farrier.toml:2: [limits] silent: it takes true or false"),
        ("[limits]\ntypes = [[]]", "farrier.toml:2: [limits] types: it takes a list of texts"),
        ("heartbeat_timeout = 3\nheartbeat_timeout = 4", "farrier.toml:2: duplicate key"),
        ("heartbeat_timeout = ", "farrier.toml:1: "),
        ("tls_cert = \"c\"", "the following required arguments were not provided:\n  --tls-key <FILE>"),
    ] {
        let error = Files::new(text).serve(&[]).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_file_that_others_can_write_or_that_is_missing_is_refused() {
    let files = Files::new("heartbeat_timeout = 3\n");
    fs::set_permissions(files.file(), Permissions::from_mode(0o664)).unwrap();
    let error = files.serve(&[]).unwrap_err();
    assert!(
        error.ends_with(&format!("is writable by other users; run chmod go-w {}", files.file().display()))
    );
    fs::remove_file(files.file()).unwrap();
    let error = files.serve(&[]).unwrap_err();
    assert!(
        error.contains("farrier.toml cannot be read: No such file")
            && error.contains("correct --config-file"),
        "{error}"
    );
    files.write(&files.file(), "");
    fs::remove_dir(files.folder()).unwrap();
    assert!(files.serve(&[]).unwrap_err().contains("farrier.d cannot be read"));
}

#[test]
fn each_value_is_shown_with_its_source() {
    let files = Files::new(
        "heartbeat_timeout = 20\ndatabase = \"postgres://me:secret@db/x\"\n[limits]\ntypes = [\"a\"]\n",
    );
    let file = files.file().display().to_string();
    assert_eq!(
        files.effective().show(false),
        format!(
            "heartbeat_timeout = 20  # {file}:1\ndatabase = \"postgres://me:***@db/x\"  # {file}:2\n\n[limits]\ntypes = [\"a\"]  # {file}:4\n"
        )
    );
    let all = files.effective().show(true);
    for line in [
        "# tls_key =  # not set",
        "max_concurrent_deploy = 250  # default",
        "kind = \"fast\"  # default",
        "silent = false  # default",
    ] {
        assert!(all.lines().any(|shown| shown == line), "{line} in {all}");
    }
}

#[test]
fn the_default_file_is_valid_and_changes_nothing() {
    let text = pages::default_file(&cli());
    assert_eq!(Files::new(&text).effective().show(false), "");
    let uncommented: Vec<_> = text
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(key) if key.contains(" = ") && !key.contains(". ") => key,
            _ => line,
        })
        .collect();
    let set = Files::new(&uncommented.join("\n")).effective();
    for key in ["heartbeat_timeout = 300  # /", "[limits]", "types = [\"qemu\"]  # /", "silent = false  # /"]
    {
        assert!(set.show(false).contains(key), "{key} in {}", set.show(false));
    }
    let schema = pages::schema(&cli());
    assert_eq!(schema["properties"]["heartbeat_timeout"]["type"], "integer");
    let limits = &schema["properties"]["limits"]["properties"];
    assert_eq!((&limits["silent"]["type"], &limits["kind"]["enum"][1]), (&"boolean".into(), &"slow".into()));
}

#[test]
fn a_change_of_the_files_is_reported_once_while_the_conductor_runs() {
    let files = Files::new("heartbeat_timeout = 20\n");
    let mut reload = Reload::new(&cli(), files.serve(&[]).unwrap().files);
    let mut news = |text: &str| {
        files.write(&files.file(), text);
        reload.news().map_err(|error| error.to_string())
    };
    assert_eq!(news("heartbeat_timeout = 20 # the same\n"), Ok(vec![]));
    assert_eq!(news("heartbeat_timeout = 30\n"), Ok(vec!["heartbeat_timeout".to_owned()]));
    assert!(news("heartbeat_timeout = x\n").unwrap_err().contains("farrier.toml:1"));
    assert_eq!(news("heartbeat_timeout = x\n"), Ok(vec![]));
    let changed = ["heartbeat_timeout", "[limits] types"].map(str::to_owned);
    assert_eq!(news("[limits]\ntypes = [\"a\"]\n"), Ok(changed.to_vec()));
}

#[test]
fn options_of_ironic_are_taken_over_and_the_others_named() {
    let text = "[DEFAULT]\nhost = c1\ntypes = redfish,\n  ipmi\n[conductor]\nheartbeat_timeout = 60\nsilent = True\n\
                kind = never\n[glance]\ntls_key = x\n";
    assert_eq!(
        ironic::import(&cli(), text).unwrap(),
        "heartbeat_timeout = 60\n\n[limits]\ntypes = [\"redfish\", \"ipmi\"]\nsilent = true\n\n\
         # Options of ironic.conf that farrier serve did not take over:\n# [DEFAULT] host: no such option\n\
         # [conductor] kind: invalid value \"never\" for KIND; use one of: fast, slow\n# [glance] tls_key: no such option\n"
    );
    let imported = ironic::import(&cli(), text).unwrap();
    assert!(Files::new(&imported).effective().show(false).contains("heartbeat_timeout = 60"));
    assert_eq!(
        ironic::import(&cli(), "[x]\n= 3\n").unwrap_err().to_string().split(':').next(),
        Some("line 2")
    );
}
