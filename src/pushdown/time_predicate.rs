//! Conjuncts on the time column, through casts, truncations and zones, as ranges of instants.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use arrow::datatypes::{DataType, TimeUnit};
use chrono::{DateTime, NaiveDate, NaiveTime, TimeZone};
use chrono_tz::Tz;
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, Operator, TryCast};

use super::granularity::{DAY, SECOND, Step};
use super::interval_set::{Range, Ranges};
use super::predicate::text;
use crate::profile::{TableSpec, Zone};

/// The time column of a table, and the zone of the session, whose days its instants have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeColumn<'t> {
    name: &'t str,
    /// `None`: UTC.
    zone: Option<Tz>,
    /// Set for a distance from UTC that no zone of the database has.
    unknown: bool,
}

impl<'t> TimeColumn<'t> {
    /// The time column of a table, if it has one.
    pub(crate) fn of(table: &'t TableSpec) -> Option<Self> {
        table.time.as_deref().map(|name| Self::named(table, name))
    }

    /// The column of this name as a time.
    pub(super) fn named(table: &TableSpec, name: &'t str) -> Self {
        let Some(zone) = table.zone.as_deref() else { return Self::from(name) };
        let zone = zone.parse::<Zone>().ok().and_then(Zone::in_database);
        Self { name, zone: zone.filter(|zone| *zone != Tz::UTC), unknown: zone.is_none() }
    }

    /// Name of the column.
    pub(crate) fn name(self) -> &'t str {
        self.name
    }
}

impl<'t> From<&'t str> for TimeColumn<'t> {
    fn from(name: &'t str) -> Self {
        Self { name, zone: None, unknown: false }
    }
}

/// Returns the instants of the time column that the conjunct allows; `None` if it does not bound them.
pub(super) fn ranges<'t>(expr: &Expr, time: impl Into<TimeColumn<'t>>) -> Option<Ranges> {
    let time = time.into();
    match expr {
        Expr::Alias(alias) => ranges(&alias.expr, time),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            match (ranges(left, time), ranges(right, time)) {
                (Some(a), Some(b)) => Some(a.and(&b)),
                (one, other) => one.or(other).map(Ranges::widened),
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            Some(ranges(left, time)?.or(&ranges(right, time)?))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            if let (Some(of), Some(at)) = (instant_of(left, time), literal(right)) {
                compare(of, *op, at)
            } else {
                compare(instant_of(right, time)?, op.swap()?, literal(left)?)
            }
        }
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let of = instant_of(expr, time)?;
            Some(compare(of, Operator::GtEq, literal(low)?)?.and(&compare(of, Operator::LtEq, literal(high)?)?))
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let of = instant_of(expr, time)?;
            let any: Option<Vec<_>> = list.iter().map(|at| compare(of, Operator::Eq, literal(at)?)).collect();
            any?.into_iter().reduce(|a, b| a.or(&b))
        }
        _ => None,
    }
}

/// Returns the first instant of the time column that the expression allows, in microseconds since 1970. `None` if it
/// does not bound the column, `Some(None)` if it is open to the past.
pub(crate) fn earliest(expr: &Expr, time: TimeColumn<'_>) -> Option<Option<i64>> {
    let allowed = ranges(expr, time)?;
    allowed.spans().first().map(|first| first.start())
}

/// Returns the zone whose days determine the expression over the time column; `None` if it depends on shorter steps.
pub(crate) fn days_of<'t>(expr: &Expr, time: impl Into<TimeColumn<'t>>) -> Option<Tz> {
    let time = time.into();
    // Another type of the same number.
    let expr = match expr {
        Expr::Cast(Cast { expr, field }) if field.data_type().is_decimal() || field.data_type().is_floating() => expr,
        other => other,
    };
    if let Expr::ScalarFunction(ScalarFunction { func, args }) = expr
        && let ("date_part", [part, of]) = (func.name(), args.as_slice())
    {
        let part = text(part)?.to_lowercase();
        let of_days = ["year", "quarter", "month", "week", "day", "dow", "doy"].contains(&part.as_str());
        let Instant { zone, loose, .. } = instant_of(of, time).filter(|_| of_days)?;
        return (!loose).then(|| zone.unwrap_or(Tz::UTC));
    }
    if let Expr::ScalarFunction(ScalarFunction { func, args }) = expr
        && let ("floor", [number]) = (func.name(), args.as_slice())
    {
        return days_since_1970(number, time);
    }
    if let Some(ranges) = ranges(expr, time) {
        // A comparison with midnight depends only on days, too.
        let zone = time.zone.unwrap_or(Tz::UTC);
        let midnight = |at: Option<i64>| at.is_none_or(|at| is_midnight(at, zone));
        let days = ranges.exact && ranges.spans().iter().all(|span| midnight(span.start()) && midnight(span.end()));
        return days.then_some(zone);
    }
    let Instant { step, zone, wall, loose } = instant_of(expr, time)?;
    // As an instant, the start of a day is unique only if every day of the zone starts at one midnight; as a local date
    // it always is.
    let one = wall || zone.is_none_or(starts_at_midnight);
    (!loose && one && step >= Step::Micros(DAY)).then(|| zone.unwrap_or(Tz::UTC))
}

