//! Origin of the columns of a result, by its plan: the zone whose days they show, and the order of the rows. Charts need both,
//! and the result has neither: a date has no zone.
//!
//! The local times of a column are those of the zone in the type of the instants that it is computed from: that of the table,
//! or that of `AT TIME ZONE`. The days that a service has counted have the zone that was sent. The dates and hours of a calendar have
//! the zone of those that they are joined with. If zones differ, or if a column is computed from other dates, the zone is unknown.
//! Times to which an interval was added keep their zone, but days of such times begin at other times than those of the zone.

use std::collections::HashSet;

use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType};
use datafusion::logical_expr::utils::{grouping_set_to_exprlist, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Cast, Distinct, Expr, Join, LogicalPlan, Operator, TryCast};

use crate::exec::WindowRead;
use crate::profile::Zone;

/// Depth of expressions and plans from which on a zone is unknown.
const DEEPEST: usize = 200;

/// Zone of the days of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DaysZone {
    Known(Zone),
    Unknown,
    /// No column depends on a time.
    NoDays,
}

/// Days of a result.
pub(super) struct Days {
    pub(super) zone: DaysZone,
    /// Set if something was added to their times, so that they may begin at other times than those of the zone.
    pub(super) shifted: bool,
}

impl Days {
    /// Those of the first column if that depends on times, or else of the first column of times.
    pub(super) fn of(plan: &LogicalPlan, windows: &[WindowRead]) -> Self {
        let fields = plan.schema().fields();
        let times = |at: &usize| fields.get(*at).is_some_and(|field| is_time(field.data_type()));
        let of = |at: usize| {
            let mut zones = Zones { windows, ..Zones::default() };
            zones.add_column(plan, at, Use::Shown, 0);
            zones
        };
        let first = of(0);
        let zones = match times(&0) || first.unknown || !first.found.is_empty() {
            true => Some(first),
            false => (1..fields.len()).find(times).map(of),
        };
        let (zone, shifted) = zones.map_or((DaysZone::NoDays, false), |zones| (zones.common(), zones.shifted));
        Self { zone, shifted }
    }
}

/// True if the statement orders the rows by something else than their last column.
pub(super) fn has_order(plan: &LogicalPlan) -> bool {
    let (mut plan, mut last) = (plan, plan.schema().fields().len().checked_sub(1));
    loop {
        plan = match plan {
            LogicalPlan::Projection(projection) => {
                let origin = last.and_then(|last| projection.expr.get(last)).and_then(column_of);
                last = origin.and_then(|column| projection.input.schema().maybe_index_of_column(column));
                projection.input.as_ref()
            }
            LogicalPlan::SubqueryAlias(alias) => alias.input.as_ref(),
            LogicalPlan::Limit(limit) => limit.input.as_ref(),
            LogicalPlan::Sort(sort) => {
                let key = sort.expr.first().and_then(|key| column_of(&key.expr));
                let key = key.and_then(|column| sort.input.schema().maybe_index_of_column(column));
                return key.is_none() || key != last;
            }
            _ => return false,
        }
    }
}

/// The column that an expression is, perhaps by another name.
fn column_of(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Alias(alias) => column_of(&alias.expr),
        Expr::Column(column) => Some(column),
        _ => None,
    }
}

/// The column that an expression casts.
fn column_within(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => column_within(expr),
        other => column_of(other),
    }
}

/// The expression over the columns of a join that must be equal to one of them.
fn compared(join: &Join, at: usize) -> Option<&Expr> {
    let column = Column::from(join.schema.qualified_field(at));
    let is_column = |expr: &Expr| column_within(expr) == Some(&column);
    let conditions = join.filter.as_ref().map(split_conjunction).unwrap_or_default();
    let equal = conditions.into_iter().filter_map(|condition| match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => Some((left.as_ref(), right.as_ref())),
        _ => None,
    });
    let mut pairs = join.on.iter().map(|(left, right)| (left, right)).chain(equal);
    let other = pairs.find_map(|(left, right)| match (is_column(left), is_column(right)) {
        (true, _) => Some(right),
        (false, true) => Some(left),
        (false, false) => None,
    });
    // A semi join has the columns of one side only.
    let has = |column: &Column| join.schema.maybe_index_of_column(column).is_some();
    other.filter(|other| other.column_refs().into_iter().all(has))
}

