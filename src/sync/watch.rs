//! Rules that watch the daily counts of a store: one alert for each day of a saved search for which a condition holds.
//!
//! ```text
//! counts of stored days ─ condition ─▶ due days ─ claimed ─▶ alert, delivered ─▶ recorded: the day is not due again
//! ```
//!
//! A rule has its state in the catalog: the days of which an alert was delivered, and the day until which all days were examined.
//! Days after that are examined again, and so are those that may still change, so a day that was missed because no process was running
//! is due later. Of several processes, the one that claims an alert delivers it. It is recorded once it was delivered. If a process ends
//! between the two, its claim ends as well, and another one delivers the alert again: each is delivered at least once, and has the same
//! rule, saved search and day each time. Each change of the state is one transaction.
//!
//! No request is sent: a synchronization has read the days before.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray};
use chrono::NaiveDate;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Phrase, Result, own_or_query};
use crate::numbers::counted;
use crate::session::{condition, session};
use crate::store::{Day, date_of, day_of};

/// Earlier days of the same weekday that its mean is of: at most, and at least.
const WEEKDAYS: (Day, usize) = (8, 4);
/// Earlier days that the mean of all days is of: at most, and at least.
const DAYS: (Day, usize) = (28, 14);
/// Age in days beyond which a day is not due.
const OLDEST: Day = 30;
/// Time in seconds until a claim ends, so that another process delivers the alert of one that has ended.
const CLAIMED: i64 = 300;
/// Columns of a condition.
const COLUMNS: &str = "aid, day, count, weekday_mean and mean";

/// A rule, for the store of a connection.
#[derive(Debug, Clone)]
pub struct Watch {
    connection: Arc<Connection>,
    name: String,
    /// Saved searches; empty: all that are stored.
    aids: Vec<String>,
    /// Condition in SQL.
    when: String,
    /// Name of its state in the catalog.
    key: String,
    /// Name of this process in its claims.
    holder: String,
}

/// A day of a saved search for which the condition of a rule holds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Alert {
    /// Name of the rule.
    pub rule: String,
    /// Saved search.
    pub aid: String,
    /// The day, in UTC. It may not be over.
    pub day: NaiveDate,
    /// Number of stored mentions of the day.
    pub count: u64,
    /// Mean of the counts of the same weekday in the 8 weeks before; `None` if fewer than 4 of these days are stored.
    pub weekday_mean: Option<f64>,
    /// Mean of the counts of the 28 days before; `None` if fewer than 14 of them are stored.
    pub mean: Option<f64>,
}

/// Result of examining the days of a rule.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Due {
    /// Alerts to deliver, in the order of saved searches and days.
    pub alerts: Vec<Alert>,
    /// Saved searches with a day for which the condition is NULL, such as one with too few days before it.
    pub undecided: Vec<String>,
    /// Saved searches of which a day of the last ones is not stored.
    pub unstored: Vec<String>,
    /// Day until which all days were examined.
    until: Day,
}

/// State of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    /// First day that may be due.
    first: Day,
    /// Day until which all days were examined.
    until: Day,
    /// Days of saved searches of which an alert was delivered.
    delivered: BTreeSet<(String, Day)>,
    /// Alerts that processes are delivering. Versions without claims ignore them.
    #[serde(default)]
    claims: Vec<Held>,
}

/// A claim that a process has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    aid: String,
    day: Day,
    holder: String,
    /// End, in seconds since 1970 by the clock of the catalog.
    ends: i64,
}

/// Result of the try to claim an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Claim {
    /// This process is to deliver it, and then to record it.
    Here,
    /// Another process is delivering it.
    Elsewhere,
    /// It was delivered.
    Delivered,
}

impl State {
    /// The state of a rule that begins with a day.
    fn beginning(day: Day) -> Self {
        Self { first: day, until: day, delivered: BTreeSet::new(), claims: Vec::new() }
    }
}

impl Watch {
    /// Prepares a rule. `aids`: of these saved searches; empty: of all that are stored. `when`: a condition in SQL on the columns of
    /// [`Alert`], such as `count > 3 * weekday_mean`. It is evaluated for each day by itself: window and aggregate functions, subqueries
    /// and random functions are refused.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the condition is invalid, or the connection has no store.
    pub async fn begin(connection: &Arc<Connection>, name: &str, aids: &[String], when: &str) -> Result<Self> {
        connection.some_store()?;
        let mut aids = aids.to_vec();
        aids.sort_unstable();
        aids.dedup();
        let named = serde_json::json!([name, aids, when]).to_string();
        let key = format!("watch rule {}", data_encoding::HEXLOWER.encode(&Sha256::digest(named)));
        let holder = format!("{:032x}", rand::random::<u128>());
        let (connection, name, when) = (Arc::clone(connection), name.to_owned(), when.to_owned());
        let watch = Self { connection, name, aids, when, key, holder };
        watch.holds(&[]).await?;
        Ok(watch)
    }

