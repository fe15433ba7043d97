//! Parquet files of mentions: written sorted by time, complete and synced before the catalog names them.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray, UInt32Array};
use arrow::compute::{SortColumn, concat_batches, filter_record_batch, lexsort_to_indices, take_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimestampMicrosecondType};
use arrow::error::ArrowError;
use data_encoding::HEXLOWER;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use sha2::{Digest, Sha256};

use super::catalog::FileColumn;
use super::region::{DataFile, Day, Subject};
use crate::decode::data_type;
use crate::error::{Error, ErrorKind, Result};
use crate::files::{create_empty, private_folder};

/// Column with the saved search.
pub(crate) const AID: &str = "aid";
/// Column with the filters, in files of filtered regions.
pub(crate) const FILTERS: &str = "filters";
/// Column with the instant by the service's clock at which a mention was read.
pub(crate) const AS_OF: &str = "as_of";
/// Rows of a row group.
const GROUP: usize = 65_536;
/// Suffix of a file that is being written.
const PARTIAL: &str = "partial";

/// The columns of files, and the roles of some of them.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Schema of the files, with the catalog's field ids.
    pub(crate) schema: SchemaRef,
    /// Position of the time column.
    pub(crate) time: usize,
    /// Position of the id column, if mentions have ids.
    pub(crate) id: Option<usize>,
    /// Version of the columns in the catalog.
    version: i64,
}

impl Layout {
    /// Creates the layout of the catalog's columns. `time` and `id` name columns.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if there is no such time column.
    pub(crate) fn try_new(version: i64, columns: &[FileColumn], time: &str, id: Option<&str>) -> Result<Self> {
        let with_id = |field: Field, id: i64| {
            field.with_metadata([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())].into())
        };
        let fields = columns.iter().map(|column| {
            let kind = match (data_type(column.kind), column.element()) {
                (DataType::List(element), Some(id)) => DataType::List(Arc::new(with_id(element.as_ref().clone(), id))),
                (kind, _) => kind,
            };
            with_id(Field::new(&column.name, kind, true), column.id)
        });
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let missing = |_| Error::new(ErrorKind::Store, format!("the store has no column `{time}`"));
        let time = schema.index_of(time).map_err(missing)?;
        let id = id.and_then(|id| schema.index_of(id).ok());
        Ok(Self { schema: Arc::new(schema), time, id, version })
    }

    /// Returns the columns of the layout from a batch that has them by name; missing ones are NULL.
    pub(crate) fn arrange(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let column = |field: &Arc<Field>| match batch.column_by_name(field.name()) {
            Some(column) if column.data_type().equals_datatype(field.data_type()) => {
                retyped(column, field.data_type()).map_err(broken)
            }
            _ => Ok(arrow::array::new_null_array(field.data_type(), batch.num_rows())),
        };
        let columns = self.schema.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options).map_err(broken)
    }

    /// Returns the instants of a batch in microseconds since 1970.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if one is NULL.
    pub(crate) fn times<'b>(&self, batch: &'b RecordBatch) -> Result<&'b [i64]> {
        let times = batch.column(self.time).as_primitive_opt::<TimestampMicrosecondType>();
        match times {
            Some(times) if times.null_count() == 0 => Ok(times.values()),
            _ => Err(Error::new(ErrorKind::Store, "a mention without a time cannot be stored")),
        }
    }

    /// Returns the mentions of a batch whose times, in microseconds since 1970, are wanted.
    pub(crate) fn filtered(&self, batch: &RecordBatch, wanted: impl Fn(i64) -> bool) -> Result<RecordBatch> {
        let keep: Vec<bool> = self.times(batch)?.iter().map(|time| wanted(*time)).collect();
        filter_record_batch(batch, &keep.into()).map_err(broken)
    }

    /// Sorts batches by time, and by id among equal times.
    pub(crate) fn sorted(&self, batches: &[RecordBatch]) -> Result<RecordBatch> {
        let all = concat_batches(&self.schema, batches).map_err(broken)?;
        let keys: Vec<SortColumn> = [Some(self.time), self.id]
            .into_iter()
            .flatten()
            .map(|at| SortColumn { values: Arc::clone(all.column(at)), options: None })
            .collect();
        let order: UInt32Array = lexsort_to_indices(&keys, None).map_err(broken)?;
        take_record_batch(&all, &order).map_err(broken)
    }
}

