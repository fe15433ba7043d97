//! Statements of the catalog: one text for SQLite and for PostgreSQL, with the same values.
//!
//! Parameters are written `?1`, `?2` and so on. Truth values and instants have the type of the column that they are written to:
//! SQLite has numbers and texts there.
//!
//! Invariant: a value is read as it was written, or is an error.

use std::borrow::Cow;
use std::fmt;
#[cfg(feature = "shared")]
use std::time::Duration;

use chrono::{DateTime, Utc};
use rusqlite::params_from_iter;
use rusqlite::types::{ToSqlOutput, ValueRef};

#[cfg(feature = "shared")]
use super::postgres::Session;
use crate::error::Error;

/// Result of a statement.
pub(super) type SqlResult<T> = Result<T, SqlError>;

/// Failure of a statement, or of a transaction.
#[derive(Debug)]
pub(super) enum SqlError {
    Sqlite(rusqlite::Error),
    #[cfg(feature = "shared")]
    Postgres(tokio_postgres::Error),
    /// The server did not answer within this time.
    #[cfg(feature = "shared")]
    Silent(Duration),
    /// An error of this program, by which a transaction ends.
    Own(Error),
    /// A value that this program cannot have written.
    Invalid(String),
    /// A row is missing.
    NoRow,
}

/// The time of a server in a statement, in seconds since 1970.
#[cfg(feature = "shared")]
pub(super) const SERVER_SECONDS: &str = "CAST(extract(epoch FROM clock_timestamp()) AS bigint)";

/// A connection to a catalog, usually within a transaction.
#[derive(Debug, Clone, Copy)]
pub(super) enum Connection<'c> {
    Sqlite(&'c rusqlite::Connection),
    #[cfg(feature = "shared")]
    Postgres(&'c Session),
}

/// A row of a result.
pub(super) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    #[cfg(feature = "shared")]
    Postgres(&'r tokio_postgres::Row),
}

/// A value of a parameter or of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value<'v> {
    Null,
    Integer(i64),
    /// A number beyond those of the catalog, which cannot be written.
    TooLarge(u64),
    Text(Cow<'v, str>),
    Blob(Cow<'v, [u8]>),
}

/// Parameters of a statement, in their order.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        &[$($crate::store::catalog::sql::Parameter::value(&$value)),*]
    };
}
pub(super) use values;

impl Connection<'_> {
    /// Runs a statement. Returns the number of rows that it has changed.
    pub(super) fn execute(&self, sql: &str, values: &[Value<'_>]) -> SqlResult<u64> {
        match self {
            Self::Sqlite(connection) => Ok(connection.prepare_cached(sql)?.execute(params_from_iter(values))? as u64),
            #[cfg(feature = "shared")]
            Self::Postgres(session) => session.execute(sql, values),
        }
    }

    /// Runs statements without parameters.
    pub(super) fn batch(&self, sql: &str) -> SqlResult<()> {
        match self {
            Self::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            #[cfg(feature = "shared")]
            Self::Postgres(session) => session.batch(sql),
        }
    }

    /// Creates tables and indexes, whose types are those of SQLite.
    pub(super) fn define(&self, ddl: &str) -> SqlResult<()> {
        match self {
            Self::Sqlite(_) => self.batch(ddl),
            #[cfg(feature = "shared")]
            Self::Postgres(_) => self.batch(&super::postgres::ddl_of(ddl)),
        }
    }

    /// Returns all rows of a statement.
    pub(super) fn rows<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> SqlResult<T>,
    ) -> SqlResult<Vec<T>> {
        let mut found = Vec::new();
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query(params_from_iter(values))?;
                while let Some(row) = rows.next()? {
                    found.push(read(&Row::Sqlite(row))?);
                }
            }
            #[cfg(feature = "shared")]
            Self::Postgres(session) => {
                for row in &session.query(sql, values)? {
                    found.push(read(&Row::Postgres(row))?);
                }
            }
        }
        Ok(found)
    }

    /// Returns the first row of a statement, if there is one.
    pub(super) fn first<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&Row<'_>) -> SqlResult<T>,
    ) -> SqlResult<Option<T>> {
        Ok(self.rows(sql, values, read)?.into_iter().next())
    }

    /// Returns the first row of a statement.
    pub(super) fn row<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&Row<'_>) -> SqlResult<T>,
    ) -> SqlResult<T> {
        self.first(sql, values, read)?.ok_or(SqlError::NoRow)
    }

    /// True if the catalog has a table. Those of an older version have fewer.
    pub(super) fn has_table(&self, name: &str) -> SqlResult<bool> {
        let sql = match self {
            Self::Sqlite(_) => "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1",
            #[cfg(feature = "shared")]
            Self::Postgres(_) => "SELECT to_regclass(?1) IS NOT NULL",
        };
        self.row(sql, values![name], |row| row.get(0))
    }

    /// The time of the database, in seconds since 1970.
    pub(super) fn seconds(&self) -> SqlResult<i64> {
        let seconds = match self {
            Self::Sqlite(_) => "CAST(strftime('%s', 'now') AS INTEGER)",
            #[cfg(feature = "shared")]
            Self::Postgres(_) => SERVER_SECONDS,
        };
        self.row(&format!("SELECT {seconds}"), values![], |row| row.get(0))
    }

    /// The time of the server; `None` if the catalog is not on one.
    pub(super) fn server_time(&self) -> SqlResult<Option<DateTime<Utc>>> {
        if !self.is_shared() {
            return Ok(None);
        }
        let sql = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)";
        self.row(sql, values![], |row| instant(row, 0)).map(Some)
    }

    /// True for PostgreSQL.
    pub(super) fn is_shared(&self) -> bool {
        !matches!(self, Self::Sqlite(_))
    }
}

