//! The requests of a scan, computed once from its configuration: EXPLAIN, estimates, admission and execution all use
//! it.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use super::cost::Cost;
use super::scan_config::{Mode, ScanConfig};
#[cfg(feature = "store")]
use super::stored::{self, Divisions, ExpectedUse};
#[cfg(feature = "store")]
use crate::profile::TableKind;
use crate::profile::Zone;
use crate::pushdown::{Aids, CountedWindow, Counting, EDGE_PAGE, ServiceOrder, Summary, SummaryRows, counted_windows};
use crate::request::{PageRequest, Pages, RequestKey, RequestPlan};

/// The requests that a scan sends to the service.
#[derive(Debug)]
pub(super) struct Requests {
    /// Template of the request for the rows of one saved search and window, completed by [`of`](Self::of).
    template: RequestPlan,
    /// The windows, and how their mentions are counted in a summary.
    windows: Vec<CountedWindow>,
    /// The first request, as shown to users: without an aid, with all windows.
    sent: RequestPlan,
    /// Page size of mentions; `None` if the table has none.
    page: Option<u64>,
    /// Computed on first use: optimizer rules copy scans, and most copies are never asked.
    expected: OnceLock<Expected>,
    /// Divisions between the store and the service: those of EXPLAIN and estimates, which a run takes over.
    #[cfg(feature = "store")]
    pub(super) divisions: Divisions,
}

/// Expected cost of a scan, before it runs.
#[derive(Debug)]
struct Expected {
    cost: Cost,
    /// Requests whose responses scans of a query share.
    shared: BTreeSet<RequestKey>,
    /// Use of the store; `None` if the scan uses none.
    #[cfg(feature = "store")]
    stored: Option<ExpectedUse>,
}

impl Requests {
    /// Computes the requests of a scan.
    pub(super) fn new(config: &ScanConfig) -> Self {
        let ScanConfig { plan, mode, late, .. } = config;
        let windows: Vec<CountedWindow> = match mode {
            Mode::Summary(summary) => counted_windows(config.connection.profile(), plan, summary),
            _ => {
                let window = |words: &String| CountedWindow { words: words.clone(), counting: Counting::Overview };
                plan.windows.iter().map(window).collect()
            }
        };
        let order = mode.order().map(|order| order.value.clone());
        let ordered = order.is_some() || plan.until.is_some();
        let skip = mode.slice().skip as u64;
        let template = RequestPlan {
            sort: order.or_else(|| plan.template.sort.clone()),
            pages: plan.template.pages.map(|pages| Pages { ordered, skip, ..pages }),
            ..plan.template.clone()
        };
        let edge = windows.iter().find_map(|window| match &window.counting {
            Counting::Edge(edge) => Some(edge),
            _ => None,
        });
        let page = match edge {
            Some(_) => edge_pages(plan.template.pages).map(|pages| pages.size),
            None => page_size(config),
        };
        let mut sent = sent_first(config, &template, page);
        if let Some(edge) = edge {
            sent.sort = Some(edge.order.value.clone());
        }
        // Subqueries set the windows at run time.
        let words: Vec<&str> = windows.iter().map(|window| window.words.as_str()).collect();
        sent.duration = (!words.is_empty() && late.bounds.is_empty()).then(|| words.join("|"));
        // A mention comes along with an overview.
        let page = page.map(|size| size.max(config.connection.profile().beside_overview()));
        Self {
            template,
            windows,
            sent,
            page,
            expected: OnceLock::new(),
            #[cfg(feature = "store")]
            divisions: Divisions::default(),
        }
    }

    /// Cost of the scan.
    pub(super) fn cost(&self, config: &ScanConfig) -> &Cost {
        &self.expected(config).cost
    }

    /// Requests, for each saved search and window, whose responses scans of a query share: those without mentions, and
    /// those for a list that arrives with the first page.
    pub(super) fn shared(&self, config: &ScanConfig) -> &BTreeSet<RequestKey> {
        &self.expected(config).shared
    }

    /// Use of the store as of the first call; `None` if the scan uses none.
    #[cfg(feature = "store")]
    pub(super) fn stored(&self, config: &ScanConfig) -> Option<&ExpectedUse> {
        self.expected(config).stored.as_ref()
    }

