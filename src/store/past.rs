//! Mentions as they were stored at a commit, as long as the files of that time are kept.
//!
//! ```text
//! commit ─▶ files that were current then ─ without the rows that were named as deleted then ─▶ mentions
//! ```
//!
//! Files that were replaced stay for the grace period, or for as long as versions are kept. When one of them is removed, the
//! catalog forgets all commits that had it, so a commit that it knows is complete.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use chrono::TimeDelta;

use super::changes::Since;
use super::files;
use super::region::{DataFile, Filters};
use super::{Store, only, opened};
use crate::error::{Error, ErrorKind, Result};

/// Name in the catalog of the number of days for which versions are kept.
const VERSIONS: &str = "versions";

impl Store {
    /// Keeps files that are replaced from now on for a number of days, instead of the grace period; 0: for the grace period.
    pub(crate) fn keep_versions(&self, days: u32) -> Result<()> {
        self.catalog.set_cursor(VERSIONS, &days.to_string())
    }

    /// Time for which versions are kept, beyond the grace period.
    pub(super) fn kept_versions(&self) -> Result<TimeDelta> {
        let days = self.catalog.cursor(VERSIONS)?.and_then(|days| days.parse::<u32>().ok());
        Ok(TimeDelta::days(days.unwrap_or_default().into()))
    }

    /// The mentions as they were stored at a commit, in the columns of today, in batches. Of days that were read with conditions,
    /// there are none. `aids`: of these saved searches; empty: of all. Each file is opened when the one before has been read.
    ///
    /// # Errors
    /// [`ErrorKind::Store`], with the earliest commit that can be read, if it cannot; those of files that cannot be read are items.
    pub(crate) fn past(
        self: &Arc<Self>,
        aids: &[String],
        at: Since,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        let (store, aids) = (Arc::clone(self), aids.to_vec());
        let files = self.catalog.files_at(at)?;
        Ok(files.into_iter().flat_map(move |(file, deletes)| opened(store.past_rows(&file, deletes.as_deref(), &aids))))
    }

    /// Verifies that the mentions of a commit can be read.
    ///
    /// # Errors
    /// Those of [`past`](Self::past).
    pub(crate) fn check_past(&self, at: Since) -> Result<()> {
        self.catalog.files_at(at).map(drop)
    }

    /// Opens a file, and returns those of its rows that were not deleted, in batches. `deletes`: the file that names deleted rows, below
    /// the data folder.
    fn past_rows(
        &self,
        file: &DataFile,
        deletes: Option<&str>,
        aids: &[String],
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        let deleted = match deletes {
            Some(path) => files::deleted_rows(self.catalog.storage(), &self.catalog.data().join(path))?,
            None => Vec::new(),
        };
        let rows = without(&deleted, file.rows);
        let path = self.catalog.folder(&Filters::default()).join(&file.path);
        self.check_old(&path, file)?;
        self.counters.opened(1, file.share(rows.iter().map(|rows| rows.end - rows.start).sum()));
        let (readable, layout, aids) = (self.readable(file.schema)?, self.layout.clone(), aids.to_vec());
        Ok(files::read_rows(&self.catalog, &path, file, &rows)?.map(move |batch| {
            let batch = layout.arrange(&only(&batch?, &readable)?)?;
            if aids.is_empty() {
                return Ok(batch);
            }
            let failed = |error: arrow::error::ArrowError| Error::new(ErrorKind::Store, error.to_string());
            let of = files::texts(batch.column(0)).map_err(failed)?;
            let wanted = of.iter().map(|of| Some(of.is_some_and(|of| aids.iter().any(|aid| aid == of))));
            filter_record_batch(&batch, &wanted.collect::<BooleanArray>()).map_err(failed)
        }))
    }
}

/// The rows of a file but for some, which are in order.
pub(super) fn without(deleted: &[Range<u64>], all: u64) -> Vec<Range<u64>> {
    let mut rows = Vec::new();
    let mut next = 0;
    for range in deleted.iter().cloned().chain(std::iter::once(all..all)) {
        if next < range.start {
            rows.push(next..range.start);
        }
        next = next.max(range.end);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_not_deleted_stay() {
        let left = |deleted: &[Range<u64>]| without(deleted, 5).into_iter().flatten().collect::<Vec<u64>>();
        assert_eq!(left(&[]), [0, 1, 2, 3, 4]);
        assert_eq!(left(&[0..2, 3..4]), [2, 4]);
        assert_eq!(left(&[1..2, 2..5]), [0]);
        assert_eq!(left(&[0..1, 1..5]), [0_u64; 0]);
    }
}
