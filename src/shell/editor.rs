//! The line editor: statements of several lines, colours, completion, and a history that lasts.

use std::borrow::Cow;
use std::path::PathBuf;
use std::str::Chars;

use console::style;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Behavior, ColorMode, CompletionType, Config, Context, Editor, Helper};

use super::commands::{COMMANDS, Command};
use super::output::Format;
use super::words::{KEYWORDS, Words};
use crate::config::state_folder;

/// Statements that are remembered.
const REMEMBERED: usize = 5_000;

/// The editor, with what it knows.
pub(super) struct Typist {
    editor: Editor<Known, FileHistory>,
    history: Option<PathBuf>,
}

/// What the editor knows while somebody types.
pub(super) struct Known {
    pub(super) words: Words,
    color: bool,
}

impl Typist {
    /// An editor with the history of the user's state folder.
    ///
    /// # Errors
    /// Where there is no terminal.
    pub(super) fn new() -> Result<Self, ReadlineError> {
        let color = console::colors_enabled();
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .color_mode(if color { ColorMode::Enabled } else { ColorMode::Disabled })
            // The prompt is no result: it does not go where stdout is sent.
            .behavior(Behavior::PreferTerm)
            .max_history_size(REMEMBERED)?
            .history_ignore_space(true)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Known { words: Words::default(), color }));
        let history = state_folder().and_then(|folder| {
            std::fs::create_dir_all(&folder).ok()?;
            Some(folder.join("history"))
        });
        if let Some(history) = &history {
            // There is none yet, or it cannot be read; what is typed now counts more.
            let _ = editor.load_history(history);
        }
        Ok(Self { editor, history })
    }

    /// Takes note of the words that there are.
    pub(super) fn know(&mut self, words: Words) {
        if let Some(known) = self.editor.helper_mut() {
            known.words = words;
        }
    }

    /// A statement, or a command; `begun` is there already.
    ///
    /// # Errors
    /// Where the user interrupts or leaves, or the terminal cannot be read.
    pub(super) fn read(&mut self, prompt: &str, begun: &str) -> Result<String, ReadlineError> {
        let text = self.editor.readline_with_initial(prompt, (begun, ""))?;
        // A history that cannot take it does not stop the statement.
        if !text.trim().is_empty() && self.editor.add_history_entry(text.trim_end()).is_ok_and(|added| added) {
            let saved = self.history.as_ref().map(|history| self.editor.append_history(history));
            drop(saved);
        }
        Ok(text)
    }
}

/// A statement, or a command, of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// The line that it begins with, from 1.
    pub(super) line: usize,
    pub(super) text: String,
}

/// The statements and commands of a text, one after another, and what is behind the last semicolon. Commands begin where a
/// statement could, and take the rest of their line.
pub(super) fn pieces(text: &str) -> (Vec<Piece>, Option<Piece>) {
    let (mut found, mut from) = (Vec::new(), 0);
    loop {
        match read(text, from, &mut found) {
            // What a command takes is no SQL: it begins anew behind it.
            Ended::AtCommand(next) => from = next,
            Ended::AtEnd(open) => return (found, open),
        }
    }
}

/// Where the reading of a text ended.
enum Ended {
    /// Behind a command, at this byte.
    AtCommand(usize),
    /// At the end, in a statement that goes on.
    AtEnd(Option<Piece>),
}