    /// Name of the rule.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the days for which the condition holds, and of which no alert was delivered. The first time, the rule begins with the
    /// current day.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the condition cannot be evaluated; those of the store.
    pub async fn due(&self) -> Result<Due> {
        let (store, today) = (self.connection.some_store()?, self.today());
        if store.state(&self.key)?.is_none() {
            let begun = serde_json::json!(State::beginning(today)).to_string();
            // Another process may have begun meanwhile.
            store.change_state(&self.key, |state, _| Ok((state.is_none().then(|| begun.clone()), ())))?;
        }
        let state = self.state()?;
        let aids = if self.aids.is_empty() { store.aids()? } else { self.aids.clone() };
        let mut examined: Vec<Alert> = Vec::new();
        let (mut unstored, mut until) = (Vec::new(), today);
        for aid in aids {
            let mut counts: BTreeMap<Day, u64> = BTreeMap::new();
            for (_, region) in store.regions(&aid)?.iter().filter(|(filters, _)| filters.is_empty()) {
                counts.extend(region.days.clone().zip(region.counts.iter().copied()));
            }
            if counts.is_empty() && self.aids.is_empty() {
                // All its days were read with conditions.
                continue;
            }
            let mut complete = true;
            for day in self.first(&state).max(today - OLDEST)..=today {
                match counts.get(&day) {
                    Some(_) if state.delivered.contains(&(aid.clone(), day)) => {}
                    Some(count) => examined.push(self.alert(&aid, day, *count, &counts)),
                    None => (complete, until) = (false, until.min(day - 1)),
                }
            }
            unstored.extend((!complete).then_some(aid));
        }
        let holds = self.holds(&examined).await?;
        let (mut alerts, mut undecided) = (Vec::new(), Vec::new());
        for (alert, holds) in examined.into_iter().zip(holds) {
            match holds {
                Some(true) => alerts.push(alert),
                Some(false) => {}
                None => undecided.push(alert.aid),
            }
        }
        undecided.dedup();
        Ok(Due { alerts, undecided, unstored, until })
    }

    /// Claims an alert before it is delivered, so that no other process delivers it as well. A claim ends after 5 minutes, unless the same
    /// process renews it by another call.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the store cannot be written.
    pub fn claim(&self, alert: &Alert) -> Result<Claim> {
        let (aid, day) = (&alert.aid, alert.day.to_epoch_days());
        self.change(|state, now| {
            if state.delivered.contains(&(aid.clone(), day)) {
                return Claim::Delivered;
            }
            state.claims.retain(|claim| claim.ends > now && !(claim.holder == self.holder && claim.is_of(aid, day)));
            if state.claims.iter().any(|claim| claim.is_of(aid, day)) {
                return Claim::Elsewhere;
            }
            state.claims.push(Held { aid: aid.clone(), day, holder: self.holder.clone(), ends: now + CLAIMED });
            Claim::Here
        })
    }

    /// Gives up the claims of this process, so that another one need not wait for their end.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the store cannot be written.
    pub fn release(&self) -> Result<()> {
        self.change(|state, _| state.claims.retain(|claim| claim.holder != self.holder))
    }

    /// Records that an alert was delivered.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the store cannot be written.
    pub fn record(&self, alert: &Alert) -> Result<()> {
        let (aid, day) = (&alert.aid, alert.day.to_epoch_days());
        self.change(|state, _| {
            state.delivered.insert((aid.clone(), day));
            state.claims.retain(|claim| !claim.is_of(aid, day));
        })
    }

    /// Records that all alerts were delivered.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the store cannot be written.
    pub fn finish(&self, due: &Due) -> Result<()> {
        let finished = |state: &mut State| {
            state.until = state.until.max(due.until);
            let first = self.first(state);
            state.delivered.retain(|(_, day)| *day >= first);
        };
        let before = self.state()?;
        let mut after = before.clone();
        finished(&mut after);
        // Most synchronizations change nothing, and need not wait for the lock of writers.
        if after == before { Ok(()) } else { self.change(|state, _| finished(state)) }
    }

    /// The first day to examine: those before have settled since they were examined.
    fn first(&self, state: &State) -> Day {
        let settling = self.connection.profile().store.settle.length().num_days() + 1;
        state.first.max(state.until.saturating_sub(Day::try_from(settling).unwrap_or(Day::MAX)))
    }

