//! Destination and format of results: stdout, a pipe, or a file that appears once it is complete.

use std::fs::{File, TryLockError};
use std::io::{self, BufWriter, IsTerminal, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

#[cfg(feature = "ui")]
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use console::Term;
use serde::Deserialize;

use super::chart::Covered;
use super::screen::Display;
#[cfg(feature = "ui")]
use super::workbook::Book;
use super::writer::ResultWriter;
use crate::error::nearest;
#[cfg(feature = "ui")]
use crate::memory;
use crate::numbers::counted;
use crate::session::{shown_name, unique_names, with_schema};

/// Format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A text table. Printed once the result is complete, because column widths depend on all rows; on a terminal, they
    /// depend on the first screen of rows.
    Table,
    /// Comma-separated values, RFC 4180, with a header; NULL is empty, lists are JSON.
    Csv,
    /// As `csv`, separated by tabs.
    Tsv,
    /// One JSON array of objects.
    Json,
    /// One JSON object per line.
    Ndjson,
    /// A Markdown table. Printed once the result is complete.
    Markdown,
    /// An Arrow IPC stream.
    Arrow,
    /// A Parquet file, compressed with zstd.
    Parquet,
    /// A chart in the terminal, of a time or category column and numbers. Printed once the result is complete.
    Chart,
    /// The chart as an SVG picture.
    Svg,
    /// The chart as a PNG picture.
    Png,
    /// An Excel workbook, with a sheet for each result.
    Xlsx,
}

impl Format {
    /// Names on the command line.
    pub const NAMES: [&str; 12] =
        ["table", "csv", "tsv", "json", "ndjson", "markdown", "arrow", "parquet", "chart", "svg", "png", "xlsx"];
    /// All of them, in the order of their names.
    const ALL: [Self; 12] = [
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
        Self::Xlsx,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    fn is_binary(self) -> bool {
        matches!(self, Self::Arrow | Self::Parquet | Self::Png | Self::Xlsx)
    }

    /// Formats by the extension of a file. The first extension of a format is the usual one.
    const EXTENSIONS: [(&str, Self); 15] = [
        ("csv", Self::Csv),
        ("tsv", Self::Tsv),
        ("xlsx", Self::Xlsx),
        ("json", Self::Json),
        ("ndjson", Self::Ndjson),
        ("jsonl", Self::Ndjson),
        ("parquet", Self::Parquet),
        ("arrow", Self::Arrow),
        ("arrows", Self::Arrow),
        ("ipc", Self::Arrow),
        ("md", Self::Markdown),
        ("markdown", Self::Markdown),
        ("txt", Self::Table),
        ("svg", Self::Svg),
        ("png", Self::Png),
    ];

    /// Returns the format of a file by its extension; `None` for a name without one.
    ///
    /// # Errors
    /// One line with the supported extensions, for any other extension, because the file would not contain the format that
    /// its name suggests.
    pub fn of_file(path: &Path) -> Result<Option<Self>, String> {
        let Some(extension) = path.extension() else { return Ok(None) };
        let name = extension.to_string_lossy().to_lowercase();
        if let Some((_, format)) = Self::EXTENSIONS.iter().find(|(known, _)| *known == name) {
            return Ok(Some(*format));
        }
        if std::fs::metadata(path).is_ok_and(|target| !target.is_file()) {
            return Ok(None);
        }
        let names: Vec<String> = Self::EXTENSIONS.iter().map(|(name, _)| format!(".{name}")).collect();
        Err(format!(
            "cannot write {}: unsupported extension .{}; use one of {}, or choose a format with --format",
            path.display(),
            extension.display(),
            names.join(", ")
        ))
    }

    /// True if the columns of a result must have different names.
    fn has_unique_names(self) -> bool {
        matches!(self, Self::Json | Self::Ndjson | Self::Parquet)
    }

    /// True if results are drawn.
    pub(super) fn is_chart(self) -> bool {
        matches!(self, Self::Chart | Self::Svg | Self::Png)
    }

    /// True if a reader of a file can tell several results apart.
    pub(super) fn holds_several(self) -> bool {
        matches!(self, Self::Table | Self::Markdown | Self::Chart | Self::Xlsx)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().zip(Self::NAMES).find(|(_, known)| known.eq_ignore_ascii_case(name));
        found.map(|(format, _)| format).ok_or_else(|| {
            let near = nearest(name, Self::NAMES).map_or(String::new(), |near| format!("; did you mean {near}?"));
            format!("unknown format `{name}`; available: {}{near}", Self::NAMES.join(", "))
        })
    }
}

/// Options of charts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChartOptions {
    /// Width and height of pictures in pixels; a default if `None`. Charts in a terminal have its width.
    pub size: Option<(u32, u32)>,
    /// Width of pictures in pixels that have no `size`: their height is the default for this width.
    pub width: Option<u32>,
    /// Title, empty for none; made from the names of the columns if `None`.
    pub title: Option<String>,
    /// Form of charts.
    pub form: ChartForm,
}

