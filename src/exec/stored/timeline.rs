//! Daily counts of the service, and the stored days that they confirm.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimestampMicrosecondType};
use bytes::Bytes;
use chrono::{DateTime, Utc};

use super::candidates::timeline_request;
use crate::decode::Decoder;
use crate::error::{ErrorKind, Result};
use crate::exec::answer::{Answer, AnswerDecoder, AnswerTables};
use crate::exec::stand_ins::{CountedDays, Proved, Unproved};
use crate::exec::stream::Driver;
use crate::profile::Zone;
use crate::request::{PageRequest, RequestPlan};
use crate::store::{
    ConfirmedPart, Day, Division, Filters, FromStore, Store, Stored, Subject, Terms, blocking, day_of, days_of,
    span_of, start_of,
};

/// Counts of mentions by day in UTC; days without mentions may be missing.
pub(super) type DailyCounts = HashMap<Day, u64>;

/// A mention in a response with daily counts: its day, and its id.
pub(super) type ShownMention = (Day, String);

/// Daily counts of the service.
pub(super) struct Timeline {
    /// The window that the service resolved the request to, in microseconds since 1970.
    pub(super) window: Option<Range<i64>>,
    pub(super) counts: DailyCounts,
    /// Instant by the service's clock since which they are known to be true.
    pub(super) as_of: DateTime<Utc>,
    /// Mentions that came along.
    pub(super) shown: Vec<ShownMention>,
}

/// Daily counts of a span, to compare stored days with.
pub(super) struct Expected {
    /// The span, in microseconds since 1970.
    pub(super) asked: Range<i64>,
    pub(super) counts: DailyCounts,
    pub(super) as_of: DateTime<Utc>,
    /// The filters that were sent.
    pub(super) filters: Filters,
    /// Mentions that came along: stored days that lack one of them are others.
    pub(super) shown: Vec<ShownMention>,
}

impl Expected {
    /// Returns the counts of a span from those of its windows, if each of them proves its own.
    pub(super) fn of(asked: Range<i64>, filters: Filters, windows: Vec<Proved<Timeline>>) -> Proved<Self> {
        let mut windows: Vec<Timeline> = windows.into_iter().collect::<Proved<_>>()?;
        let shown = windows.iter_mut().flat_map(|window| std::mem::take(&mut window.shown)).collect();
        let as_of = windows.iter().map(|window| window.as_of).min().ok_or(Unproved::NoCounts(None))?;
        let mut counts = DailyCounts::default();
        // Two windows may each have a part of a day.
        for (day, count) in windows.into_iter().flat_map(|window| window.counts) {
            let sum: &mut u64 = counts.entry(day).or_default();
            *sum = sum.saturating_add(count);
        }
        Ok(Self { asked, counts, as_of, filters, shown })
    }

    /// The instants of a day within the span.
    pub(super) fn instants_of(&self, day: Day) -> Range<i64> {
        start_of(day).max(self.asked.start)..start_of(day + 1).min(self.asked.end)
    }

    pub(super) fn is_whole(&self, day: Day) -> bool {
        self.instants_of(day) == span_of(&(day..day + 1))
    }

    /// The counts of whole days, if they are of mentions that match `filters`.
    pub(super) fn whole(&self, filters: &Filters) -> DailyCounts {
        if self.filters != *filters {
            return DailyCounts::default();
        }
        let whole = days_of(&self.asked).filter(|day| self.is_whole(*day));
        whole.map(|day| (day, self.counts.get(&day).copied().unwrap_or_default())).collect()
    }
}

/// Stored days, compared with the daily counts of the service.
#[derive(Default)]
pub(super) struct Compared {
    /// Days whose counts differ.
    pub(super) differing: HashSet<Day>,
    /// Mentions that came along with the counts, and that their days lack.
    pub(super) lacking: Vec<ShownMention>,
    /// Regions whose counts agree.
    pub(super) confirmed: Vec<i64>,
    /// Those of them whose days had settled.
    pub(super) sealed: Vec<i64>,
    /// Parts of regions whose counts agree, of regions that are used in part.
    pub(super) parts: Vec<ConfirmedPart>,
}

