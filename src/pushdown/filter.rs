//! What a conjunct says about columns and about time.

use std::collections::BTreeSet;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, Operator, TryCast};

use super::step::{DAY, SECOND, Step};

/// Whether a scan can take on this conjunct: whether it can be evaluated over a batch of the table's rows.
pub fn can_claim(expr: &Expr) -> bool {
    let foreign = |expr: &Expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::Placeholder(_)
                | Expr::ScalarVariable(..)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::GroupingSet(_)
                | Expr::Unnest(_)
        ))
    };
    // The closure never fails.
    !expr.exists(foreign).unwrap_or(true) && !expr.is_volatile()
}

/// Whether the conjunct is a literal that is not true, as the optimizer leaves of conjuncts that contradict each other.
pub(super) fn never(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Boolean(value), _) if *value != Some(true))
}

/// The column that is compared and the values that it must have one of, where that is all the conjunct says.
pub(super) fn values(expr: &Expr) -> Option<(&str, BTreeSet<String>)> {
    match expr {
        Expr::Alias(alias) => values(&alias.expr),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let (column, value) = column(left).zip(text(right)).or_else(|| column(right).zip(text(left)))?;
            Some((column, BTreeSet::from([value])))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let ((column, mut either), (other, or)) = (values(left)?, values(right)?);
            either.extend(or);
            (column == other).then_some((column, either))
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            Some((column(expr)?, list.iter().map(text).collect::<Option<_>>()?))
        }
        _ => None,
    }
}

/// A range of instants in microseconds since 1970, [from, to); `None` is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) from: Option<i64>,
    pub(super) to: Option<i64>,
    /// Whether the conjunct says nothing beyond the range.
    pub(super) exact: bool,
}

impl Range {
    pub(super) const ALL: Self = Self { from: None, to: None, exact: true };

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            from: self.from.max(other.from),
            to: match (self.to, other.to) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            exact: self.exact && other.exact,
        }
    }

    /// The smallest range that covers both.
    fn or(self, other: Self) -> Self {
        Self {
            from: self.from.zip(other.from).map(|(a, b)| a.min(b)),
            to: self.to.zip(other.to).map(|(a, b)| a.max(b)),
            exact: false,
        }
    }

    pub(super) fn is_empty(self) -> bool {
        matches!((self.from, self.to), (Some(from), Some(to)) if from >= to)
    }
}

/// The instants of the time column that the conjunct allows; `None` where it does not bound them.
pub(super) fn range(expr: &Expr, time: &str) -> Option<Range> {
    match expr {
        Expr::Alias(alias) => range(&alias.expr, time),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            match (range(left, time), range(right, time)) {
                (Some(a), Some(b)) => Some(a.and(b)),
                (one, other) => one.or(other).map(|range| Range { exact: false, ..range }),
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            Some(range(left, time)?.or(range(right, time)?))
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
            Some(compare(of, Operator::GtEq, literal(low)?)?.and(compare(of, Operator::LtEq, literal(high)?)?))
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let of = instant_of(expr, time)?;
            let ranges: Option<Vec<_>> = list.iter().map(|at| compare(of, Operator::Eq, literal(at)?)).collect();
            ranges?.into_iter().reduce(Range::or)
        }
        _ => None,
    }
}

/// Whether the conjunct looks at the column at all.
pub(super) fn looks_at(expr: &Expr, column: &str) -> bool {
    expr.column_refs().iter().any(|reference| reference.name == column)
}

/// A function of the time column.
#[derive(Debug, Clone, Copy)]
struct Instant {
    step: Step,
    /// The steps do not start where those in UTC do: they are those of another zone, or casts that round toward 1970.
    loose: bool,
}

/// More than any zone is away from UTC, and than any cast rounds.
const ZONES: i64 = DAY + DAY / 12;

fn instant_of(expr: &Expr, time: &str) -> Option<Instant> {
    match expr {
        Expr::Column(Column { name, .. }) if name == time => Some(Instant { step: Step::Micros(1), loose: false }),
        Expr::Alias(alias) => instant_of(&alias.expr, time),
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            let of = instant_of(expr, time)?;
            let (step, zone) = match field.data_type() {
                DataType::Timestamp(unit, zone) => (unit_step(*unit), zone.as_deref()),
                DataType::Date32 => (Step::Micros(DAY), None),
                // Milliseconds, in spite of its name.
                DataType::Date64 => (Step::Micros(1_000), None),
                _ => return None,
            };
            let utc = zone.is_none_or(|zone| matches!(zone, "UTC" | "+00:00" | "Z"));
            let rounds = step != Step::Micros(1) && *field.data_type() != DataType::Date32;
            Some(Instant { step: of.step.and(step)?, loose: of.loose || !utc || rounds })
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "date_trunc" => {
            let [unit, inner] = args.as_slice() else { return None };
            let of = instant_of(inner, time)?;
            Some(Instant { step: of.step.and(Step::of_unit(&text(unit)?)?)?, ..of })
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

/// A literal instant: the last microsecond not after it, and whether that is the literal itself.
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

/// The instants whose step compares so with the literal. Steps only ever start on whole microseconds.
fn compare(Instant { step, loose }: Instant, op: Operator, at: Literal) -> Option<Range> {
    let Literal { micros, whole } = at;
    // The first step start at or after the literal, and the first one after it.
    let not_before = if whole { step.ceil(micros)? } else { step.next(micros)? };
    let after = step.next(micros)?;
    let (from, to) = match op {
        Operator::Eq => (Some(not_before), Some(after)),
        Operator::GtEq => (Some(not_before), None),
        Operator::Gt => (Some(after), None),
        Operator::Lt => (None, Some(not_before)),
        Operator::LtEq => (None, Some(after)),
        _ => return None,
    };
    if loose {
        // A step starts at most ZONES after its instants, and ends at most ZONES after the one in UTC.
        let end = step.next(micros.checked_add(ZONES)?)?.checked_add(ZONES)?;
        let from = from.map(|_| micros.saturating_sub(ZONES));
        return Some(Range { from, to: to.map(|_| end), exact: false });
    }
    Some(Range { from, to, exact: true })
}

fn column(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(Column { name, .. }) => Some(name),
        Expr::Alias(alias) => column(&alias.expr),
        // A cast between text types changes no value.
        Expr::Cast(Cast { expr, field }) if field.data_type().is_string() => column(expr),
        _ => None,
    }
}

fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Alias(alias) => text(&alias.expr),
        Expr::Literal(value, _) => value.try_as_str().flatten().map(str::to_owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
