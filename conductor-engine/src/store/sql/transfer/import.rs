//! Reads an export.

use super::catalogue::{Table, TableColumn, tables};
use super::{FORMAT, Footer, Header, TableHeader, TransferError, VERSION, of_table};
use crate::store::columns::Column;
use crate::store::sql::migration::{LAYOUTS, Layout, until_made};
use crate::store::sql::statement::{Connection, Reader, Row, Statement};
use crate::store::sql::{Database, Failure, Kept, Writer};
use ring::digest::{Context, SHA256};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::BufRead;

/// Most rows that one statement writes, and most bytes of them.
const ROWS: usize = 100;
const BYTES: usize = 4 << 20;

/// A line that follows a header.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Row(Vec<Value>),
    Table(TableHeader),
    End(Footer),
}

/// A file under way.
struct Lines<'a> {
    from: &'a mut (dyn BufRead + Send),
    digest: Context,
    text: Vec<u8>,
    number: u64,
}

impl Lines<'_> {
    /// The next line.
    fn read<T: DeserializeOwned>(&mut self) -> Result<T, TransferError> {
        self.digest.update(&self.text);
        self.text.clear();
        self.number += 1;
        if self.from.read_until(b'\n', &mut self.text)? == 0 {
            return Err(self.damaged("the file ends before its last line"));
        }
        serde_json::from_slice(&self.text).map_err(|error| self.damaged(error))
    }

    /// Whether nothing follows the last line.
    fn is_end(&mut self) -> Result<bool, TransferError> {
        Ok(self.from.fill_buf()?.is_empty())
    }

    /// The digest of all lines before this one.
    fn digest(&self) -> String {
        hex::encode(self.digest.clone().finish())
    }

    fn damaged(&self, reason: impl ToString) -> TransferError {
        TransferError::Damaged { line: self.number, reason: reason.to_string() }
    }
}

/// Rows of a table that one statement writes.
struct Batch {
    table: Table,
    columns: Vec<TableColumn>,
    values: Vec<Column>,
    rows: usize,
    bytes: usize,
}

impl Batch {
    /// For the rows that follow the header of a table.
    fn of(tables: &[Table], header: &TableHeader) -> Result<Self, String> {
        let missing = || format!("this farrier has no table {:?}", header.table);
        let table = tables.iter().find(|table| table.name == header.table).ok_or_else(missing)?;
        let column = |name: &String| {
            let found = table.columns.iter().find(|column| column.name == *name);
            found.cloned().ok_or_else(|| format!("table {} has no column {name:?} here", table.name))
        };
        let columns = header.columns.iter().map(column).collect::<Result<_, _>>()?;
        Ok(Self { table: table.clone(), columns, values: Vec::new(), rows: 0, bytes: 0 })
    }

    fn add(&mut self, row: Vec<Value>, bytes: usize) -> Result<(), String> {
        if row.len() != self.columns.len() {
            return Err(format!("a row of table {} has {} columns", self.table.name, self.columns.len()));
        }
        for (column, value) in self.columns.iter().zip(row) {
            let wrong = || format!("column {} has a value of another type", column.name);
            self.values.push(column.parameter(value).ok_or_else(wrong)?);
        }
        self.rows += 1;
        self.bytes += bytes;
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.rows == ROWS || self.bytes >= BYTES
    }

    /// Writes the rows.
    async fn write(&mut self, connection: &mut impl Connection) -> Result<(), Failure> {
        if self.rows == 0 {
            return Ok(());
        }
        let width = self.columns.len();
        let names: Vec<_> = self.columns.iter().map(|column| &*column.name).collect();
        let row = |row: usize| {
            let parameters = (1..=width).map(|column| format!("${}", row * width + column));
            format!("({})", parameters.collect::<Vec<_>>().join(", "))
        };
        let rows = (0..self.rows).map(row).collect::<Vec<_>>().join(", ");
        let text = format!("INSERT INTO {} ({}) VALUES {rows}", self.table.name, names.join(", "));
        let statement = Statement::composed((text, std::mem::take(&mut self.values)));
        let is_usual = self.rows == ROWS;
        (self.rows, self.bytes) = (0, 0);
        connection.execute(if is_usual { statement } else { statement.once() }).await?;
        Ok(())
    }
}

