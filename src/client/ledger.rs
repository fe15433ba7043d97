//! What a key has spent over hours, days and months, in a small file that all processes of a machine share.
//!
//! Every request is written down before it is sent, under a lock on a file beside it, which is waited for a bounded time. The
//! ledger itself is replaced whole, so that a process that is killed never leaves a part of it, and reading needs no lock.
//! Times are kept to a part of the longest limit, and counted as late as they may have been, so that a limit is never passed.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::auth::name_of;
use crate::error::{Error, ErrorKind, Result};
use crate::files;
use crate::profile::{Budget, RateWindow};

/// Seconds up to which limits are kept in memory.
pub(super) const SHORT: u32 = 3_600;
/// Parts of the longest limit that times are kept to.
const PARTS: i64 = 1_440;
/// How long another process is waited for that has the lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// The ledger of a key at a service.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    windows: Vec<RateWindow>,
    /// Those of this process take turns before they wait for others.
    turn: Mutex<()>,
}

/// Requests by the second, since 1970, at which they were made at the latest.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spent {
    requests: Vec<(i64, u64)>,
}

/// Whether a limit is to outlast the process.
pub(super) fn is_needed(budget: &Budget) -> bool {
    budget.windows.iter().any(|window| window.seconds > SHORT)
}

impl Ledger {
    /// The ledger in a folder; `None` where no limit needs one.
    pub(super) fn of(folder: &Path, identity: [u8; 32], budget: &Budget) -> Option<Self> {
        let windows: Vec<RateWindow> = budget.windows.iter().copied().filter(|window| window.seconds > SHORT).collect();
        let name = name_of(identity);
        (!windows.is_empty()).then(|| Self {
            path: folder.join(format!("ledger-{name}.json")),
            windows,
            turn: Mutex::default(),
        })
    }

    /// Writes down a request that is about to be sent, at a cost of so many units.
    ///
    /// # Errors
    /// [`ErrorKind::Quota`] where a limit is used up, with the time at which it is not; [`ErrorKind::Config`] for a file
    /// that cannot be kept.
    pub(super) fn spend(&self, now: DateTime<Utc>, units: u64) -> Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let _lock = self.lock()?;
        let mut spent = self.read(now)?;
        for (window, used) in self.used(&spent, now) {
            if used + units > u64::from(window.requests) {
                let free = spent.free_at(window, now, units);
                let message = format!(
                    "the declared budget of {} requests in {} s is used up until {}",
                    window.requests,
                    window.seconds,
                    free.to_rfc3339_opts(SecondsFormat::Secs, true)
                );
                return Err(
                    Error::new(ErrorKind::Quota, message).advice("ask again then, or correct the profile's [budget]")
                );
            }
        }
        let step = (self.longest() / PARTS).max(1);
        let latest = now.timestamp().div_euclid(step) * step + step;
        match spent.requests.last_mut() {
            Some((at, count)) if *at == latest => *count += units,
            _ => spent.requests.push((latest, units)),
        }
        let text = serde_json::to_string(&spent).unwrap_or_default();
        files::replace(&self.path, &text).map_err(|error| self.bad(&format!("cannot be written: {error}")))
    }

    /// The limits, each with the requests that count against it. Nothing is locked: the file is always whole.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a file that cannot be read.
    pub(super) fn standing(&self, now: DateTime<Utc>) -> Result<Vec<(RateWindow, u64)>> {
        Ok(self.used(&self.read(now)?, now))
    }

    /// Seconds of the longest limit.
    fn longest(&self) -> i64 {
        self.windows.iter().map(|window| i64::from(window.seconds)).max().unwrap_or_default()
    }

    fn used(&self, spent: &Spent, now: DateTime<Utc>) -> Vec<(RateWindow, u64)> {
        let counts = |window: &RateWindow| {
            let since = now.timestamp() - i64::from(window.seconds);
            spent.requests.iter().filter(|(at, _)| *at > since).map(|(_, count)| count).sum()
        };
        self.windows.iter().map(|window| (*window, counts(window))).collect()
    }

    /// Keeps other processes from writing until what is returned is dropped. Blocks the thread for some seconds at most.
    fn lock(&self) -> Result<File> {
        let path = self.path.with_extension("lock");
        let bad = |what: String| Error::new(ErrorKind::Config, format!("{}: {what}", path.display()));
        let file = files::lockable(&path).map_err(|error| bad(format!("cannot be locked: {error}")))?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => sleep(Duration::from_millis(5)),
                Err(TryLockError::WouldBlock) => {
                    let seconds = PATIENCE.as_secs();
                    return Err(
                        bad(format!("another process has kept it locked for {seconds} s")).advice("end that process")
                    );
                }
                Err(TryLockError::Error(error)) => return Err(bad(format!("cannot be locked: {error}"))),
            }
        }
    }

    /// What was spent within the longest limit.
    fn read(&self, now: DateTime<Utc>) -> Result<Spent> {
        let text = files::read(&self.path).map_err(|error| self.bad(&format!("cannot be read: {error}")))?;
        let mut spent: Spent = match text.filter(|text| !text.is_empty()) {
            None => Spent::default(),
            Some(text) => serde_json::from_str(&text).map_err(|error| {
                self.bad(&format!("is no ledger of requests: {error}")).advice("delete it to begin anew")
            })?,
        };
        spent.requests.retain(|(at, _)| *at > now.timestamp() - self.longest());
        Ok(spent)
    }

    fn bad(&self, what: &str) -> Error {
        Error::new(ErrorKind::Config, format!("{}: {what}", self.path.display()))
    }
}

