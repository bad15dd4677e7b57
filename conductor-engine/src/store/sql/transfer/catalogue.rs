//! The tables of a database and their columns, as the database lists them.

use crate::store::columns::Column;
use crate::store::sql::statement::{Reader, Row, Statement};
use crate::store::sql::{Database, Failure, Outcome};
use serde_json::Value;

/// Tables whose rows are of the database, or of the conductors that run over it.
const NOT_RECORDS: [&str; 3] = ["_sqlx_migrations", "layout_compatibility", "conductors"];

/// The table to which the others refer.
const FIRST: &str = "nodes";

/// A table of records.
#[derive(Debug, Clone)]
pub struct Table {
    pub name: String,
    pub columns: Vec<TableColumn>,
    /// The names of its key's columns, in their order.
    pub key: Vec<String>,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub struct TableColumn {
    pub name: String,
    kind: ColumnKind,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnKind {
    Text,
    Number,
    Flag,
}

impl ColumnKind {
    /// The kind of a type of SQLite or PostgreSQL.
    fn of_type(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "text" => Some(Self::Text),
            "bigint" => Some(Self::Number),
            "boolean" => Some(Self::Flag),
            _ => None,
        }
    }
}

impl TableColumn {
    /// The value of the column in a row that was selected with all columns of the table.
    pub fn value(&self, row: &impl Row, place: usize) -> Outcome<Value> {
        Ok(match self.kind {
            ColumnKind::Text => row.optional_text(place)?.into(),
            ColumnKind::Number => row.optional_number(place)?.into(),
            ColumnKind::Flag => row.flag(place)?.into(),
        })
    }

    /// The same as a parameter; nothing where a value is of another kind.
    pub fn parameter(&self, value: Value) -> Option<Column> {
        Some(match (self.kind, value) {
            (ColumnKind::Text, Value::String(text)) => text.into(),
            (ColumnKind::Text, Value::Null) => None::<String>.into(),
            (ColumnKind::Number, Value::Null) => None::<i64>.into(),
            (ColumnKind::Number, Value::Number(number)) => number.as_i64()?.into(),
            (ColumnKind::Flag, Value::Bool(flag)) => flag.into(),
            _ => return None,
        })
    }
}

/// The tables of records, those first to which others refer.
///
/// # Errors
///
/// A column is of a type that no table of farrier has.
pub async fn tables<D: Database>(reader: &mut impl Reader) -> Outcome<Vec<Table>> {
    let rows = reader.fetch(Statement::new(D::DIALECT.columns_of_tables())).await?;
    let mut tables: Vec<Table> = Vec::new();
    for row in &rows {
        let (table, name, of_type) = (row.text(0)?, row.text(1)?, row.text(2)?);
        if NOT_RECORDS.contains(&table) {
            continue;
        }
        let kind = ColumnKind::of_type(of_type).ok_or_else(|| Failure::ColumnType {
            column: format!("{table}.{name}"),
            of_type: of_type.to_owned(),
        })?;
        if tables.last().is_none_or(|last| last.name != table) {
            tables.push(Table { name: table.to_owned(), columns: Vec::new(), key: Vec::new() });
        }
        let Some(last) = tables.last_mut() else { continue };
        last.columns.push(TableColumn { name: name.to_owned(), kind });
        if row.flag(3)? {
            last.key.push(name.to_owned());
        }
    }
    // The others stay in the order of their names.
    tables.sort_by_key(|table| table.name != FIRST);
    Ok(tables)
}
