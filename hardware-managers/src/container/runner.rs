//! The program that fetches and runs containers.

use super::error::{ContainerError, reason};
use super::permit::{Permitted, Reference};
use super::secret::PullSecret;
use super::settings::RunnerKind;
use farrier_linux::process::{Conditions, DOCKER, Finished, PODMAN, Program, RunError};
use farrier_linux::{mount, sysfs};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time in which a runner says its version.
const QUESTION: Duration = Duration::from_secs(60);
/// Time in which an image is fetched.
const PULL: Duration = Duration::from_secs(3600);
/// Time in which a container does its work: firmware of many devices, or a burn-in.
const RUN: Duration = Duration::from_secs(24 * 3600);
/// Where podman finds what this agent says about its machine.
const CONFIGURATION: &str = "etc/containers/containers.conf.d/01-ipa.conf";
/// The root of a ramdisk cannot be exchanged by `pivot_root`, which runners use otherwise.
const NO_PIVOT_ROOT: &str = "[engine]\nno_pivot_root = true\n";
/// Folders that podman expects.
const FOLDERS: &[&str] = &["run", "var/lib/containers", "var/tmp"];

/// A program that runs containers, on the machine whose files lie below a folder.
#[derive(Debug, Clone)]
pub struct Runner {
    program: Program,
    root: PathBuf,
}

impl Runner {
    /// The runner of this kind below `root`. Its place is kept for the life of the process.
    pub fn new(kind: RunnerKind, root: &Path) -> Self {
        let program = match kind {
            RunnerKind::Podman => PODMAN,
            RunnerKind::Docker => DOCKER,
        };
        let path = root.join(program.path.trim_start_matches('/')).display().to_string();
        Self { program: Program { path: path.leak(), ..program }, root: root.to_owned() }
    }

    /// Whether the program is there and answers.
    pub fn is_usable(&self) -> bool {
        if !self.program.is_present() {
            return false;
        }
        match self.program.run(&["--version"], QUESTION) {
            Ok(version) => {
                tracing::info!("containers are run by {}", version.trim());
                true
            }
            Err(error) => {
                tracing::warn!("no container can be run: {error}");
                false
            }
        }
    }

    /// Fetches an image with these options of the runner, and with credentials that are gone afterwards.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Pull`], [`ContainerError::File`].
    pub fn pull(
        &self,
        image: &Reference,
        options: &[String],
        secret: Option<&PullSecret>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), ContainerError> {
        self.prepare()?;
        let secret = secret.map(|secret| secret.write(image, &self.root.join("run"))).transpose()?;
        let mut arguments = vec!["pull".to_owned()];
        arguments.extend(secret.as_ref().map(|file| format!("--authfile={}", file.path().display())));
        arguments.extend_from_slice(options);
        arguments.push(image.as_str().to_owned());
        let conditions = Conditions { limit: PULL, is_stopped, folder: None };
        let outcome = self.program.finish(&arguments, &conditions).and_then(Finished::succeeded);
        if let Some(file) = secret {
            file.destroy()?;
        }
        let failed = |error| ContainerError::Pull { image: image.as_str().to_owned(), reason: reason(error) };
        outcome.map(drop).map_err(failed)
    }

