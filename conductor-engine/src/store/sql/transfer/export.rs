//! Writes an export.

use super::catalogue::{Table, tables};
use super::{FORMAT, Footer, Header, TableHeader, TransferError, VERSION, of_table};
use crate::store::sql::migration::layout_of;
use crate::store::sql::statement::{Connection, Statement};
use crate::store::sql::{Database, Failure};
use ring::digest::{Context, SHA256};
use serde::Serialize;
use std::io::{self, Write};

/// A file under way.
struct Lines<'a> {
    to: &'a mut (dyn Write + Send),
    digest: Context,
    line: Vec<u8>,
}

impl Lines<'_> {
    /// Adds a line.
    fn add(&mut self, content: &impl Serialize) -> Result<(), TransferError> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, content).map_err(io::Error::from)?;
        self.line.push(b'\n');
        self.digest.update(&self.line);
        Ok(self.to.write_all(&self.line)?)
    }
}

/// What ends the reading of a table.
enum Ended {
    Failed(Failure),
    Unwritten(TransferError),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Writes all records that a connection sees.
pub async fn export<D: Database>(
    database: &D,
    connection: &mut impl Connection,
    to: &mut (dyn Write + Send),
) -> Result<u64, TransferError> {
    let told = |failure| database.told(failure);
    let layout = layout_of(connection).await.map_err(told)?;
    let mut lines = Lines { to, digest: Context::new(&SHA256), line: Vec::new() };
    let farrier = env!("CARGO_PKG_VERSION").to_owned();
    lines.add(&Header { format: FORMAT.to_owned(), version: VERSION, layout, farrier })?;
    let mut rows = 0;
    for table in tables::<D>(connection).await.map_err(told)? {
        let columns = table.columns.iter().map(|column| column.name.clone()).collect();
        lines.add(&TableHeader { table: table.name.clone(), columns })?;
        rows += rows_of(connection, &table, &mut lines).await.map_err(|ended| match ended {
            Ended::Failed(failure) => of_table(database, &table.name, failure),
            Ended::Unwritten(error) => error,
        })?;
    }
    let sha256 = hex::encode(lines.digest.clone().finish());
    lines.add(&Footer { rows, sha256 })?;
    lines.to.flush()?;
    Ok(rows)
}

/// Writes the rows of a table in the order of its key, and returns their number.
async fn rows_of<C: Connection>(
    connection: &mut C,
    table: &Table,
    lines: &mut Lines<'_>,
) -> Result<u64, Ended> {
    let names: Vec<_> = table.columns.iter().map(|column| &*column.name).collect();
    let (names, key) = (names.join(", "), table.key.join(", "));
    let selected = format!("SELECT {names} FROM {} ORDER BY {key}", table.name);
    let mut rows = 0;
    let each = |row: &C::Row| {
        let values = table.columns.iter().enumerate().map(|(place, column)| column.value(row, place));
        let values = values.collect::<Result<Vec<_>, Failure>>()?;
        rows += 1;
        lines.add(&values).map_err(Ended::Unwritten)
    };
    connection.each(Statement::composed((selected, Vec::new())).once(), each).await?;
    Ok(rows)
}
