//! Texts of times in forms that the casts of the engine refuse, or read in another way than PostgreSQL, in literals, parameters and
//! columns.
//!
//! A text that is not of one of these forms is left to the engine, to read or to refuse.

/// The text with the seconds or the day that it lacks; `None` for texts of another form.
pub(crate) fn complete_time(text: &str) -> Option<String> {
    let trimmed = text.trim();
    if is_shape(trimmed, "0000-00") {
        return Some(format!("{trimmed}-01"));
    }
    // A zone may follow: Z, +02, +02:00.
    let (time, zone) = trimmed.split_at_checked("0000-00-00 00:00".len())?;
    let is_zone = zone.trim_start().is_empty() || zone.trim_start().starts_with(['Z', 'z', '+', '-']);
    (is_shape(time, "0000-00-00 00:00") && is_zone).then(|| format!("{time}:00{zone}"))
}

/// True for a text of digits, where the shape has zeros, and of the other characters of the shape. A blank may be a `T`.
fn is_shape(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            b' ' => matches!(byte, b' ' | b'T' | b't'),
            _ => byte == form,
        })
}

/// A local time or a day without the zone that is written after it: an offset or the name of a zone, which PostgreSQL ignores where
/// it reads a type without a zone. `None` for other texts.
pub(crate) fn without_zone(text: &str) -> Option<&str> {
    let text = text.trim();
    if let Some((day, _)) = day_and_zone(text) {
        return Some(day);
    }
    let clock = text.find(':')?;
    let end = clock + text[clock..].find(|next: char| !next.is_ascii_digit() && !matches!(next, ':' | '.'))?;
    let zone = text[end..].trim_start();
    let is_offset = zone.eq_ignore_ascii_case("z")
        || zone.strip_prefix(['+', '-']).is_some_and(|digits| {
            digits.starts_with(|first: char| first.is_ascii_digit())
                && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
        });
    (is_offset || zone.parse::<chrono_tz::Tz>().is_ok()).then(|| text[..end].trim_end())
}

/// The midnight with which a day begins in the zone that is written after it, as in `2027-01-01Z` and `2027-01-01 +2`, in a form that
/// the engine reads as an instant. `None` for other texts, and for offsets with seconds, which the engine cannot read.
pub(crate) fn midnight_of(text: &str) -> Option<String> {
    let (day, zone) = day_and_zone(text.trim())?;
    let zone = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => "+00:00".to_owned(),
        (sign @ ("+" | "-"), offset) => match offset_of(offset)? {
            [hours, minutes, 0] => format!("{sign}{hours:02}:{minutes:02}"),
            _ => return None,
        },
        _ => format!(" {zone}"),
    };
    Some(format!("{day} 00:00:00{zone}"))
}

/// A day and the zone that is written after it: an offset, or behind a blank the name of a zone. A negative offset is behind a blank as
/// well: without one, PostgreSQL refuses it. `None` for other texts.
fn day_and_zone(text: &str) -> Option<(&str, &str)> {
    let (day, rest) = text.split_at_checked("0000-00-00".len())?;
    let zone = rest.trim_start();
    let apart = zone.len() < rest.len();
    let is_zone = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => true,
        ("+", offset) => offset_of(offset).is_some(),
        ("-", offset) => apart && offset_of(offset).is_some(),
        _ => apart && zone.parse::<chrono_tz::Tz>().is_ok(),
    };
    (is_zone && is_shape(day, "0000-00-00")).then_some((day, zone))
}

/// Hours, minutes and seconds of an offset behind its sign, as PostgreSQL reads it: `2`, `02`, `0230`, `02:30`. `None` for other texts.
fn offset_of(offset: &str) -> Option<[u32; 3]> {
    let parts: Vec<&str> = offset.split(':').collect();
    let number = |part: &str| match part {
        "" => Some(0),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse::<u32>().ok(),
        _ => None,
    };
    let [hours, minutes, seconds] = match parts[..] {
        ["", ..] => return None,
        // Without a colon, the last two of more digits are minutes.
        [digits] if digits.len() > 2 => number(digits).map(|digits| [digits / 100, digits % 100, 0])?,
        [hours] => [number(hours)?, 0, 0],
        [hours, minutes] => [number(hours)?, number(minutes)?, 0],
        [hours, minutes, seconds] => [number(hours)?, number(minutes)?, number(seconds)?],
        _ => return None,
    };
    (hours <= 15 && minutes < 60 && seconds < 60).then_some([hours, minutes, seconds])
}

