//! Leases of work that one process does at a time, such as the synchronization of a saved search. Only catalogs that several
//! machines share have them.
//!
//! A lease ends if it is not renewed, by the server's clock. Each change of its holder raises its token: a transaction of the holder
//! compares the token, and keeps it from changing until it has committed.

use super::postgres::Postgres;
use super::sql::{Connection, SERVER_SECONDS, SqlError, SqlResult, values};
use super::{Catalog, Database};
use crate::error::{Error, ErrorKind, Result};

/// Time in seconds until a lease ends that is not renewed.
pub(crate) const LASTS: i64 = 60;

/// Table of the leases.
pub(super) const TABLE: &str = "CREATE TABLE savedsearch_lease (name TEXT PRIMARY KEY, holder TEXT NOT NULL, token INTEGER NOT NULL, ends INTEGER NOT NULL)";

impl Catalog {
    /// Takes a lease for a holder, if nobody else has it. Returns its token. Without a server there are no leases: the token is 0.
    pub(crate) fn take_lease(&self, name: &str, holder: &str) -> Result<Option<i64>> {
        let Some(postgres) = self.postgres() else { return Ok(Some(0)) };
        let sql = format!(
            "INSERT INTO savedsearch_lease (name, holder, token, ends) VALUES (?1, ?2, 1, {SERVER_SECONDS} + {LASTS}) \
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, token = savedsearch_lease.token + 1, \
             ends = excluded.ends \
             WHERE savedsearch_lease.ends <= {SERVER_SECONDS} OR savedsearch_lease.holder = excluded.holder RETURNING token"
        );
        let token = postgres.aside(|connection| connection.first(&sql, values![name, holder], |row| row.get(0)))?;
        if let Some(token) = token {
            self.leases().insert(name.to_owned(), token);
        }
        Ok(token)
    }

    /// Extends a lease. Returns false if it has ended and somebody else has taken it.
    pub(crate) fn renew_lease(&self, name: &str, token: i64) -> Result<bool> {
        let Some(postgres) = self.postgres() else { return Ok(true) };
        let sql =
            format!("UPDATE savedsearch_lease SET ends = {SERVER_SECONDS} + {LASTS} WHERE name = ?1 AND token = ?2");
        postgres.aside(|connection| Ok(connection.execute(&sql, values![name, token])? > 0))
    }

    /// Forgets a lease that this process no longer renews: commits do not depend on it any more.
    pub(crate) fn forget_lease(&self, name: &str, token: i64) {
        let mut leases = self.leases();
        if leases.get(name) == Some(&token) {
            leases.remove(name);
        }
    }

    /// Ends a lease, so that others need not wait.
    pub(crate) fn end_lease(&self, name: &str, token: i64) -> Result<()> {
        self.forget_lease(name, token);
        let Some(postgres) = self.postgres() else { return Ok(()) };
        let sql = "UPDATE savedsearch_lease SET ends = 0 WHERE name = ?1 AND token = ?2";
        postgres.aside(|connection| connection.execute(sql, values![name, token]).map(drop))
    }

    /// Verifies, within a transaction that writes, that this process still has its lease of this name, if it took one.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if another process has taken it.
    pub(super) fn check_lease(&self, connection: &Connection<'_>, name: &str) -> SqlResult<()> {
        let Some(token) = self.leases().get(name).copied() else { return Ok(()) };
        let sql = "SELECT token FROM savedsearch_lease WHERE name = ?1 FOR SHARE";
        match connection.first(sql, values![name], |row| row.get::<i64>(0))? {
            Some(found) if found == token => Ok(()),
            _ => {
                let message = format!("another process has taken over the {name}");
                Err(SqlError::Own(Error::new(ErrorKind::Store, message).advice("run the command again").passing()))
            }
        }
    }

    fn postgres(&self) -> Option<&Postgres> {
        match &self.database {
            Database::Sqlite(_) => None,
            Database::Postgres(postgres) => Some(postgres),
        }
    }
}