    fn today(&self) -> Day {
        day_of(self.connection.now().timestamp_micros())
    }

    fn alert(&self, aid: &str, day: Day, count: u64, counts: &BTreeMap<Day, u64>) -> Alert {
        let mean = |step: Day, (most, least): (Day, usize)| {
            let before: Vec<u64> = (1..=most).filter_map(|back| counts.get(&(day - step * back)).copied()).collect();
            (before.len() >= least).then(|| before.iter().sum::<u64>() as f64 / before.len() as f64)
        };
        Alert {
            rule: self.name.clone(),
            aid: aid.to_owned(),
            day: date_of(day),
            count,
            weekday_mean: mean(7, WEEKDAYS),
            mean: mean(1, DAYS),
        }
    }

    /// Returns the values of the condition for these days, in their order.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if it cannot be evaluated.
    async fn holds(&self, days: &[Alert]) -> Result<Vec<Option<bool>>> {
        let values = async {
            let values = condition(&session(&self.connection)?, &self.when, rows_of(days)?).await?;
            values.collect().await
        };
        let batches = values.await.map_err(|error| self.invalid(&error))?;
        let holds: Vec<Option<bool>> = batches.iter().flat_map(|batch| batch.column(0).as_boolean().iter()).collect();
        if holds.len() == days.len() {
            return Ok(holds);
        }
        let what = format!("it has {} for {}", counted(holds.len() as u64, "value"), counted(days.len() as u64, "day"));
        Err(self.invalid(&DataFusionError::Plan(what)))
    }

    fn invalid(&self, error: &DataFusionError) -> Error {
        let what = Phrase::from(format!("invalid condition of watch rule `{}`: ", self.name));
        let error = Error::new(ErrorKind::Config, what + own_or_query(error).line());
        error.advice(format!("use the columns {COLUMNS}, as in count > 3 * weekday_mean"))
    }

    fn state(&self) -> Result<State> {
        self.parsed(self.connection.some_store()?.state(&self.key)?)
    }

    /// Changes the state in one transaction, with the time in seconds since 1970.
    fn change<T>(&self, change: impl Fn(&mut State, i64) -> T) -> Result<T> {
        self.connection.some_store()?.change_state(&self.key, |state, now| {
            let before = self.parsed(state)?;
            let mut after = before.clone();
            let result = change(&mut after, now);
            Ok(((after != before).then(|| serde_json::json!(after).to_string()), result))
        })
    }

    fn parsed(&self, state: Option<String>) -> Result<State> {
        let damaged = || {
            Error::new(ErrorKind::Store, format!("the store is damaged: invalid state of watch rule `{}`", self.name))
        };
        state.and_then(|state| serde_json::from_str(&state).ok()).ok_or_else(damaged)
    }
}

/// The columns of a condition for these days, in their order.
fn rows_of(days: &[Alert]) -> DataFusionResult<RecordBatch> {
    let aids: StringArray = days.iter().map(|day| Some(day.aid.as_str())).collect();
    let dates: Date32Array = days.iter().map(|day| Some(day.day.to_epoch_days())).collect();
    let counts: Int64Array = days.iter().map(|day| i64::try_from(day.count).ok()).collect();
    let weekday_means: Float64Array = days.iter().map(|day| day.weekday_mean).collect();
    let means: Float64Array = days.iter().map(|day| day.mean).collect();
    let columns: [(&str, ArrayRef); 5] = [
        ("aid", Arc::new(aids)),
        ("day", Arc::new(dates)),
        ("count", Arc::new(counts)),
        ("weekday_mean", Arc::new(weekday_means)),
        ("mean", Arc::new(means)),
    ];
    Ok(RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))?)
}

impl Held {
    fn is_of(&self, aid: &str, day: Day) -> bool {
        self.aid == aid && self.day == day
    }
}

impl Alert {
    /// The alert as a line of JSON.
    pub fn to_line(&self) -> String {
        let Self { rule, aid, day, count, weekday_mean, mean } = self;
        let object = serde_json::json!({
            "rule": rule, "aid": aid, "day": day.to_string(), "count": count, "weekday_mean": weekday_mean, "mean": mean,
        });
        format!("{object}\n")
    }
}

/// As in `surge: 183772 2026-07-01: 412 mentions; mean of this weekday: 98.5`.
impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, aid, day, count, weekday_mean, .. } = self;
        write!(f, "{rule}: {aid} {day}: {}", counted(*count, "mention"))?;
        match weekday_mean {
            Some(mean) => write!(f, "; mean of this weekday: {mean:.1}"),
            None => Ok(()),
        }
    }
}
