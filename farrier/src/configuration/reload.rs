//! Configuration files that change while the conductor runs.

use super::command_line::serve_of;
use super::error::ConfigurationError;
use super::file::Setting;
use super::files::ConfigurationFiles;
use clap::Command;

/// A check for changes, for every few seconds and SIGHUP. Options are read at the start: the log names those whose change
/// needs a restart.
pub(crate) fn changes(cli: &Command, files: ConfigurationFiles) -> impl FnMut() + Send + use<> {
    let mut reload = Reload::new(cli, files);
    move || match reload.news() {
        Ok(changed) if changed.is_empty() => {}
        Ok(changed) => {
            let changed = changed.join(", ");
            tracing::warn!(
                "the configuration files changed {changed}; restart the conductor to apply the changes"
            );
        }
        Err(error) => tracing::error!("{error}; the conductor keeps its configuration"),
    }
}

/// The files as they were when they were last valid.
pub(super) struct Reload {
    serve: Command,
    files: ConfigurationFiles,
    known: Vec<Setting>,
    complaint: String,
}

impl Reload {
    pub(super) fn new(cli: &Command, files: ConfigurationFiles) -> Self {
        let serve = serve_of(cli);
        let known = files.read(&serve).unwrap_or_default();
        Self { serve, files, known, complaint: String::new() }
    }

    /// The keys that changed since the last call. An error is reported once.
    pub(super) fn news(&mut self) -> Result<Vec<String>, ConfigurationError> {
        match self.files.read(&self.serve) {
            Ok(now) => {
                self.complaint.clear();
                let changed = changed(&self.known, &now);
                self.known = now;
                Ok(changed)
            }
            Err(error) if error.to_string() == self.complaint => Ok(Vec::new()),
            Err(error) => {
                self.complaint = error.to_string();
                Err(error)
            }
        }
    }
}

/// The keys whose values differ.
fn changed(before: &[Setting], after: &[Setting]) -> Vec<String> {
    let value = |settings: &[Setting], id: &str| {
        settings.iter().find(|setting| setting.id == id).map(|setting| setting.values.clone())
    };
    let mut found: Vec<String> = Vec::new();
    for setting in before.iter().chain(after) {
        if value(before, &setting.id) != value(after, &setting.id) && !found.contains(&setting.key) {
            found.push(setting.key.clone());
        }
    }
    found
}
