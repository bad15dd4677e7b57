//! `farrier migrate`, `backup`, `export` and `import`.

use crate::agent::Script;
use crate::conductor::{farrier, has_code};
use crate::site::Site;
use farrier_engine::store::sqlite::SqliteStore;
use farrier_engine::store::{NodeStore, SqlStore};
use farrier_tests::postgres::Cluster;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The exit code of a command for a database, and what it printed.
fn run(arguments: &[&str], database: &str) -> (Option<i32>, String) {
    let output = farrier().args(arguments).args(["--database", database]).output().unwrap();
    let complained = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() || has_code(&complained), "{complained}");
    (output.status.code(), String::from_utf8(output.stdout).unwrap() + &complained)
}

#[track_caller]
fn assert_ends(arguments: &[&str], database: &str, expected: (i32, &str)) {
    let (code, said) = run(arguments, database);
    assert!(code == Some(expected.0) && said.contains(expected.1), "{arguments:?}: {code:?} {said}");
}

fn assert_private(file: &Path) {
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", file.display());
}

#[tokio::test(flavor = "multi_thread")]
async fn process_a_site_is_backed_up_and_moved_to_postgresql_while_its_conductor_runs() {
    let (cluster, folder) = (Cluster::start().unwrap(), tempfile::tempdir().unwrap());
    let site = Site::new(Script::default()).await;
    let conductor = site.conductor("c1", "127.0.0.1:0");
    site.enrol(&conductor);
    let (file, server) = (site.database(), cluster.database().unwrap());
    let [backup, export] = ["backup", "export"].map(|name| folder.path().join(name));
    let [to_backup, to_export] = [&backup, &export].map(|path| path.to_str().unwrap());

    assert_ends(&["backup", to_backup], file, (0, to_backup));
    assert_private(&backup);
    assert_ends(&["backup", to_backup], file, (1, "exists; choose another name"));
    let kept = SqliteStore::connect(&backup).unwrap();
    assert_eq!(kept.by_name("n1").await.unwrap().unwrap().node.label(), "n1");
    assert_eq!(kept.migrate().await.unwrap().applied, []);

    assert_ends(&["export", to_export], file, (0, " rows"));
    assert_private(&export);
    assert_ends(&["export", to_export], file, (1, "exists; choose another name"));
    let names = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 4, "backup, its log and index, and export");

    assert_ends(&["import", to_export], file, (1, "conductor c1 uses database"));
    assert_ends(&["migrate"], &server, (0, "Migration 1 (initial) carried out."));
    assert_ends(&["migrate"], &server, (0, "No migration was necessary."));
    assert_ends(&["import", to_export], &server, (0, " rows imported"));
    assert_ends(&["import", to_export], &server, (1, "is not empty: table nodes has records"));
    assert_ends(&["backup", to_backup], &server, (1, "use pg_dump, or farrier export"));
    let (code, again) = run(&["export", "-"], &server);
    assert_eq!((code, again), (Some(0), std::fs::read_to_string(&export).unwrap()));

    let none = folder.path().join("none");
    for command in [&["export", "-"][..], &["backup", to_export]] {
        assert_ends(command, none.to_str().unwrap(), (1, "does not exist; set --database"));
    }
    assert!(!none.exists());
    conductor.order(&["node", "show", "n1"]);
}
