//! The layout of the tables, from the first to the newest.

use crate::store::sql::statements::Dialect;
use crate::store::sql::{Database, Failure, Outcome, Trouble};
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, SqlSafeStr};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Each layout with its number and name. One that was released is never changed.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "initial", include_str!("migrations/0001_initial.sql")),
    (2, "lists", include_str!("migrations/0002_lists.sql")),
    (3, "timeline", include_str!("migrations/0003_timeline.sql")),
];

/// Pause before a migration is tried again that another process carries out.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a migration of another process is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// What brings the tables of a database to the newest layout. It takes no lock beside the transaction of each migration: a
/// lock of a session outlives its transaction where a pooler stands between.
fn migrator(dialect: Dialect) -> Migrator {
    let migrations = MIGRATIONS.iter().map(|(version, name, statements)| {
        let statements = AssertSqlSafe(dialect.layout(statements)).into_sql_str();
        Migration::new(*version, (*name).into(), MigrationType::Simple, statements, false)
    });
    let mut migrator = Migrator::with_migrations(migrations.collect());
    migrator.set_locking(false);
    migrator
}

/// Carries out the migrations that a database has not.
///
/// # Errors
///
/// [`Failure::Layout`] when its tables are of another version.
pub async fn run(dialect: Dialect, connection: &mut impl Migrate) -> Outcome<()> {
    let migrator = migrator(dialect);
    // `run` does the same, and its future cannot be spawned.
    match migrator.run_direct(None, connection, false).await {
        Ok(()) => Ok(()),
        Err(MigrateError::VersionMismatch(_) | MigrateError::VersionMissing(_)) => Err(Failure::Layout),
        Err(error) => Err(Failure::Database(error.into())),
    }
}

/// Tries to make the tables until that succeeds, or fails for another reason than another process that does the same: what
/// that has made is found the next time.
pub async fn until_made<D: Database>(database: &D) -> Outcome<()> {
    let start = Instant::now();
    loop {
        match database.make_tables().await {
            Err(failure) if is_of_another::<D>(&failure) && start.elapsed() < PATIENCE => {
                sleep(PAUSE).await;
            }
            made => return made,
        }
    }
}

/// Whether a migration failed since another process carries it out.
fn is_of_another<D: Database>(failure: &Failure) -> bool {
    let Failure::Database(error) = failure else { return false };
    let error = match error {
        sqlx::Error::Migrate(error) => match &**error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error,
            _ => return false,
        },
        error => error,
    };
    // PostgreSQL refuses a table that is being made as a second entry of its list of tables.
    let is_listed = error.as_database_error().is_some_and(|error| error.is_unique_violation());
    // A column that is there already: PostgreSQL has a code for that, SQLite has words alone.
    let has_column = error.as_database_error().is_some_and(|error| {
        error.code().is_some_and(|code| code == "42701")
            || error.message().starts_with("duplicate column name")
    });
    is_listed || has_column || matches!(D::trouble(error), Trouble::Locked | Trouble::Exists)
}
