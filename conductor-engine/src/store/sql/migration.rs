//! The layout of the tables, from the first to the newest.
//!
//! Conductors of two versions may use one database, while a site upgrades one after the other. So each layout says which is
//! the oldest one whose programs may still use the database: a table, an index, or a column that may be empty changes nothing
//! for them. The database keeps what its layouts say, since a program does not know later ones.

use crate::store::sql::statement::{Connection, Reader, Row, Statement};
use crate::store::sql::statements::Dialect;
use crate::store::sql::{Database, Failure, Outcome, Trouble};
use sqlx::migrate::{AppliedMigration, Migrate, MigrateError, Migration, MigrationType};
use sqlx::{AssertSqlSafe, SqlSafeStr};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// A layout of the tables. One that was released is never changed.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Its number.
    pub version: i64,
    /// Its name.
    pub name: &'static str,
    /// The oldest layout whose programs may use a database with this one.
    pub compatible_from: i64,
    /// The statements that make it of the one before.
    pub statements: &'static str,
}

/// All layouts that this program knows.
pub const LAYOUTS: &[Layout] = &[
    Layout {
        version: 1,
        name: "initial",
        compatible_from: 1,
        statements: include_str!("migrations/0001_initial.sql"),
    },
    Layout {
        version: 2,
        name: "lists",
        compatible_from: 1,
        statements: include_str!("migrations/0002_lists.sql"),
    },
    Layout {
        version: 3,
        name: "timeline",
        // Programs of the layouts before refuse every later layout.
        compatible_from: 3,
        statements: include_str!("migrations/0003_timeline.sql"),
    },
];

/// The layout of a database, and what was done to bring it there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrated {
    /// Number of the newest layout that the database has, which may be later than those of this program.
    pub layout: i64,
    /// The oldest layout whose programs may use it.
    pub compatible_from: i64,
    /// Number and name of each layout that it did not have before.
    pub applied: Vec<(i64, &'static str)>,
}

/// Where sqlx keeps which layouts a database has.
const APPLIED: &str = "_sqlx_migrations";

/// It is no layout of its own: programs that do not know it refuse a database with a layout that they do not know.
const CREATE_COMPATIBILITY: &str = "CREATE TABLE IF NOT EXISTS layout_compatibility \
    (layout BIGINT PRIMARY KEY NOT NULL, compatible_from BIGINT NOT NULL)";
const COMPATIBILITY: &str = "SELECT layout, compatible_from FROM layout_compatibility";
const NEWEST: &str = "SELECT COALESCE(MAX(version), 0) FROM _sqlx_migrations";
const INSERT_COMPATIBILITY: &str = "INSERT INTO layout_compatibility (layout, compatible_from) VALUES ($1, $2) \
    ON CONFLICT (layout) DO NOTHING";

/// Pause before a migration is tried again that another process carries out.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a migration of another process is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

impl Layout {
    fn migration(&self, dialect: Dialect) -> Migration {
        let statements = AssertSqlSafe(dialect.layout(self.statements)).into_sql_str();
        Migration::new(self.version, self.name.into(), MigrationType::Simple, statements, false)
    }
}

/// Carries out the migrations that a database has not. It takes no lock beside the transaction of each migration: a
/// lock of a session outlives its transaction where a pooler stands between.
///
/// # Errors
///
/// [`Failure::Layout`] when its tables are of another program, and [`Failure::LaterLayout`] when this program may not use them.
pub async fn run(
    dialect: Dialect,
    connection: &mut (impl Migrate + Connection),
    layouts: &[Layout],
) -> Outcome<Migrated> {
    connection.ensure_migrations_table(APPLIED).await.map_err(failed)?;
    let before = connection.list_applied_migrations(APPLIED).await.map_err(failed)?;
    let before: BTreeMap<_, _> = before.into_iter().map(|applied| (applied.version, applied)).collect();
    let is_other = |layout: &Layout| {
        let is_other = |known: &AppliedMigration| known.checksum != layout.migration(dialect).checksum;
        before.get(&layout.version).is_some_and(is_other)
    };
    if layouts.iter().any(is_other) {
        return Err(Failure::Layout);
    }
    connection.execute(Statement::new(CREATE_COMPATIBILITY)).await?;
    let rows = connection.fetch(Statement::new(COMPATIBILITY)).await?;
    let pairs = rows.iter().map(|row| Ok((row.number(0)?, row.number(1)?)));
    let mut compatible_from = pairs.collect::<Outcome<BTreeMap<_, _>>>()?;
    check_later(layouts, before.keys().copied(), &compatible_from)?;
    let mut applied = Vec::new();
    for Layout { version, compatible_from: oldest, .. } in layouts {
        if compatible_from.insert(*version, *oldest).is_none() {
            let compatibility = Statement::new(INSERT_COMPATIBILITY).bind(*version).bind(*oldest);
            connection.execute(compatibility).await?;
        }
    }
    for layout in layouts.iter().filter(|layout| !before.contains_key(&layout.version)) {
        connection.apply(APPLIED, &layout.migration(dialect)).await.map_err(failed)?;
        applied.push((layout.version, layout.name));
    }
    Ok(Migrated {
        layout: compatible_from.keys().copied().max().unwrap_or_default(),
        compatible_from: compatible_from.values().copied().max().unwrap_or_default(),
        applied,
    })
}