/// Form of a chart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum ChartForm {
    /// Lines over time, points over numbers, and bars of categories.
    #[default]
    Auto,
    /// Lines over times or numbers.
    Lines,
    /// Bars: one for each time, number or category.
    Bars,
    /// Series on each other: areas over time, and bars of categories.
    Stacked,
    /// Points at times or numbers.
    Points,
    /// Shades by weekday and hour: of times, which are counted or whose numbers are added, or of columns with a weekday, an hour
    /// and a number.
    Heatmap,
}

impl ChartForm {
    /// All forms, with their names on the command line and in addresses of the page, and what they are.
    pub const ALL: [(Self, &str, &str); 6] = [
        (Self::Auto, "auto", "Lines over time, points over numbers, and bars of categories"),
        (Self::Lines, "lines", "Lines over times or numbers"),
        (Self::Bars, "bars", "Bars: one for each time, number or category"),
        (Self::Stacked, "stacked", "Series on each other, in svg and png"),
        (Self::Points, "points", "Points at times or numbers, in svg and png"),
        (Self::Heatmap, "heatmap", "Shades by weekday and hour, in svg and png"),
    ];

    /// Checks that charts of a format can have the form.
    ///
    /// # Errors
    /// One line, for a form that charts in a terminal cannot have.
    pub fn check(self, format: Format) -> Result<(), String> {
        match (format, self) {
            (Format::Chart, Self::Stacked | Self::Points | Self::Heatmap) => {
                Err("charts in a terminal are lines or bars; write another form with -o FILE.svg".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl FromStr for ChartForm {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(_, known, _)| *known == name);
        found.map(|(form, ..)| form).ok_or_else(|| {
            let names = Self::ALL.map(|(_, known, _)| known);
            format!("unknown form `{name}`; available: {}", names.join(", "))
        })
    }
}

impl TryFrom<String> for ChartForm {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

/// Options of CSV.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CsvOptions {
    /// Program that will read the values.
    pub dialect: CsvDialect,
    /// Character between values; a comma if `None`. `tsv` has tabs in any case.
    pub separator: Option<u8>,
}

/// Dialect of CSV, by the program that will read it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum CsvDialect {
    /// Programs: RFC 4180, instants in RFC 3339, numbers with a decimal point.
    #[default]
    Standard,
    /// Excel and other spreadsheets: a byte order mark, because they assume another encoding without it; local times without
    /// an offset; a decimal comma if the separator is a semicolon; and no text that would be read as a formula or a rounded
    /// number.
    Excel,
}

impl CsvDialect {
    /// All dialects, with their names on the command line.
    pub const ALL: [(Self, &str); 2] = [(Self::Standard, "standard"), (Self::Excel, "excel")];
}

impl FromStr for CsvDialect {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(_, known)| *known == name);
        found.map(|(dialect, _)| dialect).ok_or_else(|| {
            format!("unknown dialect `{name}`; available: {}", Self::ALL.map(|(_, known)| known).join(", "))
        })
    }
}

