//! What each statement of the store costs, by the log of the conductor.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::report::Statement;

/// Letters of a statement that are told.
const TOLD: usize = 110;

/// Reads the statements of a log, those that cost most first. A time is that from the statement to its last row.
pub(super) fn read(log: &Path) -> Result<Vec<Statement>> {
    let mut counted: HashMap<String, (u64, Duration)> = HashMap::new();
    let mut lines = BufReader::new(File::open(log)?);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        if let Some((text, elapsed)) = statement(&String::from_utf8_lossy(&line)) {
            let (count, total) = counted.entry(text).or_default();
            (*count, *total) = (*count + 1, *total + elapsed);
        }
        line.clear();
    }
    let statements = counted.into_iter().map(|(text, (count, total))| {
        let total_ms = total.as_secs_f64() * 1000.0;
        Statement { text, count, total_ms }
    });
    let mut statements: Vec<_> = statements.collect();
    statements.sort_by(|one, other| other.total_ms.total_cmp(&one.total_ms));
    if statements.is_empty() {
        return Err(anyhow::anyhow!("no statement")).with_context(|| log.display().to_string());
    }
    Ok(statements)
}

/// The statement of a line, in short, and how long it took.
fn statement(line: &str) -> Option<(String, Duration)> {
    let elapsed = line.split_once("elapsed_secs=")?.1.split_whitespace().next()?.parse().ok()?;
    let summary = quoted(line, "summary=\"")?;
    let text = quoted(line, "db.statement=\"").filter(|text| !text.trim().is_empty()).unwrap_or(summary);
    let text = text.replace("\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ");
    Some((short(&text), Duration::try_from_secs_f64(elapsed).ok()?))
}

fn quoted<'a>(line: &'a str, begin: &str) -> Option<&'a str> {
    line.split_once(begin)?.1.split_once('"').map(|(text, _)| text)
}

/// A statement without the columns that it reads, and not longer than a line.
fn short(text: &str) -> String {
    let text = match text.split_once(" FROM ") {
        Some((begin, rest)) if begin.starts_with("SELECT ") && begin.len() > 40 => {
            format!("SELECT … FROM {rest}")
        }
        _ => text.to_owned(),
    };
    match text.char_indices().nth(TOLD) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_told_in_short_and_counted() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let line = |text: &str, seconds: f64| {
            format!(
                "2026-11-27 DEBUG sqlx::query: summary=\"SELECT uuid …\" db.statement=\"{text}\" rows_affected=0 \
                 rows_returned=1 elapsed=85.3µs elapsed_secs={seconds}\n"
            )
        };
        let columns = "a_column, ".repeat(9);
        let long = format!("\\n\\nSELECT {columns} z FROM\\n nodes WHERE uuid = $1\\n");
        let lines =
            [line(&long, 0.002), line("COMMIT", 0.001), line(&long, 0.003), "something else\n".to_owned()];
        std::fs::write(log.path(), lines.concat()).unwrap();
        let read = read(log.path()).unwrap();
        let told: Vec<_> =
            read.iter().map(|one| (one.text.as_str(), one.count, one.total_ms.round())).collect();
        assert_eq!(told, [("SELECT … FROM nodes WHERE uuid = $1", 2, 5.0), ("COMMIT", 1, 1.0)]);
    }
}
