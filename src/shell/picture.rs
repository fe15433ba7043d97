//! A chart as a picture for documents: SVG or PNG.
//!
//! ```text
//! Drawing ─▶ title, period, legend ─▶ panels (lines, areas, points │ bars) ─▶ axis ─▶ SVG ─ fonts ─▶ PNG
//! HeatMap ─▶ title, period ─▶ a square for each weekday and hour ───────────────▶ SVG ─ fonts ─▶ PNG
//! ```
//!
//! The charts are drawn here, because no library is suitable: charts-rs places labels by its own font, so that they overlap
//! in other fonts; plotters needs the fonts of the machine; charming and vl-convert contain a JavaScript engine. Texts that
//! end at an axis are anchored at their ends, so they fit in every font.

mod canvas;
mod fonts;
mod heat_map;
mod time_axis;

use std::fmt::Write;
use std::ops::Range;

use console::truncate_str;

use self::canvas::{Anchor, Canvas, Fill};
use self::time_axis::{Tick, time_ticks};
use super::chart::{Along, Drawing, measured, number, placed, ticks};
use super::heat_map::HeatMap;
use super::output::{ChartForm, ChartOptions};

/// Default width in pixels.
const WIDTH: u32 = 800;
/// Default height of a line chart in pixels, and of each panel if there are several.
const HEIGHT: f64 = 420.0;
const PANEL: f64 = 230.0;
/// Height of a line chart that is narrow, as a share of its width, and its least height in pixels.
const FLAT: f64 = 0.6;
const LEAST: f64 = 280.0;
/// Space around the chart.
const MARGIN: f64 = 18.0;
/// Default height of a bar, and of the space between two groups of bars.
const BAR: f64 = 20.0;
const GAP: f64 = 8.0;
/// Heights of the title, of a line of the legend, of the name of a panel, and of the axis with its labels.
const TITLE: f64 = 30.0;
const LINE: f64 = 22.0;
const AXIS: f64 = 40.0;
/// Sizes of letters.
const LARGE: f64 = 16.0;
const SMALL: f64 = 12.0;
/// Space between a label and its axis.
const BESIDE: f64 = 8.0;
/// Width of a line.
const STROKE: f64 = 2.0;
/// Maximum number of letters of a name; longer ones would leave no space for the chart.
const NAME: usize = 30;
/// Number of letters to which the name of a bar is never shortened further.
const SHORT: usize = 6;
/// Maximum share of the width for the names of bars, unless they are that short.
const NAMES: f64 = 0.4;
/// Space between two marks on a line.
const APART: f64 = 28.0;
/// Least size of the letters of a number beside a bar.
const TINY: f64 = 7.0;
/// The font of texts, and those to use if it is not installed.
const FONTS: &str = "Roboto, 'Helvetica Neue', Arial, 'Noto Sans', sans-serif";
/// Colours of texts, of numbers at axes, of lines across the chart, and of its axes.
const INK: &str = "#24292f";
const PALE: &str = "#57606a";
const GRID: &str = "#e3e7ec";
const FRAME: &str = "#6e7781";
/// Colours of series, in order: those of Okabe and Ito, which colour-blind readers can distinguish, and grey. The colours that
/// contrast least with the background come last.
const COLORS: [&str; 9] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000", "#f0e442", "#999999"];
/// Colours of positive, neutral, negative and unknown, and the colour of [`COLORS`] that each resembles. That of unknown is no grey, as
/// that of neutral is.
const SENTIMENTS: [(&str, &str); 4] =
    [("#2e9e5b", "#009e73"), ("#8a8f98", "#999999"), ("#d64545", "#d55e00"), ("#d9c08a", "#f0e442")];

/// The chart as SVG.
///
/// # Errors
/// One line, for series that cannot be stacked.
pub(super) fn svg(drawing: &Drawing, options: &ChartOptions) -> Result<String, String> {
    let painter = Painter::new(drawing, options.form)?;
    let (width, height) = size(options).unwrap_or_else(|| (width(options), painter.height(width(options))));
    Ok(painter.paint(width, height))
}

/// The heat map as SVG.
pub(super) fn heat_map(map: &HeatMap, options: &ChartOptions) -> String {
    let (width, height) = size(options).unwrap_or_else(|| (width(options), heat_map::height(map)));
    heat_map::paint(map, width, height)
}

/// A picture in SVG as PNG, of twice the default size if none is given, and a letter that no font has.
///
/// # Errors
/// One line, if the picture is too large.
pub(super) fn png(picture: &str, options: &ChartOptions) -> Result<(Vec<u8>, Option<char>), String> {
    fonts::png(picture, if options.size.is_some() { 1.0 } else { 2.0 })
}

/// Width and height that were asked for.
fn size(options: &ChartOptions) -> Option<(f64, f64)> {
    options.size.map(|(width, height)| (f64::from(width), f64::from(height)))
}

/// Width of a picture whose height is the default.
fn width(options: &ChartOptions) -> f64 {
    f64::from(options.width.unwrap_or(WIDTH))
}

/// A rectangle of the picture.
#[derive(Debug, Clone, Copy)]
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

/// A scale from numbers to pixels.
#[derive(Debug, Clone)]
struct Scale {
    from: Range<f64>,
    to: Range<f64>,
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        let span = self.from.end - self.from.start;
        let share = if span == 0.0 { 0.5 } else { (value - self.from.start) / span };
        self.to.start + share * (self.to.end - self.to.start)
    }
}

struct Painter<'d> {
    drawing: &'d Drawing,
    colors: Vec<&'static str>,
    panels: Vec<Vec<usize>>,
    form: ChartForm,
    stacked: bool,
    canvas: Canvas,
}

impl<'d> Painter<'d> {
    fn new(drawing: &'d Drawing, form: ChartForm) -> Result<Self, String> {
        let stacked = form == ChartForm::Stacked;
        if stacked && drawing.series.len() == 1 && !drawing.by_value {
            return Err("a single series cannot be stacked; choose another form".to_owned());
        }
        let negative = drawing.series.iter().flat_map(|(_, values)| values).flatten().any(|value| *value < 0.0);
        if stacked && (negative || matches!(drawing.along, Along::Number(_))) {
            let why = if negative { "negative numbers" } else { "points" };
            return Err(format!("{why} cannot be stacked; choose another form"));
        }
        let panels = if stacked { vec![(0..drawing.series.len()).collect()] } else { drawing.panels() };
        let colors = drawing.colors(&SENTIMENTS, &COLORS);
        Ok(Self { drawing, colors, panels, form, stacked, canvas: Canvas::default() })
    }

    /// True for points that no line connects.
    fn is_scattered(&self) -> bool {
        self.drawing.along.is_scattered(self.form)
    }

    fn has_panels(&self) -> bool {
        self.panels.len() > 1
    }

