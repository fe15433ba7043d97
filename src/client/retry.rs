//! Retry policy: decides whether and when to retry, given the cause and a random number. Pure; the caller sleeps.
//!
//! Throttling and temporary failures are bounded separately: a service that throttles is healthy, and the client waits for
//! as long as it asks. A request that fails is retried only a few times (API description, section 7: bounded retries for 429
//! and 5xx).

use std::time::Duration;

use chrono::{DateTime, Utc};
use http::HeaderMap;
use http::header::AGE;
#[cfg(feature = "probe")]
use savedsearch_clock::Clock;

use crate::profile::{ResetFormat, Throttle};

/// Bounds of retries.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Attempts at a request that fails, including the first. Set to 1 to disable retries.
    pub failures: u32,
    /// Attempts at a request that is throttled, including the first. Those of other requests of the query count as well, until one is
    /// answered.
    pub throttles: u32,
    /// Longest wait before the second attempt; doubles with each further attempt.
    pub base: Duration,
    /// Longest wait that this client chooses itself. A wait that the service names may be longer.
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { failures: 5, throttles: 10, base: Duration::from_millis(250), cap: Duration::from_secs(30) }
    }
}

/// Reason why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The service throttled the request, and may have named a wait.
    Throttled(Option<Duration>),
    /// A temporary failure.
    Temporary,
    /// A successful response that is not accepted: it may be cut off, or belong to another request.
    Unusable,
    /// The service is unavailable, and named this wait; zero if none.
    Unavailable(Duration),
}

/// Attempts at a request whose responses are not accepted. If the last one is not accepted either, the cause is not
/// accidental.
const UNUSABLE: u32 = 3;

/// Decision after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// Wait this long, then retry.
    Wait(Duration),
    /// Give up and report the cause.
    GiveUp,
}

/// Attempts at one request so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RetryState {
    failures: u32,
    throttles: u32,
}

impl RetryState {
    /// Counts the attempt and decides. `before`: attempts of the query that the service has throttled since it last answered one.
    /// `random` is in [0, 1): full jitter over the exponential back-off, and up to a tenth on top of a wait that the service named, so
    /// that its clients do not return all at once.
    pub(super) fn after(&mut self, policy: &RetryPolicy, cause: Cause, before: u32, random: f64) -> Decision {
        let (count, bound) = match cause {
            Cause::Throttled(_) => {
                self.throttles += 1;
                (self.throttles.max(before.saturating_add(1)), policy.throttles)
            }
            Cause::Temporary | Cause::Unavailable(_) => {
                self.failures += 1;
                (self.failures, policy.failures)
            }
            Cause::Unusable => {
                self.failures += 1;
                (self.failures, policy.failures.min(UNUSABLE))
            }
        };
        if count >= bound {
            return Decision::GiveUp;
        }
        let ceiling = policy.base.saturating_mul(1 << (count - 1).min(20)).min(policy.cap);
        Decision::Wait(match cause {
            Cause::Throttled(Some(named)) if named > Duration::ZERO => {
                named.saturating_add(ceiling.min(named).mul_f64(random / 10.0))
            }
            // Throttling without a named wait deserves at least half of the ceiling.
            Cause::Throttled(_) => ceiling.mul_f64(0.5 + random / 2.0),
            Cause::Temporary | Cause::Unusable => ceiling.mul_f64(random),
            Cause::Unavailable(named) => named.saturating_add(ceiling.mul_f64(random)),
        })
    }
}

/// Returns the wait that a throttled response names: `Retry-After` in seconds or as a date (RFC 9110, section 10.2.3),
/// otherwise the end of an exhausted window. Dates are taken relative to the server's own `Date`, so that clocks need
/// not agree.
pub(super) fn named_wait(throttle: &Throttle, headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    retry_after(throttle, headers, now).or_else(|| reset(throttle, headers, now))
}

/// Same as [`named_wait`], by the clock of this machine if the response has no date.
#[cfg(feature = "probe")]
pub(crate) fn asked_wait(throttle: &Throttle, headers: &HeaderMap) -> Option<Duration> {
    named_wait(throttle, headers, Clock::system().now())
}