    fn expected(&self, config: &ScanConfig) -> &Expected {
        self.expected.get_or_init(|| {
            let shared = match &config.plan.aids {
                Aids::Given(aids) => self.shared_of(config, aids),
                Aids::Listed | Aids::NotNeeded => BTreeSet::new(),
            };
            let expected = Expected {
                cost: Cost::of(config, &self.sent, self.windows.len() as u64),
                shared,
                #[cfg(feature = "store")]
                stored: None,
            };
            #[cfg(feature = "store")]
            let expected = self.with_store(config, expected);
            expected
        })
    }

    /// Takes out the requests that the store makes unnecessary.
    #[cfg(feature = "store")]
    fn with_store(&self, config: &ScanConfig, expected: Expected) -> Expected {
        let Some(from) = &config.from_store else { return expected };
        let Expected { mut cost, shared, stored } = expected;
        let profile = config.connection.profile();
        cost.lists &= !from.has_answer(&PageRequest::list().key(profile), config.connection.now());
        if config.plan.aids == Aids::NotNeeded && !cost.lists {
            cost.requests = "0".to_owned();
        }
        let Aids::Given(aids) = &config.plan.aids else { return Expected { cost, shared, stored } };
        match self.stored_of(config, aids) {
            Some(stored) => {
                let shared = stored.timelines.clone();
                Expected { cost: cost.with_store(&stored), shared, stored: Some(stored) }
            }
            None => {
                let cost = cost.without_stored(self.stored_answers(config, &shared));
                Expected { cost, shared, stored }
            }
        }
    }

    /// Use of the store for these saved searches, as of now; `None` if the scan uses none.
    #[cfg(feature = "store")]
    pub(super) fn stored_of(&self, config: &ScanConfig, aids: &[String]) -> Option<ExpectedUse> {
        if config.spec.kind != TableKind::Mentions {
            return None;
        }
        let expected = stored::expected(config, &self.divisions, self.plans_of(aids));
        // Counts take one request for each window, unless nothing has to be requested.
        expected.filter(|expected| expected.at_least == 0 || config.summary().is_none())
    }

    /// Stored files of these saved searches with and without an index of the words that a condition looks for, as of now; `None` if
    /// there are no such files, or no condition looks for words.
    #[cfg(feature = "store")]
    pub(super) fn indexes_of(&self, config: &ScanConfig, aids: &[String]) -> Option<String> {
        stored::expected_indexes(config, &self.divisions, self.plans_of(aids))
    }

    /// Returns the requests for the mentions of these saved searches, in the usual sort order.
    #[cfg(feature = "store")]
    fn plans_of(&self, aids: &[String]) -> impl Iterator<Item = RequestPlan> {
        aids.iter().flat_map(move |aid| self.windows.iter().map(move |window| self.in_window(aid, &window.words)))
    }

    /// Number of these requests whose responses are stored.
    #[cfg(feature = "store")]
    pub(super) fn stored_answers(&self, config: &ScanConfig, requests: &BTreeSet<RequestKey>) -> u64 {
        let Some(from) = config.from_store.as_ref().filter(|_| config.spec.kind != TableKind::Mentions) else {
            return 0;
        };
        let now = config.connection.now();
        requests.iter().filter(|key| from.has_answer(key, now)).count() as u64
    }

    /// The windows as the service expects them, in order of time.
    pub(super) fn windows(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.windows.iter().map(|window| window.words.as_str())
    }

    /// Returns the requests for the rows of a saved search, one per window in order of time.
    pub(super) fn of_search(&self, aid: &str) -> Vec<RequestPlan> {
        self.windows.iter().map(|window| self.of(aid, window)).collect()
    }

    /// The way to count the mentions of a window, in a summary.
    pub(super) fn counting(&self, words: Option<&str>) -> &Counting {
        let window = self.windows.iter().find(|window| Some(window.words.as_str()) == words);
        window.map_or(&Counting::Overview, |window| &window.counting)
    }

    /// Returns the request for the rows of a saved search in a window.
    fn of(&self, aid: &str, window: &CountedWindow) -> RequestPlan {
        let plan = self.in_window(aid, &window.words);
        match &window.counting {
            Counting::Edge(edge) => {
                RequestPlan { sort: Some(edge.order.value.clone()), pages: edge_pages(plan.pages), ..plan }
            }
            Counting::Overview | Counting::Read => plan,
        }
    }

    /// Returns the request for the rows of a saved search in a window, in the usual sort order.
    pub(super) fn in_window(&self, aid: &str, words: &str) -> RequestPlan {
        RequestPlan { aid: Some(aid.to_owned()), duration: Some(words.to_owned()), ..self.template.clone() }
    }