impl TryFrom<String> for CsvDialect {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl OutputOptions {
    /// Refuses options that results in this format ignore.
    ///
    /// # Errors
    /// One line.
    pub fn check(&self, format: Format) -> Result<(), String> {
        if self.csv != CsvOptions::default() && format != Format::Csv {
            return Err(
                "--csv-dialect and --csv-separator need results in csv: use --format csv or -o FILE.csv".to_owned()
            );
        }
        if self.charts != ChartOptions::default() && !format.is_chart() {
            return Err("options of charts need a chart: use --format chart or -o FILE.svg".to_owned());
        }
        Ok(())
    }
}

impl CsvOptions {
    /// Parses a separator: a character that cannot be a part of a number or begin a quoted value, or `tab`.
    ///
    /// # Errors
    /// One line with separators, for anything else.
    pub fn separator_of(text: &str) -> Result<u8, String> {
        match text.as_bytes() {
            b"tab" | b"\\t" => Ok(b'\t'),
            [c] if c.is_ascii_punctuation() && !matches!(c, b'"' | b'\'' | b'.' | b'-' | b'=') || *c == b'\t' => Ok(*c),
            _ => Err("expected a character such as ; , | or tab".to_owned()),
        }
    }
}

/// Options of formats.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputOptions {
    /// Options of charts.
    pub charts: ChartOptions,
    /// Options of CSV.
    pub csv: CsvOptions,
}

/// Destination of results.
#[derive(Debug)]
pub struct Output {
    format: Format,
    target: Target,
    results: usize,
    /// Set while a result is being written.
    in_progress: bool,
    /// Layout of tables for a person at the terminal.
    display: Option<Display>,
    /// Zone in which text formats show instants; UTC if `None`.
    zone: Option<Arc<str>>,
    options: OutputOptions,
    written: Written,
    /// Span of time that the next result covers, if it is known.
    covered: Option<Covered>,
    /// Results so far, in the format that puts them together at the end.
    book: Option<Book>,
    /// Sheets of the workbook before the current result.
    sheets: usize,
}

/// Content of the results, for the line at their end.
#[derive(Debug, Default)]
struct Written {
    rows: usize,
    requests: u64,
    incomplete: bool,
    /// Set if a result is one of a service.
    is_of_service: bool,
}

#[derive(Debug)]
enum Target {
    Stdout,
    /// A pipe or device, written directly.
    Device(Arc<File>),
    /// Written to a partial file, which is renamed once all results are complete.
    File {
        partial: PathBuf,
        path: PathBuf,
        /// The path as the user wrote it.
        name: PathBuf,
        file: Arc<File>,
        complete: bool,
        /// Length of the file before the current result.
        before: u64,
    },
}

impl Output {
    /// Output to stdout.
    ///
    /// # Errors
    /// A binary format would go to a terminal.
    pub fn stdout(format: Format) -> io::Result<Self> {
        if format.is_binary() && io::stdout().is_terminal() {
            return Err(io::Error::other("this format is binary; write it to a file with -o, or \\o at the prompt"));
        }
        Ok(Self::to(format, Target::Stdout))
    }

    fn to(format: Format, target: Target) -> Self {
        let options = OutputOptions::default();
        let written = Written::default();
        let (display, zone, book, covered) = (None, None, None, None);
        Self {
            format,
            target,
            results: 0,
            in_progress: false,
            display,
            zone,
            options,
            written,
            covered,
            book,
            sheets: 0,
        }
    }

    /// Output to a file, which is replaced by [`Output::close`].
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn file(format: Format, path: &Path) -> io::Result<Self> {
        if is_our_stdout(path) {
            return Self::stdout(format);
        }
        if std::fs::metadata(path).is_ok_and(|target| !target.is_file()) {
            // A pipe or device is written directly; replacing it by a file would be a surprise.
            let file = File::options().write(true).open(path)?;
            return Ok(Self::to(format, Target::Device(Arc::new(file))));
        }
        let given = path.to_owned();
        // A symbolic link stays; the file that it points to is replaced.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut name = path.file_name().ok_or_else(|| io::Error::other("not a file name"))?.to_owned();
        name.push(".partial");
        let partial = path.with_file_name(name);
        let file = Arc::new(partial_file(&partial)?);
        Ok(Self::to(format, Target::File { partial, path, name: given, file, complete: false, before: 0 }))
    }

