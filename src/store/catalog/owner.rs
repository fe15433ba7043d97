//! Owner of a store: the service and the key whose mentions it holds, and the records that they are.

use std::fmt;

use super::sql::{Connection, SqlError, SqlResult, values};
use crate::error::{Error, ErrorKind};

/// The service and the key whose mentions a store holds, and the records that they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Digest of base URL and key, in hexadecimal digits.
    pub(crate) digest: String,
    /// Digest of what the profile says of the records that are mentions, as `records_of` returns it.
    pub(crate) records: String,
}

/// Relation of a store to an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// The owner's.
    Own,
    /// Its own, by an earlier version, which did not write which records it has.
    Unrecorded,
    /// Of the same service and key, with other records.
    OtherRecords,
    /// Of another service or key.
    OfAnother,
}

impl Owner {
    /// The owner as a catalog has it.
    pub(super) fn text(&self) -> String {
        format!("{}\n{}", self.digest, self.records)
    }

    pub(super) fn held(&self, connection: &Connection<'_>) -> SqlResult<Held> {
        let stored: String = connection.row("SELECT owner FROM savedsearch_store", values![], |row| row.get(0))?;
        let (digest, records) = match stored.split_once('\n') {
            Some((digest, records)) => (digest, Some(records)),
            None => (stored.as_str(), None),
        };
        Ok(match records {
            _ if digest != self.digest => Held::OfAnother,
            None => Held::Unrecorded,
            Some(records) if records == self.records => Held::Own,
            Some(_) => Held::OtherRecords,
        })
    }
}

impl Held {
    /// True if a store in this database is the owner's, or free for it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if it has mentions that are other records.
    pub(super) fn is_free(self, connection: &Connection<'_>, database: &impl fmt::Display) -> SqlResult<bool> {
        match self {
            Self::Own | Self::Unrecorded => Ok(true),
            Self::OfAnother => holds_nothing(connection),
            Self::OtherRecords if holds_no_mentions(connection)? => Ok(true),
            Self::OtherRecords => {
                let message = format!(
                    "{database}: the store was filled with a profile that reads mentions from another place, or identifies or \
                     dates them by other columns"
                );
                let advice = "use another folder, or the [search] and [tables.mentions] of that profile";
                Err(SqlError::Own(Error::new(ErrorKind::Config, message).advice(advice)))
            }
        }
    }
}

/// True for a store that nothing was ever kept in, or from which all was removed: it is free for any owner.
fn holds_nothing(connection: &Connection<'_>) -> SqlResult<bool> {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM savedsearch_coverage) AND NOT EXISTS (SELECT 1 FROM savedsearch_region_file) \
               AND NOT EXISTS (SELECT 1 FROM savedsearch_deleted) AND NOT EXISTS (SELECT 1 FROM savedsearch_answer) \
               AND NOT EXISTS (SELECT 1 FROM savedsearch_cursor)";
    connection.row(sql, values![], |row| row.get(0))
}

/// True for a store without days and without deleted mentions: what else it has does not depend on the profile.
fn holds_no_mentions(connection: &Connection<'_>) -> SqlResult<bool> {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM savedsearch_coverage) AND NOT EXISTS (SELECT 1 FROM savedsearch_region_file) \
               AND NOT EXISTS (SELECT 1 FROM savedsearch_deleted)";
    connection.row(sql, values![], |row| row.get(0))
}