impl Compared {
    pub(super) fn of(store: &Store, subject: &Subject, terms: &Terms, stored: &[Stored], expected: &Expected) -> Self {
        let mut compared = Self::default();
        // Days that were read after the counts are newer, and as fresh.
        let older = |part: &&Stored| part.region.as_of <= expected.as_of;
        for part in stored.iter().filter(|part| part.filters == expected.filters).filter(older) {
            for (day, count) in part.counts() {
                let instants = expected.instants_of(day);
                if instants.is_empty() {
                    continue;
                }
                let count = match expected.is_whole(day) {
                    true => Ok(count),
                    false => store.count_within(subject, &part.region, &instants),
                };
                if count.ok() != Some(expected.counts.get(&day).copied().unwrap_or_default()) {
                    compared.differing.insert(day);
                }
            }
            // The counts may agree although other mentions are counted.
            for (day, id) in expected.shown.iter().filter(|(day, _)| part.days.contains(day)) {
                if !store.has_mention(subject, &part.region, *day, id).unwrap_or_default() {
                    compared.differing.insert(*day);
                    compared.lacking.push((*day, id.clone()));
                }
            }
            let agrees = |day: Day| !compared.differing.contains(&day) && expected.is_whole(day);
            let Some(id) = part.region.id.filter(|_| part.days.clone().all(agrees)) else { continue };
            let settled = terms.had_settled(expected.as_of, part.days.end - 1);
            if part.is_whole() {
                compared.confirmed.push(id);
                compared.sealed.extend(settled.then_some(id));
            } else if !part.fresh {
                let (region, days) = (Arc::clone(&part.region), part.days.clone());
                compared.parts.push(ConfirmedPart { region, days, settled });
            }
        }
        compared
    }
}

/// True if an error is an answer of the service to this request, and another request may succeed.
pub(super) fn is_refused(kind: ErrorKind) -> bool {
    use ErrorKind::{Contradiction, Forbidden, Malformed, NotFound, Rejected, Unavailable};
    matches!(kind, Contradiction | Forbidden | Malformed | NotFound | Rejected | Unavailable)
}

impl Driver {
    /// Removes days whose counts differ from the timeline, and records that the others agree. Fresh days are compared as well:
    /// a mention whose time has changed moves from one day to another.
    pub(super) async fn confirmed(
        &self,
        from: &FromStore,
        terms: Terms,
        plan: &RequestPlan,
        division: Division,
        span: &Range<i64>,
        expected: Expected,
    ) -> Division {
        let subject = Subject { aid: plan.aid.clone().unwrap_or_default(), filters: expected.filters.clone() };
        let (store, writes, stored) = (Arc::clone(&from.store), from.writes, division.stored.clone());
        // Without a freshness, the next query confirms them again.
        let divides = from.invests();
        let (of, rescan) = (subject.clone(), self.config.connection.profile().store.rescan.length());
        let compared = blocking(move || {
            let mut expected = expected;
            // They are compared again after a while.
            let is_recent = |at: DateTime<Utc>| terms.now.checked_sub_signed(rescan).is_none_or(|age| at > age);
            let disregarded = || store.disregarded_shown(&subject).ok().flatten();
            if !expected.shown.is_empty() && disregarded().is_some_and(is_recent) {
                expected.shown.clear();
            }
            let compared = Compared::of(&store, &subject, &terms, &stored, &expected);
            let recorded = match writes {
                true => store.confirm(expected.as_of, &compared.confirmed, &compared.sealed),
                false => Ok(()),
            };
            let recorded = match divides {
                true => recorded.and_then(|()| store.confirm_parts(&subject, expected.as_of, &compared.parts)),
                false => recorded,
            };
            Ok((compared.differing, compared.lacking, recorded))
        });
        let (differing, lacking) = match compared.await {
            Ok((differing, lacking, Ok(()))) => (differing, lacking),
            Ok((differing, lacking, Err(error))) => {
                self.note(plan, &error);
                (differing, lacking)
            }
            Err(error) => {
                self.note(plan, &error);
                (division.stored.iter().flat_map(|part| part.days.clone()).collect(), Vec::new())
            }
        };
        self.divisions.note_lacking(&of, lacking);
        let page = plan.pages.map_or(1, |pages| pages.size);
        division.without(span, |day| differing.contains(&day)).with_fewer_gaps(page)
    }

    /// Requests the daily counts of a window.
    pub(super) async fn timeline(
        &self,
        plan: &RequestPlan,
        filters: &Filters,
        words: &str,
    ) -> Result<Proved<Timeline>> {
        let request = timeline_request(&self.config, plan, filters, words);
        let (answer, as_of) = self.overview_as_of(&request).await?;
        let shown = self.shown(&answer);
        Ok(self.timeline_in(&answer, as_of)?.map(|timeline| Timeline { shown, ..timeline }))
    }

    /// The mentions that came along with daily counts, if they have ids.
    fn shown(&self, answer: &Answer) -> Vec<ShownMention> {
        let Some(Ok(page)) = answer.page() else { return Vec::new() };
        let ids = page.batch.columns().first().and_then(|ids| cast(ids, &DataType::Utf8).ok());
        let times = page.batch.columns().get(1).and_then(|times| times.as_primitive_opt::<TimestampMicrosecondType>());
        let (Some(ids), Some(times)) = (ids, times) else { return Vec::new() };
        let mentions = ids.as_string::<i32>().iter().zip(times.iter());
        mentions.filter_map(|(id, at)| Some((day_of(at?), id?.to_owned()))).collect()
    }

