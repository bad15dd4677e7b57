//! Words and sentences of the README, the book and the help texts, held to the rules for prose. The messages of programs
//! and the documentation of libraries are held to the list of words, and messages do not begin with a noun clause.
//!
//! A sentence ends at a full stop, question mark or exclamation mark before a new sentence. Code counts as one word. A
//! sentence that begins with a noun clause is one whose first word is in [`lists::CLAUSES`] and that asks nothing.

mod doc_comments;
mod help;
mod lists;
mod messages;
#[cfg(test)]
mod old_lines;
mod pages;
mod sentences;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use lists::{REWRITTEN, REWRITTEN_IN};
use sentences::{begins_with_clause, listed, sentences, words};

/// Most words in a sentence.
const MOST_WORDS: usize = 30;

/// Least words in a sentence: what is shorter, as most cells of tables, is a label or a figure.
const LEAST_WORDS: usize = 4;

/// Most sentences of the pages that may have more, in percent.
const MOST_LONG: f64 = 2.0;

/// Crates whose help texts are held to the rules.
const PROGRAMS: [&str; 3] = ["agent", "farrier", "image-build"];

/// Libraries whose documentation is held to the list of words.
const LIBRARIES: [&str; 16] = [
    "access",
    "agent",
    "boot",
    "conductor-engine",
    "conductor-lib",
    "disk",
    "drivers",
    "hardware-managers",
    "imaging",
    "init",
    "iscsi",
    "linux",
    "media",
    "node-api",
    "page",
    "protocol",
];

/// Parts of the names of sources that only tests and stand-ins use, which have no messages of a program.
const OF_TESTS: [&str; 6] = ["conformance", "fake_", "stand_in", "test_server", "testing", "tests"];

/// A piece of text that is read as a whole: a paragraph, an item, a cell, a help text.
#[derive(Debug, PartialEq)]
struct Passage {
    file: String,
    line: usize,
    form: Form,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    /// Headings and heads of tables: labels, not sentences.
    Label,
    Page,
    Help,
    /// The text of an error or a log line.
    Message,
    /// Another text of a source, such as a part of a message.
    Piece,
    /// Documentation of a public item.
    Doc,
}

/// The sentences of a kind of text.
#[derive(Debug, Default, PartialEq)]
struct Figures {
    sentences: usize,
    words: usize,
    long: usize,
    clauses: usize,
    listed: usize,
}

/// Refuses texts that break the rules. With `prints` it prints the figures, and every sentence that is too long.
pub fn refuse(root: &Path, prints: bool) -> Result<()> {
    let passages = read(root)?;
    let mut faults = Vec::new();
    let mut long = Vec::new();
    for (form, name) in [
        (Form::Page, "pages"),
        (Form::Help, "help texts"),
        (Form::Message, "messages"),
        (Form::Piece, "other texts of sources"),
        (Form::Doc, "documentation of libraries"),
    ] {
        let figures = judge(&passages, form, &mut faults, &mut long);
        if prints && form != Form::Doc {
            println!("{}", figures.line(name));
        }
        if form == Form::Page && figures.percent_long() > MOST_LONG {
            faults.push(format!(
                "{:.1} % of the sentences in pages have more than {MOST_WORDS} words; at most {MOST_LONG} % may",
                figures.percent_long()
            ));
        }
    }
    if prints {
        long.iter().for_each(|sentence| println!("{sentence}"));
    }
    faults.extend(returned(root)?);
    if !faults.is_empty() {
        bail!("{} faults of words:\n{}", faults.len(), faults.join("\n"));
    }
    Ok(())
}

fn judge(passages: &[Passage], form: Form, faults: &mut Vec<String>, long: &mut Vec<String>) -> Figures {
    let mut figures = Figures::default();
    for passage in passages {
        let Passage { file, line, text, .. } = passage;
        let is_label = passage.form == Form::Label && form == Form::Page;
        if passage.form != form && !is_label {
            continue;
        }
        for (word, better) in listed(text) {
            figures.listed += 1;
            faults.push(format!("{file}:{line}: \"{word}\": write {better}"));
        }
        for sentence in sentences(text).into_iter().filter(|_| !is_label) {
            let words = words(&sentence);
            if words >= LEAST_WORDS {
                figures.sentences += 1;
                figures.words += words;
            }
            if matches!(form, Form::Doc | Form::Piece) {
                continue;
            }
            if begins_with_clause(&sentence) {
                figures.clauses += 1;
                faults.push(format!("{file}:{line}: begins with a clause: {sentence}"));
            }
            if words > MOST_WORDS && form != Form::Message {
                figures.long += 1;
                let said = format!("{file}:{line}: {words} words: {sentence}");
                match form {
                    Form::Help => faults.push(said),
                    _ => long.push(said),
                }
            }
        }
    }
    figures
}

