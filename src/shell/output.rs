//! Results in the format asked for, to stdout or to a file.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::csv::WriterBuilder as CsvBuilder;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use arrow::json::writer::{JsonArray, LineDelimited, Writer as JsonWriter, WriterBuilder as JsonBuilder};
use console::Term;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::chart::Drawing;
use super::screen::{Display, Rest, Screen, Shown};
use super::{picture, table};
use crate::error::nearest;

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table for people. Held until the result is whole, since widths depend on all rows; on a terminal they depend on
    /// those of a screenful.
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
    /// A chart for people, of a time or a category and numbers. Held until the result is whole.
    Chart,
    /// The same as a picture, SVG.
    Svg,
    /// The same as a picture, PNG.
    Png,
}

impl Format {
    /// Names on the command line.
    pub const NAMES: [&str; 11] =
        ["table", "csv", "tsv", "json", "ndjson", "markdown", "arrow", "parquet", "chart", "svg", "png"];
    /// All of them, in the order of their names.
    const ALL: [Self; 11] = [
        Self::Table,
        Self::Csv,
        Self::Tsv,
        Self::Json,
        Self::Ndjson,
        Self::Markdown,
        Self::Arrow,
        Self::Parquet,
        Self::Chart,
        Self::Svg,
        Self::Png,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    fn is_binary(self) -> bool {
        matches!(self, Self::Arrow | Self::Parquet | Self::Png)
    }

    /// Whether a file of it holds one result.
    fn is_single(self) -> bool {
        self.is_binary() || self == Self::Svg
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().zip(Self::NAMES).find(|(_, known)| *known == name);
        found.map(|(format, _)| format).ok_or_else(|| {
            let near = nearest(name, Self::NAMES).map_or(String::new(), |near| format!("; did you mean {near}?"));
            format!("`{name}` is no format: expected one of {}{near}", Self::NAMES.join(", "))
        })
    }
}

/// Where results go.
#[derive(Debug)]
pub struct Output {
    format: Format,
    target: Target,
    results: usize,
    /// Whether the last one was not ended yet.
    under_way: bool,
    /// How tables are shown to somebody who sits before the terminal.
    display: Option<Display>,
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
        /// Bytes before the result that is being written.
        before: u64,
    },
}

impl Output {
    /// Results go to stdout.
    ///
    /// # Errors
    /// Where a binary format would go to a terminal.
    pub fn stdout(format: Format) -> io::Result<Self> {
        if format.is_binary() && io::stdout().is_terminal() {
            return Err(io::Error::other("this format is binary: it goes to a file, by -o, or \\o in the shell"));
        }
        Ok(Self { format, target: Target::Stdout, results: 0, under_way: false, display: None })
    }

