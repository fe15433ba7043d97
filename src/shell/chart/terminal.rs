//! A chart as lines of text, in colours or without them.

use console::{measure_text_width, pad_str, style, truncate_str};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Alignment, Rect};
use ratatui_core::style::{Color, Style};
use ratatui_core::symbols::Marker;
use ratatui_core::widgets::Widget;
use ratatui_widgets::chart::{Axis, Chart, Dataset, GraphType};

use super::numbers::{placed, tick_labels, ticks};
use super::periods::instant;
use super::{Along, Drawing, SERIES};

/// Colour and marker of a series in a terminal.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// Number of the colour in the palette of terminals.
    color: u8,
    /// Place in [`MARKERS`].
    marker: usize,
}

/// Markers of series and their signs in the legend, in order.
const MARKERS: [(Marker, &str); 4] =
    [(Marker::Braille, "⠒"), (Marker::Dot, "•"), (Marker::Block, "█"), (Marker::Bar, "▄")];
/// Colours of series, in order: cyan, yellow, green, magenta, blue, red.
pub(super) const COLORS: [u8; 6] = [6, 3, 2, 5, 4, 1];
/// Colours of [`SENTIMENTS`](super::SENTIMENTS), and the colour of [`COLORS`] that each resembles: green, grey, red, sand.
pub(super) const SENTIMENT_COLORS: [(u8, u8); 4] = [(2, 2), (245, 245), (1, 1), (180, 180)];

impl Drawing {
    /// Lines of at most `width` characters. Line charts have `height` lines below the title and the legend.
    ///
    /// # Errors
    /// One line if the series cannot be distinguished.
    pub(in crate::shell) fn text(&self, width: usize, height: u16, color: bool) -> Result<Vec<String>, String> {
        let mut lines = Vec::new();
        if let Some(title) = &self.title {
            let title = truncate_str(title, width, "…");
            lines.push(if color { style(title).bold().force_styling(true).to_string() } else { title.into_owned() });
        }
        match self.panels().as_slice() {
            [_] => lines.extend(self.body(width, height, color)?),
            panels => {
                for series in panels {
                    lines.push(truncate_str(&self.name_of_numbers(series), width, "…").into_owned());
                    lines.extend(self.panel(series).body(width, (height / 2).max(8), color)?);
                }
            }
        }
        lines.extend(self.note());
        Ok(lines)
    }

    /// The lines without the title and the note.
    fn body(&self, width: usize, height: u16, color: bool) -> Result<Vec<String>, String> {
        let mut lines = Vec::new();
        match &self.along {
            Along::Time(instants) | Along::Number(instants) => {
                let most = if color { SERIES } else { MARKERS.len() };
                if self.series.len() > most {
                    let count = self.series.len();
                    return Err(format!(
                        "too many lines to tell apart without colours: {count}, at most {most}; narrow the query"
                    ));
                }
                let looks = self.looks(color);
                if self.series.len() > 1 {
                    lines.extend(self.legend(&looks, width, color));
                }
                lines.extend(self.lines(instants, &looks, (width, height), color));
            }
            Along::Category => lines.extend(self.bars(width, color)),
        }
        Ok(lines)
    }

    fn bars(&self, width: usize, color: bool) -> Vec<String> {
        let several = self.series.len() > 1;
        let widest = |texts: &mut dyn Iterator<Item = &str>| texts.map(measure_text_width).max().unwrap_or_default();
        let names = widest(&mut self.labels.iter().map(String::as_str)).min(width / 3);
        let of_series =
            if several { widest(&mut self.series.iter().map(|(name, _)| name.as_str())).min(width / 5) } else { 0 };
        let numbers = self.series.iter().flat_map(|(_, values)| values).map(|value| self.beside(*value).len());
        let numbers = numbers.max().unwrap_or(1);
        let room = width.saturating_sub(names + of_series + numbers + if several { 4 } else { 3 }).max(1);
        let (smallest, largest) = self.extent();
        let sides = Sides::of(smallest, largest, room);
        let colors = self.colors(&SENTIMENT_COLORS, &COLORS);
        let by_label = self.bar_colors(&SENTIMENT_COLORS);
        let mut lines = Vec::new();
        for (at, label) in self.labels.iter().enumerate() {
            for (series, (name, values)) in self.series.iter().enumerate() {
                let label = if series == 0 { label.as_str() } else { "" };
                let mut line = fitted(label, names);
                if several {
                    line.push(' ');
                    line.push_str(&fitted(name, of_series));
                }
                let value = values[at].unwrap_or_default();
                let bar = if self.is_partial(at) { light(&sides.bar(value)) } else { sides.bar(value) };
                let (left, right) = if value < 0.0 { (bar.as_str(), "") } else { ("", bar.as_str()) };
                let space = |bar: &str, side: usize| " ".repeat(side.saturating_sub(bar.chars().count()));
                let (before, after) = (space(left, sides.left), space(right, sides.right));
                let ansi = by_label.as_ref().map_or(colors[series], |colors| colors[at]);
                let paint = |bar: &str| if color && !bar.is_empty() { painted(bar, ansi) } else { bar.to_owned() };
                let (left, right) = (paint(left), paint(right));
                lines.push(format!("{line} {before}{left}│{right}{after} {:>numbers$}", self.beside(values[at])));
            }
        }
        lines
    }

