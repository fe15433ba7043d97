//! Splits text that was typed, pasted or read from a file into statements and commands.

use std::path::PathBuf;
use std::str::Chars;

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use super::commands::{Command, output_file};
use crate::session::ends_within_token;

/// A statement or command within a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Input {
    /// 1-based line on which it begins.
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) ending: Ending,
}

/// Wishes for the result of a statement, stated at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ending {
    /// Set by `\gx` in place of the semicolon: the result is to be shown in expanded display.
    pub(super) expanded: bool,
    /// Set by `\g FILE`: the result is to be written to this file. Or else why it cannot be.
    pub(super) file: Result<Option<PathBuf>, String>,
}

impl Ending {
    const SEMICOLON: Self = Self { expanded: false, file: Ok(None) };
}

impl Input {
    fn new(line: usize, text: &str) -> Self {
        Self { line, text: text.to_owned(), ending: Ending::SEMICOLON }
    }
}

/// Returns the statements and commands of a text in order, and the unfinished statement after the last semicolon. A command
/// begins where a statement could, and takes the rest of its line.
pub(super) fn inputs(text: &str) -> (Vec<Input>, Option<Input>) {
    let (mut found, mut from) = (Vec::new(), 0);
    loop {
        // Without tokenizing the rest of the text for each of many commands.
        let start = text.len() - text[from..].trim_start().len();
        if let Some(command) = command_at(text, start) {
            found.push(Input::new(text[..start].matches('\n').count() + 1, command.trim()));
            from = start + command.len();
            continue;
        }
        match read(text, from, &mut found) {
            // The arguments of a command are not SQL, so tokenizing restarts behind them.
            Ended::AtCommand(next) => from = next,
            Ended::AtEnd(open) => return (found, open),
        }
    }
}

/// Returns the command at a byte offset where a statement could begin, up to the end of its line. One without a backslash,
/// such as `exit`, begins its line.
fn command_at(text: &str, at: usize) -> Option<&str> {
    let line_start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let alone = text[line_start..at].trim().is_empty();
    let tail = text[at..].lines().next().unwrap_or_default();
    ((alone || tail.starts_with('\\')) && Command::parse(tail).is_some()).then_some(tail)
}

/// Returns what a line says about the result of a statement, if it ends one as a semicolon does.
pub(super) fn ending(line: &str) -> Option<Ending> {
    let line = line.trim();
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line.trim_end_matches(';'), ""));
    let (expanded, file) = (matches!(name, "\\gx" | "\\G"), output_file(rest));
    (expanded || name == "\\g").then_some(Ending { expanded, file })
}

/// Position at which reading ended.
enum Ended {
    /// Byte after a command.
    AtCommand(usize),
    /// End of the text, with the unfinished statement.
    AtEnd(Option<Input>),
}

/// Reads statements from a byte offset up to the next command.
fn read(text: &str, from: usize, found: &mut Vec<Input>) -> Ended {
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
        if begun.is_none()
            && let Some(command) = command_at(rest, start)
        {
            found.push(Input::new(line_of(line), command.trim()));
            return Ended::AtCommand(from + start + command.len());
        }
        let (begun_line, begun_at) = *begun.get_or_insert((line_of(line), start));
        if token.token == Token::SemiColon {
            begun = None;
            // A lone semicolon is an empty statement.
            if begun_at < start {
                found.push(Input::new(begun_line, &rest[begun_at..end]));
            }
        } else if token.token == Token::Backslash
            && let tail = rest[start..].lines().next().unwrap_or_default()
            && let Some(ending) = ending(tail)
        {
            let input = Input::new(begun_line, rest[begun_at..start].trim_end());
            found.push(Input { ending, ..input });
            return Ended::AtCommand(from + start + tail.len());
        }
    }
    let open = |(line, at): (usize, usize)| Input::new(line, &rest[at..]);
    let Some(error) = error else { return Ended::AtEnd(begun.map(open)) };
    let last = open(begun.unwrap_or((line_of(last_line), end)));
    if ends_within_token(rest, &error) {
        return Ended::AtEnd(Some(last));
    }
    // Other errors are reported by the parser.
    found.push(last);
    Ended::AtEnd(None)
}

/// True if a text ends inside a quoted string, quoted name or comment.
pub(super) fn is_inside_token(text: &str) -> bool {
    let mut tokens = Vec::new();
    let error = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location_into_buf(&mut tokens).err();
    error.is_some_and(|error| ends_within_token(text, &error))
}

