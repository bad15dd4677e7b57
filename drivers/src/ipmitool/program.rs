//! Runs ipmitool: one process for each command, never through a shell, with a deadline.
//!
//! The password is in a private file that is deleted with the process; the key is in the environment.
//! Neither is ever an argument, which every user of the host can see. What a conductor that was killed left of such files
//! goes when the next one starts.

use super::connection::Connection;
use super::error::IpmiError;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tempfile::NamedTempFile;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Longest text of ipmitool in an error, in characters.
const LONGEST: usize = 300;

/// Longest output that is read, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// Lines that ipmitool always says, and that explain nothing.
const CHATTER: &[&str] = &[
    "Loading IANA PEN Registry",
    "Unable to Get Channel Cipher Suites",
    "Running Get ",
    "Discovered IPMB address",
    "Invalid completion code received: Invalid command",
    "Close Session command failed",
    "tcgetattr",
];

/// What ipmitool says when the user or the password is wrong.
const WRONG_CREDENTIALS: &[&str] = &[
    "RAKP 2 HMAC is invalid",
    "RAKP 2 message indicates an error : unauthorized name",
    "Invalid user name",
    "password verification failed",
    "Activate Session error",
];

/// What it says when the BMC is busy and will not be, soon.
const BUSY: &[&str] =
    &["insufficient resources for session", "Node busy", "Out of space", "BMC initialization in progress"];

/// What it says when the BMC has understood a command and has not got it (IPMI 2.0, table 5-2). Everything else may be a lost or
/// a spoilt answer.
const REFUSED: &[&str] = &[
    "Invalid command",
    "Invalid data field in request",
    "Parameter out of range",
    "Request data length invalid",
    "Request data length limit exceeded",
    "Requested sensor, data, or record not found",
    "Unknown (0x80)",
    "rsp=0x80",
    "rsp=0xc1",
    "rsp=0xc7",
    "rsp=0xc9",
    "rsp=0xcb",
    "rsp=0xcc",
];

/// What it says when there was no session yet, and so no command.
const NO_SESSION: &[&str] = &[
    "Unable to establish",
    "open session",
    "Open Session",
    "RAKP",
    "Get Session Challenge",
    "Get Auth Capabilities",
    "Address lookup for",
];

/// What it says when the BMC has not this cipher suite.
const NO_SUCH_SUITE: &[&str] = &[
    "no matching cipher suite",
    "invalid authentication algorithm",
    "invalid integrity algorithm",
    "invalid confidentiality algorithm",
    "Unsupported cipher suite",
    "Set Session Privilege Level to",
];

/// Commands that are not asked to say more: they would tell of each entry in many lines, and leave the time of day out
/// (ipmitool 1.8.19). A command before them detects a wrong password.
const BRIEF: &[&str] = &["sel", "list"];

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// Well, with what it said.
    Well(String),
    /// The user or the password is wrong.
    WrongCredentials(String),
    /// The BMC has not this cipher suite.
    NoSuchSuite(String),
    /// The BMC is busy, and has not got the command.
    Busy(String),
    /// The BMC has understood the command, and has not got it.
    Refused(String),
    /// Before there was a session: the BMC has not got the command.
    Unsent(String),
    /// In another way, also not in time: the BMC may have carried out the command, and the same may work the next time.
    Badly(String),
}

/// The program, and the folder of its files.
#[derive(Debug)]
pub(super) struct Program {
    path: String,
    /// For the conductor's user alone, and for what a running program needs; of the system's own where there is none.
    folder: Option<PathBuf>,
}

impl Program {
    /// A program with this name, and its folder, of which this conductor is the only user.
    pub(super) fn new(path: String, folder: Option<PathBuf>) -> Self {
        if let Some(folder) = &folder
            && let Err(error) = empty(folder)
        {
            tracing::warn!(folder = %folder.display(), "files that a conductor left cannot be removed: {error}");
        }
        Self { path, folder }
    }

    fn failed(&self, error: &io::Error) -> IpmiError {
        IpmiError::Program { program: self.path.clone(), reason: error.to_string() }
    }

    /// A new file, which goes when it is dropped.
    fn file(&self) -> io::Result<NamedTempFile> {
        let Some(folder) = &self.folder else { return NamedTempFile::new() };
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        NamedTempFile::new_in(folder)
    }
}

