//! Counts of mentions without reading the mentions: rows that each represent many.
//!
//! ```text
//! plan ─▶ overview response ─ its counts add up ─▶ one row per value or day, with its count of mentions
//!                └─ they do not, or are marked approximate ─▶ the mentions themselves, each representing one
//! plan ─▶ first mention in each sort order ─ these are all ─▶ each representing one
//!                └─ there are more ─▶ the first ones, together representing all
//! ```
//!
//! A count is used only if the response itself proves it: the entries of a list must add up to the total. If a list does not
//! count all mentions, the others are not assumed to have no value; they are read. If the response also contains a page, the
//! page's values are checked against the list. The response also shows if the service applied the parameters of the request:
//! it echoes the window, and its lists have the values of filtered columns. If it contradicts the request, that is an error,
//! because counts cannot be filtered here.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{FieldRef, TimestampMicrosecondType};
use async_stream::try_stream;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use datafusion::error::Result as DataFusionResult;
use futures::StreamExt;

use super::answer::{Answer, AnswerDecoder, AnswerTables, weights};
use super::buckets::{Bucket, are_days, outside, uncounted};
use super::count_evidence::Judged;
use super::page_converter::PageConverter;
use super::requested_values::RequestedValues;
use super::requests::counts_with_page;
use super::scan_config::ScanConfig;
#[cfg(feature = "store")]
use super::stored::is_used;
use super::stream::{Batches, Driver, filters_ignored};
use crate::client::{Prefetch, counted, doubted, read_pages};
use crate::decode::{Decoded, in_zone_of};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::profile::{CountList, Origin, Trust, Zone};
use crate::pushdown::{Counting, Edge, ServiceOrder, Summary, SummaryRows};
use crate::request::{Beside, PageRequest, Pages, RequestPlan};

impl Driver {
    /// Returns the rows that represent the mentions of one plan.
    pub(super) fn summary(self: Arc<Self>, summary: Summary, plan: RequestPlan, prefetch: Prefetch) -> Batches {
        #[cfg(feature = "store")]
        if let (Some(aid), Some(words), true) = (&plan.aid, &plan.duration, is_used(&self.config)) {
            let (all, count) = (self.requests.in_window(aid, words), self.requests.for_counts(&plan, false));
            let rows = async move {
                let stored = all.clone();
                let reads = move |driver: &Self| driver.is_stored(&stored) || driver.refreshes(&stored, &count);
                let reads = self.aside(reads).await;
                match reads {
                    Ok(true) => self.rows(all, None, prefetch),
                    Ok(false) => self.requested(summary, plan, prefetch),
                    Err(error) => {
                        let failed: DataFusionResult<RecordBatch> = Err(error.into());
                        futures::stream::iter([failed]).boxed()
                    }
                }
            };
            return futures::FutureExt::flatten_stream(rows).boxed();
        }
        self.requested(summary, plan, prefetch)
    }

    /// Returns these rows by requests.
    fn requested(self: Arc<Self>, summary: Summary, plan: RequestPlan, prefetch: Prefetch) -> Batches {
        match (self.requests.counting(plan.duration.as_deref()).clone(), summary.rows.clone()) {
            (Counting::Read, _) => self.rows(plan, None, prefetch),
            (_, SummaryRows::Firsts(orders)) => self.firsts(orders, plan),
            (Counting::Overview, _) => self.counted(summary, plan),
            (Counting::Edge(edge), _) => self.counted_at_edge(edge, summary, plan),
        }
    }

    /// Counts the mentions of a window by its overview, without those at its edge that the page in the same response shows
    /// not to belong. If the page does not show all of these, the two parts of the window are requested apart.
    fn counted_at_edge(self: Arc<Self>, edge: Edge, summary: Summary, plan: RequestPlan) -> Batches {
        let stream = try_stream! {
            let request = self.requests.for_counts(&plan, true);
            let tables = self.tables_of(&summary, &request, true);
            let (answer, _) = self.overview(&request, tables).await.map_err(|error| self.at_plan(error, &plan))?;
            self.check_clock(&plan).map_err(|error| self.at_plan(error, &plan))?;
            let proven = self.prove_values(&plan, self.requested_values(&plan), Some(&answer), false);
            proven.await.map_err(|error| self.at_plan(error, &plan))?;
            let page = self.edge_page(&summary, &answer)?;
            let counted = self
                .count(&summary, &plan, &answer, Some((&edge, &page)))
                .map_err(|error| self.at_plan(error, &plan))?;
            let none = matches!(answer.total(), Ok(Some(0)));
            drop(answer);
            if let Some(batch) = counted {
                if none {
                    self.prove_none(&plan).await.map_err(|error| self.at_plan(error, &plan))?;
                }
                yield batch?;
                return;
            }
            let aid = plan.aid.as_deref().unwrap_or_default();
            let [whole, part] = edge.apart.each_ref().map(|words| self.requests.in_window(aid, words));
            let mut counted = Arc::clone(&self).counted(summary, whole);
            while let Some(batch) = counted.next().await {
                yield batch?;
            }
            let mut read = Arc::clone(&self).rows(part, None, Prefetch::OnDemand);
            while let Some(batch) = read.next().await {
                yield batch?;
            }
        };
        stream.boxed()
    }

