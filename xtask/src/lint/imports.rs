//! What each module of a crate imports, read from its source.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, UseTree};

/// A module by the names on the way to it from the root of its crate, which has none.
pub type Module = Vec<String>;

/// Which modules each module imports; inline modules count as the file in which they stand, tests do not count.
pub type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// Reads the source of a crate, whose root is `lib.rs` or `main.rs` in `folder`.
pub fn read(folder: &Path) -> Result<Imports> {
    let mut files = BTreeMap::new();
    for root in ["lib.rs", "main.rs"].map(|name| folder.join(name)) {
        if root.exists() {
            add(&mut files, Module::new(), &root, folder)?;
        }
    }
    let modules: BTreeSet<_> = files.keys().cloned().collect();
    let imports = files.into_iter().map(|(module, file)| {
        let mut reader =
            Reader { modules: &modules, file: &module, within: module.clone(), found: BTreeSet::new() };
        reader.visit_file(&file);
        let found = reader.found;
        (module, found)
    });
    Ok(imports.collect())
}

/// Adds a file and those of the modules that it declares, which are below `folder`.
fn add(files: &mut BTreeMap<Module, syn::File>, module: Module, path: &Path, folder: &Path) -> Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut file = syn::parse_file(&text).with_context(|| format!("cannot parse {}", path.display()))?;
    for item in &file.items {
        let Item::Mod(declared) = item else { continue };
        if declared.content.is_some() || is_test(&declared.attrs) {
            continue;
        }
        let name = declared.ident.to_string();
        let below = folder.join(&name);
        let plain = folder.join(format!("{name}.rs"));
        let path = if plain.exists() { plain } else { below.join("mod.rs") };
        add(files, [&module[..], &[name]].concat(), &path, &below)?;
    }
    // A library and a program of one crate have one root.
    if let Some(other) = files.remove(&module) {
        file.items.extend(other.items);
    }
    files.insert(module, file);
    Ok(())
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

struct Reader<'a> {
    modules: &'a BTreeSet<Module>,
    /// The module of the file.
    file: &'a Module,
    /// That, or the inline module in it that is being read.
    within: Module,
    found: BTreeSet<Module>,
}

impl Reader<'_> {
    /// Notes the module that a path leads into, if it is one of this crate and not the reader's own.
    fn note(&mut self, path: &[String]) {
        let Some(first) = path.first() else { return };
        let mut target = match first.as_str() {
            "crate" => Module::new(),
            "super" | "self" => self.within.clone(),
            name => [&self.within[..], &[name.to_owned()]].concat(),
        };
        if !["crate", "super", "self"].contains(&first.as_str()) && !self.modules.contains(&target) {
            return;
        }
        for name in path.iter().skip(usize::from(first != "super")) {
            match name.as_str() {
                "super" => drop(target.pop()),
                name => target.push(name.to_owned()),
            }
        }
        while !self.modules.contains(&target) {
            target.pop();
        }
        if target != *self.file {
            self.found.insert(target);
        }
    }

    fn note_tree(&mut self, before: &[String], tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                self.note_tree(&[before, &[path.ident.to_string()]].concat(), &path.tree);
            }
            UseTree::Name(name) => self.note(&[before, &[name.ident.to_string()]].concat()),
            UseTree::Rename(name) => self.note(&[before, &[name.ident.to_string()]].concat()),
            UseTree::Glob(_) => self.note(before),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.note_tree(before, tree)),
        }
    }
}

impl Visit<'_> for Reader<'_> {
    fn visit_item(&mut self, item: &Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &ItemMod) {
        self.within.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.within.pop();
    }

    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        self.note_tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &syn::Path) {
        // One name alone is no module.
        if path.segments.len() > 1 {
            self.note(&path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Vec<_>>());
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn imports_are_found_in_every_form_and_tests_left_out() {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("lib.rs", "mod a; mod b; #[cfg(test)] mod t; pub use a::X; pub const LIMIT: u8 = 0;"),
            ("a.rs", "mod deep; use crate::b::{self, Y}; use std::fs; fn f() { deep::g(); }"),
            ("a/deep.rs", "fn g() -> super::X { crate::LIMIT } #[cfg(test)] mod tests { use crate::b::Z; }"),
            ("b/mod.rs", "pub mod c; mod inline { use super::c::Q; } #[cfg(test)] fn t() { crate::a::f() }"),
            ("b/c.rs", "pub(super) use super::super::a::X as Other;"),
            ("t.rs", "use crate::a;"),
        ] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found: Vec<_> = read(folder.path())
            .unwrap()
            .into_iter()
            .map(|(module, imports)| {
                let imports: Vec<_> = imports.iter().map(|one| one.join("::")).collect();
                (module.join("::"), imports.join(" "))
            })
            .collect();
        let expected = [("", "a"), ("a", "a::deep b"), ("a::deep", " a"), ("b", "b::c"), ("b::c", "a")];
        assert_eq!(found, expected.map(|(module, imports)| (module.to_owned(), imports.to_owned())));
    }
}
