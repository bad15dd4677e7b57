//! The commands in the `console` blocks of a page.

use anyhow::{Result, ensure};

/// The language of blocks with commands.
const BLOCK: &str = "```console";
/// The end of a block.
const END: &str = "```";
/// What a command begins with: the prompt of a user, and that of root.
const PROMPTS: [&str; 2] = ["$ ", "# "];
/// What stands for any text in a line of output.
pub const ANY: char = '…';

/// A command, with the output that the page shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Its line in the page, from 1 on.
    pub line: usize,
    /// The command without its prompt, in one or more lines.
    pub text: String,
    /// The lines below it. Each is in its output, in this order; [`ANY`] stands for any text.
    pub output: Vec<String>,
}

/// The commands of a page.
///
/// # Errors
///
/// A block begins with output, or has no end.
pub fn commands(page: &str) -> Result<Vec<Command>> {
    let mut commands: Vec<Command> = Vec::new();
    let mut lines = (1..).zip(page.lines());
    while let Some((begin, line)) = lines.next() {
        if line != BLOCK {
            continue;
        }
        let mut in_block = 0;
        // What ends the here-document of the last command.
        let mut terminator: Option<String> = None;
        loop {
            let (number, line) =
                lines.next().ok_or_else(|| anyhow::anyhow!("the block of line {begin} has no end"))?;
            let last = commands.last_mut().filter(|_| in_block > 0);
            match (last, prompted(line)) {
                (Some(last), _) if terminator.is_some() => {
                    last.text += &format!("\n{line}");
                    terminator = terminator.filter(|end| end != line);
                }
                _ if line == END => break,
                (Some(last), _) if last.text.ends_with('\\') && last.output.is_empty() => {
                    last.text += &format!("\n{line}");
                    terminator = here_document(line);
                }
                (_, Some(text)) => {
                    in_block += 1;
                    terminator = here_document(text);
                    commands.push(Command { line: number, text: text.to_owned(), output: Vec::new() });
                }
                (Some(last), None) => last.output.push(line.to_owned()),
                (None, None) => ensure!(false, "line {number}: {line:?} is output without a command"),
            }
        }
    }
    Ok(commands)
}

fn prompted(line: &str) -> Option<&str> {
    PROMPTS.iter().find_map(|prompt| line.strip_prefix(prompt))
}

/// The word that ends the here-document which a line begins.
fn here_document(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("<<")?;
    let word = rest.split_whitespace().next()?;
    Some(word.trim_matches('\'').to_owned())
}

impl Command {
    /// The first line of the output that is not where it belongs in what was printed.
    pub fn missing(&self, printed: &str) -> Option<&str> {
        let mut printed = printed.lines();
        self.output.iter().map(String::as_str).find(|line| !printed.any(|one| agrees(line, one)))
    }
}

/// Whether a line is as the page shows it.
fn agrees(shown: &str, printed: &str) -> bool {
    let mut parts = shown.split(ANY);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_page_have_their_lines_and_the_output_below_them() {
        let page = "# A page\n\n```console\n$ one \\\n    --more\nits output\n# two <<'END'\n$ no command\nEND\n```\n\n```ini\n$ no\n```\n";
        let command = |line, text: &str, output: &[&str]| Command {
            line,
            text: text.to_owned(),
            output: output.iter().map(|line| (*line).to_owned()).collect(),
        };
        assert_eq!(
            commands(page).unwrap(),
            [
                command(4, "one \\\n    --more", &["its output"]),
                command(7, "two <<'END'\n$ no command\nEND", &[]),
            ]
        );
        for page in ["```console\noutput\n```\n", "```console\n$ one\n"] {
            assert!(commands(page).is_err(), "{page}");
        }
    }

    #[test]
    fn output_agrees_where_only_what_is_left_open_differs() {
        for (shown, printed, expected) in [
            ("manageable", "manageable", true),
            ("manageable", "manageable ", false),
            ("[… s] node active", "[  12.0 s] node active", true),
            ("disk …  8.0 GiB…", "disk         /dev/vda  8.0 GiB  -  ROOT1", true),
            ("disk …  8.0 GiB…", "disk         /dev/vda  4.0 GiB  -  ROOT1", false),
            ("…", "", true),
            ("a…a", "a", false),
        ] {
            assert_eq!(agrees(shown, printed), expected, "{shown:?} {printed:?}");
        }
        let command = Command { line: 1, text: String::new(), output: vec!["b".into(), "a".into()] };
        assert_eq!(command.missing("x\nb\na\n"), None);
        assert_eq!(command.missing("a\nb\n"), Some("a"));
    }
}