/// Removes the files of a folder, if there is one.
fn empty(folder: &Path) -> io::Result<()> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.into_iter().try_for_each(|entry| fs::remove_file(entry?.path())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Runs one command.
///
/// # Errors
///
/// [`IpmiError::Program`].
pub(super) async fn run(
    program: &Program,
    connection: &Connection,
    suite: Option<u8>,
    words: &[&str],
    limit: Duration,
) -> Result<Ended, IpmiError> {
    let (mut command, _password) = command(program, connection, suite, words)?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| program.failed(&error))?;
    match timeout(limit, output(child)).await {
        Ok(output) => Ok(judge(connection, &output.map_err(|error| program.failed(&error))?)),
        Err(_) => Ok(Ended::Badly(format!("not within {} s", limit.as_secs_f64()))),
    }
}

/// Starts a long-running command, with its input and output, and the file of the password, which it reads at its
/// beginning.
///
/// # Errors
///
/// [`IpmiError::Program`].
pub(super) fn begin(
    program: &Program,
    connection: &Connection,
    suite: Option<u8>,
    words: &[&str],
) -> Result<(Child, NamedTempFile), IpmiError> {
    let (mut command, password) = command(program, connection, suite, words)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| program.failed(&error))?;
    Ok((child, password))
}

/// How a process ended, with the beginning of what it said.
async fn output(mut child: Child) -> io::Result<Output> {
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let (status, stdout, stderr) = tokio::try_join!(child.wait(), beginning(output), beginning(errors))?;
    Ok(Output { status, stdout, stderr })
}

/// What is read of a stream before its end; the rest is let go by.
async fn beginning(stream: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let Some(mut stream) = stream else { return Ok(Vec::new()) };
    let mut kept = Vec::new();
    (&mut stream).take(MOST_BYTES as u64).read_to_end(&mut kept).await?;
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(kept)
}

/// A command, which ends when it is dropped, and the file of the password, which goes then too.
fn command(
    program: &Program,
    connection: &Connection,
    suite: Option<u8>,
    words: &[&str],
) -> Result<(Command, NamedTempFile), IpmiError> {
    let mut file = program.file().map_err(|error| program.failed(&error))?;
    let written = file.write_all(connection.password.expose().as_bytes());
    written.map_err(|error| program.failed(&error))?;
    let mut command = Command::new(&program.path);
    command
        .args((!words.starts_with(BRIEF)).then_some("-v"))
        .args(connection.arguments(suite))
        .arg("-f")
        .arg(file.path())
        .args(words);
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).env("LC_ALL", "C");
    command.env("TZ", "UTC0");
    if let Some(key) = &connection.key {
        command.env("IPMI_KGKEY", key.expose());
    }
    command.kill_on_drop(true);
    Ok((command, file))
}

