//! Where results go, and in which format: to stdout, to a file that appears when it is whole, to a pipe.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use console::Term;

use super::screen::Display;
use super::writer::ResultWriter;
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
        if std::mem::take(&mut self.under_way) {
            self.results -= 1;
            if let Target::File { file, before, .. } = &self.target {
                file.set_len(*before)?;
                file.as_ref().seek(SeekFrom::Start(*before))?;
            }
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
        let harmless = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c };
        let shown: String = text.chars().map(harmless).collect();
        self.0.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Characters of a line on the terminal; where there is none, those that most have.
pub(super) fn terminal_width() -> usize {
    let terminal = Term::stdout();
    if terminal.is_term() { usize::from(terminal.size().1) } else { 80 }
}
