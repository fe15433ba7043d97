//! A result as a chart: its data. `terminal` draws it as text, and `shell/picture` as a picture.
//!
//! The first column is the horizontal axis: a time (lines), a category (bars), or numbers that cannot be categories
//! (points). The other columns are numbers, and each of them is a series. If a string column is between the two, as in
//! `SELECT day, source, count(*)`, each of its values is a series. Columns of very different numbers have a panel each,
//! because one scale would show only the larger numbers.
//!
//! If the query did not read a period completely, such as today, the period is marked, so that its low value is not taken
//! for a drop.

mod columns;
mod numbers;
mod periods;
mod terminal;

use std::collections::{HashMap, HashSet};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::{concat_batches, filter_record_batch, is_not_null};
use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use arrow::error::ArrowError;
use chrono::{DateTime, TimeDelta, Utc};

pub(super) use self::columns::{floats, time_numbers, zone_of};
use self::columns::{is_number, kind_in_words, names};
pub(super) use self::numbers::{measured, number, placed, ticks};
pub(super) use self::periods::are_days;
use self::periods::{Period, instant, least_gap, period, time_of};
use super::axis_names::{in_words, in_words_or_typed};
use super::output::ChartForm;
use crate::error::one_line;
use crate::numbers::counted;
use crate::profile::Zone;

/// Data of a chart.
#[derive(Debug, PartialEq)]
pub(super) struct Drawing {
    pub(super) title: Option<String>,
    /// Period and zone, which pictures show below the title.
    pub(super) subtitle: Option<String>,
    /// Horizontal axis.
    pub(super) along: Along,
    /// Names of the points, in order.
    pub(super) labels: Vec<String>,
    pub(super) series: Vec<Series>,
    /// Name of the first column.
    across: String,
    /// Set if the series are values of one measure, which can be added.
    pub(super) by_value: bool,
    /// Name of that measure.
    measure: String,
    /// Zone of the times; `None` for dates and times without a zone.
    zone: Option<Zone>,
    /// Set if the first period, and the last one, were not read completely.
    pub(super) partial: [bool; 2],
    /// Number of rows that are not drawn, because they have no number in the first column.
    unplaced: usize,
    /// Set if the statement orders its rows, or if the statement is not known.
    ordered: bool,
    /// Form that was chosen.
    form: ChartForm,
}

/// Span of time that a query has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Covered {
    pub(crate) from: DateTime<Utc>,
    /// At most the time of the query.
    pub(crate) to: DateTime<Utc>,
    /// Zone of the days in the result, or of the session if the result has no days; `None` if it is unknown.
    pub(crate) zone: Option<Zone>,
    /// Set if the days in the result may begin at other times than those of the zone.
    pub(crate) shifted: bool,
    /// Set if the statement orders the rows by something else than their numbers.
    pub(crate) ordered: bool,
}

impl Covered {
    /// The period and its zone, as in `27 Oct to 26 Nov 2026, UTC`. In an unknown zone, the days are those of UTC.
    pub(super) fn in_words(self) -> String {
        let local = |at| self.zone.unwrap_or(Zone::UTC).local(at);
        period(local(self.from), local(self.to), self.zone)
    }
}

/// Horizontal axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Along {
    /// Seconds since 1970 of each point.
    Time(Vec<f64>),
    /// Numbers, of points that no line connects unless lines were chosen.
    Number(Vec<f64>),
    /// Names, in the order of the result.
    Category,
}

impl Along {
    /// True for points that no line connects.
    pub(super) fn is_scattered(&self, form: ChartForm) -> bool {
        match form {
            ChartForm::Points => true,
            ChartForm::Lines => false,
            _ => matches!(self, Self::Number(_)),
        }
    }
}

/// Name of a series, and its value at each label.
type Series = (String, Vec<Option<f64>>);