    /// The schema with the names that the format shows: several columns may have the same name, unless the format forbids
    /// it.
    pub(super) fn named(&self, schema: &Schema) -> SchemaRef {
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let names: Vec<String> = match self.format.has_unique_names() {
            true => unique_names(names),
            false => names.map(|name| shown_name(name).to_owned()).collect(),
        };
        let fields = schema.fields().iter().zip(names).map(|(field, name)| Field::clone(field).with_name(name));
        Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
    }

    /// Shows tables on a terminal: they fit its width, and long tables go through a pager.
    #[must_use]
    pub fn displaying(mut self, display: Display) -> Self {
        self.display = Some(display);
        self
    }

    /// Writes results with these options.
    #[must_use]
    pub fn with(mut self, options: OutputOptions) -> Self {
        self.options = options;
        self
    }

    pub(super) fn options(&self) -> &OutputOptions {
        &self.options
    }

    /// Changes the layout of the results that follow.
    pub(super) fn show_as(&mut self, display: Display) {
        self.display = Some(display);
    }

    /// Shows the instants of the results that follow in a zone; an empty name means UTC.
    pub(super) fn show_times_in(&mut self, zone: String) {
        self.zone = Some(zone.into()).filter(|zone: &Arc<str>| !zone.is_empty());
    }

    /// Marks the periods of charts that the results that follow do not cover.
    pub(super) fn cover(&mut self, covered: Option<Covered>) {
        self.covered = covered;
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// True if the results are written to a file, and not to stdout, a pipe or a device.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.target, Target::File { .. })
    }

    /// Counts the rows of a result.
    pub(super) fn count_rows(&mut self, rows: usize) {
        self.written.rows += rows;
    }

    /// Counts the requests of a result that is one of a service.
    pub(super) fn count_requests(&mut self, requests: u64) {
        self.written.requests += requests;
        self.written.is_of_service = true;
    }

    /// Notes that rows of a result are missing.
    pub(super) fn lacks_rows(&mut self) {
        self.written.incomplete = true;
    }

    /// Line about results that are complete, such as `wrote week.csv: 1,524 rows · 16 requests · complete`. Results that go
    /// elsewhere than to a file have one without its name, if one of them is of a service and no person sees them arrive at a
    /// terminal. `None` without a result.
    pub(super) fn summary(&self) -> Option<String> {
        let Written { rows, requests, incomplete, is_of_service } = self.written;
        let wrote = match &self.target {
            Target::File { name, .. } => format!("wrote {}: ", name.display()),
            Target::Device(_) if is_of_service => String::new(),
            Target::Stdout if is_of_service && !io::stdout().is_terminal() => String::new(),
            Target::Stdout | Target::Device(_) => return None,
        };
        let results = match self.results {
            0 => return None,
            1 => String::new(),
            results => format!("{results} results · "),
        };
        let requests = if requests == 0 { "no requests".to_owned() } else { counted(requests, "request") };
        let complete = if incomplete { "INCOMPLETE" } else { "complete" };
        Some(format!("{wrote}{results}{} · {requests} · {complete}", counted(rows as u64, "row")))
    }

    pub(super) fn is_stdout(&self) -> bool {
        matches!(self.target, Target::Stdout)
    }

    /// Marks the current result as complete.
    pub(super) fn ended(&mut self) {
        self.in_progress = false;
    }

    /// Path of the partial file.
    pub(super) fn partial(&self) -> Option<&Path> {
        match &self.target {
            Target::File { partial, .. } => Some(partial),
            Target::Stdout | Target::Device(_) => None,
        }
    }

