//! Writes the indexes by which modules are found and loaded, in kmod's text formats.

use std::collections::BTreeMap;

use crate::module_tree::Module;

/// Follows the path of a module's file, which is packed compressed.
pub const SUFFIX: &str = ".zst";

type Modules<'tree> = BTreeMap<&'tree str, &'tree Module>;

/// `modules.dep`: one line a module, its path and those of all it needs. They load from
/// the last to the first.
pub fn modules_dep(modules: &Modules) -> String {
    let mut text = String::new();
    for (name, module) in modules {
        text.push_str(&format!("{}{SUFFIX}:", module.path));
        for needed in load_order(modules, name).iter().rev().skip(1) {
            text.push_str(&format!(" {}{SUFFIX}", modules[needed].path));
        }
        text.push('\n');
    }
    text
}

/// `modules.alias`: `alias PATTERN MODULE` a line.
pub fn modules_alias(modules: &Modules) -> String {
    let mut text = String::new();
    for (name, module) in modules {
        for alias in &module.info.aliases {
            text.push_str(&format!("alias {alias} {name}\n"));
        }
    }
    text
}

/// `modules.softdep`: `softdep MODULE pre: NAME... post: NAME...` a line.
pub fn modules_softdep(modules: &Modules) -> String {
    let mut text = String::new();
    for (name, module) in modules {
        let (before, after) = (&module.info.soft_before, &module.info.soft_after);
        if before.is_empty() && after.is_empty() {
            continue;
        }
        text.push_str(&format!("softdep {name}"));
        for (label, names) in [("pre:", before), ("post:", after)] {
            if !names.is_empty() {
                text.push_str(&format!(" {label} {}", names.join(" ")));
            }
        }
        text.push('\n');
    }
    text
}

/// The modules to load for `name`, itself last, each after all it needs. Built-in ones are left out.
fn load_order<'tree>(modules: &Modules<'tree>, name: &'tree str) -> Vec<&'tree str> {
    fn visit<'tree>(
        modules: &Modules<'tree>,
        name: &'tree str,
        order: &mut Vec<&'tree str>,
        path: &mut Vec<&'tree str>,
    ) {
        let Some((name, module)) = modules.get_key_value(name) else { return };
        if order.contains(name) || path.contains(name) {
            return;
        }
        path.push(name);
        for dependency in &module.info.depends {
            visit(modules, dependency, order, path);
        }
        path.pop();
        order.push(name);
    }
    let mut order = Vec::new();
    visit(modules, name, &mut order, &mut Vec::new());
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modinfo::ModInfo;

    #[test]
    fn indexes_are_in_kmods_formats() {
        let module = |path: &str, fields: &[&str]| Module {
            path: path.into(),
            source: "/".into(),
            info: ModInfo::from_section(fields.join("\0").as_bytes()),
        };
        let net =
            module("kernel/net.ko", &["depends=core,failover", "alias=pci:v1d*", "softdep=pre: a b post: c"]);
        let failover = module("kernel/failover.ko", &["depends=core,built_in"]);
        let core = module("kernel/core.ko", &["alias=core-1", "alias=core-2"]);
        let modules = Modules::from([("net", &net), ("failover", &failover), ("core", &core)]);

        assert_eq!(
            modules_dep(&modules),
            "kernel/core.ko.zst:\n\
             kernel/failover.ko.zst: kernel/core.ko.zst\n\
             kernel/net.ko.zst: kernel/failover.ko.zst kernel/core.ko.zst\n"
        );
        assert_eq!(modules_alias(&modules), "alias core-1 core\nalias core-2 core\nalias pci:v1d* net\n");
        assert_eq!(modules_softdep(&modules), "softdep net pre: a b post: c\n");
    }

    #[test]
    fn circles_end() {
        let module = |needs: &str| Module {
            path: format!("{needs}.ko"),
            source: "/".into(),
            info: ModInfo { depends: vec![needs.into()], ..ModInfo::default() },
        };
        let (a, b) = (module("b"), module("a"));
        let modules = Modules::from([("a", &a), ("b", &b)]);
        assert_eq!(modules_dep(&modules), "b.ko.zst: a.ko.zst\na.ko.zst: b.ko.zst\n");
    }
}