    /// The tables of a response that a count uses. `edge`: set if its mentions show which of them do not belong.
    fn tables_of(&self, summary: &Summary, request: &PageRequest, edge: bool) -> AnswerTables {
        let tables = AnswerTables::of(self.config.connection.profile(), &request.plan.filters);
        let (list, days) = match &summary.rows {
            SummaryRows::List(list) => (Some(list), false),
            SummaryRows::Days(_) => (None, true),
            SummaryRows::Total | SummaryRows::Firsts(_) => (None, false),
        };
        let beside = self.with_mentions(request).filter(|_| edge || !summary.approximate);
        AnswerTables {
            rest: list.and_then(|list| list.rest.clone()),
            timeline: days || (tables.timeline && !summary.approximate),
            lists: tables.lists.into_iter().chain(list.cloned()).collect(),
            page: beside.map(|asked| (Arc::clone(&self.converter.decoder), asked)),
        }
    }

    /// Takes the mentions on a page at the edge of a window from its response, and the values that a list counts by.
    fn edge_page(&self, summary: &Summary, answer: &Answer) -> DataFusionResult<EdgePage> {
        let Some(page) = answer.page() else { return Ok(EdgePage::default()) };
        let page = page.map_err(|error| self.at_plan(error, &answer.request.plan))?;
        let Decoded { batch, ids, times, total, .. } = page;
        let matching = self.converter.matching(batch)?;
        let values = match &summary.rows {
            SummaryRows::List(list) => {
                let values = batch.column_by_name(&list.column).and_then(|values| values.as_string_opt::<i32>());
                values.into_iter().flatten().map(|value| value.map(str::to_owned)).collect()
            }
            _ => Vec::new(),
        };
        Ok(EdgePage { ids: ids.clone(), times: times.clone(), total: *total, matching, values })
    }

    fn counted(self: Arc<Self>, summary: Summary, plan: RequestPlan) -> Batches {
        let stream = try_stream! {
            // The first page comes along if mentions may be needed.
            let request = self.requests.for_counts(&plan, counts_with_page(&self.config, &summary));
            let tables = self.tables_of(&summary, &request, false);
            let (answer, body) = self.overview(&request, tables).await.map_err(|error| self.at_plan(error, &plan))?;
            self.check_clock(&plan).map_err(|error| self.at_plan(error, &plan))?;
            let proven = self.prove_values(&plan, self.requested_values(&plan), Some(&answer), false);
            proven.await.map_err(|error| self.at_plan(error, &plan))?;
            let spelled = self.see_spelling(&summary, &plan, &answer);
            spelled.await.map_err(|error| self.at_plan(error, &plan))?;
            let counted = self.count(&summary, &plan, &answer, None).map_err(|error| self.at_plan(error, &plan))?;
            let none = matches!(answer.total(), Ok(Some(0)));
            drop(answer);
            match counted {
                Some(batch) => {
                    if none {
                        self.prove_none(&plan).await.map_err(|error| self.at_plan(error, &plan))?;
                    }
                    yield batch?;
                }
                None => {
                    // A response that a store may have kept is too old to be read as a page.
                    if request.plan.pages.is_some() && !self.query.keeps_answers() {
                        self.scan.keep(request.key(self.config.connection.profile()), body);
                    }
                    let mut rows = self.rows(plan, None, Prefetch::Ahead(1));
                    while let Some(batch) = rows.next().await {
                        yield batch?;
                    }
                }
            }
        };
        stream.boxed()
    }

    /// Requests an overview, and decodes these tables of the response.
    pub(super) async fn overview(&self, request: &PageRequest, tables: AnswerTables) -> Result<(Answer, Bytes)> {
        let Self { config, scan, query, .. } = self;
        let profile = config.connection.profile();
        if profile.counts.is_none() {
            return Err(Error::new(ErrorKind::Profile, "the profile declares no [counts]"));
        }
        let decoder = Arc::new(AnswerDecoder::new(profile, self.settings.lossy_text, tables));
        let asked = request.clone();
        let accept = move |body: &Bytes| {
            let answer = decoder.decode(&asked, body);
            let rows = answer.totals()?.batch.num_rows() as u64;
            Ok(((answer, body.clone()), rows))
        };
        let (answer, body) = config.connection.answer(query, scan, request.clone(), accept).await?;
        if answer.is_exact()?
            && let Some(total) = answer.total()?.and_then(|total| u64::try_from(total).ok())
        {
            self.note_count(&request.plan, total);
        }
        Ok((answer, body))
    }

