//! EXPLAIN output of a scan.

use std::fmt;

use arrow::compute::SortOptions;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

use super::FetchExec;
use super::scan_config::ScanConfig;
use crate::pushdown::{Aids, ServiceOrder, SummaryRows};

impl DisplayAs for FetchExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScanConfig { spec, plan, predicate, late, mode, read_because, .. } = self.config.as_ref();
        let slice = mode.slice();
        let aids = match &plan.aids {
            Aids::NotNeeded => None,
            Aids::Given(aids) => Some(aids.join("|")),
            Aids::Listed => Some("* (from list)".to_owned()),
        };
        let window = match (plan.default_window, late.bounds.is_empty()) {
            (_, false) => Some("bounded by the subquery at run time".to_owned()),
            (true, true) => Some("the profile's default".to_owned()),
            (false, true) => None,
        };
        let schema = self.schema();
        let because = read_because.as_ref().map(|because| format!("one by one, because {because}"));
        let counted = mode.summary().map(|summary| said_of(&summary.rows)).or(because);
        #[cfg(feature = "store")]
        let store = self.expected_store();
        #[cfg(not(feature = "store"))]
        let store = None;
        #[cfg(feature = "store")]
        let words = store.as_ref().and_then(|_| self.expected_indexes());
        #[cfg(not(feature = "store"))]
        let words = None;
        let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let parts = [
            ("table", Some(spec.name.to_string())),
            ("sent", Some(format!("[{}]", self.requests.sent()))),
            ("aids", aids),
            ("window", window),
            ("page", self.requests.page().map(|size| size.to_string())),
            ("counted", counted),
            ("store", store),
            ("words", words),
            ("requests", Some(self.cost().requests.clone())),
            ("expected", self.expected_requests().map(|expected| expected.to_string())),
            ("columns", Some(format!("[{}]", columns.join(", ")))),
            ("filter", predicate.as_ref().map(ToString::to_string)),
            ("joined", (!late.above.is_empty()).then(|| "aids from the other input".to_owned())),
            ("order", mode.order().map(|order| format!("{} {}", order.column, direction(order.options)))),
            ("until", plan.until.as_ref().map(|(order, since)| format!("{} < {since}", order.column))),
            ("skip", (slice.skip > 0).then(|| slice.skip.to_string())),
            ("fetch", slice.fetch.map(|fetch| fetch.to_string())),
            ("pages", mode.wanted().map(|_| "on demand".to_owned())),
        ];
        let said = parts.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "FetchExec: ")?;
                for (index, (key, value)) in said.enumerate() {
                    write!(f, "{}{key}={value}", if index == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
            // The engine cuts its lines at bytes, and panics inside a character.
            DisplayFormatType::TreeRender => said
                .into_iter()
                .try_for_each(|(key, value)| writeln!(f, "{key}={}", ascii(&value.replace(" · ", ", ")))),
        }
    }
}

/// Returns a text with other characters than ASCII as escapes.
fn ascii(text: &str) -> String {
    let escaped = |c: char| if c.is_ascii() { c.to_string() } else { c.escape_unicode().to_string() };
    text.chars().map(escaped).collect()
}

/// The source of a summary's counts.
fn said_of(rows: &SummaryRows) -> String {
    match rows {
        SummaryRows::Total => "by the overview's total".to_owned(),
        SummaryRows::List(list) => format!("by the overview's list `{}`", list.dimension),
        SummaryRows::Days(zone) => format!("by the overview's days in {zone}"),
        SummaryRows::Firsts(orders) => {
            let first = |order: &ServiceOrder| format!("{} {}", order.column, direction(order.options));
            format!("by the first mention of {}", orders.iter().map(first).collect::<Vec<_>>().join(" and of "))
        }
    }
}

fn direction(options: SortOptions) -> &'static str {
    if options.descending { "DESC" } else { "ASC" }
}