/// The text of an interval with a unit for its last number, which counts seconds; `None` if that has one, and for other texts.
pub(crate) fn interval_with_unit(text: &str) -> Option<String> {
    let last = text.rsplit(char::is_whitespace).next()?;
    let is_number = last.parse::<f64>().is_ok() && !last.contains(|letter: char| letter.is_ascii_alphabetic());
    is_number.then(|| format!("{text} seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    /// Expected is what PostgreSQL 15 reads, but for a zone directly behind the day, which is left to the engine.
    #[test]
    fn days_may_have_a_zone() {
        let cases = [
            ("2027-01-01Z", Some("2027-01-01 00:00:00+00:00")),
            (" 2027-01-01  z ", Some("2027-01-01 00:00:00+00:00")),
            ("2027-01-01+02", Some("2027-01-01 00:00:00+02:00")),
            ("2027-01-01 -05", Some("2027-01-01 00:00:00-05:00")),
            ("2027-01-01+02:30", Some("2027-01-01 00:00:00+02:30")),
            ("2027-01-01+0230", Some("2027-01-01 00:00:00+02:30")),
            ("2027-01-01 +020", Some("2027-01-01 00:00:00+00:20")),
            ("2027-01-01+2", Some("2027-01-01 00:00:00+02:00")),
            ("2027-01-01 +02:", Some("2027-01-01 00:00:00+02:00")),
            ("2027-01-01 +15:59", Some("2027-01-01 00:00:00+15:59")),
            ("2027-01-01 Europe/Berlin", Some("2027-01-01 00:00:00 Europe/Berlin")),
        ];
        each(cases, |(text, expected)| {
            assert_eq!(midnight_of(text).as_deref(), expected, "{text}");
            assert_eq!(without_zone(text), Some("2027-01-01"), "{text}");
        });
        assert_eq!(midnight_of("2027-01-01 +02:00:30"), None);
        assert_eq!(without_zone("2027-01-01 +02:00:30"), Some("2027-01-01"));
        let others = [
            "2027-01-01",
            "2027-01-01-05",
            "2027-01-01+",
            "2027-01-01 +:",
            "2027-01-01 +16",
            "2027-01-01 +02:60",
            "2027-01-01 +123456",
            "2027-01-01T",
            "2027-01-01TZ",
            "2027-01-01T+02",
            "2027-01-01 Nowhere/Land",
            "2027-01-01 12:00",
            "2027-01",
            "20é7-01-01Z",
        ];
        each(others, |text| {
            assert_eq!((midnight_of(text), without_zone(text)), (None, None), "{text}");
        });
    }

    #[test]
    fn what_is_missing_is_added() {
        let cases = [
            ("2026-11-24 10:30", Some("2026-11-24 10:30:00")),
            ("2026-11-24T10:30Z", Some("2026-11-24T10:30:00Z")),
            ("2026-11-24 10:30 +02:00", Some("2026-11-24 10:30:00 +02:00")),
            ("2026-11", Some("2026-11-01")),
            ("2026-11-24", None),
            ("2026-11-24 10:30:15", None),
            ("2026-11-24 10:30.5", None),
            ("2026-11-24 10:3x", None),
            ("2026-11-24 10:30 Europe/Berlin", None),
            ("20é6-11-24 10:30", None),
        ];
        each(cases, |(text, expected)| {
            assert_eq!(complete_time(text).as_deref(), expected, "{text}");
        });
    }

    #[test]
    fn numbers_without_a_unit_count_seconds() {
        let cases = [
            ("5", Some("5 seconds")),
            ("-1.5", Some("-1.5 seconds")),
            ("3 days 4", Some("3 days 4 seconds")),
            ("5 days", None),
            ("5days", None),
            ("04:05", None),
            ("1-2", None),
            ("1e3", None),
            ("inf", None),
            ("5 ", None),
            ("", None),
        ];
        each(cases, |(text, expected)| {
            assert_eq!(interval_with_unit(text).as_deref(), expected, "{text}");
        });
    }
}