/// Maximum number of series in a chart.
const SERIES: usize = 9;
/// Maximum number of categories in a chart.
const BARS: usize = 60;
/// Maximum number of value columns that a title names.
const NAMED: usize = 3;
/// Minimum ratio between the largest numbers of two series that have a panel each.
const UNEQUAL: f64 = 10.0;
/// Maximum number of periods of a line chart that is searched for periods without a row.
const POINTS: f64 = 5_000.0;
/// Names that have the same colour in every chart.
const SENTIMENTS: [&str; 4] = ["positive", "neutral", "negative", "unknown"];
/// Name of what has no value.
const NONE: &str = "(none)";

impl Drawing {
    /// The chart of a result.
    ///
    /// # Errors
    /// One line naming the column that does not fit, and what a chart takes.
    pub(super) fn of(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Self, String> {
        let failed = |error: ArrowError| error.to_string();
        let whole = concat_batches(schema, batches).map_err(failed)?;
        let rows = whole.num_rows();
        let batch = with_places(whole).map_err(failed)?;
        let unplaced = rows - batch.num_rows();
        let Some((first, rest)) = batch.columns().split_first() else {
            return Err("the result has no columns to draw".to_owned());
        };
        if rest.is_empty() && batch.num_rows() == 1 && is_number(first) {
            // A single number is a bar of its own.
            let (name, values) = (series_name(schema.field(0).name()), floats(first).map_err(failed)?);
            let series = vec![(name.clone(), values)];
            return Ok(Self::new(Some(name.clone()), Along::Category, vec![name], series));
        }
        let counted_times = match first.data_type() {
            DataType::Timestamp(..) => "; the form `heatmap` counts times by weekday and hour",
            _ => "",
        };
        if rest.is_empty() {
            let wrong = misfit(schema, 0, if is_number(first) { "a time or category as" } else { "numbers after" });
            return Err(format!("{wrong}{counted_times}"));
        }
        if batch.num_rows() == 0 {
            return Err("the result has no rows to draw".to_owned());
        }
        let texts = names(first).map_err(failed)?;
        let times = time_numbers(first).map_err(failed)?;
        if times.is_some() && first.null_count() > 0 {
            let (rows, name) = (counted(first.null_count() as u64, "row"), schema.field(0).name());
            return Err(format!("{rows} without a time; exclude them with WHERE {} IS NOT NULL", one_line(name)));
        }
        let by_value = rest.len() == 2 && !is_number(&rest[0]) && is_number(&rest[1]);
        let numbers = if by_value { &rest[1..] } else { rest };
        // A text before a number names series.
        if let Some(at) = numbers.iter().rposition(|column| !is_number(column)) {
            return Err(format!("{}{counted_times}", misfit(schema, 1 + at, "numbers after")));
        }
        let title = title(schema, times.is_some(), by_value);
        let Places { labels, instants, of_rows } = Places::of(&texts, times.as_deref(), by_value);
        let series = match by_value {
            true => series_by_value(&rest[0], &numbers[0], &labels, &of_rows)?,
            false => {
                let columns = numbers.iter().zip(series_names(&schema.fields()[1..]));
                let series = columns.map(|(column, name)| floats(column).map(|values| (name, values)));
                series.collect::<Result<Vec<Series>, _>>().map_err(failed)?
            }
        };
        if series.len() > SERIES {
            return Err(format!("more than {SERIES} series cannot be told apart; narrow the query"));
        }
        // A single time makes no line.
        let spread = instants.iter().any(|instant| *instant != instants[0]);
        let along = match points(first, &labels, by_value).map_err(failed)? {
            _ if spread => Along::Time(instants),
            Some(numbers) => Along::Number(numbers),
            None => Along::Category,
        };
        let across = one_line(schema.field(0).name());
        let zone = zone_of(first.data_type());
        let measure = if by_value { one_line(schema.field(2).name()) } else { String::new() };
        let drawing = Self { across, by_value, measure, zone, unplaced, ..Self::new(title, along, labels, series) };
        if drawing.series.iter().all(|(_, values)| values.iter().all(Option::is_none)) {
            return Err("nothing to draw: all numbers are NULL".to_owned());
        }
        let (smallest, largest) = drawing.extent();
        // The painter of lines does not end for the largest numbers.
        if largest.max(-smallest) > 1e100 {
            return Err("the numbers are too far apart to draw".to_owned());
        }
        Ok(drawing.sorted().with_gaps().in_order_of_sentiments())
    }

    fn new(title: Option<String>, along: Along, labels: Vec<String>, series: Vec<Series>) -> Self {
        let (across, measure) = (String::new(), String::new());
        let (by_value, zone, partial, unplaced, ordered, form) = (false, None, [false; 2], 0, true, ChartForm::Auto);
        Self {
            title,
            subtitle: None,
            along,
            labels,
            series,
            across,
            by_value,
            measure,
            zone,
            partial,
            unplaced,
            ordered,
            form,
        }
    }

    /// Names the period, and marks the first and the last point if the query did not read their periods completely. Times that
    /// are not the beginnings of equal periods, that are shifted or that have an unknown zone, are left alone. Comes before
    /// [`in_form`](Self::in_form), since bars have no times.
    pub(super) fn covering(self, covered: Option<Covered>) -> Self {
        // Instants without a common origin are shown in the zone of their type.
        let covered = covered.map(|covered| Covered { zone: covered.zone.or(self.zone), ..covered });
        let subtitle = covered.map(Covered::in_words).or_else(|| self.times_in_words());
        let times = matches!(self.along, Along::Time(_));
        let zone = self.zone.or(covered.filter(|_| times).and_then(|covered| covered.zone));
        let ordered = covered.is_none_or(|covered| covered.ordered);
        let drawing = Self { subtitle, zone, ordered, ..self };
        let (Along::Time(instants), Some(Covered { from, to, shifted: false, .. }), Some(zone)) =
            (&drawing.along, covered, zone)
        else {
            return drawing;
        };
        let local = |at: DateTime<Utc>| zone.local(at).and_utc().timestamp() as f64;
        let Some(period) = Period::of(instants) else { return drawing };
        let inside = |at: f64, begin: Option<&f64>| begin.is_some_and(|begin| at > *begin && at < period.next(*begin));
        let partial = [inside(local(from), instants.first()), inside(local(to), instants.last())];
        Self { partial, ..drawing }
    }

    /// Period of the points of a time axis, and their zone if it is known.
    fn times_in_words(&self) -> Option<String> {
        let Along::Time(instants) = &self.along else { return None };
        let (first, last) = (time_of(*instants.first()?)?, time_of(*instants.last()?)?);
        Some(period(first, last.checked_add_signed(TimeDelta::seconds(1))?, self.zone))
    }

    /// The chart in a form. Times and numbers can be bars as well; whole numbers, which are categories otherwise, can be places
    /// of lines and points.
    ///
    /// # Errors
    /// One line, if the first column does not allow the form, or if there are too many bars.
    pub(super) fn in_form(self, form: ChartForm) -> Result<Self, String> {
        let drawing = Self { form, ..self.without_gaps(form) };
        match (form, &drawing.along) {
            (ChartForm::Bars, Along::Time(instants)) => {
                let format = if are_days(instants.iter().copied()) { "%Y-%m-%d" } else { "%Y-%m-%d %H:%M" };
                let labels = instants.iter().map(|at| instant(*at, format)).collect();
                Self { along: Along::Category, labels, ..drawing }.with_few_bars("choose lines, or longer periods")
            }
            (ChartForm::Bars, Along::Number(_)) => {
                Self { along: Along::Category, ..drawing }.with_few_bars("choose lines or points")
            }
            (ChartForm::Lines | ChartForm::Points, Along::Category) => {
                let places: Option<Vec<f64>> = drawing.labels.iter().map(|label| label.parse().ok()).collect();
                match places.filter(|places| places.iter().any(|at| *at != places[0])) {
                    Some(places) if places.iter().all(|at| at.is_finite()) => {
                        Ok(Self { along: Along::Number(places), ..drawing }.sorted())
                    }
                    _ => {
                        let few = if drawing.labels.len() > BARS { "; bars need a LIMIT" } else { "; choose bars" };
                        Err(format!("lines and points need several times or numbers in the first column{few}"))
                    }
                }
            }
            (ChartForm::Stacked, Along::Category) if !drawing.ordered => {
                drawing.in_order_of_totals().with_few_bars("add a LIMIT")
            }
            _ => drawing.with_few_bars("add a LIMIT"),
        }
    }

    /// Removes the points that [`with_gaps`](Self::with_gaps) has added, if the form is bars: they break lines only.
    fn without_gaps(mut self, form: ChartForm) -> Self {
        let Along::Time(instants) = &mut self.along else { return self };
        if form != ChartForm::Bars {
            return self;
        }
        let rows: Vec<bool> = self.labels.iter().map(|label| !label.is_empty()).collect();
        retain(instants, &rows);
        retain(&mut self.labels, &rows);
        self.series.iter_mut().for_each(|(_, values)| retain(values, &rows));
        self
    }

    fn with_few_bars(self, advice: &str) -> Result<Self, String> {
        match self.labels.len() {
            many if self.along == Along::Category && many > BARS => {
                Err(format!("too many bars: {many}, at most {BARS} can be drawn; {advice}"))
            }
            _ => Ok(self),
        }
    }

    /// Adds the periods between the first and the last that have no row, without a label and a value: a line would hide them.
    fn with_gaps(mut self) -> Self {
        let Along::Time(instants) = &mut self.along else { return self };
        let Some(period) = Period::of(instants) else { return self };
        let least = least_gap(instants);
        let step = match period {
            // Of two days, say.
            Period::Seconds(_) if instants.iter().all(|at| (at - instants[0]) % least == 0.0) => Period::Seconds(least),
            period => period,
        };
        if (instants[instants.len() - 1] - instants[0]) / least > POINTS {
            return self;
        }
        let mut at = 1;
        while at < instants.len() {
            let next = step.next(instants[at - 1]);
            if next > instants[at - 1] && next < instants[at] {
                instants.insert(at, next);
                self.labels.insert(at, String::new());
                self.series.iter_mut().for_each(|(_, values)| values.insert(at, None));
            }
            at += 1;
        }
        self
    }

    /// Positions of the series of each panel.
    pub(super) fn panels(&self) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..self.series.len()).collect();
        let largest = |at: usize| {
            let values = self.series[at].1.iter().flatten().map(|value| value.abs());
            values.fold(0.0, f64::max)
        };
        let sizes: Vec<f64> = all.iter().map(|at| largest(*at)).filter(|size| *size > 0.0).collect();
        let (least, most) =
            (sizes.iter().copied().fold(f64::INFINITY, f64::min), sizes.iter().copied().fold(0.0, f64::max));
        match self.by_value || all.len() == 1 || most <= least * UNEQUAL {
            true => vec![all],
            false => all.into_iter().map(|at| vec![at]).collect(),
        }
    }

    /// The chart of a panel, without a title.
    pub(super) fn panel(&self, series: &[usize]) -> Self {
        Self {
            title: None,
            subtitle: None,
            along: self.along.clone(),
            labels: self.labels.clone(),
            series: series.iter().map(|at| self.series[*at].clone()).collect(),
            across: self.across.clone(),
            measure: self.measure.clone(),
            ..*self
        }
    }

    /// Name of the axis of the first column, with the zone of times; empty if there is nothing to name.
    pub(super) fn name_across(&self) -> String {
        let name = in_words(&self.across);
        match self.zone {
            Some(zone) => format!("{} ({zone})", name.as_deref().unwrap_or("time")),
            None => name.unwrap_or_default(),
        }
    }

    /// Name of the axis of the numbers in a panel; empty if they are those of several columns.
    pub(super) fn name_of_numbers(&self, panel: &[usize]) -> String {
        match panel {
            _ if self.by_value => in_words_or_typed(&self.measure),
            [only] => in_words_or_typed(&self.series[*only].0),
            _ => String::new(),
        }
    }

    /// Sentences about the periods that were not read completely, and the rows that are not drawn; `None` if there are none.
    pub(super) fn note(&self) -> Option<String> {
        let partial = match self.partial {
            [false, false] => None,
            [true, false] => Some("The first period is incomplete.".to_owned()),
            [false, true] => Some("The last period is incomplete.".to_owned()),
            [true, true] => Some("The first and the last period are incomplete.".to_owned()),
        };
        let rows = self.undrawn();
        let are = if rows == 1 { "is" } else { "are" };
        let undrawn = (rows > 0).then(|| format!("{} without a number {are} not drawn.", counted(rows as u64, "row")));
        let sentences: Vec<String> = partial.into_iter().chain(undrawn).collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    /// Number of rows that are not drawn. Lines show a row without a number as a gap, and bars show it by its name.
    fn undrawn(&self) -> usize {
        if self.by_value || !self.along.is_scattered(self.form) {
            return self.unplaced;
        }
        // A label that is empty is that of a period without a row.
        let empty = |at: &usize| self.series.iter().all(|(_, values)| values[*at].is_none());
        let rows = (0..self.labels.len()).filter(|at| !self.labels[*at].is_empty());
        self.unplaced + rows.filter(empty).count()
    }

    /// A value beside its bar; nothing if a series has no row there.
    pub(super) fn beside(&self, value: Option<f64>) -> String {
        let none = if self.by_value { "" } else { "NULL" };
        value.map_or(none.to_owned(), measured)
    }

    /// True if the query did not read the period of a point completely.
    pub(super) fn is_partial(&self, at: usize) -> bool {
        (at == 0 && self.partial[0]) || (at + 1 == self.labels.len() && self.partial[1])
    }

    /// Replaces the title; an empty one removes it.
    pub(super) fn titled(self, title: Option<&str>) -> Self {
        let Some(title) = title else { return self };
        Self { title: Some(one_line(title)).filter(|title| !title.is_empty()), ..self }
    }

    /// Sorts the points by time, because the result may have another order.
    fn sorted(self) -> Self {
        let (Along::Time(instants) | Along::Number(instants)) = &self.along else { return self };
        let mut order: Vec<usize> = (0..instants.len()).collect();
        order.sort_by(|one, other| instants[*one].total_cmp(&instants[*other]));
        let places = order.iter().map(|at| instants[*at]).collect();
        let along = if matches!(self.along, Along::Time(_)) { Along::Time(places) } else { Along::Number(places) };
        Self { along, ..self.in_order(&order) }
    }

    /// Sorts categories by the sum of their numbers, the largest first. Categories that are numbers have an order of their own.
    fn in_order_of_totals(self) -> Self {
        if self.labels.iter().all(|label| label.parse::<f64>().is_ok()) {
            return self;
        }
        let total = |at: usize| self.series.iter().filter_map(|(_, values)| values[at]).sum::<f64>();
        let mut order: Vec<usize> = (0..self.labels.len()).collect();
        order.sort_by(|one, other| total(*other).total_cmp(&total(*one)));
        self.in_order(&order)
    }

    /// The labels and their values in another order.
    fn in_order(self, order: &[usize]) -> Self {
        let values = |of: Vec<Option<f64>>| -> Vec<Option<f64>> { order.iter().map(|at| of[*at]).collect() };
        Self {
            labels: order.iter().map(|at| self.labels[*at].clone()).collect(),
            series: self.series.into_iter().map(|(name, of)| (name, values(of))).collect(),
            ..self
        }
    }

    /// Smallest and largest value, including zero.
    pub(super) fn extent(&self) -> (f64, f64) {
        let values = || self.series.iter().flat_map(|(_, values)| values.iter().flatten().copied());
        (values().fold(0.0, f64::min), values().fold(0.0, f64::max))
    }

    /// The chart with its series in the order of [`SENTIMENTS`], if each of them is a sentiment.
    fn in_order_of_sentiments(mut self) -> Self {
        if self.series.iter().all(|(name, _)| sentiment(name).is_some()) {
            self.series.sort_by_key(|(name, _)| sentiment(name));
        }
        self
    }

    /// Colours of the series: those of sentiments by name, the others from the palette in order. Each sentiment has its colour
    /// and the colour of the palette that resembles it, which is then not used.
    pub(super) fn colors<C: Copy + PartialEq>(&self, sentiments: &[(C, C); 4], palette: &[C]) -> Vec<C> {
        let mut places: Vec<Option<usize>> = Vec::new();
        for (name, _) in &self.series {
            let place = sentiment(name).filter(|place| !places.contains(&Some(*place)));
            places.push(place);
        }
        let taken: Vec<C> = places.iter().flatten().map(|place| sentiments[*place].1).collect();
        let free: Vec<C> = palette.iter().copied().filter(|color| !taken.contains(color)).collect();
        let mut free = free.into_iter().cycle();
        let color = |place: Option<usize>| match place {
            Some(place) => sentiments[place].0,
            None => free.next().unwrap_or(palette[0]),
        };
        places.into_iter().map(color).collect()
    }

    /// Colours of the bars of a single series, if each bar is a sentiment.
    pub(super) fn bar_colors<C: Copy>(&self, sentiments: &[(C, C); 4]) -> Option<Vec<C>> {
        if self.along != Along::Category || self.series.len() != 1 {
            return None;
        }
        self.labels.iter().map(|label| sentiment(label).map(|place| sentiments[place].0)).collect()
    }
}

