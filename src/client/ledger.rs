//! Ledger of the requests that a key has spent over hours, days and months: a small file shared by all processes of a
//! machine.
//!
//! Every request is recorded before it is sent, under a lock on a separate file; the wait for the lock is bounded. The
//! ledger itself is replaced atomically, so that a killed process never leaves a partial file, and reading needs no
//! lock. Times are rounded up to a fraction of the longest limit, so that a limit is never exceeded.

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

/// Longest window that is counted in memory only, in seconds.
pub(super) const SHORT: u32 = 3_600;
/// Number of time steps in the longest limit.
const PARTS: i64 = 1_440;
/// Longest wait for another process that holds the lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// Request ledger of one key at one service.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    windows: Vec<RateWindow>,
    /// Makes users within this process take turns before they wait for other processes.
    turn: Mutex<()>,
}

/// Requests by time, in seconds since 1970, rounded up.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spent {
    requests: Vec<(i64, u64)>,
}

/// True if a limit has to outlast the process.
pub(super) fn is_needed(budget: &Budget) -> bool {
    budget.windows.iter().any(|window| window.seconds > SHORT)
}

impl Ledger {
    /// Returns the ledger in a folder; `None` if no limit needs one.
    pub(super) fn of(folder: &Path, identity: [u8; 32], budget: &Budget) -> Option<Self> {
        let windows: Vec<RateWindow> = budget.windows.iter().copied().filter(|window| window.seconds > SHORT).collect();
        let name = name_of(identity);
        (!windows.is_empty()).then(|| Self {
            path: folder.join(format!("ledger-{name}.json")),
            windows,
            turn: Mutex::default(),
        })
    }

    /// Records a request that is about to be sent and costs this many units.
    ///
    /// # Errors
    /// [`ErrorKind::Quota`] if a limit is used up, with the time until which it is; [`ErrorKind::Config`] if the file
    /// cannot be locked, read or written.
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
                return Err(Error::new(ErrorKind::Quota, message)
                    .advice("retry after that time, or correct the profile's [budget]"));
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

    /// Returns the limits with the requests counted against each. Takes no lock: the file is always complete.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the file cannot be read.
    pub(super) fn standing(&self, now: DateTime<Utc>) -> Result<Vec<(RateWindow, u64)>> {
        Ok(self.used(&self.read(now)?, now))
    }

    /// Length of the longest limit, in seconds.
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

    /// Keeps other processes from writing until the returned file is dropped. Blocks the thread for a few seconds at
    /// most.
    pub(super) fn lock(&self) -> Result<File> {
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
                        bad(format!("another process has held the lock for {seconds} s")).advice("stop that process")
                    );
                }
                Err(TryLockError::Error(error)) => return Err(bad(format!("cannot be locked: {error}"))),
            }
        }
    }

    /// Reads the requests spent within the longest limit.
    fn read(&self, now: DateTime<Utc>) -> Result<Spent> {
        let text = files::read(&self.path).map_err(|error| self.bad(&format!("cannot be read: {error}")))?;
        // An empty file is damaged: a file is written whole before it gets its name, and power may fail between.
        let mut spent: Spent = match text {
            None => Spent::default(),
            Some(text) => serde_json::from_str(&text).map_err(|error| {
                self.bad(&format!("not a valid request ledger: {error}")).advice("delete it to start over")
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
    /// Returns the time at which a used-up limit has room for this many units again.
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
        text.parse().expect("valid instant")
    }

    fn ledger(folder: &Path, windows: &[(u32, u32)]) -> Ledger {
        let windows = windows.iter().map(|(requests, seconds)| RateWindow { requests: *requests, seconds: *seconds });
        let budget = Budget { windows: windows.collect(), ..Profile::v4().budget };
        Ledger::of(folder, [7; 32], &budget).expect("a limit that needs one")
    }

    #[test]
    fn processes_spend_from_one_budget_and_are_told_when_it_is_renewed() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let (one, other) = (ledger(folder.path(), &[(3, 86_400)]), ledger(folder.path(), &[(3, 86_400)]));
        let noon = at("2026-07-01T12:00:00Z");
        one.spend(noon, 1).expect("the first");
        other.spend(noon, 1).expect("the second");
        one.spend(noon + TimeDelta::hours(3), 1).expect("the third");
        let error = other.spend(noon + TimeDelta::hours(4), 1).expect_err("used up");
        assert_eq!(error.kind(), ErrorKind::Quota);
        assert!(error.to_string().contains("3 requests in 86400 s is used up until 2026-07-02T12:01:00Z"), "{error}");
        assert_eq!(one.standing(noon + TimeDelta::hours(4)).expect("readable ledger")[0].1, 3);
        // At most a minute later, two are free again.
        let renewed = noon + TimeDelta::hours(24) + TimeDelta::minutes(1);
        one.spend(renewed, 1).expect("renewed");
        other.spend(renewed, 1).expect("renewed");
        assert!(one.spend(renewed, 1).is_err());
    }

    #[test]
    fn a_lock_that_another_process_keeps_is_an_error_in_time_and_reading_needs_none() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let ledger = ledger(folder.path(), &[(3, 86_400)]);
        let noon = at("2026-07-01T12:00:00Z");
        ledger.spend(noon, 2).expect("two");
        let kept = ledger.lock().expect("the lock");
        assert_eq!(ledger.standing(noon).expect("no lock is needed")[0].1, 2);
        let error = ledger.spend(noon, 1).expect_err("it is locked");
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains("held the lock for 5 s"), "{error}");
        drop(kept);
        ledger.spend(noon, 1).expect("the third");
    }

    #[test]
    fn every_limit_holds_and_a_damaged_file_is_told() {
        let folder = tempfile::tempdir().expect("temporary folder");
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
            error.to_string().contains("not a valid request ledger") && error.to_string().contains("delete it"),
            "{error}"
        );
        std::fs::write(&ledger.path, "").expect("written");
        assert!(ledger.spend(start, 1).expect_err("empty").to_string().contains("not a valid request ledger"));
        let pipe = ledger.path.with_extension("lock");
        std::fs::remove_file(&pipe).expect("lock file exists");
        #[cfg(unix)]
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("pipe created");
        assert!(ledger.spend(start, 1).expect_err("a pipe").to_string().contains("not a regular file"));
        let short = Budget { windows: vec![RateWindow { requests: 1, seconds: 60 }], ..Profile::v4().budget };
        assert!(Ledger::of(folder.path(), [7; 32], &short).is_none());
    }
}
