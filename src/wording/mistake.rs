//! Errors of statements as users see them: the place, a marked line, and a suggestion.

#[cfg(feature = "shell")]
use std::path::Path;

use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use unicode_width::UnicodeWidthStr;

use crate::error::{describe, shortened};
use crate::session::is_unterminated;
use crate::session::suggestion::{as_written, of_value, place, suggestion, without_place};
use crate::session::value_place::place_of_value;

/// An error message as users see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Problem, place and advice in one line.
    pub line: String,
    /// The offending line of the statement, and a line that marks the column.
    pub marked: Option<[String; 2]>,
    /// 1-based line within the statement, if the message names it.
    row: Option<usize>,
}

impl Mistake {
    /// A message without a place in a statement.
    #[cfg(feature = "shell")]
    pub(crate) fn new(line: impl Into<String>) -> Self {
        Self { line: line.into(), marked: None, row: None }
    }

    /// Message of an engine error about a statement, with a suggestion if a similar name exists. `tables` says what lists
    /// the tables.
    pub(crate) async fn of(error: &DataFusionError, text: &str, context: &SessionContext, tables: &str) -> Self {
        let mut line = without_place(&describe(error)).to_owned();
        let place = place(error).or_else(|| place_of_value(&line, text));
        if let Some(of_value) = of_value(&line, text) {
            line = of_value;
        }
        let row = place.map(|(row, _)| row).filter(|_| text.trim_end().contains('\n'));
        // The end of the text, at which a reader would look for it, is not the place.
        let column = place.map(|(_, column)| column).filter(|_| is_unterminated(&line));
        match (row, column) {
            (Some(row), Some(column)) => line.push_str(&format!(" (line {row}, column {column})")),
            (Some(row), None) => line.push_str(&format!(" (line {row})")),
            (None, Some(column)) => line.push_str(&format!(" (column {column})")),
            (None, None) => {}
        }
        if is_unterminated(&line) && has_apostrophe(text) {
            line.push_str("; double a quote within a text, as in 'it''s'");
        } else if let Some(advice) = as_written(text, &line, place) {
            line.push_str(&format!("; {advice}"));
        } else if let Some(suggestion) = suggestion(&line, context, Some(tables)).await {
            line.push_str(&format!("; {suggestion}"));
        }
        Self { line: shortened(line), marked: place.and_then(|(line, column)| marked(text, line, column)), row }
    }

    /// The message with its place in a file, of whose lines the statement begins with number `first`.
    #[cfg(feature = "shell")]
    pub(crate) fn in_file(self, path: &Path, first: usize) -> Self {
        let row = self.row.unwrap_or(1);
        let message = self.line.replacen(&format!(" (line {row})"), "", 1);
        let message = message.replacen(&format!(" (line {row}, column "), " (column ", 1);
        Self { line: format!("{}: line {}: {message}", path.display(), first + row - 1), row: None, ..self }
    }

    /// The message with its texts changed, such as redacted.
    #[cfg(feature = "shell")]
    pub(crate) fn map_text(self, change: impl Fn(String) -> String) -> Self {
        Self { line: change(self.line), marked: self.marked.map(|lines| lines.map(&change)), row: self.row }
    }
}

/// Keywords that a text may follow or precede without a space, as in `LIKE'x'AND`.
const BESIDE_TEXTS: [&str; 24] = [
    "SELECT",
    "WHERE",
    "AND",
    "OR",
    "NOT",
    "IS",
    "IN",
    "LIKE",
    "ILIKE",
    "TO",
    "ESCAPE",
    "BETWEEN",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "FROM",
    "AS",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "INTERVAL",
    "ZONE",
];

/// True if a quote stands between letters, as in `it's`, but not beside a keyword. A letter before it that stands alone begins a
/// literal, such as `N'x'`.
fn has_apostrophe(text: &str) -> bool {
    let is_keyword = |word: &str| BESIDE_TEXTS.iter().any(|keyword| keyword.eq_ignore_ascii_case(word));
    let is_end = |c: char| !c.is_alphanumeric() && c != '_';
    text.match_indices('\'').any(|(at, quote)| {
        let (before, behind) = (&text[..at], &text[at + quote.len()..]);
        let words = [before.rsplit(is_end).next(), behind.split(is_end).next()];
        let mut letters = before.chars().rev();
        letters.next().is_some_and(char::is_alphabetic)
            && behind.starts_with(char::is_alphabetic)
            && letters.next().is_some_and(|letter| letter.is_alphanumeric() || letter == '\'')
            && !words.into_iter().flatten().any(is_keyword)
    })
}

