//! Evidence in a response for the counts of its overview: its window, its lists, and the mentions in the same response.

use std::sync::Arc;

use super::answer::{Answer, filtered_list};
use super::stand_ins::sum;
use super::stream::Driver;
use crate::decode::Decoded;
use crate::error::{ErrorKind, Result, own_or_query};
use crate::request::{Beside, Hint, PageRequest, Pages, RequestPlan};

/// Judgment on an overview's count of mentions.
pub(super) enum Judged {
    /// The names of the evidence that confirms it, and the instants of the mentions in the response.
    Proven(Vec<&'static str>, Option<Vec<i64>>),
    /// The reason to doubt it.
    Doubted(String),
}

impl Driver {
    /// Records the verdict on a count, at its request and for the scan.
    pub(super) fn judged(&self, request: &PageRequest, verdict: String) {
        let parameters = request.key(self.config.connection.profile()).to_string();
        self.config.connection.client().log().judge_last(&self.scan.query, &parameters, &verdict);
        self.scan.judged(verdict);
    }

    /// Checks that the service used the requested window.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] for another one.
    pub(super) fn check_window(&self, page: &Decoded) -> Result<()> {
        page.echo.check_counts(self.config.connection.client().clocks())?;
        self.check_lag(page)?;
        self.note_lag(page);
        Ok(())
    }

    /// A request for an overview as one for the mentions that stand beside it; `None` if there are none.
    pub(super) fn with_mentions(&self, request: &PageRequest) -> Option<PageRequest> {
        let size = request.size.max(self.config.connection.client().beside_overview());
        let pages = self.config.plan.template.pages.filter(|_| size > 0)?;
        let plan = RequestPlan { pages: Some(Pages { size, ..pages }), ..request.plan.as_ref().clone() };
        Some(PageRequest { plan: Arc::new(plan), size, ..request.clone() })
    }

