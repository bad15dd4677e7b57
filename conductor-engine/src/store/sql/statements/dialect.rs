//! Where one text does not do for both databases.

/// The SQL of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

impl Dialect {
    /// The text of a field of a node's document, in small letters.
    pub fn lower_field(self, field: &str) -> String {
        match self {
            Self::Sqlite => format!("LOWER(node_documents.document ->> '{field}')"),
            // It reads no NUL out of JSON, and would end the statement; nobody looks for one.
            Self::Postgres => {
                let document = r"CAST(REPLACE(node_documents.document, '\u0000', '\u0020') AS json)";
                format!("LOWER({document} ->> '{field}')")
            }
        }
    }

    /// The time by the clock of the database, in microseconds since 1970: the same throughout a statement, and not throughout
    /// a transaction.
    pub fn now(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
            Self::Postgres => "CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000000 AS BIGINT)",
        }
    }

    /// The columns of all tables, by table: names of table and column, type, and whether the column is part of the key.
    pub fn columns_of_tables(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "SELECT tables.name, columns.name, columns.type, columns.pk > 0 FROM sqlite_master AS tables \
                 JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' \
                 AND tables.name NOT LIKE 'sqlite_%' ORDER BY tables.name, columns.cid"
            }
            Self::Postgres => {
                "SELECT CAST(tables.relname AS TEXT), CAST(columns.attname AS TEXT), \
                 format_type(columns.atttypid, NULL), COALESCE(columns.attnum = ANY (keys.indkey), FALSE) \
                 FROM pg_class AS tables JOIN pg_namespace AS schemas ON schemas.oid = tables.relnamespace \
                 JOIN pg_attribute AS columns ON columns.attrelid = tables.oid \
                 LEFT JOIN pg_index AS keys ON keys.indrelid = tables.oid AND keys.indisprimary \
                 WHERE tables.relkind = 'r' AND schemas.nspname = current_schema() AND columns.attnum > 0 \
                 AND NOT columns.attisdropped ORDER BY tables.relname, columns.attnum"
            }
        }
    }

    /// The statements that make tables. Texts are compared by their bytes, whatever the language of the database.
    pub fn layout(self, statements: &str) -> String {
        match self {
            Self::Sqlite => statements.to_owned(),
            Self::Postgres => statements.replace(" TEXT", " TEXT COLLATE \"C\""),
        }
    }
}
