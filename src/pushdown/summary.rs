//! Counts and smallest or largest values of mentions, obtained without reading the mentions.

use std::collections::BTreeSet;

use chrono_tz::Tz;

use super::plan::ScanPlan;
use super::sort::ServiceOrder;
use crate::profile::{CountList, Evidence, Origin, Profile, TableSpec, Trust, Zone};

/// The information needed about the mentions of a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Columns whose values distinguish mentions, other than by day.
    pub columns: BTreeSet<String>,
    /// The zone of the days that distinguish mentions.
    pub days: Option<Tz>,
    /// Set if the count of mentions matters.
    pub counts: bool,
    /// Sort orders of which the first mention is needed.
    pub firsts: Vec<ServiceOrder>,
}

/// A replacement for the mentions of a scan: as few rows as possible, each with a count of mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The kind of rows.
    pub rows: SummaryRows,
    /// Set if approximate counts are acceptable.
    pub approximate: bool,
    /// Set if one request can return a page of mentions together with the overview, at no extra cost.
    pub with_mentions: bool,
}

impl Summary {
    /// The column whose values the rows count, if any.
    pub(crate) fn counted<'s>(&'s self, spec: &'s TableSpec) -> Option<&'s String> {
        match &self.rows {
            SummaryRows::List(list) => Some(&list.column),
            SummaryRows::Days(_) => spec.time.as_ref(),
            SummaryRows::Total | SummaryRows::Firsts(_) => None,
        }
    }

    /// A note for a query that names a zone, and whose days are those of the session: only of counts from the service, and also if an
    /// expression names the zone of the session again, which is no difference to the plan.
    pub(crate) fn note(&self, profile: &Profile, spec: &TableSpec, plan: &ScanPlan) -> Option<String> {
        let SummaryRows::Days(counted) = &self.rows else { return None };
        let column = spec.column_from(&Origin::Timezone).filter(|column| plan.chosen.contains(*column))?;
        let (named, time) = (plan.template.timezone.as_deref()?, spec.time.as_deref()?);
        let of_session = spec.zone.as_deref().unwrap_or("UTC");
        let other = |zone: Option<Zone>| zone.and_then(Zone::in_database) != Some(*counted);
        if other(of_session.parse().ok()) || !other(profile.timezone.zone_of(named).ok()) {
            return None;
        }
        Some(format!(
            "`{column}` is the zone of the request: the days of {time} are those of {counted}; for days of {named}, use {time} AT \
             TIME ZONE '{named}'"
        ))
    }

    /// True if the counts are requested without mentions. A list is requested together with the first page if that
    /// costs nothing extra: the page's values are checked against the list, and reading continues from it if the list
    /// omits mentions.
    pub(crate) fn without_mentions(&self) -> bool {
        match &self.rows {
            SummaryRows::Total | SummaryRows::Days(_) => true,
            SummaryRows::List(_) => !self.with_mentions,
            SummaryRows::Firsts(_) => false,
        }
    }
}

/// The kind of rows of a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SummaryRows {
    /// One row for all mentions of a saved search.
    Total,
    /// One row per value of a column.
    List(CountList),
    /// One row per day of the zone.
    Days(Tz),
    /// The first mention in each of these sort orders; together they represent all.
    Firsts(Vec<ServiceOrder>),
}

