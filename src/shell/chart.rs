//! A result as a chart: what is drawn, and drawing it in a terminal.
//!
//! The first column is what goes along: time (a line over it) or a category (a bar each). Numbers follow, each a series. A text
//! between the two, as in `SELECT day, source, count(*)`, makes a series of each of its values.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Float64Type, Int64Type, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use chrono::DateTime;
use console::{measure_text_width, pad_str, style, truncate_str};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Alignment, Rect};
use ratatui_core::style::{Color, Style};
use ratatui_core::symbols::Marker;
use ratatui_core::widgets::Widget;
use ratatui_widgets::chart::{Axis, Chart, Dataset, GraphType};

/// What is drawn.
#[derive(Debug, PartialEq)]
pub(super) struct Drawing {
    /// What goes along.
    pub(super) along: Along,
    /// What its points are called, in order.
    pub(super) labels: Vec<String>,
    /// Each series by its name, a value a label.
    pub(super) series: Vec<(String, Vec<Option<f64>>)>,
}

/// What goes along the first axis.
#[derive(Debug, PartialEq)]
pub(super) enum Along {
    /// Instants, as numbers that are as far apart as they are.
    Time(Vec<f64>),
    /// Names, in the order of the result.
    Category,
}

/// Series that can be told apart in one picture.
const SERIES: usize = 12;
/// Bars that fit into one picture.
pub(super) const BARS: usize = 60;
/// Lines of a drawing in a terminal.
const HEIGHT: u16 = 16;
/// Markers of series with their signs in the legend, in order.
const MARKERS: [(Marker, &str); 4] =
    [(Marker::Braille, "⠒"), (Marker::Dot, "•"), (Marker::Block, "█"), (Marker::Bar, "▄")];
/// Colours of series, in order.
const COLORS: [Color; 6] = [Color::Cyan, Color::Yellow, Color::Green, Color::Magenta, Color::Blue, Color::Red];