    fn lines(&self, instants: &[f64], looks: &[Look], (width, height): (usize, u16), color: bool) -> Vec<String> {
        let scattered = self.along.is_scattered(self.form);
        // Unknown values break a line.
        let runs = |values: &[Option<f64>]| -> Vec<Vec<(f64, f64)>> {
            let points: Vec<_> = instants.iter().copied().zip(values).collect();
            let known = |part: &[(f64, &Option<f64>)]| part.iter().filter_map(|(x, y)| Some((*x, (**y)?))).collect();
            points.split(|(_, value)| value.is_none()).filter(|run| !run.is_empty()).map(known).collect()
        };
        let runs: Vec<Vec<Vec<(f64, f64)>>> = self.series.iter().map(|(_, values)| runs(values)).collect();
        let datasets = |at: usize| -> Vec<Dataset<'_>> {
            let look = looks[at];
            let dataset = runs[at].iter().map(|points| {
                let (kind, marker) = match (points.len(), MARKERS[look.marker].0) {
                    (_, marker) if scattered => {
                        (GraphType::Scatter, if marker == Marker::Braille { Marker::Dot } else { marker })
                    }
                    (1, Marker::Braille) => (GraphType::Scatter, Marker::Dot),
                    (1, marker) => (GraphType::Scatter, marker),
                    (_, marker) => (GraphType::Line, marker),
                };
                let style = Style::new().fg(Color::Indexed(look.color));
                Dataset::default().marker(marker).graph_type(kind).data(points).style(style)
            });
            dataset.collect()
        };
        let (smallest, largest) = self.extent();
        let counts = smallest.fract() == 0.0 && largest.fract() == 0.0;
        let ticks = ticks((smallest, largest), if counts { 1.0 } else { 0.0 });
        // A tick may be rounded below the value that it is to cover, and points outside the bounds are not drawn.
        let bounds = [ticks[0].min(smallest), ticks[ticks.len() - 1].max(largest)];
        let up = tick_labels(&ticks, width / 3);
        let left = up.iter().map(String::len).max().map_or(0, |widest| widest + 1);
        let (first, last) = (instants[0], instants[instants.len() - 1]);
        let format = match (last - first >= 3.0 * 86_400.0, width < 30) {
            (true, false) => "%Y-%m-%d",
            (true, true) => "%m-%d",
            (false, false) => "%m-%d %H:%M",
            (false, true) => "%H:%M",
        };
        let numbers = matches!(self.along, Along::Number(_));
        let label = |at| if numbers { placed(at) } else { instant(at, format) };
        let mut along = [first, f64::midpoint(first, last), last].map(label).to_vec();
        // Each of three labels has a third of the axis.
        let widest = along.iter().map(String::len).max().unwrap_or_default();
        if widest + 2 > width.saturating_sub(left) / 3 {
            along.remove(1);
        }
        let area = Rect::new(0, 0, u16::try_from(width).unwrap_or(u16::MAX), height);
        let painted_on = |datasets: Vec<Dataset<'_>>| {
            let along = Axis::default().bounds([first, last]).labels(along.clone());
            let up = Axis::default().bounds(bounds).labels(up.clone());
            let chart = Chart::new(datasets)
                .x_axis(along.labels_alignment(Alignment::Right))
                .y_axis(up.labels_alignment(Alignment::Right))
                .legend_position(None);
            let mut buffer = Buffer::empty(area);
            chart.render(area, &mut buffer);
            buffer
        };
        let axes = painted_on(Vec::new());
        let layers: Vec<Buffer> = (0..self.series.len()).map(|at| painted_on(datasets(at))).collect();
        let line = |y| {
            let mut line = String::new();
            for x in 0..area.width {
                // Series that have a cell in common take turns, so that none hides another.
                let drawn: Vec<&Buffer> =
                    layers.iter().filter(|layer| layer[(x, y)].symbol() != axes[(x, y)].symbol()).collect();
                let turn = usize::from(x) + usize::from(y);
                let layer = if drawn.is_empty() { &axes } else { drawn[turn % drawn.len()] };
                let cell = &layer[(x, y)];
                match cell.fg {
                    Color::Indexed(ansi) if color => line.push_str(&painted(cell.symbol(), ansi)),
                    _ => line.push_str(cell.symbol()),
                }
            }
            line.trim_end().to_owned()
        };
        (0..area.height).map(line).collect()
    }

    /// Names of the series with their markers.
    fn legend(&self, looks: &[Look], width: usize, color: bool) -> Vec<String> {
        let (mut lines, mut used) = (vec![String::new()], 0);
        for ((name, _), look) in self.series.iter().zip(looks) {
            let name = truncate_str(name, width.saturating_sub(2).max(1), "…");
            let entry = format!("{} {name}", MARKERS[look.marker].1);
            let room = measure_text_width(&entry) + 2;
            if used > 0 && used + room > width + 2 {
                lines.push(String::new());
                used = 0;
            }
            used += room;
            if let Some(line) = lines.last_mut() {
                line.push_str(if line.is_empty() { "" } else { "  " });
                line.push_str(&if color { painted(&entry, look.color) } else { entry });
            }
        }
        lines
    }

    /// Colours and markers of the series. With colours, markers distinguish series of equal colour only.
    fn looks(&self, color: bool) -> Vec<Look> {
        let colors = self.colors(&SENTIMENT_COLORS, &COLORS);
        let look = |(at, ansi): (usize, &u8)| {
            let equal = colors[..at].iter().filter(|other| *other == ansi).count();
            Look { color: *ansi, marker: if color { equal } else { at } }
        };
        colors.iter().enumerate().map(look).collect()
    }
}

