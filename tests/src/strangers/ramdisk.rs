//! The real agent as a process, whose conductor is in the hands of a stranger, or which strangers call.

use super::measure::{PATIENCE, Subject, peak_kib};
use super::network::{Neighbour, enter_own};
use super::peer::{Peer, Reply};
use super::shape::Shape;
use super::{Row, WITH_A_TOKEN, WITHOUT_CREDENTIALS};
use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::json;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The node that the machine is, and the token of its agent.
const NODE: &str = "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11";
const TOKEN: &str = "q3X7yVt0bUo4mQ8J2nS6eRk1wZ5cLdF9hGpTaNxYvBE";
/// The longest answer that an agent reads, in bytes.
const ANSWER: usize = 4 << 20;
/// The longest command that it takes, a config drive's, in bytes.
const COMMAND: usize = 88 << 20;
/// A shorter one, in bytes.
const SHORT_COMMAND: usize = 1 << 20;
/// A long command is in memory as it came: what an agent may take for one besides what everybody with a token may.
const OF_TEXT: u64 = COMMAND as u64 >> 10;
/// Its sysfs cannot be written, and shows the cable of its network as a network card.
const SETUP: &str = "mount -t sysfs -o ro sysfs /sys && mount -t tmpfs none /sys/class/net && \
    mkdir -p /sys/class/net/cable/device && echo 1 > /sys/class/net/cable/carrier && \
    mount -t tmpfs none /run && exec \"$0\" \"$@\"";

/// What the conductor is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Version,
    Lookup,
    Heartbeat,
}

impl Asked {
    const ALL: [Self; 3] = [Self::Version, Self::Lookup, Self::Heartbeat];

    fn of(path: &str) -> Self {
        match path {
            path if path.contains("/lookup") => Self::Lookup,
            path if path.contains("/heartbeat/") => Self::Heartbeat,
            _ => Self::Version,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Version => "versions",
            Self::Lookup => "a lookup",
            Self::Heartbeat => "a heartbeat",
        }
    }
}

/// One row for each answer, command and shape.
///
/// # Errors
///
/// There is no network for it, or an agent does not call.
pub fn rows(program: &Path, folder: &Path, shapes: &[Shape]) -> Result<Vec<Row>> {
    let (program, folder, shapes) = (program.to_owned(), folder.to_owned(), shapes.to_vec());
    let tried = thread::spawn(move || {
        enter_own()?;
        fs::create_dir_all(&folder)?;
        let host = Neighbour::connect(1)?;
        let machine = Machine { program: &program, folder: &folder, host: &host };
        let mut rows = Vec::new();
        for shape in shapes {
            rows.extend(machine.commanded(shape)?);
            for asked in Asked::ALL {
                rows.push(machine.answered(asked, shape)?);
            }
        }
        Ok(rows)
    });
    tried.join().map_err(|_| anyhow!("the thread of the agents panicked"))?
}

/// Where agents run.
struct Machine<'a> {
    program: &'a Path,
    folder: &'a Path,
    host: &'a Neighbour,
}

/// The agent's process, killed when it is dropped.
struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A conductor, and how often it was asked for each.
struct Conductor {
    peer: Peer,
    counts: Arc<[AtomicU64; 3]>,
}

impl Conductor {
    /// Answers one of the questions with a value of a shape, and the others as a conductor does.
    fn start(host: &Neighbour, bad: Option<(Asked, Shape)>) -> Result<Self> {
        let version =
            json!({"id": "v1", "links": [], "status": "CURRENT", "min_version": "1.1", "version": "1.95"});
        let node = json!({"uuid": NODE, "properties": {}, "instance_info": {}, "driver_internal_info": {}});
        let config = json!({"heartbeat_timeout": 3, "agent_token": TOKEN, "agent_token_required": true});
        let replies = [
            (200, json!({"name": "c", "default_version": version, "versions": [version]})),
            (200, json!({"node": node, "config": config})),
            (202, json!({})),
        ];
        let mut replies = replies.map(|(status, body)| Reply::new(status, &Arc::new(body.to_string())));
        if let Some((asked, shape)) = bad {
            let status = if asked == Asked::Heartbeat { 400 } else { 200 };
            let body = format!("{{\"error_message\":\"x\",\"x\":{}}}", shape.value(ANSWER - 400));
            replies[asked as usize] = Reply::new(status, &Arc::new(body));
        }
        let counts = Arc::<[AtomicU64; 3]>::default();
        let counted = Arc::clone(&counts);
        let peer = Peer::start(host.gateway(), move |_, path| {
            let asked = Asked::of(path) as usize;
            counted[asked].fetch_add(1, Ordering::Relaxed);
            replies[asked].clone()
        })?;
        Ok(Self { peer, counts })
    }

