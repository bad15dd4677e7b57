//! Builds the test programs, finds out which tests they hold, and runs some of these.

use std::cmp::Reverse;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use serde::Deserialize;

use super::failure::Failure;
use super::order;
use super::summary::Summary;
use super::timing::Timing;
use crate::host::command::{as_root, command, run_quietly, shown};
use crate::host::processor_time;
use crate::host::workspace::{Workspace, cargo};

/// The builder of ramdisks.
pub const IMAGE_BUILDER: &str = "farrier-image";
/// The reference conductor.
pub const CONDUCTOR: &str = "farrier";
/// What tests run.
const PROGRAMS: [&str; 2] = [IMAGE_BUILDER, CONDUCTOR];

/// What a test needs, told by how its name starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tier {
    /// Needs nothing.
    Unit,
    /// `process_`: starts programs as operators and drivers do: `farrier`, `ipmitool`, QEMU, PostgreSQL.
    Process,
    /// `fault_`: kills conductors after each of their writes, and lets each method of a driver fail.
    Fault,
    /// `loop_`: writes to loop devices, as root.
    Disk,
    /// `vm_`: boots the ramdisk in virtual machines.
    Vm,
    /// `aarch64_`: the same on the other architecture, where the ramdisk only has to boot.
    Aarch64,
    /// `lifecycle_`: the same, through whole lives of nodes that the reference conductor leads.
    Lifecycle,
    /// `ironic_`: the same lives, led by a real Ironic from PyPI.
    Ironic,
    /// `ironic_iscsi_`: led by an old Ironic from PyPI, which writes to the disk that the agent exports.
    IronicIscsi,
    /// `browser_`: leads Chromium through the page.
    Browser,
    /// `client_`: operators' clients from PyPI and Debian, against the reference conductor.
    Client,
    /// `openstack_`: networks by Keystone and Neutron from PyPI.
    Openstack,
    /// `docs_`: the book and the documentation of the crates.
    Docs,
}

/// A program with tests.
#[derive(Debug)]
pub struct TestProgram {
    executable: PathBuf,
    package_folder: PathBuf,
    tests: Vec<(Tier, String)>,
}

/// What tests consist of, and what they run.
#[derive(Debug, Default)]
pub struct Built {
    /// Programs with tests.
    pub programs: Vec<TestProgram>,
    others: Vec<(String, PathBuf)>,
}

impl Built {
    /// One of [`PROGRAMS`], built with them.
    pub fn program(&self, name: &str) -> Result<&Path> {
        let found = self.others.iter().find(|(built, _)| built == name);
        found.map(|(_, path)| path.as_path()).with_context(|| format!("cargo built no {name}"))
    }