    /// Remembers the number of mentions that an overview states, for estimates of scans that name another zone, or none.
    pub(super) fn note_count(&self, plan: &RequestPlan, total: u64) {
        let connection = &self.config.connection;
        let fixed = plan.duration.as_deref().is_some_and(|words| connection.profile().window.is_fixed(words));
        let own = &self.config.plan.template.timezone;
        if fixed && plan.timezone != *own {
            connection.client().note_count(&RequestPlan { timezone: own.clone(), ..plan.clone() }, total);
        }
        connection.client().note_count(plan, total);
    }

    /// Returns the counted rows of a response, without the mentions that do not belong at an edge of its window; `None` if
    /// its counts are not exact counts of all mentions, or its page does not show all that do not belong.
    fn count(
        &self,
        summary: &Summary,
        plan: &RequestPlan,
        answer: &Answer,
        edge: Option<(&Edge, &EdgePage)>,
    ) -> Result<Option<DataFusionResult<RecordBatch>>> {
        let request = &answer.request;
        let Some(counts) = &self.config.connection.profile().counts else { return Ok(None) };
        let head = answer.totals()?;
        self.scan.pages.fetch_add(1, Ordering::Relaxed);
        self.counters.page(&self.scan, &Decoded { batch: head.batch.slice(0, 0), ..head.clone() });
        self.note_doubt(plan, head);
        self.check_window(head)?;
        let exact = answer.is_exact()? || summary.approximate;
        let Some(total) = answer.total()?.filter(|_| exact) else { return Ok(None) };
        // Why the counts are not used, for the author of the query.
        let doubted = |reason: String, advice: &str| {
            self.judged(request, doubted(&reason));
            let message = format!("{reason}: counting mentions one by one{advice}");
            self.config.connection.client().log().note(&self.query.budget, plan.aid.clone(), message);
            Ok(None)
        };
        if let Some(reason) = self.unfiltered(answer)? {
            return doubted(reason, "; correct the profile's [filters] or [counts]");
        }
        let (by, times) = match summary.approximate {
            true => (vec!["approximate"], None),
            false => match self.judge(answer, total)? {
                Judged::Proven(by, times) => (by, times),
                Judged::Doubted(reason) => return doubted(reason, ""),
            },
        };
        let proves = counts.days && !summary.approximate;
        let volume = match proves || matches!(summary.rows, SummaryRows::Days(_)) {
            true => answer.timeline()?.map(|timeline| &timeline.batch),
            false => None,
        };
        if let Some(volume) = volume.filter(|_| proves)
            && let Some(reason) = self.timeline_differs(plan, volume, (total, times.as_deref()), head.echo.window())
        {
            return doubted(reason, "");
        }
        let excluded = match edge {
            None => Vec::new(),
            Some((edge, page)) => match page.excluded(edge, total)? {
                Some(excluded) => excluded,
                None => return Ok(None),
            },
        };
        let exact_total = (!summary.approximate).then_some(total);
        let counts = match &summary.rows {
            SummaryRows::Total => Counts::Of(Arc::new(StringArray::new_null(1)), vec![total]),
            SummaryRows::List(list) => self.counts_of_list(list, answer, total, summary.approximate)?,
            SummaryRows::Days(zone) => match volume {
                Some(days) => self.counts_of_days(Zone::Named(*zone), days, plan, head.echo.window(), exact_total),
                None => Counts::Doubted("the response has no timeline as the profile declares it".to_owned(), ""),
            },
            SummaryRows::Firsts(_) => Counts::None,
        };
        let (values, numbers) = match counts {
            Counts::Of(values, numbers) => (values, numbers),
            Counts::Doubted(reason, advice) => return doubted(reason, advice),
            Counts::None => return Ok(None),
        };
        let Some(numbers) = without(&excluded, &summary.rows, &values, numbers) else { return Ok(None) };
        self.judged(request, counted(sum(&numbers).unwrap_or(total), &by));
        Ok(Some(self.standing_for(summary, plan, &values, numbers)))
    }

