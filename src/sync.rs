//! Fills a store ahead of queries, and keeps it up to date.
//!
//! ```text
//! saved searches ─▶ days that the store lacks, in months ─ one saved search beside another ─▶ queries that write the store
//!                                                                          └─▶ one request each confirms the other days
//! ```
//!
//! Every piece is an ordinary query, within the budget and the limits of all queries. What a piece has read is in the
//! store when it ends, so a sync that is stopped continues there. As many saved searches are read at once as the key may have
//! requests in flight, each of them a piece at a time. With a limit of requests they are read one after another, since each
//! query may spend all that is left.

mod new_mentions;
mod steps;
mod upkeep;
mod watch;
mod webhook;

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, ident};
use datafusion::prelude::{SessionContext, lit};
use futures::stream::{FuturesUnordered, StreamExt};

pub use self::new_mentions::{NewMentions, ReadMentions};
use self::steps::{Piece, Queue, Steps, pieces};
use self::upkeep::{keep_up, kept_from};
pub use self::watch::{Alert, Claim, Due, Watch};
pub use self::webhook::Webhook;
use crate::client::QueryBudget;
use crate::config::{SessionSettings, StoreUse};
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Phrase, Place, Result, own_or_query};
use crate::exec::{self, start, start_with_owner};
use crate::numbers::counted;
use crate::profile::{Origin, TableSpec};
use crate::session::session;
use crate::store::{Day, Erased, Lease, Leased, Lengths, NO_SPACE, Work, blocking, date_of, day_of, is_full, start_of};

/// Saved searches and days to synchronize.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SyncOptions {
    /// Saved searches; empty: those of the list that a query without an aid reads.
    pub aids: Vec<String>,
    /// First day.
    pub since: NaiveDate,
    /// Set to read all days again, also those that the store has.
    pub rescan: bool,
    /// Set to keep mentions that the service has deleted.
    pub keep_deleted: bool,
    /// Set to read the earliest days first, instead of the latest.
    pub oldest_first: bool,
    /// Maximum number of requests; `None`: no limit but that of the key.
    pub max_requests: Option<u64>,
    /// Age in days beyond which days are neither read nor stay in the store; `None`: all stay.
    pub retain: Option<u32>,
    /// Size of the store's files in bytes beyond which the oldest days are removed, and no longer read; `None`: no limit. Without the
    /// catalog, and without files that were replaced less than an hour ago.
    pub quota: Option<u64>,
}

/// A step of a synchronization.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncStep {
    /// Saved search.
    pub aid: String,
    /// First day.
    pub from: NaiveDate,
    /// Last day, which belongs to the step. [`Holding::to`](crate::Holding::to) is the day after the last one.
    pub to: NaiveDate,
    /// Number of mentions, those already stored included.
    pub mentions: u64,
    /// Requests of this step.
    pub requests: u64,
    /// Steps that remain, as far as known.
    pub left: usize,
}

/// Result of a synchronization.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Synced {
    /// Saved searches.
    pub searches: u64,
    /// Requests sent.
    pub requests: u64,
    /// Steps that were left when the requests were used up.
    pub left: usize,
    /// The step that was in progress then; `None` if none was. The days that it read completely are stored.
    pub cut: Option<CutStep>,
    /// Saved searches that another process was synchronizing, which stores what it reads in the same store.
    pub elsewhere: Vec<String>,
    /// Numbers of mentions and days that were removed from the store because of their age.
    pub removed: Erased,
    /// Numbers of mentions and days that were removed because of the quota.
    pub over_quota: Erased,
    /// The first day that fits the quota, if that is later than the first one of the options.
    pub kept_from: Option<NaiveDate>,
    /// Reason why files were not merged, and the quota was not applied: another process has been merging files for long. The next
    /// synchronization does both.
    pub unmerged: Option<Phrase>,
    /// Reason why the words of stored mentions could not be indexed; `None` if they were, or are not.
    pub unindexed: Option<Phrase>,
    /// Reason why files that are no longer used could not be removed. They stay until the next synchronization.
    pub unremoved: Option<Phrase>,
}

/// A step of which a part was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CutStep {
    /// Saved search.
    pub aid: String,
    /// First day that is left.
    pub from: NaiveDate,
    /// Last day that is left. [`Holding::to`](crate::Holding::to) is the day after the last one.
    pub to: NaiveDate,
}

