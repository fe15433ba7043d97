//! Number of erasures: what was read before an erasure is not stored after it.
//!
//! ```text
//! a read begins ─ number ─▶ its mentions arrive ─▶ commit, if the number is still the same
//!                     └─ erasure: the number is raised ─▶ mentions are removed
//! ```

use super::Catalog;
use super::cursors::{cursor, set_cursor};
use super::sql::{Connection, SqlError, SqlResult};
use crate::error::{Error, ErrorKind, Result};

/// Name of the cursor with the number.
const ERASURES: &str = "erasures";

impl Catalog {
    /// Returns the number of erasures so far.
    pub(crate) fn erasures(&self) -> Result<i64> {
        self.read(number)
    }

    /// Begins an erasure: commits of what was read before it fail from now on.
    pub(crate) fn begin_erasure(&self) -> Result<()> {
        self.write(|transaction| {
            let next = number(transaction)?.saturating_add(1);
            set_cursor(transaction, ERASURES, &next.to_string())
        })
    }
}

/// Verifies within a commit that no erasure has begun since there were this many. `merges`: set if mentions of files are committed, and
/// not those of responses.
///
/// # Errors
/// [`ErrorKind::Store`] if one has.
pub(super) fn check(transaction: &Connection<'_>, erasures: i64, merges: bool) -> SqlResult<()> {
    match is_still(transaction, erasures)? {
        true => Ok(()),
        false => {
            let what = match merges {
                true => "another process has erased mentions since these files were read, so they are not replaced",
                false => "another process has erased mentions since these were read, so they are not stored",
            };
            Err(SqlError::Own(
                Error::new(ErrorKind::Store, what).advice("run the query or the command again").passing(),
            ))
        }
    }
}

/// True if no erasure has begun since there were this many.
pub(super) fn is_still(transaction: &Connection<'_>, erasures: i64) -> SqlResult<bool> {
    Ok(number(transaction)? == erasures)
}

fn number(connection: &Connection<'_>) -> SqlResult<i64> {
    Ok(cursor(connection, ERASURES)?.and_then(|number| number.parse().ok()).unwrap_or_default())
}