    /// The counts of a list, with the mentions that have no value as one more.
    fn counts_of_list(&self, list: &CountList, answer: &Answer, total: i64, approximate: bool) -> Result<Counts> {
        let (mut names, mut numbers) = answer.list(list)?;
        self.without_null_words(list, &mut names);
        let Some(left) = sum(&numbers).and_then(|sum| total.checked_sub(sum)) else { return Ok(Counts::None) };
        let without_value = list.whole && left > 0 && self.nullable(&list.column);
        if without_value {
            names.push(None);
            numbers.push(left);
        }
        // The mentions show whether the profile is wrong about the column.
        if !self.nullable(&list.column) && names.iter().any(Option::is_none) {
            return Ok(Counts::None);
        }
        if !approximate {
            if let Some(estimate) = answer.estimate_of(list) {
                let reason = format!("the overview list `{}` is an estimate: {estimate}", list.dimension);
                return Ok(Counts::Doubted(reason, ""));
            }
            // Mentions that the list does not count may have any value.
            if left != 0 && !without_value {
                return Ok(Counts::None);
            }
            let page = self.mentions_beside(answer).transpose()?;
            if let Some(contradiction) = page.and_then(|page| contradiction(list, &names, &numbers, page)) {
                return Ok(Counts::Doubted(contradiction, "; correct the profile's [counts]"));
            }
            if let Some(value) = self.unproven_value(list, &names, &numbers, page) {
                let CountList { column, dimension, .. } = list;
                let reason = format!(
                    "no mention shows that `{value}` of the overview list `{dimension}` is a value of `{column}`"
                );
                return Ok(Counts::Doubted(reason, ""));
            }
        }
        Ok(Counts::Of(Arc::new(StringArray::from(names)), numbers))
    }

    /// The counts of a timeline. `total`: the number of mentions that they must add up to, if they are exact.
    fn counts_of_days(
        &self,
        zone: Zone,
        days: &RecordBatch,
        plan: &RequestPlan,
        stated: Option<(DateTime<Utc>, DateTime<Utc>)>,
        total: Option<i64>,
    ) -> Counts {
        let numbers = weights(days.column(1));
        if total.is_some() && !self.are_days(zone, days, plan, stated) {
            return Counts::Doubted(format!("the overview's timeline does not show the days of {zone}"), "");
        }
        let sum = sum(&numbers);
        if days.column(0).null_count() > 0 || sum.is_none() || total.is_some_and(|total| sum != Some(total)) {
            return Counts::None;
        }
        Counts::Of(Arc::clone(days.column(0)), numbers)
    }

    /// True if the buckets of a timeline, with their starts, counts and perhaps ends, are the days of a zone.
    fn are_days(
        &self,
        zone: Zone,
        buckets: &RecordBatch,
        plan: &RequestPlan,
        stated: Option<(DateTime<Utc>, DateTime<Utc>)>,
    ) -> bool {
        let Some(buckets) = buckets_of(buckets) else { return false };
        self.have_days(zone, buckets.into_iter().map(|(bucket, _)| bucket).collect(), plan, stated)
    }

    /// True if these buckets are the days of a zone.
    pub(super) fn have_days(
        &self,
        zone: Zone,
        buckets: Vec<Bucket>,
        plan: &RequestPlan,
        stated: Option<(DateTime<Utc>, DateTime<Utc>)>,
    ) -> bool {
        let (from, to) = self.window_of(plan, stated).unzip();
        // A relative period ends now.
        let to = to.unwrap_or_else(|| self.config.connection.now());
        are_days(zone, buckets, (from.map(|from| from.timestamp_micros()), Some(to.timestamp_micros())))
    }