/// As in `183772 2026-06-01 to 2026-07-01: 2,774 mentions · 29 requests · 2 steps left`.
impl fmt::Display for SyncStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { aid, from, to, mentions, requests, left } = self;
        let (mentions, requests) = (counted(*mentions, "mention"), counted(*requests, "request"));
        write!(f, "{aid} {from} to {to}: {mentions} · {requests} · {} left", counted(*left as u64, "step"))
    }
}

impl fmt::Display for Synced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = counted(self.requests, "request");
        match self.left {
            0 => {
                write!(f, "up to date: {}", counted(self.searches, "saved search"))?;
                if !self.elsewhere.is_empty() {
                    write!(f, " · synchronized by other processes: {}", self.elsewhere.join(", "))?;
                }
                write!(f, " · {requests}")
            }
            left => {
                write!(f, "not finished: {} left", counted(left as u64, "step"))?;
                if let Some(CutStep { aid, from, to }) = &self.cut {
                    write!(f, ", of which {aid} {from} to {to} has begun")?;
                }
                write!(f, " · {requests}")
            }
        }
    }
}

impl SyncOptions {
    /// All saved searches of the list, from a day on, the latest days first.
    pub fn since(since: NaiveDate) -> Self {
        Self {
            aids: Vec::new(),
            since,
            rescan: false,
            keep_deleted: false,
            oldest_first: false,
            max_requests: None,
            retain: None,
            quota: None,
        }
    }

    /// The first day that stays in the store; `None` if all do.
    pub fn retained_from(&self, now: DateTime<Utc>) -> Option<NaiveDate> {
        let first = now.checked_sub_signed(TimeDelta::days(i64::from(self.retain?)))?;
        Some(first.date_naive())
    }
}

/// Reads what the store of a connection lacks since a day, confirms the rest, and removes what is too old. `report` is called
/// after each step.
///
/// # Errors
/// [`ErrorKind::Config`] if the connection has no store; those of queries. What was read before the error is stored.
pub async fn sync(
    connection: &Arc<Connection>,
    options: &SyncOptions,
    mut report: impl FnMut(&SyncStep),
) -> Result<Synced> {
    let store = connection.some_store()?;
    let today = day_of(connection.now().timestamp_micros());
    check_start(connection, options, today)?;
    let context = session(connection).map_err(|error| own_or_query(&error))?;
    let begun = connection.clock().now();
    let mut spent = Spent { left: options.max_requests, requests: 0 };
    let aids = chosen(connection, &context, options, &mut spent).await?;
    let retained = options.retained_from(connection.now());
    let since = retained.map_or(options.since, |retained| options.since.max(retained));
    let kept = |quota: u64| kept_from(connection, quota, since);
    let first = options.quota.map(kept).transpose()?.flatten().unwrap_or(since);
    let days = first.to_epoch_days()..today + 1;
    let lengths = match options.quota {
        Some(_) => {
            let store = Arc::clone(store);
            Some(blocking(move || store.listed()).await?)
        }
        None => None,
    };
    let mut sync = SyncRun::new(connection, options, &aids, days, spent, lengths)?;
    let at_once = if options.max_requests.is_some() { 1 } else { connection.profile().budget.concurrency };
    let mut running = FuturesUnordered::new();
    loop {
        // What is in flight when a step fails or the requests are used up is read to its end.
        while sync.goes_on() && running.len() < at_once {
            let Some((search, piece)) = sync.next().await else { break };
            let (aid, context, left) = (&aids[search], &context, sync.spent.left);
            running.push(async move {
                let done = run(connection, context, aid, &piece, begun, left).await;
                (search, piece, done)
            });
        }
        let Some((search, piece, done)) = running.next().await else { break };
        sync.finish(search, piece, done, running.len(), &mut report);
        if sync.steps.queues[search].is_empty() {
            release(&mut sync.leases[search]).await;
        }
    }
    let mut synced = sync.end().await?;
    // If the clocks disagree, the earlier one decides: what the service no longer has cannot be read again.
    let earlier = connection.clock().now().min(connection.client().time_of_service());
    if let Some(first) = options.retained_from(earlier) {
        let (store, now) = (Arc::clone(store), connection.now());
        let settling = connection.profile().store.settle.length();
        synced.removed = blocking(move || store.retain_from(first, now, settling)).await?;
    }
    keep_up(connection, options.quota, since, synced).await
}

/// The saved searches of the options, or of the list.
async fn chosen(
    connection: &Arc<Connection>,
    context: &SessionContext,
    options: &SyncOptions,
    spent: &mut Spent,
) -> Result<Vec<String>> {
    if options.aids.is_empty() {
        return listed(connection, context, spent).await;
    }
    let mut seen = HashSet::new();
    Ok(options.aids.iter().filter(|aid| seen.insert(aid.as_str())).cloned().collect())
}