/// The zone of `date_part('epoch', time) / length`, if the length is a number of whole days. Dashboards group by its floor.
fn days_since_1970(expr: &Expr, time: TimeColumn<'_>) -> Option<Tz> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right }) = with_sign(expr) else { return None };
    let Expr::Literal(ScalarValue::Float64(Some(seconds)), _) = right.as_ref() else { return None };
    let Expr::ScalarFunction(ScalarFunction { func, args }) = with_sign(left) else { return None };
    let ("date_part", [part, of]) = (func.name(), args.as_slice()) else { return None };
    let whole_days = *seconds > 0.0 && seconds % (DAY / SECOND) as f64 == 0.0;
    let Instant { step, zone, wall, loose } = instant_of(of, time)?;
    if loose || !whole_days || !text(part)?.eq_ignore_ascii_case("epoch") {
        return None;
    }
    match wall {
        true => Some(zone.unwrap_or(Tz::UTC)),
        // Seconds of an instant are counted in UTC, whatever its zone.
        false => (zone.is_none() || step == Step::Micros(1)).then_some(Tz::UTC),
    }
}

/// The number of an expression that takes the sign of zeros.
fn with_sign(expr: &Expr) -> &Expr {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "positive_zero" => {
            args.first().map_or(expr, with_sign)
        }
        other => other,
    }
}

/// An expression over the time column.
#[derive(Debug, Clone, Copy)]
struct Instant {
    step: Step,
    /// The zone whose days the steps follow; `None`: UTC.
    zone: Option<Tz>,
    /// Set if its values are local times of the zone, not instants.
    wall: bool,
    /// Set if the steps do not start at days of the zone: they are shorter and shift, or round toward 1970.
    loose: bool,
}

/// An upper bound on the distance of any zone from UTC and on the rounding of any cast.
const ZONES: i64 = DAY + DAY / 12;

fn instant_of(expr: &Expr, time: TimeColumn<'_>) -> Option<Instant> {
    match expr {
        Expr::Column(Column { name, .. }) if name == time.name => {
            Some(Instant { step: Step::Micros(1), zone: time.zone, wall: false, loose: time.unknown })
        }
        Expr::Alias(alias) => instant_of(&alias.expr, time),
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            cast(instant_of(expr, time)?, field.data_type())
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "date_trunc" => {
            let [unit, inner] = args.as_slice() else { return None };
            let of = instant_of(inner, time)?;
            let step = of.step.and(Step::of_unit(&text(unit)?)?)?;
            Some(Instant { step, loose: of.loose || shifts(step, of.zone), ..of })
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "rounded_time" => {
            Some(Instant { loose: true, ..instant_of(args.first()?, time)? })
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "to_local_time" => {
            let [inner] = args.as_slice() else { return None };
            Some(Instant { wall: true, ..instant_of(inner, time)? })
        }
        // `date_trunc('hour', time, zone)` of PostgreSQL: the time less what the clocks of a zone show since the start of the hour.
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) => {
            let Expr::BinaryExpr(BinaryExpr { left: there, op: Operator::Minus, right: start }) = right.as_ref() else {
                return None;
            };
            let Expr::ScalarFunction(ScalarFunction { func, args }) = start.as_ref() else { return None };
            let ("date_trunc", [_, of_start]) = (func.name(), args.as_slice()) else { return None };
            (of_start == there.as_ref() && instant_of(there, time).is_some())
                .then(|| instant_of(left, time).map(|of| Instant { loose: true, ..of }))?
        }
        // `AT TIME ZONE` of PostgreSQL, from a local time to an instant.
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "timezone" => {
            let [zone, inner] = args.as_slice() else { return None };
            let of = instant_of(inner, time).filter(|of| of.wall)?;
            let in_zone = |zone: &str| DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into()));
            cast(cast(of, &in_zone(&text(zone)?))?, &in_zone("UTC"))
        }
        _ => None,
    }
}

