//! The end of a log that a machine or a program has written: its last lines, without control sequences.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes at the end of a console in which its last lines are looked for: a DHCP client that says each second for an
/// hour that it asks takes 120 KiB.
const LAST_LINES_BYTES: u64 = 256 << 10;

/// Longest line quoted, in characters.
const LINE_LIMIT: usize = 300;

/// The last line with text on it, without control sequences; nothing when there is none.
pub fn last_line(file: &Path) -> Option<String> {
    last_lines(file, 1).pop()
}

/// So many of the last lines with text on them, without control sequences. One that is said again and again is one
/// line, with how often it was said: the lines before it say more.
pub fn last_lines(file: &Path, count: usize) -> Vec<String> {
    let text = plain(&String::from_utf8_lossy(&tail(file).unwrap_or_default()));
    let with_text = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut lines: Vec<(String, usize)> = Vec::new();
    for line in with_text.map(|line| line.chars().take(LINE_LIMIT).collect::<String>()) {
        match lines.last_mut() {
            Some((last, times)) if *last == line => *times += 1,
            _ => lines.push((line, 1)),
        }
    }
    let last = lines.split_off(lines.len().saturating_sub(count)).into_iter();
    last.map(|(line, times)| if times > 1 { format!("{line} ({times} times)") } else { line }).collect()
}

fn tail(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LAST_LINES_BYTES)))?;
    let mut tail = Vec::new();
    file.take(LAST_LINES_BYTES).read_to_end(&mut tail)?;
    Ok(tail)
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
        std::fs::write(&file, "one\r\n\r\ntwo\nthree\n").unwrap();
        assert_eq!(last_lines(&file, 2), ["two", "three"]);
        assert_eq!(last_lines(&file, 9).len(), 3);
        std::fs::write(&file, format!("FAILED link\n{}", "discover\r\n".repeat(60))).unwrap();
        assert_eq!(last_lines(&file, 40), ["FAILED link", "discover (60 times)"]);
    }

    #[test]
    fn a_long_console_and_a_long_line_are_cut() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("console.log");
        std::fs::write(&file, "x".repeat(100_000)).unwrap();
        assert_eq!(last_line(&file).unwrap().len(), LINE_LIMIT);
    }
}