/// Returns a column as another type that differs from its own in metadata or nullability only.
pub(crate) fn retyped(column: &ArrayRef, to: &DataType) -> std::result::Result<ArrayRef, ArrowError> {
    if column.data_type() == to {
        return Ok(Arc::clone(column));
    }
    let data = column.to_data().into_builder().data_type(to.clone()).build()?;
    Ok(arrow::array::make_array(data))
}

/// A file, and the digest of what was written to it.
#[derive(Debug)]
struct Digested {
    file: File,
    digest: Sha256,
}

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct FileWriter {
    writer: ArrowWriter<Digested>,
    layout: Layout,
    /// Its path while it is written, and the final one.
    places: (PathBuf, PathBuf),
    /// Path below the table's data folder.
    path: String,
    times: Option<(i64, i64)>,
    rows: u64,
    finished: bool,
}

impl FileWriter {
    /// Creates a file for the mentions of a subject on these days, below the data folder of its table.
    pub(crate) fn create(folder: &Path, subject: &Subject, days: &Range<Day>, layout: &Layout) -> Result<Self> {
        let plain = subject.aid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        // Hexadecimal if a file system might not accept the characters.
        let aid = if plain { subject.aid.clone() } else { format!("x{}", HEXLOWER.encode(subject.aid.as_bytes())) };
        let day = chrono::NaiveDate::from_epoch_days(days.start).unwrap_or_default();
        let path = format!("aid={aid}/{day}-{:032x}.parquet", rand::random::<u128>());
        let file = folder.join(&path);
        let partial = file.with_extension(PARTIAL);
        let created = || {
            private_folder(file.parent().unwrap_or(folder))?;
            create_empty(&partial)
        };
        let created = created().map_err(|error| failed("write", &partial, &error))?;
        let digested = Digested { file: created, digest: Sha256::new() };
        let writer =
            ArrowWriter::try_new(digested, Arc::clone(&layout.schema), Some(layout.properties(days.len() > 1)));
        let writer = writer.map_err(broken)?;
        let (layout, places) = (layout.clone(), (partial, file));
        Ok(Self { writer, layout, places, path, times: None, rows: 0, finished: false })
    }

    /// Writes a file of these mentions, in the layout's columns; sorted by time, and by id among equal times. `None` if there
    /// are none.
    pub(crate) fn of(
        folder: &Path,
        subject: &Subject,
        days: &Range<Day>,
        layout: &Layout,
        batches: &[RecordBatch],
    ) -> Result<Option<DataFile>> {
        let rows = layout.sorted(batches)?;
        if rows.num_rows() == 0 {
            return Ok(None);
        }
        let mut file = Self::create(folder, subject, days, layout)?;
        file.write(&rows)?;
        file.finish().map(Some)
    }

    /// Appends mentions in the layout's columns.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let times = self.layout.times(batch)?;
        let (least, most) = (times.iter().min(), times.iter().max());
        if let (Some(least), Some(most)) = (least, most) {
            let (first, last) = self.times.unwrap_or((*least, *most));
            self.times = Some((first.min(*least), last.max(*most)));
        }
        self.rows += batch.num_rows() as u64;
        self.writer.write(batch).map_err(broken)
    }

    /// Completes the file and makes it durable under its final name.
    pub(crate) fn finish(mut self) -> Result<DataFile> {
        let metadata = self.writer.finish().map_err(broken)?;
        drop(metadata);
        let (partial, file) = &self.places;
        let durable = || {
            self.writer.inner().file.sync_all()?;
            fs::rename(partial, file)?;
            sync_folder(file.parent().unwrap_or(Path::new(".")))?;
            let bytes = fs::metadata(file)?.len();
            Ok((bytes, footer_of(file, bytes)?))
        };
        let (bytes, footer) = durable().map_err(|error| failed("write", file, &error))?;
        self.finished = true;
        Ok(DataFile {
            path: self.path.clone(),
            rows: self.rows,
            bytes,
            footer,
            times: self.times.unwrap_or_default(),
            schema: self.layout.version,
            digest: HEXLOWER.encode(&self.writer.inner().digest.clone().finalize()),
        })
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if !self.finished {
            // A file that stays behind is removed with other unnamed files.
            let _ = fs::remove_file(&self.places.0);
        }
    }
}

