//! Parquet files of mentions: complete and synced before the catalog names them.
//!
//! A file has the mentions of one or many regions, those of each sorted by time. Files of few rows have small footers: no page
//! index, and statistics of `aid` and time only.

use std::error::Error as StdError;
use std::io::{self, Write};
use std::iter::successors;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, StringArray, UInt32Array};
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take_record_batch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, TimestampMicrosecondType};
use arrow::error::ArrowError;
use data_encoding::HEXLOWER;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use sha2::{Digest, Sha256};

use super::catalog::{Catalog, FileColumn};
use super::checksums::{CHANGED, CheckedFile, Summing};
use super::first_seen::FIRST_SEEN;
use super::region::{DataFile, Day};
use super::storage::{NewFile, Storage};
use crate::decode::data_type;
use crate::error::{Error, ErrorKind, Phrase, Result, Setting, Tool};

/// Column with the saved search.
pub(crate) const AID: &str = "aid";
/// Column with the filters, in files of filtered regions.
pub(crate) const FILTERS: &str = "filters";
/// Column with the instant by the service's clock at which a mention was read.
pub(crate) const AS_OF: &str = "as_of";
/// Rows of a row group. Readers divide files by row groups, and skip them by their statistics.
const GROUP: usize = 32_768;
/// Rows from which on a file is large.
const LARGE: usize = 16_384;
/// Rows of a batch that is read from a file.
const BATCH: usize = 1_024;
/// Length of the end of a Parquet file: the length of its footer, and the magic number.
const TAIL: usize = 8;
/// Field ids of DuckLake's delete files.
const DELETES: [(&str, DataType, i64); 2] =
    [("file_path", DataType::Utf8, 2_147_483_546), ("pos", DataType::Int64, 2_147_483_545)];

/// The columns of files, and the roles of some of them.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Schema of the files, with the catalog's field ids.
    pub(crate) schema: SchemaRef,
    /// Position of the time column.
    pub(crate) time: usize,
    /// Position of the id column, if mentions have ids.
    pub(crate) id: Option<usize>,
    /// Position of the store's own column `first_seen`; `None` in a version without it.
    pub(super) first_seen: Option<usize>,
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
        // The one of a profile has a source.
        let first_seen = columns.iter().position(|column| column.name == FIRST_SEEN && column.source.is_empty());
        Ok(Self { schema: Arc::new(schema), time, id, first_seen, version })
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

/// A file, and the digest, checksums, length and last bytes of what was written to it.
#[derive(Debug)]
struct Digested {
    file: NewFile,
    digest: Sha256,
    blocks: Summing,
    length: u64,
    tail: [u8; TAIL],
}

impl Digested {
    fn new(file: NewFile) -> Self {
        Self { file, digest: Sha256::new(), blocks: Summing::default(), length: 0, tail: [0; TAIL] }
    }

    /// Length of the Parquet footer: it is in the four bytes before the magic number.
    fn footer(&self) -> u64 {
        let [a, b, c, d, ..] = self.tail;
        u64::from(u32::from_le_bytes([a, b, c, d]))
    }
}

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.digest.update(&bytes[..written]);
        self.blocks.update(&bytes[..written]);
        self.length += written as u64;
        let last = written.min(TAIL);
        self.tail.rotate_left(last);
        self.tail[TAIL - last..].copy_from_slice(&bytes[written - last..written]);
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
    /// Its final path.
    place: PathBuf,
    /// Path below the table's data folder.
    path: String,
    times: Option<(i64, i64)>,
    rows: u64,
}

/// Size of a file, by which it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Small,
    Large,
}

impl Size {
    pub(crate) fn of(rows: usize) -> Self {
        if rows < LARGE { Self::Small } else { Self::Large }
    }
}

