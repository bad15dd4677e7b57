//! Turns to write. Records and the mailbox have a queue each, and the heads of both queues take turns: a heartbeat waits for
//! one write of a record at most, however many there are.
//!
//! SQLite lets one process write at a time. While another one does, nobody here holds the turn: the head of each queue asks
//! again after a moment, until it has waited too long.

use super::checkpoints::Checkpoints;
use crate::store::sql::statement::{Connection as _, Statement};
use crate::store::sql::{Failure, Kept, Outcome, Writer};
use crate::store::waits::Waits;
use rand::Rng;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{Connection, SqliteConnection};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// How long a writer waits, for others of this process and for other processes.
pub(super) const BUSY: Duration = Duration::from_secs(10);

/// Longest pause before the head of a queue asks again, in milliseconds.
const MOST_PAUSE_MS: u64 = 20;

/// The low byte of SQLite's result codes for a file that another process writes.
const LOCKED: u32 = 5;

/// The queues of those who write.
#[derive(Debug)]
pub(super) struct Writers {
    options: SqliteConnectOptions,
    patience: Duration,
    records: Arc<Mutex<Option<SqliteConnection>>>,
    mailbox: Arc<Mutex<Option<SqliteConnection>>>,
    turn: Arc<Mutex<()>>,
    checkpoints: Checkpoints,
    pub(super) waits: Waits,
}

/// A turn to write several statements. What is not committed when it ends was never written.
///
/// When SQLite itself rolls one back, because the disk is full, sqlx continues to believe that it is open, and would
/// refuse every later one. So the transaction is led by plain statements, and a connection on which anything went
/// wrong is not used again: closing it undoes what was not committed in any case.
pub struct Turn {
    connection: SqliteConnection,
    place: OwnedMutexGuard<Option<SqliteConnection>>,
    _turn: OwnedMutexGuard<()>,
}

impl Writers {
    /// Writers that wait for so long for other processes.
    pub(super) fn new(options: SqliteConnectOptions, patience: Duration) -> Self {
        let turn = Arc::default();
        Self {
            checkpoints: Checkpoints::new(&options, Arc::clone(&turn)),
            options,
            patience,
            records: Arc::default(),
            mailbox: Arc::default(),
            turn,
            waits: Waits::default(),
        }
    }

    /// Waits for a turn.
    pub(super) async fn turn(&self, kept: Kept) -> Outcome<Turn> {
        Ok(self.begin(kept, Statement::new("BEGIN IMMEDIATE")).await?.0)
    }

    /// Waits for a turn to write one statement, and returns the number of rows that it wrote.
    pub(super) async fn run(&self, kept: Kept, statement: Statement) -> Outcome<u64> {
        let (turn, rows) = self.begin(kept, statement).await?;
        turn.leave();
        Ok(rows)
    }

    /// Waits for a turn that begins with a statement, and returns both the turn and the number of rows that the statement wrote.
    async fn begin(&self, kept: Kept, first: Statement) -> Outcome<(Turn, u64)> {
        let queue = match kept {
            Kept::Always => &self.records,
            Kept::WhilePowered => &self.mailbox,
        };
        let start = Instant::now();
        let mut place = Arc::clone(queue).lock_owned().await;
        loop {
            let turn = Arc::clone(&self.turn).lock_owned().await;
            let mut connection = match place.take() {
                Some(connection) => connection,
                None => self.connect(kept).await?,
            };
            match connection.execute(first.clone()).await {
                Ok(rows) => {
                    self.waits.note(kept.into(), start.elapsed());
                    self.checkpoints.count();
                    return Ok((Turn { connection, place, _turn: turn }, rows));
                }
                Err(Failure::Database(error)) if is_locked(&error) && start.elapsed() < self.patience => {
                    *place = Some(connection)
                }
                Err(failure) => return Err(failure),
            }
            drop(turn);
            let pause = rand::rng().random_range(1..=MOST_PAUSE_MS);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    /// A connection that does not wait for other processes by itself.
    async fn connect(&self, kept: Kept) -> Outcome<SqliteConnection> {
        let mut connection = self.open(kept).await?;
        sqlx::query("PRAGMA busy_timeout = 0").execute(&mut connection).await?;
        Ok(connection)
    }

    /// A connection that waits for other processes.
    pub(super) async fn open(&self, kept: Kept) -> Outcome<SqliteConnection> {
        let synchronous = match kept {
            Kept::Always => SqliteSynchronous::Full,
            Kept::WhilePowered => SqliteSynchronous::Normal,
        };
        Ok(SqliteConnection::connect_with(&self.options.clone().synchronous(synchronous)).await?)
    }
}

impl Writer for Turn {
    type Connection = SqliteConnection;

    fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }

    async fn commit(self) -> Outcome<()> {
        self.end("COMMIT").await
    }

    async fn roll_back(self) -> Outcome<()> {
        self.end("ROLLBACK").await
    }
}

impl Turn {
    async fn end(mut self, statement: &'static str) -> Outcome<()> {
        sqlx::query(statement).execute(&mut self.connection).await?;
        self.leave();
        Ok(())
    }