impl Drawing {
    /// What a result shows.
    ///
    /// # Errors
    /// One line that says which columns a chart takes.
    pub(super) fn of(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Self, String> {
        let wrong = |what: &str| {
            let columns = schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type()));
            let columns: Vec<String> = columns.take(6).collect();
            format!(
                "a chart takes a time or a category, then numbers, as in SELECT day, count(*) or SELECT day, source, count(*): \
                 {what} in ({})",
                columns.join(", ")
            )
        };
        let failed = |error: ArrowError| error.to_string();
        let batch = concat_batches(schema, batches).map_err(failed)?;
        let Some((first, rest)) = batch.columns().split_first() else { return Err(wrong("there is no column")) };
        if rest.is_empty() {
            return Err(wrong("there is no number"));
        }
        if batch.num_rows() == 0 {
            return Err("the result has no rows to draw".to_owned());
        }
        let texts = names(first).map_err(failed)?;
        let times = time_numbers(first).map_err(failed)?;
        let by_value = rest.len() == 2 && !is_number(&rest[0]) && is_number(&rest[1]);
        let numbers = if by_value { &rest[1..] } else { rest };
        if !numbers.iter().all(is_number) {
            return Err(wrong("not all others are numbers"));
        }
        // Points of one name are one point; a time that is missing is no point.
        let (mut labels, mut instants, mut places) = (Vec::<String>::new(), Vec::new(), Vec::new());
        for (row, text) in texts.iter().enumerate() {
            let place = labels.iter().position(|label| label == text).filter(|_| by_value);
            places.push(place.unwrap_or(labels.len()));
            if place.is_none() {
                labels.push(text.clone());
                instants.extend(times.as_ref().map(|times| times[row]));
            }
        }
        let mut series: Vec<(String, Vec<Option<f64>>)> = Vec::new();
        let fields = &schema.fields()[batch.num_columns() - numbers.len()..];
        for (column, field) in numbers.iter().zip(fields) {
            let values = cast(column, &DataType::Float64).map_err(failed)?;
            let values = values.as_primitive::<Float64Type>();
            let which =
                if by_value { names(&rest[0]).map_err(failed)? } else { vec![field.name().clone(); places.len()] };
            for (row, (name, place)) in which.into_iter().zip(&places).enumerate() {
                let at = series.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                    series.push((name, vec![None; labels.len()]));
                    series.len() - 1
                });
                series[at].1[*place] =
                    values.is_valid(row).then(|| values.value(row)).filter(|value| value.is_finite());
            }
        }
        if series.len() > SERIES {
            return Err(format!("{} series are too many to tell apart: {SERIES} can be drawn", series.len()));
        }
        let along = if times.is_some() { Along::Time(instants) } else { Along::Category };
        let drawing = Self { along, labels, series };
        if drawing.along == Along::Category && drawing.labels.len() > BARS {
            return Err(format!("{} bars are too many: {BARS} can be drawn; add a LIMIT", drawing.labels.len()));
        }
        Ok(drawing.sorted())
    }

    /// Time goes on from left to right, whatever the order of the result.
    fn sorted(self) -> Self {
        let Along::Time(instants) = &self.along else { return self };
        let mut order: Vec<usize> = (0..instants.len()).collect();
        order.sort_by(|one, other| instants[*one].total_cmp(&instants[*other]));
        Self {
            along: Along::Time(order.iter().map(|at| instants[*at]).collect()),
            labels: order.iter().map(|at| self.labels[*at].clone()).collect(),
            series: self
                .series
                .into_iter()
                .map(|(name, values)| (name, order.iter().map(|at| values[*at]).collect()))
                .collect(),
        }
    }

    /// The largest value, and the smallest, zero among them.
    fn extent(&self) -> (f64, f64) {
        let values = || self.series.iter().flat_map(|(_, values)| values.iter().flatten().copied());
        (values().fold(0.0, f64::min), values().fold(0.0, f64::max))
    }

    /// Drawn in lines of at most so many characters.
    ///
    /// # Errors
    /// One line where its series cannot be told apart.
    pub(super) fn text(&self, width: usize, color: bool) -> Result<Vec<String>, String> {
        match &self.along {
            Along::Time(instants) if instants.len() > 1 => {
                let most = if color { SERIES } else { MARKERS.len() };
                if self.series.len() > most {
                    let lines = self.series.len();
                    return Err(format!(
                        "{lines} lines cannot be told apart without colours, {most} can: narrow the query"
                    ));
                }
                Ok([self.legend(width, color), self.lines(instants, width, color)].concat())
            }
            _ => Ok(self.bars(width, color)),
        }
    }

    fn bars(&self, width: usize, color: bool) -> Vec<String> {
        let several = self.series.len() > 1;
        let widest = |texts: &mut dyn Iterator<Item = &str>| texts.map(measure_text_width).max().unwrap_or_default();
        let names = widest(&mut self.labels.iter().map(String::as_str)).min(width / 3);
        let of_series =
            if several { widest(&mut self.series.iter().map(|(name, _)| name.as_str())).min(width / 5) } else { 0 };
        let numbers =
            self.series.iter().flat_map(|(_, values)| values.iter().flatten()).map(|value| number(*value).len());
        let numbers = numbers.max().unwrap_or(1);
        let room = width.saturating_sub(names + of_series + numbers + if several { 4 } else { 3 }).max(1);
        let (smallest, largest) = self.extent();
        let largest = largest.max(-smallest);
        let mut lines = Vec::new();
        for (at, label) in self.labels.iter().enumerate() {
            for (series, (name, values)) in self.series.iter().enumerate() {
                let label = if series == 0 { label.as_str() } else { "" };
                let mut line = fitted(label, names);
                if several {
                    line.push(' ');
                    line.push_str(&fitted(name, of_series));
                }
                let bar = values[at].map_or(String::new(), |value| bar(value, largest, room));
                let bar = if color { painted(&bar, series) } else { bar };
                lines.push(
                    format!("{line} │{bar} {}", values[at].map_or("NULL".to_owned(), number)).trim_end().to_owned(),
                );
            }
        }
        lines
    }

    fn lines(&self, instants: &[f64], width: usize, color: bool) -> Vec<String> {
        let points = self.series.iter().map(|(_, values)| {
            let points = instants.iter().zip(values).filter_map(|(at, value)| Some((*at, (*value)?)));
            points.collect::<Vec<(f64, f64)>>()
        });
        let points: Vec<_> = points.collect();
        let datasets = points.iter().enumerate().map(|(at, points)| {
            let line = Dataset::default().marker(MARKERS[marker(at, color)].0).graph_type(GraphType::Line).data(points);
            line.style(Style::new().fg(COLORS[at % COLORS.len()]))
        });
        let (smallest, mut largest) = self.extent();
        if largest <= smallest {
            largest = smallest + 1.0;
        }
        if smallest.fract() == 0.0 && largest.fract() == 0.0 {
            // What is counted has a whole number in its middle, too.
            largest += (largest - smallest) % 2.0;
        }
        let (first, last) = (instants[0], instants[instants.len() - 1]);
        let middle = (width >= 60).then(|| f64::midpoint(first, last));
        let days = last - first >= 3.0 * 86_400.0;
        let along = [Some(first), middle, Some(last)].into_iter().flatten().map(|at| instant(at, days));
        let up = [smallest, f64::midpoint(smallest, largest), largest].map(number);
        let chart = Chart::new(datasets.collect())
            .x_axis(Axis::default().bounds([first, last]).labels(along).labels_alignment(Alignment::Right))
            .y_axis(Axis::default().bounds([smallest, largest]).labels(up))
            .legend_position(None);
        let area = Rect::new(0, 0, u16::try_from(width).unwrap_or(u16::MAX), HEIGHT);
        let mut buffer = Buffer::empty(area);
        chart.render(area, &mut buffer);
        let line = |y| {
            let mut line = String::new();
            for x in 0..area.width {
                let cell = &buffer[(x, y)];
                match COLORS.iter().position(|known| *known == cell.fg).filter(|_| color) {
                    Some(at) => line.push_str(&painted(cell.symbol(), at)),
                    None => line.push_str(cell.symbol()),
                }
            }
            line.trim_end().to_owned()
        };
        (0..area.height).map(line).collect()
    }

    /// What each line is of.
    fn legend(&self, width: usize, color: bool) -> Vec<String> {
        let (mut lines, mut used) = (vec![String::new()], 0);
        for (at, (name, _)) in self.series.iter().enumerate() {
            let name = truncate_str(name, width.saturating_sub(2).max(1), "…");
            let entry = format!("{} {name}", MARKERS[marker(at, color)].1);
            let room = measure_text_width(&entry) + 2;
            if used > 0 && used + room > width + 2 {
                lines.push(String::new());
                used = 0;
            }
            used += room;
            if let Some(line) = lines.last_mut() {
                line.push_str(if line.is_empty() { "" } else { "  " });
                line.push_str(&if color { painted(&entry, at) } else { entry });
            }
        }
        lines
    }
}

