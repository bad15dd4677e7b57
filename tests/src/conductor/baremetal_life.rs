//! A node's whole life by the command line client `baremetal`, and what that prints.

use super::node_api::Conductor;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Its commands, one a line. The node has hardware that is not there.
const COMMANDS: &str = include_str!("../../client/life.txt");

/// The version of the interface that the client speaks: the newest that both conductors have.
const VERSION: &str = "1.110";

/// How long an operation without a machine may take.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);

/// Everything that the client of the Python environment `clients` prints, after each command its exit code. The next
/// command comes when nothing is under way.
///
/// # Errors
///
/// The client cannot be started, or an operation does not end.
pub fn live(clients: &Path, conductor: &dyn Conductor) -> Result<String> {
    let url = format!("http://127.0.0.1:{}", conductor.api().port());
    let mut printed = String::new();
    for line in COMMANDS.lines() {
        let output = Command::new(clients.join("bin/baremetal"))
            .args(words(line))
            .env_clear()
            .envs([("OS_AUTH_TYPE", "none"), ("OS_ENDPOINT", &url), ("OS_BAREMETAL_API_VERSION", VERSION)])
            .envs([("HOME", "/nonexistent"), ("COLUMNS", "200"), ("PYTHONUTF8", "1")])
            .output()
            .with_context(|| format!("cannot start baremetal of {}", clients.display()))?;
        let (told, complained) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let code = output.status.code().unwrap_or_default();
        printed += &format!("$ baremetal {line}\n{told}{complained}[{code}]\n\n");
        wait_for_rest(conductor).with_context(|| format!("after {line:?}"))?;
    }
    Ok(printed)
}

/// Words with spaces between them; those within single quotes may have some.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in line.chars() {
        match (letter, words.last_mut()) {
            ('\'', _) => is_quoted = !is_quoted,
            (' ', _) if !is_quoted => words.push(String::new()),
            (other, Some(word)) => word.push(other),
            (_, None) => {}
        }
    }
    words
}

fn wait_for_rest(conductor: &dyn Conductor) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let nodes = conductor.api().request("GET", "/v1/nodes/detail", None)?;
        let allocations = conductor.api().request("GET", "/v1/allocations", None)?;
        let rests = |node: &Value| node["reservation"].is_null() && node["target_power_state"].is_null();
        let is_found = |allocation: &Value| allocation["state"] != "allocating";
        let all = |list: &Value, is: &dyn Fn(&Value) -> bool| {
            list.as_array().is_some_and(|list| list.iter().all(is))
        };
        if all(&nodes["nodes"], &rests) && all(&allocations["allocations"], &is_found) {
            return Ok(());
        }
        if Instant::now() >= end {
            bail!("something stays under way: {nodes} {allocations}\n{}", conductor.log_tail());
        }
        thread::sleep(POLL);
    }
}

/// What was printed, each command with its lines, without what two conductors need not have in common: times, the words
/// of a refusal, the order of fields and of keys.
pub fn comparable(printed: &str) -> Vec<(String, Vec<String>)> {
    let commands = printed.trim_end().split("\n\n$ ").map(|command| command.trim_start_matches("$ "));
    commands
        .map(|command| {
            let mut lines = command.lines();
            (lines.next().unwrap_or_default().to_owned(), in_common(lines))
        })
        .collect()
}

fn in_common<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut header = Vec::new();
    let mut result = Vec::new();
    for line in lines.filter(|line| !line.starts_with("+-")) {
        match line.strip_prefix("| ").and_then(|row| row.strip_suffix('|')) {
            Some(row) => {
                let cells: Vec<_> = row.split(" | ").map(str::trim).collect();
                if header.is_empty() {
                    header.clone_from(&cells);
                }
                result.push(row_in_common(&header, &cells));
            }
            None => result.push(refusal(line)),
        }
    }
    if header.last() == Some(&"Value") {
        result.sort_unstable();
    }
    result
}

fn row_in_common(header: &[&str], cells: &[&str]) -> String {
    let is_time = |name: &str| name.ends_with("_at") || name.ends_with(" At");
    let is_field = header.last() == Some(&"Value");
    let shown = cells.iter().enumerate().map(|(column, cell)| {
        let name = if is_field { cells[0] } else { header.get(column).copied().unwrap_or_default() };
        match is_time(name) && *cell != name {
            true => "(time)".to_owned(),
            false => keys_in_order(cell),
        }
    });
    shown.collect::<Vec<_>>().join(" | ")
}

/// Lists and objects as Python prints them, whose order says nothing here.
fn keys_in_order(cell: &str) -> String {
    if !cell.contains(", ") {
        return cell.to_owned();
    }
    let mut words: Vec<_> = cell
        .split(|letter: char| "[]{},".contains(letter))
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .collect();
    words.sort_unstable();
    words.join(", ")
}

/// A refusal is known by its status.
fn refusal(line: &str) -> String {
    let status = line.find("(HTTP ").and_then(|at| line[at..].split_inclusive(')').next());
    status.unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_words_as_a_shell_reads_them() {
        assert_eq!(words("node set n --extra 'a=b c'"), ["node", "set", "n", "--extra", "a=b c"]);
    }

    #[test]
    fn what_two_conductors_have_in_common_is_left() {
        let printed = "\
$ baremetal node show n
+-------+-------+
| Field | Value |
+-------+-------+
| extra | {'b': 1, 'a': [2]} |
| created_at | 2026-11-23T20:00:00+00:00 |
| alive | True |
+-------+-------+
[0]

$ baremetal port list --long
| UUID | Updated At | Extra |
| 1 | None | {} |
[0]

$ baremetal node show m
node \"m\" does not exist (HTTP 404) (Request-ID: req-1)
[1]

";
        let expected = [
            (
                "baremetal node show n",
                vec![
                    "Field | Value",
                    "[0]",
                    "alive | True",
                    "created_at | (time)",
                    "extra | 'a':, 'b': 1, 2",
                ],
            ),
            ("baremetal port list --long", vec!["UUID | Updated At | Extra", "1 | (time) | {}", "[0]"]),
            ("baremetal node show m", vec!["(HTTP 404)", "[1]"]),
        ];
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(command, lines)| (command.to_owned(), lines.into_iter().map(str::to_owned).collect()))
            .collect();
        assert_eq!(comparable(printed), expected);
    }
}
