//! Several filters in one request: proof that the service combines them, if nothing matches all of them. Some services answer two
//! filters that they cannot combine with no mentions.
//!
//! ```text
//! no mention matches all ─▶ a page of the first filter alone
//!     ├─ none, or all of them, and none matches the others ─▶ right
//!     ├─ one of them matches the others                    ─▶ contradiction
//!     └─ more follow ─▶ the first filter with the other values of one of them: none ─▶ contradiction
//! ```
//!
//! Filters that were seen to be combined once are not proven again.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use bytes::Bytes;

use super::stream::Driver;
use crate::decode::Decoded;
use crate::error::{Error, ErrorKind, Place, Result, own_or_query};
use crate::request::{FilterTerm, PageRequest, Pages, RequestPlan};

impl Driver {
    /// Proves that no mention matches the filters of a plan, of which the service returned and counted none, with at most two requests.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`], naming the parameters, if one does, or if the service does not combine them.
    pub(super) async fn prove_none(&self, plan: &RequestPlan) -> Result<()> {
        let connection = &self.config.connection;
        let [first, others @ ..] = plan.filters.as_slice() else { return Ok(()) };
        let Some(pages) = plan.pages.or(self.config.plan.template.pages).filter(|pages| pages.skip == 0) else {
            return Ok(());
        };
        if others.is_empty() || connection.combines(&plan.filters) {
            return Ok(());
        }
        let page = self.filtered(plan, pages, vec![first.clone()], pages.size).await?;
        if self.converter.matching(&page.batch).map_err(|error| own_or_query(&error))? > 0 {
            return Err(self.not_combined(plan, "although a mention matches all of them"));
        }
        if page.total.is_some_and(|total| total <= page.records) {
            return Ok(());
        }
        // Values of other types, and mentions without a value, cannot be requested.
        let Some(terms) = self.terms_of(&page, others) else { return Ok(()) };
        let filters = [std::slice::from_ref(first), terms.as_slice()].concat();
        if self.filtered(plan, pages, filters, 1).await?.records == 0 {
            return Err(self.not_combined(plan, "also with the values of a mention that it returned"));
        }
        connection.note_combined(&plan.filters);
        Ok(())
    }

    /// The terms of other filters with the values of one of the mentions of a page.
    fn terms_of(&self, page: &Decoded, others: &[FilterTerm]) -> Option<Vec<FilterTerm>> {
        let known = &self.config.connection.profile().filters.parameters;
        let columns = others.iter().map(|term| {
            let known = known.iter().find(|known| known.parameter == term.parameter)?;
            page.batch.column_by_name(&known.column)?.as_string_opt::<i32>()
        });
        let columns = columns.collect::<Option<Vec<_>>>()?;
        let row = (0..page.batch.num_rows()).find(|row| columns.iter().all(|column| column.is_valid(*row)))?;
        let terms = others.iter().zip(&columns).map(|(term, column)| FilterTerm {
            parameter: term.parameter.clone(),
            values: vec![column.value(row).to_owned()],
        });
        Some(terms.collect())
    }

    /// The first mentions of a plan with other filters.
    pub(super) async fn filtered(
        &self,
        plan: &RequestPlan,
        pages: Pages,
        filters: Vec<FilterTerm>,
        size: u64,
    ) -> Result<Decoded> {
        let client = self.config.connection.client();
        let size = client.page_size(size);
        let pages = Some(Pages { size, fetch: Some(size), ..pages });
        let request =
            PageRequest { size, ..PageRequest::first(Arc::new(RequestPlan { filters, pages, ..plan.clone() })) };
        let decode = |body: &Bytes| {
            let page = self.converter.decoder.decode(&request, body)?;
            let rows = page.records;
            Ok((page, rows))
        };
        client.fetch(&self.scan, &request, decode).await
    }

    fn not_combined(&self, plan: &RequestPlan, how: &str) -> Error {
        let names: Vec<&str> = plan.filters.iter().map(|term| term.parameter.as_str()).collect();
        let message = format!("the service returns no mentions for `{}` in one request, {how}", names.join("` and `"));
        let place = Place { aid: plan.aid.clone(), ..Place::default() };
        self.at_table(
            Error::new(ErrorKind::Contradiction, message)
                .advice("it does not combine these filters: remove one of them from [filters] of the profile, to compare it here")
                .at(place),
        )
    }
}