/// The place of a series' marker: without colours markers tell series apart, with them only those of one colour.
fn marker(series: usize, color: bool) -> usize {
    if color { series / COLORS.len() } else { series }
}

/// The text in the colour of a series.
fn painted(text: &str, series: usize) -> String {
    style(text).color256(ansi(series)).force_styling(true).to_string()
}

/// An instant, in seconds since 1970, as a day or a time of the day.
fn instant(at: f64, days: bool) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "an axis names whole seconds")]
    let time = DateTime::from_timestamp(at as i64, 0);
    let format = if days { "%Y-%m-%d" } else { "%m-%d %H:%M" };
    time.map_or(String::new(), |time| time.format(format).to_string())
}

/// The colour of a series, as terminals number them.
fn ansi(series: usize) -> u8 {
    [6, 3, 2, 5, 4, 1][series % COLORS.len()]
}

/// A bar of at most so many characters, in eighths of one; that of a negative number is grey.
fn bar(value: f64, largest: f64, room: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if value == 0.0 || largest <= 0.0 {
        return String::new();
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a bar is shorter than a line")]
    let eighths = (value.abs() / largest * room as f64 * 8.0).round().max(1.0) as usize;
    match value < 0.0 {
        true => "▒".repeat(eighths.div_ceil(8)),
        false => format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8]),
    }
}

