//! Finds the times of mentions that are in a form that is not understood. As plain texts they would be compared by their letters.

use super::dialogue::Dialogue;
use super::shape::{Path, Type, at, each_once, pointer, said};
use super::vocabulary;
use crate::error::one_line;

impl Dialogue {
    /// Notes the fields with times of mentions that are in a form that is not understood.
    pub(super) fn tell_unread_times(&mut self) {
        let columns = self.found.columns.columns.iter();
        let unread: Vec<(Path, Vec<String>)> = columns
            .filter_map(|(name, path, kind)| Some((path.clone(), self.texts_of_time(name, path, *kind)?)))
            .collect();
        for (path, examples) in &unread {
            let text = format!(
                "the times at `{}` are in a form that is not understood, such as {}. They are texts, and conditions on them are \
                 refused; make the column a timestamp with a `pattern`, such as \"%d.%m.%Y %H:%M\", and set `time`",
                pointer(path),
                examples.join(", ")
            );
            self.found.could_not_tell("tables.mentions", text);
        }
        self.found.unread_times = unread.into_iter().map(|(path, _)| path).collect();
    }

    /// Examples of the values of a field that is no timestamp, if they are times; `None` if they are not.
    fn texts_of_time(&self, name: &str, path: &Path, kind: Type) -> Option<Vec<String>> {
        /// Values that are shown.
        const SHOWN: usize = 3;
        /// Columns whose values may look like times.
        const OTHERS: [&str; 6] = ["id", "url", "title", "text", "snippet", "author_name"];
        let values = self.samples.iter().filter_map(|row| said(at(row, path)?));
        let values = each_once(values.filter(|value| !vocabulary::NULLS.contains(&value.as_str())));
        let is_time = match kind {
            Type::Timestamp | Type::Boolean | Type::Utf8List => false,
            // The field that has the name of the time is that, whatever its values are.
            _ if name == "published_at" => true,
            Type::Utf8 => !OTHERS.contains(&name) && values.iter().all(|value| looks_like_time(value)),
            Type::Int64 | Type::Float64 => false,
        };
        let shown = || values.iter().take(SHOWN).map(|value| format!("`{}`", one_line(value))).collect();
        (is_time && !values.is_empty()).then(shown)
    }
}

/// True for a text that may be a day or a time: a year and two further numbers, or one and a name of a month, or two-digit numbers with a
/// time of day; few words beside them.
fn looks_like_time(text: &str) -> bool {
    /// Characters of a time.
    const LONGEST: usize = 48;
    /// Words beside its numbers: those of the day, of the month and of the zone.
    const WORDS: usize = 4;
    let numbers: Vec<&str> = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).collect();
    let words: Vec<&str> = text.split(|c: char| !c.is_alphabetic()).filter(|part| !part.is_empty()).collect();
    let is_year = |number: &&&str| number.len() == 4 && (number.starts_with("19") || number.starts_with("20"));
    let years = numbers.iter().filter(is_year).count();
    // A fraction of a second, or an offset, may have more digits.
    let long = numbers.iter().filter(|number| number.len() > 2).count();
    let is_dated = years > 0 && long <= years.min(1) + 1 && numbers.len() + words.len().min(1) >= 3;
    let is_short = long == 0 && numbers.len() >= 5 && text.contains(':');
    let is_count = text.starts_with("/Date(");
    text.len() <= LONGEST && words.len() <= WORDS && (is_dated || is_short || is_count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn texts_that_may_be_times_are_told_from_others() {
        let cases = [
            ("20/11/2026 10:00:00 +0000", true),
            ("20.11.2026 10:00 CET", true),
            ("Nov 20, 2026 10:00 AM", true),
            ("11/20/2026 10:00:00 AM", true),
            ("20-Nov-2026 10:00", true),
            ("2026年11月20日 10:00", true),
            ("20.11.2026", true),
            ("20 November 2026, 10:00", true),
            ("20 novembre 2026", true),
            ("2026-W47-5T10:00:00Z", true),
            ("/Date(1795168800000)/", true),
            ("20.11.26 10:00", true),
            ("2026/11/20 10:00:00.123456", true),
            ("en", false),
            ("x.com", false),
            ("2026", false),
            ("review of the year 2026 and of 2025 by us all", false),
            ("m9037", false),
            ("INV-2026-000123-000456", false),
            ("10:32", false),
        ];
        each(cases, |(text, is_time)| assert_eq!(looks_like_time(text), is_time, "{text}"));
    }
}