/// Reads statements from a byte of a text on, up to the next command.
fn read(text: &str, from: usize, found: &mut Vec<Piece>) -> Ended {
    let (rest, lines_before) = (&text[from..], text[..from].matches('\n').count());
    let mut tokens = Vec::new();
    let error = Tokenizer::new(&GenericDialect {}, rest).tokenize_with_location_into_buf(&mut tokens).err();
    let mut cursor = Cursor::new(rest);
    let line_of = |line: u64| lines_before + usize::try_from(line).unwrap_or(usize::MAX);
    let (mut begun, mut end, mut last_line): (Option<(usize, usize)>, usize, u64) = (None, 0, 1);
    for token in &tokens {
        let (start, line) = (cursor.byte(token.span.start), token.span.start.line);
        (end, last_line) = (cursor.byte(token.span.end), token.span.end.line);
        if matches!(token.token, Token::Whitespace(_) | Token::EOF) {
            continue;
        }
        if begun.is_none() {
            let line_start = rest[..start].rfind('\n').map_or(0, |at| at + 1);
            let alone = rest[line_start..start].trim().is_empty();
            let tail = rest[start..].lines().next().unwrap_or_default();
            if (alone || tail.starts_with('\\')) && Command::parse(tail).is_some() {
                found.push(Piece { line: line_of(line), text: tail.trim().to_owned() });
                return Ended::AtCommand(from + start + tail.len());
            }
        }
        let (begun_line, begun_at) = *begun.get_or_insert((line_of(line), start));
        if token.token == Token::SemiColon {
            begun = None;
            // Nothing stands before a semicolon that is alone.
            if begun_at < start {
                found.push(Piece { line: begun_line, text: rest[begun_at..end].to_owned() });
            }
        }
    }
    let open = |(line, at): (usize, usize)| Piece { line, text: rest[at..].to_owned() };
    let Some(error) = error else { return Ended::AtEnd(begun.map(open)) };
    let last = open(begun.unwrap_or((line_of(last_line), end)));
    // What may go on, such as a quote that is open, has no end yet. What is wrong is for the parser to tell.
    if ["Unterminated", "EOF", "expected $"].iter().any(|open| error.message.contains(open)) {
        return Ended::AtEnd(Some(last));
    }
    found.push(last);
    Ended::AtEnd(None)
}

/// Finds the bytes of a text by lines and columns, both from 1, that come one after another, as the tokenizer counts them.
struct Cursor<'t> {
    chars: Chars<'t>,
    at: usize,
    line: u64,
    column: u64,
}

impl<'t> Cursor<'t> {
    fn new(text: &'t str) -> Self {
        Self { chars: text.chars(), at: 0, line: 1, column: 1 }
    }

    fn byte(&mut self, to: Location) -> usize {
        while (self.line, self.column) < (to.line, to.column) {
            let Some(c) = self.chars.next() else { break };
            self.at += c.len_utf8();
            (self.line, self.column) = if c == '\n' { (self.line + 1, 1) } else { (self.line, self.column + 1) };
        }
        self.at
    }
}

/// The byte of a text behind the last of its tokens.
pub(super) fn behind(text: &str, tokens: &[TokenWithSpan]) -> usize {
    tokens.last().map_or(0, |token| Cursor::new(text).byte(token.span.end))
}

impl Helper for Known {}

impl Hinter for Known {
    type Hint = String;
}

impl Validator for Known {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let (_, open) = pieces(context.input());
        Ok(if open.is_none() { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Completer for Known {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, context: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..at];
        if typed.starts_with('\\') {
            return self.command(line, at, context);
        }
        Ok(self.sql(line, at))
    }
}

impl Known {
    /// Completes the SQL before a place.
    fn sql(&self, line: &str, at: usize) -> (usize, Vec<Pair>) {
        let (start, found) = self.words.complete(&line[..at]);
        // A quote that is closed already is not closed again.
        let closed = line[at..].starts_with('\'');
        let replacement = |typed: String| match typed.strip_suffix('\'') {
            Some(open) if closed => open.to_owned(),
            _ => typed,
        };
        let pairs = found.into_iter().map(|found| Pair { display: found.shown, replacement: replacement(found.typed) });
        (start, pairs.collect())
    }

    /// Completes a command, or what it takes.
    fn command(&self, line: &str, at: usize, context: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..at];
        let Some((name, rest)) = typed.split_once(' ') else {
            let fits = COMMANDS.iter().filter(|command| command.name.starts_with(typed));
            let pairs = fits.map(|command| Pair {
                display: format!("{} {}", command.name, command.takes).trim_end().to_owned(),
                replacement: command.name.to_owned(),
            });
            return Ok((0, pairs.collect()));
        };
        let of = |words: &mut dyn Iterator<Item = &str>| {
            let fits = words.filter(|word| word.starts_with(rest));
            let pairs = fits.map(|word| Pair { display: word.to_owned(), replacement: word.to_owned() });
            Ok((at - rest.len(), pairs.collect()))
        };
        match name {
            "\\i" | "\\o" => FilenameCompleter::new().complete(line, at, context),
            "\\format" => of(&mut Format::NAMES.into_iter()),
            "\\x" | "\\pager" | "\\timing" => of(&mut ["on", "off"].into_iter()),
            "\\c" => of(&mut self.words.connections.iter().map(String::as_str)),
            "\\d" => of(&mut self.words.tables.iter().map(String::as_str)),
            "\\cost" | "\\chart" => Ok(self.sql(line, at)),
            _ => Ok((at, Vec::new())),
        }
    }
}