/// Returns a line of a text, and a line with a mark below a column.
fn marked(text: &str, line: usize, column: usize) -> Option<[String; 2]> {
    /// Characters shown before the mark in a long line.
    const BEFORE: usize = 30;
    const SHOWN: usize = 70;
    let shown = text.lines().nth(line.checked_sub(1)?)?;
    let column = column.checked_sub(1)?.min(shown.chars().count());
    let from = if shown.chars().count() <= SHOWN { 0 } else { column.saturating_sub(BEFORE) };
    let part: String = shown.chars().skip(from).take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let before: String = part.chars().take(column - from).collect();
    let ahead = if from > 0 { "…" } else { "" };
    let behind = if from + SHOWN < shown.chars().count() { "…" } else { "" };
    let width = before.width() + ahead.chars().count();
    Some([format!("  {ahead}{part}{behind}"), format!("  {}^", " ".repeat(width))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stands_below_the_place() {
        let error = DataFusionError::Plan("expected: x, found: y at Line: 2, Column: 9".to_owned());
        let (line, column) = place(&error).expect("a place");
        let shown = marked("SELECT a\nFROM 日本 WHERE", line, column).expect("a line");
        assert_eq!(shown, ["  FROM 日本 WHERE", "            ^"]);
        assert_eq!(marked("SELECT 1", 1, 99).expect("a line")[1], "          ^", "at the end if it is behind it");
        assert_eq!(marked("SELECT 1", 2, 1), None);
    }

    #[cfg(feature = "shell")]
    #[tokio::test]
    async fn what_does_not_end_is_named_by_its_begin() {
        let context = SessionContext::new();
        for (sql, place) in [
            ("SELECT 'x", "(column 8)"),
            ("SELECT \"x", "(column 8)"),
            ("SELECT /* x", "(column 8)"),
            ("'x", "(column 1)"),
            ("SELECT 1,\n 2, 'x\ny", "(line 2, column 5)"),
            ("SELECT 1,\n $$x\ny", "(line 2, column 2)"),
            ("SELECT 1,\n $t$x\ny", "(line 2, column 2)"),
            ("SELECT 1,\n /* x\ny", "(line 2, column 2)"),
        ] {
            let error = crate::session::parse_statements(sql).expect_err(sql);
            let mistake = Mistake::of(&error, sql, &context, "list the tables").await;
            assert!(mistake.line.ends_with(place), "{sql}: {}", mistake.line);
        }
    }

    #[tokio::test]
    async fn an_apostrophe_that_ends_a_text_is_named() {
        let context = SessionContext::new();
        let advice = "; double a quote within a text, as in 'it''s'";
        for (sql, advised) in [
            ("SELECT 'it's'", true),
            ("SELECT 'I'm here' WHERE x = 'de'", true),
            ("SELECT 'it''s', 'x", false),
            ("SELECT N'x', 'y", false),
            ("SELECT 1 WHERE title LIKE'abc", false),
            ("SELECT 1 WHERE title LIKE'abc' AND language='en", false),
            ("SELECT 1 WHERE title = 'abc'AND language = 'en", false),
            ("SELECT 'x", false),
        ] {
            let error = crate::session::parse_statements(sql).expect_err(sql);
            let line = Mistake::of(&error, sql, &context, "list the tables").await.line;
            assert_eq!(line.ends_with(advice), advised, "{sql}: {line}");
        }
    }

    #[cfg(feature = "shell")]
    #[tokio::test]
    async fn what_does_not_end_has_its_line_in_a_file() {
        let (context, sql) = (SessionContext::new(), "SELECT 1,\n 'x\ny");
        let error = crate::session::parse_statements(sql).expect_err(sql);
        let mistake = Mistake::of(&error, sql, &context, "list the tables").await;
        let line = mistake.in_file(Path::new("a.sql"), 5).line;
        assert_eq!(line, "a.sql: line 6: syntax error: Unterminated string literal (column 2)");
    }

    #[tokio::test]
    async fn a_message_repeats_only_a_part_of_a_long_statement() {
        let context = SessionContext::new();
        for sql in [
            format!("SELECT '{}'::date", "x".repeat(300_000)),
            format!("SELECT 1 1{}", "2".repeat(300_000)),
            format!("SELECT 1 FROM ({})", "x".repeat(300_000)),
        ] {
            let error = match context.sql(&sql).await {
                Ok(frame) => frame.collect().await.expect_err("an invalid statement"),
                Err(error) => error,
            };
            let Mistake { line, .. } = Mistake::of(&error, &sql, &context, "list the tables").await;
            assert!(line.chars().count() <= 1_000, "{line}");
        }
    }

    #[test]
    fn a_long_line_is_shown_around_the_place() {
        let text = format!("SELECT {} titel FROM mentions", "a, ".repeat(100));
        let [line, mark] = marked(&text, 1, 309).expect("a line");
        let at = mark.chars().position(|c| c == '^').expect("a mark");
        assert!(line.chars().skip(at).collect::<String>().starts_with("titel"), "{line}\n{mark}");
        assert!(line.chars().count() < 80, "{line}");
    }
}