/// Refuses layouts of later programs with which programs of these may not use the database.
fn check_later(
    layouts: &[Layout],
    applied: impl Iterator<Item = i64>,
    compatible_from: &BTreeMap<i64, i64>,
) -> Outcome<()> {
    let own = layouts.iter().map(|layout| layout.version).max().unwrap_or_default();
    for found in applied.filter(|version| *version > own) {
        // One that says nothing is for its own programs.
        let needed = compatible_from.get(&found).copied().unwrap_or(found);
        if needed > own {
            return Err(Failure::LaterLayout { found, needed, own });
        }
    }
    Ok(())
}

/// Number of the newest layout that a database has.
///
/// # Errors
///
/// It has no tables yet.
pub async fn layout_of(reader: &mut impl Reader) -> Outcome<i64> {
    let row = reader.fetch_one(Statement::new(NEWEST)).await?;
    row.map_or(Ok(0), |row| row.number(0))
}

fn failed(error: MigrateError) -> Failure {
    Failure::Database(error.into())
}

/// Tries to make the tables until that succeeds, or fails for another reason than another process that does the same: what
/// that has made is found the next time.
pub async fn until_made<D: Database>(database: &D, layouts: &'static [Layout]) -> Outcome<Migrated> {
    let start = Instant::now();
    loop {
        match database.make_tables(layouts).await {
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
    is_listed || matches!(D::trouble(error), Trouble::Locked | Trouble::Exists)
}

/// The layouts of a later program, whose own one does not disturb programs of this one, or does.
#[cfg(test)]
pub fn later(is_compatible: bool) -> &'static [Layout] {
    let own = LAYOUTS.last().map_or(0, |layout| layout.version);
    let statements = "CREATE TABLE later (node TEXT PRIMARY KEY NOT NULL REFERENCES nodes (uuid) ON DELETE CASCADE);\n\
        ALTER TABLE nodes ADD COLUMN later TEXT;\nCREATE INDEX nodes_by_later ON nodes (later);";
    let compatible_from = if is_compatible { own } else { own + 1 };
    let later = Layout { version: own + 1, name: "later", compatible_from, statements };
    [LAYOUTS, &[later]].concat().leak()
}

#[cfg(feature = "sqlite")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::conformance;
    use crate::store::sqlite::SqliteStore;
    use std::path::Path;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A database as a later program leaves it.
    async fn migrated(file: &Path, is_compatible: bool) -> Migrated {
        until_made(&SqliteStore::connect(file).unwrap(), later(is_compatible)).await.unwrap()
    }

    #[tokio::test]
    async fn a_program_does_what_every_store_must_do_beside_a_later_one() {
        let folder = tempfile::tempdir().unwrap();
        let number = AtomicU32::new(0);
        let make = async || {
            let file = folder.path().join(format!("{}.sqlite", number.fetch_add(1, Ordering::Relaxed)));
            let newest = later(true).last().unwrap();
            let after = migrated(&file, true).await;
            assert_eq!((after.layout, after.compatible_from), (newest.version, newest.compatible_from));
            SqliteStore::open(&file).await.unwrap()
        };
        conformance(make).await.unwrap();
    }

    #[tokio::test]
    async fn layouts_that_an_earlier_program_has_are_kept_when_it_starts_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nodes.sqlite");
        let names = LAYOUTS.iter().map(|layout| (layout.version, layout.name)).collect::<Vec<_>>();
        let before = SqliteStore::connect(&file).unwrap();
        assert_eq!(until_made(&before, LAYOUTS).await.unwrap().applied, names);
        let after = migrated(&file, true).await;
        assert_eq!(after.applied, [(after.layout, "later")]);
        assert_eq!(until_made(&before, LAYOUTS).await.unwrap(), Migrated { applied: Vec::new(), ..after });
    }

    #[tokio::test]
    async fn a_program_leaves_tables_alone_that_it_would_disturb() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nodes.sqlite");
        let Migrated { layout, .. } = migrated(&file, false).await;
        let before = std::fs::read(&file).unwrap();
        let error = SqliteStore::open(&file).await.unwrap_err().to_string();
        let needs = format!("only versions with layout {layout} or later can use them; this one has layout");
        assert!(error.contains(&needs), "{error}");
        assert_eq!(std::fs::read(&file).unwrap().len(), before.len());
    }
}
