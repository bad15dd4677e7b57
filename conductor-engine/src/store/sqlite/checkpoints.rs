//! Checkpoints of SQLite's write-ahead log. By itself SQLite has the writer copy the log into the file whose commit makes the
//! log long, and all others wait meanwhile. Here a connection of its own copies the pages beside the writers, and takes a turn
//! for those alone that were written meanwhile: a log that was copied as a whole begins anew with the next write.

use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{Connection, SqliteConnection};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Turns to write between two checkpoints.
const TURNS: u32 = 256;

/// Pages after which SQLite makes a writer copy the log all the same: 64 MiB, should no checkpoint succeed.
pub(super) const MOST_PAGES: &str = "16384";

/// Begins a checkpoint now and then.
#[derive(Debug)]
pub(super) struct Checkpoints {
    options: SqliteConnectOptions,
    turn: Arc<Mutex<()>>,
    turns: AtomicU32,
    connection: Arc<Mutex<Option<SqliteConnection>>>,
}

impl Checkpoints {
    /// Checkpoints of a file. Whoever writes to it holds the turn.
    pub(super) fn new(options: &SqliteConnectOptions, turn: Arc<Mutex<()>>) -> Self {
        let options = options.clone().synchronous(SqliteSynchronous::Normal);
        Self { options, turn, turns: AtomicU32::new(0), connection: Arc::default() }
    }

    /// Counts a turn, and begins a checkpoint if it is time for one and none is under way.
    pub(super) fn count(&self) {
        if !self.turns.fetch_add(1, Ordering::Relaxed).wrapping_add(1).is_multiple_of(TURNS) {
            return;
        }
        let Ok(place) = Arc::clone(&self.connection).try_lock_owned() else { return };
        let (options, turn) = (self.options.clone(), Arc::clone(&self.turn));
        tokio::spawn(async move {
            if let Err(error) = checkpoint(&options, &turn, place).await {
                // SQLite does the same later, and reports what hinders it to the writer then.
                tracing::debug!("a checkpoint of the database failed: {error}");
            }
        });
    }
}

/// Copies the log. A connection on which that fails is closed.
async fn checkpoint(
    options: &SqliteConnectOptions,
    turn: &Mutex<()>,
    mut place: OwnedMutexGuard<Option<SqliteConnection>>,
) -> Result<(), sqlx::Error> {
    let mut connection = match place.take() {
        Some(connection) => connection,
        None => SqliteConnection::connect_with(options).await?,
    };
    copy(&mut connection).await?;
    let held = turn.lock().await;
    copy(&mut connection).await?;
    drop(held);
    *place = Some(connection);
    Ok(())
}

/// Copies what no reader needs in the log, without a wait for anybody.
async fn copy(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(connection).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sql::statement::Statement;
    use crate::store::sql::{Database, Kept};
    use crate::store::sqlite::SqliteStore;

    #[tokio::test]
    async fn k43_the_log_is_copied_beside_the_writers_and_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap();
        let log = || folder.path().join("nodes.sqlite-wal").metadata().unwrap().len();
        let table = Statement::new("CREATE TABLE filler (content TEXT)");
        store.run(Kept::Always, table).await.unwrap();
        let mut longest = 0;
        for _ in 0..8 * TURNS {
            let row = Statement::new("INSERT INTO filler VALUES (hex(zeroblob(2000)))");
            store.run(Kept::Always, row).await.unwrap();
            longest = longest.max(log());
        }
        let of_all = u64::from(8 * TURNS) * 4096;
        assert!(longest < of_all / 2, "{longest} bytes of {of_all}");
    }
}
