//! The passages of a page of the book.

use super::sentences::plain;
use super::{Form, Passage};

/// Pages whose text is help: the options and commands of the agent.
const HELP_PAGES: [&str; 2] = ["docs/src/reference/options.md", "docs/src/reference/commands.md"];

/// The passages of a page in Markdown, without blocks of code.
pub fn of_page(file: &str, page: &str) -> Vec<Passage> {
    let form = if HELP_PAGES.contains(&file) { Form::Help } else { Form::Page };
    let lines: Vec<_> = page.lines().collect();
    let mut passages = Vec::new();
    let mut open: Option<Passage> = None;
    let mut is_code = false;
    let passage = |line: usize, form, text: &str| Passage {
        file: file.to_owned(),
        line: line + 1,
        form,
        text: plain(text),
    };
    for (number, line) in lines.iter().enumerate() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            is_code = !is_code;
            passages.extend(open.take());
            continue;
        }
        if is_code || trimmed.is_empty() || trimmed.starts_with("<!--") {
            passages.extend(open.take());
        } else if trimmed.starts_with('#') {
            passages.extend(open.take());
            passages.push(passage(number, Form::Label, trimmed.trim_start_matches('#')));
        } else if trimmed.starts_with('|') {
            passages.extend(open.take());
            let is_head = lines.get(number + 1).is_some_and(|next| is_rule(next));
            let form = if is_head { Form::Label } else { form };
            let cells = cells(trimmed);
            passages.extend(cells.iter().map(|cell| passage(number, form, cell)).filter(|_| !is_rule(line)));
        } else if let Some(item) = item(trimmed) {
            passages.extend(open.take());
            open = Some(passage(number, form, item));
        } else if let Some(open) = &mut open {
            open.text = plain(&format!("{} {trimmed}", open.text));
        } else {
            open = Some(passage(number, form, trimmed));
        }
    }
    passages.extend(open);
    passages.retain(|passage| !passage.text.is_empty());
    passages
}

fn is_rule(line: &str) -> bool {
    line.contains("--") && line.chars().all(|c| "|-: ".contains(c))
}

fn item(line: &str) -> Option<&str> {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (digits.len() < line.len()).then(|| digits.strip_prefix(". ")).flatten();
    line.strip_prefix("- ")
        .or_else(|| line.strip_prefix("* "))
        .or_else(|| line.strip_prefix("> "))
        .or(numbered)
}

/// The cells of a row; a bar in code or behind a backslash divides nothing.
fn cells(row: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let (mut is_code, mut is_escaped) = (false, false);
    for c in row.trim_matches('|').chars() {
        is_code ^= c == '`';
        match c {
            '|' if !is_code && !is_escaped => cells.push(String::new()),
            c => cells.last_mut().expect("there is one").push(c),
        }
        is_escaped = c == '\\';
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_by_paragraphs_items_and_cells() {
        let page = "# A head\n\nOne\ntwo.\n\n- an item\n  of two lines\n- b\n\n| h | i |\n|---|---|\n| `a|b` | c \\| d |\n\n```\ncode\n```\n1. first\n";
        let found = of_page("docs/src/x.md", page);
        let found: Vec<_> = found.iter().map(|one| (one.line, one.form, one.text.as_str())).collect();
        let expected = [
            (1, Form::Label, "A head"),
            (3, Form::Page, "One two."),
            (6, Form::Page, "an item of two lines"),
            (8, Form::Page, "b"),
            (10, Form::Label, "h"),
            (10, Form::Label, "i"),
            (12, Form::Page, "`a|b`"),
            (12, Form::Page, "c \\| d"),
            (17, Form::Page, "first"),
        ];
        assert_eq!(found, expected);
    }
}