/// Steps that are read.
struct SyncRun<'s> {
    connection: &'s Arc<Connection>,
    options: &'s SyncOptions,
    aids: &'s [String],
    days: Range<Day>,
    /// Lengths of the store's files at the start, under a quota.
    lengths: Option<Lengths>,
    steps: Steps,
    /// Of each saved search, the lease under which it is read.
    leases: Vec<Option<Lease>>,
    spent: Spent,
    synced: Synced,
    /// The first error.
    failed: Option<Error>,
}

impl<'s> SyncRun<'s> {
    fn new(
        connection: &'s Arc<Connection>,
        options: &'s SyncOptions,
        aids: &'s [String],
        days: Range<Day>,
        spent: Spent,
        lengths: Option<Lengths>,
    ) -> Result<Self> {
        let queues = aids.iter().map(|aid| pieces(connection, aid, &days, options)).collect::<Result<Vec<_>>>()?;
        let steps = Steps { idle: (0..aids.len()).collect(), queues };
        let leases = aids.iter().map(|_| None).collect();
        let synced = Synced { searches: aids.len() as u64, ..Synced::default() };
        Ok(Self { connection, options, aids, days, lengths, steps, leases, spent, synced, failed: None })
    }

    /// True if another piece may be read.
    fn goes_on(&self) -> bool {
        self.failed.is_none() && self.synced.left == 0
    }

    /// The next piece, and its saved search, whose lease is taken. `None` if there is none, or after an error.
    async fn next(&mut self) -> Option<(usize, Piece)> {
        loop {
            let (search, piece) = self.steps.next()?;
            if self.leases[search].is_some() {
                return Some((search, piece));
            }
            match leased(self.connection, &self.aids[search], &self.days, self.options).await {
                Ok(Some((lease, queue))) => {
                    self.leases[search] = Some(lease);
                    let Some(mut queue) = queue else { return Some((search, piece)) };
                    let first = queue.pop_front();
                    self.steps.queues[search] = queue;
                    match first {
                        Some(first) => return Some((search, first)),
                        None => release(&mut self.leases[search]).await,
                    }
                }
                Ok(None) => {
                    self.synced.elsewhere.push(self.aids[search].clone());
                    self.steps.queues[search].clear();
                }
                Err(error) => {
                    self.failed = Some(error);
                    return None;
                }
            }
        }
    }

    /// Records the end of a piece, with its requests and its mentions, while `in_flight` others are being read.
    fn finish(
        &mut self,
        search: usize,
        piece: Piece,
        (requests, done): (u64, Result<u64>),
        in_flight: usize,
        report: &mut impl FnMut(&SyncStep),
    ) {
        self.spent.take(requests);
        self.steps.idle.push_back(search);
        let aids = self.aids;
        let aid = &aids[search];
        match done.and_then(|mentions| check(self.connection, aid, &piece).map(|()| mentions)) {
            Ok(mentions) => {
                let (from, to) = (date_of(piece.days.start), date_of(piece.days.end - 1));
                self.drop_beyond_quota();
                let left = self.steps.left() + in_flight;
                report(&SyncStep { aid: aid.clone(), from, to, mentions, requests, left });
            }
            // What is left of the requests may be enough for a part of the days.
            Err(error) if error.kind() == ErrorKind::Budget && self.spent.left > Some(0) && piece.days.len() > 1 => {
                let piece = Piece { begun: piece.begun || requests > 0, ..piece };
                self.steps.put_back(search, piece.halves(self.options.oldest_first));
            }
            Err(error) if error.kind() == ErrorKind::Budget && self.options.max_requests.is_some() => {
                self.synced.left = self.steps.left() + in_flight + usize::from(!piece.continues);
                self.synced.cut = (piece.begun || requests > 0).then(|| self.steps.cut(search, &piece, aid));
            }
            Err(error) => self.fail(error),
        }
    }

