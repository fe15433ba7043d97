//! Results in the format asked for, to stdout or to a file.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::csv::WriterBuilder as CsvBuilder;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use arrow::json::writer::{JsonArray, LineDelimited, Writer as JsonWriter, WriterBuilder as JsonBuilder};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use comfy_table::{Cell, CellAlignment, Table, presets};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table for people. Held until the result is whole, since widths depend on all rows.
    Table,
    /// Comma-separated values, RFC 4180, with a header; NULL is empty, lists are JSON.
    Csv,
    /// As `csv`, separated by tabs.
    Tsv,
    /// One JSON array of objects.
    Json,
    /// One JSON object a line.
    Ndjson,
    /// A Markdown table. Held until the result is whole.
    Markdown,
    /// An Arrow IPC stream.
    Arrow,
    /// A Parquet file, compressed with zstd.
    Parquet,
}

impl Format {
    /// Names on the command line.
    pub const NAMES: [&str; 8] = ["table", "csv", "tsv", "json", "ndjson", "markdown", "arrow", "parquet"];

    fn is_binary(self) -> bool {
        matches!(self, Self::Arrow | Self::Parquet)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Ok(match name {
            "table" => Self::Table,
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "json" => Self::Json,
            "ndjson" => Self::Ndjson,
            "markdown" => Self::Markdown,
            "arrow" => Self::Arrow,
            "parquet" => Self::Parquet,
            _ => return Err(format!("`{name}` is no format: expected one of {}", Self::NAMES.join(", "))),
        })
    }
}

/// Where results go.
#[derive(Debug)]
pub struct Output {
    format: Format,
    target: Target,
    results: usize,
}

#[derive(Debug)]
enum Target {
    Stdout,
    /// Written as it is: a pipe or a device.
    Device(Arc<File>),
    /// Written beside its final name, which it takes when all results are whole.
    File {
        partial: PathBuf,
        path: PathBuf,
        file: Arc<File>,
        whole: bool,
    },
}

impl Output {
    /// Results go to stdout.
    ///
    /// # Errors
    /// Where a binary format would go to a terminal.
    pub fn stdout(format: Format) -> io::Result<Self> {
        if format.is_binary() && io::stdout().is_terminal() {
            return Err(io::Error::other("this format is binary: name a file with -o, or redirect the output"));
        }
        Ok(Self { format, target: Target::Stdout, results: 0 })
    }

    /// Results go to a file, which is replaced once [`Output::close`] says that all went well.
    ///
    /// # Errors
    /// Where the file cannot be made.
    pub fn file(format: Format, path: &Path) -> io::Result<Self> {
        if std::fs::metadata(path).is_ok_and(|target| !target.is_file()) {
            // A pipe or a device is written to as it is; replacing it would be a surprise.
            let file = File::options().write(true).open(path)?;
            return Ok(Self { format, target: Target::Device(Arc::new(file)), results: 0 });
        }
        // A link keeps pointing where it does; the file behind it is replaced, by one beside it.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut name = path.file_name().ok_or_else(|| io::Error::other("this is no file name"))?.to_owned();
        name.push(".partial");
        let partial = path.with_file_name(name);
        let file = Arc::new(File::create_new(&partial).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => io::Error::other(format!("{} is in the way", partial.display())),
            _ => error,
        })?);
        Ok(Self { format, target: Target::File { partial, path, file, whole: false }, results: 0 })
    }

    /// Begins the result of a statement.
    pub(super) fn begin(&mut self, schema: SchemaRef) -> io::Result<ResultWriter> {
        self.results += 1;
        if self.results > 1 && self.format.is_binary() {
            return Err(io::Error::other("this format holds one result, and there is a second one"));
        }
        let sink: Box<dyn Write + Send> = match &self.target {
            Target::Stdout => Box::new(io::stdout()),
            Target::Device(file) | Target::File { file, .. } => Box::new(Arc::clone(file)),
        };
        let mut sink = BufWriter::new(sink);
        if self.results > 1 && self.format == Format::Markdown {
            // Two tables without a line between them are one.
            writeln!(sink)?;
        }
        Ok(ResultWriter::new(self.format, schema, sink))
    }

    /// Gives a file its name.
    ///
    /// # Errors
    /// Where the file cannot be renamed or stdout not be flushed.
    pub fn close(mut self) -> io::Result<()> {
        match &mut self.target {
            Target::Stdout => io::stdout().flush(),
            Target::Device(_) => Ok(()),
            // Without a result there is nothing to replace a file with.
            Target::File { .. } if self.results == 0 => Ok(()),
            Target::File { partial, path, file, whole } => {
                if let Ok(replaced) = std::fs::metadata(&*path) {
                    file.set_permissions(replaced.permissions())?;
                }
                file.sync_all()?;
                std::fs::rename(partial, path)?;
                *whole = true;
                Ok(())
            }
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Target::File { partial, whole: false, .. } = &self.target {
            // A leftover partial file is named as such; there is nobody to tell.
            let _ = std::fs::remove_file(partial);
        }
    }
}