/// Name of the series of a column: an alias as it is, and an expression in words.
fn series_name(column: &str) -> String {
    let typed = one_line(column);
    match column.contains('(') {
        true => in_words_or_typed(&typed),
        false => typed,
    }
}

/// Names of the series of columns: as typed if their words are not distinct.
fn series_names(columns: &[FieldRef]) -> Vec<String> {
    let names: Vec<String> = columns.iter().map(|column| series_name(column.name())).collect();
    match names.iter().collect::<HashSet<_>>().len() == names.len() {
        true => names,
        false => columns.iter().map(|column| one_line(column.name())).collect(),
    }
}

/// Error for a column that does not fit.
fn misfit(schema: &SchemaRef, at: usize, needs: &str) -> String {
    let field = schema.field(at);
    let (name, kind) = (one_line(field.name()), kind_in_words(field.data_type()));
    format!(
        "{name} is {kind}; a chart needs {needs} the first column, as in SELECT day, count(*) or SELECT day, source, count(*)"
    )
}

/// The points on the horizontal axis.
struct Places {
    labels: Vec<String>,
    /// Their times, if they have some.
    instants: Vec<f64>,
    /// The point of each row.
    of_rows: Vec<usize>,
}

impl Places {
    /// The points of rows with these names and times. `shared`: rows with equal names are one point, since another column names
    /// their series.
    fn of(names: &[String], times: Option<&[f64]>, shared: bool) -> Self {
        let (mut labels, mut instants, mut of_rows) = (Vec::new(), Vec::new(), Vec::with_capacity(names.len()));
        let mut known = HashMap::new();
        for (row, name) in names.iter().enumerate() {
            let place = known.get(name).copied().filter(|_| shared).unwrap_or(labels.len());
            of_rows.push(place);
            if place == labels.len() {
                known.insert(name, place);
                labels.push(name.clone());
                instants.extend(times.map(|times| times[row]));
            }
        }
        Self { labels, instants, of_rows }
    }
}