    /// The mentions beside an overview, as they were decoded with it; `None` if there are none, such as for a service that has
    /// refused to send any along.
    pub(super) fn mentions_beside<'a>(&self, answer: &'a Answer) -> Option<Result<&'a Decoded>> {
        self.with_mentions(&answer.request)?;
        answer.page()
    }

    /// Judges an overview's count of mentions by the mentions and the other numbers in its response.
    pub(super) fn judge(&self, answer: &Answer, counted: i64) -> Result<Judged> {
        let request = &answer.request;
        if let Some(estimate) = answer.estimate_of_total() {
            return Ok(Judged::Doubted(format!("the overview calls its count of {counted} an estimate: {estimate}")));
        }
        let (mut all, mut by, mut times) = (false, Vec::new(), None);
        if let Some(page) = self.mentions_beside(answer) {
            let page = match page {
                Ok(page) => page,
                // Reading them shows what is wrong.
                Err(error) if error.kind() == ErrorKind::Contradiction => {
                    return Ok(Judged::Doubted(format!(
                        "no mention confirms the overview's count of {counted} ({})",
                        error.message()
                    )));
                }
                Err(error) => return Err(error),
            };
            let size = self.with_mentions(request).map_or(request.size, |asked| asked.size);
            let doubt = match numbers_differ(page, counted).or_else(|| counts_page(page, counted, size)) {
                Some(doubt) => Some(doubt),
                None => self.mentions_differ(&request.plan, page)?,
            };
            if let Some(doubt) = doubt {
                return Ok(Judged::Doubted(doubt));
            }
            all = rows_of(page) == counted && self.config.plan.exact;
            let shown =
                [(page.total.is_some(), "total"), (page.beside.timeline.is_some(), "timeline"), (all, "all mentions")];
            by.extend(shown.into_iter().filter_map(|(shown, name)| shown.then_some(name)));
            times.clone_from(&page.times);
        }
        let lists = self.lists_prove_filters(answer, counted)?;
        if !all && counted != 0 && !lists {
            let reason = "nothing in the response shows that it counts only the requested values";
            return Ok(Judged::Doubted(reason.to_owned()));
        }
        if lists && !request.plan.filters.is_empty() {
            by.push("lists");
        }
        Ok(Judged::Proven(if by.is_empty() { vec!["overview"] } else { by }, times))
    }

    /// Says how the mentions beside an overview differ from what was requested.
    fn mentions_differ(&self, plan: &RequestPlan, page: &Decoded) -> Result<Option<String>> {
        if let Err(error) = self.check_zone(plan, page) {
            return Ok(Some(error.message().to_owned()));
        }
        let (profile, client) = (self.config.connection.profile(), self.config.connection.client());
        let words = plan.duration.as_deref();
        let instants = words.and_then(|words| profile.window.span_of(words, plan.zone(profile)));
        let outside =
            |at: &i64| instants.is_some_and(|(from, to)| *at < from.timestamp_micros() || to.timestamp_micros() < *at);
        let words = words.filter(|_| page.echo.window().is_none());
        let earliest = words.and_then(|words| client.earliest(words)).unwrap_or(i64::MIN);
        let counted_from = page.counted_days.and_then(|days| days.first_end);
        let before = |at: &i64| *at < earliest;
        if page.times.iter().flatten().any(|at| outside(at) || before(at)) || counted_from.as_ref().is_some_and(before)
        {
            return Ok(Some("the response has mentions outside the requested period".to_owned()));
        }
        // At an edge, mentions that the query does not want are expected.
        let matching = match self.config.plan.exact {
            true => self.converter.matching(&page.batch).map_err(|error| own_or_query(&error))?,
            false => page.batch.num_rows(),
        };
        let differ = matching < page.batch.num_rows();
        Ok(differ.then(|| "the response has mentions that do not match the requested filters".to_owned()))
    }

    /// True if the lists of filtered columns count as many mentions with the requested values as match all filters.
    fn lists_prove_filters(&self, answer: &Answer, counted: i64) -> Result<bool> {
        for term in &answer.request.plan.filters {
            let list = filtered_list(self.config.connection.profile(), term);
            let Some(list) = list.filter(|list| answer.estimate_of(list).is_none()) else { return Ok(false) };
            let (names, numbers) = answer.list(list)?;
            let of_values = names
                .iter()
                .zip(&numbers)
                .filter(|(name, _)| name.as_ref().is_some_and(|name| term.values.contains(name)));
            let of_values: Vec<i64> = of_values.map(|(_, number)| *number).collect();
            if sum(&of_values) != Some(counted) {
                return Ok(false);
            }
            // Both may be written in another way than the mentions, if none come with the overview.
            let alone = self.with_mentions(&answer.request).is_none();
            if alone && self.unproven_value(list, &names, &numbers, None).is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Says which value the list of a filtered column counts beside the requested ones: the service ignores the filter, compares
    /// differently, or its lists count all mentions.
    pub(super) fn unfiltered(&self, answer: &Answer) -> Result<Option<String>> {
        for term in &answer.request.plan.filters {
            let Some(list) = filtered_list(self.config.connection.profile(), term) else { continue };
            let (names, numbers) = answer.list(list)?;
            let counted = names.iter().flatten().zip(numbers).filter(|(_, number)| *number > 0);
            let mut others = counted.map(|(name, _)| name).filter(|name| !term.values.contains(name));
            if let Some(other) = others.next() {
                let values = term.values.join("|");
                let reason = format!("requested {} `{values}`, but the response also counts `{other}`", list.column);
                return Ok(Some(reason));
            }
        }
        Ok(None)
    }

    /// True if the lists in a response prove that all of its mentions match the filters.
    pub(super) fn proves_filters(&self, answer: &Answer, total: usize) -> bool {
        let total = i64::try_from(total).unwrap_or(i64::MAX);
        // Without an overview in the response, there are no lists.
        let counts = self.config.connection.profile().counts.is_some();
        counts && self.lists_prove_filters(answer, total).unwrap_or(false)
    }
}

fn rows_of(page: &Decoded) -> i64 {
    i64::try_from(page.batch.num_rows()).unwrap_or(i64::MAX)
}

/// Says that an overview may count the mentions of a full page, of this size, rather than all: nothing else in the response adds up
/// to as many.
fn counts_page(page: &Decoded, counted: i64, size: u64) -> Option<String> {
    let of_page = page.records > 0 && page.records >= size && i64::try_from(page.records) == Ok(counted);
    let shown = [page.beside.timeline, page.beside.listed].contains(&Some(page.records));
    (of_page && !shown)
        .then(|| format!("the overview counts {counted} mentions, which may be those of the full page in the response"))
}

/// Says how an overview's count differs from the other numbers of its response, or from the number of mentions there.
fn numbers_differ(page: &Decoded, counted: i64) -> Option<String> {
    let (rows, at_least) = (rows_of(page), page.hint.and_then(Hint::at_least));
    let differs = |number: u64| i64::try_from(number) != Ok(counted);
    let below = |number: u64| !i64::try_from(number).is_ok_and(|number| number <= counted);
    let total = page.total.filter(|total| differs(*total)).or(at_least.filter(|number| below(*number)));
    if let Some(total) = total {
        return Some(format!("the overview counts {counted} mentions, but the total of the response is {total}"));
    }
    let beside = Beside { overview: None, ..page.beside };
    let above = u64::try_from(counted).ok().and_then(|counted| beside.above(counted));
    if let Some(sum) = page.beside.timeline.filter(|sum| differs(*sum)).or(above.map(|(sum, _)| sum)) {
        return Some(format!("the overview counts {counted} mentions, but its timeline or a list adds up to {sum}"));
    }
    let equal = u64::try_from(counted).map_or_else(|_| Vec::new(), |counted| beside.equal_to(counted));
    if rows != counted && equal.is_empty() && at_least.is_some_and(|number| !differs(number)) {
        return Some(format!("the overview counts {counted} mentions, which the response calls a lower bound"));
    }
    (rows > counted || (rows == 0 && counted > 0))
        .then(|| format!("the overview counts {counted} mentions, but the response has {rows}"))
}