impl Layout {
    /// `long`: set for files of several days, which may have many mentions.
    fn properties(&self, long: bool) -> WriterProperties {
        // Each column has one leaf in the Parquet schema.
        let sorting = SortingColumn {
            column_idx: i32::try_from(self.time).unwrap_or_default(),
            descending: false,
            nulls_first: false,
        };
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(GROUP))
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_sorting_columns(Some(vec![sorting]));
        if let Some(id) = self.id.filter(|_| long) {
            let column = ColumnPath::from(self.schema.field(id).name().as_str());
            properties = properties.set_column_bloom_filter_max_ndv(column, GROUP as u64);
        }
        properties.build()
    }
}

/// Reads a file in batches.
///
/// # Errors
/// [`ErrorKind::Store`] if it is missing or not a Parquet file.
pub(crate) fn read(path: &Path) -> Result<Vec<RecordBatch>> {
    let file = File::open(path).map_err(|error| failed("read", path, &error))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| corrupt(path, &error))?;
    let batches = reader.with_batch_size(8_192).build().map_err(|error| corrupt(path, &error))?;
    batches.collect::<std::result::Result<_, _>>().map_err(|error| corrupt(path, &error))
}

/// Counts the mentions of a file whose times are within a range, in microseconds since 1970.
///
/// # Errors
/// [`ErrorKind::Store`] if it is missing or not a Parquet file.
pub(crate) fn count_within(path: &Path, time: &str, within: &Range<i64>) -> Result<u64> {
    let mut count = 0;
    for batch in column(path, time)? {
        let batch = batch?;
        let times = batch.column(0).as_primitive_opt::<TimestampMicrosecondType>();
        count += times.into_iter().flat_map(|times| times.values()).filter(|time| within.contains(time)).count() as u64;
    }
    Ok(count)
}

/// Returns the digest of a file's contents, as in [`DataFile::digest`].
pub(crate) fn digest_of(path: &Path) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut file = BufReader::with_capacity(64 << 10, File::open(path)?);
    loop {
        let read = file.fill_buf()?;
        if read.is_empty() {
            return Ok(HEXLOWER.encode(&digest.finalize()));
        }
        digest.update(read);
        let length = read.len();
        file.consume(length);
    }
}

/// Returns the values of a file's column of ids as texts.
///
/// # Errors
/// [`ErrorKind::Store`] if it is missing or not a Parquet file.
pub(crate) fn ids(path: &Path, id: &str) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for batch in column(path, id)? {
        let batch = batch?;
        // The file may be older than the column.
        let Some(column) = batch.columns().first() else { continue };
        let texts = texts(column).map_err(|error| corrupt(path, &error))?;
        ids.extend(texts.iter().flatten().map(str::to_owned));
    }
    Ok(ids)
}

/// Returns a column of ids as texts.
pub(crate) fn texts(ids: &ArrayRef) -> std::result::Result<StringArray, ArrowError> {
    Ok(arrow::compute::cast(ids, &DataType::Utf8)?.as_string::<i32>().clone())
}

/// Returns one column of a file in batches.
fn column(path: &Path, name: &str) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
    let file = File::open(path).map_err(|error| failed("read", path, &error))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| corrupt(path, &error))?;
    let column = ProjectionMask::columns(reader.parquet_schema(), [name]);
    let batches = reader.with_projection(column).build().map_err(|error| corrupt(path, &error))?;
    Ok(batches.map(move |batch| batch.map_err(|error| corrupt(path, &error))))
}

/// Makes the names in a folder durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Length of a Parquet file's footer: it is in the four bytes before the magic number.
fn footer_of(path: &Path, bytes: u64) -> io::Result<u64> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(bytes.saturating_sub(8)))?;
    let mut length = [0; 4];
    file.read_exact(&mut length)?;
    Ok(u64::from(u32::from_le_bytes(length)))
}

pub(crate) fn failed(what: &str, path: &Path, error: &io::Error) -> Error {
    let advice = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free space, or SET savedsearch.store = 'read'",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "check its permissions, or SET savedsearch.store = 'read'"
        }
        io::ErrorKind::NotFound => "run `savedsearch store verify`",
        _ => "SET savedsearch.store = 'off' bypasses the store",
    };
    Error::new(ErrorKind::Store, format!("cannot {what} {}: {error}", path.display())).advice(advice)
}

fn corrupt(path: &Path, error: &impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Store, format!("cannot read {}: {error}", path.display()))
        .advice("run `savedsearch store verify`; SET savedsearch.store = 'off' bypasses the store")
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Store, format!("cannot write mentions to the store: {error}"))
        .advice("SET savedsearch.store = 'read' stops writing")
}