    /// The window of a plan: the requested instants, or the instants that the response reports for a relative period.
    pub(super) fn window_of(
        &self,
        plan: &RequestPlan,
        stated: Option<(DateTime<Utc>, DateTime<Utc>)>,
    ) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let profile = self.config.connection.profile();
        let asked = plan.duration.as_deref().and_then(|words| profile.window.span_of(words, plan.zone(profile)));
        asked.or(stated)
    }

    /// Says how the days of a timeline differ from the requested period, from the total, or from the mentions of these instants in
    /// the same response.
    fn timeline_differs(
        &self,
        plan: &RequestPlan,
        volume: &RecordBatch,
        (total, times): (i64, Option<&[i64]>),
        stated: Option<(DateTime<Utc>, DateTime<Utc>)>,
    ) -> Option<String> {
        let days = self.are_days(plan.zone(self.config.connection.profile()), volume, plan, stated);
        let buckets = buckets_of(volume)?;
        let counts: Vec<i64> = buckets.iter().map(|(_, count)| *count).collect();
        if let Some((from, to)) = self.window_of(plan, stated)
            && let Some((day, count)) = outside(buckets.clone(), (from, to), days)
        {
            return Some(format!(
                "the overview's timeline counts {count} mentions from {day} on, in a period from {from} to {to}"
            ));
        }
        if let Some(at) = times.filter(|_| days).and_then(|times| uncounted(buckets, times)) {
            return Some(format!("the overview's timeline does not count a mention of {at} in the same response"));
        }
        // A capped total is below the sum of its days.
        let sum = sum(&counts).filter(|sum| *sum != total)?;
        Some(format!("the overview counts {total} mentions, but its timeline adds up to {sum}"))
    }

    /// Checks times that have no zone, and are taken for UTC, by the days of the timeline in the first response, if those are of UTC
    /// and add up to as many mentions.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] if a day has other mentions than it counts.
    pub(super) fn check_assumed(&self, plan: &RequestPlan, times: &[i64], first: &Answer) -> Result<()> {
        let profile = self.config.connection.profile();
        if profile.counts.as_ref().is_none_or(|counts| !counts.days || counts.trust != Trust::Exact) {
            return Ok(());
        }
        let Some(Decoded { batch: volume, echo, .. }) = first.timeline()? else { return Ok(()) };
        let Some(buckets) = buckets_of(volume) else { return Ok(()) };
        let counts: Vec<i64> = buckets.iter().map(|(_, count)| *count).collect();
        let as_many = sum(&counts).and_then(|sum| usize::try_from(sum).ok()) == Some(times.len());
        if !as_many || !self.are_days(Zone::UTC, volume, plan, echo.window()) {
            return Ok(());
        }
        let Some(at) = uncounted(buckets, times) else { return Ok(()) };
        let time = profile.tables.mentions.time.as_deref().unwrap_or_default();
        let message = format!(
            "`{time}` has no time zone, and the days of the timeline are not those of its times in UTC: none counts the mention of {at}"
        );
        Err(Error::new(ErrorKind::Contradiction, message)
            .advice(format!("set `zone` of the column `{time}` in the profile to the zone of its times, or to \"UTC\" if they are right"))
            .at(Place { aid: plan.aid.clone(), ..Place::default() }))
    }

    /// Returns rows of the output, except those that represent no mention.
    fn standing_for(
        &self,
        summary: &Summary,
        plan: &RequestPlan,
        values: &ArrayRef,
        numbers: Vec<i64>,
    ) -> DataFusionResult<RecordBatch> {
        let ScanConfig { spec, projection, .. } = self.config.as_ref();
        let some = numbers.iter().map(|number| Some(*number > 0)).collect();
        let count = numbers.len();
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
        let text = |value: Option<&str>| Arc::new(StringArray::from(vec![value; count])) as ArrayRef;
        let counted = summary.counted(spec);
        let column = |(field, at): (&FieldRef, &usize)| match spec.columns.get(*at) {
            None => Arc::clone(&numbers),
            Some(column) => match column.origin {
                Origin::Aid => text(plan.aid.as_deref()),
                Origin::Duration => text(plan.named_window()),
                Origin::Timezone => text(plan.timezone.as_deref()),
                _ if counted == Some(&column.name) => in_zone_of(values, field.data_type()),
                // No operator above uses this column.
                _ => arrow::array::new_null_array(field.data_type(), count),
            },
        };
        let columns = self.converter.schema.fields().iter().zip(projection).map(column).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.converter.schema), columns, &options)?;
        Ok(arrow::compute::filter_record_batch(&batch, &some)?)
    }

    /// Returns the daily counts of a response, if they prove themselves by adding up to an exact total.
    #[cfg(feature = "store")]
    pub(super) fn daily_counts(&self, answer: &Answer) -> Result<Proved<CountedDays>> {
        if self.config.connection.profile().counts.as_ref().is_none_or(|counts| !counts.days) {
            return Ok(Err(Unproved::NoCounts(None)));
        }
        let head = answer.totals()?;
        self.check_window(head)?;
        if self.unfiltered(answer)?.is_some() || answer.estimate_of_total().is_some() {
            return Ok(Err(Unproved::NoCounts(None)));
        }
        let (total, exact) = (answer.total()?, answer.is_exact()?);
        let of_window = total.filter(|_| exact).and_then(|total| u64::try_from(total).ok()).zip(head.echo.window());
        let unproved = Unproved::NoCounts(of_window.map(|(total, (from, to))| WindowTotal { total, from, to }));
        let Some(Decoded { batch: days, .. }) = answer.timeline()? else { return Ok(Err(unproved)) };
        let numbers = weights(days.column(1));
        let starts = days.column(0).as_primitive_opt::<TimestampMicrosecondType>();
        let starts = starts.filter(|starts| exact && starts.null_count() == 0);
        let (Some(starts), Some(total)) = (starts, total) else { return Ok(Err(unproved)) };
        if sum(&numbers) != Some(total) {
            return Ok(Err(Unproved::Contradictory));
        }
        let days = starts.values().iter().copied().zip(numbers).collect();
        Ok(Ok(CountedDays { window: head.echo.window(), as_of: head.echo.as_of(), days }))
    }

    /// Returns the first mention in each sort order. If one page holds all mentions, no other page is requested.
    fn firsts(self: Arc<Self>, orders: Vec<ServiceOrder>, plan: RequestPlan) -> Batches {
        let stream = try_stream! {
            let (exact, counts) = (self.config.plan.countable(), self.converter.counts());
            let (mut left, mut some) = (None, None);
            let mut values = self.requested_values(&plan);
            for (at, order) in orders.iter().enumerate() {
                let read = self.first_in(order, &plan, (at, orders.len()), &mut values).await?;
                let First { converter, rows, received, total, contradicted, begins_with_null, response, filtered } = read;
                if exact && at == 0 && total == Some(received) && !contradicted {
                    for batch in rows {
                        yield batch;
                    }
                    return;
                }
                // The number of mentions through a filter is not known to be of those that match it, and one that other counts
                // contradict is not known at all.
                let unproven = counts && left.is_none() && match (total, response.get()) {
                    _ if contradicted => true,
                    (Some(total), Some(answer)) => !self.proves_filters(answer, total),
                    _ => false,
                };
                // The first mention in an order that begins with NULL represents no other, and neither does one through a filter that
                // filters by something else.
                if at == 0 && (begins_with_null || unproven || !filtered) {
                    let mut all = Arc::clone(&self).rows(plan, None, Prefetch::Ahead(1));
                    while let Some(batch) = all.next().await {
                        yield batch?;
                    }
                    return;
                }
                let first = rows.iter().find(|batch| batch.num_rows() > 0);
                if first.is_some() != *some.get_or_insert(first.is_some()) {
                    let message = "there are mentions in one sort order of the window, and none in another";
                    Err(self.at_plan(Error::new(ErrorKind::Contradiction, message).passing(), &plan))?;
                }
                let Some(first) = first else { continue };
                // The first mention represents all of them, if their count is needed.
                let number = match (left, total) {
                    (Some(left), _) => left,
                    (None, Some(total)) => i64::try_from(total).unwrap_or(i64::MAX),
                    (None, None) if counts => {
                        // The service reported no exact total.
                        let mut all = Arc::clone(&self).rows(plan, None, Prefetch::Ahead(1));
                        while let Some(batch) = all.next().await {
                            yield batch?;
                        }
                        return;
                    }
                    (None, None) => 1,
                };
                left = Some(0);
                yield converter.weighted(&first.slice(0, 1), vec![number])?;
            }
        };
        stream.boxed()
    }

    /// Reads the first mentions in a sort order, until there is one. `at`: the place of the order, and the number of orders.
    async fn first_in(
        &self,
        order: &ServiceOrder,
        plan: &RequestPlan,
        (at, orders): (usize, usize),
        values: &mut RequestedValues,
    ) -> DataFusionResult<First> {
        let exact = self.config.plan.countable();
        let schema = Arc::clone(&self.converter.schema);
        let converter = PageConverter::try_new(&self.config, Some(order), schema, self.settings.lossy_text)?;
        let mut check = converter.check();
        // Two rows reveal a wrong direction; a larger page may show that there are no more, which saves the other sort orders.
        let page = plan.pages.map(|pages| pages.size).filter(|_| at == 0 && orders > 1);
        let size = page.unwrap_or(2);
        let pages = plan.pages.map(|pages| Pages { ordered: true, fetch: exact.then_some(size), ..pages });
        let plan = Arc::new(RequestPlan { sort: Some(order.value.clone()), pages, ..plan.clone() });
        let response: Arc<OnceLock<Answer>> = Arc::default();
        let filtered = self.converter.counts() && at == 0 && !plan.filters.is_empty();
        let decoder = self.keeping(&converter.decoder, filtered.then(|| Arc::clone(&response)), true);
        let (client, scan) = (Arc::clone(self.config.connection.client()), Arc::clone(&self.scan));
        let mut pages = Box::pin(read_pages(client, scan, Arc::clone(&plan), decoder, Prefetch::OnDemand));
        let (mut rows, mut total, mut received) = (Vec::new(), None, 0);
        let (mut begins_with_null, mut beside) = (false, Beside::default());
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| self.at_plan(error, &plan))?;
            if let Some(check) = &mut check {
                check.observe(&page.batch).map_err(|error| self.at_plan(error, &plan))?;
            }
            self.check_clock(&plan).map_err(|error| self.at_plan(error, &plan))?;
            self.check_zone(&plan, &page).map_err(|error| self.at_table(error))?;
            self.check_window(&page).map_err(|error| self.at_plan(error, &plan))?;
            self.counters.page(&self.scan, &page);
            self.note_doubt(&plan, &page);
            begins_with_null |= received == 0 && Self::begins_with_null(order, &converter, &plan, &page);
            if received == 0 {
                beside = page.beside;
            }
            received += page.batch.num_rows();
            total = page.total;
            values.see(&page.batch);
            if let Some(contradicted) = self.contradicted(&plan, &page.batch) {
                return match at {
                    0 => Ok(First::of_others(converter, received, response)),
                    _ => Err(contradicted.error.into()),
                };
            }
            let batch = converter.finish(&page.batch)?;
            if exact && batch.num_rows() < page.batch.num_rows() {
                let dropped = page.batch.num_rows() - batch.num_rows();
                return Err(self.at_plan(filters_ignored(dropped), &plan).into());
            }
            let found = batch.num_rows() > 0;
            rows.push(batch);
            if !exact && (found || converter.is_past(&page.batch)) {
                break;
            }
        }
        if begins_with_null {
            self.check_opposite(&plan, order).await.map_err(|error| self.at_plan(error, &plan))?;
            if at > 0 {
                self.verify_order(&plan, &converter).await.map_err(|error| self.at_plan(error, &plan))?;
            }
        }
        let proven = self.prove_values(&plan, std::mem::take(values), response.get(), true);
        proven.await.map_err(|error| self.at_plan(error, &plan))?;
        if received == 0 && at == 0 {
            self.prove_none(&plan).await.map_err(|error| self.at_plan(error, &plan))?;
        }
        let total = total.and_then(|total| usize::try_from(total).ok());
        let contradicted = total.is_some_and(|total| beside.contradicts(total as u64));
        Ok(First { converter, rows, received, total, contradicted, begins_with_null, response, filtered: true })
    }

    fn nullable(&self, column: &str) -> bool {
        self.config.spec.column(column).is_some_and(|column| column.nullable)
    }

    pub(super) fn at_plan(&self, error: Error, plan: &RequestPlan) -> Error {
        self.at_table(error.at(Place { aid: plan.aid.clone(), ..Place::default() }))
    }
}

