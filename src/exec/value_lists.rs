//! Lists of values that are too long for one URL. Either the mentions are requested without the list and compared here, or
//! the list is sent in parts that fit, whichever takes fewer requests.
//!
//! ```text
//! first page without the list ─ how many mentions follow, and how many match? ─ fewer requests ─▶ read on
//!                                                                     └ more than the parts take ─▶ part by part
//! ```
//!
//! Invariant: the parts have no value in common, and it is an error if a mention has no value of its part, so no mention is
//! returned twice.

use std::sync::Arc;

use arrow::array::AsArray;
use bytes::Bytes;

use super::outlook::requests_for;
use super::page_converter::PageConverter;
use super::stream::{Driver, filters_ignored};
use crate::decode::Decoded;
use crate::error::{Result, own_or_query};
use crate::request::{PageRequest, RequestPlan};

impl Driver {
    /// Returns the plans of the parts of a value list if they are expected to take fewer requests than the plan. The first page of
    /// the plan is kept for reading it.
    pub(super) async fn value_parts(
        &self,
        plan: &RequestPlan,
        converter: &PageConverter,
    ) -> Result<Option<Vec<RequestPlan>>> {
        let parts = &self.config.plan.value_parts;
        let (Some(first), Some(pages)) = (parts.first(), plan.pages) else { return Ok(None) };
        if plan.filters.iter().any(|term| term.parameter == first.parameter) {
            return Ok(None);
        }
        let request = PageRequest { size: pages.size, ..PageRequest::first(Arc::new(plan.clone())) };
        let decode = |body: &Bytes| {
            let page = converter.decoder.decode(&request, body)?;
            let rows = page.records;
            Ok(((page, body.clone()), rows))
        };
        let connection = &self.config.connection;
        let (page, body) = connection.client().fetch(&self.scan, &request, decode).await?;
        let matching = converter.finish(&page.batch).map_err(|error| own_or_query(&error))?.num_rows() as u64;
        let behind = page.total.unwrap_or_default().saturating_sub(page.records);
        // As many of the others match as of the first page.
        let expected = behind.saturating_add(page.records).saturating_mul(matching) / page.records.max(1);
        let apart = parts.len() as u64 + expected / pages.size.max(1);
        if requests_for(behind, pages.size) <= apart {
            self.scan.keep(request.key(connection.profile()), body);
            return Ok(None);
        }
        let part = |term| {
            let filters = plan.filters.iter().cloned().chain([term]).collect();
            RequestPlan { filters, ..plan.clone() }
        };
        Ok(Some(parts.iter().cloned().map(part).collect()))
    }

    /// Checks that all mentions of a page have a value of the part that was requested.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`](crate::error::ErrorKind::Contradiction) if one has another.
    pub(super) fn check_value_part(&self, plan: &RequestPlan, page: &Decoded) -> Result<()> {
        let parameter = self.config.plan.value_parts.first().map(|part| &part.parameter);
        let Some(term) = plan.filters.iter().find(|term| Some(&term.parameter) == parameter) else { return Ok(()) };
        let known = &self.config.connection.profile().filters.parameters;
        let column = known.iter().find(|known| known.parameter == term.parameter).map(|known| known.column.as_str());
        let values = column.and_then(|column| page.batch.column_by_name(column)?.as_string_opt::<i32>());
        let is_other = |value: Option<&str>| !value.is_some_and(|value| term.values.iter().any(|own| own == value));
        let others =
            values.map_or(page.batch.num_rows(), |values| values.iter().filter(|value| is_other(*value)).count());
        if others > 0 { Err(filters_ignored(others)) } else { Ok(()) }
    }
}
