//! Text tables: visible NULLs, right-aligned numbers, one line per row, and never wider than the terminal.
//!
//! The first rows decide the column widths, so that later rows can be printed as they arrive.

use std::io;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use comfy_table::{Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};
use console::{measure_text_width, truncate_str};
use unicode_width::UnicodeWidthChar;

/// Visible columns and their widths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// Positions of columns with their widths in characters, without padding.
    columns: Vec<(usize, usize)>,
    /// Number of columns that do not fit.
    pub(super) hidden: usize,
    markdown: bool,
    color: bool,
    purpose: Purpose,
    /// Wraps strings that do not fit instead of truncating them.
    wraps: bool,
    /// Draws borders with box characters instead of ASCII.
    boxes: bool,
}

/// Borders of box characters, in the order of `comfy_table`'s presets.
const BOXES: &str = "││──├─┼┤│    ┬┴┌┐└┘";
/// Minimum width of a string column.
const LEAST: usize = 9;
/// Maximum number of characters in a line of a value. Tables are not wider, and `comfy_table` breaks a line in a time that grows with
/// the square of its length.
const LONGEST: usize = 60_000;
/// Characters around a value: two spaces and a border.
const AROUND: usize = 3;

impl Layout {
    /// Layout as wide as its values, in Markdown or with borders.
    pub(super) fn whole(schema: &Schema, batches: &[RecordBatch], markdown: bool) -> io::Result<Self> {
        let purpose = Purpose::of(markdown);
        let widths = natural(schema, batches, purpose)?.into_iter().map(|width| width.min(LONGEST));
        Ok(Self {
            columns: widths.enumerate().collect(),
            hidden: 0,
            markdown,
            color: false,
            purpose,
            wraps: false,
            boxes: false,
        })
    }

    /// Layout of at most `width` characters: strings are truncated, and if that is not enough the last columns are hidden.
    pub(super) fn fitting(schema: &Schema, batches: &[RecordBatch], width: usize, color: bool) -> io::Result<Self> {
        let values = widths_of_values(schema, batches, Purpose::Terminal)?;
        let natural = with_names(schema, &values, Purpose::Terminal);
        // A truncated number or timestamp would be misleading; its header may be cut.
        let least = |((natural, values), field): ((&usize, &usize), &FieldRef)| match may_be_cut(field.data_type()) {
            true => *natural.min(&LEAST),
            false => *natural.min(values.max(&LEAST)),
        };
        let least: Vec<usize> = natural.iter().zip(&values).zip(schema.fields()).map(least).collect();
        let (mut shown, mut used) = (0, 1);
        for least in &least {
            if shown > 0 && used + least + AROUND > width {
                break;
            }
            used += least + AROUND;
            shown += 1;
        }
        // The remaining width is shared among the columns that are still truncated.
        let mut widths = least[..shown].to_vec();
        if let Some(first) = widths.first_mut() {
            // The first column is always shown.
            *first = (*first).min(width.saturating_sub(AROUND + 1)).max(1);
        }
        let mut left = width.saturating_sub(used);
        loop {
            let wanting: Vec<usize> = (0..shown).filter(|at| widths[*at] < natural[*at]).collect();
            let share = left.checked_div(wanting.len()).unwrap_or_default();
            if share == 0 {
                wanting.into_iter().take(left).for_each(|at| widths[at] += 1);
                break;
            }
            for at in wanting {
                let more = share.min(natural[at] - widths[at]);
                widths[at] += more;
                left -= more;
            }
        }
        let (columns, hidden) = (widths.into_iter().enumerate().collect(), natural.len() - shown);
        let purpose = Purpose::Terminal;
        Ok(Self { columns, hidden, markdown: false, color, purpose, wraps: false, boxes: false })
    }

    /// Sets wrapping of strings that do not fit.
    pub(super) fn wrapping(self, wraps: bool) -> Self {
        Self { wraps, ..self }
    }

    /// Sets borders of box characters.
    pub(super) fn boxed(self, boxes: bool) -> Self {
        Self { boxes, ..self }
    }