impl FileWriter {
    /// Creates a file for mentions from a day on, in the data folder of its table.
    pub(crate) fn create(storage: &Storage, folder: &Path, first: Day, layout: &Layout, size: Size) -> Result<Self> {
        let day = chrono::NaiveDate::from_epoch_days(first).unwrap_or_default();
        Self::named(storage, folder, format!("{day}-{:032x}.parquet", rand::random::<u128>()), layout, size)
    }

    /// Creates a file with a name.
    pub(super) fn named(storage: &Storage, folder: &Path, path: String, layout: &Layout, size: Size) -> Result<Self> {
        let place = folder.join(&path);
        let digested = Digested::new(storage.create(&place).map_err(|error| failed("write", &place, &error))?);
        let schema = Arc::clone(&layout.schema);
        // The types follow from those of Parquet.
        let options = ArrowWriterOptions::new().with_properties(layout.properties(size)).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(digested, schema, options);
        let writer = writer.map_err(|error| unwritten(&place, error))?;
        Ok(Self { writer, layout: layout.clone(), place, path, times: None, rows: 0 })
    }

    /// Writes a file of these mentions, in the layout's columns; sorted by time, and by id among equal times. `None` if there
    /// are none.
    pub(crate) fn of(
        storage: &Storage,
        folder: &Path,
        days: &Range<Day>,
        layout: &Layout,
        batches: &[RecordBatch],
    ) -> Result<Option<DataFile>> {
        let rows = layout.sorted(batches)?;
        if rows.num_rows() == 0 {
            return Ok(None);
        }
        let mut file = Self::create(storage, folder, days.start, layout, Size::of(rows.num_rows()))?;
        file.write(&rows)?;
        file.finish().map(Some)
    }

    /// Number of rows so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Approximate length of the file so far, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.writer.bytes_written() + self.writer.in_progress_size()) as u64
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
        self.writer.write(batch).map_err(|error| unwritten(&self.place, error))
    }

    /// Completes the file and makes it durable under its final name.
    pub(crate) fn finish(mut self) -> Result<DataFile> {
        let metadata = self.writer.finish().map_err(|error| unwritten(&self.place, error))?;
        drop(metadata);
        let written = self.writer.inner_mut();
        written.file.publish().map_err(|error| failed("write", &self.place, &error))?;
        Ok(DataFile {
            path: self.path,
            rows: self.rows,
            bytes: written.length,
            footer: written.footer(),
            times: self.times.unwrap_or_default(),
            schema: self.layout.version,
            digest: HEXLOWER.encode(&written.digest.clone().finalize()),
            blocks: written.blocks.clone().finish(),
        })
    }
}

impl Layout {
    fn properties(&self, size: Size) -> WriterProperties {
        let of = |at: usize| ColumnPath::from(self.schema.field(at).name().as_str());
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).unwrap_or_default()))
            .set_max_row_group_row_count(Some(GROUP))
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(size == Size::Small);
        // Each column has one leaf in the Parquet schema.
        for (at, field) in self.schema.fields().iter().enumerate() {
            let bounded = match size {
                Size::Small => at == self.time || field.name() == AID,
                // Texts have bounds that exclude nothing.
                Size::Large => field.name() == AID || field.data_type().is_primitive(),
            };
            if bounded {
                properties = properties.set_column_statistics_enabled(of(at), EnabledStatistics::Chunk);
            }
        }
        if let Some(id) = self.id.filter(|_| size == Size::Large) {
            properties = properties.set_column_bloom_filter_max_ndv(of(id), GROUP as u64);
        }
        properties.build()
    }
}

/// Reads the rows of a file from a position on, in batches.
#[derive(Debug)]
pub(crate) struct FileReader {
    catalog: Arc<Catalog>,
    path: PathBuf,
    file: Arc<DataFile>,
    /// Position of the next row.
    next: u64,
    rows: Option<ParquetRecordBatchReader>,
    /// Rest of the last batch.
    left: Option<RecordBatch>,
}