/// Describes a value that the page in the same response has more often than the list counts it; `None` if the two agree.
fn contradiction(list: &CountList, names: &[Option<String>], numbers: &[i64], page: &Decoded) -> Option<String> {
    let mut left: HashMap<Option<&str>, i64> = HashMap::new();
    for (name, number) in names.iter().zip(numbers) {
        *left.entry(name.as_deref()).or_default() += number;
    }
    let values = page.batch.column_by_name(&list.column).and_then(|values| values.as_string_opt::<i32>());
    for value in values.into_iter().flatten() {
        let counted = left.entry(value).or_default();
        *counted -= 1;
        if *counted < 0 {
            let value = value.map_or_else(|| "no value".to_owned(), |value| format!("`{value}`"));
            return Some(format!(
                "the page has more mentions with {value} in `{}` than the overview list `{}` counts",
                list.column, list.dimension
            ));
        }
    }
    None
}

/// Mentions on a page at the edge of a window, in the order received.
#[derive(Default)]
struct EdgePage {
    /// Hashes of their ids, if mentions have ids.
    ids: Option<Vec<u64>>,
    /// Times in microseconds since 1970.
    times: Option<Vec<i64>>,
    /// Count of mentions in the window, if the page reports it.
    total: Option<u64>,
    /// Count of those that satisfy all conjuncts.
    matching: usize,
    /// Values of the column that a list counts by; empty if none does.
    values: Vec<Option<String>>,
}