    /// The tables of a response with daily counts: with ids and times of mentions, if some come along.
    fn daily_tables(&self, request: &PageRequest) -> AnswerTables {
        let profile = self.config.connection.profile();
        let mentions = &profile.tables.mentions;
        let position =
            |name: &Option<String>| mentions.columns.iter().position(|column| Some(&column.name) == name.as_ref());
        let columns = position(&mentions.id).zip(position(&mentions.time));
        let page = columns.zip(self.with_mentions(request)).map(|((id, time), asked)| {
            let decoder = Decoder::new(Arc::clone(profile), Arc::new(mentions.clone()), &[id, time]);
            (Arc::new(decoder.lossy(self.settings.lossy_text)), asked)
        });
        AnswerTables { page, ..AnswerTables::of(profile, &request.plan.filters) }
    }

    /// Requests the count of a day again, even if a response is known; `None` if the response does not prove a count.
    pub(super) async fn count_again(&self, plan: &RequestPlan, filters: &Filters, day: Day) -> Result<Option<u64>> {
        let connection = &self.config.connection;
        let instant = |day| DateTime::from_timestamp_micros(start_of(day));
        let (Some(from), Some(to)) = (instant(day), instant(day + 1)) else { return Ok(None) };
        let words = connection.profile().window.words_of(from, to, Zone::UTC);
        let request = timeline_request(&self.config, plan, filters, &words);
        let body = connection.client().fetch(&self.scan, &request, |body| Ok((body.clone(), 0))).await?;
        let timeline = self.timeline_in(&self.daily_answer(&request, &body), connection.now())?;
        Ok(timeline.ok().map(|timeline| timeline.counts.get(&day).copied().unwrap_or_default()))
    }

    /// Returns the daily counts of a response. `as_of`: instant by the service's clock at which it was requested.
    pub(super) fn timeline_in(&self, answer: &Answer, as_of: DateTime<Utc>) -> Result<Proved<Timeline>> {
        let CountedDays { window, as_of: known_at, days } = match self.daily_counts(answer)? {
            Ok(counted) => counted,
            Err(unproved) => return Ok(Err(unproved)),
        };
        let as_of = known_at.map_or(as_of, |known_at| known_at.min(as_of));
        let begins = window.map(|(from, _)| from.timestamp_micros());
        let day = |(start, count): (i64, i64)| {
            let count = u64::try_from(count).ok()?;
            // Otherwise they are days of another zone. The first one may begin with the window.
            (start_of(day_of(start)) == start || Some(start) == begins).then_some((day_of(start), count))
        };
        let counts: Option<DailyCounts> = days.into_iter().map(day).collect();
        let window = window.map(|(from, to)| from.timestamp_micros()..to.timestamp_micros());
        // A timeline of other days than those of the window counts other mentions.
        let strange = |day: Day, window: &Range<i64>| start_of(day + 1) <= window.start || start_of(day) >= window.end;
        let counts = counts.filter(|counts| {
            let counted = counts.iter().filter(|(_, count)| **count > 0);
            window.as_ref().is_none_or(|window| !counted.clone().any(|(day, _)| strange(*day, window)))
        });
        Ok(counts.map(|counts| Timeline { window, counts, as_of, shown: Vec::new() }).ok_or(Unproved::NoCounts(None)))
    }

    /// Requests an overview. Returns it with the instant by the service's clock since which it is true.
    async fn overview_as_of(&self, request: &PageRequest) -> Result<(Answer, DateTime<Utc>)> {
        let Self { config, scan, query, .. } = self;
        let connection = &config.connection;
        if let Some(from) = &config.from_store {
            let stored = from.answer(&request.key(connection.profile()), connection.now()).await;
            if let Ok(Some((body, as_of))) = stored {
                return Ok((self.daily_answer(request, &body), as_of));
            }
        }
        let (answer, _) = self.overview(request, self.daily_tables(request)).await?;
        scan.pages.fetch_add(1, Ordering::Relaxed);
        // Another scan of the query may have requested it.
        Ok((answer, query.begun + connection.client().ahead()))
    }

    /// Decodes what daily counts need of a response.
    fn daily_answer(&self, request: &PageRequest, body: &Bytes) -> Answer {
        let tables = self.daily_tables(request);
        AnswerDecoder::new(self.config.connection.profile(), self.settings.lossy_text, tables).decode(request, body)
    }
}
