//! New mentions of a store for a consumer, each at least once.
//!
//! ```text
//! cursor: a snapshot ─▶ mentions that arrived until the latest snapshot ─▶ consumer ─ has them ─▶ cursor: the latest snapshot
//! ```
//!
//! The cursor is in the catalog, and advances only when the consumer has what was read. If a process ends before that, the next
//! one reads the same mentions again.

use std::sync::Arc;

use arrow::array::RecordBatch;
use sha2::{Digest, Sha256};

use crate::connection::Connection;
use crate::error::Result;
use crate::store::Arrivals;

/// Mentions that arrived in the store since a consumer had the last ones.
#[derive(Debug, Clone)]
pub struct NewMentions {
    connection: Arc<Connection>,
    /// Saved searches; empty: all.
    aids: Vec<String>,
    /// Name of the cursor.
    cursor: String,
}

/// Result of reading new mentions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadMentions {
    /// Number of mentions.
    pub mentions: u64,
    /// Number of new mentions that were left for the next read.
    pub left: u64,
    /// Snapshot of the store until which they arrived.
    pub until: i64,
    /// True if the store cannot tell what is new, because an older version of this program wrote to it: all mentions of which the
    /// arrival is unknown were read.
    pub repeats: bool,
}

impl NewMentions {
    /// Creates the cursor of a consumer for the mentions of some saved searches, or of all, if it does not exist. It begins at the
    /// latest snapshot of the store.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the connection has no store,
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store cannot be written.
    pub fn begin(connection: &Arc<Connection>, consumer: &str, aids: &[String]) -> Result<Self> {
        let store = connection.some_store()?;
        let mut aids = aids.to_vec();
        aids.sort_unstable();
        aids.dedup();
        // A command may contain a password.
        let named = serde_json::json!([consumer, aids]).to_string();
        let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(named));
        let cursor = format!("new mentions for {digest}");
        if store.cursor(&cursor)?.is_none() {
            store.begin_cursor(&cursor, store.latest_snapshot()?)?;
        }
        Ok(Self { connection: Arc::clone(connection), aids, cursor })
    }

    /// Passes all new mentions on in batches. It reads files, and sends no request.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store cannot be read, and those of the caller.
    pub fn read(&self, take: impl FnMut(RecordBatch) -> Result<()>) -> Result<ReadMentions> {
        self.read_some(u64::MAX, take)
    }

    /// As [`read`](Self::read), for a consumer that confirms what it has in parts: ends with the commit in which there are `enough`
    /// mentions, the earliest first. Mentions of one commit stay together.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub fn read_some(&self, enough: u64, take: impl FnMut(RecordBatch) -> Result<()>) -> Result<ReadMentions> {
        let store = self.connection.some_store()?;
        let latest = store.latest_snapshot()?;
        let since = store.cursor(&self.cursor)?.unwrap_or_default();
        let Arrivals { mentions, left, until, repeats } = store.arrivals(&self.aids, &(since..latest), enough, take)?;
        Ok(ReadMentions { mentions, left, until, repeats })
    }

    /// Advances the cursor, after the consumer has what was read, unless it is further already.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store cannot be written.
    pub fn advance(&self, read: &ReadMentions) -> Result<()> {
        let store = self.connection.some_store()?;
        match store.cursor(&self.cursor)? >= Some(read.until) {
            true => Ok(()),
            false => store.advance_cursor(&self.cursor, read.until),
        }
    }
}
