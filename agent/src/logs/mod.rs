//! What an operator wants to read when a machine misbehaves, in one archive (section 11.1).
//!
//! No program is started for it. Entries have the names that operators know from the programs whose
//! place they take; one that cannot be read is left out (F42). The token never gets into it, and
//! config drives are not read.

mod sources;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, write::GzEncoder};
use sources::SOURCES;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// What a secret becomes.
const MASK: &[u8] = b"***";

/// The archive cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("the logs cannot be packed: {0}")]
pub struct LogsError(#[from] io::Error);

/// All logs as base64 text of a tar.gz file, without the given secrets.
///
/// # Errors
///
/// [`LogsError`] when packing fails; a source that cannot be read is only left out.
pub fn collect(secrets: &[String]) -> Result<String, LogsError> {
    let entries = SOURCES.iter().filter_map(|source| match (source.read)() {
        Ok(content) => Some((source.name, redact(content, secrets))),
        Err(error) => {
            tracing::debug!(entry = source.name, %error, "left out of the logs");
            None
        }
    });
    Ok(STANDARD.encode(pack(entries)?))
}

fn pack(entries: impl Iterator<Item = (&'static str, Vec<u8>)>) -> io::Result<Vec<u8>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(now);
        archive.append_data(&mut header, name, content.as_slice())?;
    }
    archive.into_inner()?.finish()
}

/// The kernel's messages quote its command line, and that may carry the token.
fn redact(mut content: Vec<u8>, secrets: &[String]) -> Vec<u8> {
    for secret in secrets.iter().map(String::as_bytes).filter(|secret| !secret.is_empty()) {
        let mut rest = content.as_slice();
        let mut clean = Vec::with_capacity(content.len());
        while let Some(position) = rest.windows(secret.len()).position(|window| window == secret) {
            clean.extend_from_slice(&rest[..position]);
            clean.extend_from_slice(MASK);
            rest = &rest[position + secret.len()..];
        }
        clean.extend_from_slice(rest);
        content = clean;
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::collections::BTreeMap;
    use std::io::Read;

    fn unpack(archive: &str) -> BTreeMap<String, Vec<u8>> {
        let bytes = STANDARD.decode(archive).unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(bytes.as_slice()));
        let mut found = BTreeMap::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            found.insert(entry.path().unwrap().to_string_lossy().into_owned(), content);
        }
        found
    }

    #[test]
    fn the_archive_has_what_this_machine_can_give() {
        let found = unpack(&collect(&[]).unwrap());
        for name in ["df", "ip_addr", "lsblk", "mount", "ps"] {
            assert!(!found[name].is_empty(), "{name}");
        }
        let mount = String::from_utf8_lossy(&found["mount"]);
        assert!(mount.contains(" /proc "), "{mount}");
        let ps = String::from_utf8_lossy(&found["ps"]);
        assert!(ps.contains(&format!("{:>7}", std::process::id())), "{ps}");
    }

    #[test]
    fn the_token_is_in_no_entry() {
        // Any text that is certainly on this machine may stand for the token.
        let found = unpack(&collect(&["/proc".to_owned(), String::new()]).unwrap());
        for (name, content) in found {
            assert!(!content.windows(5).any(|window| window == b"/proc"), "{name}");
        }
    }

    #[test]
    fn f46_bytes_that_are_not_text_survive() {
        for (content, expected) in
            [(&b"a=SECRET b=SECRET\xff"[..], &b"a=*** b=***\xff"[..]), (b"SECRE", b"SECRE"), (b"", b"")]
        {
            assert_eq!(redact(content.to_vec(), &["SECRET".to_owned()]), expected);
        }
    }
}