/// Use of an instant in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Use {
    /// It is the value.
    Shown,
    /// The value depends on its local time.
    Local,
    /// It is converted to another zone.
    Converted,
}

/// Zones of the local times on which a column depends.
#[derive(Default)]
struct Zones<'p> {
    windows: &'p [WindowRead],
    found: Vec<Zone>,
    /// Set if the column depends on local times of an unknown zone.
    unknown: bool,
    /// Set if something is added to the times, or subtracted from them.
    shifted: bool,
    /// Columns of plans that were added.
    added: HashSet<(*const LogicalPlan, usize, Use)>,
}

impl Zones<'_> {
    /// The zone, if there is only one.
    fn common(&self) -> DaysZone {
        match self.found.split_first() {
            Some((zone, others)) if !self.unknown && others.iter().all(|other| zone.has_rules_of(*other)) => {
                DaysZone::Known(*zone)
            }
            _ => DaysZone::Unknown,
        }
    }

    /// Adds the zone in the type of an instant.
    fn add_zone(&mut self, zone: &str) {
        match Zone::meant(zone) {
            Some(zone) if self.found.contains(&zone) => {}
            Some(zone) => self.found.push(zone),
            None => self.unknown = true,
        }
    }

    /// Adds the zones of a column of a plan's output.
    fn add_column(&mut self, plan: &LogicalPlan, at: usize, used: Use, depth: usize) {
        if !self.added.insert((std::ptr::from_ref(plan), at, used)) {
            return;
        }
        if depth > DEEPEST {
            self.unknown = true;
            return;
        }
        let depth = depth + 1;
        match plan {
            LogicalPlan::Projection(of) => self.add_one_of(&of.expr, at, &of.input, used, depth),
            LogicalPlan::Distinct(Distinct::On(of)) => self.add_one_of(&of.select_expr, at, &of.input, used, depth),
            LogicalPlan::Aggregate(of) => {
                let groups = grouping_set_to_exprlist(&of.group_expr).unwrap_or_default();
                match (groups.get(at), at.checked_sub(of.schema.fields().len() - of.aggr_expr.len())) {
                    (_, Some(at)) => self.add_one_of(&of.aggr_expr, at, &of.input, used, depth),
                    (Some(group), None) => self.add(group, &of.input, used, depth),
                    // The number of a grouping set.
                    (None, None) => {}
                }
            }
            LogicalPlan::Window(of) => match at.checked_sub(of.input.schema().fields().len()) {
                Some(at) => self.add_one_of(&of.window_expr, at, &of.input, used, depth),
                None => self.add_column(&of.input, at, used, depth),
            },
            LogicalPlan::Join(of) => {
                let (of_left, before) = (of.left.schema().fields().len(), self.unknown);
                match of.join_type {
                    JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                        self.add_column(&of.right, at, used, depth);
                    }
                    _ if at < of_left => self.add_column(&of.left, at, used, depth),
                    _ => self.add_column(&of.right, at - of_left, used, depth),
                }
                // Dates and hours of a calendar are those that they are joined with.
                let (may_be_calendar, unknown) = (!before && self.found.is_empty(), self.unknown);
                if let Some(days) = compared(of, at).filter(|_| may_be_calendar) {
                    self.unknown = false;
                    self.add(days, plan, Use::Local, depth);
                    self.unknown |= unknown && self.found.is_empty();
                }
            }
            LogicalPlan::Union(of) => of.inputs.iter().for_each(|input| self.add_column(input, at, used, depth)),
            LogicalPlan::Filter(of) => self.add_column(&of.input, at, used, depth),
            LogicalPlan::Sort(of) => self.add_column(&of.input, at, used, depth),
            LogicalPlan::Limit(of) => self.add_column(&of.input, at, used, depth),
            LogicalPlan::Repartition(of) => self.add_column(&of.input, at, used, depth),
            LogicalPlan::SubqueryAlias(of) => self.add_column(&of.input, at, used, depth),
            LogicalPlan::Distinct(Distinct::All(input)) => self.add_column(input, at, used, depth),
            LogicalPlan::TableScan(of) => {
                if let Some(field) = of.projected_schema.fields().get(at) {
                    self.add_field(field, used);
                }
            }
            other => self.unknown |= other.schema().fields().get(at).is_some_and(|field| is_time(field.data_type())),
        }
    }

    fn add_one_of(&mut self, exprs: &[Expr], at: usize, input: &LogicalPlan, used: Use, depth: usize) {
        match exprs.get(at) {
            Some(expr) => self.add(expr, input, used, depth),
            None => self.unknown = true,
        }
    }

    /// Adds the zones of an expression over a plan's output.
    fn add(&mut self, expr: &Expr, input: &LogicalPlan, used: Use, depth: usize) {
        if depth > DEEPEST {
            self.unknown = true;
            return;
        }
        match expr {
            Expr::Column(column) => match input.schema().maybe_index_of_column(column) {
                Some(at) => self.add_column(input, at, used, depth),
                None => self.unknown = true,
            },
            Expr::Alias(alias) => self.add(&alias.expr, input, used, depth + 1),
            // An interval changes the beginnings of days, but not the zone.
            Expr::BinaryExpr(binary) => {
                self.shifted |= matches!(binary.op, Operator::Plus | Operator::Minus);
                self.add(&binary.left, input, used, depth + 1);
                self.add(&binary.right, input, used, depth + 1);
            }
            Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
                let inner = match field.data_type() {
                    DataType::Timestamp(_, Some(zone)) => {
                        if used != Use::Converted {
                            self.add_zone(zone);
                        }
                        Use::Converted
                    }
                    _ => Use::Local,
                };
                self.add(expr, input, inner, depth + 1);
            }
            other => {
                let _ = other.apply_children(|part| {
                    self.add(part, input, Use::Local, depth + 1);
                    Ok(TreeNodeRecursion::Continue)
                });
            }
        }
    }

    /// Adds the zones of a column of a table.
    fn add_field(&mut self, field: &Field, used: Use) {
        let reads = self.windows.iter().filter(|read| read.time.as_ref() == Some(field.name()));
        let counted: Vec<Zone> = reads.filter_map(|read| read.days).collect();
        match field.data_type() {
            // The beginnings of days are shown in the zone of the days.
            DataType::Timestamp(..) if used == Use::Shown && !counted.is_empty() => {}
            DataType::Timestamp(_, Some(zone)) if used != Use::Converted => self.add_zone(zone),
            DataType::Timestamp(_, Some(_)) => {}
            other => self.unknown |= is_time(other),
        }
        self.found.extend(counted);
    }
}

