//! The line editor: statements of several lines, colours, completion, and a history that lasts.

use std::borrow::Cow;
use std::path::PathBuf;

use console::style;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper};

use super::commands::COMMANDS;
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

/// Whether a text can be run: a command, or statements with their semicolon.
pub(super) fn is_whole(text: &str) -> bool {
    let text = text.trim();
    if text.is_empty() || text.starts_with('\\') || matches!(text, "exit" | "quit" | "help") {
        return true;
    }
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize();
    let last =
        |tokens: Vec<Token>| tokens.into_iter().rfind(|token| !matches!(token, Token::Whitespace(_) | Token::EOF));
    // What cannot be read yet may go on: a quote that is open.
    tokens.is_ok_and(|tokens| last(tokens) == Some(Token::SemiColon))
}

impl Helper for Known {}

impl Hinter for Known {
    type Hint = String;
}

impl Validator for Known {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_whole(context.input()) { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Completer for Known {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..at];
        if typed.starts_with('\\') && !typed.contains(' ') {
            let fits = COMMANDS.iter().filter(|command| command.name.starts_with(typed));
            let pairs = fits.map(|command| Pair {
                display: format!("{} {}", command.name, command.takes).trim_end().to_owned(),
                replacement: command.name.to_owned(),
            });
            return Ok((0, pairs.collect()));
        }
        let (start, found) = self.words.complete(typed);
        let pairs = found.into_iter().map(|found| Pair { display: found.shown, replacement: found.typed });
        Ok((start, pairs.collect()))
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

/// The text with words, texts, numbers and comments in colours. What cannot be read stays as it is.
fn colored(line: &str) -> String {
    let mut tokens = Vec::new();
    // An open quote ends it; what came before is there.
    let _ = Tokenizer::new(&GenericDialect {}, line).tokenize_with_location_into_buf(&mut tokens);
    let starts: Vec<usize> = std::iter::once(0)
        .chain(line.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1))
        .collect();
    let byte = |line_number: u64, column: u64| -> Option<usize> {
        let start = *starts.get(usize::try_from(line_number).ok()?.checked_sub(1)?)?;
        let column = usize::try_from(column).ok()?.checked_sub(1)?;
        Some(line[start..].char_indices().nth(column).map_or(line.len(), |(at, _)| start + at))
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_with_a_semicolon_that_is_no_text() {
        for whole in ["SELECT 1;", "SELECT ';';", "\\d", "", "SELECT 1; -- done\n", "exit"] {
            assert!(is_whole(whole), "{whole}");
        }
        for open in ["SELECT 1", "SELECT ';", "SELECT 1; SELECT 2", "SELECT 1 -- ;", "/* ;"] {
            assert!(!is_whole(open), "{open}");
        }
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        for line in ["SELECT 'é', 12 FROM mentions -- x", "SELECT\n  \"a\" AS b\nWHERE c = 'open", "日本 select"] {
            assert_eq!(console::strip_ansi_codes(&colored(line)), line);
        }
        assert!(colored("select 1").starts_with("\u{1b}["));
    }
}