    /// Returns the request whose response counts the mentions of a plan of this scan: with the plan's first page, or the
    /// overview alone.
    pub(super) fn for_counts(&self, plan: &RequestPlan, with_page: bool) -> PageRequest {
        // Days are counted in the zone of the summary.
        let plan = RequestPlan { timezone: self.sent.timezone.clone(), ..plan.clone() };
        match plan.pages.filter(|_| with_page) {
            Some(pages) => PageRequest { size: pages.size, ..PageRequest::first(Arc::new(plan)) },
            None => PageRequest::overview(plan),
        }
    }

    /// The first request, without an aid; several windows or sort orders are separated by `|`.
    pub(super) fn sent(&self) -> &RequestPlan {
        &self.sent
    }

    /// Requests for these saved searches whose responses scans of a query share.
    pub(super) fn shared_of(&self, config: &ScanConfig, aids: &[String]) -> BTreeSet<RequestKey> {
        let list = config.summary().is_some_and(|summary| matches!(summary.rows, SummaryRows::List(_)));
        let size = page_size(config).unwrap_or_default();
        if !list && size > 0 {
            return BTreeSet::new();
        }
        let profile = config.connection.profile();
        let question = |aid: &String, window: &CountedWindow| {
            let with_page = match window.counting {
                Counting::Read => return None,
                Counting::Edge(_) => true,
                Counting::Overview => size > 0,
            };
            Some(self.for_counts(&self.of(aid, window), with_page).key(profile))
        };
        aids.iter().flat_map(|aid| self.windows.iter().filter_map(move |window| question(aid, window))).collect()
    }

    /// Page size of mentions; `None` if the table has none.
    pub(super) fn page(&self) -> Option<u64> {
        self.page
    }
}

/// Minimum number of rows to request: two in a sort order, since a single row cannot reveal a wrong direction.
pub(super) fn least_rows(order: Option<&ServiceOrder>) -> usize {
    if order.is_some() { 2 } else { 1 }
}

/// Returns the pages to request at the edge of a window.
fn edge_pages(pages: Option<Pages>) -> Option<Pages> {
    pages.map(|pages| Pages { size: pages.size.min(EDGE_PAGE), ..pages })
}

/// True if counts are requested together with the first page of mentions, which confirms them or begins the read that replaces
/// them. Only mentions show what a filter means to the service, and a page of them is as many requests as a single one.
pub(super) fn counts_with_page(config: &ScanConfig, summary: &Summary) -> bool {
    !summary.without_mentions() || (summary.with_mentions && !config.plan.template.filters.is_empty())
}

/// True if the service filters by a column that no list of the overview counts by: only the mentions show what the filter means.
pub(super) fn has_unlisted_filters(config: &ScanConfig) -> bool {
    let profile = config.connection.profile();
    let listed = |parameter: &str| {
        let column = profile.filters.parameters.iter().find(|known| known.parameter == parameter)?;
        profile.counts.as_ref()?.lists.iter().find(|list| list.column == column.column)
    };
    config.plan.template.filters.iter().any(|term| listed(&term.parameter).is_none())
}

/// Returns the page size of mentions.
fn page_size(config: &ScanConfig) -> Option<u64> {
    let ScanConfig { plan, mode, .. } = config;
    let size = plan.template.pages?.size;
    if mode.summary().is_some_and(|summary| !counts_with_page(config, summary)) {
        return Some(0);
    }
    Some(match (mode.slice().fetch, mode.summary().map(|summary| &summary.rows)) {
        (_, Some(SummaryRows::Firsts(orders))) if plan.countable() && orders.len() == 1 => 2,
        (Some(fetch), _) if plan.exact => size.min(fetch.max(least_rows(mode.order())) as u64),
        _ => size,
    })
}

/// Returns the first request, without an aid and a window.
fn sent_first(config: &ScanConfig, template: &RequestPlan, page: Option<u64>) -> RequestPlan {
    let mut sent = template.clone();
    match config.summary().map(|summary| &summary.rows) {
        Some(SummaryRows::Days(zone)) => {
            sent.timezone = config.connection.profile().timezone.words_of(Zone::Named(*zone));
        }
        Some(SummaryRows::Firsts(orders)) => {
            sent.sort = Some(orders.iter().map(|order| order.value.as_str()).collect::<Vec<_>>().join("|"));
        }
        _ => {}
    }
    if page == Some(0) {
        sent.sort = None;
    }
    sent
}
