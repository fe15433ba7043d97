//! Sort orders that begin with NULL. If the profile says that the service puts NULLs last, a NULL in the first row means
//! that no mention has a value. But if the service puts NULLs first, the first row is the same.
//!
//! ```text
//! first row NULL ─ all mentions received ─▶ right
//!              └─ opposite order begins with a value ─▶ contradiction
//!              └─ with NULL as well ─▶ all mentions are read
//! ```

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;

use super::page_converter::PageConverter;
use super::stream::Driver;
use crate::client::{Prefetch, read_pages};
use crate::decode::Decoded;
use crate::error::{Error, ErrorKind, Place, Result, own_or_query};
use crate::pushdown::{ServiceOrder, opposite_order};
use crate::request::{PageRequest, Pages, RequestPlan};

impl Driver {
    /// True if the first page of an order begins with NULL although values would come before, and is not known to have all
    /// mentions. A full page does not show it, whatever the total: further ones may follow.
    pub(super) fn begins_with_null(
        order: &ServiceOrder,
        converter: &PageConverter,
        plan: &RequestPlan,
        page: &Decoded,
    ) -> bool {
        let full = plan.pages.is_none_or(|pages| page.records >= pages.size);
        let all = !full && page.total.is_some_and(|total| total <= page.records);
        !order.options.nulls_first && !all && converter.begins_with_null(&page.batch)
    }

    /// True if the first rows of an order are those of a page that begins with NULL, or begin with NULL as well.
    pub(super) async fn starts_with_null(&self, plan: &RequestPlan, converter: &PageConverter) -> Result<bool> {
        let Some(pages) = plan.pages.filter(|pages| pages.skip > 0) else { return Ok(true) };
        let size = 2;
        let pages = Some(Pages { size, skip: 0, fetch: Some(size), ..pages });
        let plan = Arc::new(RequestPlan { pages, ..plan.clone() });
        let page = self.first_page(PageRequest { size, ..PageRequest::first(plan) }, converter).await?;
        Ok(page.records == 0 || converter.begins_with_null(&page.batch))
    }

    async fn first_page(&self, request: PageRequest, converter: &PageConverter) -> Result<Decoded> {
        let decode = |body: &Bytes| {
            let page = converter.decoder.decode(&request, body)?;
            let rows = page.records;
            Ok((page, rows))
        };
        self.config.connection.client().fetch(&self.scan, &request, decode).await
    }

    /// Checks that the opposite of an order that begins with NULL does so as well.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] if it begins with a value, which should have come first.
    pub(super) async fn check_opposite(&self, plan: &RequestPlan, order: &ServiceOrder) -> Result<()> {
        let connection = &self.config.connection;
        let Some(opposite) = opposite_order(connection.profile(), order) else { return Ok(()) };
        let schema = Arc::clone(&self.converter.schema);
        let converter = PageConverter::try_new(&self.config, Some(&opposite), schema, self.settings.lossy_text);
        let converter = converter.map_err(|error| own_or_query(&error))?;
        // Two rows, as in any order: a service may refuse fewer.
        let size = 2;
        let pages = plan.pages.map(|_| Pages { size, skip: 0, fetch: Some(size), ordered: true });
        let plan = Arc::new(RequestPlan { sort: Some(opposite.value.clone()), pages, ..plan.clone() });
        let request = PageRequest { size, ..PageRequest::first(Arc::clone(&plan)) };
        let page = self.first_page(request, &converter).await?;
        if page.records == 0 || converter.begins_with_null(&page.batch) {
            return Ok(());
        }
        let message = format!(
            "mentions sorted by `{}` begin with NULL, although the service has mentions with a value in `{}`",
            order.value, order.column
        );
        Err(Error::new(ErrorKind::Contradiction, message)
            .advice("the service does not sort NULLs last: correct `nulls` of this value in the profile's [sort]")
            .at(Place { aid: plan.aid.clone(), ..Place::default() }))
    }

    /// Reads all mentions of a plan in an order that begins with NULL, to verify that no value follows.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] if one does; errors of reading.
    pub(super) async fn verify_order(&self, plan: &RequestPlan, converter: &PageConverter) -> Result<()> {
        let Some(mut check) = converter.check() else { return Ok(()) };
        let pages = plan.pages.map(|pages| Pages { fetch: None, skip: 0, ..pages });
        let plan = Arc::new(RequestPlan { pages, ..plan.clone() });
        let client = Arc::clone(self.config.connection.client());
        let decoder = self.keeping(&converter.decoder, None, false);
        let prefetch = Prefetch::Ahead(self.settings.concurrency);
        let mut pages = Box::pin(read_pages(client, Arc::clone(&self.scan), Arc::clone(&plan), decoder, prefetch));
        while let Some(page) = pages.next().await {
            let page = page?;
            self.check_lag(&page)
                .and_then(|()| check.observe(&page.batch))
                .map_err(|error| error.at(Place { aid: plan.aid.clone(), ..Place::default() }))?;
        }
        Ok(())
    }
}
