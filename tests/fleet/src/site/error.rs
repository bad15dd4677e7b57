//! Why a site does not start, or a fault cannot strike it.

use std::io;
use std::path::PathBuf;

/// A site does not start, or a fault cannot strike it.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// The file cannot be read.
    #[error("{}: {source}; give the path of a site file", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is no TOML, or names what nobody knows.
    #[error("{}, line {line}: {reason}; correct that line", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, from 1 on.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A value cannot be.
    #[error("site file: {key} {reason}")]
    Value {
        /// The key.
        key: &'static str,
        /// What is wrong with it, and what to give.
        reason: String,
    },
    /// Faults are to strike conductors that the fleet has not in its hands.
    #[error(
        "faults.conductor strikes conductors, and none was given; give a site file (--site), or leave this class out"
    )]
    NoConductors,
    /// Faults are to strike a database that the site does not have.
    #[error(
        "faults.database strikes PostgreSQL, and this site has none; leave this class out of the fleet file"
    )]
    NoPostgresql,
    /// A kind of fault needs something of the site.
    #[error(
        "faults.conductor has the kind {kind}, which needs {key} in the site file; set it, or leave that kind out"
    )]
    Needs {
        /// The kind.
        kind: &'static str,
        /// The key of the site file.
        key: &'static str,
    },
    /// A program fails.
    #[error(
        "{program}: {reason}; see whether it is installed, and run the fleet with the rights that its page names"
    )]
    Program {
        /// The command line.
        program: String,
        /// Why.
        reason: String,
    },
    /// A conductor does not start.
    #[error("conductor {number} does not serve {url}: {reason}; its log {} ends with: {tail}", log.display())]
    Conductor {
        /// Its number, from 1 on.
        number: usize,
        /// Where its node API was waited for.
        url: String,
        /// Why.
        reason: String,
        /// Its log.
        log: PathBuf,
        /// The last line of that.
        tail: String,
    },
}