    /// Leaves out all tests whose paths contain none of these texts.
    pub fn keep(&mut self, texts: &[String]) -> Result<()> {
        for text in texts {
            if !self.programs.iter().flat_map(|program| &program.tests).any(|(_, test)| test.contains(text)) {
                bail!("no test has {text} in its name");
            }
        }
        for program in &mut self.programs {
            program.tests.retain(|(_, test)| texts.iter().any(|text| test.contains(text)));
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct CargoMessage {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<CargoTarget>,
    #[serde(default)]
    profile: CargoProfile,
}

#[derive(Deserialize)]
struct CargoTarget {
    name: String,
}

#[derive(Default, Deserialize)]
struct CargoProfile {
    test: bool,
}

impl Tier {
    /// The tier of a test by its path, such as `wipe::tests::loop_wipes_all`. Modules may be called
    /// anything: only the function's own name counts.
    fn of(test: &str) -> Self {
        let name = function(test);
        if name.starts_with("process_") {
            Self::Process
        } else if name.starts_with("fault_") {
            Self::Fault
        } else if name.starts_with("loop_") {
            Self::Disk
        } else if name.starts_with("vm_") {
            Self::Vm
        } else if name.starts_with("aarch64_") {
            Self::Aarch64
        } else if name.starts_with("lifecycle_") {
            Self::Lifecycle
        } else if name.starts_with("ironic_iscsi_") {
            Self::IronicIscsi
        } else if name.starts_with("ironic_") {
            Self::Ironic
        } else if name.starts_with("browser_") {
            Self::Browser
        } else if name.starts_with("client_") {
            Self::Client
        } else if name.starts_with("openstack_") {
            Self::Openstack
        } else if name.starts_with("docs_") {
            Self::Docs
        } else {
            Self::Unit
        }
    }

    /// Whether its tests leave so much of the processors that those of the next tier run beside them.
    pub fn leaves_room(self) -> bool {
        self == Self::Disk
    }

    /// How its tests share the processors: each machine gets one, and one that Ironic leads another for Ironic;
    /// disks get all of them. Unit tests wait for more than half of their time, so each processor gets a program with
    /// twice as many tests at a time as there are processors.
    fn crew(self) -> Crew {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        match self {
            Self::Unit | Self::Process | Self::Fault => {
                Crew { processes: processors, threads: 2 * processors, is_alone: false }
            }
            Self::Browser | Self::Openstack => Crew { processes: 1, threads: processors, is_alone: false },
            Self::Disk | Self::Client | Self::IronicIscsi | Self::Docs => {
                Crew { processes: 1, threads: 1, is_alone: true }
            }
            Self::Vm | Self::Aarch64 | Self::Lifecycle => {
                Crew { processes: processors, threads: 1, is_alone: true }
            }
            Self::Ironic => Crew { processes: 1, threads: (processors / 2).max(1), is_alone: false },
        }
    }
}

/// Who works on the tests of a tier.
#[derive(Debug, Clone, Copy)]
struct Crew {
    /// Processes at a time.
    processes: usize,
    /// Tests at a time in each of them.
    threads: usize,
    /// Whether each test has a process of its own: they take very different times, which are told.
    is_alone: bool,
}

/// What one process does.
struct Batch<'a> {
    program: &'a TestProgram,
    names: Vec<&'a String>,
}

/// The function of a test by its path.
fn function(test: &str) -> &str {
    test.rsplit("::").next().unwrap_or(test)
}

/// Builds all tests of the workspace and what they run, at once: alone the latter would have other features of
/// libraries, which would be built twice.
pub fn build(workspace: &Workspace) -> Result<Built> {
    let mut build = cargo();
    build.args([
        "build",
        "--workspace",
        "--tests",
        "--examples",
        "--message-format",
        "json-render-diagnostics",
    ]);
    build.args(PROGRAMS.iter().flat_map(|name| ["--bin", name]));
    let output = build.current_dir(&workspace.root).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("the tests cannot be built");
    }
    let mut built = Built::default();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: CargoMessage =
            serde_json::from_str(line).with_context(|| format!("cargo printed {line}"))?;
        let (Some(executable), Some(manifest), Some(target)) =
            (message.executable, message.manifest_path, message.target)
        else {
            continue;
        };
        match message.profile.test {
            true => built.programs.push(TestProgram::read(executable, &manifest)?),
            false => built.others.push((target.name, executable)),
        }
    }
    Ok(built)
}

/// What came of tests.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many had which result.
    pub summary: Summary,
    /// Those that failed.
    pub failures: Vec<Failure>,
    /// How long each process took.
    pub timings: Vec<Timing>,
}

