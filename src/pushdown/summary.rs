//! Where numbers of mentions, or their smallest and largest values, can be had without reading them.

use std::collections::BTreeSet;

use chrono_tz::Tz;

use super::plan::ScanPlan;
use super::sort::ServiceOrder;
use crate::profile::{CountList, Evidence, Origin, Profile, Trust, Zone};

/// What is wanted of the mentions of a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Columns whose values tell mentions apart, other than by their days.
    pub columns: BTreeSet<String>,
    /// The zone of the days that tell mentions apart.
    pub days: Option<Tz>,
    /// Whether it matters how many mentions there are.
    pub counts: bool,
    /// The first mention in each of these orders.
    pub firsts: Vec<ServiceOrder>,
}

/// Stands in for the mentions of a scan: rows with a number of mentions each, as few as can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    /// What the rows are.
    pub rows: SummaryRows,
    /// Whether approximate numbers will do.
    pub approximate: bool,
    /// Whether a page of mentions can be asked for in the same request as the overview, at no further cost.
    pub with_mentions: bool,
}

impl Summary {
    /// Whether the numbers are requested without mentions. A list comes with the first page wherever that costs nothing:
    /// the page's values are checked against the list, and reading goes on from it where the list leaves mentions out.
    pub(crate) fn without_mentions(&self) -> bool {
        match &self.rows {
            SummaryRows::Total | SummaryRows::Days(_) => true,
            SummaryRows::List(_) => !self.with_mentions,
            SummaryRows::Firsts(_) => false,
        }
    }
}

/// What the rows of a summary are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SummaryRows {
    /// One for all mentions of a saved search.
    Total,
    /// One for each value of a column.
    List(CountList),
    /// One for each day of the zone.
    Days(Tz),
    /// The first mention in each of these orders; together they stand for all.
    Firsts(Vec<ServiceOrder>),
}

/// The summary of a scan's mentions that has what is wanted.
///
/// # Errors
/// Why there is none, for EXPLAIN.
pub(crate) fn summarize(
    profile: &Profile,
    plan: &ScanPlan,
    wanted: &Wanted,
    approximate: bool,
) -> Result<Summary, String> {
    let spec = &profile.tables.mentions;
    let with_mentions = profile.mentions.with_overview && profile.budget.cost_per_record.is_none();
    // The same for all mentions of one request.
    let asked = |name: &String| {
        let column = spec.column(name);
        column.is_some_and(|c| matches!(c.origin, Origin::Aid | Origin::Duration | Origin::Timezone))
    };
    let mut columns = wanted.columns.iter().filter(|name| !asked(name));
    let (column, further) = (columns.next(), columns.next());
    if !wanted.firsts.is_empty() {
        if let Some(column) = column {
            return Err(format!("the first mention of each `{column}` cannot be asked for"));
        }
        if wanted.days.is_some() {
            return Err("the first mention of each day cannot be asked for".into());
        }
        if !plan.countable() && (wanted.counts || wanted.firsts.len() > 1) {
            return Err(format!("the service cannot be sent {}", plan.kept.join(" nor ")));
        }
        let rows = SummaryRows::Firsts(wanted.firsts.clone());
        return Ok(Summary { rows, approximate, with_mentions });
    }
    if !plan.countable() {
        return Err(format!("the service cannot be sent {}", plan.kept.join(" nor ")));
    }
    let Some(counts) = &profile.counts else { return Err("the profile has no [counts]".into()) };
    match counts.trust {
        Trust::Exact => {}
        Trust::Advisory if approximate => {}
        Trust::Advisory => return Err("the profile's [counts] are advisory, and count_from_overview = exact".into()),
        Trust::Absent => return Err("the profile's [counts] are absent".into()),
    }
    let rows = match (column, further, wanted.days) {
        (None, _, None) => SummaryRows::Total,
        (Some(column), None, None) => {
            let list = counts.lists.iter().find(|list| list.column == *column);
            let list = list.ok_or_else(|| format!("the overview does not count by `{column}`"))?;
            // Only the service's own manual can promise that a list is whole.
            let whole = list.whole && counts.evidence == Evidence::Documented;
            SummaryRows::List(CountList { whole, ..list.clone() })
        }
        (None, _, Some(zone)) => {
            let sent = plan.template.timezone.as_deref();
            // A name may mean days of the zone that is sent along, and local times do; lengths and instants do not.
            let local = |words: &String| !profile.window.is_fixed(words);
            let fixed = !plan.windows.iter().any(local);
            let words = profile.timezone.words_of(Zone::Named(zone)).filter(|_| counts.days);
            let Some(words) = words else {
                return Err(format!("the profile's timeline does not count by days of {zone}"));
            };
            if sent != Some(&words) && !fixed {
                return Err(format!(
                    "days of {zone} are counted by the overview of that zone only: add timezone = '{words}'"
                ));
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
        let now = "2026-07-01T12:00:00Z".parse().expect("an instant");
        plan_scan(&Profile::v4(), &Profile::v4().tables.mentions, conjuncts, "", now).expect("a plan")
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
        assert!(by(&["language", "source"], None).expect_err("two").contains("together"));
        assert!(by(&["language"], Some(Tz::UTC)).expect_err("two").contains("together"));
        assert!(by(&["title"], None).expect_err("no list").contains("does not count by `title`"));
        assert_eq!(by(&["timezone"], Some(Tz::Asia__Tokyo)), Ok(SummaryRows::Days(Tz::Asia__Tokyo)));
    }

    #[test]
    fn conditions_that_stay_here_and_profiles_that_promise_nothing_are_named() {
        let total = Wanted { counts: true, ..Wanted::default() };
        let residual = summarize(&Profile::v4(), &plan(&[col("reach").gt(lit(5_i64))]), &total, false);
        assert_eq!(residual.expect_err("residual"), "the service cannot be sent reach > 5");
        let mut profile = Profile::v4();
        profile.counts.as_mut().expect("counts").trust = Trust::Advisory;
        assert!(summarize(&profile, &plan(&[]), &total, false).expect_err("advisory").contains("advisory"));
        assert!(summarize(&profile, &plan(&[]), &total, true).is_ok());
        profile.window.names.insert("7d".to_owned(), "7d".to_owned().try_into().expect("a period"));
        let tokyo = Wanted { days: Some(Tz::Asia__Tokyo), counts: true, ..Wanted::default() };
        let zone = summarize(&profile, &plan(&[]), &tokyo, true).expect_err("a named period");
        assert!(zone.contains("timezone = 'Asia/Tokyo'"), "{zone}");
        profile.counts = None;
        assert!(summarize(&profile, &plan(&[]), &total, true).expect_err("none").contains("[counts]"));
    }

    #[test]
    fn the_first_mentions_in_several_orders_take_conditions_that_the_service_is_sent() {
        let profile = Profile::v4();
        let kept = plan(&[col("reach").gt(lit(5_i64))]);
        let firsts = |orders: &[&str]| {
            let firsts = orders.iter().map(|value| order_named(&profile, value).expect("an order")).collect();
            let wanted = Wanted { firsts, ..Wanted::default() };
            summarize(&profile, &kept, &wanted, false).map(|summary| summary.rows)
        };
        assert!(firsts(&["date_asc"]).is_ok());
        assert_eq!(firsts(&["date_asc", "date_desc"]).expect_err("two"), "the service cannot be sent reach > 5");
    }
}
