//! How many names a folder of sources has: one that has more than a reader takes in at a glance is divided.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Most names in a folder; a module and the folder of its parts are one name.
const MOST: usize = 16;

/// Folders that have more, from before there was a limit, with the number of their names. The list only gets shorter, and
/// its numbers only get smaller.
const CROWDED: &[(&str, usize)] = &[
    ("agent/src", 18),
    ("agent/src/api", 19),
    ("disk/src", 23),
    ("hardware-managers/src", 18),
    ("hardware-managers/src/erase", 17),
    ("image-build/src", 33),
    ("imaging/src", 24),
    ("init/src", 17),
    ("linux/src", 33),
    ("tests/tests/vm", 34),
];

/// Refuses crowded folders below the sources and tests of these crates, given by their folders below `root`.
pub fn refuse(root: &Path, crates: &[String]) -> Result<()> {
    let mut found = BTreeMap::new();
    for name in crates {
        for part in ["src", "tests"] {
            let folder = format!("{name}/{part}");
            if root.join(&folder).is_dir() {
                count(root, &folder, &mut found)?;
            }
        }
    }
    let faults = faults(&found, CROWDED);
    if !faults.is_empty() {
        bail!("folders of sources:\n{}", faults.join("\n"));
    }
    Ok(())
}

/// Counts the names in a folder and in all below it.
fn count(root: &Path, folder: &str, found: &mut BTreeMap<String, usize>) -> Result<()> {
    let path = root.join(folder);
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            count(root, &format!("{folder}/{name}"), found)?;
        }
        names.insert(name.strip_suffix(".rs").unwrap_or(&name).to_owned());
    }
    found.insert(folder.to_owned(), names.len());
    Ok(())
}

/// What is wrong with folders that have so many names, where some are known to be crowded.
fn faults(found: &BTreeMap<String, usize>, crowded: &[(&str, usize)]) -> Vec<String> {
    let known: BTreeMap<_, _> = crowded.iter().copied().collect();
    let grown = found.iter().filter_map(|(folder, names)| {
        let most = known.get(folder.as_str()).copied().unwrap_or(MOST);
        (*names > most).then(|| format!("{folder} has {names} names, at most {most} are allowed; divide it"))
    });
    let shrunk = known.iter().filter_map(|(folder, listed)| {
        let names = found.get(*folder).copied().unwrap_or_default();
        let is_small = names < *listed || names <= MOST;
        is_small
            .then(|| format!("{folder} has {names} names now; list that in CROWDED, or nothing up to {MOST}"))
    });
    grown.chain(shrunk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_grow_to_the_limit_and_those_that_are_listed_only_shrink() {
        let found =
            BTreeMap::from([("a/src", 16), ("b/src", 17), ("c/src", 30), ("d/src", 20), ("e/src", 16)])
                .into_iter()
                .map(|(folder, names)| (folder.to_owned(), names))
                .collect();
        let crowded = [("c/src", 29), ("d/src", 21), ("e/src", 17), ("f/src", 18)];
        let at_fault = |faults: Vec<String>| -> Vec<String> {
            faults.iter().map(|fault| fault.split(' ').next().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(at_fault(faults(&found, &crowded)), ["b/src", "c/src", "d/src", "e/src", "f/src"]);
        let crowded = [("b/src", 17), ("c/src", 30), ("d/src", 20)];
        assert_eq!(faults(&found, &crowded), Vec::<String>::new());
    }
}
