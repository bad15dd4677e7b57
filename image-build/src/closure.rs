//! From the chosen modules to all that must be packed for them to load.

use std::collections::BTreeMap;

use crate::error::BuildError;
use crate::manifest::Selection;
use crate::modinfo::module_name;
use crate::module_tree::{Module, ModuleTree};
use crate::select::ModuleClass;

/// The modules to pack.
#[derive(Debug, Default)]
pub struct Closure<'tree> {
    /// Modules by name, each with everything it needs also among them.
    pub modules: BTreeMap<&'tree str, &'tree Module>,
    /// What became of each class.
    pub selection: Vec<Selection>,
}

impl<'tree> Closure<'tree> {
    /// Collects the modules of `classes` and all that these need.
    ///
    /// # Errors
    ///
    /// [`BuildError::RequiredModule`] and [`BuildError::Dependency`].
    pub fn of(tree: &'tree ModuleTree, classes: &[ModuleClass]) -> Result<Self, BuildError> {
        let mut closure = Self::default();
        let aliases = exact_aliases(tree);
        for class in classes {
            let mut selection = Selection::of(class.name);
            for name in class.required.iter().chain(class.wanted) {
                if tree.modules.contains_key(*name) {
                    closure.add(tree, &aliases, name)?;
                    selection.packed.push(name);
                } else if tree.built_in.contains(*name) {
                    selection.built_in.push(name);
                } else if class.required.contains(name) {
                    let (module, release) = ((*name).to_owned(), tree.release.clone());
                    return Err(BuildError::RequiredModule { module, release });
                } else {
                    selection.absent.push(name);
                }
            }
            closure.selection.push(selection);
        }
        Ok(closure)
    }

    fn add(
        &mut self,
        tree: &'tree ModuleTree,
        aliases: &Aliases<'tree>,
        name: &str,
    ) -> Result<(), BuildError> {
        let Some((name, module)) = tree.modules.get_key_value(name) else { return Ok(()) };
        if self.modules.insert(name, module).is_some() {
            return Ok(());
        }
        for dependency in &module.info.depends {
            if !tree.modules.contains_key(dependency) && !tree.built_in.contains(dependency) {
                let (module, dependency) = (name.clone(), dependency.clone());
                return Err(BuildError::Dependency { module, dependency, tree: tree.root.clone() });
            }
            self.add(tree, aliases, dependency)?;
        }
        for soft in module.info.soft_before.iter().chain(&module.info.soft_after) {
            self.add(tree, aliases, &module_name(soft))?;
            for provider in aliases.get(&**soft).into_iter().flatten() {
                self.add(tree, aliases, provider)?;
            }
        }
        Ok(())
    }
}

/// Modules by alias, for the aliases that are no patterns: soft dependencies name modules by these.
type Aliases<'tree> = BTreeMap<&'tree str, Vec<&'tree str>>;

fn exact_aliases(tree: &ModuleTree) -> Aliases<'_> {
    let mut aliases = Aliases::new();
    for (name, module) in &tree.modules {
        for alias in module.info.aliases.iter().filter(|alias| !alias.contains(['*', '?', '['])) {
            aliases.entry(alias).or_default().push(name);
        }
    }
    aliases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modinfo::ModInfo;

    fn tree(modules: &[(&str, &[&str])], built_in: &[&str]) -> ModuleTree {
        let module = |(name, fields): &(&str, &[&str])| {
            let info = ModInfo::from_section(fields.join("\0").as_bytes());
            ((*name).to_owned(), Module { path: format!("kernel/{name}.ko"), source: "/".into(), info })
        };
        ModuleTree {
            release: "6.1".into(),
            root: "/lib/modules/6.1".into(),
            modules: modules.iter().map(module).collect(),
            built_in: built_in.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn class(required: &'static [&'static str], wanted: &'static [&'static str]) -> [ModuleClass; 1] {
        [ModuleClass { name: "test", required, wanted, always_loaded: &[] }]
    }

    #[test]
    fn what_a_module_needs_comes_with_it() {
        let tree = tree(
            &[
                ("net", &["depends=failover,core"]),
                ("failover", &["depends=core"]),
                ("core", &[]),
                ("disk", &["depends=", "softdep=pre: crc absent post: late"]),
                ("late", &[]),
                ("crc_generic", &["alias=crc"]),
                ("crc_fast", &["alias=crc", "alias=cpu:*"]),
                ("ring_a", &["depends=ring_b"]),
                ("ring_b", &["softdep=pre: ring_a"]),
                ("unrelated", &[]),
            ],
            &["core_extra"],
        );
        for (wanted, expected) in [
            (&["net"][..], &["core", "failover", "net"][..]),
            (&["disk"], &["crc_fast", "crc_generic", "disk", "late"]),
            (&["ring_a"], &["ring_a", "ring_b"]),
            (&["core_extra", "nowhere"], &[]),
        ] {
            let closure = Closure::of(&tree, &class(&[], wanted)).unwrap();
            assert_eq!(closure.modules.keys().copied().collect::<Vec<_>>(), expected, "{wanted:?}");
        }
        let closure = Closure::of(&tree, &class(&["core_extra"], &["nowhere"])).unwrap();
        assert_eq!(closure.selection[0].built_in, ["core_extra"]);
        assert_eq!(closure.selection[0].absent, ["nowhere"]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let tree = tree(&[("net", &["depends=gone"])], &[]);
        let error = Closure::of(&tree, &class(&["nvme"], &[])).unwrap_err();
        assert!(error.to_string().starts_with("kernel 6.1 has no module nvme"), "{error}");
        let error = Closure::of(&tree, &class(&[], &["net"])).unwrap_err();
        assert!(error.to_string().starts_with("module net needs gone"), "{error}");
    }
}