    /// Lines above the rows.
    pub(super) fn head(&self, schema: &Schema) -> Vec<String> {
        let mut lines = self.frame(schema);
        if !self.markdown {
            lines.pop();
        }
        lines
    }

    /// Lines of a table without rows.
    fn frame(&self, schema: &Schema) -> Vec<String> {
        let mut table = self.table();
        let name = |(at, width): &(usize, usize)| self.fitted(schema.field(*at).name(), *width);
        table.set_header(self.columns.iter().map(name).map(Cell::new));
        self.fix(&mut table, schema);
        table.lines().collect()
    }

    /// Lines of the rows. A number or timestamp wider than those before widens its column.
    pub(super) fn rows(&mut self, batch: &RecordBatch) -> io::Result<Vec<String>> {
        let schema = batch.schema();
        let (plan, purpose) = (!self.markdown && is_plan(&schema), self.purpose);
        for (at, width) in &mut self.columns {
            if !may_be_cut(schema.field(*at).data_type()) {
                *width = widest(batch.column(*at), plan, purpose)?.max(*width);
            }
        }
        let mut table = self.table();
        let options = FormatOptions::default();
        let columns = self.columns.iter().map(|(at, _)| ArrayFormatter::try_new(batch.column(*at).as_ref(), &options));
        let columns: Vec<_> = columns.collect::<Result<_, _>>().map_err(io::Error::other)?;
        let nulls: Vec<_> = self.columns.iter().map(|(at, _)| batch.column(*at).logical_nulls()).collect();
        for row in 0..batch.num_rows() {
            let cells = self.columns.iter().zip(&columns).zip(&nulls).map(|(((_, width), values), nulls)| {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    let null = Cell::new("NULL");
                    return if self.color { null.add_attribute(Attribute::Dim) } else { null };
                }
                let text = values.value(row).to_string();
                Cell::new(match plan {
                    true => text
                        .lines()
                        .flat_map(|line| indented(&purpose.shown(line), *width))
                        .collect::<Vec<_>>()
                        .join("\n"),
                    false => self.fitted(&text, *width),
                })
            });
            table.add_row(cells.collect::<Vec<_>>());
        }
        self.fix(&mut table, &schema);
        let lines: Vec<String> = table.lines().collect();
        let borders = if self.markdown { 0 } else { 1 };
        Ok(lines[borders.min(lines.len())..lines.len().saturating_sub(borders)].to_vec())
    }

    /// Line below the rows; none in Markdown.
    pub(super) fn foot(&self, schema: &Schema) -> Vec<String> {
        if self.markdown { Vec::new() } else { self.frame(schema).pop().into_iter().collect() }
    }

    /// Cleans a value, and truncates it to the width of its column.
    fn fitted(&self, text: &str, width: usize) -> String {
        let text = self.purpose.shown(text);
        if self.purpose != Purpose::Terminal || self.wraps {
            broken(text)
        } else {
            truncate_str(&text, width, "…").into_owned()
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(match (self.markdown, self.boxes) {
            (true, _) => presets::ASCII_MARKDOWN,
            (false, true) => BOXES,
            (false, false) => presets::ASCII_FULL_CONDENSED,
        });
        table.set_content_arrangement(ContentArrangement::Dynamic);
        if self.color {
            table.enforce_styling()
        } else {
            table.force_no_tty()
        };
        let total = self.columns.iter().map(|(_, width)| width + AROUND).sum::<usize>() + 1;
        table.set_width(u16::try_from(total).unwrap_or(u16::MAX));
        table
    }

    /// Sets width and alignment of the columns, which exist once a row does.
    fn fix(&self, table: &mut Table, schema: &Schema) {
        for ((at, width), column) in self.columns.iter().zip(table.column_iter_mut()) {
            let width = u16::try_from(width + 2).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
            if schema.field(*at).data_type().is_numeric() {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
}

/// A value in lines of at most [`LONGEST`] characters.
fn broken(text: String) -> String {
    if text.len() <= LONGEST {
        return text;
    }
    let (mut lines, mut length) = (String::with_capacity(text.len() + text.len() / LONGEST), 0);
    for c in text.chars() {
        let width = c.width().unwrap_or_default();
        if length + width > LONGEST {
            lines.push('\n');
            length = 0;
        }
        lines.push(c);
        length += width;
    }
    lines
}

/// A line of a plan in lines of at most `width` characters, which keep its indentation.
fn indented(line: &str, width: usize) -> Vec<String> {
    if measure_text_width(line) <= width {
        return vec![line.to_owned()];
    }
    let text = line.trim_start();
    // A deep plan on a narrow terminal keeps half of the width for its text.
    let indent = " ".repeat((line.len() - text.len()).min(width / 2));
    let further = format!("{indent}    ");
    let further = if further.len() > width / 2 { &indent } else { &further };
    let options = textwrap::Options::new(width).initial_indent(&indent).subsequent_indent(further);
    textwrap::wrap(text, options).into_iter().map(|line| line.into_owned()).collect()
}

/// Lines of rows in expanded display: one column per line.
pub(super) fn expanded(batch: &RecordBatch, begun: usize, width: usize) -> io::Result<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let (schema, purpose) = (batch.schema(), Purpose::Terminal);
    let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
    let columns: Vec<_> = columns.collect::<Result<_, _>>().map_err(io::Error::other)?;
    let names: Vec<String> = schema.fields().iter().map(|field| purpose.shown(field.name())).collect();
    let widest = names.iter().map(|name| measure_text_width(name)).max().unwrap_or_default().min((width / 3).max(8));
    let cut = |name: &String| {
        let name = truncate_str(name, widest, "…");
        console::pad_str(&name, widest, console::Alignment::Left, None).into_owned()
    };
    let names: Vec<String> = names.iter().map(cut).collect();
    let mut lines = Vec::new();
    for row in 0..batch.num_rows() {
        lines.push(format!("─[ row {} ]{}", begun + row + 1, "─".repeat(widest)));
        for (name, values) in names.iter().zip(&columns) {
            lines.push(format!("{name} │ {}", purpose.shown(&values.value(row).to_string())));
        }
    }
    Ok(lines)
}

/// Medium of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Terminal,
    Text,
    Markdown,
}

impl Purpose {
    fn of(markdown: bool) -> Self {
        if markdown { Self::Markdown } else { Self::Text }
    }

    /// Cleans a value for this medium.
    fn shown(self, text: &str) -> String {
        let text = plain(text, self == Self::Markdown);
        if self == Self::Terminal { tamed(&text) } else { text }
    }
}

/// Widths of columns without a limit.
fn natural(schema: &Schema, batches: &[RecordBatch], purpose: Purpose) -> io::Result<Vec<usize>> {
    Ok(with_names(schema, &widths_of_values(schema, batches, purpose)?, purpose))
}

/// Widths of columns that have room for their names.
fn with_names(schema: &Schema, values: &[usize], purpose: Purpose) -> Vec<usize> {
    let name = |field: &FieldRef| measure_text_width(&purpose.shown(field.name())).max(1);
    schema.fields().iter().zip(values).map(|(field, width)| name(field).max(*width)).collect()
}

/// Widths of the widest values.
fn widths_of_values(schema: &Schema, batches: &[RecordBatch], purpose: Purpose) -> io::Result<Vec<usize>> {
    let mut widths = vec![1; schema.fields().len()];
    let plan = is_plan(schema);
    for batch in batches {
        for (column, width) in batch.columns().iter().zip(&mut widths) {
            *width = widest(column, plan, purpose)?.max(*width);
        }
    }
    Ok(widths)
}

/// Width of the widest value.
fn widest(column: &ArrayRef, plan: bool, purpose: Purpose) -> io::Result<usize> {
    let options = FormatOptions::default().with_null("NULL");
    let values = ArrayFormatter::try_new(column.as_ref(), &options).map_err(io::Error::other)?;
    let width = |row| {
        let text = values.value(row).to_string();
        match plan {
            true => text.lines().map(|line| measure_text_width(&purpose.shown(line))).max().unwrap_or_default(),
            false => measure_text_width(&purpose.shown(&text)),
        }
    };
    Ok((0..column.len()).map(width).max().unwrap_or_default())
}

/// True for the result of EXPLAIN. The lines of a plan are its structure; other values are kept on one line.
fn is_plan(schema: &Schema) -> bool {
    schema.fields().last().is_some_and(|field| field.name() == "plan")
}

/// True if a truncated value is still useful.
fn may_be_cut(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Binary) || kind.is_nested()
}