/// Returns the summary of a scan's mentions with the wanted information.
///
/// # Errors
/// The reason why there is no summary, for EXPLAIN.
pub(crate) fn summarize(
    profile: &Profile,
    plan: &ScanPlan,
    wanted: &Wanted,
    approximate: bool,
) -> Result<Summary, String> {
    let spec = &profile.tables.mentions;
    let with_mentions = profile.mentions.with_overview && profile.budget.cost_per_record.is_none();
    // Columns with the same value in all mentions of a request.
    let asked = |name: &String| {
        let column = spec.column(name);
        column.is_some_and(|c| matches!(c.origin, Origin::Aid | Origin::Duration | Origin::Timezone))
    };
    let mut columns = wanted.columns.iter().filter(|name| !asked(name));
    let (column, further) = (columns.next(), columns.next());
    if !wanted.firsts.is_empty() {
        if let Some(column) = column {
            return Err(format!("the service cannot return the first mention of each `{column}`"));
        }
        if wanted.days.is_some() {
            return Err("the service cannot return the first mention of each day".into());
        }
        if !plan.countable() && (wanted.counts || wanted.firsts.len() > 1) {
            return Err(format!("the service cannot evaluate {}", plan.kept.join(" or ")));
        }
        let rows = SummaryRows::Firsts(wanted.firsts.clone());
        return Ok(Summary { rows, approximate, with_mentions });
    }
    if !plan.countable() {
        return Err(format!("the service cannot evaluate {}", plan.kept.join(" or ")));
    }
    let Some(counts) = &profile.counts else { return Err("the profile declares no [counts]".into()) };
    match counts.trust {
        Trust::Exact => {}
        Trust::Advisory if approximate => {}
        Trust::Advisory => return Err("the profile's [counts] are advisory and count_from_overview = exact".into()),
        Trust::Absent => return Err("the profile's [counts] are absent".into()),
    }
    let rows = match (column, further, wanted.days) {
        (None, _, None) => SummaryRows::Total,
        (Some(column), None, None) => {
            let list = counts.lists.iter().find(|list| list.column == *column);
            let list = list.ok_or_else(|| format!("the overview does not count by `{column}`"))?;
            // Only the service's own documentation can promise that a list is complete.
            let whole = list.whole && counts.evidence == Evidence::Documented;
            SummaryRows::List(CountList { whole, ..list.clone() })
        }
        (None, _, Some(zone)) => {
            let sent = plan.template.timezone.as_deref();
            // A named window may follow days of the zone that is sent, as local times do; lengths and instants do not.
            let local = |words: &String| !profile.window.is_fixed(words);
            let fixed = !plan.windows.iter().any(local);
            let words = profile.timezone.words_of(Zone::Named(zone)).filter(|_| counts.days);
            let Some(words) = words else {
                return Err(format!("the profile's timeline does not count by days of {zone}"));
            };
            if sent != Some(&words) && !fixed {
                return Err(format!("the overview counts days of {zone} only in that zone: add timezone = '{words}'"));
            }
            SummaryRows::Days(zone)
        }
        (Some(column), further, _) => {
            let other = further.map_or("day".to_owned(), |further| format!("`{further}`"));
            return Err(format!("the overview does not count by `{column}` and {other} together"));
        }
    };
    Ok(Summary { rows, approximate, with_mentions })
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{Expr, col, lit};

    use super::super::plan::plan_scan;
    use super::*;
    use crate::pushdown::order_named;

    fn plan(conjuncts: &[Expr]) -> ScanPlan {
        let now = "2026-07-01T12:00:00Z".parse().expect("valid timestamp");
        plan_scan(&Profile::v4(), &Profile::v4().tables.mentions, conjuncts, "", now).expect("valid plan")
    }

    fn by(columns: &[&str], days: Option<Tz>) -> Result<SummaryRows, String> {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        let wanted = Wanted { columns, days, counts: true, firsts: Vec::new() };
        summarize(&Profile::v4(), &plan(&[]), &wanted, false).map(|summary| summary.rows)
    }

    #[test]
    fn the_overview_counts_by_one_thing_at_a_time() {
        assert_eq!(by(&["aid", "duration"], None), Ok(SummaryRows::Total));
        assert!(matches!(by(&["aid", "language"], None), Ok(SummaryRows::List(list)) if !list.whole));
        assert_eq!(by(&["aid"], Some(Tz::UTC)), Ok(SummaryRows::Days(Tz::UTC)));
        assert!(by(&["language", "source"], None).expect_err("two columns").contains("together"));
        assert!(by(&["language"], Some(Tz::UTC)).expect_err("two columns").contains("together"));
        assert!(by(&["title"], None).expect_err("no list").contains("does not count by `title`"));
        assert_eq!(by(&["timezone"], Some(Tz::Asia__Tokyo)), Ok(SummaryRows::Days(Tz::Asia__Tokyo)));
    }

    #[test]
    fn a_zone_whose_days_are_not_counted_is_noted() {
        let profile = Profile::v4();
        let tokyo = [col("timezone").eq(lit("Asia/Tokyo"))];
        let note = |conjuncts: &[Expr], counted: Tz, session: Option<&str>| {
            let spec = TableSpec { zone: session.map(Into::into), ..profile.tables.mentions.clone() };
            let summary = Summary { rows: SummaryRows::Days(counted), approximate: false, with_mentions: true };
            summary.note(&profile, &spec, &plan(conjuncts))
        };
        let noted = note(&tokyo, Tz::UTC, None).expect("a note");
        assert!(noted.contains("are those of UTC") && noted.contains("AT TIME ZONE 'Asia/Tokyo'"), "{noted}");
        assert_eq!(note(&tokyo, Tz::Asia__Tokyo, Some("Asia/Tokyo")), None);
        assert_eq!(note(&tokyo, Tz::Asia__Tokyo, None), None, "the query names the zone of its days");
        assert_eq!(note(&[], Tz::UTC, None), None);
    }

    #[test]
    fn conditions_that_stay_here_and_profiles_that_promise_nothing_are_named() {
        let total = Wanted { counts: true, ..Wanted::default() };
        let residual = summarize(&Profile::v4(), &plan(&[col("reach").gt(lit(5_i64))]), &total, false);
        assert_eq!(residual.expect_err("residual filter"), "the service cannot evaluate reach > 5");
        let mut profile = Profile::v4();
        profile.counts.as_mut().expect("counts").trust = Trust::Advisory;
        assert!(summarize(&profile, &plan(&[]), &total, false).expect_err("advisory counts").contains("advisory"));
        assert!(summarize(&profile, &plan(&[]), &total, true).is_ok());
        profile.window.names.insert("7d".to_owned(), "7d".to_owned().try_into().expect("valid period"));
        let tokyo = Wanted { days: Some(Tz::Asia__Tokyo), counts: true, ..Wanted::default() };
        let zone = summarize(&profile, &plan(&[]), &tokyo, true).expect_err("named period");
        assert!(zone.contains("timezone = 'Asia/Tokyo'"), "{zone}");
        profile.counts = None;
        assert!(summarize(&profile, &plan(&[]), &total, true).expect_err("no counts").contains("[counts]"));
    }

    #[test]
    fn the_first_mentions_in_several_orders_take_conditions_that_the_service_is_sent() {
        let profile = Profile::v4();
        let kept = plan(&[col("reach").gt(lit(5_i64))]);
        let firsts = |orders: &[&str]| {
            let firsts = orders.iter().map(|value| order_named(&profile, value).expect("known sort order")).collect();
            let wanted = Wanted { firsts, ..Wanted::default() };
            summarize(&profile, &kept, &wanted, false).map(|summary| summary.rows)
        };
        assert!(firsts(&["date_asc"]).is_ok());
        assert_eq!(
            firsts(&["date_asc", "date_desc"]).expect_err("two sort orders"),
            "the service cannot evaluate reach > 5"
        );
    }
}
