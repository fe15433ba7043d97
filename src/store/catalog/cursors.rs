//! Texts that are kept under a name: how far consumers have read, states of watch rules, and what else outlives a process.

use super::Catalog;
use super::sql::{Connection, SqlError, SqlResult, values};
use crate::error::Result;

impl Catalog {
    /// Returns the value of a cursor.
    pub(crate) fn cursor(&self, name: &str) -> Result<Option<String>> {
        self.read(|connection| cursor(connection, name))
    }

    /// Sets the value of a cursor.
    pub(crate) fn set_cursor(&self, name: &str, value: &str) -> Result<()> {
        self.write(|transaction| set_cursor(transaction, name, value))
    }

    /// Changes a cursor by its value and the time, in seconds since 1970 by the clock of the database. `change` returns the new value,
    /// `None` to keep the old one. All of it is one transaction, so that each process sees the changes of those before it.
    ///
    /// # Errors
    /// Those of `change`, after which the cursor is as before.
    pub(crate) fn change_cursor<T>(
        &self,
        name: &str,
        change: impl Fn(Option<String>, i64) -> Result<(Option<String>, T)>,
    ) -> Result<T> {
        self.write(|transaction| {
            let now = transaction.seconds()?;
            let (changed, result) = change(cursor(transaction, name)?, now).map_err(SqlError::Own)?;
            if let Some(value) = changed {
                set_cursor(transaction, name, &value)?;
            }
            Ok(result)
        })
    }
}

/// Reads the value of a cursor.
pub(super) fn cursor(connection: &Connection<'_>, name: &str) -> SqlResult<Option<String>> {
    connection.first("SELECT value FROM savedsearch_cursor WHERE name = ?1", values![name], |row| row.get(0))
}

/// Writes the value of a cursor.
pub(super) fn set_cursor(connection: &Connection<'_>, name: &str, value: &str) -> SqlResult<()> {
    let sql = "INSERT INTO savedsearch_cursor (name, value) VALUES (?1, ?2) \
               ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    connection.execute(sql, values![name, value]).map(drop)
}