    /// Removes an incomplete result from a file.
    ///
    /// # Errors
    /// The file cannot be truncated.
    pub(super) fn take_back(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.in_progress) {
            self.results -= 1;
            if let Some(book) = &self.book {
                book.truncate(self.sheets);
            }
            if let Target::File { file, before, .. } = &self.target {
                file.set_len(*before)?;
                file.as_ref().seek(SeekFrom::Start(*before))?;
            }
        }
        Ok(())
    }

    /// Refuses a result that could not be written, before a request is sent for it.
    ///
    /// # Errors
    /// - A reader could not tell it from the result before it, because the format holds one result per file. On stdout, in a
    ///   pipe or a device only binary formats do: the reader sees the results arrive one after another.
    /// - Charts of the format cannot have the form that was chosen.
    pub(super) fn check_next(&self) -> io::Result<()> {
        self.options.charts.form.check(self.format).map_err(io::Error::other)?;
        let full = match &self.target {
            Target::File { .. } => !self.format.holds_several(),
            Target::Stdout | Target::Device(_) => {
                (self.format.is_binary() || self.format == Format::Svg) && !self.format.holds_several()
            }
        };
        match full && self.results > 0 {
            true => Err(io::Error::other(one_result(self.format))),
            false => Ok(()),
        }
    }

    /// Begins a result.
    ///
    /// # Errors
    /// Those of [`check_next`](Self::check_next), and errors of the file.
    pub(super) fn begin(&mut self, schema: SchemaRef) -> io::Result<ResultWriter> {
        self.check_next()?;
        if let Target::File { file, before, .. } = &mut self.target {
            *before = file.as_ref().stream_position()?;
        }
        self.results += 1;
        self.in_progress = true;
        if self.format == Format::Xlsx {
            let book = self.book.get_or_insert_default();
            self.sheets = book.sheets();
            return ResultWriter::in_book(book.clone(), self.results, schema, self.zone.clone());
        }
        let terminal = matches!(self.target, Target::Stdout) && io::stdout().is_terminal();
        let expanded = self.display.as_ref().is_some_and(|display| display.expanded);
        if let (true, Format::Table, Some(display)) = (terminal, self.format, &self.display) {
            return Ok(ResultWriter::on_screen(display.clone(), schema, self.zone.clone()));
        }
        let sink: Box<dyn Write + Send> = match &self.target {
            // Charts contain our own colour sequences, and their names are already clean.
            Target::Stdout if terminal && self.format != Format::Chart => Box::new(Sanitized(io::stdout())),
            Target::Stdout => Box::new(io::stdout()),
            Target::Device(file) | Target::File { file, .. } => Box::new(Arc::clone(file)),
        };
        let mut sink = BufWriter::new(sink);
        if self.results > 1 && self.format == Format::Markdown {
            // Without an empty line between them two tables would be one.
            writeln!(sink)?;
        }
        let writer = ResultWriter::new(self.format, schema, sink, terminal, &self.options).expanded(expanded);
        Ok(writer.in_zone(self.zone.clone()).covering(self.covered))
    }

    /// Flushes stdout, or gives a file its final name.
    ///
    /// # Errors
    /// The file cannot be renamed, or stdout not be flushed.
    pub fn close(mut self) -> io::Result<()> {
        if let Some(book) = self.book.take() {
            match &self.target {
                Target::Stdout => book.send(io::stdout().lock())?,
                Target::Device(file) => book.send(file.as_ref())?,
                Target::File { file, .. } => book.save(file)?,
            }
        }
        match &mut self.target {
            Target::Stdout => io::stdout().flush(),
            Target::Device(_) => Ok(()),
            // Without a result an existing file stays.
            Target::File { .. } if self.results == 0 => Ok(()),
            Target::File { partial, path, file, complete, .. } => {
                if let Ok(replaced) = std::fs::metadata(&*path) {
                    file.set_permissions(replaced.permissions())?;
                }
                file.sync_all()?;
                std::fs::rename(partial, path)?;
                *complete = true;
                Ok(())
            }
        }
    }
}

/// Writes a complete result to a file, with the times of text formats in a zone. Returns a line for each thing that the format
/// does not show.
///
/// # Errors
/// Those of the batches and of the file, what a format cannot show, and those of [`memory::room`].
#[cfg(feature = "ui")]
pub(crate) fn write_file(
    (format, path): (Format, &Path),
    options: OutputOptions,
    schema: &Schema,
    batches: impl Iterator<Item = io::Result<RecordBatch>>,
    (covered, zone): (Option<Covered>, &str),
) -> io::Result<Vec<String>> {
    let mut output = Output::file(format, path)?.with(options);
    output.cover(covered);
    output.show_times_in(zone.to_owned());
    let schema = output.named(schema);
    let mut writer = output.begin(Arc::clone(&schema))?;
    for batch in batches {
        let batch = with_schema(batch?, &schema).map_err(io::Error::other)?;
        // Some formats hold what was written until they are complete.
        let _room = memory::room(batch.get_array_memory_size() as u64).map_err(io::Error::other)?;
        writer.write(&batch)?;
    }
    memory::check().map_err(io::Error::other)?;
    let mut notes = Vec::new();
    writer.finish(&mut notes)?;
    output.ended();
    output.close()?;
    Ok(notes)
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Target::File { partial, complete: false, .. } = &self.target {
            // Drop cannot report a failure; the name of a leftover shows what it is.
            let _ = std::fs::remove_file(partial);
        }
    }
}