/// True if steps may not start where those of UTC do: steps shorter than a day, in some zones and around clock changes.
fn shifts(step: Step, zone: Option<Tz>) -> bool {
    zone.is_some() && step < Step::Micros(DAY) && step > Step::Micros(SECOND)
}

fn cast(of: Instant, to: &DataType) -> Option<Instant> {
    let plain = of.step == Step::Micros(1);
    match to {
        DataType::Date32 => Some(Instant { step: of.step.and(Step::Micros(DAY))?, wall: true, ..of }),
        // Date64 holds milliseconds, despite its name, rounded toward 1970.
        DataType::Date64 => Some(Instant { step: of.step.and(Step::Micros(1_000))?, wall: true, loose: true, ..of }),
        DataType::Timestamp(unit, zone) => {
            let step = of.step.and(unit_step(*unit))?;
            let rounds = step != of.step;
            let (zone, wall, known) = match zone.as_deref() {
                None if of.wall => (of.zone, true, true),
                // The engine keeps the local time in UTC, whatever the zone.
                None => (None, true, plain || of.zone.is_none()),
                Some("UTC" | "+00:00" | "Z") => {
                    (if plain { None } else { of.zone }, false, !of.wall || of.zone.is_none())
                }
                Some(name) => match name.parse::<Tz>() {
                    // A local day of this zone is an instant again.
                    Ok(zone) if of.wall => (Some(zone), false, of.zone == Some(zone) && step >= Step::Micros(DAY)),
                    Ok(zone) => (Some(zone), false, plain || of.zone == Some(zone)),
                    Err(_) => (of.zone, false, false),
                },
            };
            // A zone does not change plain instants; a step in a zone other than its own is not tracked.
            Some(Instant { step, zone, wall, loose: of.loose || rounds || !known })
        }
        _ => None,
    }
}

fn unit_step(unit: TimeUnit) -> Step {
    match unit {
        TimeUnit::Second => Step::Micros(SECOND),
        TimeUnit::Millisecond => Step::Micros(1_000),
        TimeUnit::Microsecond | TimeUnit::Nanosecond => Step::Micros(1),
    }
}

/// A literal instant: the last microsecond not after it, and whether that is exact.
#[derive(Debug, Clone, Copy)]
struct Literal {
    micros: i64,
    whole: bool,
}