/// Runs the tests of one tier with `environment`, showing what they print.
pub fn run(programs: &[TestProgram], tier: Tier, environment: &[(&str, String)]) -> Result<Outcome> {
    let crew = tier.crew();
    let mut batches: Vec<_> = programs.iter().flat_map(|program| program.batches(tier, crew)).collect();
    batches.sort_by_key(|batch| (order::rank(&batch.name()), Reverse(batch.names.len())));
    let (waiting, busy): (Vec<_>, Vec<_>) =
        batches.into_iter().partition(|batch| order::is_waiting(&batch.name()));
    let work = |batch: &Batch<'_>| batch.run(tier, crew, environment);
    let outcomes = thread::scope(|scope| {
        let beside = scope.spawn(|| by_several(1, &waiting, work));
        let mut outcomes = by_several(crew.processes, &busy, work);
        outcomes.extend(beside.join().unwrap_or_else(|_| vec![Err(anyhow!("a thread panicked"))]));
        outcomes
    });
    let mut all = Outcome::default();
    for outcome in outcomes {
        all.extend(outcome?);
    }
    Ok(all)
}

impl Outcome {
    /// Adds what came of others.
    pub fn extend(&mut self, other: Self) {
        self.summary += other.summary;
        self.failures.extend(other.failures);
        self.timings.extend(other.timings);
    }
}

/// Does `work` on all items, so many at a time. Each is begun in its turn, as soon as somebody is free.
fn by_several<T: Sync, R: Send>(
    workers: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Vec<Result<R>> {
    let next = AtomicUsize::new(0);
    let work_on = || {
        let begun = std::iter::from_fn(|| items.get(next.fetch_add(1, Ordering::Relaxed)));
        begun.map(&work).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work_on)).collect();
        let ended = workers.into_iter().map(thread::ScopedJoinHandle::join);
        ended.flat_map(|done| done.unwrap_or_else(|_| vec![Err(anyhow!("a thread panicked"))])).collect()
    })
}

impl TestProgram {
    /// Asks a program which tests it has.
    fn read(executable: PathBuf, manifest: &Path) -> Result<Self> {
        let list = run_quietly(command(&executable).args(["--list", "--format", "terse"]))?;
        let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
        let tests = names.map(|name| (Tier::of(name), name.to_owned())).collect();
        let package_folder = manifest.parent().context("a package without a folder")?.to_owned();
        Ok(Self { executable, package_folder, tests })
    }

    fn batches(&self, tier: Tier, crew: Crew) -> Vec<Batch<'_>> {
        let names: Vec<_> = self.tests.iter().filter(|(of, _)| *of == tier).map(|(_, name)| name).collect();
        let size = if crew.is_alone { 1 } else { names.len().max(1) };
        names.chunks(size).map(|names| Batch { program: self, names: names.to_vec() }).collect()
    }
}

impl Batch<'_> {
    fn run(&self, tier: Tier, crew: Crew, environment: &[(&str, String)]) -> Result<Outcome> {
        let TestProgram { executable, package_folder, .. } = self.program;
        let mut program = if tier == Tier::Disk { as_root("env") } else { command("env") };
        program.args(environment.iter().map(|(name, value)| format!("{name}={value}")));
        // As cargo itself does it.
        program.arg(format!("CARGO_MANIFEST_DIR={}", package_folder.display())).arg(executable);
        program
            .arg(format!("--test-threads={}", crew.threads))
            .args(["--show-output", "--exact"])
            .args(&self.names);
        let is_shown_at_once = crew.processes == 1 && !tier.leaves_room();
        run_and_count(program.current_dir(package_folder), &self.name(), is_shown_at_once)
    }

    /// The test, or the program with how many tests of it.
    fn name(&self) -> String {
        if let [name] = *self.names {
            return function(name).to_owned();
        }
        let file = self.program.executable.file_stem().unwrap_or_default().to_string_lossy();
        let program = file.rsplit_once('-').map_or(&*file, |(name, _)| name);
        format!("{program}, {} tests", self.names.len())
    }
}

/// Runs the examples in the documentation.
pub fn run_documentation(workspace: &Workspace) -> Result<Outcome> {
    let mut tests = cargo();
    tests.args(["test", "--quiet", "--workspace", "--doc"]);
    run_and_count(tests.current_dir(&workspace.root), "examples in the documentation", false)
}

