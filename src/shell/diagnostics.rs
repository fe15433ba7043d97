//! Errors of statements for people: the place, a marked line, and a suggestion.

use std::path::Path;

use datafusion::common::config::ExtensionOptions;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;

use crate::config::SessionSettings;
use crate::error::{between, describe, nearest, nearest_name};

/// An error message for people.
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
    /// Advice that names the shell's command for the list of tables.
    pub(super) const TABLES: &str = "\\d lists the tables";

    /// A message without a place in a statement.
    pub(super) fn new(line: impl Into<String>) -> Self {
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
        if let Some(foreign) = foreign(text) {
            // A character of a word processor explains whatever the parser says.
            line.push_str(&format!("; {foreign}"));
        } else if let Some(suggestion) = suggestion(&line, context, tables).await {
            line.push_str(&format!("; {suggestion}"));
        }
        Self { line, marked: place.and_then(|(line, column)| marked(text, line, column)), row }
    }

    /// The message with its place in a file, of whose lines the statement begins with number `first`.
    pub(super) fn in_file(self, path: &Path, first: usize) -> Self {
        let row = self.row.unwrap_or(1);
        let message = self.line.replacen(&format!(" (line {row})"), "", 1);
        Self { line: format!("{}: line {}: {message}", path.display(), first + row - 1), row: None, ..self }
    }

    /// The message with its texts changed, such as redacted.
    pub(super) fn map_text(self, change: impl Fn(String) -> String) -> Self {
        Self { line: change(self.line), marked: self.marked.map(|lines| lines.map(&change)), row: self.row }
    }
}

/// 1-based line and column of an error.
fn place(error: &DataFusionError) -> Option<(usize, usize)> {
    let span = error.diagnostic().and_then(|diagnostic| diagnostic.span);
    if let Some(start) = span.map(|span| span.start) {
        return Some((usize::try_from(start.line).ok()?, usize::try_from(start.column).ok()?));
    }
    // The parser reports its place in the message only: `… at Line: 1, Column: 8`.
    let text = error.to_string();
    let (_, rest) = text.rsplit_once(PLACE)?;
    let (line, rest) = rest.split_once(", Column: ")?;
    let column: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((line.parse().ok()?, column.parse().ok()?))
}

const PLACE: &str = " at Line: ";

/// The parser's message without its place, which the marked line shows.
fn without_place(message: &str) -> &str {
    message.rsplit_once(PLACE).map_or(message, |(message, _)| message)
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
    let width = console::measure_text_width(&before) + ahead.chars().count();
    Some([format!("  {ahead}{part}{behind}"), format!("  {}^", " ".repeat(width))])
}

/// Advice on the first character outside quotes that text editors put in the place of one of SQL.
fn foreign(text: &str) -> Option<String> {
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '\'' | '"') => quote = Some(c),
            None => {
                let (name, meant) = match c {
                    '‘' | '’' | '‚' | '‛' | '´' | '“' | '”' | '„' | '«' | '»' => {
                        ("a typographic quote", "'")
                    }
                    '–' | '—' | '−' => ("a dash", "-"),
                    '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{200b}' | '\u{feff}' => ("an invisible space", "a space"),
                    _ => continue,
                };
                let shown = if meant == "a space" { String::new() } else { format!(" {c}") };
                return Some(format!("the statement has {name}{shown}; write {meant}"));
            }
        }
    }
    None
}

/// Advice for an unknown table, setting or function. The engine itself suggests columns, and our own errors settings and zones.
async fn suggestion(line: &str, context: &SessionContext, tables: &str) -> Option<String> {
    let did_you_mean = |name: &str| format!("did you mean {name}?");
    if let Some(key) =
        between(line, "config namespace for key \"", "\"").or_else(|| between(line, "config namespace \"", "\""))
    {
        let full = format!("savedsearch.{key}");
        let known = SessionSettings::default().entries();
        let known = known.iter().map(|entry| entry.key.as_str()).find(|known| **known == full);
        return known.map(did_you_mean);
    }
    if let Some(name) = between(line, "unknown function `", "`") {
        let state = context.state();
        let known = state.scalar_functions().keys().chain(state.aggregate_functions().keys());
        let known: Vec<&str> = known.chain(state.window_functions().keys()).map(String::as_str).collect();
        // Of several names that are equally near, one of the same letters is meant: `coutn` is `count`, not `cot`.
        let letters = |name: &str| {
            let mut letters: Vec<char> = name.to_lowercase().chars().collect();
            letters.sort_unstable();
            letters
        };
        let same = known.iter().find(|known| letters(known) == letters(name)).copied();
        return same.or_else(|| nearest(name, known)).map(did_you_mean);
    }
    let name = between(line, "unknown table `", "`")?;
    let name = name.rsplit('.').next()?;
    let known = super::completion::tables(context).await;
    let known: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    match nearest_name(name, &known) {
        Some(near) => Some(did_you_mean(near)),
        None => Some(tables.to_owned()),
    }
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
    fn characters_of_word_processors_are_named() {
        for (text, told) in [
            ("SELECT 1 WHERE a = ‘x’", "the statement has a typographic quote ‘; write '"),
            ("SELECT “a” FROM t", "the statement has a typographic quote “; write '"),
            ("SELECT 2 – 1", "the statement has a dash –; write -"),
            ("SELECT\u{a0}1", "the statement has an invisible space; write a space"),
        ] {
            assert_eq!(foreign(text).as_deref(), Some(told));
        }
        for text in ["SELECT 'it’s', \"„\" FROM t", "SELECT 'a''b’'", "SELECT 1"] {
            assert_eq!(foreign(text), None, "{text}");
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
