//! The file that describes the conductors of a site.

use super::error::SiteError;
use crate::fault::{Class, Kind};
use crate::file::{FleetFile, line_of};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Most conductors of a site.
const MOST_CONDUCTORS: usize = 16;

/// The conductors of a site.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SiteFile {
    /// Whether each conductor has a network of its own, by which it can be cut off.
    #[serde(default)]
    pub isolated: bool,
    /// libfaketime, which gives a conductor a wrong clock.
    pub faketime: Option<PathBuf>,
    /// The conductors.
    pub conductor: Vec<ConductorEntry>,
}

/// A conductor.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ConductorEntry {
    /// Program and arguments. `{address}` in them stands for the conductor's address.
    pub command: Vec<String>,
    /// Port of its node API.
    pub api_port: u16,
    /// Whether that is served without TLS.
    #[serde(default)]
    pub plain_http: bool,
    /// Where its output goes.
    pub log: PathBuf,
    /// File with the token of an administrator, which there is when it has started.
    pub token_file: Option<PathBuf>,
}

impl SiteFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`SiteError`].
    pub fn read(file: &Path) -> Result<Self, SiteError> {
        let text = std::fs::read_to_string(file)
            .map_err(|source| SiteError::Unreadable { file: file.to_owned(), source })?;
        Self::parse(file, &text)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// [`SiteError::Line`], [`SiteError::Value`].
    pub fn parse(file: &Path, text: &str) -> Result<Self, SiteError> {
        let read: Self = toml::from_str(text).map_err(|error| {
            let (line, reason) = line_of(text, &error);
            SiteError::Line { file: file.to_owned(), line, reason }
        })?;
        let wrong = |key, reason: String| Err(SiteError::Value { key, reason });
        match read.conductor.len() {
            1..=MOST_CONDUCTORS => {}
            count => {
                return wrong("conductor", format!("is there {count} times; give 1 to {MOST_CONDUCTORS}"));
            }
        }
        if read.conductor.iter().any(|one| one.command.is_empty()) {
            return wrong("conductor.command", "is empty; give a program and its arguments".to_owned());
        }
        Ok(read)
    }

    /// Whether all classes of faults that a fleet file has can strike this site.
    pub(super) fn check(&self, fleet: &FleetFile) -> Result<(), SiteError> {
        let rates = fleet.rates();
        if rates.contains_key(&Class::Database) {
            return Err(SiteError::NoPostgresql);
        }
        let kinds = rates.get(&Class::Conductor).map(|rate| rate.kinds.as_slice()).unwrap_or_default();
        if kinds.contains(&Kind::CutOff) && !self.isolated {
            return Err(SiteError::Needs { kind: "cut-off", key: "isolated = true" });
        }
        if kinds.contains(&Kind::ClockOff) && self.faketime.is_none() {
            return Err(SiteError::Needs { kind: "clock-off", key: "faketime" });
        }
        if self.isolated && fleet.network.first_address.is_loopback() {
            let reason = "is true, and the first-address of the fleet is a loopback address, which conductors with networks \
                of their own do not reach; give another one, such as 10.64.0.1";
            return Err(SiteError::Value { key: "isolated", reason: reason.to_owned() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    const ONE: &str = "[[conductor]]\ncommand = [\"c\"]\napi-port = 1\nlog = \"l\"\n";

    fn site(text: &str) -> Result<SiteFile, String> {
        SiteFile::parse(Path::new("site.toml"), text).map_err(|error| error.to_string())
    }

    fn fleet(text: &str) -> FleetFile {
        FleetFile::parse(Path::new("fleet.toml"), &format!("seed = 1\nmachines = 2\n{text}")).unwrap()
    }

    #[test]
    fn what_is_wrong_with_a_site_is_named_with_line_or_key() {
        assert_eq!(site(ONE).unwrap().conductor[0].api_port, 1);
        for (text, expected) in [
            ("isolated = true", "site.toml, line 1: missing field `conductor`"),
            ("conductor = []", "site file: conductor is there 0 times; give 1 to 16"),
            (&ONE.replace("[\"c\"]", "[]"), "conductor.command is empty; give"),
            (&ONE.replace("= 1", "= 70000"), "site.toml, line 3: invalid value"),
            (&format!("postgresql = \"x\"\n{ONE}"), "site.toml, line 1: unknown field `postgresql`"),
        ] {
            let error = site(text).unwrap_err();
            assert!(error.contains(expected) && !error.contains('\n'), "{expected}: {error}");
        }
        let missing = SiteFile::read(Path::new("/nonexistent/site.toml")).unwrap_err().to_string();
        assert!(missing.ends_with("give the path of a site file"), "{missing}");
    }

    #[test]
    fn a_class_that_the_site_cannot_have_is_refused_with_what_it_lacks() {
        let class = |class: &str, kinds: &str| {
            fleet(&format!("[faults.{class}]\nrate = 0.1\nrecoverable = true\n{kinds}\n"))
        };
        let told = |site: Option<&SiteFile>, fleet: &FleetFile| {
            check(site, fleet).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let (plain, isolated) = (site(ONE).unwrap(), site(&format!("isolated = true\n{ONE}")).unwrap());
        let (database, conductor) = (class("database", ""), class("conductor", ""));
        for site in [None, Some(&plain)] {
            assert!(
                told(site, &database)
                    .starts_with("faults.database strikes PostgreSQL, and this site has none")
            );
        }
        assert!(told(None, &conductor).contains("give a site file"));
        assert!(told(Some(&plain), &conductor).contains("cut-off, which needs isolated = true"));
        let clock = class("conductor", "kinds = [\"clock-off\"]");
        assert!(told(Some(&plain), &clock).contains("clock-off, which needs faketime"));
        let killed = class("conductor", "kinds = [\"killed\", \"paused\"]");
        assert_eq!(told(Some(&plain), &killed), "");
        assert!(told(Some(&isolated), &killed).contains("is a loopback address"));
        assert_eq!(told(None, &fleet("")), "");
    }
}
