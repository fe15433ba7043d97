//! Results that were sent to a page, kept in files without a name, so that charts and downloads need no request.
//!
//! A result is kept once it is complete. The oldest ones are dropped when a user has several, or all of them take too much. If a
//! result cannot be kept, the page is told why.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;

use crate::shell::{ChartForm, Covered, Format, OutputOptions, heat_columns, write_file};

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
/// Rows up to which a heat map is drawn: it reads three columns of numbers at most.
const COUNTED: u64 = 2_000_000;

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
    period: Period,
}

/// Span of time that a query has read, and its zone.
#[derive(Debug, Default)]
pub(super) struct Period {
    pub(super) covered: Option<Covered>,
    /// Zone of times in texts and charts; empty for UTC.
    pub(super) zone: String,
}

/// A result that is being sent.
pub(super) struct Keeping {
    schema: SchemaRef,
    rows: u64,
    /// Bytes up to which the result is kept.
    most: u64,
    /// The file, or the reason why there is none.
    writer: Result<StreamWriter<BufWriter<Counted>>, String>,
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
    ///
    /// # Errors
    /// One line, if the result is too large, or could not be written.
    pub(super) fn add(&self, owner: &Arc<str>, keeping: Keeping, period: Period) -> Result<String, String> {
        let Keeping { schema, rows, writer, .. } = keeping;
        let mut writer = writer?;
        writer.finish().map_err(|error| reason(&error))?;
        let sink = writer.into_inner().map_err(|error| reason(&error))?;
        let Counted { file, bytes } = sink.into_inner().map_err(|error| unwritten(error.error()))?;
        let id = format!("{:032x}", rand::random::<u128>());
        let owner = Arc::clone(owner);
        let kept = StoredResult {
            id: id.clone(),
            owner: Arc::clone(&owner),
            rows,
            bytes,
            schema,
            file: Arc::new(file),
            period,
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
        Ok(id)
    }

    /// Finds a result of a user.
    pub(super) fn find(&self, owner: &str, id: &str) -> Option<Arc<StoredResult>> {
        let results = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        results.iter().find(|kept| kept.id == id && *kept.owner == *owner).cloned()
    }
}

impl Keeping {
    pub(super) fn new(schema: &SchemaRef) -> Self {
        Self::in_file(schema, tempfile::tempfile(), ONE)
    }

    fn in_file(schema: &SchemaRef, file: io::Result<File>, most: u64) -> Self {
        let writer = file.map_err(|error| unwritten(&error)).and_then(|file| {
            let sink = BufWriter::new(Counted { file, bytes: 0 });
            StreamWriter::try_new(sink, schema).map_err(|error| reason(&error))
        });
        Self { schema: Arc::clone(schema), rows: 0, most, writer }
    }

    /// Adds rows. What cannot be written, or is too large, is not kept; the page has it anyway.
    pub(super) fn add(&mut self, batch: &RecordBatch) {
        self.rows += batch.num_rows() as u64;
        let Ok(writer) = &mut self.writer else { return };
        let failure = match writer.write(batch) {
            Err(error) => reason(&error),
            Ok(()) if writer.get_ref().get_ref().bytes > self.most => {
                format!("the result is larger than {} MiB", self.most >> 20)
            }
            Ok(()) => return,
        };
        self.writer = Err(failure);
    }
}

/// The reason why a result was not kept, without the path of its file.
fn reason(error: &ArrowError) -> String {
    match error {
        ArrowError::IoError(_, error) => unwritten(error),
        other => other.to_string(),
    }
}

fn unwritten(error: &io::Error) -> String {
    format!("the result cannot be written to a temporary file: {}", error.kind())
}

impl StoredResult {
    /// Writes the result to a file in a format. Returns a line for each thing that the format does not show.
    ///
    /// # Errors
    /// One line for a result that the format cannot show; errors of the file; an [`Error`](crate::Error) if there is not enough memory.
    pub(super) fn write(&self, format: Format, path: &Path, options: OutputOptions) -> io::Result<Vec<String>> {
        let picture = matches!(format, Format::Svg | Format::Png);
        let heat = picture && options.charts.form == ChartForm::Heatmap;
        let (most, columns) = match heat_columns(&self.schema).filter(|_| heat) {
            Some(columns) => (COUNTED, Some(columns)),
            None => (DRAWN, None),
        };
        if picture && self.rows > most {
            let line = format!("the result has {} rows; charts have at most {most}: aggregate them", self.rows);
            return Err(io::Error::other(line));
        }
        let schema = match &columns {
            Some(columns) => Arc::new(self.schema.project(columns).map_err(io::Error::other)?),
            None => Arc::clone(&self.schema),
        };
        let reading = BufReader::new(Reading { file: Arc::clone(&self.file), at: 0 });
        let batches = StreamReader::try_new(reading, columns).map_err(io::Error::other)?;
        let batches = batches.map(|batch| batch.map_err(io::Error::other));
        let Period { covered, zone } = &self.period;
        write_file((format, path), options, &schema, batches, (*covered, zone.as_str()))
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
    use crate::error::{Error, ErrorKind};
    use crate::memory::tests::counted;
    use crate::memory::{StatementMemory, within};

    #[test]
    fn a_result_belongs_to_its_user_and_the_oldest_are_dropped() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter([("n", numbers)]).expect("a batch");
        let results = Results::default();
        let keep = |owner: &str| {
            let mut keeping = Keeping::new(&batch.schema());
            keeping.add(&batch);
            results.add(&owner.into(), keeping, Period::default()).expect("kept")
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

    #[tokio::test]
    async fn writing_a_file_ends_with_its_statement() {
        counted();
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter([("n", numbers)]).expect("a batch");
        let (results, mut keeping) = (Results::default(), Keeping::new(&batch.schema()));
        keeping.add(&batch);
        let id = results.add(&"ada".into(), keeping, Period::default()).expect("kept");
        let kept = results.find("ada", &id).expect("kept");
        let folder = tempfile::tempdir().expect("a folder");
        let ended = Arc::new(StatementMemory::default());
        ended.end();
        for format in [Format::Csv, Format::Json, Format::Ndjson, Format::Xlsx, Format::Parquet] {
            let path = folder.path().join(format.name());
            let error = within(&ended, async { kept.write(format, &path, OutputOptions::default()) }).await;
            let error = error.expect_err("the statement was ended").downcast::<Error>().expect("an error of our own");
            assert_eq!(error.kind(), ErrorKind::Memory, "{}", format.name());
        }
    }

    #[test]
    fn a_result_that_is_not_kept_says_why() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1; 200_000]));
        let batch = RecordBatch::try_from_iter([("n", numbers)]).expect("a batch");
        let add = |file: io::Result<File>| {
            let mut keeping = Keeping::in_file(&batch.schema(), file, 1 << 20);
            (0..2).for_each(|_| keeping.add(&batch));
            Results::default().add(&"ada".into(), keeping, Period::default()).expect_err("not kept")
        };
        assert_eq!(add(tempfile::tempfile()), "the result is larger than 1 MiB");
        let denied = io::Error::new(io::ErrorKind::PermissionDenied, "/tmp/name");
        assert_eq!(add(Err(denied)), "the result cannot be written to a temporary file: permission denied");
        let full = File::options().write(true).open("/dev/full");
        if full.is_ok() {
            assert_eq!(add(full), "the result cannot be written to a temporary file: no storage space");
        }
    }
}
