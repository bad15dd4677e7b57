//! Levels of rooms, the names at the top of a crate's source: a room imports rooms below it alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Result, bail};

use super::imports::{self, Imports};

/// Crates whose rooms have no levels, from before there were any. The list only gets shorter.
const WITHOUT: &[&str] = &["farrier-agent", "farrier-hardware"];

/// Which rooms each room of a crate imports.
pub type Rooms = BTreeMap<String, BTreeSet<String>>;

/// The rooms of a crate. Its root declares them, and is none.
pub fn rooms(imports: &Imports) -> Rooms {
    let mut rooms = Rooms::new();
    for (module, imported) in imports {
        let Some(room) = module.first() else { continue };
        let others = imported.iter().filter_map(|other| other.first()).filter(|other| *other != room);
        rooms.entry(room.clone()).or_default().extend(others.cloned());
    }
    rooms
}

/// The rooms by level, the lowest first: each stands on the level above the highest of those that it imports.
///
/// # Errors
///
/// The rooms that have no level, because they import each other.
pub fn levels(rooms: &Rooms) -> Result<Vec<Vec<&str>>> {
    let mut levels: Vec<Vec<&str>> = Vec::new();
    let mut placed: BTreeSet<&str> = BTreeSet::new();
    while placed.len() < rooms.len() {
        let stands = |(room, imported): &(&String, &BTreeSet<String>)| {
            !placed.contains(room.as_str()) && imported.iter().all(|other| placed.contains(other.as_str()))
        };
        let level: Vec<_> = rooms.iter().filter(stands).map(|(room, _)| room.as_str()).collect();
        if level.is_empty() {
            let left = rooms.keys().filter(|room| !placed.contains(room.as_str()));
            let of = |room: &String| {
                let upwards = rooms[room].iter().filter(|other| !placed.contains(other.as_str()));
                format!("  {room} -> {}", upwards.cloned().collect::<Vec<_>>().join(", "))
            };
            bail!(
                "rooms import each other, so that none is below the other:\n{}",
                left.map(of).collect::<Vec<_>>().join("\n")
            );
        }
        placed.extend(&level);
        levels.push(level);
    }
    Ok(levels)
}

/// Refuses rooms that import each other in the crates with these names, whose sources are in these folders.
pub fn refuse(crates: &[(String, PathBuf)]) -> Result<()> {
    for (name, folder) in crates {
        let found = rooms(&imports::read(folder)?);
        match (levels(&found), WITHOUT.contains(&name.as_str())) {
            (Err(error), false) => return Err(error.context(format!("the rooms of {name}"))),
            (Ok(_), true) => bail!("the rooms of {name} have levels now; take it from WITHOUT"),
            (Ok(_), false) | (Err(_), true) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::workspace::Workspace;

    #[test]
    fn no_room_of_this_repository_imports_one_above_it() {
        refuse(&Workspace::find().unwrap().sources).unwrap();
    }

    fn of(edges: &[(&str, &[&str])]) -> Rooms {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        edges.iter().map(|(room, imported)| ((*room).to_owned(), names(imported))).collect()
    }

    #[test]
    fn a_room_stands_above_those_that_it_imports() {
        let rooms =
            of(&[("task", &["model", "error"]), ("error", &["model"]), ("model", &[]), ("plan", &["model"])]);
        assert_eq!(levels(&rooms).unwrap(), [vec!["model"], vec!["error", "plan"], vec!["task"]]);
    }

    #[test]
    fn rooms_that_import_each_other_have_no_level() {
        let rooms = of(&[("task", &["error"]), ("error", &["task", "model"]), ("model", &[])]);
        let error = levels(&rooms).unwrap_err().to_string();
        assert!(error.ends_with("  error -> task\n  task -> error"), "{error}");
    }

    #[test]
    fn modules_are_taken_together_as_rooms() {
        let module = |name: &str| {
            name.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        let imports = [
            ("", vec!["a", "b"]),
            ("a::x", vec!["a", "b::y"]),
            ("a", vec![]),
            ("b::y", vec!["b"]),
            ("b", vec![]),
        ];
        let imports: Imports = imports
            .into_iter()
            .map(|(name, imported)| (module(name), imported.into_iter().map(module).collect()))
            .collect();
        assert_eq!(rooms(&imports), of(&[("a", &["b"]), ("b", &[])]));
    }
}