impl Row<'_> {
    /// Reads a column by its position.
    pub(super) fn get<T: Column>(&self, at: usize) -> SqlResult<T> {
        let value = match self {
            Self::Sqlite(row) => match row.get_ref(at)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => Value::Integer(number),
                ValueRef::Real(_) => return Err(invalid(at, "a number with a fraction")),
                ValueRef::Text(text) => match std::str::from_utf8(text) {
                    Ok(text) => Value::Text(text.into()),
                    Err(error) => return Err(invalid(at, error)),
                },
                ValueRef::Blob(bytes) => Value::Blob(bytes.into()),
            },
            #[cfg(feature = "shared")]
            Self::Postgres(row) => row.try_get(at)?,
        };
        T::of(value).ok_or_else(|| invalid(at, "a value of another type"))
    }
}

/// The value of a column that is not what this program writes.
pub(super) fn invalid(column: usize, what: impl fmt::Display) -> SqlError {
    SqlError::Invalid(format!("invalid value of column {column}: {what}"))
}

/// Reads an instant, which is stored in microseconds since 1970.
pub(super) fn instant(row: &Row<'_>, column: usize) -> SqlResult<DateTime<Utc>> {
    DateTime::from_timestamp_micros(row.get(column)?).ok_or_else(|| invalid(column, "not an instant"))
}

impl From<rusqlite::Error> for SqlError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

#[cfg(feature = "shared")]
impl From<tokio_postgres::Error> for SqlError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::TooLarge(number) => {
                return Err(rusqlite::Error::ToSqlConversionFailure(format!("{number} is too large").into()));
            }
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// A type of parameters.
pub(super) trait Parameter {
    fn value(&self) -> Value<'_>;
}

impl Parameter for i64 {
    fn value(&self) -> Value<'_> {
        Value::Integer(*self)
    }
}

impl Parameter for i32 {
    fn value(&self) -> Value<'_> {
        Value::Integer((*self).into())
    }
}

impl Parameter for u64 {
    fn value(&self) -> Value<'_> {
        i64::try_from(*self).map_or(Value::TooLarge(*self), Value::Integer)
    }
}

impl Parameter for bool {
    fn value(&self) -> Value<'_> {
        Value::Integer((*self).into())
    }
}

impl Parameter for str {
    fn value(&self) -> Value<'_> {
        Value::Text(self.into())
    }
}

impl Parameter for String {
    fn value(&self) -> Value<'_> {
        Value::Text(self.as_str().into())
    }
}

impl Parameter for [u8] {
    fn value(&self) -> Value<'_> {
        Value::Blob(self.into())
    }
}

impl Parameter for Vec<u8> {
    fn value(&self) -> Value<'_> {
        Value::Blob(self.as_slice().into())
    }
}

impl<T: Parameter + ?Sized> Parameter for &T {
    fn value(&self) -> Value<'_> {
        (**self).value()
    }
}

impl<T: Parameter> Parameter for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, Parameter::value)
    }
}

/// A type of columns.
pub(super) trait Column: Sized {
    /// The value in this type, if it is of it.
    fn of(value: Value<'_>) -> Option<Self>;
}

impl Column for i64 {
    fn of(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Integer(number) => Some(number),
            _ => None,
        }
    }
}

impl Column for i32 {
    fn of(value: Value<'_>) -> Option<Self> {
        i64::of(value)?.try_into().ok()
    }
}

impl Column for u64 {
    fn of(value: Value<'_>) -> Option<Self> {
        i64::of(value)?.try_into().ok()
    }
}

impl Column for bool {
    fn of(value: Value<'_>) -> Option<Self> {
        i64::of(value).map(|number| number != 0)
    }
}

impl Column for String {
    fn of(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.into_owned()),
            _ => None,
        }
    }
}

impl Column for Vec<u8> {
    fn of(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Blob(bytes) => Some(bytes.into_owned()),
            _ => None,
        }
    }
}

impl<T: Column> Column for Option<T> {
    fn of(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::of(value).map(Some),
        }
    }
}