    /// Names of series that the legend has.
    fn legend(&self) -> Vec<usize> {
        let all = self.drawing.series.len();
        if all > 1 && !self.has_panels() { (0..all).collect() } else { Vec::new() }
    }

    /// Bars beside each other in a group.
    fn bars_in_group(&self) -> usize {
        if self.stacked || self.has_panels() { 1 } else { self.drawing.series.len() }
    }

    /// Default height in pixels for a width.
    fn height(&self, width: f64) -> f64 {
        let title = if self.drawing.title.is_some() { TITLE } else { 0.0 };
        let legend = self.legend_lines(width).len() as f64 * LINE;
        let [subtitle, note] = [self.drawing.subtitle.is_some(), self.drawing.note().is_some()];
        let lines = f64::from(u8::from(subtitle) + u8::from(note)) * LINE;
        let around = 2.0 * MARGIN + title + legend + lines;
        match self.drawing.along {
            Along::Category => {
                let groups = self.drawing.labels.len() as f64;
                around + LINE + AXIS + groups.max(2.0) * (self.bars_in_group() as f64 * BAR + GAP)
            }
            _ if self.has_panels() => around + AXIS + LINE + self.panels.len() as f64 * PANEL,
            _ => HEIGHT.min((width * FLAT).max(LEAST)),
        }
    }

    fn paint(mut self, width: f64, height: f64) -> String {
        let drawing = self.drawing;
        self.canvas = Canvas::new(width, height);
        let mut top = self.canvas.heading(width, drawing.title.as_deref(), drawing.subtitle.as_deref());
        for line in self.legend_lines(width) {
            let wide: f64 = line.iter().map(|at| self.entry_width(*at)).sum();
            let mut left = (width - wide) / 2.0;
            for at in line {
                self.entry(at, left, top);
                left += self.entry_width(at);
            }
            top += LINE;
        }
        let mut bottom = height - MARGIN;
        if let Some(note) = self.drawing.note() {
            self.canvas.text((width - MARGIN, bottom), Anchor::End, SMALL, PALE, &note);
            bottom -= LINE;
        }
        let area = Area { left: MARGIN, top, right: width - MARGIN, bottom };
        match &self.drawing.along {
            Along::Category => self.bars(area),
            Along::Time(places) | Along::Number(places) => self.over(places, area),
        }
        self.canvas.finish()
    }

    fn name(&self, series: usize) -> String {
        truncate_str(&self.drawing.series[series].0, NAME, "…").into_owned()
    }

    fn entry_width(&self, series: usize) -> f64 {
        24.0 + fonts::width(&self.name(series), SMALL) * 1.05 + 16.0
    }

    /// Lines of the legend.
    fn legend_lines(&self, width: f64) -> Vec<Vec<usize>> {
        let (mut lines, mut used): (Vec<Vec<usize>>, f64) = (Vec::new(), 0.0);
        for at in self.legend() {
            let wide = self.entry_width(at);
            if lines.is_empty() || used + wide > width - 2.0 * MARGIN {
                lines.push(Vec::new());
                used = 0.0;
            }
            used += wide;
            if let Some(line) = lines.last_mut() {
                line.push(at);
            }
        }
        lines
    }

    /// An entry of the legend, with the mark or the hatching that the chart has.
    fn entry(&mut self, series: usize, left: f64, top: f64) {
        let (color, middle) = (self.colors[series], top + LINE / 2.0);
        let place = (left + 9.0, middle);
        if self.stacked || self.drawing.along == Along::Category {
            let bar = Area { left, top: middle - 6.0, right: left + 18.0, bottom: middle + 6.0 };
            self.canvas.rect(bar, color, false);
            self.canvas.hatch_rect(series, bar, color);
        } else if self.is_scattered() {
            self.canvas.mark(series, place, 4.0, color, Fill::Full);
        } else {
            self.canvas.line((left, middle), (left + 18.0, middle), color, STROKE, false);
            self.canvas.mark(series, place, 3.0, color, Fill::Full);
        }
        let name = self.name(series);
        self.canvas.text((left + 24.0, middle + SMALL * 0.36), Anchor::Start, SMALL, INK, &name);
    }

