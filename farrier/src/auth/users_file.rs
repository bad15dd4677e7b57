//! The file of the operators: a line for each password or token.
//!
//! A line is `NAME:BCRYPT` as in Ironic's `http_basic_auth_user_file` and as `htpasswd -B` writes it, or
//! `NAME:sha256=DIGEST` for a token, and `:ROLE` may follow; a user without a role is an administrator, as every user in
//! Ironic's file is. Empty lines and lines that begin with `#` are left as they are.

use crate::auth::password;
use crate::state::private_file;
use farrier_access::Role;
use ring::digest::{SHA256, digest};
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use subtle::ConstantTimeEq;

const TOKEN_PREFIX: &str = "sha256=";

/// Most bytes of a file.
const MOST_BYTES: u64 = 1 << 20;

/// The file of the operators cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UsersFileError {
    /// It cannot be read or written.
    #[error("the operators file {file} cannot be {verb}: {source}")]
    File {
        file: PathBuf,
        verb: &'static str,
        #[source]
        source: io::Error,
    },
    /// A line is wrong; the error does not quote it.
    #[error("line {number} of the operators file {file} is invalid: {reason}")]
    Line { file: PathBuf, number: usize, reason: String },
}

/// The proof of an operator's identity.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Credential {
    /// By a password, of which this is the bcrypt hash.
    Password(String),
    /// By a token, of which this is the SHA-256.
    Token([u8; 32]),
}

impl Credential {
    /// By this token. A random token cannot be guessed, so a fast digest is enough.
    pub(crate) fn of_token(token: &[u8]) -> Self {
        Self::Token(digest(&SHA256, token).as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }

    /// What it is by.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Password(_) => "password",
            Self::Token(_) => "token",
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.kind())
    }
}

/// An operator in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) credential: Credential,
    pub(crate) role: Role,
}

impl Entry {
    fn parse(line: &str) -> Result<Self, String> {
        let mut parts = line.splitn(3, ':');
        let name = parts.next().unwrap_or_default();
        check_name(name)?;
        let credential = match parts.next() {
            None => return Err("a colon and a hash are missing after the name".to_owned()),
            Some(text) => match text.strip_prefix(TOKEN_PREFIX) {
                Some(digits) => Credential::Token(token_digest(digits)?),
                None => {
                    password::check_hash(text)?;
                    Credential::Password(text.to_owned())
                }
            },
        };
        let role = parts.next().map_or(Ok(Role::Admin), str::parse).map_err(|error| error.to_string())?;
        Ok(Self { name: name.to_owned(), credential, role })
    }

    fn is_by(&self, name: &str, kind: &str) -> bool {
        self.name == name && self.credential.kind() == kind
    }
}

impl fmt::Display for Entry {
    /// Administrators with a password have a line that Ironic reads too.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.credential {
            Credential::Password(hash) => write!(formatter, "{}:{hash}", self.name)?,
            Credential::Token(digest) => {
                write!(formatter, "{}:{TOKEN_PREFIX}{}", self.name, hex::encode(digest))?
            }
        }
        match self.role {
            Role::Admin => Ok(()),
            role => write!(formatter, ":{role}"),
        }
    }
}

fn token_digest(digits: &str) -> Result<[u8; 32], String> {
    let bytes = hex::decode(digits).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| format!("{TOKEN_PREFIX} needs 64 hexadecimal digits after it"))
}

/// Refuses names that no line or header can hold.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.starts_with('#') || name.contains(':') || name.contains(char::is_control) {
        return Err("a name must not be empty, begin with #, or contain a colon or control character".into());
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    Entry(Entry),
    Other(String),
}

/// The users of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UsersFile(Vec<Line>);

