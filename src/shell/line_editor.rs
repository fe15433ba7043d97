//! The line editor: statements of several lines, colours, completion, and a history that lasts.

use std::borrow::Cow;
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

use super::commands::COMMANDS;
use super::completion::{KEYWORDS, Words};
use super::output::Format;
use super::splitter::{Cursor, pieces};
use crate::config::state_folder;
use crate::files;

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
        // Statements may hold what is nobody else's business. What is no regular file would be waited for.
        let history =
            history.filter(|history| files::lockable(history).and_then(|_| files::keep_private(history)).is_ok());
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
        if !text.trim().is_empty()
            && self.editor.add_history_entry(text.trim_end()).is_ok_and(|added| added)
            && let Some(history) = &self.history
        {
            let _ = self.editor.append_history(history);
        }
        Ok(text)
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
    fn colours_change_nothing_but_colours() {
        for line in ["SELECT 'é', 12 FROM mentions -- x", "SELECT\n  \"a\" AS b\nWHERE c = 'open", "日本 select"] {
            assert_eq!(console::strip_ansi_codes(&colored(line)), line);
        }
        assert!(colored("select 1").starts_with("\u{1b}["));
    }
}