/// Returns how long a response was in caches (RFC 9111, section 5.1).
pub(super) fn age(headers: &HeaderMap) -> Option<Duration> {
    headers.get(AGE)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// Returns the wait that `Retry-After` names. Of several, the longest.
pub(super) fn retry_after(throttle: &Throttle, headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let values = headers.get_all(throttle.retry_after.as_deref()?).iter().filter_map(|value| value.to_str().ok());
    let waits = values.filter_map(|value| wait_of(value.trim(), ResetFormat::Seconds, headers, now));
    waits.max()
}

/// Returns the wait that a value names: an instant as a date or as an epoch number, or a number of seconds. `declared` decides
/// for numbers that may be both.
fn wait_of(value: &str, declared: ResetFormat, headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    /// Seconds of a year.
    const YEAR: f64 = 366.0 * 86_400.0;
    /// Seconds of thirty years, or an instant in 2001.
    const FIRST_INSTANT: f64 = 1e9;
    let seconds = value.strip_suffix(['s', 'S']).unwrap_or(value);
    let Ok(number) = seconds.parse::<f64>() else { return Some(until(date(value)?, headers, now)) };
    #[expect(clippy::cast_precision_loss, reason = "compared with the length of years")]
    let current = server_date(headers).unwrap_or(now).timestamp_millis() as f64 / 1_000.0;
    // Services write seconds or milliseconds, even if they declare otherwise; microseconds occur as well.
    let epoch = [1.0, 1e3, 1e6].map(|unit| number / unit - current).into_iter().find(|distance| distance.abs() < YEAR);
    // A number of so many seconds is an instant, if far from now.
    let nearest =
        [1.0, 1e3, 1e6].map(|unit| number / unit - current).into_iter().min_by(|a, b| a.abs().total_cmp(&b.abs()));
    match (declared, epoch) {
        (_, None) if number >= FIRST_INSTANT => nearest.map(duration),
        (ResetFormat::Seconds, Some(distance)) if number > 30.0 * YEAR => Some(duration(distance)),
        (ResetFormat::EpochS | ResetFormat::Iso, Some(distance)) => Some(duration(distance)),
        _ => Some(duration(number)),
    }
}

/// Returns the wait until the window is reset, if the response says that no request is left in it.
pub(super) fn exhausted(throttle: &Throttle, headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let remaining: f64 = text(headers, throttle.remaining.as_deref())?.parse().ok()?;
    // Services without a limit say -1, or 0 of 0.
    if remaining < 0.0 || number(headers, throttle.limit.as_deref()) == Some(0) {
        return None;
    }
    // A window that ends days from now is not that of the limit.
    let plausible = |wait: &Duration| *wait <= Duration::from_secs(3_600);
    if remaining <= 0.0 { reset(throttle, headers, now).filter(plausible) } else { None }
}

fn reset(throttle: &Throttle, headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    wait_of(text(headers, throttle.reset.as_deref())?, throttle.reset_format, headers, now)
}

/// Returns the value of a header that holds an integer.
pub(super) fn number(headers: &HeaderMap, name: Option<&str>) -> Option<i64> {
    text(headers, name)?.parse().ok()
}

fn text<'a>(headers: &'a HeaderMap, name: Option<&str>) -> Option<&'a str> {
    headers.get(name?)?.to_str().ok().map(str::trim)
}

fn date(value: &str) -> Option<DateTime<Utc>> {
    httpdate::parse_http_date(value)
        .map(DateTime::from)
        .ok()
        .or_else(|| Some(DateTime::parse_from_rfc3339(value).ok()?.to_utc()))
}

/// Returns the service's own time (RFC 9110, section 6.6.1).
pub(super) fn server_date(headers: &HeaderMap) -> Option<DateTime<Utc>> {
    text(headers, Some("date")).and_then(date)
}

fn until(at: DateTime<Utc>, headers: &HeaderMap, now: DateTime<Utc>) -> Duration {
    let server = server_date(headers).unwrap_or(now);
    (at - server).to_std().unwrap_or(Duration::ZERO)
}

