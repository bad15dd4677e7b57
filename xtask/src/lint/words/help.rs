//! The help texts of the programs, read from their sources.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

use super::sentences::plain;
use super::{Form, Passage};

/// The help texts of a source: comments of what clap derives from, and texts that its builders are given.
pub fn of_source(file: &str, source: &str) -> Result<Vec<Passage>> {
    let parsed = syn::parse_file(source).with_context(|| format!("cannot parse {file}"))?;
    let mut reader = HelpReader { file, source, passages: Vec::new(), constants: BTreeSet::new() };
    reader.visit_file(&parsed);
    let constants = std::mem::take(&mut reader.constants);
    for item in &parsed.items {
        if let syn::Item::Const(item) = item
            && constants.contains(&item.ident.to_string())
            && let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &*item.expr
        {
            reader.add(&text.value());
        }
    }
    Ok(reader.passages)
}

struct HelpReader<'a> {
    file: &'a str,
    source: &'a str,
    passages: Vec<Passage>,
    /// Names of constants that hold help texts.
    constants: BTreeSet<String>,
}

impl HelpReader<'_> {
    /// Adds a text; it stands where its first words do.
    fn add(&mut self, text: &str) {
        let start: String = text.trim().lines().next().unwrap_or_default().chars().take(40).collect();
        let line = self.source.lines().position(|line| line.contains(&start)).map_or(0, |line| line + 1);
        for paragraph in text.split("\n\n") {
            let text = plain(paragraph);
            if !text.is_empty() {
                self.passages.push(Passage { file: self.file.to_owned(), line, form: Form::Help, text });
            }
        }
    }

    /// The comment above an item.
    fn comment(&mut self, attributes: &[Attribute]) {
        let mut lines = Vec::new();
        for attribute in attributes {
            if let Meta::NameValue(pair) = &attribute.meta
                && pair.path.is_ident("doc")
                && let Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) = &pair.value
            {
                lines.push(line.value());
            }
        }
        self.add(&lines.join("\n"));
    }

    /// Texts and names of constants among the arguments of clap's own attributes.
    fn arguments(&mut self, attributes: &[Attribute]) {
        for attribute in attributes {
            let Meta::List(list) = &attribute.meta else { continue };
            if !["arg", "command", "value"].iter().any(|name| list.path.is_ident(name)) {
                continue;
            }
            let tokens: Vec<_> = list.tokens.clone().into_iter().collect();
            for three in tokens.windows(3) {
                let name = three[0].to_string();
                if !HELP.contains(&name.as_str()) || three[1].to_string() != "=" {
                    continue;
                }
                match syn::parse_str::<Lit>(&three[2].to_string()) {
                    Ok(Lit::Str(text)) => self.add(&text.value()),
                    _ => drop(self.constants.insert(three[2].to_string())),
                }
            }
        }
    }
}

/// What clap calls a help text.
const HELP: [&str; 6] = ["about", "after_help", "before_help", "help", "long_about", "long_help"];

fn derives_help(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else { return false };
        let derived = list.tokens.to_string();
        list.path.is_ident("derive")
            && ["Parser", "Args", "Subcommand", "ValueEnum"]
                .iter()
                .any(|name| derived.split(|c: char| !c.is_alphanumeric()).any(|one| one == *name))
    })
}

impl Visit<'_> for HelpReader<'_> {
    fn visit_item_struct(&mut self, item: &syn::ItemStruct) {
        if derives_help(&item.attrs) {
            self.comment(&item.attrs);
            self.arguments(&item.attrs);
            for field in &item.fields {
                self.comment(&field.attrs);
                self.arguments(&field.attrs);
            }
        }
    }

    fn visit_item_enum(&mut self, item: &syn::ItemEnum) {
        if derives_help(&item.attrs) {
            self.comment(&item.attrs);
            self.arguments(&item.attrs);
            for variant in &item.variants {
                self.comment(&variant.attrs);
                self.arguments(&variant.attrs);
                for field in &variant.fields {
                    self.comment(&field.attrs);
                    self.arguments(&field.attrs);
                }
            }
        }
    }

    fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
        if HELP.contains(&call.method.to_string().as_str())
            && let Some(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) = call.args.first()
        {
            self.add(&text.value());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_local(&mut self, local: &syn::Local) {
        if let syn::Pat::Ident(name) = &local.pat
            && name.ident == "help"
            && let Some(init) = &local.init
            && let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &*init.expr
        {
            self.add(&text.value());
        }
        visit::visit_local(self, local);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_texts_are_comments_of_what_clap_derives_from_and_texts_of_its_builders() {
        let source = r#"
            const AFTER: &str = "Ends.";
            /// No help.
            struct Other { /** none */ a: u8 }
            /// A program.
            #[derive(Debug, clap::Parser)]
            #[command(after_help = AFTER)]
            struct Cli {
                /// An option
                /// of two lines.
                #[arg(long, help = "Or this.")]
                a: u8,
            }
            #[derive(Subcommand)]
            enum Command { /// Runs.
                Run { /// How.
                    how: u8 } }
            fn f() { let help = "Let."; Command::new("x").about("Built.").arg(help); }
        "#;
        let found: Vec<_> = of_source("x.rs", source).unwrap().into_iter().map(|one| one.text).collect();
        assert_eq!(
            found,
            ["A program.", "An option of two lines.", "Or this.", "Runs.", "How.", "Let.", "Built.", "Ends."]
        );
    }
}