fn judge(connection: &Connection, output: &Output) -> Ended {
    if output.status.success() {
        return Ended::Well(text(&output.stdout));
    }
    let said = reason(connection, &output.stderr);
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    match () {
        () if says(WRONG_CREDENTIALS) => Ended::WrongCredentials(said),
        () if says(NO_SUCH_SUITE) => Ended::NoSuchSuite(said),
        () if says(BUSY) => Ended::Busy(said),
        () if says(NO_SESSION) => Ended::Unsent(said),
        () if says(REFUSED) => Ended::Refused(said),
        () => Ended::Badly(said),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What explains a failure, in one line.
pub(super) fn reason(connection: &Connection, said: &[u8]) -> String {
    let said = connection.password.taken_out_of(&text(said));
    let is_relevant = |line: &&str| !line.is_empty() && !CHATTER.iter().any(|word| line.contains(word));
    let lines: Vec<_> =
        said.lines().map(|line| line.trim().trim_start_matches("> ")).filter(is_relevant).collect();
    let line = lines.join("; ");
    match line.is_empty() {
        true => "ipmitool says no more".to_owned(),
        false => line.chars().filter(|character| !character.is_control()).take(LONGEST).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::secret::Secret;
    use farrier_conductor::model::clock::{Clock, SystemClock};
    use farrier_conductor::model::{NewNode, Node};
    use serde_json::json;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn connection() -> Connection {
        let driver_info = json!({"ipmi_address": "h", "ipmi_password": "oats and hay"});
        let driver_info = driver_info.as_object().unwrap().clone().into();
        let node = Node::enrol(NewNode { driver_info, ..NewNode::default() }, SystemClock.now());
        Connection::read(&node).unwrap()
    }

    #[test]
    fn failures_are_distinguished_and_reported_without_the_password() {
        for (stderr, expected) in [
            (
                "Loading IANA PEN Registry...\n> RAKP 2 HMAC is invalid\nError: Unable to establish\n",
                Ended::WrongCredentials("RAKP 2 HMAC is invalid; Error: Unable to establish".into()),
            ),
            (
                "Error in open session response message : invalid authentication algorithm\n\n",
                Ended::NoSuchSuite(
                    "Error in open session response message : invalid authentication algorithm".into(),
                ),
            ),
            ("Set Boot Device failed: Node busy\n", Ended::Busy("Set Boot Device failed: Node busy".into())),
            (
                "Set Boot Device failed: Invalid command\n",
                Ended::Refused("Set Boot Device failed: Invalid command".into()),
            ),
            (
                "Error: Unable to establish IPMI v2 / RMCP+ session\n",
                Ended::Unsent("Error: Unable to establish IPMI v2 / RMCP+ session".into()),
            ),
            ("no oats and hay\u{7} here", Ended::Badly("no ****** here".into())),
            ("Running Get VSO Capabilities my_addr 0x20\n", Ended::Badly("ipmitool says no more".into())),
        ] {
            let status = ExitStatus::from_raw(1 << 8);
            let output = Output { status, stdout: Vec::new(), stderr: stderr.into() };
            assert_eq!(judge(&connection(), &output), expected);
        }
        let output =
            Output { status: ExitStatus::from_raw(0), stdout: b"on".to_vec(), stderr: b"Node busy".to_vec() };
        assert_eq!(judge(&connection(), &output), Ended::Well("on".into()));
    }

    #[tokio::test]
    async fn secrets_are_neither_arguments_nor_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("ipmitool");
        std::fs::write(
            &program,
            "#!/bin/sh\ntr '\\0' ' ' < /proc/$$/cmdline\nfor last; do :; done\n\
             while [ \"$1\" != -f ]; do shift; done\ncat \"$2\"; stat -c ' %a' \"$2\"; echo \"$2\"\nenv\n",
        )
        .unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let mut connection = connection();
        connection.key = Some(Secret::new("stable key"));
        let own = folder.path().join("run/ipmitool");
        let program = Program::new(program.to_str().unwrap().to_owned(), Some(own.clone()));
        let limit = Duration::from_secs(60);
        let Ended::Well(said) = run(&program, &connection, None, &["power", "status"], limit).await.unwrap()
        else {
            panic!("the program failed")
        };
        let lines: Vec<_> = said.lines().collect();
        assert!(lines[0].ends_with("power status oats and hay 600"), "{said}");
        assert!(
            Path::new(lines[1]).starts_with(&own) && !Path::new(lines[1]).exists(),
            "it goes with the process"
        );
        assert!(said.contains("IPMI_KGKEY=stable key"), "{said}");
        let arguments = lines[0].trim_end_matches("oats and hay 600");
        assert!(!arguments.contains("oats") && !arguments.contains("stable key"), "{arguments}");
        let missing = Program::new("/nonexistent/ipmitool".to_owned(), None);
        let error = run(&missing, &connection, None, &[], limit).await.unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent/ipmitool cannot be run"), "{error}");
    }

    #[tokio::test]
    async fn n26_passwords_that_a_killed_conductor_left_are_removed_and_the_folder_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("run/ipmitool");
        let program = Program::new("true".to_owned(), Some(own.clone()));
        // As one that was killed leaves it.
        let (_, password) = command(&program, &connection(), None, &[]).unwrap();
        let left = password.into_temp_path().keep().unwrap();
        assert_eq!(
            (left.parent(), fs::read_to_string(&left).unwrap().as_str()),
            (Some(&*own), "oats and hay")
        );
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&own).unwrap());
        assert_eq!(mode & 0o777, 0o700);
        Program::new("true".to_owned(), Some(own.clone()));
        assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn n26_what_is_said_is_cut_while_it_is_collected() {
        let stream = tokio::io::repeat(b'x').take(3 * MOST_BYTES as u64);
        assert_eq!(beginning(Some(stream)).await.unwrap().len(), MOST_BYTES);
    }
}
