//! Processes of `farrier`.

use crate::site::PATIENCE;
use farrier_conductor::model::split_code;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// `farrier serve`, killed when it is dropped.
pub struct Conductor {
    process: Child,
    output: PathBuf,
    log: PathBuf,
    state: PathBuf,
    /// URL of the ramdisk API.
    pub ramdisk_api: String,
    /// URL of the node API.
    pub node_api: String,
}

impl Conductor {
    /// Starts one that has its state in `folder`, as all of them there, and waits until it listens.
    pub fn start(folder: &Path, name: &str, arguments: &[&str]) -> Self {
        Self::begin(folder, name, arguments).listening()
    }

    /// Starts one, and waits for nothing.
    pub fn begin(folder: &Path, name: &str, arguments: &[&str]) -> Self {
        Self::begin_with(folder, name, arguments, &[])
    }

    /// The same with further variables in its environment.
    pub fn begin_with(folder: &Path, name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let state = folder.join("state");
        let (output, log) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.log")));
        // Machines are processes of this host, unless a test has others.
        let hardware = match arguments.contains(&"--enabled-hardware-types") {
            true => &[][..],
            false => &["--enabled-hardware-types", "qemu", "--qemu-unsafe-driver-info"],
        };
        let process = farrier()
            .args(["serve", "--conductor-name", name, "--admin-listen", "127.0.0.1:0"])
            .args(["--file-url-allowed-paths", folder.to_str().unwrap()])
            .args(hardware)
            .args(arguments)
            .env("FARRIER_STATE_DIR", &state)
            .env("FARRIER_LOG", "farrier_conductor=debug,farrier=debug")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(File::create(&output).unwrap())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self { process, output, log, state, ramdisk_api: String::new(), node_api: String::new() }
    }

    /// It once it listens.
    pub fn listening(mut self) -> Self {
        let end = Instant::now() + PATIENCE;
        while self.node_api.is_empty() {
            let said = fs::read_to_string(&self.output).unwrap();
            let url = |api: &str| {
                let found =
                    said.lines().find_map(|line| line.strip_prefix(api)?.strip_prefix(" API listening on "));
                found.unwrap_or_default().to_owned()
            };
            (self.ramdisk_api, self.node_api) = (url("ramdisk"), url("node"));
            let has_ended = self.process.try_wait().unwrap().is_some();
            assert!(!has_ended && Instant::now() < end, "it did not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        self
    }

    /// Where its ramdisk API listens.
    pub fn address(&self) -> &str {
        self.ramdisk_api.strip_prefix("http://").unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill(pid(&self.process), signal).unwrap();
    }

    /// Ends it as a power cut does, and waits until it is gone.
    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until it has logged something.
    pub async fn says(&self, what: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.log().contains(what) {
            assert!(Instant::now() < end, "waited for {what:?} in {}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The most memory that it ever had, in KiB.
    pub fn peak_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix(" kB"));
        peak.unwrap().trim().parse().unwrap()
    }

    /// Begins an operator's command to this conductor, on its own host.
    pub fn client(&self, arguments: &[&str]) -> Client {
        self.stranger(arguments, &[("FARRIER_STATE_DIR", self.state.to_str().unwrap())])
    }

    /// Begins a command that knows of the conductor what these variables say.
    pub fn stranger(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Client {
        let mut command = farrier();
        command.args(arguments).env("FARRIER_URL", &self.node_api).envs(variables.iter().copied());
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Client(command.spawn().unwrap())
    }

    /// Has `farrier auth` add somebody, and gives what it prints. The input is the password.
    pub fn auth(&self, arguments: &[&str], input: &str) -> String {
        let mut command = farrier();
        command.arg("auth").args(arguments).env("FARRIER_STATE_DIR", &self.state);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        self.signal(Signal::SIGHUP);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Folder of its state.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Has an operator's command carried out.
    pub fn order(&self, arguments: &[&str]) {
        let (is_success, said) = self.client(arguments).ends();
        assert!(is_success, "{arguments:?}: {said}");
    }
}

impl Drop for Conductor {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// An operator's command that runs.
pub struct Client(Child);

impl Client {
    /// By the signal that nobody ignores: shells have what they run in the background ignore that of Ctrl-C.
    pub fn terminate(&self) {
        kill(pid(&self.0), Signal::SIGTERM).unwrap();
    }

    /// Its exit code, and what it printed.
    pub fn prints(self) -> (Option<i32>, String) {
        let output = self.0.wait_with_output().unwrap();
        let (printed, complained) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success() || has_code(&complained), "{complained}");
        (output.status.code(), printed + &complained)
    }

    /// Whether it succeeded, and what it complained about.
    pub fn ends(self) -> (bool, String) {
        let output = self.0.wait_with_output().unwrap();
        let complained = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() || has_code(&complained), "{complained}");
        (output.status.success(), complained)
    }
}

/// Whether a complaint ends with the code of its error, and not with that of errors without a code of their own.
pub fn has_code(complaint: &str) -> bool {
    complaint.is_empty() || split_code(complaint.trim_end()).1.is_some_and(|code| code != "FAR-0999")
}

/// `farrier` that knows nothing from the environment.
pub fn farrier() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farrier"));
    let own = std::env::vars().map(|(name, _)| name);
    for name in own.filter(|name| name.starts_with("FARRIER_") || name.starts_with("OS_")) {
        command.env_remove(name);
    }
    command
}

fn pid(process: &Child) -> Pid {
    Pid::from_raw(process.id().try_into().unwrap())
}
