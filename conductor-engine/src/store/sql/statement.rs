//! Statements and rows as both databases have them: a column holds a text, a number or a flag.

use crate::store::StoreError;
use crate::store::columns::{Column, check_texts, time_of};
use crate::store::selection::Kind;
use crate::store::sql::statements::Selected;
use crate::store::sql::{Failure, Outcome};
use serde::de::DeserializeOwned;
use sqlx::database::HasStatementCache;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, ColumnIndex, Decode, Encode, SqlSafeStr, SqlStr, Type};
use time::OffsetDateTime;
use uuid::Uuid;

/// A statement with the values of its parameters.
#[derive(Clone)]
pub struct Statement {
    text: SqlStr,
    values: Vec<Column>,
    is_prepared: bool,
}

impl Statement {
    /// One with a fixed text, which a connection prepares once.
    pub fn new(text: &'static str) -> Self {
        Self { text: text.into_sql_str(), values: Vec::new(), is_prepared: true }
    }

    /// One whose text depends on what is asked for.
    pub fn composed((text, values): Selected) -> Self {
        Self { text: AssertSqlSafe(text).into_sql_str(), values, is_prepared: true }
    }

    /// The same for a text that is another one each time: no connection keeps it.
    pub fn once(self) -> Self {
        Self { is_prepared: false, ..self }
    }

    /// Adds the value of the next parameter.
    pub fn bind(mut self, value: impl Into<Column>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Adds the values of the next parameters.
    pub fn bind_all(mut self, values: Vec<Column>) -> Self {
        self.values.extend(values);
        self
    }

    /// The same for one that searches: no kept text has a NUL, so one that is looked for with it must match none.
    pub fn search(mut self) -> Self {
        for value in &mut self.values {
            if let Column::Text(Some(text)) = value
                && text.contains('\0')
            {
                *text = text.replace('\0', "\u{fffd}");
            }
        }
        self
    }

    /// The statement as sqlx runs it.
    ///
    /// # Errors
    ///
    /// [`StoreError::NulCharacter`].
    pub fn query<D: sqlx::Database + HasStatementCache>(
        self,
    ) -> Result<Query<'static, D, D::Arguments>, StoreError>
    where
        Option<String>: Encode<'static, D> + Type<D>,
        Option<i64>: Encode<'static, D> + Type<D>,
        bool: Encode<'static, D> + Type<D>,
    {
        check_texts(&self.values)?;
        let query = sqlx::query(self.text).persistent(self.is_prepared);
        Ok(self.values.into_iter().fold(query, |query, value| match value {
            Column::Text(text) => query.bind(text),
            Column::Number(number) => query.bind(number),
            Column::Flag(flag) => query.bind(flag),
        }))
    }
}

/// A column of a row: by its name, or by its number from 0.
pub enum Place {
    Name(&'static str),
    Number(usize),
}

impl From<&'static str> for Place {
    fn from(name: &'static str) -> Self {
        Self::Name(name)
    }
}

impl From<usize> for Place {
    fn from(number: usize) -> Self {
        Self::Number(number)
    }
}

/// A row that a statement found.
pub trait Row: Send + Sync {
    /// A text, if there is one.
    fn optional_text(&self, at: impl Into<Place>) -> Outcome<Option<&str>>;

    /// A number, if there is one.
    fn optional_number(&self, at: impl Into<Place>) -> Outcome<Option<i64>>;

    /// A flag, which each row has.
    fn flag(&self, at: impl Into<Place>) -> Outcome<bool>;

    /// A text, which each row has.
    fn text(&self, at: impl Into<Place>) -> Outcome<&str> {
        self.optional_text(at)?.ok_or_else(absent)
    }

    /// A number, which each row has.
    fn number(&self, at: impl Into<Place>) -> Outcome<i64> {
        self.optional_number(at)?.ok_or_else(absent)
    }

    /// An identity, which each row has.
    fn uuid(&self, at: impl Into<Place>) -> Outcome<Uuid> {
        Ok(self.text(at)?.parse()?)
    }

