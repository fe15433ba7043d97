//! Instants in the forms in which services write them.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};

/// An instant as it is written, in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instant {
    /// With a zone, or as a count.
    Zoned(i64),
    /// A local time, as if it were UTC.
    Local(i64),
    /// A day without a time, as if its start were UTC.
    Day(i64),
}

impl Instant {
    /// The instant, in UTC if it has no zone.
    #[cfg(feature = "probe")]
    pub(crate) fn as_utc(self) -> i64 {
        let (Self::Zoned(micros) | Self::Local(micros) | Self::Day(micros)) = self;
        micros
    }
}

/// Parses an instant by a `strftime` pattern.
pub(crate) fn instant_by(pattern: &str, text: &str) -> Option<Instant> {
    let zoned = DateTime::parse_from_str(text, pattern).map(|at| Instant::Zoned(at.timestamp_micros()));
    let local =
        || NaiveDateTime::parse_from_str(text, pattern).map(|at| Instant::Local(at.and_utc().timestamp_micros()));
    let day = || NaiveDate::parse_from_str(text, pattern).map(|day| day.and_time(NaiveTime::MIN).and_utc());
    zoned.or_else(|_| local()).or_else(|_| day().map(|at| Instant::Day(at.timestamp_micros()))).ok()
}

/// An instant in RFC 3339 of one in another form of ISO 8601: without seconds that are zero, with a comma before its fraction, with
/// the name of its zone behind the offset, as `OffsetDateTime` and `ZonedDateTime` of Java write it, or with UTC behind a blank.
pub(crate) fn completed_instant(text: &str) -> Cow<'_, str> {
    let has_offset =
        |instant: &str| instant.ends_with('Z') || instant.get(11..).is_some_and(|time| time.contains(['+', '-']));
    let named = text.split_once('[').filter(|(instant, name)| name.ends_with(']') && has_offset(instant));
    let named = named.map_or(text, |(instant, _)| instant);
    if let Some(local) = [" UTC", " GMT", " Z"].iter().find_map(|zone| named.strip_suffix(zone)) {
        let is_clock =
            |time: &str| time.contains(':') && !time.contains(|c: char| c.is_alphabetic() || "+-".contains(c));
        if local.get(11..).is_some_and(is_clock) {
            return Cow::Owned(completed_instant(&format!("{local}Z")).into_owned());
        }
    }
    let bytes = named.as_bytes();
    let colon = |at: usize| bytes.get(at) == Some(&b':');
    let ends = bytes.get(16).is_none_or(|next| matches!(next, b'Z' | b'+' | b'-' | b' '));
    if bytes.len() >= 16 && colon(13) && ends && bytes[14].is_ascii_digit() && bytes[15].is_ascii_digit() {
        return Cow::Owned(format!("{}:00{}", &named[..16], &named[16..]));
    }
    match bytes.get(19) {
        Some(b',') if colon(13) && colon(16) => Cow::Owned(named.replacen(',', ".", 1)),
        _ => Cow::Borrowed(named),
    }
}

/// Parses a time as messages have it (RFC 5322), in microseconds since 1970: `Fri, 20 Nov 2026 10:00:00 +0100`, or with a zone that has
/// a name in section 4.3. Single letters, which were often used wrongly, and other names are not read.
pub(crate) fn message_instant(text: &str) -> Option<i64> {
    const ZONES: [(&str, &str); 11] = [
        ("GMT", "+0000"),
        ("UTC", "+0000"),
        ("UT", "+0000"),
        ("EST", "-0500"),
        ("EDT", "-0400"),
        ("CST", "-0600"),
        ("CDT", "-0500"),
        ("MST", "-0700"),
        ("MDT", "-0600"),
        ("PST", "-0800"),
        ("PDT", "-0700"),
    ];
    let (local, zone) = text.rsplit_once(' ')?;
    let named = ZONES.iter().find(|(name, _)| *name == zone).map(|(_, offset)| *offset);
    let offset = named.or(Some(zone).filter(|zone| zone.starts_with(['+', '-'])))?;
    DateTime::parse_from_rfc2822(&format!("{local} {offset}")).ok().map(|at| at.timestamp_micros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn times_of_messages_are_read_with_an_offset_or_a_zone_that_the_standard_names() {
        let at = |text: &str| DateTime::parse_from_rfc3339(text).ok().map(|at| at.timestamp_micros());
        let cases = [
            ("Fri, 20 Nov 2026 10:00:00 GMT", at("2026-11-20T10:00:00Z")),
            ("20 Nov 2026 10:00:00 EST", at("2026-11-20T15:00:00Z")),
            ("Fri, 20 Nov 2026 10:00 PDT", at("2026-11-20T17:00:00Z")),
            ("Fri, 20 Nov 2026 10:00:00 +0100", at("2026-11-20T09:00:00Z")),
            // Not a name of the standard, a letter, another day of the week, and no zone.
            ("Fri, 20 Nov 2026 10:00:00 CET", None),
            ("Fri, 20 Nov 2026 10:00:00 A", None),
            ("Mon, 20 Nov 2026 10:00:00 GMT", None),
            ("Fri, 20 Nov 2026 10:00:00", None),
            ("20/11/2026 10:00:00 +0000", None),
        ];
        each(cases, |(text, instant)| assert_eq!(message_instant(text), instant, "{text}"));
    }

    #[test]
    fn utc_may_stand_behind_a_blank() {
        for text in ["2026-11-20 10:00:00 UTC", "2026-11-20 10:00 GMT", "2026-11-20 10:00:00 Z"] {
            assert_eq!(completed_instant(text), "2026-11-20 10:00:00Z", "{text}");
        }
        for text in ["2026-11-20 UTC", "2026-11-20T10:00:00+01:00 UTC", "11/20/2026 10:00:00 AM UTC"] {
            assert_eq!(completed_instant(text), text);
        }
    }
}