impl FileReader {
    /// Nothing is read yet.
    pub(crate) fn new(catalog: &Arc<Catalog>, folder: &Path, file: &Arc<DataFile>) -> Self {
        let (catalog, path, file) = (Arc::clone(catalog), folder.join(&file.path), Arc::clone(file));
        Self { catalog, path, file, next: 0, rows: None, left: None }
    }

    /// Path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Passes consecutive rows on in batches. It is fast if they follow those before.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the file is missing, not a Parquet file or too short.
    pub(crate) fn read(&mut self, rows: &Range<u64>, mut take: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        if self.rows.is_none() || self.next != rows.start {
            let rest = rows.start..self.file.rows;
            self.rows = Some(open(&self.catalog, &self.path, None, std::slice::from_ref(&rest), self.file.rows)?);
            (self.next, self.left) = (rows.start, None);
        }
        while self.next < rows.end {
            let batch = match self.left.take() {
                Some(batch) => batch,
                None => match self.rows.as_mut().and_then(Iterator::next) {
                    Some(batch) => batch.map_err(|error| corrupt(&self.path, &error))?,
                    None => return Err(corrupt(&self.path, &"it has fewer rows than when it was written")),
                },
            };
            let wanted = usize::try_from(rows.end - self.next).unwrap_or(usize::MAX).min(batch.num_rows());
            if wanted < batch.num_rows() {
                self.left = Some(batch.slice(wanted, batch.num_rows() - wanted));
            }
            self.next += wanted as u64;
            take(batch.slice(0, wanted))?;
        }
        Ok(())
    }

    /// True if all rows have been read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.next >= self.file.rows
    }
}

/// Opens a file for reading some of its rows, and only some of its columns if names are given.
fn open(
    catalog: &Catalog,
    path: &Path,
    columns: Option<&[&str]>,
    rows: &[Range<u64>],
    all: u64,
) -> Result<ParquetRecordBatchReader> {
    let file = catalog.storage().open(path).map_err(|error| failed("read", path, &error))?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let file = CheckedFile::new(file, catalog.sums(name)?).map_err(|error| corrupt(path, &error))?;
    let mut reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| corrupt(path, &error))?;
    let found = reader.metadata().file_metadata().num_rows();
    if u64::try_from(found) != Ok(all) {
        return Err(corrupt(path, &format!("it has {found} rows, but {all} according to the catalog")));
    }
    let position = |at: u64| usize::try_from(at.min(all)).unwrap_or(usize::MAX);
    if !matches!(rows, [rows] if *rows == (0..all)) {
        let ranges = rows.iter().map(|rows| position(rows.start)..position(rows.end));
        reader = reader.with_row_selection(RowSelection::from_consecutive_ranges(ranges, position(all)));
    }
    if let Some(names) = columns {
        let columns = ProjectionMask::columns(reader.parquet_schema(), names.iter().copied());
        reader = reader.with_projection(columns);
    }
    reader.with_batch_size(BATCH).build().map_err(|error| corrupt(path, &error))
}

/// Verifies that a file can be opened, and has as many rows as the catalog says.
///
/// # Errors
/// [`ErrorKind::Store`] if it is not so.
pub(crate) fn check(catalog: &Catalog, path: &Path, file: &DataFile) -> Result<()> {
    open(catalog, path, None, std::slice::from_ref(&(0..file.rows)), file.rows).map(drop)
}

/// Reads a file in batches.
///
/// # Errors
/// [`ErrorKind::Store`] if it is missing or not a Parquet file.
pub(crate) fn read(catalog: &Catalog, path: &Path, file: &DataFile) -> Result<Vec<RecordBatch>> {
    read_rows(catalog, path, file, std::slice::from_ref(&(0..file.rows)))?.collect()
}

/// Opens a file, and returns some of its rows, which are in order, in batches.
///
/// # Errors
/// [`ErrorKind::Store`] if it is missing or not a Parquet file.
pub(crate) fn read_rows(
    catalog: &Catalog,
    path: &Path,
    file: &DataFile,
    rows: &[Range<u64>],
) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
    read_columns(catalog, path, file, rows, None)
}

