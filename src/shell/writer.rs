//! Writers of result batches, by format.
//!
//! Line formats are written as batches arrive; other formats are held until the result is complete. If a result fails before
//! its first row, nothing is written.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use arrow::json::writer::{JsonArray, LineDelimited, Writer as JsonWriter, WriterBuilder as JsonBuilder};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::chart::{Covered, Drawing};
use super::csv::Style;
use super::heat_map::HeatMap;
use super::output::{ChartForm, ChartOptions, CsvDialect, Format, OutputOptions, chart_height, terminal_width};
use super::screen::{Display, Screen};
use super::workbook::{Book, Sheets};
use super::{csv, picture, table};
use crate::numbers::counted;
use crate::wording::{Rest, Shown};

/// Destination of a result's bytes.
pub(super) type Sink = BufWriter<Box<dyn Write + Send>>;

/// Writes the batches of one result.
pub(super) struct ResultWriter {
    schema: SchemaRef,
    writer: Writer,
    rows: usize,
    /// Set if lines go to a terminal.
    terminal: bool,
    /// Prints one column per line, in the table format.
    expanded: bool,
    /// Zone in which text formats show instants; UTC if `None`.
    zone: Option<Arc<str>>,
    charts: ChartOptions,
    /// Span of time that the rows cover, if it is known.
    covered: Option<Covered>,
}

enum Writer {
    Screen(Box<Screen>),
    Held {
        sink: Sink,
        batches: Vec<RecordBatch>,
        format: Format,
    },
    Csv {
        sink: Sink,
        style: Style,
        header: bool,
    },
    Json(JsonWriter<Sink, JsonArray>),
    Ndjson(JsonWriter<Sink, LineDelimited>),
    /// Begun with the first row, so that an earlier failure writes nothing.
    Arrow(Begun<StreamWriter<Sink>>),
    Parquet(Begun<ArrowWriter<Sink>>),
    Xlsx(Box<Sheets>),
}

impl ResultWriter {
    /// Writer to a sink; set `terminal` if its lines go to a terminal.
    pub(super) fn new(format: Format, schema: SchemaRef, sink: Sink, terminal: bool, options: &OutputOptions) -> Self {
        let excel = options.csv.dialect == CsvDialect::Excel;
        let csv = |separator| Style { separator, excel };
        let json = || JsonBuilder::new().with_explicit_nulls(true);
        let writer = match format {
            Format::Table | Format::Markdown | Format::Chart | Format::Svg | Format::Png => {
                Writer::Held { sink, batches: Vec::new(), format }
            }
            Format::Csv => Writer::Csv { sink, style: csv(options.csv.separator.unwrap_or(b',')), header: true },
            Format::Tsv => Writer::Csv { sink, style: csv(b'\t'), header: true },
            Format::Json => Writer::Json(json().build(sink)),
            Format::Ndjson => Writer::Ndjson(json().build(sink)),
            Format::Arrow => Writer::Arrow(Begun::Not(Some(sink))),
            Format::Parquet => Writer::Parquet(Begun::Not(Some(sink))),
            // Written by `in_book`.
            Format::Xlsx => Writer::Held { sink, batches: Vec::new(), format: Format::Table },
        };
        let charts = options.charts.clone();
        Self { schema, writer, rows: 0, terminal, expanded: false, zone: None, charts, covered: None }
    }

    /// Writer of a table for a person at the terminal.
    pub(super) fn on_screen(display: Display, schema: SchemaRef, zone: Option<Arc<str>>) -> Self {
        let shown = in_zone(&schema, zone.as_deref());
        let writer = Writer::Screen(Box::new(Screen::new(display, shown)));
        let charts = ChartOptions::default();
        Self { schema, writer, rows: 0, terminal: true, expanded: false, zone, charts, covered: None }
    }

    /// Writer of the sheets of a result in a workbook.
    pub(super) fn in_book(book: Book, result: usize, schema: SchemaRef, zone: Option<Arc<str>>) -> io::Result<Self> {
        let writer = Writer::Xlsx(Box::new(Sheets::begin(book, result, in_zone(&schema, zone.as_deref()))?));
        let charts = ChartOptions::default();
        Ok(Self { schema, writer, rows: 0, terminal: false, expanded: false, zone, charts, covered: None })
    }

    /// Prints one column per line, in the table format.
    pub(super) fn expanded(self, expanded: bool) -> Self {
        Self { expanded, ..self }
    }

    /// Marks the periods of charts that the rows do not cover.
    pub(super) fn covering(self, covered: Option<Covered>) -> Self {
        Self { covered, ..self }
    }

    /// Shows instants in a zone, in text formats. Binary formats keep UTC, which is part of their type.
    pub(super) fn in_zone(self, zone: Option<Arc<str>>) -> Self {
        let binary = matches!(self.writer, Writer::Arrow(_) | Writer::Parquet(_));
        Self { zone: zone.filter(|_| !binary), ..self }
    }

