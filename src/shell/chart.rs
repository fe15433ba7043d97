//! A result as a chart: what is drawn, and drawing it in a terminal.
//!
//! The first column is what goes along: time (a line over it) or a category (a bar each). Numbers follow, each a series. A text
//! between the two, as in `SELECT day, source, count(*)`, makes a series of each of its values.

use std::collections::{HashMap, HashSet};

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

use super::report::counted;
use crate::error::one_line;
use crate::profile::Zone;

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
    /// Times, as numbers that are as far apart as they are.
    Time(Vec<f64>),
    /// Names, in the order of the result.
    Category,
}

/// Series that can be told apart in one picture.
const SERIES: usize = 9;
/// Bars that fit into one picture.
const BARS: usize = 60;
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
            let columns =
                schema.fields().iter().map(|field| format!("{} {}", one_line(field.name()), field.data_type()));
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
        if times.is_some() && first.null_count() > 0 {
            let (rows, name) = (counted(first.null_count() as u64, "row"), schema.field(0).name());
            return Err(format!("{rows} without a time: leave them out by WHERE {} IS NOT NULL", one_line(name)));
        }
        let by_value = rest.len() == 2 && !is_number(&rest[0]) && is_number(&rest[1]);
        let numbers = if by_value { &rest[1..] } else { rest };
        if !numbers.iter().all(is_number) {
            return Err(wrong("not all others are numbers"));
        }
        // Rows of one name are one point, where each has a series of its own.
        let (mut labels, mut instants, mut places) = (Vec::new(), Vec::new(), Vec::with_capacity(texts.len()));
        let mut known = HashMap::new();
        for (row, text) in texts.iter().enumerate() {
            let place = known.get(text).copied().filter(|_| by_value).unwrap_or(labels.len());
            places.push(place);
            if place == labels.len() {
                known.insert(text, place);
                labels.push(text.clone());
                instants.extend(times.as_ref().map(|times| times[row]));
            }
        }
        let mut series: Vec<(String, Vec<Option<f64>>)> = Vec::new();
        if by_value {
            let values = floats(&numbers[0]).map_err(failed)?;
            let mut found = HashMap::new();
            let mut met = HashSet::new();
            for ((name, place), value) in names(&rest[0]).map_err(failed)?.into_iter().zip(places).zip(values) {
                let at = *found.entry(name.clone()).or_insert_with(|| {
                    series.push((name.clone(), vec![None; labels.len()]));
                    series.len() - 1
                });
                if series.len() > SERIES {
                    break;
                }
                if !met.insert((place, at)) {
                    return Err(format!("two rows are of {} and {name}: put them together by GROUP BY", labels[place]));
                }
                series[at].1[place] = value;
            }
        } else {
            for (column, field) in numbers.iter().zip(&schema.fields()[1..]) {
                series.push((one_line(field.name()), floats(column).map_err(failed)?));
            }
        }
        if series.len() > SERIES {
            return Err(format!("more than {SERIES} series are too many to tell apart: narrow the query"));
        }
        // Of one time there is no line.
        let spread = instants.iter().any(|instant| *instant != instants[0]);
        let along = if spread { Along::Time(instants) } else { Along::Category };
        let drawing = Self { along, labels, series };
        if drawing.along == Along::Category && drawing.labels.len() > BARS {
            return Err(format!("{} bars are too many: {BARS} can be drawn; add a LIMIT", drawing.labels.len()));
        }
        if drawing.series.iter().all(|(_, values)| values.iter().all(Option::is_none)) {
            return Err("there is no number to draw: all are NULL".to_owned());
        }
        let (smallest, largest) = drawing.extent();
        if !(largest - smallest).is_finite() {
            return Err("the numbers are too far apart to be drawn".to_owned());
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

    /// The smallest value, and the largest, zero among them.
    pub(super) fn extent(&self) -> (f64, f64) {
        let values = || self.series.iter().flat_map(|(_, values)| values.iter().flatten().copied());
        (values().fold(0.0, f64::min), values().fold(0.0, f64::max))
    }

    /// Drawn in lines of at most so many characters.
    ///
    /// # Errors
    /// One line where its series cannot be told apart.
    pub(super) fn text(&self, width: usize, color: bool) -> Result<Vec<String>, String> {
        match &self.along {
            Along::Time(instants) => {
                let most = if color { SERIES } else { MARKERS.len() };
                if self.series.len() > most {
                    let lines = self.series.len();
                    return Err(format!(
                        "{lines} lines cannot be told apart without colours, {most} can: narrow the query"
                    ));
                }
                Ok([self.legend(width, color), self.lines(instants, width, color)].concat())
            }
            Along::Category => Ok(self.bars(width, color)),
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
        // What is not known breaks a line.
        let runs = self.series.iter().enumerate().flat_map(|(at, (_, values))| {
            let points: Vec<_> = instants.iter().copied().zip(values).collect();
            let known = |part: &[(f64, &Option<f64>)]| part.iter().filter_map(|(x, y)| Some((*x, (**y)?))).collect();
            let runs = points.split(|(_, value)| value.is_none()).filter(|run| !run.is_empty()).map(known);
            runs.map(|run: Vec<(f64, f64)>| (at, run)).collect::<Vec<_>>()
        });
        let runs: Vec<_> = runs.collect();
        let datasets = runs.iter().map(|(at, points)| {
            let (kind, marker) = match (points.len(), MARKERS[marker(*at, color)].0) {
                (1, Marker::Braille) => (GraphType::Scatter, Marker::Dot),
                (1, marker) => (GraphType::Scatter, marker),
                (_, marker) => (GraphType::Line, marker),
            };
            let style = Style::new().fg(COLORS[at % COLORS.len()]);
            Dataset::default().marker(marker).graph_type(kind).data(points).style(style)
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
        let format = match (last - first >= 3.0 * 86_400.0, width < 30) {
            (true, false) => "%Y-%m-%d",
            (true, true) => "%m-%d",
            (false, false) => "%m-%d %H:%M",
            (false, true) => "%H:%M",
        };
        let along = [Some(first), middle, Some(last)].into_iter().flatten().map(|at| instant(at, format));
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

/// An instant, in seconds since 1970.
fn instant(at: f64, format: &str) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "an axis names whole seconds")]
    let time = DateTime::from_timestamp(at as i64, 0);
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

/// A number as people read it: whole ones whole, others with three digits or two behind the point, tiny and huge ones with
/// a power of ten.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    let shorter = |text: String| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    if value == 0.0 {
        "0".to_owned()
    } else if !(1e-4..1e15).contains(&size) {
        let text = format!("{value:.3e}");
        match text.split_once('e') {
            Some((digits, power)) => format!("{}e{power}", shorter(digits.to_owned())),
            None => text,
        }
    } else if value.fract() == 0.0 {
        format!("{value:.0}")
    } else if size >= 1.0 {
        shorter(format!("{value:.2}"))
    } else {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 3 and 6")]
        let digits = (2.0 - size.log10().floor()) as usize;
        shorter(format!("{value:.digits$}"))
    }
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
    Ok((0..column.len()).map(|row| one_line(&formatter.value(row).to_string())).collect())
}

/// The values of a column of numbers; what is none, such as NaN, is not drawn.
fn floats(column: &ArrayRef) -> Result<Vec<Option<f64>>, ArrowError> {
    let values = cast(column, &DataType::Float64)?;
    Ok(values.as_primitive::<Float64Type>().iter().map(|value| value.filter(|value| value.is_finite())).collect())
}

/// The times of a column, in seconds since 1970 of the clocks of its zone; `None` for what is no time.
fn time_numbers(column: &ArrayRef) -> Result<Option<Vec<f64>>, ArrowError> {
    let zone = match column.data_type() {
        DataType::Timestamp(_, zone) => zone.clone(),
        DataType::Date32 | DataType::Date64 => None,
        _ => return Ok(None),
    };
    let zone = zone.and_then(|zone| zone.parse::<Zone>().ok()).unwrap_or(Zone::UTC);
    let micros = cast(column, &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())))?;
    let micros = cast(&micros, &DataType::Int64)?;
    let local = |micros: i64| {
        let at = DateTime::from_timestamp_micros(micros).map(|at| zone.local(at).and_utc().timestamp_micros());
        at.unwrap_or(micros) as f64 / 1e6
    };
    Ok(Some(micros.as_primitive::<Int64Type>().values().iter().map(|micros| local(*micros)).collect()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Date32Array, Float64Array, Int64Array, StringArray};
    use arrow::datatypes::{Field, Schema};

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

    #[test]
    fn what_would_draw_something_else_is_refused() {
        let twice = vec![("c", texts(&["x", "x"])), ("s", texts(&["a", "a"])), ("n", numbers(&[Some(1), Some(5)]))];
        assert!(drawing(twice).expect_err("two values of one point").contains("two rows are of x and a"));
        let days: ArrayRef = Arc::new(Date32Array::from(vec![Some(1), None]));
        let told = drawing(vec![("day", days), ("n", numbers(&[Some(1), Some(2)]))]).expect_err("a time is missing");
        assert_eq!(told, "1 row without a time: leave them out by WHERE day IS NOT NULL");
        let none = drawing(vec![("c", texts(&["x"])), ("n", numbers(&[None]))]);
        assert!(none.expect_err("no number").contains("all are NULL"));
        let far: ArrayRef = Arc::new(Float64Array::from(vec![1e308, -1.5e308]));
        assert!(drawing(vec![("c", texts(&["x", "y"])), ("n", far)]).expect_err("overflow").contains("too far apart"));
    }

    #[test]
    fn columns_of_one_name_are_two_series() {
        let field = |name, kind| Field::new(name, kind, true);
        let schema =
            Schema::new(vec![field("c", DataType::Utf8), field("n", DataType::Int64), field("n", DataType::Int64)]);
        let columns = vec![texts(&["x"]), numbers(&[Some(1)]), numbers(&[Some(2)])];
        let batch = RecordBatch::try_new(Arc::new(schema), columns).expect("a batch");
        let drawing = Drawing::of(&batch.schema(), &[batch]).expect("a drawing");
        assert_eq!(drawing.series, [("n".to_owned(), vec![Some(1.0)]), ("n".to_owned(), vec![Some(2.0)])]);
    }

    #[test]
    fn days_are_those_of_the_column() {
        // Midnight in Berlin, which is on the day before in UTC.
        let micros = [1_763_161_200_000_000, 1_763_766_000_000_000];
        let days = arrow::array::TimestampMicrosecondArray::from(micros.to_vec()).with_timezone("Europe/Berlin");
        let drawing = drawing(vec![("day", Arc::new(days) as ArrayRef), ("n", numbers(&[Some(1), Some(2)]))]);
        let lines = drawing.expect("a drawing").text(80, false).expect("lines");
        let axis = lines.last().expect("an axis");
        assert!(axis.contains("2025-11-15") && axis.ends_with("2025-11-22"), "{axis}");
    }

    #[test]
    fn gaps_are_left_and_lonely_points_are_drawn() {
        let days: ArrayRef = Arc::new(Date32Array::from(vec![0, 10, 20, 30, 40]));
        let lonely = numbers(&[Some(4), None, Some(4), None, Some(4)]);
        let lines = drawing(vec![("day", days), ("n", lonely)]).expect("a drawing").text(60, false).expect("lines");
        assert_eq!(lines.iter().map(|line| line.matches('•').count()).sum::<usize>(), 3, "{}", lines.join("\n"));
    }

    #[test]
    fn numbers_keep_the_digits_that_count() {
        let told = [0.0, 7.0, 250.5, 1.005, 0.0035, 0.25, 1e-9, 2e25, -1234.5].map(number);
        assert_eq!(told, ["0", "7", "250.5", "1", "0.0035", "0.25", "1e-9", "2e25", "-1234.5"]);
    }
}
