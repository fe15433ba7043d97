//! Rows as compact text: a line of names, then a line per row, with values separated by `|`.
//!
//! Values were written by third parties: characters that would break a line, or reorder what is read, are escaped or
//! replaced. A long value is cut, and counted; a table that would become too long ends with an error, never shorter.

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// Characters of a value that are shown.
pub(super) const SHOWN: usize = 500;

/// A table under construction.
#[derive(Debug)]
pub(super) struct TextTable {
    text: String,
    /// Maximum length of the text, in bytes: no row is added to a text that has it.
    longest: usize,
    rows: usize,
    cut: usize,
    /// Set for the result of EXPLAIN, whose lines are shown as they are.
    is_plan: bool,
}

/// Reason for which a row was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// The table has the largest number of rows.
    Rows,
    /// The table has the largest length.
    Length,
}

impl TextTable {
    /// Creates a table of at most `longest` bytes, its header included. `is_plan`: the rows are those of EXPLAIN.
    pub(super) fn new(schema: &Schema, longest: usize, is_plan: bool) -> Self {
        let mut table = Self { text: String::new(), longest, rows: 0, cut: 0, is_plan };
        if !is_plan {
            table.line(schema.fields().iter().map(|field| Some(field.name().as_str())));
        }
        table
    }

    /// Adds rows, up to `most` in all. Returns the reason for which a row was left out.
    ///
    /// # Errors
    /// Errors of formatting a value.
    pub(super) fn add(&mut self, batch: &RecordBatch, most: usize) -> Result<Option<Full>, ArrowError> {
        let options = FormatOptions::default().with_null(NULL);
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            if self.rows == most {
                return Ok(Some(Full::Rows));
            }
            let before = self.text.len();
            let values = columns.iter().map(|column| column.value(row).try_to_string());
            let values = values.collect::<Result<Vec<_>, _>>()?;
            if self.is_plan {
                values.iter().for_each(|value| self.plan(value));
            } else {
                let is_null = batch.columns().iter().map(|column| column.data_type().is_null() || column.is_null(row));
                self.line(values.iter().zip(is_null).map(|(value, is_null)| (!is_null).then_some(value.as_str())));
            }
            if self.text.len() > self.longest {
                self.text.truncate(before);
                return Ok(Some(Full::Length));
            }
            self.rows += 1;
        }
        Ok(None)
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Number of values that were cut.
    pub(super) fn cut(&self) -> usize {
        self.cut
    }

    /// Header and rows.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Header and the first `rows` rows.
    pub(super) fn first(&self, rows: usize) -> String {
        self.text.lines().take(rows + 1).map(|line| format!("{line}\n")).collect()
    }

    fn line<'v>(&mut self, values: impl Iterator<Item = Option<&'v str>>) {
        for (at, value) in values.enumerate() {
            if at > 0 {
                self.text.push('|');
            }
            // A text that looks like a missing value is escaped.
            if value == Some(NULL) {
                self.text.push('\\');
            }
            let value = value.unwrap_or(NULL);
            let mut characters = value.chars();
            characters.by_ref().take(SHOWN).for_each(|character| escape(character, &mut self.text));
            if characters.next().is_some() {
                self.text.push('…');
                self.cut += 1;
            }
        }
        self.text.push('\n');
    }

    fn plan(&mut self, value: &str) {
        for line in value.lines() {
            line.chars().for_each(|character| self.text.push(if is_marked(character) { REPLACED } else { character }));
            self.text.push('\n');
        }
    }
}

/// A table of known length.
///
/// # Errors
/// Errors of formatting a value.
pub(super) fn table(batch: &RecordBatch) -> Result<String, ArrowError> {
    let mut table = TextTable::new(&batch.schema(), usize::MAX, false);
    table.add(batch, usize::MAX)?;
    Ok(table.text)
}

/// A value that is missing.
const NULL: &str = "NULL";

const REPLACED: char = char::REPLACEMENT_CHARACTER;

/// One line of a text that may quote third parties: without its unusual characters, and cut like a value.
pub(super) fn quoted(text: &str, most: usize) -> String {
    let mut shown = String::new();
    let mut characters = text.chars();
    for character in characters.by_ref().take(most) {
        shown.push(match character {
            '\n' | '\r' | '\t' => ' ',
            other if is_marked(other) => REPLACED,
            other => other,
        });
    }
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

fn escape(character: char, text: &mut String) {
    match character {
        '\\' | '|' => text.extend(['\\', character]),
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        other if is_marked(other) => text.push(REPLACED),
        other => text.push(other),
    }
}

/// True for control characters, for those that change how their neighbours are read (marks of direction, line and paragraph
/// separators, Unicode Standard Annex 9), and for those that are not seen but read: spaces of no width, and tags. Joiners and
/// variation selectors are part of emoji and of scripts.
fn is_marked(character: char) -> bool {
    let invisible = ['\u{200b}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{2060}', '\u{061c}', '\u{feff}'];
    let hidden = ['\u{202a}'..='\u{202e}', '\u{2066}'..='\u{2069}', '\u{e0000}'..='\u{e007f}'];
    character.is_control() || invisible.contains(&character) || hidden.iter().any(|range| range.contains(&character))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn batch(texts: Vec<Option<&str>>) -> RecordBatch {
        let numbers: Vec<i64> = (1..).take(texts.len()).collect();
        let columns: [(&str, ArrayRef); 2] =
            [("n", Arc::new(Int64Array::from(numbers))), ("text", Arc::new(StringArray::from(texts)))];
        RecordBatch::try_from_iter(columns).expect("columns")
    }

    #[test]
    fn a_value_cannot_break_its_line() {
        let shown = table(&batch(vec![
            Some("a|b\\\n\tc\r"),
            None,
            Some("\u{202e}x\u{7}\u{2028}\u{e0041}"),
            Some(""),
            Some("NULL"),
        ]));
        let expected = "n|text\n1|a\\|b\\\\\\n\\tc\\r\n2|NULL\n3|\u{fffd}x\u{fffd}\u{fffd}\u{fffd}\n4|\n5|\\NULL\n";
        assert_eq!(shown.expect("text"), expected);
        assert_eq!(quoted("a\n\u{200b}b\u{e0041}cd", 5), "a \u{fffd}b\u{fffd}…");
    }

    #[test]
    fn a_long_value_is_cut_and_counted() {
        let long = "é".repeat(SHOWN + 1);
        let exact = "é".repeat(SHOWN);
        let batch = batch(vec![Some(&long), Some(&exact)]);
        let mut table = TextTable::new(&batch.schema(), usize::MAX, false);
        assert_eq!(table.add(&batch, 10).expect("text"), None);
        assert_eq!((table.rows(), table.cut()), (2, 1));
        assert_eq!(table.text(), format!("n|text\n1|{exact}…\n2|{exact}\n"));
    }

    #[test]
    fn a_table_ends_before_the_row_that_does_not_fit() {
        let batch = batch(vec![Some("one"), Some("two"), Some("three")]);
        let mut table = TextTable::new(&batch.schema(), usize::MAX, false);
        assert_eq!(table.add(&batch, 2).expect("text"), Some(Full::Rows));
        assert_eq!(table.text(), "n|text\n1|one\n2|two\n");
        assert_eq!(table.first(1), "n|text\n1|one\n");
        let mut table = TextTable::new(&batch.schema(), "n|text\n1|one\n2|tw".len(), false);
        assert_eq!(table.add(&batch, 3).expect("text"), Some(Full::Length));
        assert_eq!((table.text(), table.rows()), ("n|text\n1|one\n", 1));
    }
}
