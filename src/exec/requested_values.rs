//! Lists of requested values, `source IN ('a', 'b')`: proof that the service uses all of them. Some use the first or the last value
//! alone, or a limited number of them, and return the mentions of these as if they were all.
//!
//! ```text
//! values at both ends of the list have mentions ─▶ all of it is used
//! only some values have mentions                ─▶ a list that begins with the others, and one that ends with them, as long as the
//!                                                  first, since its length may be limited
//! none has                                      ─▶ the same with a value that a request without the filter returns
//! not known                                     ─▶ the first mention of the whole list, then as above
//! ```
//!
//! A length that was proven once is not proven again.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use bytes::Bytes;

use super::answer::{Answer, filtered_list};
use super::stream::Driver;
use crate::error::{Error, ErrorKind, Place, Result};
use crate::request::{FilterTerm, PageRequest, Pages, RequestPlan};

/// A list of values of a plan, and those that have mentions.
struct Requested {
    term: FilterTerm,
    column: String,
    shown: Vec<bool>,
}

/// Lists of values of a plan that nothing has proven yet.
#[derive(Default)]
pub(super) struct RequestedValues(Vec<Requested>);

impl RequestedValues {
    /// True if nothing is left to be proven.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes the values of the mentions of a page.
    pub(super) fn see(&mut self, page: &RecordBatch) {
        for requested in &mut self.0 {
            let column = page.column_by_name(&requested.column).and_then(|column| column.as_string_opt::<i32>());
            column.into_iter().flatten().flatten().for_each(|value| requested.note(value));
        }
    }
}

impl Requested {
    fn note(&mut self, value: &str) {
        if let Some(at) = self.term.values.iter().position(|known| known == value) {
            self.shown[at] = true;
        }
    }
}

impl Driver {
    /// The lists of values of a plan that are longer than those that the service was seen to use.
    pub(super) fn requested_values(&self, plan: &RequestPlan) -> RequestedValues {
        let connection = &self.config.connection;
        let parameters = &connection.profile().filters.parameters;
        let lists = plan.filters.iter().filter(|term| !connection.is_proven(term));
        let lists = lists.filter_map(|term| {
            let known = parameters.iter().find(|known| known.parameter == term.parameter)?;
            // Values of other types are written in other ways.
            let text = self.converter.decoder.is_text(&known.column);
            let shown = vec![false; term.values.len()];
            text.then(|| Requested { term: term.clone(), column: known.column.clone(), shown })
        });
        RequestedValues(lists.collect())
    }

    /// Proves that the service uses all values of the lists of a plan: by the mentions that were noted, by the lists of the first
    /// response, and with requests as far as neither shows it. `read`: the first mentions, or all, are among those noted.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`], naming the parameter, if it does not.
    pub(super) async fn prove_values(
        &self,
        plan: &RequestPlan,
        mut values: RequestedValues,
        first: Option<&Answer>,
        read: bool,
    ) -> Result<()> {
        if let Some(answer) = first {
            self.see_lists(&mut values, answer);
            if let Some(Ok(page)) = answer.page() {
                values.see(&page.batch);
            }
        }
        // Pages behind an OFFSET may have no mentions of a list that has some.
        let pages = plan.pages.or(self.config.plan.template.pages);
        let read = read && pages.is_none_or(|pages| pages.skip == 0);
        for requested in &mut values.0 {
            if self.prove(plan, requested, read).await? {
                self.config.connection.note_proven(&requested.term);
            }
        }
        Ok(())
    }

    /// Notes the values that the lists of an overview count.
    fn see_lists(&self, values: &mut RequestedValues, answer: &Answer) {
        for requested in &mut values.0 {
            let Some(list) = filtered_list(self.config.connection.profile(), &requested.term) else { continue };
            // A response without an overview has no lists.
            let Ok((names, numbers)) = answer.list(list) else { continue };
            let counted: Vec<&str> = names
                .iter()
                .zip(numbers)
                .filter(|(_, number)| *number > 0)
                .filter_map(|(name, _)| name.as_deref())
                .collect();
            // A list with other values ignores the filter of its own column.
            if counted.iter().all(|name| requested.term.values.iter().any(|value| value == name)) {
                counted.into_iter().for_each(|name| requested.note(name));
            }
        }
    }

