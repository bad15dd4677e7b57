//! The documentation of what a library publishes, read from its sources.

use anyhow::{Context, Result};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, Lit, Meta, Visibility};

use super::sentences::plain;
use super::{Form, Passage};

/// The doc comments of public items, fields, variants and methods of a source.
pub fn of_source(file: &str, source: &str) -> Result<Vec<Passage>> {
    let parsed = syn::parse_file(source).with_context(|| format!("cannot parse {file}"))?;
    let mut reader = DocReader { file, source, passages: Vec::new() };
    reader.visit_file(&parsed);
    Ok(reader.passages)
}

struct DocReader<'a> {
    file: &'a str,
    source: &'a str,
    passages: Vec<Passage>,
}

impl DocReader<'_> {
    fn add(&mut self, attributes: &[Attribute]) {
        let lines: Vec<_> = attributes.iter().filter_map(doc_line).collect();
        let first = lines.first().map(|line| line.trim().to_owned()).unwrap_or_default();
        let line = self.source.lines().position(|line| line.contains(&first)).map_or(0, |line| line + 1);
        let text = plain(&without_examples(&lines).join("\n"));
        if !text.is_empty() {
            self.passages.push(Passage { file: self.file.to_owned(), line, form: Form::Doc, text });
        }
    }

    fn add_if_public(&mut self, visibility: &Visibility, attributes: &[Attribute]) {
        if matches!(visibility, Visibility::Public(_)) {
            self.add(attributes);
        }
    }
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => Some(line.value()),
            _ => None,
        },
        _ => None,
    }
}

/// The lines outside of blocks of code.
fn without_examples(lines: &[String]) -> Vec<&str> {
    let mut is_code = false;
    let text = lines.iter().map(|line| line.trim()).filter(|line| {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    text.collect()
}

impl<'ast> Visit<'ast> for DocReader<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add_if_public(&item.vis, &item.attrs);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add_if_public(&item.vis, &item.attrs);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add_if_public(&item.vis, &item.attrs);
        if matches!(item.vis, Visibility::Public(_)) {
            item.variants.iter().for_each(|variant| self.add(&variant.attrs));
        }
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add_if_public(&item.vis, &item.attrs);
        if matches!(item.vis, Visibility::Public(_)) {
            for part in &item.items {
                if let syn::TraitItem::Fn(method) = part {
                    self.add(&method.attrs);
                }
            }
        }
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.add_if_public(&item.vis, &item.attrs);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.add_if_public(&item.vis, &item.attrs);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.add_if_public(&field.vis, &field.attrs);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add_if_public(&item.vis, &item.attrs);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.add_if_public(&item.vis, &item.attrs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_public_and_no_example_is_read() {
        let source = "/// One.\n///\n/// ```\n/// told();\n/// ```\npub struct A {\n    /// Two.\n    pub b: u8,\n    /// No.\n    c: u8,\n}\n\
                      /// Three.\npub enum E {\n    /// Four.\n    V,\n}\n/// No.\nstruct P;\nimpl A {\n    /// Five.\n    pub fn f() {}\n    \
                      /// No.\n    fn g() {}\n}\n";
        let texts: Vec<_> = of_source("a.rs", source).unwrap().into_iter().map(|one| one.text).collect();
        assert_eq!(texts, ["One.", "Two.", "Three.", "Four.", "Five."]);
    }
}