/// Opens a file, and returns some columns of some of its rows, which are in order, in batches; `None`: all columns. Those that the file
/// does not have are left out.
///
/// # Errors
/// [`ErrorKind::Store`] if it is missing or not a Parquet file.
pub(crate) fn read_columns(
    catalog: &Catalog,
    path: &Path,
    file: &DataFile,
    rows: &[Range<u64>],
    columns: Option<&[&str]>,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
    let (batches, path) = (open(catalog, path, columns, rows, file.rows)?, path.to_owned());
    Ok(batches.map(move |batch| batch.map_err(|error| corrupt(&path, &error))))
}

/// Passes some columns of all rows of a file on in batches until something is found in one. Returns whether it was.
///
/// # Errors
/// [`ErrorKind::Store`] if it is missing or not a Parquet file.
pub(crate) fn find(
    catalog: &Catalog,
    path: &Path,
    file: &DataFile,
    columns: &[&str],
    mut is_found: impl FnMut(RecordBatch) -> Result<bool>,
) -> Result<bool> {
    for batch in open(catalog, path, Some(columns), std::slice::from_ref(&(0..file.rows)), file.rows)? {
        if is_found(batch.map_err(|error| corrupt(path, &error))?)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Counts the rows of a file, among some of them, whose times are within a range, in microseconds since 1970.
///
/// # Errors
/// [`ErrorKind::Store`] if it is missing or not a Parquet file.
pub(crate) fn count_within(
    catalog: &Catalog,
    path: &Path,
    file: &DataFile,
    rows: &Range<u64>,
    time: &str,
    within: &Range<i64>,
) -> Result<u64> {
    let mut count = 0;
    for batch in open(catalog, path, Some(&[time]), std::slice::from_ref(rows), file.rows)? {
        let batch = batch.map_err(|error| corrupt(path, &error))?;
        let times = batch.column(0).as_primitive_opt::<TimestampMicrosecondType>();
        count += times.into_iter().flat_map(|times| times.values()).filter(|time| within.contains(time)).count() as u64;
    }
    Ok(count)
}

/// Returns the digest of a file's contents, as in [`DataFile::digest`].
pub(crate) fn digest_of(storage: &Storage, path: &Path) -> io::Result<String> {
    let (mut digest, file) = (Sha256::new(), storage.open(path)?);
    let (mut next, length) = (0, file.length()?);
    let mut bytes = vec![0; 64 << 10];
    while next < length {
        let part = usize::try_from(length - next).unwrap_or(usize::MAX).min(bytes.len());
        file.read_exact_at(next, &mut bytes[..part])?;
        digest.update(&bytes[..part]);
        next += part as u64;
    }
    Ok(HEXLOWER.encode(&digest.finalize()))
}

/// Returns the values of a file's column of ids as texts, of some rows.
///
/// # Errors
/// [`ErrorKind::Store`] if it is missing or not a Parquet file.
pub(crate) fn ids(
    catalog: &Catalog,
    path: &Path,
    file: &DataFile,
    rows: &[Range<u64>],
    id: &str,
) -> Result<Vec<String>> {
    Ok(row_ids(catalog, path, file, rows, id)?.into_iter().flatten().collect())
}

/// Returns the value of a file's column of ids in each of some rows as text; `None` if it is NULL.
///
/// # Errors
/// [`ErrorKind::Store`] if it is missing or not a Parquet file.
pub(crate) fn row_ids(
    catalog: &Catalog,
    path: &Path,
    file: &DataFile,
    rows: &[Range<u64>],
    id: &str,
) -> Result<Vec<Option<String>>> {
    let mut ids = Vec::new();
    for batch in open(catalog, path, Some(&[id]), rows, file.rows)? {
        let batch = batch.map_err(|error| corrupt(path, &error))?;
        // The file may be older than the column.
        let Some(column) = batch.columns().first() else {
            ids.resize(ids.len() + batch.num_rows(), None);
            continue;
        };
        let texts = texts(column).map_err(|error| corrupt(path, &error))?;
        ids.extend(texts.iter().map(|id| id.map(str::to_owned)));
    }
    Ok(ids)
}

/// Writes the positions of rows of a file that are deleted, as DuckLake's readers expect them, and makes them durable.
///
/// # Errors
/// [`ErrorKind::Store`] if they cannot be written.
pub(crate) fn write_deletes(storage: &Storage, folder: &Path, of: &str, rows: &[Range<u64>]) -> Result<DataFile> {
    let field = |(name, kind, id): (&str, DataType, i64)| {
        Field::new(name, kind, false).with_metadata([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())].into())
    };
    let schema = Arc::new(Schema::new(DELETES.map(field).to_vec()));
    let layout = Layout { schema, time: 0, id: None, first_seen: None, version: 0 };
    let positions = rows.iter().cloned().flatten().filter_map(|at| i64::try_from(at).ok());
    let positions: Int64Array = positions.collect();
    let of = StringArray::from(vec![of; positions.len()]);
    let columns: Vec<ArrayRef> = vec![Arc::new(of), Arc::new(positions)];
    let batch = RecordBatch::try_new(Arc::clone(&layout.schema), columns).map_err(broken)?;
    // Readers of a folder of Parquet files would take it for one of mentions.
    let path = format!("{:032x}.deletes", rand::random::<u128>());
    let mut file = FileWriter::named(storage, folder, path, &layout, Size::Small)?;
    file.writer.write(&batch).map_err(|error| unwritten(&file.place, error))?;
    file.rows = batch.num_rows() as u64;
    file.finish()
}

/// Reads the positions of deleted rows, in order.
///
/// # Errors
/// [`ErrorKind::Store`] if the file is missing or not a Parquet file.
pub(crate) fn deleted_rows(storage: &Storage, path: &Path) -> Result<Vec<Range<u64>>> {
    let file = storage.open(path).map_err(|error| failed("read", path, &error))?;
    let file = CheckedFile::new(file, None).map_err(|error| corrupt(path, &error))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| corrupt(path, &error))?;
    let [_, (positions, ..)] = DELETES;
    let column = ProjectionMask::columns(reader.parquet_schema(), [positions]);
    let mut all: Vec<u64> = Vec::new();
    for batch in reader.with_projection(column).build().map_err(|error| corrupt(path, &error))? {
        let batch = batch.map_err(|error| corrupt(path, &error))?;
        let positions = batch.columns().first().and_then(|column| column.as_primitive_opt::<Int64Type>());
        all.extend(
            positions.into_iter().flat_map(|positions| positions.values()).filter_map(|at| u64::try_from(*at).ok()),
        );
    }
    all.sort_unstable();
    let mut rows: Vec<Range<u64>> = Vec::new();
    for at in all {
        match rows.last_mut().filter(|last| at <= last.end) {
            Some(last) => last.end = last.end.max(at + 1),
            None => rows.push(at..at + 1),
        }
    }
    Ok(rows)
}

