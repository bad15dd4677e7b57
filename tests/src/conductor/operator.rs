//! Whoever gives a reference conductor orders, by `farrier`.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The command line of one conductor.
#[derive(Debug, Clone)]
pub struct Operator {
    /// URL of its interface for operators.
    pub url: String,
    farrier: PathBuf,
    environment: Vec<(&'static str, PathBuf)>,
}

impl Operator {
    /// That of a conductor on this host. In the folder `state` lie its certificate and a token for whoever may read it.
    pub fn new(farrier: &Path, url: String, state: &Path) -> Self {
        Self { url, farrier: farrier.to_owned(), environment: vec![("FARRIER_STATE_DIR", state.to_owned())] }
    }

    /// That of a conductor elsewhere, with what was fetched from there into the folder.
    pub fn elsewhere(farrier: &Path, url: String, folder: &Path) -> Self {
        let environment = vec![
            ("FARRIER_CA", folder.join("certificate.pem")),
            ("FARRIER_CREDENTIALS", folder.join("token")),
        ];
        Self { url, farrier: farrier.to_owned(), environment }
    }

    /// A command with these arguments.
    pub fn client(&self, arguments: &[&str]) -> Command {
        let mut client = Command::new(&self.farrier);
        client
            .args(arguments)
            .env("FARRIER_URL", &self.url)
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null());
        client
    }

    /// Has something done, and returns what is printed.
    ///
    /// # Errors
    ///
    /// The one line that is printed when it fails.
    pub fn order(&self, arguments: &[&str]) -> Result<String> {
        finished(self.begin(arguments)?.wait_with_output()?)
    }

    /// Begins what [`Operator::order`] does.
    ///
    /// # Errors
    ///
    /// There is no such program.
    pub fn begin(&self, arguments: &[&str]) -> Result<Child> {
        let mut client = self.client(arguments);
        let begun = client.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        begun.with_context(|| format!("cannot start {}", self.farrier.display()))
    }

    /// A node's record.
    ///
    /// # Errors
    ///
    /// What `farrier node show` says.
    pub fn node(&self, name: &str) -> Result<Value> {
        let text = self.order(&["node", "show", name, "--json"])?;
        serde_json::from_str(&text).with_context(|| format!("no record: {text}"))
    }
}

/// What an order has printed.
///
/// # Errors
///
/// As [`Operator::order`].
pub fn finished(output: Output) -> Result<String> {
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
