//! The messages of the programs: texts of errors, log lines, reports and replies, read from their sources.
//!
//! A message is the text of an `#[error]` attribute, or the first text in a macro that logs or ends with an error. Every
//! other text of three words or more outside of tests is a piece of a message, which may begin with any word.

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Lit, Meta};

use super::sentences::plain;
use super::{Form, Passage};

/// Least words of a piece of a message.
const LEAST_WORDS: usize = 3;

/// Macros whose text is a whole message.
const MESSAGES: [&str; 7] = ["anyhow", "bail", "ensure", "debug", "error", "info", "warn"];

/// Macros and methods whose texts only developers read.
const INTERNAL: [&str; 10] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "expect",
    "expect_err",
    "panic",
    "query",
    "todo",
    "unreachable",
];

/// The messages of a source.
pub fn of_source(file: &str, source: &str) -> Result<Vec<Passage>> {
    let parsed = syn::parse_file(source).with_context(|| format!("cannot parse {file}"))?;
    let mut reader = MessageReader { file, source, passages: Vec::new() };
    if !is_of_tests(&parsed.attrs) {
        reader.visit_file(&parsed);
    }
    Ok(reader.passages)
}

struct MessageReader<'a> {
    file: &'a str,
    source: &'a str,
    passages: Vec<Passage>,
}

impl MessageReader<'_> {
    fn add(&mut self, literal: &syn::LitStr, form: Form) {
        let text = without_places(&literal.value());
        let is_statement = ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "PREPARE ", "EXPLAIN "]
            .iter()
            .any(|verb| text.trim_start().starts_with(verb));
        if is_statement || text.split_whitespace().count() < LEAST_WORDS {
            return;
        }
        let start: String = literal.value().chars().take(24).collect();
        let line =
            self.source.lines().position(|line| line.contains(start.trim())).map_or(0, |line| line + 1);
        self.passages.push(Passage { file: self.file.to_owned(), line, form, text: plain(&text) });
    }

    /// The texts among the tokens of a macro; the first one has this form.
    fn tokens(&mut self, tokens: TokenStream, mut form: Form) {
        for token in tokens {
            match token {
                TokenTree::Group(group) if is_comment(&group.stream()) => {}
                TokenTree::Group(group) => self.tokens(group.stream(), Form::Piece),
                TokenTree::Literal(literal) => {
                    if let Lit::Str(text) = Lit::new(literal) {
                        self.add(&text, std::mem::replace(&mut form, Form::Piece));
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether tokens between brackets are a doc comment, which a macro gets as an attribute.
fn is_comment(tokens: &TokenStream) -> bool {
    matches!(tokens.clone().into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc")
}

/// A text without the names of values between braces.
fn without_places(text: &str) -> String {
    let mut parts = text.split('{');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept += "{}";
        kept += part.split_once('}').map_or(part, |(_, after)| after);
    }
    kept
}

/// Whether an item is for tests only.
fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string().contains("test"),
        Meta::Path(path) => path.is_ident("test"),
        Meta::NameValue(_) => false,
    })
}

impl Visit<'_> for MessageReader<'_> {
    fn visit_item_mod(&mut self, item: &syn::ItemMod) {
        if !is_of_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &syn::ItemFn) {
        if !is_of_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_attribute(&mut self, attribute: &Attribute) {
        if let Meta::List(list) = &attribute.meta
            && list.path.is_ident("error")
        {
            self.tokens(list.tokens.clone(), Form::Message);
        }
    }

    fn visit_macro(&mut self, called: &syn::Macro) {
        let name = called.path.segments.last().map(|one| one.ident.to_string()).unwrap_or_default();
        let form = if MESSAGES.contains(&name.as_str()) { Form::Message } else { Form::Piece };
        if !INTERNAL.iter().any(|internal| name.starts_with(internal)) {
            self.tokens(called.tokens.clone(), form);
        }
    }

    fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
        if INTERNAL.iter().any(|internal| call.method == internal) {
            self.visit_expr(&call.receiver);
        } else {
            visit::visit_expr_method_call(self, call);
        }
    }

    fn visit_lit_str(&mut self, literal: &syn::LitStr) {
        self.add(literal, Form::Piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_texts_of_errors_and_log_lines_and_pieces_are_all_others_outside_of_tests() {
        let source = r#"
            #[derive(Debug, thiserror::Error)]
            enum E { #[error("the disk {name:?} \
                is full: {}", .0)] Full }
            /// No comment is one.
            fn f() {
                declare! { /** Nor is this one. */ NAME: "a declared text here" }
                tracing::warn!(node = %node, "the node {label} is gone");
                let reason = format!("the reason of {}", x);
                let table = [("a", "a longer text here")];
                value.expect("what is never shown");
                assert!(x, "what is never shown");
                let short = "two words";
            }
            #[cfg(test)]
            mod tests { fn g() { let t = "a text of tests"; } }
        "#;
        let found = of_source("x.rs", source).unwrap();
        let found: Vec<_> = found.iter().map(|one| (one.form, one.text.as_str())).collect();
        let expected = [
            (Form::Message, "the disk {} is full: {}"),
            (Form::Piece, "a declared text here"),
            (Form::Message, "the node {} is gone"),
            (Form::Piece, "the reason of {}"),
            (Form::Piece, "a longer text here"),
        ];
        assert_eq!(found, expected);
    }
}
