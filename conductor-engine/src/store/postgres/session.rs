//! Connections to a server, directly or by a pooler that gives each transaction another connection of its own (PgBouncer with
//! `pool_mode = transaction`).
//!
//! Behind such a pooler nothing outlives a transaction: no prepared statement, no setting, and no LISTEN. So each statement is
//! part of a transaction there, which sets the timeouts, and no statement has a name. That costs three more exchanges with the
//! server for each read, and is done only where a pooler is found.

use crate::store::postgres::{SERVER_TIMEOUTS, in_time};
use crate::store::sql::migration::{self, Layout, Migrated};
use crate::store::sql::statement::{Connection, Reader, Statement};
use crate::store::sql::statements::Dialect;
use crate::store::sql::{Failure, Outcome, Writer};
use futures_util::TryStreamExt;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgRow};
use sqlx::{AssertSqlSafe, Connection as _, Executor, Postgres, Row, SqlSafeStr, SqlStr, Transaction};

/// A setting of each connection that is one of the server. No role or database has it, as it may have the timeouts.
const OWN: (&str, &str) = ("farrier.connection", "own");
const ASK_OWN: &str = "SELECT current_setting('farrier.connection', true)";

/// What PgBouncer answers to a setting that it does not know.
const UNKNOWN_SETTING: &str = "08P01";

/// How the server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Each connection is one of the server.
    Direct,
    /// Each transaction may have another connection of the server.
    Pooler,
}

impl Route {
    /// Finds out how the server of a pool is reached, and sets the options of the pool to it: a pooler refuses the settings of a
    /// connection, or forgets them.
    pub async fn find(pool: &PgPool, options: &PgConnectOptions) -> Outcome<Self> {
        pool.set_connect_options(Self::Direct.options(options));
        let route = match in_time(pool.fetch_one(sqlx::raw_sql(ASK_OWN))).await {
            Ok(row) if row.try_get::<Option<&str>, _>(0)? == Some(OWN.1) => Self::Direct,
            Ok(_) => Self::Pooler,
            Err(Failure::Database(error)) if is_unknown_setting(&error) => Self::Pooler,
            Err(failure) => return Err(failure),
        };
        pool.set_connect_options(route.options(options));
        Ok(route)
    }

    /// The options of each connection.
    pub fn options(self, options: &PgConnectOptions) -> PgConnectOptions {
        let options = options.clone().application_name("farrier");
        match self {
            Self::Direct => options.options(SERVER_TIMEOUTS).options([OWN]),
            // No column is a float, and PgBouncer does not know the setting.
            Self::Pooler => options.extra_float_digits(None),
        }
    }

    /// Begins a transaction of a kind.
    pub async fn begin(self, pool: &PgPool, kind: &'static str) -> Outcome<Session> {
        let transaction = in_time(pool.begin_with(self.begin_statement(kind))).await?;
        Ok(Session { transaction, route: self })
    }

    /// Carries out migrations in one transaction, so that two processes that begin at once do not see half of each other's.
    pub async fn migrate(self, pool: &PgPool, layouts: &[Layout]) -> Outcome<Migrated> {
        // The connection is closed afterwards, since it knows statements that the server has no more.
        let mut connection = in_time(pool.acquire()).await?.detach();
        let mut transaction = in_time(connection.begin_with(self.begin_statement("BEGIN"))).await?;
        self.forget_statements(&mut transaction).await?;
        let migrated = migration::run(Dialect::Postgres, &mut *transaction, layouts).await?;
        self.forget_statements(&mut transaction).await?;
        in_time(transaction.commit()).await?;
        in_time(connection.close()).await?;
        Ok(migrated)
    }

    /// Removes the statements that sqlx has named for its migrations. A pooler leaves them to the next transaction, also those of
    /// a migration that has failed.
    async fn forget_statements(self, connection: &mut PgConnection) -> Outcome<()> {
        if self == Self::Pooler {
            in_time(Executor::execute(&mut *connection, "DEALLOCATE ALL")).await?;
        }
        Ok(())
    }

    fn begin_statement(self, kind: &'static str) -> SqlStr {
        match self {
            Self::Direct => kind.into_sql_str(),
            Self::Pooler => {
                let timeouts = SERVER_TIMEOUTS.map(|(name, value)| format!("; SET LOCAL {name} = '{value}'"));
                AssertSqlSafe(format!("{kind}{}", timeouts.concat())).into_sql_str()
            }
        }
    }
}

fn is_unknown_setting(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.code().as_deref() == Some(UNKNOWN_SETTING))
}

/// Finds rows without a turn.
#[derive(Debug, Clone)]
pub struct Readers {
    pub pool: PgPool,
    pub route: Route,
}

impl Reader for Readers {
    type Row = PgRow;

    async fn fetch(&mut self, statement: Statement) -> Outcome<Vec<PgRow>> {
        let statement = statement.search();
        match self.route {
            Route::Direct => in_time(self.pool.fetch_all(statement.query()?)).await,
            Route::Pooler => {
                let mut session = self.route.begin(&self.pool, "BEGIN READ ONLY").await?;
                let rows = session.fetch(statement).await?;
                session.commit().await?;
                Ok(rows)
            }
        }
    }
}

/// A transaction. What is not committed when it is dropped was never written.
pub struct Session {
    transaction: Transaction<'static, Postgres>,
    route: Route,
}

impl Session {
    /// The statement as it may run here.
    fn statement(&self, statement: Statement) -> Statement {
        match self.route {
            Route::Direct => statement,
            Route::Pooler => statement.once(),
        }
    }

    /// Runs statements without parameters.
    pub async fn run(&mut self, statements: &'static str) -> Outcome<()> {
        in_time(Executor::execute(&mut *self.transaction, sqlx::raw_sql(statements))).await?;
        Ok(())
    }
}

impl Reader for Session {
    type Row = PgRow;

    async fn fetch(&mut self, statement: Statement) -> Outcome<Vec<PgRow>> {
        let statement = self.statement(statement);
        Reader::fetch(&mut *self.transaction, statement).await
    }
}

impl Connection for Session {
    async fn each<E: From<Failure> + Send>(
        &mut self,
        statement: Statement,
        found: impl FnMut(&PgRow) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        let statement = self.statement(statement);
        self.transaction.each(statement, found).await
    }

    async fn execute(&mut self, statement: Statement) -> Outcome<u64> {
        let statement = self.statement(statement);
        Connection::execute(&mut *self.transaction, statement).await
    }
}

impl Writer for Session {
    type Connection = Self;

    fn connection(&mut self) -> &mut Self {
        self
    }

    async fn commit(self) -> Outcome<()> {
        in_time(self.transaction.commit()).await
    }

    async fn roll_back(self) -> Outcome<()> {
        in_time(self.transaction.rollback()).await
    }
}

impl Reader for PgConnection {
    type Row = PgRow;

    async fn fetch(&mut self, statement: Statement) -> Outcome<Vec<PgRow>> {
        in_time(self.fetch_all(statement.query()?)).await
    }
}

impl Connection for PgConnection {
    async fn each<E: From<Failure> + Send>(
        &mut self,
        statement: Statement,
        mut found: impl FnMut(&PgRow) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        let mut rows = Executor::fetch(self, statement.query().map_err(Failure::from)?);
        while let Some(row) = in_time(rows.try_next()).await? {
            found(&row)?;
        }
        Ok(())
    }

    async fn execute(&mut self, statement: Statement) -> Outcome<u64> {
        Ok(in_time(Executor::execute(self, statement.query()?)).await?.rows_affected())
    }
}