    /// True if a batch would be printed to the terminal now.
    pub(super) fn would_print(&self, batch: &RecordBatch) -> bool {
        match &self.writer {
            Writer::Screen(screen) => screen.would_print(batch),
            Writer::Held { .. } => false,
            _ => self.terminal,
        }
    }

    /// Takes a batch; line formats have written it on return. Any result but [`Rest::Nothing`] means that no more rows are
    /// wanted.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> io::Result<Rest> {
        if batch.num_rows() == 0 {
            return Ok(Rest::Nothing);
        }
        let batch = &zoned(batch, self.zone.as_deref())?;
        self.rows += batch.num_rows();
        match &mut self.writer {
            Writer::Screen(screen) => return screen.write(batch),
            Writer::Held { batches, .. } => batches.push(batch.clone()),
            Writer::Csv { sink, style, header } => {
                // Written to memory first, so that an error of the sink is recognized.
                sink.write_all(&lines(batch, *style, std::mem::take(header))?)?;
                sink.flush()?;
            }
            Writer::Json(writer) => writer.write(batch).map_err(io_error)?,
            Writer::Ndjson(writer) => {
                writer.write(batch).map_err(io_error)?;
                writer.get_mut().flush()?;
            }
            Writer::Xlsx(sheets) => sheets.write(&flat(batch)?)?,
            Writer::Arrow(begun) => begun.writer(arrow_writer(&self.schema))?.write(batch).map_err(io_error)?,
            Writer::Parquet(begun) => {
                begun.writer(parquet_writer(&self.schema))?.write(batch).map_err(parquet_error)?
            }
        }
        Ok(Rest::Nothing)
    }

    /// Completes the result. Adds a line to `notes` for what the format does not show.
    pub(super) fn finish(self, notes: &mut Vec<String>) -> io::Result<Shown> {
        let Self { schema, writer, rows, terminal, expanded, zone, charts, covered } = self;
        let schema = in_zone(&schema, zone.as_deref());
        let shown = Shown { rows, ..Shown::default() };
        match writer {
            Writer::Screen(screen) => return screen.finish(),
            Writer::Held { mut sink, batches, format } => {
                match format {
                    Format::Chart | Format::Svg | Format::Png => {
                        notes.extend(drawn(&mut sink, &schema, &batches, format, terminal, &charts, covered)?);
                    }
                    _ => held(&mut sink, &schema, &batches, format, expanded)?,
                }
                sink.flush()
            }
            Writer::Csv { mut sink, style, header } => {
                if header {
                    // An empty result still has a header.
                    sink.write_all(&lines(&RecordBatch::new_empty(schema), style, true)?)?;
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
            Writer::Xlsx(sheets) => {
                let cut = sheets.finish()?;
                if cut > 0 {
                    let cut = counted(cut as u64, "value");
                    notes.push(format!("warning: {cut} cut to 32,767 characters, the limit of a cell"));
                }
                Ok(())
            }
            Writer::Arrow(begun) => begun.finish(arrow_writer(&schema))?.into_inner().map_err(io_error)?.flush(),
            Writer::Parquet(begun) => {
                begun.finish(parquet_writer(&schema))?.into_inner().map_err(parquet_error)?.flush()
            }
        }?;
        Ok(shown)
    }
}

/// Writes a complete result.
fn held(
    sink: &mut Sink,
    schema: &SchemaRef,
    batches: &[RecordBatch],
    format: Format,
    expanded: bool,
) -> io::Result<()> {
    let lines = match format {
        Format::Table if expanded => {
            let (mut lines, mut begun) = (Vec::new(), 0);
            for batch in batches {
                lines.extend(table::expanded(batch, begun, usize::MAX)?);
                begun += batch.num_rows();
            }
            lines
        }
        _ => table::whole(schema, batches, format == Format::Markdown)?,
    };
    lines.iter().try_for_each(|line| writeln!(sink, "{line}"))
}

/// Writes a complete result as a chart, with instants in the zone of its days. Returns a note on a letter that a picture lacks.
fn drawn(
    sink: &mut Sink,
    schema: &SchemaRef,
    batches: &[RecordBatch],
    format: Format,
    terminal: bool,
    charts: &ChartOptions,
    covered: Option<Covered>,
) -> io::Result<Option<String>> {
    let zone = covered.and_then(|covered| covered.zone).map(|zone| zone.to_string());
    let (schema, batches) = (&in_zone(schema, zone.as_deref()), &all_zoned(batches, zone.as_deref())?);
    let svg = || svg_of(schema, batches, charts, covered).map_err(io::Error::other);
    match format {
        Format::Svg => writeln!(sink, "{}", svg()?)?,
        Format::Png => {
            let (png, missing) = picture::png(&svg()?, charts).map_err(io::Error::other)?;
            sink.write_all(&png)?;
            let note = |letter: char| {
                format!("note: no font on the machine that drew the picture has `{letter}`; use svg, or install one")
            };
            return Ok(missing.map(note));
        }
        _ => {
            let drawing = drawing_of(schema, batches, charts, covered).map_err(io::Error::other)?;
            // Colours are for terminals only.
            let color = terminal && console::colors_enabled();
            let lines = drawing.text(terminal_width(), chart_height(), color).map_err(io::Error::other)?;
            lines.iter().try_for_each(|line| writeln!(sink, "{line}"))?;
        }
    }
    Ok(None)
}

/// Draws rows as an SVG picture.
///
/// # Errors
/// One line for rows of which no chart can be drawn.
pub(crate) fn chart_svg(schema: &SchemaRef, batches: &[RecordBatch], charts: &ChartOptions) -> Result<String, String> {
    svg_of(schema, batches, charts, None)
}

/// Draws rows in the form of the options.
fn svg_of(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    charts: &ChartOptions,
    covered: Option<Covered>,
) -> Result<String, String> {
    if charts.form == ChartForm::Heatmap {
        let map = HeatMap::of(schema, batches)?.titled(charts.title.as_deref()).covering(covered);
        return Ok(picture::heat_map(&map, charts));
    }
    picture::svg(&drawing_of(schema, batches, charts, covered)?, charts)
}

/// The chart of rows in the form of the options, with the periods marked that the rows do not cover.
fn drawing_of(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    charts: &ChartOptions,
    covered: Option<Covered>,
) -> Result<Drawing, String> {
    Drawing::of(schema, batches)?.titled(charts.title.as_deref()).covering(covered).in_form(charts.form)
}

/// The schema with instants in a zone.
pub(crate) fn in_zone(schema: &SchemaRef, zone: Option<&str>) -> SchemaRef {
    let Some(zone) = zone else { return Arc::clone(schema) };
    let field = |field: &Arc<Field>| match field.data_type() {
        DataType::Timestamp(unit, Some(_)) => {
            let kind = DataType::Timestamp(*unit, Some(zone.into()));
            Arc::new(field.as_ref().clone().with_data_type(kind))
        }
        _ => Arc::clone(field),
    };
    let fields: Vec<_> = schema.fields().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The batch with instants in a zone.
pub(crate) fn zoned(batch: &RecordBatch, zone: Option<&str>) -> io::Result<RecordBatch> {
    if zone.is_none() {
        return Ok(batch.clone());
    }
    let schema = in_zone(&batch.schema(), zone);
    let column = |(column, field): (&ArrayRef, &Arc<Field>)| match field.data_type() {
        kind @ DataType::Timestamp(_, Some(_)) => cast(column, kind),
        _ => Ok(Arc::clone(column)),
    };
    let columns = batch.columns().iter().zip(schema.fields()).map(column);
    let columns = columns.collect::<Result<Vec<_>, _>>().map_err(io_error)?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema, columns, &options).map_err(io_error)
}

/// The batches with instants in a zone.
fn all_zoned(batches: &[RecordBatch], zone: Option<&str>) -> io::Result<Vec<RecordBatch>> {
    batches.iter().map(|batch| zoned(batch, zone)).collect()
}

/// Unwraps an I/O error, so that a closed pipe is recognized.
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

/// Lines of CSV of a batch.
fn lines(batch: &RecordBatch, style: Style, header: bool) -> io::Result<Vec<u8>> {
    csv::lines(&flat(batch)?, style, header).map_err(io_error)
}

/// Converts nested columns to JSON strings: CSV cannot represent them.
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

/// Returns each value of a nested column as JSON.
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

/// A writer that writes to its sink as soon as it is created.
enum Begun<W> {
    Not(Option<Sink>),
    Yes(Box<W>),
}

impl<W> Begun<W> {
    fn writer(&mut self, make: impl FnOnce(Sink) -> io::Result<W>) -> io::Result<&mut W> {
        if let Self::Not(sink) = self {
            let sink = sink.take().ok_or_else(|| io::Error::other("the result could not be started"))?;
            *self = Self::Yes(Box::new(make(sink)?));
        }
        match self {
            Self::Yes(writer) => Ok(writer),
            Self::Not(_) => Err(io::Error::other("the result could not be started")),
        }
    }

    fn finish(mut self, make: impl FnOnce(Sink) -> io::Result<W>) -> io::Result<W> {
        self.writer(make)?;
        match self {
            Self::Yes(writer) => Ok(*writer),
            Self::Not(_) => Err(io::Error::other("the result could not be started")),
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