/// Counts of a response.
enum Counts {
    /// Values, and their counts of mentions.
    Of(ArrayRef, Vec<i64>),
    /// The reason not to use them, and advice for the author of the profile.
    Doubted(String, &'static str),
    /// Not those of all mentions.
    None,
}

/// The first mentions of a plan in one sort order.
struct First {
    converter: PageConverter,
    rows: Vec<RecordBatch>,
    /// Number of mentions that came.
    received: usize,
    total: Option<usize>,
    /// Set if other counts of the response contradict the total.
    contradicted: bool,
    begins_with_null: bool,
    /// The first response, if it is kept.
    response: Arc<OnceLock<Answer>>,
    /// Set unless a mention contradicts a filter.
    filtered: bool,
}

impl First {
    /// The first mentions, one of which contradicts a filter.
    fn of_others(converter: PageConverter, received: usize, response: Arc<OnceLock<Answer>>) -> Self {
        let (contradicted, begins_with_null, filtered) = (false, false, false);
        Self { converter, rows: Vec::new(), received, total: None, contradicted, begins_with_null, response, filtered }
    }
}

/// A mention that does not belong to the counted ones.
struct Excluded {
    time: i64,
    value: Option<String>,
}

impl EdgePage {
    /// Returns the mentions that do not belong; `None` if the page does not show all of them, or contradicts `total`, the
    /// overview's count of mentions in the window.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] if the page has mentions that do not match the requested filters.
    fn excluded(&self, edge: &Edge, total: i64) -> Result<Option<Vec<Excluded>>> {
        let (Some(ids), Some(times)) = (&self.ids, &self.times) else { return Ok(None) };
        // A record that comes twice is counted once when mentions are read.
        let repeated = ids.iter().collect::<HashSet<_>>().len() < ids.len();
        let agree = self.total.is_none_or(|own| i64::try_from(own) == Ok(total));
        let rows = i64::try_from(times.len()).unwrap_or(i64::MAX);
        if repeated || !agree || rows > total {
            return Ok(None);
        }
        let Some(excluded) = edge.excluded(times, rows == total) else { return Ok(None) };
        let others = (times.len() - excluded.len()).abs_diff(self.matching);
        if others > 0 {
            return Err(filters_ignored(others));
        }
        let value = |row: usize| self.values.get(row).cloned().flatten();
        Ok(Some(excluded.into_iter().map(|row| Excluded { time: times[row], value: value(row) }).collect()))
    }
}

/// The counts of rows without these mentions; `None` if no row counts one of them, or a count is negative.
fn without(excluded: &[Excluded], rows: &SummaryRows, values: &ArrayRef, mut counts: Vec<i64>) -> Option<Vec<i64>> {
    for mention in excluded {
        let row = match rows {
            SummaryRows::Total => Some(0),
            SummaryRows::List(_) => {
                let names = values.as_string::<i32>();
                (0..names.len()).find(|at| names.is_valid(*at).then(|| names.value(*at)) == mention.value.as_deref())
            }
            // Its day is the last one that begins before it. Days may come in any order.
            SummaryRows::Days(_) | SummaryRows::Firsts(_) => {
                let days = values.as_primitive_opt::<TimestampMicrosecondType>().map(|days| days.values());
                let before = days.into_iter().flat_map(|days| days.iter().enumerate());
                let before = before.filter(|(_, day)| **day <= mention.time);
                before.max_by_key(|(_, day)| **day).map(|(at, _)| at)
            }
        };
        *counts.get_mut(row?)? -= 1;
    }
    counts.iter().all(|count| *count >= 0).then_some(counts)
}

/// Daily counts of a response.
#[cfg(feature = "store")]
pub(super) struct CountedDays {
    /// The window that the service resolved the request to.
    pub(super) window: Option<(DateTime<Utc>, DateTime<Utc>)>,
    /// Instant up to which the service's data was complete, if the response states it.
    pub(super) as_of: Option<DateTime<Utc>>,
    /// The starts of the days in microseconds since 1970, with their counts of mentions.
    pub(super) days: Vec<(i64, i64)>,
}

/// Proof of a response, or the reason why there is none.
#[cfg(feature = "store")]
pub(super) type Proved<T> = std::result::Result<T, Unproved>;

/// The exact total of a window, [from, to).
#[cfg(feature = "store")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WindowTotal {
    pub(super) total: u64,
    pub(super) from: DateTime<Utc>,
    pub(super) to: DateTime<Utc>,
}

/// The reason why a response proves no daily counts.
#[cfg(feature = "store")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unproved {
    /// It has none, or none that are exact. Its exact total, if it has one and names the window.
    NoCounts(Option<WindowTotal>),
    /// They differ from its total.
    Contradictory,
}

/// Sums counts; `None` on overflow.
pub(super) fn sum(numbers: &[i64]) -> Option<i64> {
    numbers.iter().try_fold(0_i64, |sum, number| sum.checked_add(*number))
}

/// The buckets of a timeline and their counts; `None` if a start is missing.
fn buckets_of(timeline: &RecordBatch) -> Option<Vec<(Bucket, i64)>> {
    let instants = |column: &ArrayRef| -> Vec<Option<i64>> {
        column.as_primitive_opt::<TimestampMicrosecondType>().into_iter().flatten().collect()
    };
    let starts = instants(timeline.column(0));
    let ends = timeline.columns().get(2).map_or_else(|| vec![None; starts.len()], instants);
    let counts = weights(timeline.column(1));
    starts.into_iter().zip(ends).zip(counts).map(|((start, end), count)| Some(((start?, end), count))).collect()
}