/// A number as people read it.
pub(super) fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// A text of exactly so many columns.
fn fitted(text: &str, width: usize) -> String {
    let cut = truncate_str(text, width, "…").into_owned();
    pad_str(&cut, width, console::Alignment::Left, None).into_owned()
}

fn is_number(column: &ArrayRef) -> bool {
    column.data_type().is_numeric()
}

/// The values of a column as texts on one line.
fn names(column: &ArrayRef) -> Result<Vec<String>, ArrowError> {
    let options = FormatOptions::default().with_null("NULL");
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options)?;
    Ok((0..column.len()).map(|row| crate::error::one_line(&formatter.value(row).to_string())).collect())
}

/// The instants of a column of times, in seconds; `None` for what is no time.
fn time_numbers(column: &ArrayRef) -> Result<Option<Vec<f64>>, ArrowError> {
    if !matches!(column.data_type(), DataType::Timestamp(..) | DataType::Date32 | DataType::Date64)
        || column.null_count() > 0
    {
        return Ok(None);
    }
    let micros = cast(column, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
    let micros = cast(&micros, &DataType::Int64)?;
    Ok(Some(micros.as_primitive::<Int64Type>().values().iter().map(|micros| *micros as f64 / 1e6).collect()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Date32Array, Int64Array, StringArray};

    use super::*;

    fn drawing(columns: Vec<(&str, ArrayRef)>) -> Result<Drawing, String> {
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        Drawing::of(&batch.schema(), &[batch])
    }

    fn texts(values: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    fn numbers(values: &[Option<i64>]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    #[test]
    fn categories_are_bars_in_the_order_of_the_result() {
        let drawing = drawing(vec![("source", texts(&["web", "réseau"])), ("n", numbers(&[Some(8), Some(3)]))]);
        let lines = drawing.expect("a drawing").text(24, false);
        assert_eq!(lines.expect("bars"), ["web    │██████████████ 8", "réseau │█████▎ 3"]);
    }

    #[test]
    fn a_text_between_time_and_number_makes_series() {
        let days: ArrayRef = Arc::new(Date32Array::from(vec![2, 1, 2]));
        let kinds = texts(&["a", "b", "b"]);
        let drawing = drawing(vec![("day", days), ("kind", kinds), ("n", numbers(&[Some(5), Some(1), None]))]);
        let drawing = drawing.expect("a drawing");
        assert_eq!(drawing.labels, ["1970-01-02", "1970-01-03"]);
        let series = vec![("a".to_owned(), vec![None, Some(5.0)]), ("b".to_owned(), vec![Some(1.0), None])];
        assert_eq!(drawing.series, series);
        for color in [true, false] {
            let lines = drawing.text(40, color).expect("lines");
            assert_eq!(console::strip_ansi_codes(&lines[0]), if color { "⠒ a  ⠒ b" } else { "⠒ a  • b" });
            for line in lines {
                assert!(measure_text_width(&line) <= 40, "{line}");
            }
        }
    }

    #[test]
    fn what_is_no_chart_says_what_one_takes() {
        for columns in [vec![("a", texts(&["x"]))], vec![("a", texts(&["x"])), ("b", texts(&["y"]))]] {
            let told = drawing(columns).expect_err("no numbers");
            assert!(told.contains("then numbers") && told.contains("a Utf8"), "{told}");
        }
        let none: Vec<Option<i64>> = Vec::new();
        assert!(drawing(vec![("a", texts(&[])), ("n", numbers(&none))]).expect_err("no rows").contains("no rows"));
    }
}