    /// Lines, areas or points over an axis of times or numbers.
    fn over(&mut self, places: &[f64], area: Area) {
        let panels = self.panels.clone();
        let extents: Vec<_> = panels.iter().map(|panel| self.extent(panel)).collect();
        let scales: Vec<_> =
            extents.iter().map(|(extent, whole)| ticks(*extent, if *whole { 1.0 } else { 0.0 })).collect();
        let labels: Vec<Vec<String>> = scales.iter().map(|ticks| in_short(ticks, measured)).collect();
        let widest = labels.iter().flatten().map(|label| fonts::width(label, SMALL)).fold(0.0, f64::max);
        let left = area.left + widest * 1.08 + BESIDE;
        let height = (area.bottom - area.top - AXIS - LINE) / panels.len() as f64;
        let (first, last) =
            places.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(first, last), at| (first.min(*at), last.max(*at)));
        let inner = if self.is_scattered() { 8.0 } else { 2.0 };
        let along: Vec<Tick> = match &self.drawing.along {
            Along::Time(_) => {
                let gaps = places.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.0);
                time_ticks(first, last, gaps.fold(last - first, f64::min), area.right - left)
            }
            _ => {
                let whole = places.iter().all(|place| place.fract() == 0.0);
                let marks = ticks((first, last), if whole { 1.0 } else { 0.0 });
                let names = in_short(&marks, placed);
                marks.into_iter().zip(names).map(|(at, text)| Tick { at, text, below: None }).collect()
            }
        };
        // An axis of numbers begins and ends at a tick.
        let first = along.first().map_or(first, |tick| first.min(tick.at));
        let last = along.last().map_or(last, |tick| last.max(tick.at));
        let x = Scale { from: first..last, to: left + inner..area.right - inner };
        let beyond = along.iter().map(|tick| beyond(tick, &x, area.right + MARGIN)).fold(0.0, f64::max);
        let right = area.right - beyond;
        let x = Scale { from: first..last, to: left + inner..right - inner };
        for (number, panel) in panels.iter().enumerate() {
            let top = area.top + number as f64 * height;
            let name = self.axis_name(&self.drawing.name_of_numbers(panel));
            let plot = Area {
                left,
                top: top + if name.is_empty() { 8.0 } else { LINE },
                right,
                bottom: top + height - if number + 1 < panels.len() { 10.0 } else { 0.0 },
            };
            self.canvas.text((left, plot.top - 8.0), Anchor::Start, SMALL, INK, &name);
            let marks = &scales[number];
            let (low, high) = (marks[0].min(extents[number].0.0), marks[marks.len() - 1].max(extents[number].0.1));
            let y = Scale { from: low..high, to: plot.bottom..plot.top };
            for (at, label) in marks.iter().zip(&labels[number]) {
                let color = if *at == 0.0 { FRAME } else { GRID };
                self.canvas.line((plot.left, y.at(*at)), (plot.right, y.at(*at)), color, 1.0, false);
                self.canvas.text((left - BESIDE, y.at(*at) + SMALL * 0.36), Anchor::End, SMALL, PALE, label);
            }
            if self.is_scattered() {
                self.dots(panel, places, &x, &y);
            } else if self.stacked {
                self.areas(places, &x, &y);
            } else {
                self.lines(panel, places, &x, &y);
            }
        }
        let bottom = area.top + panels.len() as f64 * height;
        for tick in along {
            let at = x.at(tick.at);
            self.canvas.line((at, bottom), (at, bottom + 5.0), FRAME, 1.0, false);
            self.canvas.text((at, bottom + 18.0), Anchor::Middle, SMALL, PALE, &tick.text);
            if let Some(below) = &tick.below {
                self.canvas.text((at, bottom + 33.0), Anchor::Middle, SMALL, INK, below);
            }
        }
        let name = self.axis_name(&self.drawing.name_across());
        self.canvas.text(((left + right) / 2.0, bottom + AXIS + 8.0), Anchor::Middle, SMALL, INK, &name);
    }

    /// Name of an axis, shortened.
    fn axis_name(&self, name: &str) -> String {
        truncate_str(name, NAME, "…").into_owned()
    }

    /// Smallest and largest number of a panel, including zero, and whether all are whole.
    fn extent(&self, panel: &[usize]) -> ((f64, f64), bool) {
        let extent = match self.stacked {
            true => (0.0, self.totals().fold(0.0, f64::max)),
            false => self.drawing.panel(panel).extent(),
        };
        (extent, extent.0.fract() == 0.0 && extent.1.fract() == 0.0)
    }

    /// Sums of the series at each label.
    fn totals(&self) -> impl Iterator<Item = f64> {
        let series = &self.drawing.series;
        (0..self.drawing.labels.len()).map(|at| series.iter().filter_map(|(_, values)| values[at]).sum())
    }

    fn lines(&mut self, panel: &[usize], places: &[f64], x: &Scale, y: &Scale) {
        let drawing = self.drawing;
        for series in panel {
            let (color, values) = (self.colors[*series], &drawing.series[*series].1);
            let point = |at: usize| Some((x.at(places[at]), y.at(values[at]?)));
            let points: Vec<Option<(f64, f64)>> = (0..places.len()).map(point).collect();
            let shape = if panel.len() > 1 { *series } else { 0 };
            let marked = if panel.len() > 1 { marked(&points) } else { vec![false; points.len()] };
            // The way to a period that is incomplete is dashed.
            let partial = |at: usize| drawing.is_partial(at);
            for (at, pair) in points.windows(2).enumerate() {
                if let [Some(one), Some(other)] = pair {
                    self.canvas.line(*one, *other, color, STROKE, partial(at) || partial(at + 1));
                }
            }
            for (at, place) in points.iter().enumerate() {
                let Some(place) = place else { continue };
                let known = |at: Option<usize>| at.and_then(|at| points.get(at)).is_some_and(Option::is_some);
                // A point between two gaps is on no line.
                let alone = !known(at.checked_sub(1)) && !known(Some(at + 1));
                if partial(at) {
                    self.canvas.mark(shape, *place, 3.5, color, Fill::Open);
                } else if alone || marked[at] {
                    self.canvas.mark(shape, *place, 3.0, color, Fill::Full);
                }
            }
        }
    }

    /// Ranges of consecutive periods of which each has a number.
    fn runs(&self) -> Vec<Range<usize>> {
        let has_number = |at: usize| self.drawing.series.iter().any(|(_, values)| values[at].is_some());
        let known: Vec<bool> = (0..self.drawing.labels.len()).map(has_number).collect();
        let (mut runs, mut from) = (Vec::new(), 0);
        for run in known.chunk_by(|one, other| one == other) {
            let to = from + run.len();
            if run[0] {
                runs.push(from..to);
            }
            from = to;
        }
        runs
    }

    /// The series on each other. A period without a number is a gap.
    fn areas(&mut self, places: &[f64], x: &Scale, y: &Scale) {
        /// Half the width of a period between two gaps.
        const ALONE: f64 = 1.5;
        let runs = self.runs();
        let mut below = vec![0.0; places.len()];
        for series in 0..self.drawing.series.len() {
            let values = &self.drawing.series[series].1;
            let above: Vec<f64> =
                below.iter().zip(values).map(|(below, value)| below + value.unwrap_or_default()).collect();
            let mut path = String::new();
            for run in &runs {
                let mut columns: Vec<(f64, usize)> = run.clone().map(|at| (x.at(places[at]), at)).collect();
                if let [(place, at)] = columns[..] {
                    columns = vec![(place - ALONE, at), (place + ALONE, at)];
                }
                let up = columns.iter().map(|(place, at)| (place, y.at(above[*at])));
                let down = columns.iter().rev().map(|(place, at)| (place, y.at(below[*at])));
                for (nth, (place, value)) in up.chain(down).enumerate() {
                    let _ = write!(path, "{}{place:.1} {value:.1}", if nth == 0 { "M" } else { "L" });
                }
                path.push('Z');
            }
            let color = self.colors[series];
            let _ = writeln!(self.canvas.out, "<path d=\"{path}\" fill=\"{color}\" fill-opacity=\"0.85\"/>");
            self.canvas.hatch(series, &path, color);
            below = above;
        }
        // Incomplete periods are veiled.
        let (top, bottom) = (y.at(y.from.end), y.at(y.from.start));
        let drawing = self.drawing;
        let edges = [
            (drawing.partial[0], places.first().zip(places.get(1))),
            (drawing.partial[1], places.iter().rev().nth(1).zip(places.last())),
        ];
        for (partial, pair) in edges {
            if let Some((one, other)) = pair.filter(|_| partial) {
                let (left, width) = (x.at(*one), x.at(*other) - x.at(*one));
                let _ = writeln!(
                    self.canvas.out,
                    "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"#ffffff\" fill-opacity=\"0.5\"/>",
                    bottom - top
                );
            }
        }
    }

    fn dots(&mut self, panel: &[usize], places: &[f64], x: &Scale, y: &Scale) {
        let drawing = self.drawing;
        for series in panel {
            for (at, (place, value)) in places.iter().zip(&drawing.series[*series].1).enumerate() {
                if let Some(value) = value {
                    let shape = if panel.len() > 1 { *series } else { 0 };
                    let fill = if drawing.is_partial(at) { Fill::Open } else { Fill::Pale };
                    self.canvas.mark(shape, (x.at(*place), y.at(*value)), 3.5, self.colors[*series], fill);
                }
            }
        }
    }

    /// Horizontal bars of categories. Panels are beside each other.
    fn bars(&mut self, area: Area) {
        let drawing = self.drawing;
        let room = (area.right - area.left) * NAMES;
        let labels: Vec<String> = drawing.labels.iter().map(|label| fitted(label, room)).collect();
        let across = fitted(&drawing.name_across(), room);
        let names = labels.iter().chain([&across]);
        let widest = names.map(|label| fonts::width(label, SMALL)).fold(0.0, f64::max);
        let left = area.left + widest * 1.08 + BESIDE;
        let (top, bottom) = (area.top + LINE, area.bottom - AXIS);
        self.canvas.text((left - BESIDE, area.top + SMALL), Anchor::End, SMALL, PALE, &across);
        let group = (bottom - top) / labels.len() as f64;
        for (at, label) in labels.iter().enumerate().step_by(every(group, SMALL)) {
            let middle = top + (at as f64 + 0.5) * group + SMALL * 0.36;
            self.canvas.text((left - BESIDE, middle), Anchor::End, SMALL, INK, label);
        }
        let panels = self.panels.clone();
        let width = (area.right - left) / panels.len() as f64;
        let by_label = drawing.bar_colors(&SENTIMENTS);
        for (number, panel) in panels.iter().enumerate() {
            let begin = left + number as f64 * width;
            let name = self.axis_name(&drawing.name_of_numbers(panel));
            self.canvas.text((begin, area.top + SMALL), Anchor::Start, SMALL, INK, &name);
            let x = self.bar_axis(panel, Area { left: begin, top, right: begin + width, bottom });
            for at in 0..labels.len() {
                let color = by_label.as_ref().map(|colors| colors[at]);
                self.group_of_bars(at, panel, &x, (top + at as f64 * group, group), color);
            }
            self.canvas.line((x.at(0.0), top), (x.at(0.0), bottom), FRAME, 1.0, false);
        }
    }

    /// The scale of a panel of bars, with its marks.
    fn bar_axis(&mut self, panel: &[usize], area: Area) -> Scale {
        let Area { left, top, right, bottom } = area;
        let drawing = self.drawing;
        let ((smallest, largest), whole) = self.extent(panel);
        let values = panel.iter().flat_map(|series| &drawing.series[*series].1);
        let texts: Vec<String> = match self.stacked {
            true => self.totals().map(measured).collect(),
            false => values.map(|value| drawing.beside(*value)).collect(),
        };
        let digits = texts.iter().map(|text| fonts::width(text, SMALL)).fold(0.0, f64::max) * 1.08 + 10.0;
        let before = if smallest < 0.0 { digits } else { 0.0 };
        let marks = ticks((smallest, largest), if whole { 1.0 } else { 0.0 });
        // A mark beyond the longest bar would need room that the bars lack.
        let (low, high) = if largest > smallest { (smallest, largest) } else { (marks[0], marks[marks.len() - 1]) };
        // Labels of the marks are centred, so that the last one needs room as well.
        let end = right - digits.max(20.0);
        let x = Scale { from: low..high, to: left + before..end };
        let names = in_short(&marks, measured);
        let widest = names.iter().map(|name| fonts::width(name, SMALL)).fold(0.0, f64::max);
        let named = every(x.at(marks[1]) - x.at(marks[0]), widest * 1.08 + BESIDE);
        // Zero has a label, and the others are as many steps from it.
        let zero = marks.iter().position(|at| *at == 0.0).unwrap_or_default();
        let within = marks.iter().zip(&names).enumerate().filter(|(_, (at, _))| (low..=high).contains(*at));
        for (number, (at, name)) in within {
            self.canvas.line((x.at(*at), top), (x.at(*at), bottom), GRID, 1.0, false);
            if number.abs_diff(zero).is_multiple_of(named) {
                self.canvas.text((x.at(*at), bottom + 18.0), Anchor::Middle, SMALL, PALE, name);
            }
        }
        x
    }

    /// The bars of a label in a panel, with their numbers. `(top, height)`: their place; `color`: that of the label, if it has one.
    fn group_of_bars(
        &mut self,
        at: usize,
        panel: &[usize],
        x: &Scale,
        (top, height): (f64, f64),
        color: Option<&'static str>,
    ) {
        let drawing = self.drawing;
        let begin = top + GAP.min(height / 4.0) / 2.0;
        let room = height - GAP.min(height / 4.0);
        let thick = room / self.bars_in_group() as f64;
        let mut sum = 0.0;
        for (place, series) in panel.iter().enumerate() {
            let value = drawing.series[*series].1[at];
            let color = color.unwrap_or(self.colors[*series]);
            let y = if self.stacked { begin } else { begin + place as f64 * thick };
            let (from, to) = (x.at(sum), x.at(sum + value.unwrap_or_default()));
            // A number that is not zero is seen.
            let least = if value.is_some_and(|value| value != 0.0) { 1.0 } else { 0.0 };
            let long = (to - from).abs().max(least);
            let high = (thick - 2.0).max(1.0);
            let (left, top) = (from.min(to), y + 1.0);
            let bar = Area { left, top, right: left + long, bottom: top + high };
            self.canvas.rect(bar, color, drawing.is_partial(at));
            if panel.len() > 1 && long > 0.0 {
                self.canvas.hatch_rect(*series, bar, color);
            }
            if self.stacked {
                sum += value.unwrap_or_default();
                if place + 1 < panel.len() {
                    continue;
                }
            }
            let text = if self.stacked { measured(sum) } else { drawing.beside(value) };
            let middle = y + thick / 2.0 + SMALL * 0.36;
            let (anchor, at) = if to < x.at(0.0) { (Anchor::End, to - 5.0) } else { (Anchor::Start, to + 5.0) };
            if thick >= TINY {
                self.canvas.text((at, middle), anchor, SMALL.min(thick * 0.9).max(TINY), INK, &text);
            }
        }
    }
}

