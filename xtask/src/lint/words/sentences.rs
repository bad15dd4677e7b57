//! The sentences of a text, and what is wrong with one.

use std::fmt::Write;

use super::lists::{CLAUSES, LISTED};

/// Text without links, pictures and emphasis, and with each piece of code as one word.
pub fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '`' {
            let (code, after) = rest[1..].split_once('`').unwrap_or((&rest[1..], ""));
            write!(plain, "`{}`", code.split_whitespace().collect::<Vec<_>>().join("\u{a0}"))
                .expect("a text");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("](") {
            rest = after.split_once(')').map_or("", |(_, after)| after);
        } else {
            if !"[]*".contains(c) {
                plain.push(c);
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    plain.split([' ', '\n', '\t']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The sentences of a text.
pub fn sentences(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    let words: Vec<_> = text.split(' ').filter(|word| !word.is_empty()).collect();
    for (index, word) in words.iter().enumerate() {
        let sentence = sentences.last_mut().expect("there is one");
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        let ends = word.trim_end_matches([')', '"', '”']).ends_with(['.', '?', '!']);
        let next = words.get(index + 1).map(|next| next.trim_start_matches(['(', '"', '“']));
        if ends
            && next.is_some_and(|next| {
                next.starts_with(|c: char| c.is_uppercase() || c == '`' || c.is_ascii_digit())
            })
        {
            sentences.push(String::new());
        }
    }
    sentences.retain(|sentence| words_of(sentence).next().is_some());
    sentences
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|word| word.contains(|c: char| c.is_alphanumeric()))
}

pub fn words(sentence: &str) -> usize {
    words_of(sentence).count()
}

pub fn begins_with_clause(sentence: &str) -> bool {
    let first = words_of(sentence).next().unwrap_or_default();
    let first = first.trim_matches(|c: char| !c.is_alphanumeric() && c != '`').to_lowercase();
    CLAUSES.split(' ').any(|word| word == first) && !sentence.ends_with('?')
}

/// The listed words of a text, each with better ones. Code is no text.
pub fn listed(text: &str) -> Vec<(&'static str, &'static str)> {
    let mut words = String::from(" ");
    for (index, part) in text.split('`').enumerate() {
        match index % 2 {
            0 => words
                .extend(part.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' })),
            _ => words.push('`'),
        }
    }
    let words: Vec<_> = words.split(' ').filter(|word| !word.is_empty()).collect();
    let words = format!(" {} ", words.join(" "));
    LISTED.iter().filter(|(word, _)| words.contains(&format!(" {word} "))).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_another_one_begins_and_code_is_one_word() {
        let found = sentences(&plain(
            "It loads `GET /v1/lookup. Then` 1.5 MiB, e.g. of [a page](x.md). `farrier` ends. (Or not.) Why? **See** it.",
        ));
        let expected = [
            "It loads `GET\u{a0}/v1/lookup.\u{a0}Then` 1.5 MiB, e.g. of a page.",
            "`farrier` ends.",
            "(Or not.)",
            "Why?",
            "See it.",
        ];
        assert_eq!(found, expected);
        assert_eq!(found.iter().map(|one| words(one)).collect::<Vec<_>>(), [9, 2, 2, 1, 2]);
    }

    #[test]
    fn noun_clauses_are_known_by_their_first_word_and_questions_are_none() {
        for (sentence, is_clause) in [
            ("What it holds is erased.", true),
            ("whether it boots", true),
            ("(Where it boots, it boots.)", true),
            ("What boots?", false),
            ("It tells what boots.", false),
            ("`what` is an option.", false),
            ("If it boots, it boots.", false),
        ] {
            assert_eq!(begins_with_clause(sentence), is_clause, "{sentence}");
        }
    }

    #[test]
    fn listed_words_are_found_as_words_and_not_in_code() {
        let found = |text| listed(text).into_iter().map(|(word, _)| word).collect::<Vec<_>>();
        assert_eq!(found("It is made ANEW, in place-of `it`."), ["anew", "in place of"]);
        assert_eq!(found("`anew`; a new canew"), Vec::<&str>::new());
        assert_eq!(found("in `place` of"), Vec::<&str>::new());
    }
}