/// Returns a column of ids as texts.
pub(crate) fn texts(ids: &ArrayRef) -> std::result::Result<StringArray, ArrowError> {
    Ok(arrow::compute::cast(ids, &DataType::Utf8)?.as_string::<i32>().clone())
}

pub(crate) fn failed(what: &str, path: &Path, error: &io::Error) -> Error {
    let advice = match error.kind() {
        // Its name is random; it is in `data/TABLE` of the folder.
        _ if has_no_space(error) => return full(path.ancestors().nth(3).unwrap_or(path)),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Phrase::from("check its permissions") + Setting::Store.to("read").after(", or ")
        }
        io::ErrorKind::NotFound => unreadable(),
        _ => Setting::Store.to("off").then(" bypasses the store").into(),
    };
    Error::new(ErrorKind::Store, format!("cannot {what} {}: {error}", path.display())).advice(advice)
}

/// Advice for a file that cannot be read, or whose rows contradict the catalog.
pub(crate) fn unreadable() -> Phrase {
    Phrase::from(Tool::VerifyStore)
        + " tells how to replace damaged files"
        + Setting::Store.to("off").after("; ").then(" bypasses the store")
}

pub(super) fn corrupt(path: &Path, error: &impl std::fmt::Display) -> Error {
    let error = error.to_string();
    // What the Parquet reader adds says nothing more.
    let what = if error.contains(CHANGED) { CHANGED } else { error.as_str() };
    Error::new(ErrorKind::Store, format!("cannot read {}: {what}", path.display())).advice(unreadable())
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Store, format!("cannot write mentions to the store: {error}"))
}

