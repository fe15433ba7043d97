//! Results that were sent to a page, kept in files without a name, so that charts and downloads need no request.
//!
//! A result is kept once it is complete. The oldest ones are dropped when a user has several, or all of them take too much.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;

use crate::shell::{Covered, Format, OutputOptions, write_file};

/// Results of a user.
const OF_USER: usize = 16;
/// Results of all users, each an open file.
const MOST: usize = 512;
/// Bytes of a result.
const ONE: u64 = 512 << 20;
/// Bytes of all results.
const ALL: u64 = 2 << 30;
/// Rows up to which a chart is drawn.
const DRAWN: u64 = 50_000;

/// The results of all users.
#[derive(Debug, Default)]
pub(super) struct Results(Mutex<VecDeque<Arc<StoredResult>>>);

/// A complete result.
#[derive(Debug)]
pub(super) struct StoredResult {
    id: String,
    owner: Arc<str>,
    rows: u64,
    bytes: u64,
    schema: SchemaRef,
    /// Batches as a stream of Arrow IPC.
    file: Arc<File>,
    /// Span of time that the query has read, which charts need.
    covered: Option<Covered>,
}

/// A result that is being sent.
pub(super) struct Keeping {
    schema: SchemaRef,
    rows: u64,
    /// `None` once it is too large, or cannot be written.
    writer: Option<StreamWriter<BufWriter<Counted>>>,
}

/// A file, and the bytes written to it.
struct Counted {
    file: File,
    bytes: u64,
}

/// A reader with a position of its own.
struct Reading {
    file: Arc<File>,
    at: u64,
}

impl Results {
    /// Keeps a complete result of a user. Returns its identifier.
    pub(super) fn add(&self, owner: &Arc<str>, keeping: Keeping, covered: Option<Covered>) -> Option<String> {
        let Keeping { schema, rows, writer } = keeping;
        let mut writer = writer?;
        writer.finish().ok()?;
        let Counted { file, bytes } = writer.into_inner().ok()?.into_inner().ok()?;
        let id = format!("{:032x}", rand::random::<u128>());
        let owner = Arc::clone(owner);
        let kept = StoredResult {
            id: id.clone(),
            owner: Arc::clone(&owner),
            rows,
            bytes,
            schema,
            file: Arc::new(file),
            covered,
        };
        let mut results = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        results.push_back(Arc::new(kept));
        let own = results.iter().filter(|kept| kept.owner == owner).count();
        if own > OF_USER
            && let Some(oldest) = results.iter().position(|kept| kept.owner == owner)
        {
            results.remove(oldest);
        }
        while results.len() > MOST || results.iter().map(|kept| kept.bytes).sum::<u64>() > ALL {
            results.pop_front();
        }
        Some(id)
    }

    /// Finds a result of a user.
    pub(super) fn find(&self, owner: &str, id: &str) -> Option<Arc<StoredResult>> {
        let results = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        results.iter().find(|kept| kept.id == id && *kept.owner == *owner).cloned()
    }
}

impl Keeping {
    pub(super) fn new(schema: &SchemaRef) -> Self {
        let writer = tempfile::tempfile().ok().and_then(|file| {
            let sink = BufWriter::new(Counted { file, bytes: 0 });
            StreamWriter::try_new(sink, schema).ok()
        });
        Self { schema: Arc::clone(schema), rows: 0, writer }
    }

    /// Adds rows. What cannot be written, or is too large, is not kept; the page has it anyway.
    pub(super) fn add(&mut self, batch: &RecordBatch) {
        self.rows += batch.num_rows() as u64;
        if let Some(writer) = &mut self.writer {
            let written = writer.write(batch).is_ok();
            if !written || writer.get_ref().get_ref().bytes > ONE {
                self.writer = None;
            }
        }
    }
}

impl StoredResult {
    /// Writes the result to a file in a format.
    ///
    /// # Errors
    /// One line for a result that the format cannot show; errors of the file.
    pub(super) fn write(&self, format: Format, path: &Path, options: OutputOptions) -> io::Result<()> {
        if matches!(format, Format::Svg | Format::Png) && self.rows > DRAWN {
            let line = format!("the result has {} rows; charts have at most {DRAWN}: aggregate them", self.rows);
            return Err(io::Error::other(line));
        }
        let reading = BufReader::new(Reading { file: Arc::clone(&self.file), at: 0 });
        let batches = StreamReader::try_new(reading, None).map_err(io::Error::other)?;
        let batches = batches.map(|batch| batch.map_err(io::Error::other));
        write_file((format, path), options, &self.schema, batches, self.covered)
    }
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};

    use super::*;

    #[test]
    fn a_result_belongs_to_its_user_and_the_oldest_are_dropped() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter([("n", numbers)]).expect("a batch");
        let results = Results::default();
        let keep = |owner: &str| {
            let mut keeping = Keeping::new(&batch.schema());
            keeping.add(&batch);
            results.add(&owner.into(), keeping, None).expect("kept")
        };
        let first = keep("ada");
        let other = keep("bob");
        assert!(results.find("ada", &first).is_some() && results.find("bob", &first).is_none());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.csv");
        for _ in 0..2 {
            let kept = results.find("ada", &first).expect("kept");
            kept.write(Format::Csv, &path, OutputOptions::default()).expect("written");
            assert_eq!(std::fs::read_to_string(&path).expect("a file"), "n\n1\n2\n");
        }
        (0..OF_USER).for_each(|_| drop(keep("ada")));
        assert!(results.find("ada", &first).is_none() && results.find("bob", &other).is_some());
    }
}