/// Text in a colour of the terminal.
pub(super) fn painted(text: &str, ansi: u8) -> String {
    style(text).color256(ansi).force_styling(true).to_string()
}

/// Room for bars on both sides of zero, in characters.
#[derive(Debug, Clone, Copy)]
struct Sides {
    left: usize,
    right: usize,
    /// Value of a character.
    unit: f64,
}

impl Sides {
    /// Divides the room by the extent of the values, which includes zero.
    fn of(smallest: f64, largest: f64, room: usize) -> Self {
        let unit = (largest - smallest) / room as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a bar is shorter than a line")]
        let left = if smallest < 0.0 { (-smallest / unit).ceil() as usize } else { 0 };
        let left = left.min(room);
        // With a side of its own, the longest bar keeps its whole length.
        let unit = if left > 0 && left < room { unit.max(largest / (room - left) as f64) } else { unit };
        Self { left, right: room - left, unit }
    }

    /// A bar, in eighths of a character; to the left of zero in halves, since there are no other blocks.
    fn bar(&self, value: f64) -> String {
        const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        if value == 0.0 || self.unit <= 0.0 {
            return String::new();
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a bar is shorter than a line")]
        let parts = |parts: f64| (value.abs() / self.unit * parts).round().max(1.0) as usize;
        match value < 0.0 {
            true => format!("{}{}", if parts(2.0) % 2 == 1 { "▐" } else { "" }, "█".repeat(parts(2.0) / 2)),
            false => format!("{}{}", "█".repeat(parts(8.0) / 8), EIGHTHS[parts(8.0) % 8]),
        }
    }
}

/// The bar of a period that was not read completely.
fn light(bar: &str) -> String {
    "░".repeat(bar.chars().count())
}

/// Text of exactly `width` columns.
fn fitted(text: &str, width: usize) -> String {
    let cut = truncate_str(text, width, "…").into_owned();
    pad_str(&cut, width, console::Alignment::Left, None).into_owned()
}
