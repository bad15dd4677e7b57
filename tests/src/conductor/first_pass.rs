//! Lives of simulated machines under two conductors, with every class of faults: the files of the fleet and of the site,
//! and the run of the simulator.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names of the files.
const FLEET: &str = "fleet.toml";
const SITE: &str = "site.toml";

/// Conductors of the site.
const CONDUCTORS: [&str; 2] = ["one", "two"];
/// Files that the conductor takes for boot loaders of media; no machine starts them.
const LOADERS: [&str; 2] = ["bootx64.efi", "gcdx64.efi"];
/// Where Debian has libfaketime.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// What a run is made of.
#[derive(Debug)]
pub struct FirstPass {
    /// How many lives.
    pub lives: u64,
    /// The share of lives that each class of faults strikes.
    pub rate: f64,
    /// How many machines.
    pub machines: u32,
    /// How many lives are lived at a time.
    pub at_once: u32,
    /// What faults and durations follow from.
    pub seed: u64,
    /// Longest silence of an agent before its operation fails, in seconds.
    pub callback_timeout: u64,
    /// The conductor's program.
    pub farrier: PathBuf,
    /// Where everything is kept. A run that was killed resumes there.
    pub folder: PathBuf,
}

/// The classes of faults: name, whether a conductor can reach its goal all the same, and how long they last. Power that
/// fails in a step, and a machine that starts something else, end an operation by the contract: nothing is tried again there.
const CLASSES: [(&str, bool, &str); 9] = [
    ("bmc", true, "10m"),
    ("device-late", true, "5m"),
    ("dhcp-lost", true, "20m"),
    ("image-server", true, "10m"),
    ("image-digest", false, "1m"),
    ("agent-crash", true, "1m"),
    ("power-cut", false, "1m"),
    ("boots-other", false, "1m"),
    ("conductor", true, "12s"),
];

impl FirstPass {
    /// Runs the simulator in user and network namespaces of its own: what is done to the network is done to no other.
    /// Gives its report; that of a run that has ended in this folder is read again.
    ///
    /// # Errors
    ///
    /// A file cannot be written, or the simulator ended before its report.
    pub fn run(&self, simulator: &Path) -> Result<PathBuf> {
        let file = |name: &str| self.folder.join(name);
        let report = file("report.json");
        if report.exists() {
            return Ok(report);
        }
        self.write()?;
        let mut run = Command::new("unshare");
        run.args(["--user", "--map-root-user", "--net"]).arg(simulator).arg("drive").arg(file(FLEET));
        run.arg("--site").arg(file(SITE)).arg("--results").arg(file("lives.jsonl"));
        run.arg("--journal").arg(file("journal.jsonl")).arg("--json").arg(&report);
        let ended = run.env("RUST_MIN_STACK", "8388608").stdin(Stdio::null()).status();
        let ended = ended.context("cannot start unshare")?;
        // A life that is not explained is told by the report, and by the status.
        anyhow::ensure!(report.exists(), "the simulator ended with {ended}, without a report");
        Ok(report)
    }

    /// The fleet.
    pub fn fleet_file(&self) -> String {
        let Self { lives, rate, machines, at_once, seed, .. } = self;
        let mut text = format!(
            "seed = {seed}\nmachines = {machines}\nshorten = 100\n\n[network]\nfirst-address = \"10.64.0.1\"\n\n\
             [vendors]\ngeneric = 2\ndell = 1\nhpe = 1\nlenovo = 1\nsupermicro = 1\n\n[agents]\ncertificates = \
             \"shared-key\"\n\n[phases]\nerase-devices = \"3m\"\n\n[lives]\ncount = {lives}\nat-once = {at_once}\npatience = \
             \"5m\"\nlease = \"10s\"\n"
        );
        for (class, recoverable, lasts) in CLASSES {
            text += &format!(
                "\n[faults.{class}]\nrate = {rate}\nrecoverable = {recoverable}\nlasts = \"{lasts}\"\n"
            );
        }
        text
    }

    /// Writes what the simulator reads. What is there of an earlier run stays.
    fn write(&self) -> Result<()> {
        let Self { folder, .. } = self;
        let write = |name: &str, text: &str| {
            let file = folder.join(name);
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
        };
        write(FLEET, &self.fleet_file())?;
        write_loaders(folder)?;
        write(SITE, &self.site_file())
    }

    /// Two conductors over one database. Each has a state directory, and its agents and BMCs reach it alone.
    fn site_file(&self) -> String {
        let Self { farrier, folder, callback_timeout, .. } = self;
        let callback_timeout = callback_timeout.to_string();
        let loaders = loader_paths(folder);
        let mut text = format!("isolated = true\nfaketime = \"{FAKETIME}\"\n");
        for name in CONDUCTORS {
            let state = folder.join(name);
            let (program, database) = (farrier.display().to_string(), folder.join("nodes.sqlite"));
            let (state_dir, database) = (state.display().to_string(), database.display().to_string());
            let url = "http://{address}:6385";
            let command = [
                [program.as_str(), "serve"],
                ["--conductor-name", name],
                ["--listen", "0.0.0.0:6385"],
                ["--admin-listen", "0.0.0.0:6386"],
                ["--state-dir", &state_dir],
                ["--database", &database],
                ["--enabled-hardware-types", "redfish"],
                ["--api-url", url],
                ["--virtual-media-url", url],
                ["--loader-file-paths", &loaders],
                ["--deploy-logs-collect", "never"],
                ["--heartbeat-timeout", "30"],
                ["--deploy-callback-timeout", &callback_timeout],
                ["--clean-callback-timeout", &callback_timeout],
                ["--inspect-wait-timeout", &callback_timeout],
                ["--lease", "10"],
            ];
            text += &format!(
                "\n[[conductor]]\ncommand = {:?}\napi-port = 6386\nlog = {:?}\ntoken-file = {:?}\n",
                command.as_flattened(),
                folder.join(format!("{name}.log")),
                state.join("token"),
            );
        }
        text
    }
}

/// Writes the files that conductors take for boot loaders of media.
///
/// # Errors
///
/// The folder cannot be written.
pub fn write_loaders(folder: &Path) -> Result<()> {
    for name in LOADERS {
        let file = folder.join(name);
        fs::write(&file, "a boot loader").with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// The option `--loader-file-paths` of a conductor that finds these files in a folder.
pub fn loader_paths(folder: &Path) -> String {
    LOADERS.map(|name| format!("{name}:{}", folder.join(name).display())).join(",")
}
