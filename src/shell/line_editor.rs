//! Line editor: colours, completion, and a persistent history.

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
use rustyline::validate::Validator;
use rustyline::{Behavior, ColorMode, CompletionType, Config, Context, Editor, Helper};

use super::commands::COMMANDS;
use super::completion::{KEYWORDS, Words};
use super::output::Format;
use super::splitter::Cursor;
use crate::config::state_folder;
use crate::files;

/// Statements kept in the history.
const HISTORY: usize = 5_000;

/// Line editor with its history file.
pub(super) struct LineEditor {
    editor: Editor<Assistant, FileHistory>,
    history: Option<PathBuf>,
}

/// Completion and colours while the user types.
struct Assistant {
    words: Words,
    /// Earlier lines of the statement, each with its line break.
    before: String,
    color: bool,
}

impl LineEditor {
    /// An editor with the history of the user's state folder.
    ///
    /// # Errors
    /// There is no terminal.
    pub(super) fn new() -> Result<Self, ReadlineError> {
        let color = console::colors_enabled();
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .color_mode(if color { ColorMode::Enabled } else { ColorMode::Disabled })
            // The prompt is not a result, so it is not written to a redirected stdout.
            .behavior(Behavior::PreferTerm)
            .max_history_size(HISTORY)?
            .history_ignore_space(true)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Assistant { words: Words::default(), before: String::new(), color }));
        let history = state_folder().and_then(|folder| {
            std::fs::create_dir_all(&folder).ok()?;
            Some(folder.join("history"))
        });
        // Statements may be confidential. Opening anything but a regular file could block.
        let history =
            history.filter(|history| files::lockable(history).and_then(|_| files::keep_private(history)).is_ok());
        if let Some(history) = &history {
            // A missing or unreadable history must not prevent typing.
            let _ = editor.load_history(history);
        }
        Ok(Self { editor, history })
    }

    /// Sets the words for completion, and the earlier lines of the statement being typed.
    pub(super) fn set_context(&mut self, words: Words, pending: &str) {
        if let Some(assistant) = self.editor.helper_mut() {
            assistant.words = words;
            assistant.before = if pending.is_empty() { String::new() } else { format!("{pending}\n") };
        }
    }

    /// Reads a line; several if they are pasted or recalled from the history. `initial` can be edited.
    ///
    /// # Errors
    /// The user interrupts or quits, or the terminal cannot be read.
    pub(super) fn read(&mut self, prompt: &str, initial: &str) -> Result<String, ReadlineError> {
        self.editor.readline_with_initial(prompt, (initial, ""))
    }

    /// Adds a statement or command to the history.
    pub(super) fn remember(&mut self, text: &str) {
        // A history that cannot be written must not stop the statement.
        if !text.trim().is_empty()
            && self.editor.add_history_entry(text.trim_end()).is_ok_and(|added| added)
            && let Some(history) = &self.history
        {
            let _ = self.editor.append_history(history);
        }
    }
}

impl Helper for Assistant {}

impl Hinter for Assistant {
    type Hint = String;
}

// The prompt loop decides whether a statement is complete, so that each line has a prompt of its own.
impl Validator for Assistant {}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, context: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..at];
        if typed.starts_with('\\') {
            return self.command(line, at, context);
        }
        Ok(self.sql(line, at))
    }
}

impl Assistant {
    /// Completes SQL before the cursor.
    fn sql(&self, line: &str, at: usize) -> (usize, Vec<Pair>) {
        let before = self.before.len();
        let (start, found) = self.words.complete(&format!("{}{}", self.before, &line[..at]), &line[at..]);
        // A candidate never reaches into an earlier line.
        let start = start.saturating_sub(before);
        // A quote that is already closed is not closed again.
        let closed = line[at..].starts_with('\'');
        let replacement = |typed: String| match typed.strip_suffix('\'') {
            Some(open) if closed => open.to_owned(),
            _ => typed,
        };
        let pairs = found.into_iter().map(|found| Pair { display: found.shown, replacement: replacement(found.typed) });
        (start, pairs.collect())
    }

    /// Completes a command or its argument.
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

impl Highlighter for Assistant {
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

/// Colours keywords, strings, numbers and comments. Text that cannot be tokenized stays plain, and so does long text, since
/// it would be tokenized at each key press.
fn colored(line: &str) -> String {
    const LONG: usize = 4_096;
    if line.len() > LONG {
        return line.to_owned();
    }
    let mut tokens = Vec::new();
    // An open quote ends tokenizing; the tokens before it are kept.
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