    /// Fetches the image of a container and runs it; gives what it wrote.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Pull`], [`ContainerError::Run`], [`ContainerError::File`].
    pub fn run_permitted(
        &self,
        container: &Permitted,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<String, ContainerError> {
        self.pull(container.image(), container.pull_options().as_slice(), None, is_stopped)?;
        self.run(container.image(), container.run_options().as_slice(), &[], is_stopped)
    }

    /// Runs a container of an image that was fetched: the runner may ask no registry any more (S09).
    /// A container that does not end in time is removed.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Run`], [`ContainerError::File`].
    pub(super) fn run(
        &self,
        image: &Reference,
        options: &[String],
        command: &[String],
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<String, ContainerError> {
        let run = self.root.join("run");
        let folder =
            tempfile::tempdir_in(&run).map_err(|source| ContainerError::File { file: run, source })?;
        let identity = folder.path().join("container");
        let mut arguments = vec!["run".to_owned(), "--pull=never".to_owned()];
        arguments.push(format!("--cidfile={}", identity.display()));
        arguments.extend_from_slice(options);
        arguments.push(image.as_str().to_owned());
        arguments.extend_from_slice(command);
        let conditions = Conditions { limit: RUN, is_stopped, folder: None };
        let outcome = self.program.finish(&arguments, &conditions).and_then(Finished::succeeded);
        outcome.map(|finished| finished.output + &finished.messages).map_err(|error| {
            if !matches!(error, RunError::Failed { .. }) {
                self.remove(&identity);
            }
            ContainerError::Run { image: image.as_str().to_owned(), reason: reason(error) }
        })
    }

    /// Ends a container whose runner was ended: it is no child of that.
    fn remove(&self, identity: &Path) {
        let Ok(identity) = fs::read_to_string(identity) else { return };
        if let Err(error) = self.program.run(&["rm", "--force", identity.trim()], QUESTION) {
            tracing::error!("a container may still be running: {error}");
        }
    }

    /// Has what a runner needs on a ramdisk and finds on other systems.
    fn prepare(&self) -> Result<(), ContainerError> {
        for folder in FOLDERS {
            create(&self.root.join(folder))?;
        }
        let file = self.root.join(CONFIGURATION);
        create(file.parent().unwrap_or(&self.root))?;
        fs::write(&file, NO_PIVOT_ROOT).map_err(|source| ContainerError::File { file, source })?;
        // Elsewhere the machine's own file systems stay as they are.
        if self.root == Path::new("/") {
            for kernel in mount::FOR_CONTAINERS {
                if sysfs::entries(Path::new(kernel.target)).is_empty()
                    && let Err(error) = kernel.mount()
                {
                    tracing::warn!("containers may not start: {error}");
                }
            }
        }
        Ok(())
    }
}

fn create(folder: &Path) -> Result<(), ContainerError> {
    fs::create_dir_all(folder).map_err(|source| ContainerError::File { file: folder.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::super::fake_runner::FakeRunner;
    use super::*;

    const GOING_ON: fn() -> bool = || false;

    fn image() -> Reference {
        Reference::parse("registry.example/tools:1").unwrap()
    }

    #[test]
    fn s08_certificates_of_registries_are_verified_unless_the_operator_says_otherwise() {
        let fake = FakeRunner::new("exit 0");
        let runner = fake.runner();
        runner.pull(&image(), &[], None, &GOING_ON).unwrap();
        assert_eq!(fake.calls(), ["pull registry.example/tools:1"]);
        runner.pull(&image(), &["--tls-verify=false".to_owned()], None, &GOING_ON).unwrap();
        assert_eq!(fake.calls()[1], "pull --tls-verify=false registry.example/tools:1");
    }

    #[test]
    fn s09_the_secret_is_there_while_fetching_and_gone_before_anything_runs() {
        let fake = FakeRunner::new(
            "case $1 in pull) cat \"${2#--authfile=}\" >&2; exit 9;; run) ls -A \"$ROOT/run\"; exit 0;; esac",
        );
        let runner = fake.runner();
        let secret = PullSecret::decode("ZFhObGNqcHdZWE56").unwrap();
        let error = runner.pull(&image(), &[], Some(&secret), &GOING_ON).unwrap_err().to_string();
        assert!(
            error.contains(r#""registry.example":{"auth":"dXNlcjpwYXNz"}"#),
            "it was not readable: {error}"
        );
        let seen = runner.run(&image(), &[], &[], &GOING_ON).unwrap();
        assert_eq!(seen.lines().count(), 1, "only the container's own folder: {seen}");
        assert!(fake.calls()[1].starts_with("run --pull=never --cidfile="), "{:?}", fake.calls());
    }

    #[test]
    fn s48_credentials_among_the_options_are_in_no_error() {
        let fake = FakeRunner::new("echo denied >&2; exit 125");
        let options = ["--creds=ann:hunter2".to_owned()];
        let error = fake.runner().pull(&image(), &options, None, &GOING_ON).unwrap_err().to_string();
        assert!(error.contains("denied") && error.contains("registry.example/tools:1"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn a_runner_that_is_missing_or_broken_is_not_usable() {
        for (script, expected) in [("echo podman version 4.3.1", true), ("exit 1", false)] {
            assert_eq!(FakeRunner::new(script).runner().is_usable(), expected, "{script}");
        }
        let nowhere = tempfile::tempdir().unwrap();
        let runner = Runner::new(RunnerKind::Podman, nowhere.path());
        assert!(!runner.is_usable());
        let error = runner.pull(&image(), &[], None, &GOING_ON).unwrap_err().to_string();
        assert!(error.contains("--program") && error.contains("podman"), "{error}");
    }

    #[test]
    fn a_container_whose_agent_ends_is_removed() {
        let fake = FakeRunner::new(
            "case $1 in run) echo abc123 > \"${3#--cidfile=}\"; touch \"$ROOT/started\"; sleep 600;; esac",
        );
        let started = fake.root().join("started");
        let runner = fake.runner();
        let error = runner.run(&image(), &[], &[], &|| started.exists()).unwrap_err().to_string();
        assert!(error.contains("podman was ended"), "{error}");
        assert_eq!(fake.calls()[1], "rm --force abc123");
    }

    #[test]
    fn podman_is_told_that_the_root_cannot_be_exchanged() {
        let fake = FakeRunner::new("exit 0");
        fake.runner().pull(&image(), &[], None, &GOING_ON).unwrap();
        let text = fs::read_to_string(fake.root().join(CONFIGURATION)).unwrap();
        assert_eq!(text, "[engine]\nno_pivot_root = true\n");
    }
}
