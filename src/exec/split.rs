//! Plans whose mentions lie deeper than paging reaches, and whose window cannot be cut: cut by filters.
//!
//! The overview of the plan lists the values of a column and how many mentions have each. Where these are all mentions,
//! asking for one value after another gives all of them.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;

use super::drive::Driver;
use super::summary::totals;
use crate::error::{ErrorKind, Result};
use crate::request::{FilterTerm, PageRequest, RequestPlan};

impl Driver {
    /// The plan in parts, one a value of a column that the service filters by; `None` where no column's values are known
    /// to be all.
    pub(super) async fn parts(&self, plan: &RequestPlan) -> Result<Option<Vec<RequestPlan>>> {
        let connection = &self.scanning.connection;
        let profile = connection.profile();
        let Some(counts) = &profile.counts else { return Ok(None) };
        let asked = RequestPlan { pages: None, sort: None, ..plan.clone() };
        let request = PageRequest { plan: Arc::new(asked), row: 0, size: 0, frozen: None };
        let decoder = self.decoder(totals(counts, None, &self.overview_table()));
        let (accepting, question) = (self.decoder(totals(counts, None, &self.overview_table())), request.clone());
        let accept = move |body: &[u8]| Ok(accepting.decode(&question, body)?.batch.num_rows() as u64);
        let body = match connection.answer(&self.query, &self.scan, request.clone(), accept).await {
            // An overview that says nothing of use.
            Err(error) if error.kind() == ErrorKind::Contradiction => return Ok(None),
            body => body?,
        };
        let total = decoder.decode(&request, &body)?.batch;
        let total = total.column(0).as_primitive_opt::<Int64Type>().and_then(|total| total.iter().next().flatten());
        let mut best: Option<(i64, Vec<RequestPlan>)> = None;
        for list in &counts.lists {
            let parameter = profile.filters.parameters.iter().find(|parameter| parameter.column == list.column);
            let Some(parameter) = parameter.map(|known| &known.parameter) else { continue };
            if plan.filters.iter().any(|term| term.parameter == *parameter) {
                continue;
            }
            let (names, numbers) = self.list(list, &request, &body)?;
            let counted: Vec<_> = names.iter().zip(&numbers).filter(|(_, number)| **number > 0).collect();
            let named = counted.iter().all(|(name, _)| name.is_some() && **name != list.missing);
            let all = total == Some(counted.iter().map(|(_, number)| **number).sum());
            let largest = counted.iter().map(|(_, number)| **number).max().unwrap_or_default();
            if !(named && all && counted.len() > 1) || best.as_ref().is_some_and(|(known, _)| *known <= largest) {
                continue;
            }
            let part = |name: &String| {
                let term = FilterTerm { parameter: parameter.clone(), values: vec![name.clone()] };
                RequestPlan { filters: plan.filters.iter().cloned().chain([term]).collect(), ..plan.clone() }
            };
            best = Some((largest, counted.iter().filter_map(|(name, _)| name.as_ref()).map(part).collect()));
        }
        Ok(best.map(|(_, parts)| parts))
    }
}
