//! An agent in an emulated machine that a test commands itself, with curl.

use super::stub_conductor::{StubConductor, TOKEN};
use crate::machine::{Boot, Firmware, Hardware, Machine};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time for a machine to send its first heartbeat, emulated on a busy machine.
const BOOT_LIMIT: Duration = Duration::from_secs(240);
const POLL: Duration = Duration::from_millis(500);
/// Seconds for which a conductor waits for an answer (Ironic's `[agent]command_timeout`).
const COMMAND_TIMEOUT: &str = "60";

/// A machine whose agent waits for commands. Dropping it switches it off.
#[derive(Debug)]
pub struct CommandedAgent {
    machine: Machine,
    url: String,
    conductor: StubConductor,
    certificate: String,
}

impl CommandedAgent {
    /// Boots the ramdisk in `dist`, by BIOS, with the kernel's `parameters` and further `arguments` of QEMU, and
    /// waits for the first heartbeat.
    ///
    /// # Errors
    ///
    /// There was none; the text holds the end of the console.
    pub fn boot(hardware: &Hardware, arguments: &[String], dist: &Path, parameters: &str) -> Result<Self> {
        Self::boot_under(Firmware::Bios, StubConductor::start()?, hardware, arguments, dist, parameters)
    }

    /// As [`CommandedAgent::boot`], with this firmware, and with this conductor to call.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn boot_under(
        firmware: Firmware,
        conductor: StubConductor,
        hardware: &Hardware,
        arguments: &[String],
        dist: &Path,
        parameters: &str,
    ) -> Result<Self> {
        let url = conductor.guest_url();
        let parameters = format!("console=ttyS0 ipa-api-url={url} {parameters}");
        let machine = hardware.boot_under(firmware, Boot::Ramdisk(dist, &parameters), arguments)?;
        Self::meet(machine, hardware, conductor)
    }

    /// Waits for the first heartbeat of a machine that was switched on, and whose agent reports to `conductor`.
    ///
    /// # Errors
    ///
    /// As [`CommandedAgent::boot`].
    pub fn meet(mut machine: Machine, hardware: &Hardware, conductor: StubConductor) -> Result<Self> {
        let started = Instant::now();
        let heartbeat = loop {
            match conductor.wait_for("/v1/heartbeat/", POLL) {
                Some(heartbeat) => break heartbeat,
                None if started.elapsed() > BOOT_LIMIT || !machine.is_on()? => {
                    bail!("no heartbeat; the console:\n{}", hardware.console().tail());
                }
                None => {}
            }
        };
        let certificate = heartbeat["agent_verify_ca"].as_str().unwrap_or_default().to_owned();
        let url = format!("https://127.0.0.1:{}", hardware.agent_port);
        Ok(Self { machine, url, conductor, certificate })
    }

    /// Where the agent answers.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The conductor that it reports to.
    pub fn conductor(&self) -> &StubConductor {
        &self.conductor
    }

    /// The certificate of its first heartbeat, in PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Whether the machine is still on.
    ///
    /// # Errors
    ///
    /// The kernel does not tell.
    pub fn is_on(&mut self) -> Result<bool> {
        self.machine.is_on()
    }

    /// Waits until the machine has switched itself off.
    ///
    /// # Errors
    ///
    /// It is still on after `limit`.
    pub fn wait_until_off(&mut self, limit: Duration) -> Result<()> {
        self.machine.wait_until_off(limit).map(drop)
    }

    /// Orders a command and returns its result object.
    ///
    /// # Errors
    ///
    /// The agent does not answer, or refuses.
    pub fn order(&self, name: &str, params: &Value) -> Result<Value> {
        let url = format!("{}/v1/commands/?wait=false&agent_token={TOKEN}", self.url);
        let body = json!({"name": name, "params": params}).to_string();
        let answer = curl(&["--fail-with-body", "--data-binary", "@-", &url], &body)?;
        serde_json::from_str(&answer).with_context(|| format!("no result: {answer}"))
    }

    /// All commands that the agent knows, in order.
    ///
    /// # Errors
    ///
    /// The agent does not answer.
    pub fn commands(&self) -> Result<Vec<Value>> {
        let url = format!("{}/v1/commands/?agent_token={TOKEN}", self.url);
        let answer = curl(&["--fail-with-body", &url], "")?;
        let list: Value = serde_json::from_str(&answer).with_context(|| format!("no list: {answer}"))?;
        list["commands"].as_array().cloned().with_context(|| format!("no list: {answer}"))
    }

    /// The command that was ordered last.
    ///
    /// # Errors
    ///
    /// The agent does not answer, or has no command.
    pub fn last_command(&self) -> Result<Value> {
        self.commands()?.pop().context("no command")
    }

    /// Waits until the command with this identity has ended in whatever way, even if the agent ends and comes back
    /// meanwhile, and returns all commands that the agent knows then.
    ///
    /// # Errors
    ///
    /// There is no such agent after `limit`; the text holds the end of the console.
    pub fn outlive(&self, id: &Value, limit: Duration) -> Result<Vec<Value>> {
        let started = Instant::now();
        while started.elapsed() < limit {
            // Nobody listens for a while.
            let commands = self.commands().unwrap_or_default();
            if commands.iter().any(|one| one["id"] == *id && one["command_status"] != "RUNNING") {
                return Ok(commands);
            }
            std::thread::sleep(POLL);
        }
        bail!("no agent that has ended {id} after {limit:?}; the console:\n{}", self.machine.console().tail())
    }

    /// Waits until the last command has ended, and returns it.
    ///
    /// # Errors
    ///
    /// It still runs after `limit`.
    pub fn wait_for_end(&self, limit: Duration) -> Result<Value> {
        let started = Instant::now();
        while started.elapsed() < limit {
            let last = self.last_command()?;
            if last["command_status"] != "RUNNING" {
                return Ok(last);
            }
            std::thread::sleep(POLL);
        }
        bail!("the command still runs after {limit:?}")
    }

    /// Orders a command, waits until it has succeeded, and returns what it results in.
    ///
    /// # Errors
    ///
    /// As [`CommandedAgent::order`] and [`CommandedAgent::wait_for_success`].
    pub fn succeed(&self, name: &str, params: &Value, limit: Duration) -> Result<Value> {
        self.order(name, params)?;
        self.wait_for_success(limit)
    }

    /// Waits until the last command has succeeded, and returns what it results in.
    ///
    /// # Errors
    ///
    /// It ended in another way, or still runs after `limit`; the text holds the end of the console.
    pub fn wait_for_success(&self, limit: Duration) -> Result<Value> {
        Ok(self.wait_for("SUCCEEDED", limit)?["command_result"].take())
    }

    /// Waits until the last command has failed, and returns its error object.
    ///
    /// # Errors
    ///
    /// As [`CommandedAgent::wait_for_success`].
    pub fn wait_for_failure(&self, limit: Duration) -> Result<Value> {
        Ok(self.wait_for("FAILED", limit)?["command_error"].take())
    }

    fn wait_for(&self, status: &str, limit: Duration) -> Result<Value> {
        let ended = self.wait_for_end(limit)?;
        if ended["command_status"] != status {
            bail!("not {status}: {ended}\nconsole:\n{}", self.machine.console().tail());
        }
        Ok(ended)
    }

    /// Reads the list of commands so many times over one connection.
    ///
    /// # Errors
    ///
    /// Not all of them were answered with status 200.
    pub fn read_often(&self, count: usize) -> Result<()> {
        let url = format!("{}/v1/commands/?agent_token={TOKEN}&n=[1-{count}]", self.url);
        let answer = curl(&["--output", "/dev/null", "--write-out", "%{http_code}\n", &url], "")?;
        let good = answer.lines().filter(|line| *line == "200").count();
        if good != count {
            bail!("{good} of {count} requests were answered with 200");
        }
        Ok(())
    }
}

/// The machine's certificate is its own; that it is the right one matters to no test here.
fn curl(arguments: &[&str], body: &str) -> Result<String> {
    let mut curl = Command::new("curl")
        .args(["--silent", "--show-error", "--insecure", "--max-time", COMMAND_TIMEOUT])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start curl")?;
    if let Some(mut input) = curl.stdin.take() {
        // Requests without a body do not read it.
        input.write_all(body.as_bytes()).ok();
    }
    let output = curl.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("curl: {}{text}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(text)
}
