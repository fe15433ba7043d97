//! Errors of statements as users see them: the place, a marked line, and a suggestion.

#[cfg(feature = "shell")]
use std::path::Path;

use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use unicode_width::UnicodeWidthStr;

use crate::error::describe;
use crate::session::suggestion::{as_written, place, suggestion, without_place};

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

    /// Message of an engine error about a statement, with a suggestion where a similar name exists. `tables` says what lists
    /// the tables.
    pub(crate) async fn of(error: &DataFusionError, text: &str, context: &SessionContext, tables: &str) -> Self {
        let place = place(error);
        let mut line = without_place(&describe(error)).to_owned();
        let row = place.map(|(row, _)| row).filter(|_| text.trim_end().contains('\n'));
        if let Some(row) = row {
            line.push_str(&format!(" (line {row})"));
        }
        if let Some(advice) = as_written(text, &line, place) {
            line.push_str(&format!("; {advice}"));
        } else if let Some(suggestion) = suggestion(&line, context, Some(tables)).await {
            line.push_str(&format!("; {suggestion}"));
        }
        Self { line, marked: place.and_then(|(line, column)| marked(text, line, column)), row }
    }

    /// The message with its place in a file, of whose lines the statement begins with number `first`.
    #[cfg(feature = "shell")]
    pub(crate) fn in_file(self, path: &Path, first: usize) -> Self {
        let row = self.row.unwrap_or(1);
        let message = self.line.replacen(&format!(" (line {row})"), "", 1);
        Self { line: format!("{}: line {}: {message}", path.display(), first + row - 1), row: None, ..self }
    }

    /// The message with its texts changed, such as redacted.
    #[cfg(feature = "shell")]
    pub(crate) fn map_text(self, change: impl Fn(String) -> String) -> Self {
        Self { line: change(self.line), marked: self.marked.map(|lines| lines.map(&change)), row: self.row }
    }
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
        assert_eq!(marked("SELECT 1", 1, 99).expect("a line")[1], "          ^", "at the end where it is behind it");
        assert_eq!(marked("SELECT 1", 2, 1), None);
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