    /// Returns false if there is no mention by which it could be proven, so that none is left out either.
    async fn prove(&self, plan: &RequestPlan, requested: &mut Requested, read: bool) -> Result<bool> {
        // Numbers alone do not tell which values have mentions.
        if !read && !requested.shown.contains(&true) {
            let list = requested.term.values.clone();
            let found = self.values_of(plan, &requested.term, &requested.column, list).await?;
            found.iter().for_each(|value| requested.note(value));
        }
        let Requested { term, column, shown } = requested;
        let (known, missing) = match shown.iter().position(|shown| *shown) {
            Some(at) => {
                let others = term.values.iter().zip(shown.iter()).filter(|(_, shown)| !**shown);
                (term.values[at].clone(), others.map(|(value, _)| value.clone()).collect())
            }
            None => {
                let page = self.values_of(plan, term, column, Vec::new()).await?;
                if let Some(left_out) = page.iter().find(|value| term.values.contains(value)) {
                    return Err(self.unused(plan, term, left_out));
                }
                let Some(known) = page.into_iter().next() else { return Ok(false) };
                (known, term.values.clone())
            }
        };
        // A value at an end shows that the list is used up to there.
        for (shown, at) in [(shown.first(), 0), (shown.last(), missing.len())] {
            if shown == Some(&true) {
                continue;
            }
            let around = |others: usize| {
                let mut list: Vec<String> = missing.iter().cycle().take(others).cloned().collect();
                list.insert(if at == 0 { 0 } else { others }, known.clone());
                list
            };
            let found = match self.values_of(plan, term, column, around(term.values.len() - 1)).await {
                // Some services refuse a value that occurs twice.
                Err(_) if missing.len() + 1 < term.values.len() => {
                    self.values_of(plan, term, column, around(missing.len())).await?
                }
                found => found?,
            };
            if !found.contains(&known) {
                return Err(self.unused(plan, term, found.first().unwrap_or(&known)));
            }
        }
        Ok(true)
    }

    /// The values in the first mentions of a plan with another list; without one, any values match.
    async fn values_of(
        &self,
        plan: &RequestPlan,
        term: &FilterTerm,
        column: &str,
        list: Vec<String>,
    ) -> Result<Vec<String>> {
        let connection = &self.config.connection;
        let Some(pages) = plan.pages.or(self.config.plan.template.pages) else { return Ok(Vec::new()) };
        let size = connection.client().page_size(if list.is_empty() { pages.size } else { 1 });
        let others = plan.filters.iter().filter(|other| other.parameter != term.parameter).cloned();
        let term = FilterTerm { values: list, ..term.clone() };
        let filters = others.chain(Some(term).filter(|term| !term.values.is_empty())).collect();
        let pages = Some(Pages { size, skip: 0, fetch: Some(size), ..pages });
        let plan = Arc::new(RequestPlan { filters, pages, ..plan.clone() });
        let request = PageRequest { size, ..PageRequest::first(plan) };
        let decode = |body: &Bytes| {
            let page = self.converter.decoder.decode(&request, body)?;
            let values = page.batch.column_by_name(column).and_then(|column| column.as_string_opt::<i32>());
            let values: Vec<String> = values.into_iter().flatten().flatten().map(str::to_owned).collect();
            Ok((values, page.records))
        };
        connection.client().fetch(&self.scan, &request, decode).await
    }

    fn unused(&self, plan: &RequestPlan, term: &FilterTerm, value: &str) -> Error {
        let (parameter, values) = (&term.parameter, term.values.join("`, `"));
        let message = format!(
            "the service does not use all values of a list: mentions with `{value}` are missing from the response to \
             `{parameter}` of `{values}`"
        );
        let place = Place { aid: plan.aid.clone(), ..Place::default() };
        self.at_table(
            Error::new(ErrorKind::Contradiction, message)
                .advice("correct `several` in [filters] of the profile: with \"none\", values are requested one by one")
                .at(place),
        )
    }
}
