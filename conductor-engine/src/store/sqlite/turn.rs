//! Turns to write. Records and the mailbox have a queue each, and the heads of both queues take turns: a heartbeat waits for
//! one write of a record at most, however many there are.
//!
//! SQLite lets one process write at a time. While another one does, nobody here holds the turn: the head of each queue asks
//! again after a moment, until it has waited too long.

use super::{Outcome, StoreError};
use crate::store::waits::{Waits, WriteKind};
use rand::Rng;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{Connection, SqliteConnection};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, MutexGuard};

/// How long a writer waits, for others of this process and for other processes.
pub(super) const BUSY: Duration = Duration::from_secs(10);

/// Longest pause before the head of a queue asks again, in milliseconds.
const MOST_PAUSE_MS: u64 = 20;

/// The low byte of SQLite's result codes for a file that another process writes.
const LOCKED: u32 = 5;

/// What is written, and so how well it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// Through a power cut.
    Always,
    /// Until a power cut.
    WhilePowered,
}

/// The queues of those who write.
#[derive(Debug)]
pub(super) struct Writers {
    options: SqliteConnectOptions,
    records: Mutex<Option<SqliteConnection>>,
    mailbox: Mutex<Option<SqliteConnection>>,
    turn: Mutex<()>,
    pub(super) waits: Waits,
}

/// A turn to write several statements. What is not committed when it ends was never written.
///
/// When SQLite itself rolls one back, because the disk is full, sqlx goes on to believe that it is open, and would
/// refuse every later one. So the transaction is led by plain statements, and a connection on which anything went
/// wrong is not used again: closing it undoes what was not committed in any case.
pub(super) struct Writer<'a> {
    pub(super) connection: SqliteConnection,
    place: MutexGuard<'a, Option<SqliteConnection>>,
    _turn: MutexGuard<'a, ()>,
}

impl Writers {
    pub(super) fn new(options: SqliteConnectOptions) -> Self {
        Self {
            options,
            records: Mutex::default(),
            mailbox: Mutex::default(),
            turn: Mutex::default(),
            waits: Waits::default(),
        }
    }

    /// Waits for a turn.
    pub(super) async fn turn(&self, kept: Kept) -> Outcome<Writer<'_>> {
        let (queue, kind) = match kept {
            Kept::Always => (&self.records, WriteKind::Record),
            Kept::WhilePowered => (&self.mailbox, WriteKind::Mailbox),
        };
        let start = Instant::now();
        let mut place = queue.lock().await;
        loop {
            let turn = self.turn.lock().await;
            let mut connection = match place.take() {
                Some(connection) => connection,
                None => self.connect(kept).await?,
            };
            match sqlx::query("BEGIN IMMEDIATE").execute(&mut connection).await {
                Ok(_) => {
                    self.waits.note(kind, start.elapsed());
                    return Ok(Writer { connection, place, _turn: turn });
                }
                Err(error) if !is_locked(&error) => return Err(error.into()),
                Err(_) => *place = Some(connection),
            }
            drop(turn);
            if start.elapsed() >= BUSY {
                return Err(busy(&self.options).into());
            }
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

impl Writer<'_> {
    pub(super) async fn commit(self) -> Outcome<()> {
        self.end("COMMIT").await
    }

    pub(super) async fn roll_back(self) -> Outcome<()> {
        self.end("ROLLBACK").await
    }

    async fn end(mut self, statement: &'static str) -> Outcome<()> {
        sqlx::query(statement).execute(&mut self.connection).await?;
        // All that was written is written: the connection is good for the next turn.
        *self.place = Some(self.connection);
        Ok(())
    }
}

fn is_locked(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == LOCKED)
}

fn busy(options: &SqliteConnectOptions) -> StoreError {
    StoreError::Failed {
        location: options.get_filename().display().to_string(),
        reason: format!("another process has been writing for {} s", BUSY.as_secs()),
    }
}