/// The error of a file that could not be written. The Parquet writer wraps errors of the disk.
fn unwritten(path: &Path, error: impl StdError + 'static) -> Error {
    let first: &(dyn StdError + 'static) = &error;
    let of_disk = successors(Some(first), |&error| error.source()).find_map(|error| error.downcast_ref::<io::Error>());
    match of_disk {
        Some(of_disk) => failed("write", path, of_disk),
        None => broken(error),
    }
}

/// End of the message about a disk without space.
pub(crate) const NO_SPACE: &str = "no space left on the disk";
/// Number of bytes by which a disk is examined: twice as many as SQLite needs to open a catalog.
const PROBED: usize = 64 << 10;

/// The error for a store, in a folder, whose disk has no space. A query can do without the store; all others need space.
pub(crate) fn full(folder: &Path) -> Error {
    Error::new(ErrorKind::Store, format!("cannot write to {}: {NO_SPACE}", folder.display())).advice("free space")
}

/// True for the error for a disk without space.
pub(crate) fn is_full(error: &Error) -> bool {
    error.message().ends_with(NO_SPACE)
}

/// True for a disk, or a quota of it, without space.
pub(crate) fn has_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// True if nothing fits on the disk of a folder, for errors that do not name their cause.
pub(crate) fn is_disk_full(folder: &Path) -> bool {
    probe(folder, PROBED).is_err_and(|error| has_no_space(&error))
}

/// Returns the reason why nothing can be written to a folder; `None` if something can.
pub(super) fn refusal(folder: &Path) -> Option<Error> {
    let error = probe(folder, PROBED).err()?;
    Some(if has_no_space(&error) { full(folder) } else { failed("write to", folder, &error) })
}

/// Tries to write a number of bytes to a folder.
pub(super) fn probe(folder: &Path, bytes: usize) -> io::Result<()> {
    tempfile::tempfile_in(folder).and_then(|mut file| file.write_all(&vec![1; bytes]))
}

#[cfg(test)]
mod tests {
    use parquet::errors::ParquetError;

    use super::*;

    #[test]
    fn a_disk_without_space_is_one_error_whoever_reports_it() {
        let path = Path::new("/stores/news/data/mentions/2026-06-01-7f.parquet");
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let expected = "cannot write to /stores/news: no space left on the disk; free space";
        for error in [failed("write", path, &full()), unwritten(path, ParquetError::from(full()))] {
            assert_eq!(error.to_string(), expected);
            assert!(is_full(&error));
        }
        let other = unwritten(path, ParquetError::General("no schema".to_owned()));
        assert!(!is_full(&other) && other.to_string().contains("no schema"), "{other}");
        let broken = unwritten(path, ParquetError::from(io::Error::from(io::ErrorKind::BrokenPipe))).to_string();
        assert!(!broken.contains("External"), "{broken}");
        let folder = tempfile::tempdir().expect("a folder");
        assert!(!is_disk_full(folder.path()) && refusal(folder.path()).is_none());
        refusal(&folder.path().join("none")).expect("missing");
    }
}
