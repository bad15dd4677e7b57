//! The logs of ramdisks in which something failed.

use crate::stand_ins::agent::{Script, report};
use crate::stand_ins::stage::{MAC, Stage};
use farrier_conductor::agent::LogCollection;
use farrier_conductor::model::ProvisionState;
use farrier_engine::records::Order;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// A stage that keeps logs in a folder.
async fn stage(script: Script, collect: LogCollection, folder: &Path) -> Stage {
    Stage::with(script, |settings| {
        settings.agent.deploy_logs_collect = collect;
        settings.agent.deploy_logs_local_path = Some(folder.to_owned());
    })
    .await
}

/// The names of the files that are there, in the folders of their nodes.
fn kept(folder: &Path) -> Vec<String> {
    let Ok(nodes) = fs::read_dir(folder) else { return Vec::new() };
    let nodes = nodes.map(|node| node.unwrap().path()).filter(|path| path.is_dir());
    let files = nodes.flat_map(|node| fs::read_dir(node).unwrap());
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn f64_logs_are_kept_as_it_is_wanted_and_change_nothing_of_the_error() {
    let failing = || Script { write_fails: Some("disk full".into()), ..Script::default() };
    let (on_failure, always, never) = (LogCollection::OnFailure, LogCollection::Always, LogCollection::Never);
    for (script, collect, logs, expected) in [
        (failing(), on_failure, Some("LOGS"), 1),
        (failing(), always, Some("LOGS"), 1),
        (failing(), never, Some("LOGS"), 0),
        (failing(), on_failure, Some("no base64"), 0),
        (failing(), on_failure, None, 0),
        (Script::default(), on_failure, Some("LOGS"), 0),
        (Script::default(), always, Some("LOGS"), 1),
    ] {
        let (top, is_failing) = (TempDir::new().unwrap(), script.write_fails.is_some());
        let folder = top.path().join("logs");
        let script = Script { logs: logs.map(str::to_owned), ..script };
        let stage = stage(script, collect, &folder).await;
        if is_failing {
            let error = stage.deploy_and_fail().await;
            assert_eq!(error, "deploy step write_image failed: disk full [FAR-0411]");
        } else {
            stage.deploy().await;
            stage.wait_for(ProvisionState::Active).await;
        }
        let files = kept(&folder);
        assert_eq!(files.len(), expected, "{collect:?} {logs:?} {files:?}");
        for name in files {
            let node = stage.node().await;
            let file = folder.join(node.uuid.to_string()).join(&name);
            assert!(name.starts_with(&format!("{}_n1_", node.uuid)) && name.ends_with(".tar.gz"), "{name}");
            // The base64 of what is kept.
            assert_eq!(fs::read(&file).unwrap(), [0x2c, 0xe1, 0x92]);
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}

#[tokio::test]
async fn logs_that_cannot_be_kept_change_nothing() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let script =
        Script { write_fails: Some("disk full".into()), logs: Some("LOGS".into()), ..Script::default() };
    let stage = stage(script, LogCollection::OnFailure, file.path()).await;
    assert_eq!(stage.deploy_and_fail().await, "deploy step write_image failed: disk full [FAR-0411]");
}

#[tokio::test]
async fn a_failed_cleaning_has_its_label() {
    let folder = TempDir::new().unwrap();
    let script = Script { logs: Some("LOGS".into()), ..Script::default() };
    let stage = stage(script, LogCollection::OnFailure, folder.path()).await;
    stage.manageable().await;
    stage.change(|script| script.write_fails = Some("worn out".into()));
    stage.conductor.order("n1", Order::Provide).await.unwrap();
    stage.wait_for(ProvisionState::CleanFailed).await;
    let [name] = &kept(folder.path())[..] else { panic!("not one file") };
    assert!(name.contains("_n1_cleaning_"), "{name}");
}

#[tokio::test]
async fn logs_that_a_ramdisk_posts_are_kept_when_its_inspection_fails() {
    for (error, collect, expected) in [
        (json!("no disks"), LogCollection::OnFailure, 1),
        (json!("no disks"), LogCollection::Never, 0),
        (json!(null), LogCollection::OnFailure, 0),
        (json!(null), LogCollection::Always, 1),
    ] {
        let top = TempDir::new().unwrap();
        let mut report = report(MAC);
        report["error"] = error.clone();
        let stage = stage(Script { report: Some(report), ..Script::default() }, collect, top.path()).await;
        stage.manageable().await;
        stage.conductor.order("n1", Order::Inspect).await.unwrap();
        let is_done = error.is_null();
        stage
            .wait_for(if is_done { ProvisionState::Manageable } else { ProvisionState::InspectFailed })
            .await;
        let files = kept(top.path());
        assert_eq!(files.len(), expected, "{error} {collect:?} {files:?}");
        assert!(files.iter().all(|name| name.contains("_inspection_")), "{files:?}");
    }
}
