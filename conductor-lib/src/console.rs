//! Reads the end of a machine's console, the best witness of a silent machine.

use crate::hardware_type::Hardware;
use crate::model::Node;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// How much of the end of a console is searched.
const TAIL_BYTES: u64 = 8192;

/// Longest line quoted, in characters.
const LINE_LIMIT: usize = 300;

/// Where an operator sees why a machine is silent, as the end of a sentence.
pub(crate) fn hint(node: &Node, hardware: &Hardware) -> String {
    let Some(file) = hardware.console(node).ok().and_then(|console| console.log_file(node)) else {
        return "look at the machine's console".to_owned();
    };
    match last_line(&file) {
        Some(line) => format!("look at the console log {} (it ends with: {line})", file.display()),
        None => format!("look at the console log {} (it is empty)", file.display()),
    }
}

/// The last line with text on it, without control sequences; nothing when there is none.
pub fn last_line(file: &Path) -> Option<String> {
    let mut file = File::open(file).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail).ok()?;
    let text = plain(&String::from_utf8_lossy(&tail));
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().take(LINE_LIMIT).collect())
}

/// The text without escape sequences and control characters other than line feeds.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => {
                // A control sequence is ESC [ … final letter; any other escape is two characters.
                if characters.next() == Some('[') {
                    characters.by_ref().find(|c| ('@'..='~').contains(c));
                }
            }
            '\n' => plain.push('\n'),
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_with_text_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("console.log");
        for (content, expected) in [
            ("", None),
            ("\n\r\n", None),
            ("one\r\ntwo\r\n\r\n", Some("two")),
            ("\u{1b}[2J\u{1b}[01;01H\u{1b}[=3hBdsDxe: loading\r\n\u{1b}[0m", Some("BdsDxe: loading")),
            ("cut \u{1b}[", Some("cut")),
        ] {
            std::fs::write(&file, content).unwrap();
            assert_eq!(last_line(&file).as_deref(), expected, "{content:?}");
        }
        assert_eq!(last_line(&folder.path().join("none")), None);
    }

    #[test]
    fn a_long_console_and_a_long_line_are_cut() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("console.log");
        std::fs::write(&file, "x".repeat(100_000)).unwrap();
        assert_eq!(last_line(&file).unwrap().len(), LINE_LIMIT);
    }
}