/// The points of a line that have a mark: its ends, its lowest and its highest point, and others that are far enough from them.
fn marked(points: &[Option<(f64, f64)>]) -> Vec<bool> {
    let known: Vec<(usize, (f64, f64))> =
        points.iter().enumerate().filter_map(|(at, place)| Some((at, (*place)?))).collect();
    let height = |one: &&(usize, (f64, f64)), other: &&(usize, (f64, f64))| one.1.1.total_cmp(&other.1.1);
    let chosen = [known.first(), known.last(), known.iter().min_by(height), known.iter().max_by(height)];
    let mut places: Vec<f64> = chosen.iter().flatten().map(|(_, (x, _))| *x).collect();
    let mut marked = vec![false; points.len()];
    chosen.iter().flatten().for_each(|(at, _)| marked[*at] = true);
    for (at, (x, _)) in known {
        if places.iter().all(|place| (x - place).abs() >= APART) {
            places.push(x);
            marked[at] = true;
        }
    }
    marked
}

/// A name that is shortened until it takes at most this many pixels.
fn fitted(name: &str, room: f64) -> String {
    let shortened = |letters| truncate_str(name, letters, "…").into_owned();
    let mut lengths = (SHORT..=NAME).rev().map(shortened);
    lengths.find(|name| fonts::width(name, SMALL) <= room).unwrap_or_else(|| shortened(SHORT))
}