/// Message for a second result in a file.
pub(super) fn one_result(format: Format) -> String {
    format!(
        "a {} file holds one result; run one statement, give each its own file with \\o FILE, or use .xlsx, .md or .txt",
        format.name()
    )
}

/// Creates the partial file of a result, and locks it for as long as it is open. The lock shows that its writer lives: one
/// that was left behind by a killed process is replaced.
fn partial_file(partial: &Path) -> io::Result<File> {
    /// Two processes may replace the same file at once; one of them then begins again.
    const TRIES: usize = 10;
    let is = |file: &File| {
        let here = std::fs::symlink_metadata(partial).ok()?;
        let file = file.metadata().ok()?;
        Some((here.dev(), here.ino()) == (file.dev(), file.ino()))
    };
    for _ in 0..TRIES {
        match File::create_new(partial) {
            Ok(file) => match file.try_lock() {
                // Between the two steps another process may have taken it for one that was left behind.
                Ok(()) if is(&file) == Some(true) => return Ok(file),
                // The file system has no locks, so that the next process cannot know who writes.
                Err(TryLockError::Error(_)) => return Ok(file),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
            },
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let open = |partial: &Path| match std::fs::symlink_metadata(partial)?.is_file() {
                    true => File::open(partial),
                    false => Err(io::ErrorKind::InvalidInput.into()),
                };
                let left = match open(partial) {
                    Ok(left) => left,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(_) => return Err(in_the_way(partial)),
                };
                match left.try_lock() {
                    // Removed, not truncated: the name may be a second one of another file.
                    Ok(()) if is(&left) == Some(true) => std::fs::remove_file(partial)?,
                    Ok(()) => {}
                    Err(TryLockError::WouldBlock) => {
                        let line = format!("another process is writing it, to {}", partial.display());
                        return Err(io::Error::other(line));
                    }
                    Err(TryLockError::Error(_)) => return Err(in_the_way(partial)),
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(in_the_way(partial))
}

fn in_the_way(partial: &Path) -> io::Error {
    io::Error::other(format!("{} already exists; remove it if no other process is writing to it", partial.display()))
}

/// Writer to a terminal that replaces control characters, so that data cannot move the cursor or change colours.
struct Sanitized<W>(W);

impl<W: Write> Write for Sanitized<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The writers write complete strings; half a character would not be a control sequence anyway.
        let text = String::from_utf8_lossy(bytes);
        let sanitized = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c };
        let shown: String = text.chars().map(sanitized).collect();
        self.0.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// True for the file that stdout was redirected to, under its own name or as `/dev/stdout`: to replace it would take it from
/// whoever has it open.
fn is_our_stdout(path: &Path) -> bool {
    let file = |path: &Path| std::fs::metadata(path).map(|file| (file.dev(), file.ino()));
    matches!((file(path), file(Path::new("/dev/stdout"))), (Ok(this), Ok(stdout)) if this == stdout)
}

/// Height of a line chart in lines: a third of the terminal, at least 16 and at most 30.
pub(super) fn chart_height() -> u16 {
    let terminal = Term::stdout();
    let lines = if terminal.is_term() { terminal.size().0 } else { 0 };
    (lines / 3).clamp(16, 30)
}

/// Width of the terminal in columns; 80 if stdout is not a terminal.
pub(super) fn terminal_width() -> usize {
    let terminal = Term::stdout();
    if terminal.is_term() { usize::from(terminal.size().1) } else { 80 }
}
