//! A reference conductor with emulated machines as its nodes, for one run.

use super::operator::Operator;
use crate::machine::console::Console;
use crate::machine::{EMULATED, Firmware};
use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The folder below that of a run in which a conductor has its state.
const STATE: &str = "state";
/// How often the machine's console is looked at while it is deployed.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How long the conductor may take to end with its machines.
const STOP: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

/// The conductor's process and the files of its nodes. Dropping it ends the conductor, and that its machines.
#[derive(Debug)]
pub struct Lab {
    farrier: PathBuf,
    folder: PathBuf,
    listen: String,
    arguments: Vec<String>,
    server: Child,
    operator: Operator,
}

/// A machine to be enrolled.
#[derive(Debug)]
pub struct Machine {
    /// Name of the node.
    pub name: String,
    /// Hardware address of its network card.
    pub mac: String,
    /// Folder with `vmlinuz` and `initramfs.img`.
    pub dist: PathBuf,
    /// Its firmware.
    pub firmware: Firmware,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Its disks: file and serial number.
    pub disks: Vec<(PathBuf, String)>,
    /// Further `key=value` pairs for the driver.
    pub driver_info: Vec<String>,
    /// Hardware properties as `key=value`.
    pub properties: Vec<String>,
}

/// What to deploy.
#[derive(Debug)]
pub struct Instance<'a> {
    /// URL of the image, as the machine reaches it.
    pub url: String,
    /// SHA-256 of the image, hexadecimal.
    pub sha256: &'a str,
    /// Folder with the content of the config drive.
    pub config_drive: Option<&'a Path>,
}

/// An event as `farrier deploy --json` prints it.
#[derive(Debug, Deserialize)]
pub struct Event {
    /// Seconds since 1970.
    pub at: f64,
    /// What happened.
    pub event: String,
    /// What is being done, in progress events.
    #[serde(default)]
    pub phase: String,
    /// Bytes done, in progress events.
    #[serde(default)]
    pub bytes: u64,
    /// Bytes to do, in progress events.
    #[serde(default)]
    pub total_bytes: Option<u64>,
}

impl Lab {
    /// Starts the conductor with its state in `folder` and further arguments of `farrier serve`.
    ///
    /// # Errors
    ///
    /// The conductor did not start; the text holds its log.
    pub fn start(farrier: &Path, folder: &Path, arguments: &[&str]) -> Result<Self> {
        Self::start_at("127.0.0.1:0", farrier, folder, arguments)
    }