    /// Drops the days that would be removed at the end.
    fn drop_beyond_quota(&mut self) {
        let (Some(quota), Some(lengths)) = (self.options.quota, &self.lengths) else { return };
        match self.connection.some_store().and_then(|store| store.first_that_fits(quota, lengths)) {
            Ok(first) => self.steps.drop_before(first.unwrap_or(Day::MIN)),
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: Error) {
        if self.failed.is_none() {
            self.failed = Some(error);
        }
    }

    /// Releases the leases.
    ///
    /// # Errors
    /// The first error of a piece.
    async fn end(mut self) -> Result<Synced> {
        for lease in &mut self.leases {
            release(lease).await;
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut synced = self.synced;
        synced.searches -= synced.elsewhere.len() as u64;
        synced.requests = self.spent.requests;
        Ok(synced)
    }
}

/// Takes the lease of a saved search, with its pieces if other processes may have stored some of its days meanwhile; `None` if another
/// process has the lease.
async fn leased(
    connection: &Arc<Connection>,
    aid: &str,
    days: &Range<Day>,
    options: &SyncOptions,
) -> Result<Option<(Lease, Option<Queue>)>> {
    let store = connection.some_store()?;
    match store.lease(&Work::Sync(aid)).await? {
        Leased::Elsewhere => Ok(None),
        Leased::Here(lease) if !store.is_shared() => Ok(Some((lease, None))),
        Leased::Here(lease) => match pieces(connection, aid, days, options) {
            Ok(pieces) => Ok(Some((lease, Some(pieces)))),
            Err(error) => {
                lease.release().await;
                Err(error)
            }
        },
    }
}

async fn release(lease: &mut Option<Lease>) {
    if let Some(lease) = lease.take() {
        lease.release().await;
    }
}

/// Refuses, before anything is requested, a synchronization that could store nothing.
fn check_start(connection: &Connection, options: &SyncOptions, today: Day) -> Result<()> {
    if options.since.to_epoch_days() > today {
        let what = format!("{} is in the future: today is {} in UTC", options.since, date_of(today));
        return Err(Error::new(ErrorKind::Query, what).advice("synchronize from today on, or from an earlier day"));
    }
    let store = connection.some_store()?;
    if store.unwritable().is_some_and(|refused| !is_full(refused)) {
        let error = Error::new(ErrorKind::Store, "the store is read-only");
        return Err(error.advice("make its folder writable, or use another one"));
    }
    if options.quota.is_some() && options.oldest_first {
        let what = "the oldest days cannot be read first under a quota, which removes them";
        let error = Error::new(ErrorKind::Config, what);
        return Err(error.advice("read the latest days first, or set no quota"));
    }
    store.writable_root()?;
    let window = &connection.profile().window;
    if !window.takes_instants() || !window.is_half_open() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "the service does not support single-day windows, so a store cannot be filled",
        )
        .advice("check the profile's [window]; queries work without a store"));
    }
    Ok(())
}

/// Verifies that the days of a piece are stored: a query succeeds even if its rows could not be.
fn check(connection: &Connection, aid: &str, piece: &Piece) -> Result<()> {
    let regions = connection.some_store()?.regions(aid)?;
    let all = regions.iter().filter(|(filters, _)| filters.is_empty());
    let stored = |day: Day| all.clone().any(|(_, region)| region.days.contains(&day));
    match piece.days.clone().find(|day| !stored(*day)) {
        Some(day) => Err(unstored(connection, aid, &(day..day + 1))),
        None => Ok(()),
    }
}

/// The error for days that were read, and are not stored.
fn unstored(connection: &Connection, aid: &str, days: &Range<Day>) -> Error {
    let warnings = connection.client().log().warnings();
    let reason = warnings.iter().rev().find(|warning| warning.aid.as_deref() == Some(aid));
    let unknown = || Phrase::from("its mentions were not read completely");
    let reason = reason.map_or_else(unknown, |reason| reason.line.clone());
    let place = Place { aid: Some(aid.to_owned()), ..Place::default() };
    let error = match connection.some_store() {
        Ok(store) if reason.as_str().contains(NO_SPACE) => store.no_space(),
        _ => {
            let (first, last) = (date_of(days.start), date_of(days.end - 1));
            let named = if first == last { first.to_string() } else { format!("{first} to {last}") };
            Error::new(ErrorKind::Store, Phrase::from(format!("{named} could not be stored: ")) + reason)
        }
    };
    error.at(place)
}

/// Requests sent, and those that may still be.
struct Spent {
    left: Option<u64>,
    requests: u64,
}