/// Returns the sign of the token in which a text ends: a quote, or `*` for a comment.
pub(super) fn open_token(text: &str) -> Option<char> {
    let mut tokens = Vec::new();
    let error = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location_into_buf(&mut tokens).err()?;
    let rest = text[behind(text, &tokens)..].trim_start();
    ends_within_token(text, &error).then(|| match rest.starts_with("/*") {
        true => '*',
        false => rest.chars().find(|c| matches!(c, '\'' | '"' | '`' | '$')).unwrap_or('\''),
    })
}

/// Converts the tokenizer's 1-based lines and columns, in ascending order, to byte offsets.
pub(super) struct Cursor<'t> {
    chars: Chars<'t>,
    at: usize,
    line: u64,
    column: u64,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { chars: text.chars(), at: 0, line: 1, column: 1 }
    }

    /// Returns the byte offset of a location, which must not precede the previous one.
    pub(super) fn byte(&mut self, to: Location) -> usize {
        while (self.line, self.column) < (to.line, to.column) {
            let Some(c) = self.chars.next() else { break };
            self.at += c.len_utf8();
            (self.line, self.column) = if c == '\n' { (self.line + 1, 1) } else { (self.line, self.column + 1) };
        }
        self.at
    }
}

/// Returns the byte offset after the last token.
pub(super) fn behind(text: &str, tokens: &[TokenWithSpan]) -> usize {
    tokens.last().map_or(0, |token| Cursor::new(text).byte(token.span.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_with_a_semicolon_that_is_no_text() {
        for whole in [
            "SELECT 1;",
            "SELECT ';';",
            "\\d",
            "",
            "SELECT 1; -- done\n",
            "exit",
            "-- a note",
            "SELECT U&'\\zz';",
            "SELECT E'\\uzz';",
            "SELECT E'\\x80 ''';",
            "SELECT Q' x';",
        ] {
            assert_eq!(inputs(whole).1, None, "{whole}");
        }
        let unended = ["SELECT U&';", "SELECT E'\\';", "SELECT E'\\uzz;", "SELECT X';", "SELECT $a$;$$", "/* /* */;"];
        let others =
            ["SELECT 1", "SELECT ';", "SELECT 1; SELECT 2", "SELECT 1 -- ;", "/* ;", "SELECT $$;", "SELECT \";"];
        for open in unended.into_iter().chain(others) {
            assert!(inputs(open).1.is_some(), "{open}");
        }
    }

    #[test]
    fn a_text_is_cut_into_statements_and_commands() {
        let text = "-- report\r\n\\format csv\r\nSELECT 'a;\r\n\\b';\n\nSELECT 1; SELECT 2;\nquit\nSELECT 3 -- no end";
        let (found, open) = inputs(text);
        let found: Vec<_> = found.iter().map(|input| (input.line, input.text.trim())).collect();
        let expected =
            [(2, "\\format csv"), (3, "SELECT 'a;\r\n\\b';"), (6, "SELECT 1;"), (6, "SELECT 2;"), (7, "quit")];
        assert_eq!(found, expected);
        assert_eq!(open, Some(Input::new(8, "SELECT 3 -- no end")));
        let (found, open) = inputs("\\o it's.csv\nSELECT 1; \\watch 5\n;; /* a\n; */ SELECT 2;");
        let found: Vec<_> = found.iter().map(|input| (input.line, input.text.as_str())).collect();
        assert_eq!(found, [(1, "\\o it's.csv"), (2, "SELECT 1;"), (2, "\\watch 5"), (4, "SELECT 2;")]);
        assert_eq!(open, None);
    }

    #[test]
    fn a_statement_may_end_with_a_command() {
        let text = "SELECT '\\gx' \\gx\nSELECT 2\n\\g;\nSELECT 3\\G\n\\gx\nSELECT 4 \\g a file.csv ;\nSELECT 4 \\x";
        let (found, open) = inputs(text);
        let shown = |ending: &Ending| {
            (ending.expanded, ending.file.as_ref().unwrap().as_ref().map(|file| file.display().to_string()))
        };
        let found: Vec<_> = found.iter().map(|input| (input.line, input.text.as_str(), shown(&input.ending))).collect();
        let ended = [
            (1, "SELECT '\\gx'", (true, None)),
            (2, "SELECT 2", (false, None)),
            (4, "SELECT 3", (true, None)),
            (5, "\\gx", (false, None)),
            (6, "SELECT 4", (false, Some("a file.csv".to_owned()))),
        ];
        assert_eq!(found, ended);
        assert_eq!(open, Some(Input::new(7, "SELECT 4 \\x")));
    }

    #[test]
    fn a_long_text_is_read_once() {
        let rows = "('a;\n', 1),\n".repeat(50_000);
        let (found, open) = inputs(&format!("SELECT count(*) FROM (VALUES {rows} ('b', 2));"));
        assert_eq!((found.len(), open), (1, None));
    }
}