/// The number of steps of this many pixels from one written label to the next: the smallest that has room for a label.
fn every(step: f64, needed: f64) -> usize {
    const MOST: usize = 100;
    (1..MOST).find(|steps| *steps as f64 * step >= needed).unwrap_or(MOST)
}

/// The pixels by which the scale has to end earlier, so that the label of a tick ends before the edge of the picture.
fn beyond(tick: &Tick, x: &Scale, edge: f64) -> f64 {
    // Letters of other fonts are wider.
    const SPARE: f64 = 4.0;
    let texts = [Some(&tick.text), tick.below.as_ref()];
    let half = texts.into_iter().flatten().map(|text| fonts::width(text, SMALL) * 1.08).fold(0.0, f64::max) / 2.0;
    let share = (x.at(tick.at) - x.to.start) / (x.to.end - x.to.start);
    let beyond = x.at(tick.at) + half + SPARE - edge;
    if beyond > 0.0 && share > 0.0 { beyond / share } else { 0.0 }
}

/// Labels of ticks: long numbers by the word for their thousands, others in a form.
fn in_short(ticks: &[f64], plain: impl Fn(f64) -> String) -> Vec<String> {
    let size = ticks.iter().fold(0.0, |size: f64, tick| size.max(tick.abs()));
    let words = [(1e12, " trillion"), (1e9, " billion"), (1e6, " million")];
    let word =
        words.into_iter().find(|(unit, _)| size >= *unit && (size >= 1e7 || *unit > 1e6)).filter(|_| size < 1e15);
    let label = |tick: &f64| match word {
        Some(_) if *tick == 0.0 => "0".to_owned(),
        Some((unit, word)) => format!("{}{word}", number(*tick / unit)),
        None => plain(*tick),
    };
    ticks.iter().map(label).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Date32Array, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
    use chrono::{DateTime, Utc};

    use super::super::chart::Covered;
    use super::*;
    use crate::profile::Zone;

    fn drawing(first: ArrayRef, series: &[(&str, &[f64])]) -> Drawing {
        let numbers =
            series.iter().map(|(name, values)| (*name, Arc::new(Float64Array::from(values.to_vec())) as ArrayRef));
        let batch = RecordBatch::try_from_iter([("k", first)].into_iter().chain(numbers)).expect("a batch");
        Drawing::of(&batch.schema(), &[batch]).expect("a drawing").titled(Some("n by <kind>"))
    }

    fn bars(labels: &[&str], series: &[(&str, &[f64])]) -> Drawing {
        drawing(Arc::new(StringArray::from(labels.to_vec())), series)
    }

    fn days(days: &[i32], series: &[(&str, &[f64])]) -> Drawing {
        drawing(Arc::new(Date32Array::from(days.to_vec())), series)
    }

    fn picture(drawing: &Drawing, options: &ChartOptions) -> String {
        svg(drawing, options).expect("a picture")
    }

    /// Values of an attribute of the elements that have another one.
    fn numbers(picture: &str, with: &str, name: &str) -> Vec<f64> {
        let elements = picture.lines().filter(|line| line.contains(with));
        let value = |line: &str| line.split_once(&format!(" {name}=\""))?.1.split('"').next()?.parse().ok();
        elements.filter_map(value).collect()
    }

    #[test]
    fn a_title_is_shown_and_escaped() {
        for drawing in [bars(&["a", "b"], &[("n", &[1.0, 2.0])]), days(&[0, 1], &[("n", &[1.0, 2.0])])] {
            assert!(picture(&drawing, &ChartOptions::default()).contains(">n by &lt;kind&gt;<"));
        }
    }

    #[test]
    fn texts_that_end_at_an_axis_are_anchored_there() {
        let picture = picture(&bars(&["a", "a much longer name"], &[("n", &[1.0, 2.0])]), &ChartOptions::default());
        assert!(picture.contains("Arial") && picture.contains("sans-serif"), "{picture}");
        // With the name of their axis.
        let labels = numbers(&picture, "text-anchor=\"end\"", "x");
        assert!(labels.len() == 3 && labels.iter().all(|x| *x == labels[0]), "{picture}");
    }

    #[test]
    fn bars_below_zero_end_left_of_it() {
        let picture = picture(&bars(&["a", "b"], &[("n", &[3.5, -0.47])]), &ChartOptions::default());
        let (x, width) = (numbers(&picture, COLORS[0], "x"), numbers(&picture, COLORS[0], "width"));
        assert!((x[1] + width[1] - x[0]).abs() < 0.2 && width[1] > 1.0, "{picture}");
        assert!(picture.contains(">3.5<") && picture.contains(">-0.47<"), "{picture}");
    }

    #[test]
    fn a_legend_has_the_marks_of_the_chart_and_is_for_several() {
        let two: [(&str, &[f64]); 2] = [("zebra", &[1.0, 2.0]), ("lion", &[2.0, 1.0])];
        // One series has the name of its axis.
        let one = picture(&bars(&["a", "b"], &two[..1]), &ChartOptions::default());
        assert_eq!((one.matches(">zebra<").count(), one.matches("<rect").count()), (1, 1 + 2), "{one}");
        let one = picture(&days(&[0, 1], &two[..1]), &ChartOptions::default());
        assert_eq!((one.matches(">zebra<").count(), one.matches("stroke-width=\"2\"").count()), (1, 1), "{one}");
        let bars = picture(&bars(&["a", "b"], &two), &ChartOptions::default());
        assert!(bars.contains(">zebra<") && bars.matches("<rect").count() == 1 + 2 + 4, "{bars}");
        let lines = picture(&days(&[0, 1], &two), &ChartOptions::default());
        assert!(lines.contains(">zebra<") && lines.matches("stroke-width=\"2\"").count() == 2 + 2, "{lines}");
    }

    #[test]
    fn series_differ_in_their_marks_as_in_the_legend() {
        let marks = |picture: &str| [picture.matches("<circle").count(), picture.matches("<polygon").count()];
        let (up, down): (Vec<f64>, Vec<f64>) =
            (1..=365_i32).map(|n| (f64::from(500 + n), f64::from(1_000 - n))).unzip();
        let of = |many: usize| -> Drawing {
            let places: Vec<i32> = (0..).take(many).collect();
            days(&places, &[("up", &up[..many]), ("down", &down[..many])])
        };
        // One in the legend, and one at each of ten days.
        assert_eq!(marks(&picture(&of(10), &ChartOptions::default())), [11, 11]);
        // Those of a year keep apart.
        let [circles, others] = marks(&picture(&of(365), &ChartOptions::default()));
        assert!((15..=29).contains(&circles) && circles == others, "{circles}");
        let stacked = ChartOptions { form: ChartForm::Stacked, ..ChartOptions::default() };
        let areas = picture(&of(10), &stacked);
        // The second area, and its place in the legend.
        assert_eq!((marks(&areas), areas.matches("fill=\"url(#hatch1-").count()), ([0, 0], 2), "{areas}");
        let points = of(10).in_form(ChartForm::Points).expect("points");
        let form = ChartOptions { form: ChartForm::Points, ..ChartOptions::default() };
        assert_eq!(marks(&picture(&points, &form)), [11, 11]);
        let two: [(&str, &[f64]); 2] = [("zebra", &[1.0, 2.0]), ("lion", &[2.0, 1.0])];
        let hatched = picture(&bars(&["a", "b"], &two), &ChartOptions::default());
        assert_eq!((marks(&hatched), hatched.matches("fill=\"url(#hatch1-").count()), ([0, 0], 3), "{hatched}");
        for one in [bars(&["a", "b"], &two[..1]), days(&[0, 1], &two[..1])] {
            assert_eq!(marks(&picture(&one, &ChartOptions::default())), [0, 0]);
        }
        // Nine series have nine marks.
        let values = [1.0, 2.0];
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        let nine: Vec<(&str, &[f64])> = names.iter().map(|name| (*name, &values[..])).collect();
        let nine_bars = picture(&bars(&["k", "l"], &nine), &ChartOptions::default());
        let tiles = nine_bars
            .lines()
            .filter_map(|line| line.split_once("<pattern ")?.1.split_once("<path d=\"")?.1.split('"').next());
        assert_eq!(tiles.collect::<HashSet<_>>().len(), 8, "{nine_bars}");
        let picture = picture(&days(&[0, 1], &nine), &ChartOptions::default());
        // The corners of those in the legend, which comes first, seen from the first corner; one mark is a circle.
        let shapes = picture.lines().filter_map(|line| line.split_once("<polygon points=\"")?.1.split_once('"'));
        let shapes: HashSet<Vec<String>> = shapes
            .take(8)
            .map(|(corners, _)| {
                let corners = corners.split([' ', ',']).map(|number| number.parse::<f64>().expect("a number"));
                let corners: Vec<f64> = corners.collect();
                corners[2..].iter().enumerate().map(|(at, n)| format!("{:.0}", n - corners[at % 2])).collect()
            })
            .collect();
        assert_eq!(shapes.len(), 8, "{shapes:?}");
    }

    #[test]
    fn the_ends_and_extremes_of_lines_have_marks() {
        let mut points: Vec<Option<(f64, f64)>> = (0..100_i32).map(|at| Some((f64::from(at), 50.0))).collect();
        points[1] = None;
        points[3] = Some((3.0, 10.0));
        points[97] = Some((97.0, 90.0));
        let places: Vec<usize> = (0..100).filter(|at| marked(&points)[*at]).collect();
        assert_eq!(places, [0, 3, 31, 59, 97, 99]);
        assert_eq!(marked(&[None]), [false]);
    }

    #[test]
    fn hatching_is_drawn_in_png() {
        let two = bars(&["a", "b"], &[("x", &[1.0, 1.0]), ("y", &[1.0, 1.0])]);
        let hatched = picture(&two, &ChartOptions::default());
        let plain: String =
            hatched.lines().filter(|line| !line.contains("url(#hatch")).map(|line| format!("{line}\n")).collect();
        let of = |picture: &str| png(picture, &ChartOptions::default()).expect("a picture").0;
        assert_ne!(of(&hatched), of(&plain));
    }

    #[test]
    fn the_hatching_of_light_colours_is_dark() {
        for (second, line) in [("negative", "#ffffff"), ("unknown", INK)] {
            let series: [(&str, &[f64]); 2] = [("positive", &[1.0]), (second, &[1.0])];
            let picture = picture(&bars(&["a"], &series), &ChartOptions::default());
            let pattern = picture.lines().find(|found| found.starts_with("<pattern")).expect("a hatching");
            assert!(pattern.contains(&format!("stroke=\"{line}\"")), "{pattern}");
        }
    }

    #[test]
    fn a_single_series_is_not_stacked() {
        let stacked = ChartOptions { form: ChartForm::Stacked, ..ChartOptions::default() };
        for one in [days(&[0, 1], &[("n", &[1.0, 2.0])]), bars(&["a", "b"], &[("n", &[1.0, 2.0])])] {
            let refused = svg(&one, &stacked).expect_err("one series");
            assert_eq!(refused, "a single series cannot be stacked; choose another form");
        }
        // The rows may have one value only of those that the statement asks for.
        let columns: [(&str, ArrayRef); 3] = [
            ("day", Arc::new(Date32Array::from(vec![0, 1]))),
            ("sentiment", Arc::new(StringArray::from(vec!["positive", "positive"]))),
            ("n", Arc::new(Float64Array::from(vec![1.0, 2.0]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let one = Drawing::of(&batch.schema(), &[batch]).expect("a drawing");
        assert_eq!(picture(&one, &stacked).matches("fill-opacity=\"0.85\"").count(), 1);
    }

    #[test]
    fn axes_of_numbers_begin_and_end_at_a_label() {
        let places: ArrayRef = Arc::new(Float64Array::from(vec![120.5, 300_000.0, 900_000.0]));
        let points = picture(&drawing(places, &[("n", &[1.0, 2.0, 3.0])]), &ChartOptions::default());
        let labels = ["0", "250,000", "500,000", "750,000", "1,000,000"];
        let found = |label: &&str| points.contains(&format!("text-anchor=\"middle\">{label}<"));
        assert!(labels.iter().all(found), "{points}");
        // Zero has a label although there is no room for all.
        let sides = bars(&["a", "b"], &[("n", &[9e11, -9e11])]);
        let narrow = picture(&sides, &ChartOptions { width: Some(340), ..ChartOptions::default() });
        assert!(narrow.contains("text-anchor=\"middle\">0<"), "{narrow}");
    }

    #[test]
    fn narrow_and_low_charts_of_many_bars_can_be_read() {
        let names: Vec<String> = (10..30).map(|n| format!("{n} is a category with a long name")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut values = [1.0; 20];
        values[0] = 10_000.0;
        let many = bars(&names, &[("n", &values)]);
        let narrow = picture(&many, &ChartOptions { width: Some(316), ..ChartOptions::default() });
        let long = numbers(&narrow, COLORS[0], "width");
        assert!(long.len() == 20 && long[0] > 60.0 && long.iter().all(|long| *long >= 1.0), "{long:?}");
        let low = picture(&many, &ChartOptions { size: Some((300, 200)), ..ChartOptions::default() });
        let labels = numbers(&low, "text-anchor=\"end\"", "y");
        assert!(labels.len() > 3 && labels.windows(2).all(|pair| pair[1] - pair[0] >= SMALL), "{labels:?}");
        // The numbers of the axis do not touch each other.
        let middle =
            |line: &&str| line.contains("text-anchor=\"middle\"") && line.contains(&format!("fill=\"{PALE}\""));
        let of_axis: Vec<&str> = narrow.lines().filter(middle).collect();
        let places = numbers(&of_axis.join("\n"), "<text", "x");
        assert!(places.len() > 1 && places.windows(2).all(|pair| pair[1] - pair[0] > 40.0), "{of_axis:?}");
        let days = days(&(0..90).collect::<Vec<_>>(), &[("n", &[1.0; 90])]);
        let refused = days.in_form(ChartForm::Bars).expect_err("too many bars");
        assert!(refused.starts_with("too many bars: 90") && refused.contains("choose lines"), "{refused}");
    }

    #[test]
    fn measures_of_unequal_size_have_panels() {
        let unequal: [(&str, &[f64]); 2] = [("n", &[5.0, 10.0]), ("total_reach", &[1e5, 2e5])];
        for drawing in [bars(&["a", "b"], &unequal), days(&[0, 1], &unequal)] {
            let picture = picture(&drawing, &ChartOptions::default());
            assert!(picture.contains(">n<") && picture.contains(">total reach<"), "{picture}");
            assert!(picture.contains(">200,000<") && picture.contains(">10<"), "{picture}");
        }
    }

    #[test]
    fn axes_have_names_and_times_have_their_zone() {
        let names: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "x", "y"]));
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0, 4.0]));
        let of = |first: &str, column: ArrayRef| {
            let columns = [(first, column), ("source", Arc::clone(&names)), ("total_reach", Arc::clone(&numbers))];
            let batch = RecordBatch::try_from_iter(columns).expect("a batch");
            Drawing::of(&batch.schema(), &[batch]).expect("a drawing").titled(Some(""))
        };
        let at = |text: &str| -> DateTime<Utc> { text.parse().expect("an instant") };
        let (from, to) = (at("1969-12-31T15:00:00Z"), at("1970-01-02T15:00:00Z"));
        let covered = Covered { from, to, zone: "Asia/Tokyo".parse().ok(), shifted: false, ordered: true };
        let days: ArrayRef = Arc::new(Date32Array::from(vec![0, 0, 1, 1]));
        let lines = picture(&of("bucket_start", Arc::clone(&days)).covering(Some(covered)), &ChartOptions::default());
        assert!(lines.contains(">day (Asia/Tokyo)<") && lines.contains(">total reach<"), "{lines}");
        // An expression without words is a time; without a zone, nothing is said of one.
        for (typed, name) in [("date_trunc('week', x)", "week"), ("now() - x", "time")] {
            let drawing = of(typed, Arc::clone(&days)).covering(Some(covered));
            let lines = picture(&drawing, &ChartOptions::default());
            assert!(lines.contains(&format!(">{name} (Asia/Tokyo)<")), "{lines}");
        }
        let lines = picture(&of("day", days), &ChartOptions::default());
        assert!(lines.contains(">day<") && lines.contains(">total reach<"), "{lines}");
        let kinds: ArrayRef = Arc::new(StringArray::from(vec!["a", "a", "b", "b"]));
        let bars = picture(&of("language", kinds), &ChartOptions::default());
        assert!(bars.contains(">language<") && bars.contains(">total reach<"), "{bars}");
    }

    #[test]
    fn stacked_series_add_up() {
        let stacked = ChartOptions { form: ChartForm::Stacked, ..ChartOptions::default() };
        let two: [(&str, &[f64]); 2] = [("positive", &[1.0, 2.0]), ("negative", &[2.0, 1.5])];
        let below = svg(&bars(&["a", "b"], &[("a", &[1.0, -2.0]), ("b", &[1.0, 1.0])]), &stacked);
        let picture = picture(&bars(&["a", "b"], &two), &stacked);
        let ends = |color| -> Vec<f64> {
            let (x, width) = (numbers(&picture, color, "x"), numbers(&picture, color, "width"));
            x.iter().zip(width).skip(1).map(|(x, width)| x + width).collect()
        };
        let begins: Vec<f64> = numbers(&picture, "#d64545", "x").into_iter().skip(1).collect();
        assert!(ends("#2e9e5b").iter().zip(&begins).all(|(end, begin)| (end - begin).abs() < 0.2), "{picture}");
        assert!(picture.contains(">3<") && picture.contains(">3.5<"), "{picture}");
        let areas = svg(&days(&[0, 1], &two), &stacked).expect("a picture");
        assert_eq!(areas.matches("fill-opacity=\"0.85\"").count(), 2, "{areas}");
        assert!(below.expect_err("below zero").starts_with("negative numbers cannot be stacked"));
    }

    #[test]
    fn a_period_without_a_row_is_a_gap_in_a_stack_as_in_a_line() {
        let stacked = ChartOptions { form: ChartForm::Stacked, ..ChartOptions::default() };
        let gaps: [(&str, &[f64]); 2] = [("a", &[1.0, 2.0, 3.0, 2.0, 1.0]), ("b", &[2.0, 1.5, 1.0, 2.0, 3.0])];
        let areas = picture(&days(&[0, 1, 3, 4, 6], &gaps), &stacked);
        let areas: Vec<&str> = areas.lines().filter(|line| line.contains("fill-opacity=\"0.85\"")).collect();
        assert_eq!(areas.len(), 2);
        assert!(areas.iter().all(|area| area.matches('M').count() == 3 && area.matches('Z').count() == 3), "{areas:?}");
        // A series without a number beside another one adds nothing.
        let days: ArrayRef = Arc::new(Date32Array::from(vec![0, 1, 2]));
        let numbers = |values: Vec<Option<f64>>| Arc::new(Float64Array::from(values)) as ArrayRef;
        let columns = [
            ("k", days),
            ("a", numbers(vec![Some(1.0), Some(2.0), Some(3.0)])),
            ("b", numbers(vec![Some(2.0), None, Some(1.0)])),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let whole = picture(&Drawing::of(&batch.schema(), &[batch]).expect("a drawing"), &stacked);
        let whole: Vec<&str> = whole.lines().filter(|line| line.contains("fill-opacity=\"0.85\"")).collect();
        assert!(whole.len() == 2 && whole.iter().all(|area| area.matches('M').count() == 1), "{whole:?}");
    }

    #[test]
    fn the_longest_bar_takes_the_width() {
        let stacked = ChartOptions { form: ChartForm::Stacked, ..ChartOptions::default() };
        let two: [(&str, &[f64]); 2] = [("x", &[201.0, 10.0]), ("y", &[200.0, 5.0])];
        let picture = picture(&bars(&["a", "b"], &two), &stacked);
        let ends = |color| {
            let (x, width) = (numbers(&picture, color, "x"), numbers(&picture, color, "width"));
            x.into_iter().zip(width).map(|(x, width)| x + width).fold(0.0, f64::max)
        };
        assert!(ends(COLORS[1]) > 700.0, "{picture}");
        assert!(picture.contains(">400<") && picture.contains(">401<") && !picture.contains(">600<"), "{picture}");
    }

    #[test]
    fn labels_of_an_axis_end_within_the_picture() {
        let hours = |hours: i64| -> ArrayRef {
            let at = (0..=hours).map(|hour| hour * 3_600_000_000);
            Arc::new(TimestampMicrosecondArray::from_iter_values(at))
        };
        let values = |many: i64| vec![1.0; usize::try_from(many).expect("few") + 1];
        for (width, many) in [(800, 48), (800, 24), (500, 6), (340, 720), (800, 719)] {
            let values = values(many);
            let drawing = drawing(hours(many), &[("n", &values[..])]);
            let options = ChartOptions { width: Some(width), ..ChartOptions::default() };
            let picture = picture(&drawing, &options);
            let labels = picture.lines().filter(|line| line.contains("text-anchor=\"middle\""));
            for label in labels {
                let x: f64 = label.split("x=\"").nth(1).and_then(|x| x.split('"').next()?.parse().ok()).expect("x");
                let text = label.split('>').nth(1).and_then(|text| text.split('<').next()).expect("a text");
                let end = x + fonts::width(text, SMALL) / 2.0;
                assert!(end <= f64::from(width), "{text} ends at {end} of {width}");
            }
        }
    }

    #[test]
    fn incomplete_periods_are_marked_and_said() {
        let at = |text: &str| -> DateTime<Utc> { text.parse().expect("an instant") };
        let (from, to) = (at("1970-01-01T00:00:00Z"), at("1970-01-04T12:00:00Z"));
        let covered = Covered { from, to, zone: Some(Zone::UTC), shifted: false, ordered: true };
        let drawing = || days(&[0, 1, 2, 3], &[("n", &[5.0, 6.0, 7.0, 1.0])]).covering(Some(covered));
        let bars = drawing().in_form(ChartForm::Bars).expect("bars");
        let bars = picture(&bars, &ChartOptions { form: ChartForm::Bars, ..ChartOptions::default() });
        assert!(bars.contains("The last period is incomplete.") && bars.contains(">1970-01-04<"), "{bars}");
        assert_eq!((bars.matches("<rect").count(), bars.matches("stroke-dasharray").count()), (1 + 4, 1), "{bars}");
        let last = bars.lines().rfind(|line| line.starts_with("<rect"));
        assert!(last.is_some_and(|bar| bar.contains("stroke-dasharray")), "{bars}");
        let points = ChartOptions { form: ChartForm::Points, ..ChartOptions::default() };
        let points = picture(&drawing().in_form(ChartForm::Points).expect("points"), &points);
        let circles: Vec<bool> =
            points.lines().filter(|line| line.starts_with("<circle")).map(|point| point.contains("#ffffff")).collect();
        assert_eq!(circles, [false, false, false, true], "{points}");
        let picture = picture(&drawing(), &ChartOptions::default());
        assert_eq!(picture.matches("stroke-dasharray").count(), 1, "{picture}");
        assert!(picture.contains("The last period is incomplete."), "{picture}");
    }

    #[test]
    fn sentiments_have_their_colours_in_any_order() {
        let colors = |names: &[&str]| {
            let series: Vec<(&str, &[f64])> = names.iter().map(|name| (*name, &[1.0][..])).collect();
            bars(&["a"], &series).colors(&SENTIMENTS, &COLORS)
        };
        assert_eq!(colors(&["Negative", "positive"]), ["#2e9e5b", "#d64545"]);
        assert_eq!(colors(&["x", "y", "z"]), ["#0072b2", "#e69f00", "#009e73"]);
        // The palette's green would be mistaken for that of positive.
        assert_eq!(colors(&["x", "positive", "y", "z"]), ["#0072b2", "#2e9e5b", "#e69f00", "#cc79a7"]);
        let all = ["positive", "a", "neutral", "b", "negative", "c", "unknown", "d", "e"];
        let mut distinct = colors(&all);
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), all.len());
        let bars = picture(&bars(&["negative", "neutral"], &[("n", &[1.0, 2.0])]), &ChartOptions::default());
        assert!(bars.contains("#d64545") && bars.contains("#8a8f98") && !bars.contains("#0072b2"), "{bars}");
    }

    #[test]
    fn pictures_have_the_size_that_was_asked_for() {
        let size = |drawing: &Drawing, size| {
            let picture = picture(drawing, &ChartOptions { size, ..ChartOptions::default() });
            (numbers(&picture, "<svg", "width")[0], numbers(&picture, "<svg", "height")[0])
        };
        let (few, many) = (bars(&["a"; 5], &[("n", &[1.0; 5])]), bars(&["a"; 20], &[("n", &[1.0; 20])]));
        assert_eq!(size(&days(&[0, 1], &[("n", &[1.0, 2.0])]), None), (800.0, 420.0));
        assert!(size(&few, None).1 < size(&many, None).1);
        // The height follows from a width alone.
        let narrow = |drawing: &Drawing, width| {
            let picture = picture(drawing, &ChartOptions { width: Some(width), ..ChartOptions::default() });
            (numbers(&picture, "<svg", "width")[0], numbers(&picture, "<svg", "height")[0])
        };
        let line = days(&[0, 1], &[("n", &[1.0, 2.0])]);
        assert_eq!([340, 600, 900].map(|width| narrow(&line, width)), [(340.0, 280.0), (600.0, 360.0), (900.0, 420.0)]);
        assert_eq!(narrow(&many, 340), (340.0, size(&many, None).1));
        for drawing in [few, many] {
            assert_eq!(size(&drawing, Some((1200, 600))), (1200.0, 600.0));
            let options = ChartOptions { size: Some((300, 200)), ..ChartOptions::default() };
            let (png, missing) = png(&picture(&drawing, &options), &options).expect("a picture");
            // The header has both as big-endian numbers.
            assert_eq!((&png[16..24], missing), (&[0, 0, 1, 44, 0, 0, 0, 200][..], None));
        }
    }

    #[test]
    fn long_numbers_have_words() {
        let in_short = |ticks: &[f64]| in_short(ticks, measured);
        assert_eq!(in_short(&[0.0, 5e9, 1e10]), ["0", "5 billion", "10 billion"]);
        assert_eq!(in_short(&[0.0, 2.5e7]), ["0", "25 million"]);
        assert_eq!(in_short(&[0.0, 5e6]), ["0", "5,000,000"]);
        assert_eq!(in_short(&[-0.5, 0.5]), ["-0.5", "0.5"]);
        assert_eq!(in_short(&[0.0, 1e3]), ["0", "1,000"]);
    }
}
