//! ChromeDriver as a process.

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;

/// What ChromeDriver prints before the number of its port.
const READY: &str = "started successfully on port ";

/// How often it is started until it has a port.
const ATTEMPTS: usize = 5;

/// A ChromeDriver. Dropping it ends it, with the browser that it has started.
#[derive(Debug)]
pub(super) struct ChromeDriver {
    process: Child,
    /// Where it listens.
    pub(super) url: String,
}

impl ChromeDriver {
    /// Starts one on a free port of this host.
    pub(super) fn start() -> Result<Self> {
        for _ in 0..ATTEMPTS {
            if let Some(driver) = Self::start_once()? {
                return Ok(driver);
            }
        }
        bail!("chromedriver ended {ATTEMPTS} times without a port")
    }

    /// One that listens; nothing where it has ended, since the port that it has taken by IPv6 is in use by IPv4.
    fn start_once() -> Result<Option<Self>> {
        // A group of its own: the processes of a browser do not end with the one that started them.
        let process = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot start chromedriver: run cargo xtask test browser")?;
        let mut driver = Self { process, url: String::new() };
        let output = driver.process.stdout.take().context("chromedriver has no output")?;
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let port = lines.find_map(|line| Some(line.split_once(READY)?.1.trim_end_matches('.').to_owned()));
        let Some(port) = port else { return Ok(None) };
        // Nobody reads on, and nothing that it prints may stop it.
        thread::spawn(move || lines.for_each(drop));
        driver.url = format!("http://127.0.0.1:{port}");
        Ok(Some(driver))
    }
}

impl Drop for ChromeDriver {
    fn drop(&mut self) {
        killpg(Pid::from_raw(self.process.id().cast_signed()), Signal::SIGKILL).ok();
        self.process.wait().ok();
    }
}
