//! What the book says of this repository is there.

use crate::host::workspace::Workspace;

#[test]
fn every_path_of_where_is_leads_somewhere() {
    let root = Workspace::find().unwrap().root;
    let page = std::fs::read_to_string(root.join("docs/src/architecture.md")).unwrap();
    let (_, table) = page.split_once("## Where is …").unwrap();
    let table = table.split("\n## ").next().unwrap();
    let paths: Vec<_> = table.lines().filter_map(|row| row.strip_suffix("` |")?.rsplit('`').next()).collect();
    assert!(paths.len() >= 20, "{paths:?}");
    for path in paths {
        assert!(root.join(path).exists(), "{path} is gone: say where it is now");
    }
}

#[test]
fn the_fields_own_words_are_found_in_the_room_they_lead_to() {
    let root = Workspace::find().unwrap().root;
    for (word, path) in [
        ("probing", "disk/src/probe.rs"),
        ("wiping", "disk/src/wipe.rs"),
        ("lsblk", "disk/src/list/mod.rs"),
        ("multipath", "disk/src/list/multipath.rs"),
        ("mdadm", "disk/src/md/assemble.rs"),
        ("scan", "disk/src/md/assemble.rs"),
        ("discard", "disk/src/io/zero.rs"),
        ("coldplug", "init/src/devices.rs"),
        ("hotplug", "init/src/devices.rs"),
        ("modprobe", "init/src/devices.rs"),
        ("settle", "agent/src/settle/mod.rs"),
        ("scan", "agent/src/settle/fabric.rs"),
        ("lookup", "agent/src/conductor/lookup.rs"),
        ("retry", "agent/src/conductor/lookup.rs"),
        ("heartbeats", "agent/src/conductor/heartbeat.rs"),
        ("retry", "agent/src/conductor/heartbeat.rs"),
        ("retry", "imaging/src/source/body.rs"),
        ("verifying", "imaging/src/readback.rs"),
        ("secure erase", "hardware-managers/src/erase.rs"),
        ("sanitize", "hardware-managers/src/erase/command_set/secure.rs"),
        ("shredding", "hardware-managers/src/erase/overwrite.rs"),
    ] {
        let source = std::fs::read_to_string(root.join(path)).unwrap();
        let documentation: Vec<_> = source.lines().filter_map(|line| line.strip_prefix("//!")).collect();
        assert!(
            documentation.join("").to_lowercase().contains(word),
            "nobody who searches for {word} finds {path}"
        );
    }
}