/// The series that a column names, with the values of another column at the points of their rows.
fn series_by_value(
    named: &ArrayRef,
    values: &ArrayRef,
    labels: &[String],
    places: &[usize],
) -> Result<Vec<Series>, String> {
    let failed = |error: ArrowError| error.to_string();
    let values = floats(values).map_err(failed)?;
    let mut series: Vec<Series> = Vec::new();
    let (mut found, mut met) = (HashMap::new(), HashSet::new());
    let names = names(named).map_err(failed)?;
    for ((name, place), value) in names.iter().zip(places).zip(values) {
        let at = *found.entry(name.clone()).or_insert_with(|| {
            series.push((name.clone(), vec![None; labels.len()]));
            series.len() - 1
        });
        if series.len() > SERIES {
            break;
        }
        if !met.insert((*place, at)) {
            return Err(format!("two rows for {} and {name}; aggregate them with GROUP BY", labels[*place]));
        }
        series[at].1[*place] = value;
    }
    in_order_of_times(&mut series, named, &names).map_err(failed)?;
    Ok(series)
}

/// Default title, such as `n by source` or `n by day and sentiment`; `None` if the names of the columns say nothing.
fn title(schema: &SchemaRef, time: bool, by_value: bool) -> Option<String> {
    let plain = |at: usize| in_words(schema.field(at).name());
    let begin = if by_value { 2 } else { 1 };
    let numbers = begin..schema.fields().len();
    let count = numbers.len();
    let named: Option<Vec<String>> = numbers.map(plain).collect();
    let named = named.filter(|names| names.len() <= NAMED);
    let values = match named.as_deref() {
        Some([rest @ .., last]) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some([only]) => only.clone(),
        _ if count == 1 => "value".to_owned(),
        _ => "values".to_owned(),
    };
    let second = if by_value { Some(plain(1)) } else { None };
    if named.is_none() && plain(0).is_none() && second.clone().flatten().is_none() {
        return None;
    }
    let first = plain(0).unwrap_or_else(|| (if time { "time" } else { "category" }).to_owned());
    let second = second.map(|name| name.unwrap_or_else(|| "category".to_owned())).filter(|second| *second != first);
    let second = second.map_or(String::new(), |second| format!(" and {second}"));
    Some(format!("{values} by {first}{second}"))
}

