//! What the book says of this repository is there.

use crate::workspace::Workspace;

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
