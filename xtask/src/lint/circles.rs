//! Circles of imports. Modules of one room may know each other; rooms, the names at the top of a crate's source,
//! stand on each other in one order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Result, bail};

use super::imports::{self, Imports, Module};

/// Refuses circles of more than one room in the crates with these names, whose sources are in these folders.
pub fn refuse(crates: &[(String, PathBuf)]) -> Result<()> {
    let mut found = Vec::new();
    for (name, folder) in crates {
        let imports = imports::read(folder)?;
        let circles = circles(&imports).into_iter().filter(|circle| rooms(circle).len() > 1);
        found.extend(circles.map(|circle| describe(name, &circle, &imports)));
    }
    if !found.is_empty() {
        bail!(
            "rooms import each other in a circle; give what they share a room below both:\n{}",
            found.join("\n")
        );
    }
    Ok(())
}

/// Sets of modules each of which leads to all others of its set.
fn circles(imports: &Imports) -> Vec<BTreeSet<Module>> {
    let reached: BTreeMap<_, _> = imports.keys().map(|module| (module, reachable(imports, module))).collect();
    let mut circles: Vec<BTreeSet<Module>> = Vec::new();
    for module in imports.keys() {
        if circles.iter().any(|circle| circle.contains(module)) || !reached[module].contains(module) {
            continue;
        }
        let is_mutual = |other: &&Module| reached[*other].contains(module);
        circles.push(reached[module].iter().filter(is_mutual).cloned().collect());
    }
    circles
}

/// Every module that imports lead to from this one.
fn reachable(imports: &Imports, from: &Module) -> BTreeSet<Module> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(module) = next.pop() {
        for imported in &imports[module] {
            if reached.insert(imported.clone()) {
                next.push(imported);
            }
        }
    }
    reached
}

/// The rooms of these modules; the root of the crate is one.
fn rooms(modules: &BTreeSet<Module>) -> BTreeSet<Option<&String>> {
    modules.iter().map(|module| module.first()).collect()
}

fn describe(name: &str, circle: &BTreeSet<Module>, imports: &Imports) -> String {
    let mut lines = vec![format!("{name}:")];
    for module in circle {
        let within: Vec<_> = imports[module]
            .intersection(circle)
            .filter(|other| other.first() != module.first())
            .map(shown)
            .collect();
        if !within.is_empty() {
            lines.push(format!("  {} -> {}", shown(module), within.join(", ")));
        }
    }
    lines.join("\n")
}

fn shown(module: &Module) -> String {
    if module.is_empty() { "the crate's root".to_owned() } else { module.join("::") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str) -> Module {
        name.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    fn imports(edges: &[(&str, &[&str])]) -> Imports {
        let modules = |names: &[&str]| names.iter().map(|name| module(name)).collect();
        edges.iter().map(|(name, imported)| (module(name), modules(imported))).collect()
    }

    #[test]
    fn no_rooms_of_this_repository_import_each_other_in_a_circle() {
        refuse(&crate::host::workspace::Workspace::find().unwrap().sources).unwrap();
    }

    #[test]
    fn circles_between_rooms_are_found_and_those_within_are_left_alone() {
        let within = imports(&[("", &["a"]), ("a", &["a::b", "c"]), ("a::b", &["a"]), ("c", &[])]);
        let found = circles(&within);
        assert_eq!(found, [BTreeSet::from([module("a"), module("a::b")])]);
        assert_eq!(rooms(&found[0]).len(), 1);

        let between = imports(&[("a", &["b::d"]), ("b", &["b::d"]), ("b::d", &["c"]), ("c", &["a", "b"])]);
        let found = circles(&between);
        assert_eq!(found.len(), 1);
        assert_eq!(rooms(&found[0]).len(), 3);
        assert_eq!(
            describe("farrier-disk", &found[0], &between),
            "farrier-disk:\n  a -> b::d\n  b::d -> c\n  c -> a, b"
        );
    }
}