    fn count(&self, asked: Asked) -> u64 {
        self.counts[asked as usize].load(Ordering::Relaxed)
    }

    /// Waits until it was asked so often.
    fn waits_for(&self, asked: Asked, count: u64) -> Result<()> {
        let begin = Instant::now();
        while self.count(asked) < count {
            ensure!(begin.elapsed() < PATIENCE, "the agent does not ask for {}", asked.name());
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Machine<'_> {
    fn start(&self, conductor: &Conductor) -> Result<Agent> {
        let holder = self.host.process_id().to_string();
        let log = File::options().append(true).create(true).open(self.folder.join("agent.log"))?;
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &holder, "unshare", "--mount", "sh", "-c", SETUP]);
        command.arg(self.program).args(["run", "--api_url", &conductor.peer.url()]);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Ok(Agent(command.spawn().context("cannot start nsenter")?))
    }

    fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.folder.join("agent.log")).unwrap_or_default();
        log.lines().rev().take(10).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// An agent to which an answer is given, beside one whose conductor is honest.
    fn answered(&self, asked: Asked, shape: Shape) -> Result<Row> {
        let before_kib = {
            let conductor = Conductor::start(self.host, None)?;
            let agent = self.start(&conductor)?;
            conductor.waits_for(Asked::Heartbeat, 2).with_context(|| self.log_tail())?;
            peak_kib(agent.0.id())?
        };
        let conductor = Conductor::start(self.host, Some((asked, shape)))?;
        let agent = self.start(&conductor)?;
        // One that asks again has read what it was answered before, and goes on without versions.
        let waited = match asked {
            Asked::Version => conductor.waits_for(Asked::Heartbeat, 2),
            Asked::Lookup | Asked::Heartbeat => conductor.waits_for(asked, 2),
        };
        let answer = format!("asked {} times", conductor.count(asked));
        Ok(Row {
            process: "agent".to_owned(),
            stranger: format!("conductor's answer of 4 MiB to {}: {}", asked.name(), shape.name()),
            answer,
            before_kib,
            after_kib: peak_kib(agent.0.id()).with_context(|| self.log_tail())?,
            allowed_kib: WITHOUT_CREDENTIALS,
            error: waited.err().map(|error| format!("{error:#}")),
            ..Row::default()
        })
    }

    /// An agent that is sent commands.
    fn commanded(&self, shape: Shape) -> Result<Vec<Row>> {
        let conductor = Conductor::start(self.host, None)?;
        let agent = self.start(&conductor)?;
        conductor.waits_for(Asked::Heartbeat, 1).with_context(|| self.log_tail())?;
        let url = format!("https://{}:9999/v1", self.host.address());
        let status = format!("{url}/status");
        let ask = move || curl(&[&status]).is_ok_and(|answer| answer == "200");
        let subject = Subject { process: "agent", id: agent.0.id(), ask: Arc::new(ask) };
        ensure!((subject.ask)(), "the agent does not answer\n{}", self.log_tail());
        let body = self.folder.join("body");
        let order = |token: &str| {
            curl(&[
                "--data-binary",
                &format!("@{}", body.display()),
                "-H",
                "Content-Type: application/json",
                &format!("{url}/commands/?wait=false{token}"),
            ])
        };
        let with_token = format!("&agent_token={TOKEN}");
        fs::write(&body, "{}")?;
        order(&with_token)?;
        let mut rows = Vec::new();
        for (what, bytes, token, allowed) in [
            ("command of 88 MiB without the token", COMMAND, "", WITHOUT_CREDENTIALS),
            ("command of 1 MiB", SHORT_COMMAND, &*with_token, WITH_A_TOKEN),
            ("command of 88 MiB", COMMAND, &*with_token, WITH_A_TOKEN + OF_TEXT),
        ] {
            let value = shape.value(bytes - 400);
            fs::write(&body, format!("{{\"name\":\"none.none\",\"params\":{{\"x\":{value}}}}}"))?;
            let stranger = format!("{what}: {}", shape.name());
            rows.push(subject.meets(&stranger, allowed, || order(token))?);
        }
        Ok(rows)
    }
}

/// The status of what is answered to a request.
fn curl(arguments: &[&str]) -> Result<String> {
    let mut curl = Command::new("curl");
    let usual = [
        "--silent",
        "--insecure",
        "--max-time",
        "120",
        "--output",
        "/dev/null",
        "--write-out",
        "%{http_code}",
    ];
    let output = curl.args(usual).args(arguments).output().context("cannot start curl")?;
    let status = String::from_utf8_lossy(&output.stdout).into_owned();
    // Whoever is refused while sending may not get to read the answer.
    if status == "000" {
        bail!("no answer: curl ends with {}", output.status);
    }
    Ok(status)
}
