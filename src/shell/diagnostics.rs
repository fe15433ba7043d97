//! Where in a statement a mistake is, and what may have been meant.

use datafusion::common::config::ExtensionOptions;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;

use crate::config::SessionSettings;
use crate::error::{describe, nearest};

/// What went wrong, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// What, where and what to do, in one line.
    pub line: String,
    /// The line of the statement where it is, with a mark below.
    pub marked: Option<[String; 2]>,
}

impl Mistake {
    /// A mistake that is in no statement.
    pub(super) fn new(line: impl Into<String>) -> Self {
        Self { line: line.into(), marked: None }
    }

    /// What an error of the engine says of a text, with what may have been meant.
    pub(super) async fn of(error: &DataFusionError, text: &str, context: &SessionContext) -> Self {
        let mut line = describe(error);
        let place = place(error);
        if let Some((at, _)) = place
            && text.trim_end().contains('\n')
            && !line.contains(" Line: ")
        {
            line.push_str(&format!(" (line {at})"));
        }
        if let Some(meant) = meant(&line, context).await {
            line.push_str(&format!("; did you mean {meant}?"));
        }
        Self { line, marked: place.and_then(|(line, column)| marked(text, line, column)) }
    }
}

/// Line and column, both from 1.
fn place(error: &DataFusionError) -> Option<(usize, usize)> {
    let span = error.diagnostic().and_then(|diagnostic| diagnostic.span);
    if let Some(start) = span.map(|span| span.start) {
        return Some((usize::try_from(start.line).ok()?, usize::try_from(start.column).ok()?));
    }
    // The parser says it in words alone: `… at Line: 1, Column: 8`.
    let text = error.to_string();
    let (_, rest) = text.rsplit_once(" at Line: ")?;
    let (line, rest) = rest.split_once(", Column: ")?;
    let column: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((line.parse().ok()?, column.parse().ok()?))
}

/// The line of a text, with a mark below the column.
fn marked(text: &str, line: usize, column: usize) -> Option<[String; 2]> {
    /// Characters before the mark that are shown: the rest of a long line says little.
    const BEFORE: usize = 30;
    const SHOWN: usize = 70;
    let shown = text.lines().nth(line.checked_sub(1)?)?;
    let column = column.checked_sub(1)?.min(shown.chars().count());
    let from = if shown.chars().count() <= SHOWN { 0 } else { column.saturating_sub(BEFORE) };
    let part: String = shown.chars().skip(from).take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let before: String = part.chars().take(column - from).collect();
    let ahead = if from > 0 { "…" } else { "" };
    let behind = if from + SHOWN < shown.chars().count() { "…" } else { "" };
    let width = console::measure_text_width(&before) + ahead.chars().count();
    Some([format!("  {ahead}{part}{behind}"), format!("  {}^", " ".repeat(width))])
}

/// The table or setting that may have been meant by one that there is not. The engine says so itself of columns and functions, our
/// own errors of settings and zones.
async fn meant(line: &str, context: &SessionContext) -> Option<String> {
    if let Some(key) =
        between(line, "config namespace for key \"", "\"").or_else(|| between(line, "config namespace \"", "\""))
    {
        let full = format!("savedsearch.{key}");
        let known = SessionSettings::default().entries();
        let known = known.iter().map(|entry| entry.key.as_str()).find(|known| **known == full);
        return known.map(str::to_owned);
    }
    let name = between(line, "table '", "' not found").or_else(|| between(line, "No table named '", "'"))?;
    let name = name.rsplit('.').next()?;
    let known = super::completion::tables(context).await;
    nearest(name, known.iter().map(|(name, _)| name.as_str())).map(str::to_owned)
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(name, _)| name)
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