fn is_time(kind: &DataType) -> bool {
    matches!(kind, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64)
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::cases::each;
    use crate::client::Secret;
    use crate::connection::Connection;
    use crate::exec::windows;
    use crate::session::session;

    /// A session without a service: planning sends no request.
    fn planner() -> SessionContext {
        let key = Secret::new("key").expect("a key");
        let connection = Connection::builder("http://127.0.0.1:9/v4", key).build().expect("a connection");
        session(&connection).expect("a session")
    }

    async fn zone(context: &SessionContext, sql: &str) -> DaysZone {
        let frame = context.sql(sql).await.expect(sql);
        let plan = frame.logical_plan().clone();
        Days::of(&plan, &windows(&frame.create_physical_plan().await.expect(sql))).zone
    }

    #[tokio::test]
    async fn days_have_the_zone_in_which_they_were_cut() {
        let context = planner();
        let berlin = "published_at AT TIME ZONE 'Europe/Berlin'";
        let (of, by) = ("FROM mentions WHERE aid = '7' AND duration = '3d'", "GROUP BY 1, 2");
        for (sql, name) in [
            (format!("SELECT published_at::date AS day, sentiment, count(*) {of} {by}"), "UTC"),
            (format!("SELECT ({berlin})::date AS day, sentiment, count(*) {of} {by}"), "Europe/Berlin"),
            (format!("SELECT date_trunc('day', {berlin}) AS day, sentiment, count(*) {of} {by}"), "Europe/Berlin"),
            (format!("SELECT date_trunc('week', {berlin})::date, sentiment, count(*) {of} {by}"), "Europe/Berlin"),
            (
                format!("SELECT date_part('dow', {berlin}), date_part('hour', {berlin}), count(*) {of} {by}"),
                "Europe/Berlin",
            ),
            (format!("SELECT source, ({berlin})::date AS day, count(*) {of} {by}"), "Europe/Berlin"),
            (format!("SELECT ({berlin})::date AS day, count(*) {of} GROUP BY 1"), "Europe/Berlin"),
            (
                format!("SELECT ({berlin} + INTERVAL '1 hour')::date AS day, sentiment, count(*) {of} {by}"),
                "Europe/Berlin",
            ),
            (
                format!(
                    "WITH d AS (SELECT ({berlin})::date AS day, reach {of}) SELECT day, n FROM \
                     (SELECT d.day, sum(reach) AS n FROM d GROUP BY d.day) ORDER BY day LIMIT 5"
                ),
                "Europe/Berlin",
            ),
            (
                format!(
                    "SELECT d.value::date AS day, count(m.id) FROM \
                     generate_series(TIMESTAMP '2026-06-28', TIMESTAMP '2026-07-01', INTERVAL '1 day') AS d \
                     LEFT JOIN (SELECT id, ({berlin})::date AS day {of}) AS m ON m.day = d.value::date GROUP BY 1"
                ),
                "Europe/Berlin",
            ),
        ] {
            assert_eq!(zone(&context, &sql).await, DaysZone::Known(name.parse().expect("a zone")), "{sql}");
        }
    }

    #[tokio::test]
    async fn days_of_a_service_have_the_zone_that_was_sent() {
        let context = planner();
        let of = |day: &str, zone: &str| {
            format!(
                "SELECT {day} AS day, mentions FROM volume WHERE aid = '7' AND duration = '3d' AND timezone = '{zone}'"
            )
        };
        let known = |name: &str| DaysZone::Known(name.parse().expect("a zone"));
        for (day, sent, expected) in [
            ("bucket_start", "Europe/Berlin", known("Europe/Berlin")),
            ("bucket_start", "UTC", known("UTC")),
            ("(bucket_start AT TIME ZONE 'Europe/Berlin')::date", "Europe/Berlin", known("Europe/Berlin")),
            // Days of Berlin, named by the date in UTC at which they begin.
            ("bucket_start::date", "Europe/Berlin", DaysZone::Unknown),
            ("(bucket_start AT TIME ZONE 'Asia/Tokyo')::date", "Europe/Berlin", DaysZone::Unknown),
        ] {
            assert_eq!(zone(&context, &of(day, sent)).await, expected, "{day} of {sent}");
        }
        let both = format!("{} UNION ALL {}", of("bucket_start", "UTC"), of("bucket_start", "Asia/Tokyo"));
        assert_eq!(zone(&context, &both).await, DaysZone::Unknown);
    }

    #[tokio::test]
    async fn a_calendar_has_the_zone_of_what_it_is_joined_with() {
        let context = planner();
        let of = "FROM mentions WHERE aid = '7' AND duration = '3d'";
        let hour = "date_part('hour', published_at AT TIME ZONE 'Europe/Berlin') AS hour";
        let berlin = DaysZone::Known("Europe/Berlin".parse().expect("a zone"));
        for join in ["h LEFT JOIN m ON m.hour = h.value", "m RIGHT JOIN h ON h.value = m.hour"] {
            let sql = format!(
                "WITH m AS (SELECT id, {hour} {of}), h AS (SELECT value FROM generate_series(0, 23)) \
                 SELECT h.value AS hour, count(m.id) FROM {join} GROUP BY 1"
            );
            assert_eq!(zone(&context, &sql).await, berlin, "{sql}");
        }
        // Calendars alone have none.
        let days = "(SELECT value::date AS day FROM \
                    generate_series(TIMESTAMP '2026-06-28', TIMESTAMP '2026-07-01', INTERVAL '1 day'))";
        let calendars = format!("FROM {days} AS a JOIN {days} AS b ON a.day = b.day");
        for sql in [
            format!("SELECT date_part('dow', a.day) AS dow, count(*) {calendars} GROUP BY 1"),
            format!("SELECT a.day {calendars} UNION ALL SELECT published_at::date {of}"),
        ] {
            assert_eq!(zone(&context, &sql).await, DaysZone::Unknown, "{sql}");
        }
        // What has no days gets none from a join.
        for join in ["JOIN", "LEFT SEMI JOIN"] {
            let sql =
                format!("SELECT s.aid, 1 AS n FROM saved_searches AS s {join} (SELECT aid {of}) AS m ON m.aid = s.aid");
            assert_eq!(zone(&context, &sql).await, DaysZone::NoDays, "{sql}");
        }
    }

    #[tokio::test]
    async fn intervals_shift_the_beginnings_of_days() {
        let context = planner();
        for (day, shifted) in [
            ("published_at::date", false),
            ("date_trunc('week', published_at AT TIME ZONE 'Europe/Berlin')", false),
            ("(published_at - INTERVAL '6 hours')::date", true),
            ("date_trunc('week', published_at + INTERVAL '1 day') - INTERVAL '1 day'", true),
            ("published_at::date - 1", true),
        ] {
            let sql = format!("SELECT {day}, count(*) FROM mentions WHERE aid = '7' AND duration = '3d' GROUP BY 1");
            let frame = context.sql(&sql).await.expect(day);
            assert_eq!(Days::of(frame.logical_plan(), &[]).shifted, shifted, "{day}");
        }
    }

    #[tokio::test]
    async fn a_result_without_times_has_no_days_and_dates_alone_have_no_zone() {
        let context = planner();
        let sources = "SELECT source, count(*) FROM mentions WHERE aid = '7' AND duration = '3d' GROUP BY 1";
        assert_eq!(zone(&context, sources).await, DaysZone::NoDays);
        assert_eq!(zone(&context, "SELECT DATE '2026-06-01' AS day, 1 AS n").await, DaysZone::Unknown);
        let values = "SELECT day, n FROM (VALUES (DATE '2026-06-01', 1)) AS t(day, n)";
        assert_eq!(zone(&context, values).await, DaysZone::Unknown);
    }

    #[tokio::test]
    async fn rows_have_an_order_unless_it_is_that_of_their_numbers() {
        let context = planner();
        let of =
            "SELECT source, sentiment, count(*) AS n FROM mentions WHERE aid = '7' AND duration = '3d' GROUP BY 1, 2";
        let cases = [
            ("", false),
            ("LIMIT 5", false),
            ("ORDER BY n DESC", false),
            ("ORDER BY n DESC LIMIT 5", false),
            ("ORDER BY 1", true),
            ("ORDER BY source, n DESC", true),
            ("ORDER BY min(published_at)", true),
        ];
        let mut found = Vec::new();
        for (order, _) in cases {
            let frame = context.sql(&format!("{of} {order}")).await.expect(order);
            found.push(has_order(frame.logical_plan()));
        }
        each(cases.into_iter().zip(found), |((order, expected), found)| assert_eq!(found, expected, "{order}"));
    }
}
