//! A conductor whose disk is full.

use crate::agent::Script;
use crate::site::Site;
use farrier_conductor::model::ProvisionState;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A file system of two MiB.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        mount(Some("tmpfs"), folder.path(), Some("tmpfs"), MsFlags::empty(), Some("size=2m")).unwrap();
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    /// Leaves no room.
    fn fill(&self) {
        let mut file = File::create(self.filler()).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        umount2(self.path(), MntFlags::MNT_DETACH).ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn loop_a_full_disk_is_reported_and_delays_a_deployment_that_is_under_way() {
    let disk = SmallDisk::new();
    let site = Site::with_database(Script::default(), Some(disk.path().join("nodes.sqlite"))).await;
    let conductor = site.conductor("c1", "127.0.0.1:0");
    site.enrol(&conductor);

    let before = site.record().await;
    disk.fill();
    let (is_taken, said) = site.deploy(&conductor).ends();
    assert!(!is_taken && said.contains("has no room left on its disk; make some"), "{said}");
    let now = site.record().await;
    assert_eq!((now.node.provision_state, now.order), (before.node.provision_state, None));
    conductor.order(&["node", "show", "n1"]);
    disk.make_room();

    // There is room again, until its machine is being started.
    site.machine.stick();
    let client = site.deploy(&conductor);
    site.machine.is_on().await;
    assert!(!conductor.log().contains("work on a node pauses"));
    disk.fill();
    site.machine.unstick();
    conductor.says("work on a node pauses: node store").await;
    assert_eq!(site.record().await.node.provision_state, ProvisionState::Deploying);
    disk.make_room();
    assert_eq!(site.ends(ProvisionState::Active).await.node.last_error, None);
    let (is_success, said) = client.ends();
    assert!(is_success, "{said}");
}