impl Spent {
    /// When a limit that is used up has room for so many units again.
    fn free_at(&self, window: RateWindow, now: DateTime<Utc>, units: u64) -> DateTime<Utc> {
        let length = i64::from(window.seconds);
        let mut counted: Vec<(i64, u64)> =
            self.requests.iter().copied().filter(|(at, _)| *at > now.timestamp() - length).collect();
        counted.sort_unstable();
        let used: u64 = counted.iter().map(|(_, count)| count).sum();
        let mut over = (used + units).saturating_sub(u64::from(window.requests));
        let first = counted.into_iter().find(|(_, count)| {
            over = over.saturating_sub(*count);
            over == 0
        });
        let wait = first.map_or(length, |(at, _)| at + length - now.timestamp());
        now + TimeDelta::try_seconds(wait).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("an instant")
    }

    fn ledger(folder: &Path, windows: &[(u32, u32)]) -> Ledger {
        let windows = windows.iter().map(|(requests, seconds)| RateWindow { requests: *requests, seconds: *seconds });
        let budget = Budget { windows: windows.collect(), ..Profile::v4().budget };
        Ledger::of(folder, [7; 32], &budget).expect("a limit that needs one")
    }

    #[test]
    fn processes_spend_from_one_budget_and_are_told_when_it_is_renewed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, other) = (ledger(folder.path(), &[(3, 86_400)]), ledger(folder.path(), &[(3, 86_400)]));
        let noon = at("2026-07-01T12:00:00Z");
        one.spend(noon, 1).expect("the first");
        other.spend(noon, 1).expect("the second");
        one.spend(noon + TimeDelta::hours(3), 1).expect("the third");
        let error = other.spend(noon + TimeDelta::hours(4), 1).expect_err("used up");
        assert_eq!(error.kind(), ErrorKind::Quota);
        assert!(error.to_string().contains("3 requests in 86400 s is used up until 2026-07-02T12:01:00Z"), "{error}");
        assert_eq!(one.standing(noon + TimeDelta::hours(4)).expect("a standing")[0].1, 3);
        // A minute late at most, and two are free again.
        let renewed = noon + TimeDelta::hours(24) + TimeDelta::minutes(1);
        one.spend(renewed, 1).expect("renewed");
        other.spend(renewed, 1).expect("renewed");
        assert!(one.spend(renewed, 1).is_err());
    }

    #[test]
    fn a_lock_that_another_process_keeps_is_an_error_in_time_and_reading_needs_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let ledger = ledger(folder.path(), &[(3, 86_400)]);
        let noon = at("2026-07-01T12:00:00Z");
        ledger.spend(noon, 2).expect("two");
        let kept = ledger.lock().expect("the lock");
        assert_eq!(ledger.standing(noon).expect("no lock is needed")[0].1, 2);
        let error = ledger.spend(noon, 1).expect_err("it is locked");
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains("kept it locked for 5 s"), "{error}");
        drop(kept);
        ledger.spend(noon, 1).expect("the third");
    }

    #[test]
    fn every_limit_holds_and_a_damaged_file_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let ledger = ledger(folder.path(), &[(2, 7_200), (3, 2_592_000)]);
        let start = at("2026-07-01T00:00:00Z");
        ledger.spend(start, 1).expect("one");
        ledger.spend(start, 1).expect("two");
        assert!(ledger.spend(start, 1).expect_err("two in two hours").to_string().contains("7200 s"));
        ledger.spend(start + TimeDelta::days(2), 1).expect("three");
        assert!(
            ledger.spend(start + TimeDelta::days(5), 1).expect_err("three a month").to_string().contains("2592000 s")
        );
        std::fs::write(&ledger.path, "{\"requests\":7}").expect("written");
        let error = ledger.spend(start, 1).expect_err("damaged");
        assert!(
            error.to_string().contains("is no ledger of requests") && error.to_string().contains("delete it"),
            "{error}"
        );
        let pipe = ledger.path.with_extension("lock");
        std::fs::remove_file(&pipe).expect("it was made");
        #[cfg(unix)]
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        assert!(ledger.spend(start, 1).expect_err("a pipe").to_string().contains("not a regular file"));
        let short = Budget { windows: vec![RateWindow { requests: 1, seconds: 60 }], ..Profile::v4().budget };
        assert!(Ledger::of(folder.path(), [7; 32], &short).is_none());
    }
}