    /// Leaves the connection to the next turn: all that was written is written.
    fn leave(mut self) {
        *self.place = Some(self.connection);
    }
}

pub(super) fn is_locked(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == LOCKED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::WriteKind;
    use crate::store::sqlite::SqliteStore;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    async fn store() -> (tempfile::TempDir, Arc<SqliteStore>) {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap();
        (folder, Arc::new(store))
    }

    /// Lets every task that can go on do so, as far as it can.
    async fn settle() {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn l04_a_heartbeat_waits_for_one_record_and_not_for_all() {
        let (_folder, store) = store().await;
        let first = store.writers.turn(Kept::Always).await.unwrap();
        let written = Arc::new(AtomicUsize::new(0));
        let records: Vec<_> = (0..20)
            .map(|_| {
                let (store, written) = (Arc::clone(&store), Arc::clone(&written));
                tokio::spawn(async move {
                    store.writers.turn(Kept::Always).await.unwrap().commit().await.unwrap();
                    written.fetch_add(1, Ordering::SeqCst);
                })
            })
            .collect();
        settle().await;
        let before_heartbeat = {
            let (store, written) = (Arc::clone(&store), Arc::clone(&written));
            tokio::spawn(async move {
                let writer = store.writers.turn(Kept::WhilePowered).await.unwrap();
                let before = written.load(Ordering::SeqCst);
                writer.commit().await.unwrap();
                before
            })
        };
        settle().await;
        first.commit().await.unwrap();
        assert!(before_heartbeat.await.unwrap() <= 2);
        for record in records {
            record.await.unwrap();
        }
        assert_eq!(store.writers.waits.of(WriteKind::Record).turns, 21);
        assert!(store.writers.waits.of(WriteKind::Record).total > Duration::ZERO);
    }

    /// Each of those behind would have waited for as long again.
    #[tokio::test]
    async fn l04_while_another_process_writes_nobody_holds_the_turn() {
        let (folder, store) = store().await;
        let file = SqliteConnectOptions::new().filename(folder.path().join("nodes.sqlite"));
        let mut other = SqliteConnection::connect_with(&file).await.unwrap();
        sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
        let of_many = {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                store.writers.turn(Kept::Always).await.unwrap().commit().await.unwrap();
                0
            })
        };
        let of_one = {
            let store = Arc::clone(&store);
            let statement = Statement::new("DELETE FROM nodes");
            tokio::spawn(async move { store.writers.run(Kept::WhilePowered, statement).await.unwrap() })
        };
        // Both have asked, and pause.
        let is_asked =
            || store.writers.records.try_lock().is_err() && store.writers.mailbox.try_lock().is_err();
        let end = Instant::now() + BUSY;
        while !(is_asked() && store.writers.turn.try_lock().is_ok()) {
            assert!(Instant::now() < end, "the turn is held while nobody can write");
            tokio::task::yield_now().await;
        }
        sqlx::query("COMMIT").execute(&mut other).await.unwrap();
        for writer in [of_many, of_one] {
            assert_eq!(writer.await.unwrap(), 0);
        }
        for kind in [WriteKind::Record, WriteKind::Mailbox] {
            assert_eq!(store.writers.waits.of(kind).turns, 1);
        }
    }
}
