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
    /// Collects the modules of `classes`, those named in `extra`, and all that these need.
    ///
    /// # Errors
    ///
    /// [`BuildError::RequiredModule`], [`BuildError::ExtraModule`] and [`BuildError::Dependency`].
    pub fn of(
        tree: &'tree ModuleTree,
        classes: &[ModuleClass],
        extra: &[String],
    ) -> Result<Self, BuildError> {
        let mut closure = Self::default();
        let aliases = exact_aliases(tree);
        for class in classes {
            let mut selection = Selection::of(class.name);
            for name in class.in_folders(tree) {
                closure.add(tree, &aliases, name)?;
                selection.packed.push(name.to_owned());
            }
            for name in class.required.iter().chain(class.wanted) {
                if tree.modules.contains_key(*name) {
                    closure.add(tree, &aliases, name)?;
                    selection.packed.push((*name).to_owned());
                } else if tree.built_in.contains(*name) {
                    selection.built_in.push(name);
                } else if class.required.contains(name) {
                    let (module, release) = ((*name).to_owned(), tree.release.clone());
                    return Err(BuildError::RequiredModule { module, release });
                } else {
                    selection.absent.push(name);
                }
            }
            selection.packed.sort_unstable();
            selection.packed.dedup();
            closure.selection.push(selection);
        }
        for name in extra {
            let name = module_name(name);
            if !tree.modules.contains_key(&name) && !tree.built_in.contains(&name) {
                return Err(BuildError::ExtraModule { module: name, release: tree.release.clone() });
            }
            closure.add(tree, &aliases, &name)?;
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
    use crate::module_tree::tests::tree;

    fn class(required: &'static [&'static str], wanted: &'static [&'static str]) -> [ModuleClass; 1] {
        [ModuleClass { name: "test", required, folders: &["drivers/all"], wanted, always_loaded: &[] }]
    }

    #[test]
    fn what_a_module_needs_comes_with_it() {
        let mut tree = tree(&[
            ("net.ko", &["depends=failover,core"]),
            ("failover.ko", &["depends=core"]),
            ("core.ko", &[]),
            ("disk.ko", &["depends=", "softdep=pre: crc absent post: late"]),
            ("late.ko", &[]),
            ("crc-generic.ko", &["alias=crc"]),
            ("crc-fast.ko", &["alias=crc", "alias=cpu:*"]),
            ("ring-a.ko", &["depends=ring_b"]),
            ("ring-b.ko", &["softdep=pre: ring_a"]),
            ("unrelated.ko", &[]),
        ]);
        tree.built_in.insert("core_extra".into());
        for (wanted, expected) in [
            (&["net"][..], &["core", "failover", "net"][..]),
            (&["disk"], &["crc_fast", "crc_generic", "disk", "late"]),
            (&["ring_a"], &["ring_a", "ring_b"]),
            (&["core_extra", "nowhere"], &[]),
        ] {
            let closure = Closure::of(&tree, &class(&[], wanted), &[]).unwrap();
            assert_eq!(closure.modules.keys().copied().collect::<Vec<_>>(), expected, "{wanted:?}");
        }
        let extra = ["ring-a".to_owned(), "core_extra".to_owned()];
        let closure = Closure::of(&tree, &class(&["core_extra"], &["nowhere"]), &extra).unwrap();
        assert_eq!(closure.modules.keys().copied().collect::<Vec<_>>(), ["ring_a", "ring_b"]);
        assert_eq!(closure.selection[0].built_in, ["core_extra"]);
        assert_eq!(closure.selection[0].absent, ["nowhere"]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let tree = tree(&[("net.ko", &["depends=gone"])]);
        for (class, extra, text) in [
            (class(&["nvme"], &[]), None, "kernel 6.1 has no module nvme"),
            (class(&[], &[]), Some("ixgbe".to_owned()), "kernel 6.1 has no module ixgbe"),
            (class(&[], &["net"]), None, "module net needs gone"),
        ] {
            let error = Closure::of(&tree, &class, extra.as_slice()).unwrap_err();
            assert!(error.to_string().starts_with(text), "{error}");
        }
    }
}
