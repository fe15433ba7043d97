//! Texts of times in forms that the casts of the engine refuse, or read in another way than PostgreSQL, in literals, parameters and
//! columns.

/// The text with the seconds or the day that it lacks; `None` for texts of another form.
pub(crate) fn complete_time(text: &str) -> Option<String> {
    let trimmed = text.trim();
    let is_shape = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text.bytes().zip(shape.bytes()).all(|(byte, form)| match form {
                b'0' => byte.is_ascii_digit(),
                b' ' => matches!(byte, b' ' | b'T' | b't'),
                _ => byte == form,
            })
    };
    if is_shape(trimmed, "0000-00") {
        return Some(format!("{trimmed}-01"));
    }
    // A zone may follow: Z, +02, +02:00.
    let (time, zone) = trimmed.split_at_checked("0000-00-00 00:00".len())?;
    let is_zone = zone.trim_start().is_empty() || zone.trim_start().starts_with(['Z', 'z', '+', '-']);
    (is_shape(time, "0000-00-00 00:00") && is_zone).then(|| format!("{time}:00{zone}"))
}

/// A local time without the zone that is written after it: an offset or the name of a zone, which PostgreSQL ignores where it reads
/// a type without a zone. `None` for other texts.
pub(crate) fn without_zone(text: &str) -> Option<&str> {
    let text = text.trim();
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

/// The text of an interval with a unit for its last number, which counts seconds; `None` if that has one, and for other texts.
pub(crate) fn interval_with_unit(text: &str) -> Option<String> {
    let last = text.rsplit(char::is_whitespace).next()?;
    let is_number = last.parse::<f64>().is_ok() && !last.contains(|letter: char| letter.is_ascii_alphabetic());
    is_number.then(|| format!("{text} seconds"))
}

#[cfg(test)]
mod tests {
    use super::{complete_time, interval_with_unit};
    use crate::cases::each;

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