    /// A time, if there is one.
    fn optional_time(&self, at: impl Into<Place>) -> Outcome<Option<OffsetDateTime>> {
        Ok(self.optional_number(at)?.and_then(time_of))
    }

    /// A time, which each row has.
    fn time(&self, at: impl Into<Place>) -> Outcome<OffsetDateTime> {
        Ok(time_of(self.number(at)?).unwrap_or(OffsetDateTime::UNIX_EPOCH))
    }

    /// The value of a column of a kind.
    fn column(&self, at: impl Into<Place>, kind: Kind) -> Outcome<Column> {
        Ok(match kind {
            Kind::Text => self.optional_text(at)?.map(str::to_owned).into(),
            Kind::Time => self.optional_number(at)?.into(),
            Kind::Flag => self.flag(at)?.into(),
        })
    }
}

fn absent() -> Failure {
    sqlx::Error::ColumnDecode { index: String::new(), source: "there is no value".into() }.into()
}

impl<R> Row for R
where
    R: sqlx::Row,
    usize: ColumnIndex<R>,
    &'static str: ColumnIndex<R>,
    for<'r> &'r str: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> bool: Decode<'r, R::Database> + Type<R::Database>,
{
    fn optional_text(&self, at: impl Into<Place>) -> Outcome<Option<&str>> {
        Ok(match at.into() {
            Place::Name(name) => self.try_get(name)?,
            Place::Number(number) => self.try_get(number)?,
        })
    }

    fn optional_number(&self, at: impl Into<Place>) -> Outcome<Option<i64>> {
        Ok(match at.into() {
            Place::Name(name) => self.try_get(name)?,
            Place::Number(number) => self.try_get(number)?,
        })
    }

    fn flag(&self, at: impl Into<Place>) -> Outcome<bool> {
        Ok(match at.into() {
            Place::Name(name) => self.try_get(name)?,
            Place::Number(number) => self.try_get(number)?,
        })
    }
}

/// Where statements find rows.
pub trait Reader: Send {
    /// The rows that it finds.
    type Row: Row;

    /// The rows that a statement finds or returns.
    fn fetch(&mut self, statement: Statement) -> impl Future<Output = Outcome<Vec<Self::Row>>> + Send;

    /// The row that a statement finds or returns, of one at most.
    fn fetch_one(&mut self, statement: Statement) -> impl Future<Output = Outcome<Option<Self::Row>>> + Send {
        async move { Ok(self.fetch(statement).await?.pop()) }
    }

    /// The identities in the first column.
    fn uuids(&mut self, statement: Statement) -> impl Future<Output = Outcome<Vec<Uuid>>> + Send {
        async move { self.fetch(statement).await?.iter().map(|row| row.uuid(0)).collect() }
    }

    /// The documents in the first column, which is JSON.
    fn documents<T: DeserializeOwned>(
        &mut self,
        statement: Statement,
    ) -> impl Future<Output = Outcome<Vec<T>>> + Send {
        async move {
            let rows = self.fetch(statement).await?;
            let texts = rows.iter().filter_map(|row| row.optional_text(0).transpose());
            texts.map(|text| Ok(serde_json::from_str(text?)?)).collect()
        }
    }

    /// The document in the first column of one row at most.
    fn document<T: DeserializeOwned>(
        &mut self,
        statement: Statement,
    ) -> impl Future<Output = Outcome<Option<T>>> + Send {
        async move { Ok(self.documents(statement).await?.pop()) }
    }
}

/// Where statements find rows and write them.
pub trait Connection: Reader {
    /// Hands each row that a statement finds to `found` as it arrives, so that never all of them are held.
    fn each<E: From<Failure> + Send>(
        &mut self,
        statement: Statement,
        found: impl FnMut(&Self::Row) -> Result<(), E> + Send,
    ) -> impl Future<Output = Result<(), E>> + Send;

    /// The number of rows that a statement wrote.
    fn execute(&mut self, statement: Statement) -> impl Future<Output = Outcome<u64>> + Send;
}