/// Converts a wait in seconds to a duration: negative values and NaN are zero, an overflow is the longest duration.
fn duration(seconds: f64) -> Duration {
    if seconds.is_nan() || seconds <= 0.0 {
        return Duration::ZERO;
    }
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cases::each;
    use crate::profile::Profile;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(k, v)| (http::HeaderName::from_static(k), v.parse().expect("valid header value"))).collect()
    }

    fn wait(pairs: &[(&'static str, &str)]) -> Option<Duration> {
        let now = DateTime::from_timestamp(1_000_000, 0).expect("valid instant");
        named_wait(&Profile::v4().throttle, &headers(pairs), now)
    }

    #[test]
    fn waits_are_read_in_every_form() {
        assert_eq!(wait(&[("retry-after", "2")]), Some(Duration::from_secs(2)));
        assert_eq!(wait(&[("retry-after", "-5")]), Some(Duration::ZERO));
        assert_eq!(wait(&[("retry-after", "1e300")]), Some(Duration::MAX));
        let (date, later) = ("Tue, 01 Jul 2025 10:00:00 GMT", "Tue, 01 Jul 2025 10:00:07 GMT");
        assert_eq!(wait(&[("date", date), ("retry-after", later)]), Some(Duration::from_secs(7)));
        assert_eq!(wait(&[("x-ratelimit-reset", "1000030")]), Some(Duration::from_secs(30)));
        assert_eq!(wait(&[("retry-after", "soon")]), None);
        assert_eq!(wait(&[]), None);
    }

    #[test]
    fn instants_are_told_from_seconds_whatever_is_declared() {
        let now = DateTime::from_timestamp(1_795_615_332, 0).expect("valid instant");
        let mut throttle = Profile::v4().throttle;
        for declared in [ResetFormat::EpochS, ResetFormat::Seconds, ResetFormat::Iso] {
            throttle.reset_format = declared;
            let cases = [
                ("1795615335", 3),
                ("1795615335000", 3),
                ("1795615335000000", 3),
                ("1795615300", 0),
                ("3", 3),
                ("3s", 3),
                ("2026-11-25T14:02:15Z", 3),
                ("Wed, 25 Nov 2026 14:02:15 GMT", 3),
            ];
            each(cases, |(value, seconds)| {
                for name in ["retry-after", "x-ratelimit-reset"] {
                    let wait = named_wait(&throttle, &headers(&[(name, value)]), now);
                    assert_eq!(wait, Some(Duration::from_secs(seconds)), "{name}: {value}, {declared:?}");
                }
            });
        }
        // An instant that has long passed.
        for past in ["1100000000", "1100000000000"] {
            assert_eq!(named_wait(&throttle, &headers(&[("x-ratelimit-reset", past)]), now), Some(Duration::ZERO));
        }
        // Ten years are a number of seconds, and no instant near now.
        let wait = named_wait(&throttle, &headers(&[("retry-after", "315360000")]), now);
        assert_eq!(wait, Some(Duration::from_secs(315_360_000)));
        let mut several = headers(&[("retry-after", "1")]);
        several.append("retry-after", http::HeaderValue::from_static("3"));
        assert_eq!(named_wait(&throttle, &several, now), Some(Duration::from_secs(3)));
    }

    proptest! {
        #[test]
        fn any_header_names_a_wait_or_none(
            retry_after in "[ -~]{0,30}|-?[0-9]{1,40}(\\.[0-9]{1,9})?(e[0-9]{1,4})?|[A-Z][a-z]{2}, [0-9]{2} Jul [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT",
            date in "[ -~]{0,30}|Tue, 01 Jul 2025 10:00:00 GMT", reset in "[ -~]{0,20}|[0-9]{1,25}", format in 0..3_u8,
        ) {
            let mut throttle = Profile::v4().throttle;
            throttle.reset_format = [ResetFormat::EpochS, ResetFormat::Seconds, ResetFormat::Iso][usize::from(format)];
            let headers = headers(&[
                ("retry-after", &retry_after), ("date", &date), ("x-ratelimit-reset", &reset), ("x-ratelimit-remaining", "0"),
            ]);
            let now = DateTime::from_timestamp(1_000_000, 0).expect("valid instant");
            for wait in [named_wait(&throttle, &headers, now), exhausted(&throttle, &headers, now)] {
                let mut state = RetryState::default();
                prop_assert!(matches!(state.after(&RetryPolicy::default(), Cause::Throttled(wait), 0, 0.99), Decision::Wait(_)));
            }
        }
    }

    #[test]
    fn an_exhausted_window_is_waited_out() {
        let now = DateTime::from_timestamp(1_000_000, 0).expect("valid instant");
        let throttle = Profile::v4().throttle;
        let left = headers(&[("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", "1000030")]);
        assert_eq!(exhausted(&throttle, &left, now), None);
        let none = headers(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1000030")]);
        assert_eq!(exhausted(&throttle, &none, now), Some(Duration::from_secs(30)));
    }

    #[test]
    fn attempts_are_bounded_and_back_off() {
        let policy = RetryPolicy::default();
        let mut state = RetryState::default();
        let mut waits = Vec::new();
        while let Decision::Wait(wait) = state.after(&policy, Cause::Temporary, 0, 0.999) {
            waits.push(wait);
        }
        assert_eq!(state.failures, policy.failures);
        assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "{waits:?}");

        let mut state = RetryState::default();
        let named = Duration::from_secs(9);
        assert!(matches!(state.after(&policy, Cause::Throttled(Some(named)), 0, 0.5), Decision::Wait(w) if w >= named));
        assert!(matches!(
            state.after(&policy, Cause::Throttled(Some(Duration::MAX)), 0, 0.5),
            Decision::Wait(Duration::MAX)
        ));
    }

    #[test]
    fn attempts_of_other_requests_count_until_one_is_answered() {
        let (policy, throttled) = (RetryPolicy::default(), Cause::Throttled(None));
        let mut state = RetryState::default();
        assert!(matches!(state.after(&policy, throttled, policy.throttles - 2, 0.5), Decision::Wait(_)));
        // One was answered: those of this request are left.
        assert!(matches!(state.after(&policy, throttled, 0, 0.5), Decision::Wait(_)));
        assert_eq!(state.after(&policy, throttled, policy.throttles - 1, 0.5), Decision::GiveUp);
        let mut alone = RetryState::default();
        let waits = (1..policy.throttles).filter(|_| alone.after(&policy, throttled, 0, 0.5) != Decision::GiveUp);
        assert_eq!(waits.count(), 9);
        assert_eq!(alone.after(&policy, throttled, 0, 0.5), Decision::GiveUp);
    }
}