impl UsersFile {
    /// Reads a text; an error has the number of its line.
    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut names = BTreeSet::new();
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() || line.starts_with('#') {
                lines.push(Line::Other(line.to_owned()));
                continue;
            }
            let entry = Entry::parse(line).map_err(|reason| (number, reason))?;
            if !names.insert((entry.name.clone(), entry.credential.kind())) {
                return Err((number, format!("{:?} has a {} already", entry.name, entry.credential.kind())));
            }
            lines.push(Line::Entry(entry));
        }
        Ok(Self(lines))
    }

    /// Reads a file; without one, there are no operators.
    pub(crate) fn read(file: &Path) -> Result<Self, UsersFileError> {
        let failed = |source| UsersFileError::File { file: file.to_owned(), verb: "read", source };
        match fs::metadata(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Ok(metadata) if metadata.len() > MOST_BYTES => {
                return Err(failed(io::Error::other("it has more than 1 MiB")));
            }
            _ => {}
        }
        let text = fs::read_to_string(file).map_err(failed)?;
        let wrong_line = |(number, reason)| UsersFileError::Line { file: file.to_owned(), number, reason };
        Self::parse(&text).map_err(wrong_line)
    }

    /// Changes a file, which others may change at the same time.
    pub(crate) fn change<T>(file: &Path, change: impl FnOnce(&mut Self) -> T) -> Result<T, UsersFileError> {
        let failed = |source| UsersFileError::File { file: file.to_owned(), verb: "written", source };
        let folder = File::open(private_file::folder(file)).map_err(failed)?;
        folder.lock().map_err(failed)?;
        let mut users = Self::read(file)?;
        let outcome = change(&mut users);
        private_file::write(file, users.to_string().as_bytes()).map_err(failed)?;
        Ok(outcome)
    }

    /// All operators in it.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter_map(|line| match line {
            Line::Entry(entry) => Some(entry),
            Line::Other(_) => None,
        })
    }

    /// Adds an operator, or replaces one with the same name and kind of proof.
    pub(crate) fn set(&mut self, entry: Entry) {
        let own =
            |line: &Line| matches!(line, Line::Entry(old) if old.is_by(&entry.name, entry.credential.kind()));
        match self.0.iter().position(own) {
            Some(place) => self.0[place] = Line::Entry(entry),
            None => self.0.push(Line::Entry(entry)),
        }
    }

    /// Removes all entries with that name; true if there was one.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|line| !matches!(line, Line::Entry(entry) if entry.name == name));
        self.0.len() < before
    }

    /// Who has a token. Each is compared, and in constant time.
    pub(crate) fn by_token(&self, token: &[u8]) -> Option<&Entry> {
        let Credential::Token(shown) = Credential::of_token(token) else { return None };
        self.entries().fold(None, |found, entry| match &entry.credential {
            Credential::Token(known) if known.ct_eq(&shown).into() => Some(entry),
            _ => found,
        })
    }

    /// Who has a password under a name, and its hash.
    pub(crate) fn by_name(&self, name: &str) -> Option<(&Entry, &str)> {
        self.passwords().find(|(entry, _)| entry.name == name)
    }

    /// All operators with a password, and its hash.
    pub(crate) fn passwords(&self) -> impl Iterator<Item = (&Entry, &str)> {
        self.entries().filter_map(|entry| match &entry.credential {
            Credential::Password(hash) => Some((entry, hash.as_str())),
            Credential::Token(_) => None,
        })
    }
}

impl fmt::Display for UsersFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.0 {
            match line {
                Line::Entry(entry) => write!(formatter, "{entry}")?,
                Line::Other(text) => formatter.write_str(text)?,
            }
            formatter.write_char('\n')?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HASH: &str = "$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC";

    fn digits() -> String {
        "ab".repeat(32)
    }

    #[test]
    fn lines_are_those_of_htpasswd_with_roles_and_tokens() {
        let text = format!(
            "# who may\n\nironic:{HASH}\nwatcher:{HASH}:reader\nci:sha256={0}\nci:{HASH}:admin\nm3:sha256={0}:reader\n",
            digits()
        );
        let users = UsersFile::parse(&text).unwrap();
        let shown =
            users.entries().map(|entry| format!("{} {:?} {}", entry.name, entry.credential, entry.role));
        let expected = [
            "ironic password admin",
            "watcher password reader",
            "ci token admin",
            "ci password admin",
            "m3 token reader",
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        assert_eq!(users.to_string(), text.replace(":admin", ""));
        assert!(!format!("{users:?}").contains(&HASH[7..]), "hashes do not get into logs");
    }

    #[test]
    fn lines_that_cannot_be_used_are_named_by_their_number_alone() {
        let costly = HASH.replace("$05$", "$31$");
        for line in [
            "nobody",
            ":x",
            "a:",
            "a:password",
            "a:$apr1$x$y",
            &format!("a:{}", &HASH[..59]),
            &format!("a:{HASH}x"),
            &format!("a:{costly}"),
            &format!("a:{HASH}:root"),
            &format!("a:{HASH}:"),
            &format!("a:{HASH}:admin:more"),
            "a:sha256=",
            "a:sha256=00",
            &format!("a:sha256={}", "g".repeat(64)),
            &format!("b:{HASH}"),
        ] {
            let (number, reason) = UsersFile::parse(&format!("b:{HASH}\n{line}\n")).unwrap_err();
            assert_eq!(number, 2, "{line}");
            assert!(!reason.contains("$2y") && !reason.contains("password\""), "{reason}");
        }
    }

    #[test]
    fn a_file_is_changed_whole_and_keeps_its_comments() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("operators");
        assert_eq!(UsersFile::read(&file).unwrap(), UsersFile::default());
        fs::write(&file, format!("# mine\na:{HASH}\n")).unwrap();
        let token =
            |name: &str, role| Entry { name: name.to_owned(), credential: Credential::of_token(b"t"), role };
        let threads = (0..8).map(|number| {
            let file = file.clone();
            let entry = token(&format!("t{number}"), Role::Reader);
            std::thread::spawn(move || UsersFile::change(&file, |users| users.set(entry)).unwrap())
        });
        threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
        UsersFile::change(&file, |users| users.set(token("t1", Role::Admin))).unwrap();
        assert!(UsersFile::change(&file, |users| users.remove("a")).unwrap());
        assert!(!UsersFile::change(&file, |users| users.remove("a")).unwrap());
        let users = UsersFile::read(&file).unwrap();
        assert_eq!(users.entries().count(), 8);
        assert!(users.to_string().starts_with("# mine\n"));
        assert_eq!(users.by_token(b"t").map(|entry| entry.name.len()), Some(2));
        assert!(users.by_token(b"other").is_none() && users.by_name("t1").is_none());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_written_as_it_was(text in "([a-c#:$=\n ]|sha256=|reader|\\$2y\\$05\\$)*") {
            if let Ok(users) = UsersFile::parse(&text) {
                prop_assert_eq!(UsersFile::parse(&users.to_string()), Ok(users));
            }
        }
    }
}