    /// Results go to a file, which is replaced once [`Output::close`] says that all went well.
    ///
    /// # Errors
    /// Where the file cannot be made.
    pub fn file(format: Format, path: &Path) -> io::Result<Self> {
        if std::fs::metadata(path).is_ok_and(|target| !target.is_file()) {
            // A pipe or a device is written to as it is; replacing it would be a surprise.
            let file = File::options().write(true).open(path)?;
            return Ok(Self {
                format,
                target: Target::Device(Arc::new(file)),
                results: 0,
                under_way: false,
                display: None,
            });
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
        let target = Target::File { partial, path, file, whole: false, before: 0 };
        Ok(Self { format, target, results: 0, under_way: false, display: None })
    }

    /// The same, for somebody who sits before the terminal: tables fit it, and go through a pager.
    #[must_use]
    pub fn displaying(mut self, display: Display) -> Self {
        self.display = Some(display);
        self
    }

    /// Results that were begun.
    pub(super) fn results(&self) -> usize {
        self.results
    }

    /// The result that was begun last is whole.
    pub(super) fn ended(&mut self) {
        self.under_way = false;
    }

    /// The file that does not have its name yet.
    pub(super) fn partial(&self) -> Option<&Path> {
        match &self.target {
            Target::File { partial, .. } => Some(partial),
            Target::Stdout | Target::Device(_) => None,
        }
    }

    /// Takes back the result that was begun last and could not be ended, where it went to a file.
    ///
    /// # Errors
    /// Where the file cannot be cut.
    pub(super) fn take_back(&mut self) -> io::Result<()> {
        if let Target::File { file, before, .. } = &self.target
            && self.under_way
        {
            file.set_len(*before)?;
            file.as_ref().seek(SeekFrom::Start(*before))?;
            self.results -= 1;
            self.under_way = false;
        }
        Ok(())
    }

    /// Begins the result of a statement.
    pub(super) fn begin(&mut self, schema: SchemaRef) -> io::Result<ResultWriter> {
        if self.results > 0 && self.format.is_single() {
            return Err(io::Error::other("this format holds one result, and there is a second one"));
        }
        if let Target::File { file, before, .. } = &mut self.target {
            *before = file.as_ref().stream_position()?;
        }
        self.results += 1;
        self.under_way = true;
        let terminal = matches!(self.target, Target::Stdout) && io::stdout().is_terminal();
        if let (true, Format::Table, Some(display)) = (terminal, self.format, &self.display) {
            return Ok(ResultWriter::on_screen(display.clone(), schema));
        }
        let sink: Box<dyn Write + Send> = match &self.target {
            // A chart has colours of its own, and names that are harmless.
            Target::Stdout if terminal && self.format != Format::Chart => Box::new(Harmless(io::stdout())),
            Target::Stdout => Box::new(io::stdout()),
            Target::Device(file) | Target::File { file, .. } => Box::new(Arc::clone(file)),
        };
        let mut sink = BufWriter::new(sink);
        if self.results > 1 && self.format == Format::Markdown {
            // Two tables without a line between them are one.
            writeln!(sink)?;
        }
        Ok(ResultWriter::new(self.format, schema, sink, terminal))
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
            Target::File { partial, path, file, whole, .. } => {
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

/// A terminal that is sent nothing which moves its cursor or colours it, whatever is in the data.
struct Harmless<W>(W);

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The writers write whole texts; a character that is cut in two is nothing that a terminal obeys.
        let text = String::from_utf8_lossy(bytes);
        let harmless = |c: char| if c.is_control() && !matches!(c, '\n' | '\t' | '\r') { '\u{fffd}' } else { c };
        let shown: String = text.chars().map(harmless).collect();
        self.0.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
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
    rows: usize,
    /// Whether lines go to a terminal.
    terminal: bool,
}

enum Writer {
    Screen(Box<Screen>),
    Held {
        sink: Sink,
        batches: Vec<RecordBatch>,
        format: Format,
        on_screen: bool,
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
    fn new(format: Format, schema: SchemaRef, sink: Sink, terminal: bool) -> Self {
        let json = || JsonBuilder::new().with_explicit_nulls(true);
        let writer = match format {
            Format::Table | Format::Markdown | Format::Chart | Format::Svg | Format::Png => {
                Writer::Held { sink, batches: Vec::new(), format, on_screen: terminal }
            }
            Format::Csv => Writer::Csv { sink, separator: b',', header: true },
            Format::Tsv => Writer::Csv { sink, separator: b'\t', header: true },
            Format::Json => Writer::Json(json().build(sink)),
            Format::Ndjson => Writer::Ndjson(json().build(sink)),
            Format::Arrow => Writer::Arrow(Begun::Not(Some(sink))),
            Format::Parquet => Writer::Parquet(Begun::Not(Some(sink))),
        };
        Self { schema, writer, rows: 0, terminal }
    }

    fn on_screen(display: Display, schema: SchemaRef) -> Self {
        let writer = Writer::Screen(Box::new(Screen::new(display, Arc::clone(&schema))));
        Self { schema, writer, rows: 0, terminal: true }
    }

    /// Whether a batch would be printed to the terminal now.
    pub(super) fn would_print(&self, batch: &RecordBatch) -> bool {
        match &self.writer {
            Writer::Screen(screen) => screen.would_print(batch),
            Writer::Held { .. } => false,
            _ => self.terminal,
        }
    }

    /// Takes a batch; line formats have written it when this returns. Where it says that something is left over, no more
    /// is wanted.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> io::Result<Rest> {
        if batch.num_rows() == 0 {
            return Ok(Rest::Nothing);
        }
        self.rows += batch.num_rows();
        match &mut self.writer {
            Writer::Screen(screen) => return screen.write(batch),
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
        Ok(Rest::Nothing)
    }

    /// Ends the result, and says what was shown of it.
    pub(super) fn finish(self) -> io::Result<Shown> {
        let Self { schema, writer, rows, .. } = self;
        let shown = Shown { rows, ..Shown::default() };
        match writer {
            Writer::Screen(screen) => return screen.finish(),
            Writer::Held { mut sink, batches, format, on_screen } => {
                held(&mut sink, &schema, &batches, format, on_screen)?;
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
        }?;
        Ok(shown)
    }
}

/// Writes a result that had to be whole.
fn held(
    sink: &mut Sink,
    schema: &SchemaRef,
    batches: &[RecordBatch],
    format: Format,
    on_screen: bool,
) -> io::Result<()> {
    let lines = match format {
        Format::Table | Format::Markdown => table::whole(schema, batches, format == Format::Markdown)?,
        Format::Chart | Format::Svg | Format::Png => {
            let drawing = Drawing::of(schema, batches).map_err(io::Error::other)?;
            if format == Format::Png && picture::lacks_letters(&drawing) {
                eprintln!("note: the font of PNGs has Latin, Greek and Cyrillic letters only: svg has all");
            }
            match format {
                Format::Svg => vec![picture::svg(&drawing).map_err(io::Error::other)?],
                Format::Png => return sink.write_all(&picture::png(&drawing).map_err(io::Error::other)?),
                // A file takes no colours.
                _ => {
                    drawing.text(terminal_width(), on_screen && console::colors_enabled()).map_err(io::Error::other)?
                }
            }
        }
        _ => Vec::new(),
    };
    lines.iter().try_for_each(|line| writeln!(sink, "{line}"))
}

/// Characters of a line on the terminal; where there is none, those that most have.
pub(super) fn terminal_width() -> usize {
    let terminal = Term::stdout();
    if terminal.is_term() { usize::from(terminal.size().1) } else { 80 }
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