    /// The same, with the interface for agents and firmware at this address.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub fn start_at(listen: &str, farrier: &Path, folder: &Path, arguments: &[&str]) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let arguments: Vec<_> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let (server, url) = serve(listen, farrier, folder, &arguments)?;
        let operator = Operator::new(farrier, url, &folder.join(STATE));
        let (farrier, folder, listen) = (farrier.to_owned(), folder.to_owned(), listen.to_owned());
        Ok(Self { farrier, folder, listen, arguments, server, operator })
    }

    /// Starts the conductor again that was killed. Its log goes on.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub fn start_again(&mut self) -> Result<()> {
        self.server.wait()?;
        let (server, url) = serve(&self.listen, &self.farrier, &self.folder, &self.arguments)?;
        self.server = server;
        self.operator.url = url;
        Ok(())
    }

    /// Enrols a machine.
    ///
    /// # Errors
    ///
    /// What `farrier node create` says.
    pub fn enrol(&self, machine: &Machine) -> Result<()> {
        self.enrol_with(machine, &[])
    }

    /// The same, with interfaces other than those of its hardware type, as `kind=name`.
    ///
    /// # Errors
    ///
    /// As [`Self::enrol`].
    pub fn enrol_with(&self, machine: &Machine, interfaces: &[&str]) -> Result<()> {
        let disks = machine.disks.iter().map(|(file, serial)| format!("{};serial={serial}", file.display()));
        let mut driver_info = vec![
            format!("qemu_memory_mib={}", machine.memory_mib),
            format!("qemu_console_log={}", self.console(&machine.name).file().display()),
            format!("deploy_kernel={}", machine.firmware.kernel(&machine.dist).display()),
            format!("deploy_ramdisk={}", machine.firmware.ramdisk(&machine.dist).display()),
            format!("kernel_append_params={EMULATED}"),
        ];
        let mut properties = machine.properties.clone();
        if machine.firmware == Firmware::Bios {
            driver_info.push("qemu_firmware=bios".to_owned());
            properties.push("capabilities=boot_mode:bios".to_owned());
        }
        if !machine.disks.is_empty() {
            driver_info.push(format!("qemu_disks={}", disks.collect::<Vec<_>>().join(",")));
        }
        let mut create = vec!["node", "create", &machine.name, "--mac", &machine.mac, "--driver", "qemu"];
        create.extend(interfaces.iter().flat_map(|pair| ["--interface", pair]));
        create
            .extend(driver_info.iter().chain(&machine.driver_info).flat_map(|pair| ["--driver-info", pair]));
        create.extend(properties.iter().flat_map(|pair| ["--property", pair]));
        self.order(&create).map(drop)
    }

    /// Deploys and calls `report` with each event until `farrier deploy` ends.
    ///
    /// # Errors
    ///
    /// The one line that `farrier deploy` prints when it fails, or the machine has fallen silent.
    pub fn deploy(&self, node: &str, instance: &Instance, mut report: impl FnMut(Event)) -> Result<()> {
        let mut deploy = self.operator.client(&["deploy", node, "--json", "--image", &instance.url]);
        deploy.args(["--checksum", &format!("sha256:{}", instance.sha256)]);
        if let Some(folder) = instance.config_drive {
            deploy.arg("--config-drive").arg(folder);
        }
        let mut child = deploy
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.farrier.display()))?;
        if let Err(error) = self.follow(node, child.stdout.take(), &mut report) {
            child.kill()?;
            child.wait()?;
            return Err(error);
        }
        let mut errors = String::new();
        if let Some(mut output) = child.stderr.take() {
            output.read_to_string(&mut errors)?;
        }
        if !child.wait()?.success() {
            bail!("{}", errors.trim());
        }
        Ok(())
    }

    /// Reports events until there are no more, for as long as the machine says anything.
    fn follow(&self, node: &str, events: Option<ChildStdout>, report: &mut impl FnMut(Event)) -> Result<()> {
        let (sender, lines) = mpsc::channel();
        let read = move || {
            let lines = events.map(BufReader::new).into_iter().flat_map(BufRead::lines);
            lines.map(|line| sender.send(line)).all(|sent| sent.is_ok())
        };
        thread::spawn(read);
        let mut watch = self.console(node).watch();
        loop {
            match lines.recv_timeout(LOOK_INTERVAL) {
                Ok(line) => {
                    let line = line?;
                    report(serde_json::from_str(&line).with_context(|| format!("no event: {line}"))?);
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => watch.check()?,
            }
        }
    }

    /// Has `farrier` do something else, and returns what it prints.
    ///
    /// # Errors
    ///
    /// The one line that it prints when it fails.
    pub fn order(&self, arguments: &[&str]) -> Result<String> {
        self.operator.order(arguments)
    }

    /// The node's record.
    ///
    /// # Errors
    ///
    /// What `farrier node show` says.
    pub fn node(&self, name: &str) -> Result<Value> {
        self.operator.node(name)
    }

    /// The serial console of a node.
    pub fn console(&self, node: &str) -> Console {
        Console::new(self.folder.join(format!("{node}-console.log")))
    }

    /// The conductor's process.
    pub fn process_id(&self) -> u32 {
        self.server.id()
    }

    /// URL of its interface for operators.
    pub fn url(&self) -> &str {
        &self.operator.url
    }

    /// Whoever gives it orders.
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    /// The token of the state directory, which has all rights.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn token(&self) -> Result<String> {
        let token = fs::read_to_string(self.folder.join(STATE).join("token"));
        Ok(token.context("the conductor has no token")?.trim().to_owned())
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        const LINES: usize = 30;
        let text = fs::read_to_string(self.folder.join("conductor.log")).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }

    /// Folder of this run.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Options of a conductor whose machines are processes of its host, with files of a run anywhere.
const GUESTS: [&str; 5] =
    ["--enabled-hardware-types", "qemu", "--qemu-unsafe-driver-info", "--file-url-allowed-paths", "/"];

/// Whether the machines of a conductor with these options of its own are processes of its host.
pub(crate) fn has_guests(arguments: &[impl AsRef<str>]) -> bool {
    !arguments.iter().any(|argument| argument.as_ref() == GUESTS[0])
}

/// Starts the conductor, and gives where operators find it.
fn serve(listen: &str, farrier: &Path, folder: &Path, arguments: &[String]) -> Result<(Child, String)> {
    let log = File::options().append(true).create(true).open(folder.join("conductor.log"))?;
    let mut server = Command::new(farrier)
        .args(["serve", "--listen", listen, "--admin-listen", "127.0.0.1:0", "--state-dir"])
        .arg(folder.join(STATE))
        .args(GUESTS.iter().filter(|_| has_guests(arguments)))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .with_context(|| format!("cannot start {}", farrier.display()))?;
    match server.stdout.take().and_then(node_api_url) {
        Some(url) => Ok((server, url)),
        None => {
            server.kill().ok();
            server.wait().ok();
            let log = fs::read_to_string(folder.join("conductor.log")).unwrap_or_default();
            bail!("farrier serve did not start:\n{log}")
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        kill(Pid::from_raw(self.server.id().cast_signed()), Signal::SIGTERM).ok();
        let start = Instant::now();
        while start.elapsed() < STOP && matches!(self.server.try_wait(), Ok(None)) {
            thread::sleep(POLL);
        }
        self.server.kill().ok();
        self.server.wait().ok();
    }
}

/// Waits for the announcement of the node API, and goes on reading so that the conductor can print.
fn node_api_url(output: ChildStdout) -> Option<String> {
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let url = lines.find_map(|line| line.strip_prefix("node API listening on ").map(str::to_owned));
    thread::spawn(move || lines.for_each(drop));
    url
}