impl Figures {
    fn percent_long(&self) -> f64 {
        100.0 * self.long as f64 / self.sentences.max(1) as f64
    }

    fn line(&self, name: &str) -> String {
        format!(
            "{name}: {} sentences of {:.1} words; {} ({:.1} %) have more than {MOST_WORDS}; {} begin with a clause; {} listed words",
            self.sentences,
            self.words as f64 / self.sentences.max(1) as f64,
            self.long,
            self.percent_long(),
            self.clauses,
            self.listed
        )
    }
}

/// Every passage of README, book and help texts.
fn read(root: &Path) -> Result<Vec<Passage>> {
    let mut pages = BTreeSet::from(["CONTRIBUTING.md", "README.md"].map(str::to_owned));
    list(root, "docs/src", "md", &mut pages)?;
    let mut sources = BTreeSet::new();
    for program in PROGRAMS {
        list(root, &format!("{program}/src"), "rs", &mut sources)?;
    }
    let mut passages = Vec::new();
    for file in pages {
        passages.extend(pages::of_page(&file, &text(root, &file)?));
    }
    for file in sources {
        passages.extend(help::of_source(&file, &text(root, &file)?)?);
    }
    let mut libraries = BTreeSet::new();
    for library in LIBRARIES {
        list(root, &format!("{library}/src"), "rs", &mut libraries)?;
    }
    for file in &libraries {
        passages.extend(doc_comments::of_source(file, &text(root, file)?)?);
    }
    for program in PROGRAMS {
        list(root, &format!("{program}/src"), "rs", &mut libraries)?;
    }
    for file in libraries.iter().filter(|file| !OF_TESTS.iter().any(|part| file.contains(part))) {
        passages.extend(messages::of_source(file, &text(root, file)?)?);
    }
    Ok(passages)
}

fn text(root: &Path, file: &str) -> Result<String> {
    fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))
}

fn list(root: &Path, folder: &str, ending: &str, found: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(root.join(folder)).with_context(|| format!("cannot read {folder}"))? {
        let entry = entry?;
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            list(root, &name, ending, found)?;
        } else if Path::new(&name).extension().is_some_and(|found| found == ending) {
            found.insert(name);
        }
    }
    Ok(())
}

/// Rewritten lines that are back, in the book or in any source but this one.
fn returned(root: &Path) -> Result<Vec<String>> {
    let mut files = BTreeSet::from(["CONTRIBUTING.md", "README.md"].map(str::to_owned));
    list(root, "docs/src", "md", &mut files)?;
    for folder in REWRITTEN_IN {
        list(root, folder, "rs", &mut files)?;
    }
    let mut found = Vec::new();
    for file in files {
        found.extend(
            returned_in(&text(root, &file)?).map(|line| format!("{file}: the line \"{line}\" is back")),
        );
    }
    Ok(found)
}

/// Rewritten lines that are back in a text.
fn returned_in(text: &str) -> impl Iterator<Item = &'static str> {
    let text = joined(text);
    REWRITTEN.iter().copied().filter(move |line| text.contains(line))
}

/// A text in one line, without the marks of comments and of strings that go over several lines.
fn joined(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim().trim_start_matches("///").trim_end_matches('\\').trim());
    lines.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::workspace::Workspace;

    #[test]
    fn readme_book_and_help_texts_keep_the_rules_for_words() {
        refuse(&Workspace::find().unwrap().root, false).unwrap();
    }

    #[test]
    fn a_message_with_a_listed_word_or_a_noun_clause_is_refused() {
        for (message, expected) in [
            ("nobody answered for {service}.{DOMAIN} in {seconds} s", "\"nobody\""),
            ("what failed cannot be cleaned up: {reason}", "begins with a clause"),
            ("the {kind} goes on at the step that failed, or begins anew", "\"anew\""),
        ] {
            let source = format!("fn f() {{ tracing::warn!(node = %label, \"{message}\"); }}");
            let passages = messages::of_source("x.rs", &source).unwrap();
            let mut faults = Vec::new();
            judge(&passages, Form::Message, &mut faults, &mut Vec::new());
            assert!(faults.iter().any(|fault| fault.contains(expected)), "{message}: {faults:?}");
        }
    }

    #[test]
    fn rewritten_lines_are_found_over_the_ends_of_lines() {
        let source = "/// Compare the power\n    /// of all; \"a \\\n       b\"";
        assert_eq!(joined(source), "Compare the power of all; \"a b\"");
    }
}
