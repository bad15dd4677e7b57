//! The configuration files of a conductor, and what they set.

use super::error::ConfigurationError;
use super::file::{self, Setting};
use clap::{Args, Command};
use std::fs;
use std::path::{Path, PathBuf};

/// The file that is read where none is given.
const FILE: &str = "/etc/farrier/farrier.toml";
/// The folder that is read where none is given.
const FOLDER: &str = "/etc/farrier/farrier.d";

/// The options that name the configuration files.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConfigurationFiles {
    /// Configuration file in TOML [default: /etc/farrier/farrier.toml, if it exists]. The command line and the environment
    /// override it.
    #[arg(long, value_name = "FILE", env = "FARRIER_CONFIG_FILE")]
    config_file: Option<PathBuf>,
    /// Folder of further configuration files, *.toml, read in the order of their names after the configuration file
    /// [default: /etc/farrier/farrier.d, if it exists]. Of two values, the later one counts.
    #[arg(long, value_name = "FOLDER", env = "FARRIER_CONFIG_DIR")]
    config_dir: Option<PathBuf>,
}

impl ConfigurationFiles {
    /// What the files set, each option once.
    ///
    /// # Errors
    ///
    /// [`ConfigurationError`], at the first line that cannot be used.
    pub(crate) fn read(&self, serve: &Command) -> Result<Vec<Setting>, ConfigurationError> {
        let mut settings: Vec<Setting> = Vec::new();
        for file in self.files()? {
            for setting in file::read(serve, &file)? {
                settings.retain(|earlier| earlier.id != setting.id);
                settings.push(setting);
            }
        }
        Ok(settings)
    }

    /// The files, in the order in which they are read.
    fn files(&self) -> Result<Vec<PathBuf>, ConfigurationError> {
        let file = given_or_present(self.config_file.as_deref(), FILE);
        let Some(folder) = given_or_present(self.config_dir.as_deref(), FOLDER) else {
            return Ok(file.into_iter().collect());
        };
        let unreadable = |source| ConfigurationError::Unreadable { file: folder.clone(), source };
        let entries = fs::read_dir(&folder).map_err(unreadable)?;
        let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let mut paths = paths.map_err(unreadable)?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        paths.sort();
        Ok(file.into_iter().chain(paths).collect())
    }
}

/// The path that was given, which must exist, or the usual one if it exists.
fn given_or_present(given: Option<&Path>, usual: &str) -> Option<PathBuf> {
    let usual = || Some(PathBuf::from(usual)).filter(|path| path.exists());
    given.map(Path::to_owned).or_else(usual)
}
