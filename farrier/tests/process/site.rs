//! What outlives every conductor: a machine, its node `n1` in a database, and the folders of both.

use crate::agent::Script;
use crate::conductor::{Client, Conductor};
use crate::machine::{FakeMachine, MAC};
use farrier_conductor::model::{Activity, ProvisionState};
use farrier_engine::store::postgres::PostgresStore;
use farrier_engine::store::sqlite::SqliteStore;
use farrier_engine::store::{Record, Store};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time any test waits for anything. Machines that are slow run several of these tests at a time.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Site {
    pub machine: FakeMachine,
    database: String,
    store: Arc<dyn Store>,
    folder: tempfile::TempDir,
}

impl Site {
    pub async fn new(script: Script) -> Self {
        Self::with_database(script, None).await
    }

    /// A site whose file is elsewhere.
    pub async fn with_database(script: Script, database: Option<PathBuf>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = database.unwrap_or_else(|| folder.path().join("nodes.sqlite"));
        let store = Arc::new(SqliteStore::open(&file).await.unwrap());
        Self::over(script, folder, file.to_str().unwrap(), store)
    }

    /// A site whose database is in PostgreSQL.
    pub async fn on_postgres(script: Script, url: &str) -> Self {
        let store = Arc::new(PostgresStore::open(url).await.unwrap());
        Self::over(script, tempfile::tempdir().unwrap(), url, store)
    }

    fn over(script: Script, folder: tempfile::TempDir, database: &str, store: Arc<dyn Store>) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let machine = FakeMachine::new(&folder.path().join("machine"), script);
        Self { machine, database: database.to_owned(), store, folder }
    }

    /// File or URL of the database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Starts a conductor whose ramdisk API is at an address.
    pub fn conductor(&self, name: &str, listen: &str) -> Conductor {
        self.conductor_with(name, listen, &[])
    }

    /// Starts one with more arguments.
    pub fn conductor_with(&self, name: &str, listen: &str, arguments: &[&str]) -> Conductor {
        let own = ["--lease", "2", "--deploy-callback-timeout", "20", "--listen", listen];
        let database = ["--database", &self.database];
        Conductor::start(self.folder.path(), name, &[&own[..], &database, arguments].concat())
    }

    /// Whether nobody is in the middle of writing to the file.
    pub async fn is_free(&self) -> bool {
        self.store.expire_all("nobody").await.is_ok()
    }

    /// Enrols the machine.
    pub fn enrol(&self, conductor: &Conductor) {
        let qemu = format!("qemu_binary={}", self.machine.qemu().display());
        let create = ["node", "create", "n1", "--mac", MAC, "--driver", "qemu", "--driver-info", &qemu];
        let image = self.folder.path().join("vmlinuz");
        std::fs::write(&image, "").unwrap();
        let [kernel, ramdisk] =
            ["kernel", "ramdisk"].map(|name| format!("deploy_{name}={}", image.display()));
        let info = ["qemu_firmware=bios", "qemu_accelerator=tcg", &kernel, &ramdisk];
        conductor.order(&[&create[..], &info].concat());
    }

    /// Orders a deployment.
    pub fn deploy(&self, conductor: &Conductor) -> Client {
        let checksum = format!("sha256:{}", "a".repeat(64));
        conductor.client(&["deploy", "n1", "--image", "http://192.0.2.5/debian.raw", "--checksum", &checksum])
    }

    pub async fn record(&self) -> Record {
        self.store.by_name("n1").await.unwrap().unwrap()
    }

    /// The record once it is as wanted.
    pub async fn until(&self, wanted: impl Fn(&Record) -> bool) -> Record {
        let end = Instant::now() + PATIENCE;
        loop {
            let record = self.record().await;
            if wanted(&record) {
                return record;
            }
            assert!(Instant::now() < end, "waited for something else than {record:#?}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// The record once it is in a state, and nobody works on it.
    pub async fn ends(&self, state: ProvisionState) -> Record {
        let end = self.until(|record| {
            let activity = record.node.provision_state.activity();
            let is_over = !matches!(activity, Activity::Work | Activity::Wait);
            is_over && record.order.is_none() && record.node.reservation.is_none()
        });
        let end = end.await;
        assert_eq!(end.node.provision_state, state, "{:?}", end.node.last_error);
        end
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.machine.go_off();
    }
}
