//! Connections that read the file without a turn, for as many readers at a time as there are connections.
//!
//! A pool of sqlx asks each connection for a sign of life whenever a reader gives it back. A file needs none, and the question
//! takes as long as the statement before it: each goes to the connection's thread and back.

use crate::store::sql::statement::{Connection as _, Reader, Row as _, Statement};
use crate::store::sql::{Failure, Outcome};
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{Connection, Executor, SqliteConnection};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use uuid::Uuid;

/// Most readers at a time.
const MOST: usize = 4;

/// Where readers find rows.
#[derive(Debug, Clone)]
pub struct Readers(Arc<Connections>);

#[derive(Debug)]
struct Connections {
    options: SqliteConnectOptions,
    patience: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<SqliteConnection>>,
}

impl Readers {
    /// Readers that wait for each other for so long.
    pub(super) fn new(options: SqliteConnectOptions, patience: Duration) -> Self {
        let (permits, idle) = (Semaphore::new(MOST), Mutex::default());
        Self(Arc::new(Connections { options, patience, permits, idle }))
    }

    /// A connection of its own.
    pub(super) async fn connect(&self) -> Result<SqliteConnection, sqlx::Error> {
        SqliteConnection::connect_with(&self.0.options).await
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<SqliteConnection>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that no other reader has.
    async fn lend(&self) -> Outcome<(SemaphorePermit<'_>, SqliteConnection)> {
        let permit = timeout(self.0.patience, self.0.permits.acquire()).await;
        let Ok(Ok(permit)) = permit else { return Err(Failure::NoReader(self.0.patience.as_secs())) };
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok((permit, connection))
    }
}

/// A connection whose statement failed, or whose reader went away meanwhile, is closed.
impl Reader for Readers {
    type Row = SqliteRow;

    async fn fetch(&mut self, statement: Statement) -> Outcome<Vec<SqliteRow>> {
        let (_permit, mut connection) = self.lend().await?;
        let rows = connection.fetch_all(statement.search().query()?).await?;
        self.idle().push(connection);
        Ok(rows)
    }

    /// A row takes twenty times the memory of its identity, and an estate has very many.
    async fn uuids(&mut self, statement: Statement) -> Outcome<Vec<Uuid>> {
        let (_permit, mut connection) = self.lend().await?;
        let mut found = Vec::new();
        let note = |row: &SqliteRow| -> Outcome<()> {
            found.push(row.uuid(0)?);
            Ok(())
        };
        connection.each(statement.search(), note).await?;
        self.idle().push(connection);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readers(folder: &tempfile::TempDir, patience: Duration) -> Readers {
        let options =
            SqliteConnectOptions::new().filename(folder.path().join("file")).create_if_missing(true);
        Readers::new(options, patience)
    }

    #[tokio::test]
    async fn a_connection_is_kept_for_the_next_reader_unless_its_statement_failed() {
        let folder = tempfile::tempdir().unwrap();
        let mut readers = readers(&folder, Duration::from_secs(10));
        for (text, is_kept) in [("SELECT 1", true), ("SELECT nothing", false), ("SELECT 2", true)] {
            let read = readers.fetch(Statement::new(text)).await;
            assert_eq!((read.is_ok(), readers.idle().len()), (is_kept, usize::from(is_kept)), "{text}");
        }
    }

    #[tokio::test]
    async fn a_reader_waits_for_a_connection_until_its_patience_ends() {
        let folder = tempfile::tempdir().unwrap();
        let mut readers = readers(&folder, Duration::ZERO);
        let shared = Arc::clone(&readers.0);
        let others = shared.permits.acquire_many(MOST as u32).await.unwrap();
        let refused = readers.fetch(Statement::new("SELECT 1")).await;
        assert!(matches!(refused, Err(Failure::NoReader(0))));
        drop(others);
        assert_eq!(readers.fetch(Statement::new("SELECT 1")).await.unwrap().len(), 1);
    }
}
