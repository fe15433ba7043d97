//! Checks of the pages of a plan as they arrive, and at their end.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::TimestampMicrosecondType;
use datafusion::error::Result as DataFusionResult;

use super::{Driver, filters_ignored};
use crate::client::Prefetch;
use crate::decode::Decoded;
use crate::error::Result;
use crate::exec::answer::Answer;
use crate::exec::contradicted_filters::Contradicted;
use crate::exec::days_read::DaysRead;
use crate::exec::page_converter::{OrderCheck, PageConverter};
use crate::exec::read_options::ReadOptions;
use crate::exec::requested_values::RequestedValues;
use crate::request::RequestPlan;

/// Checks of the pages of one plan, with what they have shown so far.
pub(super) struct PageChecks<'r> {
    driver: &'r Driver,
    plan: &'r RequestPlan,
    converter: &'r PageConverter,
    /// The first response, if it is kept.
    pub(super) response: Arc<OnceLock<Answer>>,
    order: Option<OrderCheck<'r>>,
    /// Set if the first rows are skipped.
    pub(super) skips: bool,
    /// Number of rows that are requested, if it is limited.
    asked: Option<u64>,
    /// Set for a consumer that may stop early, which would never see a proof at the end.
    stops: bool,
    /// Set until a page has come.
    first: bool,
    /// Requested values that nothing has proven yet.
    pub(super) values: RequestedValues,
    /// Times without a zone, which the first response shows to be right.
    assumed: Vec<i64>,
    /// Times of the mentions, to be compared with the timeline.
    days: DaysRead,
    noted: HashSet<String>,
    /// Mentions that came.
    pub(super) received: u64,
    /// Those that are not output.
    dropped: usize,
    /// Those that are not, because they do not belong to the part that is read.
    others: usize,
}

impl<'r> PageChecks<'r> {
    pub(super) fn new(
        driver: &'r Driver,
        plan: &'r RequestPlan,
        converter: &'r PageConverter,
        read: &ReadOptions,
        asked: Option<u64>,
        prefetch: Prefetch,
    ) -> Self {
        Self {
            driver,
            plan,
            converter,
            response: read.first().unwrap_or_default(),
            order: converter.check(),
            skips: plan.pages.is_some_and(|pages| pages.skip > 0),
            asked,
            stops: asked.is_some() || prefetch == Prefetch::OnDemand,
            first: true,
            values: driver.requested_values(plan),
            assumed: Vec::new(),
            days: DaysRead::default(),
            noted: HashSet::new(),
            received: 0,
            dropped: 0,
            others: 0,
        }
    }

    /// Checks a page.
    pub(super) async fn page(&mut self, page: &Decoded) -> Result<()> {
        let Self { driver, plan, converter, .. } = *self;
        driver.check_lag(page).map_err(|error| driver.at_plan(error, plan))?;
        driver.check_clock(plan).map_err(|error| driver.at_table(error))?;
        driver.check_zone(plan, page).map_err(|error| driver.at_table(error))?;
        // A period that was requested for a range covers it. The first response resolves the period.
        if let (Some(range), 0) = (driver.config.plan.reach, self.received) {
            let now = driver.config.connection.client().time_of_service();
            page.echo.check_range(range, now).map_err(|error| driver.at_plan(error, plan))?;
        }
        if let Some(order) = &mut self.order {
            order.observe(&page.batch).map_err(|error| driver.at_plan(error, plan))?;
        }
        if self.received == 0
            && let Some(order) = converter.order()
            && Driver::begins_with_null(order, converter, plan, page)
            && driver.starts_with_null(plan, converter).await.map_err(|error| driver.at_table(error))?
        {
            driver.check_opposite(plan, order).await.map_err(|error| driver.at_table(error))?;
            driver.verify_order(plan, converter).await.map_err(|error| driver.at_table(error))?;
        }
        if std::mem::take(&mut self.first) {
            driver.note_lag(page);
            driver.look_ahead(page).await.map_err(|error| driver.at_table(error))?;
        }
        self.values.see(&page.batch);
        if let (true, Some(time)) = (page.assumed.is_some() || !self.assumed.is_empty(), converter.time) {
            self.assumed.extend(page.batch.column(time).as_primitive::<TimestampMicrosecondType>().values());
        }
        if !self.values.is_empty() && self.stops {
            self.prove_values().await?;
        }
        driver.check_value_part(plan, page).map_err(|error| driver.at_plan(error, plan))?;
        driver.check_fields(plan, page).map_err(|error| driver.at_table(error))?;
        driver.note_fields(plan, page, &mut self.noted).map_err(|error| driver.at_table(error))
    }

    /// The filters that a page contradicts, if the window can be read without them: nothing has been output, counted or stored yet.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`](crate::ErrorKind::Contradiction) if it cannot.
    pub(super) fn contradicted(&self, page: &Decoded, read: &ReadOptions) -> Result<Option<Contradicted>> {
        let Some(contradicted) = self.driver.contradicted(self.plan, &page.batch) else { return Ok(None) };
        let of_query = &self.driver.config.plan.template.filters;
        let whole = self.plan.filters.iter().all(|term| of_query.contains(term));
        if self.received == 0 && self.asked.is_none() && !self.skips && whole && read.is_plain() {
            return Ok(Some(contradicted));
        }
        Err(contradicted.error)
    }

    async fn prove_values(&mut self) -> Result<()> {
        let values = std::mem::take(&mut self.values);
        let proven = self.driver.prove_values(self.plan, values, self.response.get(), true).await;
        proven.map_err(|error| self.driver.at_table(error))
    }

    /// Counts a page, and returns the rows of it that are output.
    pub(super) fn rows(&mut self, page: &Decoded, read: &ReadOptions) -> DataFusionResult<RecordBatch> {
        let own = read.of(&page.batch, self.converter)?;
        let batch = self.converter.finish(&own)?;
        self.others += page.batch.num_rows() - own.num_rows();
        self.driver.counters.page(&self.driver.scan, page);
        self.driver.note_doubt(self.plan, page);
        self.days.see(page, self.converter.time);
        self.received += page.batch.num_rows() as u64;
        self.dropped += page.batch.num_rows() - batch.num_rows();
        if self.skips && self.dropped > 0 {
            return Err(self.driver.at_table(filters_ignored(self.dropped)).into());
        }
        Ok(batch)
    }

    /// Checks what all pages have shown.
    pub(super) async fn end(mut self) -> Result<()> {
        self.prove_values().await?;
        let Self { driver, plan, dropped, received, .. } = self;
        if let Some(response) = self.response.get().filter(|_| !self.assumed.is_empty()) {
            driver.check_assumed(plan, &self.assumed, response).map_err(|error| driver.at_table(error))?;
        }
        driver.check_days_read(plan, &self.days)?;
        if received == 0 {
            driver.prove_none(plan).await.map_err(|error| driver.at_plan(error, plan))?;
        } else if dropped == 0 && driver.config.plan.exact {
            driver.config.connection.note_combined(&plan.filters);
        }
        // No mention satisfies the conditions, although nothing else was requested.
        let (unmatched, filtered) = (dropped - self.others, driver.config.plan.exact && !plan.filters.is_empty());
        if filtered && unmatched > 0 && dropped as u64 == received {
            return Err(driver.at_plan(filters_ignored(unmatched), plan));
        }
        // The service returned as many rows as requested, but some do not match the filters.
        if dropped > 0 && self.asked.is_some_and(|asked| received >= asked) {
            return Err(driver.at_table(filters_ignored(dropped)));
        }
        Ok(())
    }
}