/// The rows that have a number in the first column, if it holds numbers: others are at no place.
fn with_places(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    match batch.columns() {
        [first, .., _] if is_number(first) && first.null_count() > 0 && first.null_count() < first.len() => {
            filter_record_batch(&batch, &is_not_null(first)?)
        }
        _ => Ok(batch),
    }
}

/// The first column as positions of points, if it holds numbers that are not categories: fractions, numbers that repeat, or
/// more of them than there can be bars.
fn points(column: &ArrayRef, labels: &[String], by_value: bool) -> Result<Option<Vec<f64>>, ArrowError> {
    if by_value || !is_number(column) {
        return Ok(None);
    }
    let mut known = HashSet::new();
    let repeated = labels.iter().any(|label| !known.insert(label));
    if !(column.data_type().is_floating() || column.data_type().is_decimal() || repeated || labels.len() > BARS) {
        return Ok(None);
    }
    let places: Option<Vec<f64>> = floats(column)?.into_iter().collect();
    Ok(places.filter(|places| places.iter().any(|place| *place != places[0])))
}

/// Keeps the items at whose positions `kept` is true.
fn retain<T>(items: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    items.retain(|_| kept.next() == Some(&true));
}

/// Place in [`SENTIMENTS`]; NULL is an unknown sentiment.
fn sentiment(name: &str) -> Option<usize> {
    let name = if name == NONE { "unknown" } else { name };
    SENTIMENTS.iter().position(|known| known.eq_ignore_ascii_case(name))
}

/// Sorts the series of a column of times, whose rows have these names. A series without a time comes last.
fn in_order_of_times(series: &mut [Series], column: &ArrayRef, names: &[String]) -> Result<(), ArrowError> {
    let Some(times) = time_numbers(column)? else { return Ok(()) };
    let rows: HashMap<&str, usize> = names.iter().enumerate().map(|(row, name)| (name.as_str(), row)).collect();
    let time = |name: &str| {
        let row = rows.get(name).copied().filter(|row| column.is_valid(*row));
        row.map_or(f64::INFINITY, |row| times[row])
    };
    series.sort_by(|(one, _), (other, _)| time(one).total_cmp(&time(other)));
    Ok(())
}

#[cfg(test)]
mod tests;