type Sink = BufWriter<Box<dyn Write + Send>>;

/// A writer that puts something into its sink as soon as it is made.
enum Begun<W> {
    Not(Option<Sink>),
    Yes(Box<W>),
}

impl<W> Begun<W> {
    fn writer(&mut self, make: impl FnOnce(Sink) -> io::Result<W>) -> io::Result<&mut W> {
        if let Self::Not(sink) = self {
            let sink = sink.take().ok_or_else(|| io::Error::other("the result could not be begun"))?;
            *self = Self::Yes(Box::new(make(sink)?));
        }
        match self {
            Self::Yes(writer) => Ok(writer),
            Self::Not(_) => Err(io::Error::other("the result could not be begun")),
        }
    }

    fn finish(mut self, make: impl FnOnce(Sink) -> io::Result<W>) -> io::Result<W> {
        self.writer(make)?;
        match self {
            Self::Yes(writer) => Ok(*writer),
            Self::Not(_) => Err(io::Error::other("the result could not be begun")),
        }
    }
}

fn arrow_writer(schema: &SchemaRef) -> impl FnOnce(Sink) -> io::Result<StreamWriter<Sink>> {
    |sink| StreamWriter::try_new(sink, schema).map_err(io_error)
}

fn parquet_writer(schema: &SchemaRef) -> impl FnOnce(Sink) -> io::Result<ArrowWriter<Sink>> {
    |sink| {
        let zstd = Compression::ZSTD(ZstdLevel::default());
        let properties = WriterProperties::builder().set_compression(zstd).build();
        ArrowWriter::try_new(sink, Arc::clone(schema), Some(properties)).map_err(parquet_error)
    }
}

/// Writes the batches of one result.
pub(super) struct ResultWriter {
    schema: SchemaRef,
    writer: Writer,
}

enum Writer {
    Held {
        sink: Sink,
        batches: Vec<RecordBatch>,
        markdown: bool,
    },
    Csv {
        sink: Sink,
        separator: u8,
        header: bool,
    },
    Json(JsonWriter<Sink, JsonArray>),
    Ndjson(JsonWriter<Sink, LineDelimited>),
    /// Begun with the first row: what fails before it leaves nothing behind.
    Arrow(Begun<StreamWriter<Sink>>),
    Parquet(Begun<ArrowWriter<Sink>>),
}

impl ResultWriter {
    fn new(format: Format, schema: SchemaRef, sink: Sink) -> Self {
        let json = || JsonBuilder::new().with_explicit_nulls(true);
        let writer = match format {
            Format::Table => Writer::Held { sink, batches: Vec::new(), markdown: false },
            Format::Markdown => Writer::Held { sink, batches: Vec::new(), markdown: true },
            Format::Csv => Writer::Csv { sink, separator: b',', header: true },
            Format::Tsv => Writer::Csv { sink, separator: b'\t', header: true },
            Format::Json => Writer::Json(json().build(sink)),
            Format::Ndjson => Writer::Ndjson(json().build(sink)),
            Format::Arrow => Writer::Arrow(Begun::Not(Some(sink))),
            Format::Parquet => Writer::Parquet(Begun::Not(Some(sink))),
        };
        Self { schema, writer }
    }