/// Writes the records of a file into a database that has none, in one transaction.
pub async fn import<D: Database>(
    database: &D,
    from: &mut (dyn BufRead + Send),
) -> Result<u64, TransferError> {
    let mut lines = Lines { from, digest: Context::new(&SHA256), text: Vec::new(), number: 0 };
    let layouts = layouts_of(&mut lines)?;
    let told = |failure| database.told(failure);
    until_made(database, layouts).await.map_err(told)?;
    let mut writer = database.writer(Kept::Always).await.map_err(told)?;
    let tables = tables::<D>(writer.connection()).await.map_err(told)?;
    check_empty(database, writer.connection(), &tables).await?;
    let rows = rows_of(database, writer.connection(), &tables, &mut lines).await?;
    writer.commit().await.map_err(told)?;
    Ok(rows)
}

/// The layouts up to that of the file: what later ones do to its records is done afterwards.
fn layouts_of(lines: &mut Lines<'_>) -> Result<&'static [Layout], TransferError> {
    let header: Header = lines.read()?;
    if (header.format.as_str(), header.version) != (FORMAT, VERSION) {
        let reason = format!("it is version {} of the format {:?}", header.version, header.format);
        return Err(lines.damaged(format!("{reason}, and not version {VERSION} of {FORMAT:?}")));
    }
    let known = LAYOUTS.iter().position(|layout| layout.version == header.layout);
    let own = LAYOUTS.last().map_or(0, |layout| layout.version);
    let later = TransferError::LaterLayout { found: header.layout, own };
    known.map(|place| &LAYOUTS[..=place]).ok_or(later)
}

/// Refuses a database that has records, or a conductor.
async fn check_empty<D: Database>(
    database: &D,
    reader: &mut impl Reader,
    tables: &[Table],
) -> Result<(), TransferError> {
    let conductor = Statement::new("SELECT name FROM conductors ORDER BY name LIMIT 1");
    let conductor = reader.fetch_one(conductor).await.map_err(|failure| database.told(failure))?;
    if let Some(row) = conductor {
        let conductor = row.text(0).map_err(|failure| database.told(failure))?.to_owned();
        return Err(TransferError::InUse { location: database.location(), conductor });
    }
    for Table { name, .. } in tables {
        let any = Statement::composed((format!("SELECT 1 FROM {name} LIMIT 1"), Vec::new())).once();
        let any = reader.fetch_one(any).await.map_err(|failure| of_table(database, name, failure))?;
        if any.is_some() {
            return Err(TransferError::NotEmpty { location: database.location(), table: name.clone() });
        }
    }
    Ok(())
}

/// Writes the rows of all tables, and returns their number once the last line says the same.
async fn rows_of<D: Database>(
    database: &D,
    connection: &mut impl Connection,
    tables: &[Table],
    lines: &mut Lines<'_>,
) -> Result<u64, TransferError> {
    let mut batch: Option<Batch> = None;
    let mut rows = 0;
    loop {
        let line = lines.read::<Line>()?;
        let is_full = batch.as_ref().is_some_and(Batch::is_full);
        if let Some(batch) = batch.as_mut().filter(|_| is_full || !matches!(line, Line::Row(_))) {
            let name = batch.table.name.clone();
            batch.write(connection).await.map_err(|failure| of_table(database, &name, failure))?;
        }
        match (line, &mut batch) {
            (Line::Row(row), Some(batch)) => {
                batch.add(row, lines.text.len()).map_err(|reason| lines.damaged(reason))?;
                rows += 1;
            }
            (Line::Row(_), None) => return Err(lines.damaged("a row comes before its table")),
            (Line::Table(header), _) => {
                batch = Some(Batch::of(tables, &header).map_err(|reason| lines.damaged(reason))?);
            }
            (Line::End(footer), _) => {
                if footer != (Footer { rows, sha256: lines.digest() }) {
                    return Err(lines.damaged("the lines before are not those that were exported"));
                }
                if !lines.is_end()? {
                    return Err(lines.damaged("lines follow the last one"));
                }
                return Ok(rows);
            }
        }
    }
}