impl Highlighter for Known {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if self.color { Cow::Owned(colored(line)) } else { Cow::Borrowed(line) }
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.color && kind != CmdKind::MoveCursor
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        if self.color {
            Cow::Owned(style(prompt).bold().force_styling(true).to_string())
        } else {
            Cow::Borrowed(prompt)
        }
    }
}

/// The text with words, texts, numbers and comments in colours. What cannot be read stays as it is, and so does what is
/// long: it is read anew with each key.
fn colored(line: &str) -> String {
    const LONG: usize = 4_096;
    if line.len() > LONG {
        return line.to_owned();
    }
    let mut tokens = Vec::new();
    // An open quote ends it; what came before is there.
    let _ = Tokenizer::new(&GenericDialect {}, line).tokenize_with_location_into_buf(&mut tokens);
    let mut cursor = Cursor::new(line);
    let (mut shown, mut from) = (String::with_capacity(line.len() * 2), 0);
    for token in tokens {
        let (start, end) = (cursor.byte(token.span.start), cursor.byte(token.span.end));
        if start < from || end < start {
            break;
        }
        shown.push_str(&line[from..start]);
        let text = &line[start..end];
        let styled = style(text).force_styling(true);
        let styled = match &token.token {
            Token::Word(word) if word.quote_style.is_none() && KEYWORDS.contains(&text.to_uppercase().as_str()) => {
                Some(styled.blue().bold())
            }
            Token::SingleQuotedString(_) => Some(styled.green()),
            Token::Number(..) => Some(styled.magenta()),
            Token::Whitespace(_) if text.starts_with("--") || text.starts_with("/*") => Some(styled.dim()),
            _ => None,
        };
        shown.push_str(&styled.map_or_else(|| text.to_owned(), |styled| styled.to_string()));
        from = end;
    }
    shown.push_str(&line[from..]);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_with_a_semicolon_that_is_no_text() {
        for whole in
            ["SELECT 1;", "SELECT ';';", "\\d", "", "SELECT 1; -- done\n", "exit", "-- a note", "SELECT U&'\\zz';"]
        {
            assert_eq!(pieces(whole).1, None, "{whole}");
        }
        for open in ["SELECT 1", "SELECT ';", "SELECT 1; SELECT 2", "SELECT 1 -- ;", "/* ;", "SELECT $$;", "SELECT \";"]
        {
            assert!(pieces(open).1.is_some(), "{open}");
        }
    }

    #[test]
    fn a_text_is_cut_into_statements_and_commands() {
        let text = "-- report\r\n\\format csv\r\nSELECT 'a;\r\n\\b';\n\nSELECT 1; SELECT 2;\nquit\nSELECT 3 -- no end";
        let (found, open) = pieces(text);
        let found: Vec<_> = found.iter().map(|piece| (piece.line, piece.text.trim())).collect();
        let expected =
            [(2, "\\format csv"), (3, "SELECT 'a;\r\n\\b';"), (6, "SELECT 1;"), (6, "SELECT 2;"), (7, "quit")];
        assert_eq!(found, expected);
        assert_eq!(open, Some(Piece { line: 8, text: "SELECT 3 -- no end".to_owned() }));
        let (found, open) = pieces("\\o it's.csv\nSELECT 1; \\watch 5\n;; /* a\n; */ SELECT 2;");
        let found: Vec<_> = found.iter().map(|piece| (piece.line, piece.text.as_str())).collect();
        assert_eq!(found, [(1, "\\o it's.csv"), (2, "SELECT 1;"), (2, "\\watch 5"), (4, "SELECT 2;")]);
        assert_eq!(open, None);
    }

    #[test]
    fn a_long_text_is_read_once() {
        let rows = "('a;\n', 1),\n".repeat(50_000);
        let (found, open) = pieces(&format!("SELECT count(*) FROM (VALUES {rows} ('b', 2));"));
        assert_eq!((found.len(), open), (1, None));
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        for line in ["SELECT 'é', 12 FROM mentions -- x", "SELECT\n  \"a\" AS b\nWHERE c = 'open", "日本 select"] {
            assert_eq!(console::strip_ansi_codes(&colored(line)), line);
        }
        assert!(colored("select 1").starts_with("\u{1b}["));
    }
}