/// Returns a value on one line, without control characters.
fn plain(text: &str, markdown: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            '|' if markdown => shown.push_str("\\|"),
            c if c.is_control() => shown.push('\u{fffd}'),
            c => shown.push(c),
        }
    }
    shown
}

/// Removes characters whose width depends on the terminal: joiners and modifiers of emojis, marks that change the writing
/// direction, and ligatures.
fn tamed(text: &str) -> String {
    const LAM: char = '\u{644}';
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' => {}
            '\u{fe0e}' | '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}' => {}
            '\u{622}' | '\u{623}' | '\u{625}' | '\u{627}' if shown.ends_with(LAM) => shown.extend(['\u{200c}', c]),
            c => shown.push(c),
        }
    }
    shown
}

/// Lines of a complete result.
pub(super) fn whole(schema: &SchemaRef, batches: &[RecordBatch], markdown: bool) -> io::Result<Vec<String>> {
    let mut layout = Layout::whole(schema, batches, markdown)?;
    let mut lines = layout.head(schema);
    for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
        lines.extend(layout.rows(batch)?);
    }
    lines.extend(layout.foot(schema));
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn batch(texts: &[Option<&str>]) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..texts.len()).map(|row| row as i64 * 100)));
        let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        RecordBatch::try_from_iter([("n", numbers), ("text", texts)]).expect("a batch")
    }

    #[test]
    fn a_table_is_as_wide_as_its_texts_if_nothing_bounds_it() {
        let batch = batch(&[Some("one\ntwo"), None]);
        let lines = whole(&batch.schema(), &[batch.slice(0, 1), batch.slice(1, 1)], false).expect("lines");
        assert_eq!(
            lines,
            [
                "+-----+----------+",
                "|   n | text     |",
                "+================+",
                "|   0 | one\\ntwo |",
                "| 100 | NULL     |",
                "+-----+----------+"
            ]
        );
    }

    #[test]
    fn a_value_that_no_table_is_wide_enough_for_has_several_lines() {
        let long = "日 ".repeat(LONGEST);
        let batch = batch(&[Some(&long)]);
        let lines = whole(&batch.schema(), std::slice::from_ref(&batch), false).expect("lines");
        let text: String = lines[3..lines.len() - 1].iter().filter_map(|line| line.rsplit('|').nth(1)).collect();
        assert_eq!((lines.len(), text.replace(' ', "")), (3 + 3 + 1, long.replace(' ', "")));
    }

    #[test]
    fn a_table_is_never_wider_than_the_terminal_whatever_is_in_it() {
        let wide =
            ["日本語のとても長いテキストです", "نص عربي طويل جدا للاختبار هنا", "👩‍👩‍👧 family and some more words", "x"]
                .map(Some);
        let batch = batch(&wide);
        for width in [14, 20, 40, 80] {
            let mut layout =
                Layout::fitting(&batch.schema(), std::slice::from_ref(&batch), width, false).expect("a layout");
            let lines = [layout.head(&batch.schema()), layout.rows(&batch).expect("rows")].concat();
            for line in &lines {
                assert!(measure_text_width(line) <= width, "{width}: {line}");
            }
            // Borders stand below each other.
            let ends: Vec<usize> = lines.iter().map(|line| measure_text_width(line)).collect();
            assert!(ends.iter().all(|end| *end == ends[0]), "{lines:#?}");
        }
    }

    #[test]
    fn widths_are_those_that_terminals_agree_on() {
        // Character by character, as terminals count.
        let counted = |text: &str| text.chars().map(|c| measure_text_width(&c.to_string())).sum::<usize>();
        for text in ["👩‍👩‍👧 ❤️ 👍🏽", "طويل للاختبار الأول", "a\u{202e}b", "日本語 é e\u{301}"]
        {
            let tamed = tamed(text);
            assert_eq!(measure_text_width(&tamed), counted(&tamed), "{text}");
        }
    }

    #[test]
    fn borders_are_boxes_if_the_terminal_has_them() {
        let batch = batch(&[Some("one"), None]);
        let layout = Layout::fitting(&batch.schema(), std::slice::from_ref(&batch), 40, false).expect("a layout");
        let mut layout = layout.boxed(true);
        let lines = [layout.head(&batch.schema()), layout.rows(&batch).expect("rows"), layout.foot(&batch.schema())];
        assert_eq!(
            lines.concat(),
            [
                "┌─────┬──────┐",
                "│   n │ text │",
                "├─────┼──────┤",
                "│   0 │ one  │",
                "│ 100 │ NULL │",
                "└─────┴──────┘"
            ]
        );
    }

    #[test]
    fn a_wider_number_later_on_widens_its_column() {
        let batch = batch(&[Some("a"), Some("b"), None]);
        let mut layout = Layout::fitting(&batch.schema(), &[batch.slice(0, 1)], 40, false).expect("a layout");
        assert_eq!(layout.rows(&batch.slice(0, 1)).expect("a row"), ["| 0 | a    |"]);
        assert_eq!(layout.rows(&batch.slice(2, 1)).expect("a row"), ["| 200 | NULL |"]);
    }

    #[test]
    fn null_is_visible_whatever_its_type() {
        let untyped: ArrayRef = Arc::new(arrow::array::NullArray::new(1));
        let batch = RecordBatch::try_from_iter_with_nullable([("n", untyped, true)]).expect("a batch");
        let lines = whole(&batch.schema(), &[batch], false).expect("lines");
        assert_eq!(lines[3], "| NULL |");
    }

    #[test]
    fn a_bar_in_a_text_is_no_column_of_markdown() {
        let batch = batch(&[Some("a|b")]);
        let lines = whole(&batch.schema(), &[batch], true).expect("lines");
        assert_eq!(lines, ["| n | text |", "|---|------|", "| 0 | a\\|b |"]);
    }

    #[test]
    fn nothing_that_moves_a_cursor_gets_through() {
        let evil = "a\u{1b}[31m\u{9b}b\u{202e}\u{2028}c";
        let columns: [(&str, ArrayRef); 2] = [
            (evil, Arc::new(StringArray::from(vec![evil]))),
            ("plan", Arc::new(StringArray::from(vec![format!("{evil}\n  {evil}")]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let mut layout = Layout::fitting(&batch.schema(), std::slice::from_ref(&batch), 80, false).expect("a layout");
        let table = [layout.head(&batch.schema()), layout.rows(&batch).expect("rows")].concat();
        for line in table.iter().chain(&expanded(&batch, 0, 80).expect("lines")) {
            assert!(!line.contains(|c: char| c.is_control() || matches!(c, '\u{202e}' | '\u{2028}')), "{line:?}");
        }
    }

    #[test]
    fn a_wide_header_hides_no_narrow_number() {
        let header = "count(*) FILTER (WHERE sentiment = 'negative')";
        let columns: Vec<(String, ArrayRef)> =
            (0..3).map(|at| (format!("{header} {at}"), Arc::new(Int64Array::from(vec![at])) as ArrayRef)).collect();
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let layout = Layout::fitting(&batch.schema(), std::slice::from_ref(&batch), 60, false).expect("a layout");
        assert_eq!(layout.hidden, 0);
        assert_eq!(layout.head(&batch.schema())[1], "| count(*) FILTER … | count(*) FILTER … | count(*) FILTER… |");
    }

    #[test]
    fn columns_without_room_are_left_out_and_counted() {
        let columns: Vec<(String, ArrayRef)> =
            (0..9).map(|at| (format!("column_{at}"), Arc::new(Int64Array::from(vec![at])) as ArrayRef)).collect();
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let layout = Layout::fitting(&batch.schema(), std::slice::from_ref(&batch), 40, false).expect("a layout");
        assert_eq!(layout.hidden, 6);
        assert!(layout.head(&batch.schema())[1].contains("column_2"));
    }
}