    /// Takes a batch; line formats have written it when this returns.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        match &mut self.writer {
            Writer::Held { batches, .. } => batches.push(batch.clone()),
            Writer::Csv { sink, separator, header } => {
                sink.write_all(&csv(batch, *separator, std::mem::take(header))?)?;
                sink.flush()?;
            }
            Writer::Json(writer) => writer.write(batch).map_err(io_error)?,
            Writer::Ndjson(writer) => {
                writer.write(batch).map_err(io_error)?;
                writer.get_mut().flush()?;
            }
            Writer::Arrow(begun) => begun.writer(arrow_writer(&self.schema))?.write(batch).map_err(io_error)?,
            Writer::Parquet(begun) => {
                begun.writer(parquet_writer(&self.schema))?.write(batch).map_err(parquet_error)?
            }
        }
        Ok(())
    }

    /// Ends the result.
    pub(super) fn finish(self) -> io::Result<()> {
        let Self { schema, writer } = self;
        match writer {
            Writer::Held { mut sink, batches, markdown } => {
                writeln!(sink, "{}", table(&schema, &batches, markdown)?)?;
                sink.flush()
            }
            Writer::Csv { mut sink, separator, header } => {
                if header {
                    // An empty result still has its header.
                    sink.write_all(&csv(&RecordBatch::new_empty(schema), separator, true)?)?;
                }
                sink.flush()
            }
            Writer::Json(mut writer) => {
                writer.finish().map_err(io_error)?;
                let mut sink = writer.into_inner();
                writeln!(sink)?;
                sink.flush()
            }
            Writer::Ndjson(mut writer) => {
                writer.finish().map_err(io_error)?;
                writer.into_inner().flush()
            }
            Writer::Arrow(begun) => begun.finish(arrow_writer(&schema))?.into_inner().map_err(io_error)?.flush(),
            Writer::Parquet(begun) => {
                begun.finish(parquet_writer(&schema))?.into_inner().map_err(parquet_error)?.flush()
            }
        }
    }
}

/// The cause itself where it is one of I/O, so that a closed pipe is seen as such.
fn io_error(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}

fn parquet_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    }
}

/// The lines of a batch. They are made in memory, since the CSV writer hides the cause of an error of its sink.
fn csv(batch: &RecordBatch, separator: u8, header: bool) -> io::Result<Vec<u8>> {
    let mut writer = CsvBuilder::new().with_header(header).with_delimiter(separator).build(Vec::new());
    writer.write(&flat(batch)?).map_err(io_error)?;
    Ok(writer.into_inner())
}

/// The batch with nested columns as JSON texts, which CSV has no form for.
fn flat(batch: &RecordBatch) -> io::Result<RecordBatch> {
    let schema = batch.schema();
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if field.data_type().is_nested() {
            fields.push(Arc::new(Field::new(field.name(), DataType::Utf8, true)));
            columns.push(json_texts(field.name(), column)?);
        } else {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(io_error)
}

/// Each value of a nested column as JSON.
fn json_texts(name: &str, column: &ArrayRef) -> io::Result<ArrayRef> {
    let field = Field::new(name, column.data_type().clone(), true);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::clone(column)]).map_err(io_error)?;
    let mut writer = JsonBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
    writer.write(&batch).map_err(io_error)?;
    writer.finish().map_err(io_error)?;
    let lines = String::from_utf8(writer.into_inner()).map_err(io::Error::other)?;
    // Each line is {"<name>":<value>}.
    let start = serde_json::Value::from(name).to_string().len() + 2;
    let texts = lines.lines().enumerate().map(|(row, line)| column.is_valid(row).then(|| &line[start..line.len() - 1]));
    Ok(Arc::new(texts.collect::<StringArray>()))
}

/// A table for people: NULL visible, numbers to the right, one line a row.
fn table(schema: &SchemaRef, batches: &[RecordBatch], markdown: bool) -> io::Result<Table> {
    let mut table = Table::new();
    table.load_preset(if markdown { presets::ASCII_MARKDOWN } else { presets::ASCII_FULL_CONDENSED });
    table.set_header(schema.fields().iter().map(|field| cell(field.name(), markdown)));
    for (column, field) in table.column_iter_mut().zip(schema.fields()) {
        if field.data_type().is_numeric() {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // The lines of a plan are its structure; those of other texts would tear the table apart.
    let lines = !markdown && schema.fields().last().is_some_and(|field| field.name() == "plan");
    let cell = |text: &str| if lines { Cell::new(text) } else { cell(text, markdown) };
    let options = FormatOptions::default().with_null("NULL");
    for batch in batches {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns: Vec<_> = columns.collect::<Result<_, _>>().map_err(io_error)?;
        for row in 0..batch.num_rows() {
            table.add_row(columns.iter().map(|column| cell(&column.value(row).to_string())));
        }
    }
    Ok(table)
}

fn cell(text: &str, markdown: bool) -> Cell {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            '|' if markdown => shown.push_str("\\|"),
            // Anything else that would move the cursor or colour the screen.
            c if c.is_control() => shown.push('\u{fffd}'),
            c => shown.push(c),
        }
    }
    Cell::new(shown)
}