fn literal(expr: &Expr) -> Option<Literal> {
    let whole = |micros| Some(Literal { micros, whole: true });
    match expr {
        Expr::Alias(alias) => literal(&alias.expr),
        Expr::Literal(value, _) => match value {
            ScalarValue::TimestampSecond(Some(at), _) => whole(at.checked_mul(SECOND)?),
            ScalarValue::TimestampMillisecond(Some(at), _) => whole(at.checked_mul(1_000)?),
            ScalarValue::TimestampMicrosecond(Some(at), _) => whole(*at),
            ScalarValue::TimestampNanosecond(Some(at), _) => {
                Some(Literal { micros: at.div_euclid(1_000), whole: at.rem_euclid(1_000) == 0 })
            }
            ScalarValue::Date32(Some(day)) => whole(i64::from(*day).checked_mul(DAY)?),
            ScalarValue::Date64(Some(at)) => whole(at.checked_mul(1_000)?),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the instants whose step satisfies the comparison with the literal. Steps start on whole microseconds only.
fn compare(of: Instant, op: Operator, at: Literal) -> Option<Ranges> {
    let Instant { step, zone, wall, loose } = of;
    if !loose && let Some((not_before, after)) = edges(step, zone, wall, at) {
        return Some(Ranges::of([side(op, not_before, after)?], true));
    }
    // A step starts at most ZONES after its instants, and ends at most ZONES after the one in UTC.
    let start = at.micros.saturating_sub(ZONES);
    let end = step.next(at.micros.checked_add(ZONES)?)?.checked_add(ZONES)?;
    let range = match op {
        Operator::Eq => Range { from: start, to: end },
        Operator::Gt | Operator::GtEq => Range { from: start, ..Range::OPEN },
        Operator::Lt | Operator::LtEq => Range { to: end, ..Range::OPEN },
        _ => return None,
    };
    Some(Ranges::of([range], false))
}

/// Returns the range that an operator selects, given the first step not before the literal and the first one after it.
fn side(op: Operator, not_before: i64, after: i64) -> Option<Range> {
    Some(match op {
        Operator::Eq => Range { from: not_before, to: after },
        Operator::GtEq => Range { from: not_before, ..Range::OPEN },
        Operator::Gt => Range { from: after, ..Range::OPEN },
        Operator::Lt => Range { to: not_before, ..Range::OPEN },
        Operator::LtEq => Range { to: after, ..Range::OPEN },
        _ => return None,
    })
}

/// Returns the first step start that is not before the literal, and the first one after it, as instants; `None` if the
/// zone's clock skips or repeats one of them.
fn edges(step: Step, zone: Option<Tz>, wall: bool, at: Literal) -> Option<(i64, i64)> {
    let not_before = |micros| if at.whole { step.ceil(micros) } else { step.next(micros) };
    let Some(zone) = zone.filter(|_| wall || step >= Step::Micros(DAY)) else {
        return Some((not_before(at.micros)?, step.next(at.micros)?));
    };
    // Local time is not monotone where the clock is set back; its days are.
    if step < Step::Micros(DAY) {
        return None;
    }
    let local = if wall {
        at.micros
    } else {
        let utc = DateTime::from_timestamp_micros(at.micros)?;
        utc.with_timezone(&zone).naive_local().and_utc().timestamp_micros()
    };
    let instant = |local: i64| {
        let local = DateTime::from_timestamp_micros(local)?.naive_utc();
        zone.from_local_datetime(&local).single().map(|at| at.timestamp_micros())
    };
    if !wall {
        // The step that contains the literal must start exactly once.
        instant(step.floor(local)?)?;
    }
    Some((instant(not_before(local)?)?, instant(step.next(local)?)?))
}

/// Returns the first day of a set of single instants at which days start; `None` for any other set.
pub(super) fn first_midnight(set: &Ranges, time: TimeColumn<'_>) -> Option<NaiveDate> {
    let zone = time.zone.unwrap_or(Tz::UTC);
    let starts_a_day = |span: &Range| span.to.saturating_sub(span.from) <= 1 && is_midnight(span.from, zone);
    let first = set.spans().first().filter(|_| set.spans().iter().all(starts_a_day))?;
    Some(DateTime::from_timestamp_micros(first.from)?.with_timezone(&zone).date_naive())
}

/// Returns a day of which an exact set ends with the first instant, as `time <= '2026-06-20'` does.
pub(super) fn cut_day(set: &Ranges, time: TimeColumn<'_>) -> Option<NaiveDate> {
    let zone = time.zone.unwrap_or(Tz::UTC);
    let last = |span: &Range| span.end()?.checked_sub(1).filter(|last| *last > span.from && is_midnight(*last, zone));
    let last = set.spans().iter().find_map(last).filter(|_| set.exact)?;
    Some(DateTime::from_timestamp_micros(last)?.with_timezone(&zone).date_naive())
}

/// True if a day of the zone starts at the instant, at the only midnight of that day.
fn is_midnight(at: i64, zone: Tz) -> bool {
    let Some(utc) = DateTime::from_timestamp_micros(at) else { return false };
    let local = utc.with_timezone(&zone).naive_local();
    local.time() == NaiveTime::MIN && zone.from_local_datetime(&local).single().is_some()
}

/// True if every day of the zone starts at a single midnight, with no clock change at that hour.
fn starts_at_midnight(zone: Tz) -> bool {
    static KNOWN: Mutex<BTreeMap<&'static str, bool>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    *known.entry(zone.name()).or_insert_with(|| {
        let days = NaiveDate::from_ymd_opt(1990, 1, 1).into_iter().flat_map(|first| first.iter_days().take(50 * 366));
        let midnights = days.map(|day| zone.from_local_datetime(&day.and_time(NaiveTime::MIN)));
        midnights.into_iter().all(|midnight| midnight.single().is_some())
    })
}

#[cfg(test)]
mod tests;