/// What came of a process, and for how long it and its own kept a processor busy. What it prints is shown at once when
/// it is alone, else in one piece when it has ended.
fn run_and_count(command: &mut Command, name: &str, is_alone: bool) -> Result<Outcome> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    let mut lines = Vec::new();
    for line in child.stdout.take().into_iter().flat_map(|output| BufReader::new(output).split(b'\n')) {
        let line = String::from_utf8_lossy(&line?).into_owned();
        if is_alone {
            println!("{line}");
        }
        lines.push(line);
    }
    if !is_alone {
        println!("{}", lines.join("\n"));
    }
    let busy = processor_time::of_ended(&child)?;
    let is_success = child.wait()?.success();
    let mut summary = Summary::of_output(lines.iter().map(String::as_str));
    let mut failures = Failure::of_output(&lines);
    if !is_success && summary.failed == 0 {
        summary.failed = 1;
    }
    if failures.is_empty() && summary.failed > 0 {
        failures.push(Failure::new(name));
    }
    let timings = vec![Timing::new(name, start.elapsed()).with_processor(busy)];
    Ok(Outcome { summary, failures, timings })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    fn program(tests: &[(Tier, &str)]) -> TestProgram {
        let tests = tests.iter().map(|(tier, name)| (*tier, (*name).to_owned())).collect();
        TestProgram { executable: PathBuf::new(), package_folder: PathBuf::new(), tests }
    }

    #[test]
    fn tests_are_together_or_alone_and_named_so() {
        let mut program = program(&[(Tier::Vm, "raid::vm_a"), (Tier::Unit, "b"), (Tier::Vm, "vm_c")]);
        program.executable = "/target/vm-0123456789abcdef".into();
        for (is_alone, names, shown) in [
            (false, vec![vec!["raid::vm_a", "vm_c"]], vec!["vm, 2 tests"]),
            (true, vec![vec!["raid::vm_a"], vec!["vm_c"]], vec!["vm_a", "vm_c"]),
        ] {
            let batches = program.batches(Tier::Vm, Crew { processes: 2, threads: 1, is_alone });
            assert_eq!(batches.iter().map(|batch| batch.names.clone()).collect::<Vec<_>>(), names);
            assert_eq!(batches.iter().map(Batch::name).collect::<Vec<_>>(), shown);
        }
        assert!(program.batches(Tier::Disk, Tier::Disk.crew()).is_empty());
    }

    #[test]
    fn as_many_as_wanted_work_at_a_time_and_nothing_is_lost() {
        // Nobody gets past it alone.
        let both = Barrier::new(2);
        let outcomes = by_several(2, &[1, 2, 3, 4], |number| {
            both.wait();
            if *number == 3 { bail!("three") } else { Ok(*number) }
        });
        let mut numbers: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [&1, &2, &4]);
        assert_eq!(outcomes.len(), 4);
    }

    #[test]
    fn only_the_functions_name_tells_the_tier() {
        for (test, tier) in [
            ("loop_device::tests::sizes_are_read", Tier::Unit),
            ("wipe::tests::loop_wipes_all", Tier::Disk),
            ("killed::process_a_lease_is_over", Tier::Process),
            ("process::tests::a_program_is_started", Tier::Unit),
            ("crash::fault_a_conductor_is_killed", Tier::Fault),
            ("vm_deploys", Tier::Vm),
            ("vm_image::plain", Tier::Unit),
            ("aarch64_boots", Tier::Aarch64),
            ("lifecycle_of_an_agent", Tier::Lifecycle),
            ("ironic_deploys", Tier::Ironic),
            ("ironic_iscsi_17_writes", Tier::IronicIscsi),
            ("browser_signs_in", Tier::Browser),
            ("client_lists_nodes", Tier::Client),
            ("openstack_binds_a_port", Tier::Openstack),
            ("docs_the_book_builds", Tier::Docs),
            ("ironic::api::tests::answers_are_read", Tier::Unit),
        ] {
            assert_eq!(Tier::of(test), tier, "{test}");
        }
    }
}
