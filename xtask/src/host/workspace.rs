//! Where things are in this repository, and building them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::command::{command, run, run_quietly};

/// The folders of this repository.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The folder with the workspace's `Cargo.toml`.
    pub root: PathBuf,
    /// Cargo's folder for what it builds.
    pub target: PathBuf,
    /// Each package and the folder with its source.
    pub sources: Vec<(String, PathBuf)>,
}

#[derive(serde::Deserialize)]
struct Metadata {
    workspace_root: PathBuf,
    target_directory: PathBuf,
    packages: Vec<Package>,
}

#[derive(serde::Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
}

impl Workspace {
    /// Asks cargo.
    pub fn find() -> Result<Self> {
        let text = run_quietly(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
        let metadata: Metadata =
            serde_json::from_str(&text).context("cannot read the answer of cargo metadata")?;
        let sources = metadata
            .packages
            .into_iter()
            .map(|package| (package.name, package.manifest_path.with_file_name("src")));
        Ok(Self {
            root: metadata.workspace_root,
            target: metadata.target_directory,
            sources: sources.collect(),
        })
    }

    /// The folders of the crates, below the root.
    pub fn folders(&self) -> Vec<String> {
        let folder = |source: &PathBuf| {
            let folder = source.parent()?.strip_prefix(&self.root).ok()?;
            Some(folder.display().to_string())
        };
        self.sources.iter().filter_map(|(_, source)| folder(source)).collect()
    }

    /// What takes long to make and is kept between runs.
    pub fn cache(&self) -> PathBuf {
        self.target.join("farrier-cache")
    }

    /// Runs something in a folder of its own, which is removed afterwards.
    ///
    /// # Errors
    ///
    /// That of `act`; else the folder cannot be made or removed.
    pub fn in_scratch_folder<T>(&self, act: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        let folder = self.cache().join(format!("scratch-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let outcome = act(&folder);
        let removed = std::fs::remove_dir_all(&folder);
        let value = outcome?;
        removed?;
        Ok(value)
    }

    /// Writes a page of the book, a path below the root.
    pub fn write_page(&self, page: &str, text: &str) -> Result<()> {
        let file = self.root.join(page);
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Builds the reference conductor and gives its path.
    pub fn build_conductor(&self) -> Result<PathBuf> {
        run(cargo().args(["build", "-p", "farrier"]).current_dir(&self.root))?;
        Ok(self.target.join("debug/farrier"))
    }

    /// Builds the program that writes exported disks as the conductor does, and gives its path.
    pub fn build_writer_of_exported_disks(&self) -> Result<PathBuf> {
        self.build_example_of_drivers("write_exported_disk", &[], "debug")
    }

    /// Builds the same as a conductor is released.
    pub fn build_released_writer_of_exported_disks(&self) -> Result<PathBuf> {
        self.build_example_of_drivers("write_exported_disk", &["--release"], "release")
    }

    fn build_example_of_drivers(&self, example: &str, options: &[&str], profile: &str) -> Result<PathBuf> {
        let mut build = cargo();
        build.args(["build", "-p", "farrier-drivers", "--example", example]).args(options);
        run(build.current_dir(&self.root))?;
        Ok(self.target.join(profile).join("examples").join(example))
    }

    /// Builds the builder of ramdisks and gives its path.
    pub fn build_image_builder(&self) -> Result<PathBuf> {
        run(cargo().args(["build", "--quiet", "-p", "farrier-image"]).current_dir(&self.root))?;
        Ok(self.target.join("debug/farrier-image"))
    }

    /// Builds the reference conductor as it is released, and gives its path.
    pub fn build_released_conductor(&self) -> Result<PathBuf> {
        run(cargo().args(["build", "--release", "-p", "farrier"]).current_dir(&self.root))?;
        Ok(self.target.join("release/farrier"))
    }
}

/// The cargo that runs this.
pub fn cargo() -> Command {
    with_cargos_environment(command(path_of_cargo()))
}

/// The same, which leaves the processors to whatever else wants them.
pub fn patient_cargo() -> Command {
    let mut cargo = command("nice");
    cargo.args(["-n", "19"]).arg(path_of_cargo());
    with_cargos_environment(cargo)
}

fn path_of_cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn with_cargos_environment(mut cargo: Command) -> Command {
    // Set by cargo for this process only; ring's build script, for one, would look changed, and all that stands on it.
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(variable);
        }
    }
    cargo
}

/// What a repository of git has checked out, with `-dirty` at the end where files are other ones.
pub fn commit(root: &Path) -> Result<String> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["describe", "--always", "--abbrev=12", "--dirty"]);
    Ok(run_quietly(&mut git)?.trim().to_owned())
}

/// Writes a report for `--json FILE`.
pub fn write_json(file: Option<&Path>, report: &impl Serialize) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    let text = serde_json::to_string_pretty(report)? + "\n";
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Reads a JSON file.
pub fn read_json<T: DeserializeOwned>(file: &Path) -> Result<T> {
    let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is no valid JSON", file.display()))
}
