//! Reads a machine's console, the best witness of a silent machine.

use farrier_conductor::hardware_type::Hardware;
use farrier_conductor::model::{Node, masked_text};
use farrier_conductor::untrusted::log::last_line;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// How much of the end of a console is told to who asks for no place in it.
const TAIL_BYTES: u64 = 16384;

/// Longest part that is told at once.
const PART_BYTES: u64 = 65536;

/// What is in every line of the agent of a ramdisk, which is no secret of an instance.
const OF_THE_AGENT: &[&str] = &["farrier-agent", "doctor: "];

/// Where an operator sees why a machine is silent, as the end of a sentence. Readers see it too, so of a console it quotes
/// the agent alone: an instance may print its passwords.
pub(crate) fn hint(node: &Node, hardware: &Hardware) -> String {
    let Some(file) = log_file(node, hardware) else { return "look at the machine's console".to_owned() };
    match last_line(&file) {
        Some(line) if OF_THE_AGENT.iter().any(|word| line.contains(word)) => {
            format!("look at the console log {} (it ends with: {})", file.display(), masked_text(&line))
        }
        Some(_) => format!("look at the console log {}", file.display()),
        None => format!("look at the console log {} (it is empty)", file.display()),
    }
}

/// Forgets what is kept of the console of a node whose instance has ended: the next user of the machine must not read it.
pub(crate) async fn forget_instance(node: &Node, hardware: &Hardware) {
    let Some(file) = log_file(node, hardware) else { return };
    let emptied = tokio::task::spawn_blocking(move || empty(&file)).await;
    if let Ok(Err(error)) = emptied {
        tracing::warn!(node = %node.label(), "the console log of the instance that has ended stays: {error}");
    }
}

fn log_file(node: &Node, hardware: &Hardware) -> Option<PathBuf> {
    hardware.console(node).ok()?.log_file(node)
}

/// Empties a log, which somebody may go on to write to, and removes what was before it.
fn empty(file: &Path) -> std::io::Result<()> {
    let gone = |error: std::io::Error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) };
    std::fs::remove_file(old(file)).or_else(gone)?;
    OpenOptions::new().write(true).open(file).and_then(|log| log.set_len(0)).or_else(gone)
}

/// Where what was logged before is kept.
fn old(file: &Path) -> PathBuf {
    let mut old = file.as_os_str().to_owned();
    old.push(".old");
    PathBuf::from(old)
}

/// A part of a console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsolePart {
    /// What stands there, as it is.
    pub text: String,
    /// Where the next part begins.
    pub next: u64,
}

/// The part of a console that begins at a place, or its end. A console that begins anew goes on at its first place, after
/// what is left of the one before.
pub(crate) fn part(file: &Path, from: Option<u64>) -> std::io::Result<ConsolePart> {
    let length = std::fs::metadata(file)?.len();
    match from {
        Some(from) if from > length => {
            // A client that asks again and again loses nothing; and of what is gone nothing can be told.
            let rest = part_from(&old(file), from).map_or_else(|_| String::new(), |part| part.text);
            Ok(ConsolePart { text: rest, next: 0 })
        }
        from => part_from(file, from.unwrap_or(length.saturating_sub(TAIL_BYTES))),
    }
}

fn part_from(file: &Path, from: u64) -> std::io::Result<ConsolePart> {
    let mut file = File::open(file)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(PART_BYTES).read_to_end(&mut bytes)?;
    // A character that is not all there yet is left to the next part.
    let whole = match std::str::from_utf8(&bytes) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => bytes.len(),
    };
    let text = String::from_utf8_lossy(&bytes[..whole]).into_owned();
    Ok(ConsolePart { text, next: from + whole as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_is_read_part_by_part_also_where_it_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("console.log");
        assert!(part(&file, None).is_err());
        std::fs::write(&file, "one ü").unwrap();
        let first = part(&file, None).unwrap();
        assert_eq!((first.text.as_str(), first.next), ("one ü", 6));
        assert_eq!(part(&file, Some(6)).unwrap(), ConsolePart { text: String::new(), next: 6 });
        std::fs::write(&file, [b"one \xc3\xbc two \xc3".as_slice()].concat()).unwrap();
        let second = part(&file, Some(6)).unwrap();
        assert_eq!((second.text.as_str(), second.next), (" two ", 11));
        std::fs::rename(&file, folder.path().join("console.log.old")).unwrap();
        std::fs::write(&file, "anew").unwrap();
        let third = part(&file, Some(11)).unwrap();
        assert_eq!((third.text.as_str(), third.next), ("\u{fffd}", 0));
        assert_eq!(part(&file, Some(0)).unwrap().text, "anew");
        std::fs::write(&file, "x".repeat(100_000)).unwrap();
        assert_eq!(part(&file, None).unwrap().next, 100_000);
        assert_eq!(part(&file, Some(0)).unwrap().next, PART_BYTES);
    }

    #[test]
    fn n11_the_log_of_a_console_ends_with_the_instance() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("console.log");
        assert!(empty(&file).is_ok());
        for log in [file.clone(), old(&file)] {
            std::fs::write(log, "password for user debian is oats").unwrap();
        }
        // The program that writes there goes on.
        let mut writer = OpenOptions::new().append(true).open(&file).unwrap();
        empty(&file).unwrap();
        assert!(!old(&file).exists());
        std::io::Write::write_all(&mut writer, b"anew").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "anew");
    }
}