/// Runs the query of a piece, which may spend the requests that are left. Returns the number of requests, and of mentions.
async fn run(
    connection: &Arc<Connection>,
    context: &SessionContext,
    aid: &str,
    piece: &Piece,
    begun: DateTime<Utc>,
    left: Option<u64>,
) -> (u64, Result<u64>) {
    let since = (connection.clock().now() - begun).num_seconds().max(0) + 1;
    let freshness = if piece.confirms { u64::try_from(since).unwrap_or(u64::MAX) } else { 0 };
    let usage = if piece.rescan { StoreUse::Write } else { StoreUse::ReadWrite };
    // Beside others, a query has settings of its own.
    let context = &SessionContext::new_with_state(context.state());
    set(context, left, |settings| {
        settings.store = usage;
        settings.freshness = Duration::from_secs(freshness);
        settings.keep_deleted = piece.keep_deleted;
    });
    let query = async {
        let mentions = &connection.profile().tables.mentions;
        let filter = filter_of(mentions, aid, &piece.days)?;
        let time = mentions.time.as_deref().unwrap_or_default();
        let table = context.table("mentions").await?.filter(filter)?.select(vec![ident(time)])?;
        let plan = table.create_physical_plan().await?;
        Ok::<_, DataFusionError>((start(&plan, context.task_ctx(), None)?, plan))
    };
    let (mut rows, plan) = match query.await {
        Ok(begun) => begun,
        Err(error) => return (0, Err(own_or_query(&error))),
    };
    let mut count = Ok(0);
    while let (Ok(before), Some(batch)) = (&count, rows.next().await) {
        count = batch.map(|batch| before + batch.num_rows() as u64);
    }
    drop(rows);
    let count = match count {
        // Days that were stored before still are, as they were then.
        Ok(_) if exec::unstored(&plan) > 0 => Err(unstored(connection, aid, &piece.days)),
        count => count.map_err(|error| own_or_query(&error)),
    };
    (exec::spent(&plan).requests, count)
}

impl Spent {
    fn take(&mut self, requests: u64) {
        self.requests += requests;
        self.left = self.left.map(|left| left.saturating_sub(requests));
    }
}

/// Changes settings of the session of a sync. It may send what is left; without a limit, the key's own limits hold.
fn set(context: &SessionContext, left: Option<u64>, change: impl FnOnce(&mut SessionSettings)) {
    let state = context.state_ref();
    let mut state = state.write();
    if let Some(settings) = state.config_mut().options_mut().extensions.get_mut::<SessionSettings>() {
        settings.max_requests = left.unwrap_or(u64::MAX);
        settings.query_deadline = Duration::from_secs(QueryBudget::LONGEST_DEADLINE);
        change(settings);
    }
}

/// Returns the aids of the list that a query without an aid reads.
async fn listed(connection: &Arc<Connection>, context: &SessionContext, spent: &mut Spent) -> Result<Vec<String>> {
    set(context, spent.left, |settings| settings.store = StoreUse::Off);
    let query = async {
        let plan = context.table("saved_searches").await?.create_physical_plan().await?;
        Ok::<_, DataFusionError>((start_with_owner(&plan, TaskContext::from(context))?, plan))
    };
    let ((mut rows, owner), plan) = query.await.map_err(|error| own_or_query(&error))?;
    let mut read = Ok(());
    while let (Ok(()), Some(batch)) = (&read, rows.next().await) {
        read = batch.map(drop);
    }
    drop(rows);
    spent.take(exec::spent(&plan).requests);
    read.map_err(|error| own_or_query(&error))?;
    let unread = || Error::new(ErrorKind::Incomplete, "the list of saved searches was not read");
    owner.listed(connection).ok_or_else(unread)
}

/// Returns the filter for the rows of a saved search on these days, in UTC.
///
/// # Errors
/// [`ErrorKind::Profile`] if the table has no time or no aid.
pub(crate) fn filter_of(table: &TableSpec, aid: &str, days: &Range<Day>) -> Result<Expr> {
    let (Some(time), Some(of)) = (&table.time, table.column_from(&Origin::Aid)) else {
        return Err(Error::new(ErrorKind::Profile, format!("tables.{} has no time or no aid", table.name)));
    };
    let instant = |day: Day| lit(ScalarValue::TimestampMicrosecond(Some(start_of(day)), Some("UTC".into())));
    let from = ident(time).gt_eq(instant(days.start));
    Ok(ident(of).eq(lit(aid)).and(from).and(ident(time).lt(instant(days.end))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_names_the_step_that_was_begun() {
        let mut synced = Synced { searches: 1, requests: 20, left: 2, ..Synced::default() };
        assert_eq!(synced.to_string(), "not finished: 2 steps left · 20 requests");
        synced.cut = Some(CutStep { aid: "7".to_owned(), from: date_of(60), to: date_of(90) });
        let expected = "not finished: 2 steps left, of which 7 1970-03-02 to 1970-04-01 has begun · 20 requests";
        assert_eq!(synced.to_string(), expected);
    }
}
