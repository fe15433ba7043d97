//! The line editor: statements of several lines, colours, completion, and a history that lasts.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::PathBuf;

use console::style;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
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

/// The statements and commands of a text, one after another, and what is behind the last semicolon. Commands take a line.
pub(super) fn pieces(text: &str) -> (Vec<Piece>, Option<Piece>) {
    let (mut found, mut open, mut begun) = (Vec::new(), String::new(), 1);
    for (number, line) in (1..).zip(text.lines()) {
        if is_blank(&open) {
            open.clear();
            begun = number;
            if Command::parse(line).is_some() {
                found.push(Piece { line: number, text: line.trim().to_owned() });
                continue;
            }
        }
        open.push_str(line);
        open.push('\n');
        if line.contains(';') && ends(&open) {
            found.push(Piece { line: begun, text: std::mem::take(&mut open) });
        }
    }
    let open = (!is_blank(&open)).then_some(Piece { line: begun, text: open });
    (found, open)
}

/// Whether there is nothing but space and comments.
fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
        || Tokenizer::new(&GenericDialect {}, text)
            .tokenize()
            .is_ok_and(|tokens| tokens.iter().all(|token| matches!(token, Token::Whitespace(_) | Token::EOF)))
}

/// Whether the last statement has its semicolon. What is wrong is for the parser to tell; what may go on, such as a quote
/// that is open, has none.
fn ends(text: &str) -> bool {
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize();
    let is_text = |token: &Token| !matches!(token, Token::Whitespace(_) | Token::EOF);
    match tokens {
        Ok(tokens) => tokens.into_iter().rfind(is_text) == Some(Token::SemiColon),
        Err(error) => !["Unterminated", "EOF", "expected $"].iter().any(|open| error.message.contains(open)),
    }
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
        let (start, found) = self.words.complete(typed);
        // A quote that is closed already is not closed again.
        let closed = line[at..].starts_with('\'');
        let replacement = |typed: String| match typed.strip_suffix('\'') {
            Some(open) if closed => open.to_owned(),
            _ => typed,
        };
        let pairs = found.into_iter().map(|found| Pair { display: found.shown, replacement: replacement(found.typed) });
        Ok((start, pairs.collect()))
    }
}

impl Known {
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
            "\\cost" | "\\chart" => {
                let (start, found) = self.words.complete(typed);
                Ok((
                    start,
                    found.into_iter().map(|found| Pair { display: found.shown, replacement: found.typed }).collect(),
                ))
            }
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
    let places = places(line);
    let byte = |line: u64, column: u64| places.get(&(line, column)).copied();
    let (mut shown, mut from) = (String::with_capacity(line.len() * 2), 0);
    for token in tokens {
        let (start, end) = (token.span.start, token.span.end);
        let (Some(start), Some(end)) = (byte(start.line, start.column), byte(end.line, end.column)) else { break };
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

/// Where in a text each line and column is, both from 1, as the tokenizer counts them.
pub(super) fn places(text: &str) -> HashMap<(u64, u64), usize> {
    let (mut line, mut column) = (1, 1);
    let mut places = HashMap::new();
    for (at, c) in text.char_indices() {
        places.insert((line, column), at);
        (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
    }
    places.insert((line, column), text.len());
    places
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
        let expected = [(2, "\\format csv"), (3, "SELECT 'a;\n\\b';"), (6, "SELECT 1; SELECT 2;"), (7, "quit")];
        assert_eq!(found, expected);
        assert_eq!(open, Some(Piece { line: 8, text: "SELECT 3 -- no end\n".to_owned() }));
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        for line in ["SELECT 'é', 12 FROM mentions -- x", "SELECT\n  \"a\" AS b\nWHERE c = 'open", "日本 select"] {
            assert_eq!(console::strip_ansi_codes(&colored(line)), line);
        }
        assert!(colored("select 1").starts_with("\u{1b}["));
    }
}
