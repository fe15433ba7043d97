//! What EXPLAIN says of a scan.

use std::fmt;

use arrow::compute::SortOptions;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

use super::FetchExec;
use super::scan_config::Scanning;
use super::scan_exec::least_rows;
use crate::profile::Zone;
use crate::pushdown::{Aids, ServiceOrder, Summary, SummaryRows};
use crate::request::RequestPlan;

impl DisplayAs for FetchExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scanning { table, plan, predicate, above, fetch, skip, order, wanted, summary, read_because, .. } =
            self.scanning.as_ref();
        let aids = match &plan.aids {
            Aids::NotNeeded => None,
            Aids::Given(aids) => Some(aids.join("|")),
            Aids::Listed => Some("* (from list)".to_owned()),
        };
        let window = match (plan.default_window, self.scanning.bounds.is_empty()) {
            (_, false) => Some("bounded by the subquery when it is known".to_owned()),
            (true, true) => Some("the profile's default".to_owned()),
            (false, true) => None,
        };
        let (template, page) = (self.sent(), self.page_size());
        let schema = self.schema();
        let because = read_because.as_ref().map(|because| format!("one by one, since {because}"));
        let counted = summary.as_ref().map(|summary| said_of(&summary.rows)).or(because);
        let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let parts = [
            ("table", Some(table.name().to_owned())),
            ("sent", Some(format!("[{template}]"))),
            ("aids", aids),
            ("window", window),
            ("page", page.map(|size| size.to_string())),
            ("counted", counted),
            ("requests", Some(self.cost().requests)),
            ("columns", Some(format!("[{}]", columns.join(", ")))),
            ("filter", predicate.as_ref().map(ToString::to_string)),
            ("joined", (!above.is_empty()).then(|| "the saved searches of the other side".to_owned())),
            ("order", order.as_ref().map(|order| format!("{} {}", order.column, direction(order.options)))),
            ("until", plan.until.as_ref().map(|(order, since)| format!("{} < {since}", order.column))),
            ("skip", (*skip > 0).then(|| skip.to_string())),
            ("fetch", fetch.map(|fetch| fetch.to_string())),
            ("pages", wanted.map(|_| "on demand".to_owned())),
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
            DisplayFormatType::TreeRender => said.into_iter().try_for_each(|(key, value)| writeln!(f, "{key}={value}")),
        }
    }
}

impl FetchExec {
    /// What is sent, without an aid.
    pub(super) fn sent(&self) -> RequestPlan {
        let Scanning { plan, order, summary, .. } = self.scanning.as_ref();
        let mut sent = plan.template.clone();
        sent.sort = order.as_ref().map(|order| order.value.clone()).or(sent.sort);
        let windows = self.scanning.windows();
        sent.duration = (!windows.is_empty() && self.scanning.bounds.is_empty()).then(|| windows.join("|"));
        match summary.as_ref().map(|summary| &summary.rows) {
            Some(SummaryRows::Days(zone)) => {
                sent.timezone = self.scanning.connection.profile().timezone.words_of(Zone::Named(*zone));
            }
            Some(SummaryRows::Firsts(orders)) => {
                sent.sort = Some(orders.iter().map(|order| order.value.as_str()).collect::<Vec<_>>().join("|"));
            }
            _ => {}
        }
        if self.page_size() == Some(0) {
            sent.sort = None;
        }
        sent
    }

    /// Mentions that are asked for at once.
    pub(super) fn page_size(&self) -> Option<u64> {
        let Scanning { plan, fetch, order, summary, .. } = self.scanning.as_ref();
        let size = plan.template.pages?.size;
        if summary.as_ref().is_some_and(Summary::without_mentions) {
            return Some(0);
        }
        Some(match (fetch, summary.as_ref().map(|summary| &summary.rows)) {
            (_, Some(SummaryRows::Firsts(orders))) if plan.countable() && orders.len() == 1 => 2,
            (Some(fetch), _) if plan.exact => size.min((*fetch).max(least_rows(order.as_ref())) as u64),
            _ => size,
        })
    }
}

/// Where the numbers of a summary come from.
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
