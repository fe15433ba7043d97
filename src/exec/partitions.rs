//! Splitting by filter values, if a plan has more mentions than paging reaches and its window cannot be cut.
//!
//! The overview of the plan lists the values of a column and the count of mentions for each. If these counts cover all
//! mentions, requesting one value after another returns all of them, unless a mention changes its value in between: the
//! counts are therefore compared with those at the end. Of several such columns, the one with the fewest requests is taken.

use bytes::Bytes;

use super::answer::{AnswerDecoder, AnswerTables};
use super::stream::Driver;
use crate::error::{ErrorKind, Result};
use crate::profile::Several;
use crate::request::{FilterTerm, PageRequest, RequestPlan};

/// A plan for one value, and its count of mentions.
type CountedPlan = (RequestPlan, i64);

impl Driver {
    /// Splits the plan into parts, one per value of a column that the service filters by, each with its count of
    /// mentions. `None` if no column's values are known to cover all mentions.
    pub(super) async fn parts(&self, plan: &RequestPlan) -> Result<Option<Vec<CountedPlan>>> {
        let connection = &self.config.connection;
        let profile = connection.profile();
        let Some(counts) = &profile.counts else { return Ok(None) };
        let request = PageRequest::overview(plan.clone());
        let tables = AnswerTables { lists: counts.lists.clone(), ..AnswerTables::default() };
        let decoder = AnswerDecoder::new(profile, self.settings.lossy_text, tables);
        let accept = |body: &Bytes| {
            let answer = decoder.decode(&request, body);
            let head = answer.totals()?;
            self.check_window(head)?;
            let rows = head.batch.num_rows() as u64;
            Ok((answer, rows))
        };
        let answer = match connection.client().fetch(&self.scan, &request, accept).await {
            // The overview has no usable counts.
            Err(error) if error.kind() == ErrorKind::Contradiction => return Ok(None),
            answer => answer?,
        };
        let total = answer.total()?;
        let page = self.config.plan.template.pages.map_or(1, |pages| pages.size.max(1));
        let depth = profile.depth.rows.unwrap_or(u64::MAX);
        let mut best: Option<((u64, u64), Vec<CountedPlan>)> = None;
        for list in &counts.lists {
            let parameter = profile.filters.parameters.iter().find(|parameter| parameter.column == list.column);
            let Some(parameter) = parameter.map(|known| &known.parameter) else { continue };
            if plan.filters.iter().any(|term| term.parameter == *parameter) {
                continue;
            }
            let (names, numbers) = answer.list(list)?;
            let counted: Vec<_> = names.iter().zip(&numbers).filter(|(_, number)| **number > 0).collect();
            let sayable = |name: &String| {
                let apart = profile.filters.several != Several::Separated || !name.contains(&profile.filters.separator);
                !name.is_empty() && apart && Some(name) != list.missing.as_ref()
            };
            let named = counted.iter().all(|(name, _)| name.as_ref().is_some_and(sayable));
            let all = total.is_some()
                && total == counted.iter().try_fold(0_i64, |sum, (_, number)| sum.checked_add(**number));
            let largest = counted.iter().map(|(_, number)| **number).max().unwrap_or_default();
            let pages = |number: i64| u64::try_from(number).unwrap_or_default().div_ceil(page);
            let requests = counted.iter().map(|(_, number)| pages(**number)).fold(0, u64::saturating_add);
            // A part beyond the depth of paging cannot be read, or is split again.
            let rank = (u64::try_from(largest).unwrap_or_default().saturating_sub(depth), requests);
            if !(named && all && counted.len() > 1) || best.as_ref().is_some_and(|(known, _)| *known <= rank) {
                continue;
            }
            let part = |(name, number): &(&Option<String>, &i64)| {
                let term = FilterTerm { parameter: parameter.clone(), values: vec![(*name).clone()?] };
                let filters = plan.filters.iter().cloned().chain([term]).collect();
                Some((RequestPlan { filters, ..plan.clone() }, **number))
            };
            best = Some((rank, counted.iter().filter_map(part).collect()));
        }
        Ok(best.map(|(_, parts)| parts))
    }
}
