//! Kinds of statements: statements for the engine, and commands of PostgreSQL clients for the server itself.
//!
//! Pure. A text is split at its semicolons, by the tokens of PostgreSQL's dialect. The first words of a statement determine
//! its kind. Unrecognized statements are left to the engine.

use datafusion::sql::sqlparser::ast::{
    CopyLegacyCsvOption, CopyLegacyOption, CopyOption, CopySource, CopyTarget, Spanned, Statement,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer};

use crate::session::{is_text_literal, not_supported, parse_trees};

/// Maximum length in bytes of the NULL string of COPY. A row may repeat it a thousand times.
const NULL: usize = 128;

/// A statement by what is done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// Planned and run by the engine.
    Statement,
    Begin,
    Commit,
    Rollback,
    Savepoint(String),
    Release(String),
    /// Back to a savepoint.
    RollbackTo(String),
    /// Done as soon as it is read, with this tag: LISTEN and the like.
    Nothing(&'static str),
    Set {
        /// In lower case.
        name: String,
        /// `None`: the default.
        value: Option<String>,
        /// Until the transaction ends.
        local: bool,
    },
    /// `None`: all.
    Reset(Option<String>),
    Show(String),
    Copy(Copy),
    Declare {
        cursor: String,
        sql: String,
        /// It outlives its transaction.
        hold: bool,
    },
    Fetch {
        cursor: String,
        /// 0: all that are left.
        rows: usize,
        /// Rows are skipped instead of sent.
        skip: bool,
    },
    /// `None`: all.
    CloseCursor(Option<String>),
    /// `None`: all.
    Deallocate(Option<String>),
    DiscardAll,
    /// Drops the temporary tables of the session.
    DiscardTemporary,
    /// Not supported, with the line for the client.
    Refused(String),
    /// A statement that could not be parsed, with what is wrong.
    Malformed(String),
}

/// `COPY … TO STDOUT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Copy {
    /// The query whose rows are copied.
    pub(super) sql: String,
    /// Characters of the statement before the query; zero if it copies a table.
    pub(super) before: usize,
    pub(super) format: CopyFormat,
    pub(super) header: bool,
    pub(super) delimiter: Option<char>,
    pub(super) null: Option<String>,
}

/// Format of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyFormat {
    Text,
    Csv,
    Binary,
}

/// Cuts a text into its statements, without their semicolons; empty ones are left out. A text that has no tokens is one
/// statement, for the parser to explain.
pub(super) fn split(text: &str) -> Vec<String> {
    let Some(tokens) = tokens(text) else { return vec![text.to_owned()] };
    let mut offset = offsets(text);
    let (mut statements, mut start, mut empty) = (Vec::new(), 0, true);
    for token in &tokens {
        match token.token {
            Token::SemiColon => {
                let Some(at) = offset(token.span.start) else { return vec![text.to_owned()] };
                if !empty {
                    statements.push(text[start..at].trim().to_owned());
                }
                (start, empty) = (at + 1, true);
            }
            Token::Whitespace(_) | Token::EOF => {}
            _ => empty = false,
        }
    }
    if !empty {
        statements.push(text[start..].trim().to_owned());
    }
    statements
}

/// Byte offsets of locations in a text, which must be asked for in ascending order. Locations count lines and characters from 1.
fn offsets(text: &str) -> impl FnMut(Location) -> Option<usize> {
    let mut places = text.char_indices().scan((1, 1), |(line, column), (at, character)| {
        let here = ((*line, *column), at);
        (*line, *column) = if character == '\n' { (*line + 1, 1) } else { (*line, *column + 1) };
        Some(here)
    });
    move |Location { line, column }| places.find(|(place, _)| *place == (line, column)).map(|(_, at)| at)
}

fn tokens(sql: &str) -> Option<Vec<TokenWithSpan>> {
    Tokenizer::new(&PostgreSqlDialect {}, sql).with_unescape(false).tokenize_with_location().ok()
}

/// The words of a statement in lower case, as far as it begins with words; strings and numbers count as words.
pub(super) fn words(sql: &str) -> Vec<String> {
    words_but(sql, |_| false)
}

/// The words of a statement outside its strings.
fn words_outside_strings(sql: &str) -> Vec<String> {
    words_but(sql, is_text_literal)
}

fn words_but(sql: &str, left_out: fn(&Token) -> bool) -> Vec<String> {
    let tokens = tokens(sql).unwrap_or_default().into_iter().map(|token| token.token);
    tokens
        .filter(|token| !matches!(token, Token::Whitespace(_) | Token::EOF) && !left_out(token))
        .map(|token| match token {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
            Token::Word(word) => word.value,
            Token::SingleQuotedString(text) => text.replace("''", "'"),
            other => other.to_string(),
        })
        .collect()
}

impl Command {
    /// Recognizes a statement.
    pub(super) fn of(sql: &str) -> Self {
        let words = words(sql);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["begin", ..] | ["start", "transaction", ..] => Self::Begin,
            ["commit" | "end", ..] => Self::Commit,
            ["rollback" | "abort", rest @ .., name] if rest.contains(&"to") => Self::RollbackTo((*name).to_owned()),
            ["rollback" | "abort", ..] => Self::Rollback,
            ["savepoint", name] => Self::Savepoint((*name).to_owned()),
            ["release", "savepoint", name] | ["release", name] => Self::Release((*name).to_owned()),
            ["unlisten", ..] => Self::Nothing("UNLISTEN"),
            ["listen" | "notify", ..] => Self::Refused("LISTEN and NOTIFY are not supported".to_owned()),
            ["discard", "all"] => Self::DiscardAll,
            ["discard", "temp" | "temporary"] => Self::DiscardTemporary,
            ["discard", "plans"] => Self::Nothing("DISCARD PLANS"),
            ["discard", "sequences"] => Self::Nothing("DISCARD SEQUENCES"),
            ["deallocate", "prepare", name] | ["deallocate", name] => Self::Deallocate(all_or(name)),
            ["close", name] => Self::CloseCursor(all_or(name)),
            ["set", rest @ ..] => set(rest),
            ["reset", "all"] => Self::Reset(None),
            ["reset", "role"] | ["reset", "session", "authorization"] => Self::Nothing("RESET"),
            ["reset", name @ ..] => Self::Reset(Some(setting(name))),
            ["show", "transaction", "isolation", "level"] => Self::Show("transaction_isolation".to_owned()),
            ["show", "session", "authorization"] => Self::Show("session_authorization".to_owned()),
            ["show", "time", "zone"] => Self::Show("timezone".to_owned()),
            ["show", name @ ..] if !name.is_empty() => Self::Show(setting(name)),
            ["declare", cursor, rest @ ..] => match (cursor_query(sql), rest.iter().position(|word| *word == "for")) {
                (Some(_), Some(end)) if rest[..end].contains(&"binary") => Self::Refused(
                    "BINARY cursors are not supported: FETCH has the format that the client asks for".to_owned(),
                ),
                (Some(sql), Some(end)) => {
                    let hold = rest[..end].windows(2).any(|words| words == ["with", "hold"]);
                    Self::Declare { cursor: (*cursor).to_owned(), sql, hold }
                }
                _ => Self::Statement,
            },
            ["fetch", rest @ ..] => fetch(rest, false),
            ["move", "0" | "forward", ..]
                if matches!(words.as_slice(), ["move", "0", ..] | ["move", "forward", "0", ..]) =>
            {
                Self::Nothing("MOVE 0")
            }
            ["move", rest @ ..] => fetch(rest, true),
            ["copy", ..] => copy(sql),
            _ => Self::Statement,
        }
    }
}

fn all_or(name: &str) -> Option<String> {
    (name != "all").then(|| name.to_owned())
}

/// The name of a setting: `savedsearch.freshness`, `time zone`.
fn setting(words: &[&str]) -> String {
    match words {
        ["time", "zone"] => "timezone".to_owned(),
        words => words.concat(),
    }
}

fn set(words: &[&str]) -> Command {
    let (words, local) = match words {
        ["local", rest @ ..] => (rest, true),
        ["session", rest @ ..] if !matches!(rest, ["characteristics" | "authorization", ..]) => (rest, false),
        words => (words, false),
    };
    let to = |name: &str, value| Command::Set { name: name.to_owned(), value, local };
    let value = |value: &[&str]| match value {
        ["default" | "DEFAULT"] => None,
        value => Some(value.concat()),
    };
    let is = |given: &str, word: &str| given.eq_ignore_ascii_case(word);
    let zone = |zone: &[&str]| match zone {
        [word] if is(word, "local") => None,
        [first, distance, ..] if is(first, "interval") => Some((*distance).to_owned()),
        zone => value(zone),
    };
    match words {
        ["session", "characteristics", ..] | ["transaction", ..] | ["constraints", ..] => Command::Nothing("SET"),
        // The user that has logged in.
        ["role", "none"] | ["session", "authorization", "default"] => Command::Nothing("SET"),
        ["role" | "session", ..] => Command::Refused("roles are not supported: log in as another user".to_owned()),
        ["time", "zone", rest @ ..] => to("timezone", zone(rest)),
        ["names", rest @ ..] => to("client_encoding", value(rest)),
        words => match words.iter().position(|word| matches!(*word, "=" | "to")) {
            Some(at) => match setting(&words[..at]) {
                name if name == "timezone" => to(&name, zone(&words[at + 1..])),
                name => to(&name, value(&words[at + 1..])),
            },
            None => Command::Statement,
        },
    }
}

/// The query of `DECLARE … CURSOR … FOR query`, in the words of the client.
fn cursor_query(sql: &str) -> Option<String> {
    let end = tokens(sql)?.into_iter().find_map(|TokenWithSpan { token, span }| match token {
        Token::Word(word) => (word.quote_style.is_none() && word.value.eq_ignore_ascii_case("for")).then_some(span.end),
        _ => None,
    })?;
    let query = offsets(sql)(end).map_or("", |at| &sql[at..]);
    Some(query.trim().to_owned())
}

fn fetch(words: &[&str], skip: bool) -> Command {
    let words = match words {
        ["forward", rest @ ..] => rest,
        words => words,
    };
    let (rows, rest) = match words {
        ["next", rest @ ..] => (Some(1), rest),
        ["all", rest @ ..] => (Some(0), rest),
        [count, rest @ ..] if count.parse::<usize>().is_ok_and(|count| count > 0) => (count.parse().ok(), rest),
        ["from" | "in", ..] | [_] => (Some(1), words),
        _ => (None, words),
    };
    match (rows, rest) {
        (Some(rows), ["from" | "in", cursor] | [cursor]) => Command::Fetch { cursor: (*cursor).to_owned(), rows, skip },
        _ => {
            Command::Refused("only FETCH [NEXT | count | ALL] FROM cursor is supported: rows are read once".to_owned())
        }
    }
}

fn copy(sql: &str) -> Command {
    let refused = |line: &str| Command::Refused(line.to_owned());
    let mut statements = match parse_trees(sql, PostgreSqlDialect {}) {
        Ok(statements) => statements,
        Err(error) => {
            let expected = "expected COPY (query) TO STDOUT [WITH (FORMAT text | csv | binary, …)]";
            return Command::Malformed(format!("COPY: {error}; {expected}"));
        }
    };
    let Some(Statement::Copy { source, to, target, options, legacy_options, .. }) = statements.pop() else {
        return Command::Statement;
    };
    if !to {
        return refused(&not_supported("COPY FROM is"));
    }
    if target != CopyTarget::Stdout {
        return refused("COPY to a file or program of the server is not supported: use COPY … TO STDOUT");
    }
    let Some((before, sql)) = copied(sql, &source) else { return Command::Statement };
    let mut copy = Copy { sql, before, format: CopyFormat::Text, header: false, delimiter: None, null: None };
    for option in options {
        match option {
            CopyOption::Format(name) => match name.value.to_lowercase().as_str() {
                "text" => copy.format = CopyFormat::Text,
                "csv" => copy.format = CopyFormat::Csv,
                "binary" => copy.format = CopyFormat::Binary,
                other => return refused(&format!("COPY format \"{other}\" not recognized")),
            },
            CopyOption::Header(header) => copy.header = header,
            CopyOption::Delimiter(delimiter) if separates(delimiter, copy.format) => copy.delimiter = Some(delimiter),
            CopyOption::Null(null) if null.len() > NULL => return refused(&long_null()),
            CopyOption::Null(null) => copy.null = Some(null),
            CopyOption::Encoding(encoding) if is_utf8(&encoding) => {}
            other => return refused(&format!("COPY option {other} is not supported")),
        }
    }
    for option in legacy_options {
        match option {
            CopyLegacyOption::Binary => copy.format = CopyFormat::Binary,
            CopyLegacyOption::Delimiter(delimiter) if separates(delimiter, copy.format) => {
                copy.delimiter = Some(delimiter);
            }
            CopyLegacyOption::Null(null) if null.len() > NULL => return refused(&long_null()),
            CopyLegacyOption::Null(null) => copy.null = Some(null),
            CopyLegacyOption::Header => copy.header = true,
            CopyLegacyOption::Csv(options) => {
                copy.format = CopyFormat::Csv;
                for option in options {
                    match option {
                        CopyLegacyCsvOption::Header => copy.header = true,
                        other => return refused(&format!("COPY option {other} is not supported")),
                    }
                }
            }
            other => return refused(&format!("COPY option {other} is not supported")),
        }
    }
    Command::Copy(copy)
}

fn long_null() -> String {
    format!("the NULL string of COPY is too long: the limit is {NULL} bytes")
}

/// The query whose rows a COPY sends, in the words of the client, and the number of characters before it. Printing the syntax tree was
/// rejected: the parser's printer guesses if quotes in names and literals are already escaped.
fn copied(sql: &str, source: &CopySource) -> Option<(usize, String)> {
    let mut offset = offsets(sql);
    match source {
        CopySource::Query(_) => {
            let (mut open, mut depth) = (None, 0_usize);
            for TokenWithSpan { token, span } in tokens(sql)? {
                match token {
                    Token::LParen => {
                        open = open.or(Some(span.start));
                        depth += 1;
                    }
                    Token::RParen if depth == 1 => {
                        let (open, close) = (offset(open?)?, offset(span.start)?);
                        let query = sql[open + 1..close].trim_start();
                        let before = sql[..close - query.len()].chars().count();
                        return Some((before, query.trim_end().to_owned()));
                    }
                    Token::RParen => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
            None
        }
        CopySource::Table { table_name, columns } => {
            let mut text = |span: Span| Some(&sql[offset(span.start)?..offset(span.end)?]);
            let table = text(table_name.span())?;
            let columns = match columns.is_empty() {
                true => "*",
                false => text(Span::union_iter(columns.iter().map(|column| column.span)))?,
            };
            Some((0, format!("SELECT {columns} FROM {table}")))
        }
    }
}

/// True for a character that can separate values: one byte, and in text none that values have or that escapes have.
fn separates(delimiter: char, format: CopyFormat) -> bool {
    let in_text = !delimiter.is_ascii_alphanumeric() && !"\\.".contains(delimiter);
    delimiter.is_ascii() && !"\r\n\"".contains(delimiter) && (format != CopyFormat::Text || in_text)
}

/// True for the names of the only encoding. SQL_ASCII promises nothing about bytes beyond ASCII.
pub(super) fn is_utf8(encoding: &str) -> bool {
    let plain: String = encoding.chars().filter(char::is_ascii_alphanumeric).collect();
    ["utf8", "unicode", "sqlascii"].contains(&plain.to_lowercase().as_str())
}

/// The largest number of a parameter in a statement.
pub(super) fn parameter_count(sql: &str) -> usize {
    let numbers =
        words_outside_strings(sql).into_iter().filter_map(|word| word.strip_prefix('$')?.parse::<usize>().ok());
    // As many as a message can bind.
    numbers.filter(|number| *number <= usize::from(u16::MAX)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn a_text_is_cut_at_its_semicolons_only() {
        let text = "SELECT ';' AS \"a;b\"; -- no ; here\n /* nor ; here */ SELECT $$;$$;\n;; SELECT 'é;'\n; ";
        let expected = ["SELECT ';' AS \"a;b\"", "-- no ; here\n /* nor ; here */ SELECT $$;$$", "SELECT 'é;'"];
        assert_eq!(split(text), expected);
        assert_eq!(split(" ; -- nothing"), Vec::<String>::new());
        assert_eq!(split("SELECT 'open"), ["SELECT 'open"]);
    }

    #[test]
    fn statements_for_the_server_are_recognized() {
        let to = |name: &str, value: Option<&str>, local| Command::Set {
            name: name.into(),
            value: value.map(Into::into),
            local,
        };
        let set = |name, value| to(name, value, false);
        let cases = [
            ("begin", Command::Begin),
            ("START TRANSACTION READ ONLY", Command::Begin),
            ("END", Command::Commit),
            ("ROLLBACK TO SAVEPOINT a", Command::RollbackTo("a".to_owned())),
            ("rollback work to A", Command::RollbackTo("a".to_owned())),
            ("RELEASE a", Command::Release("a".to_owned())),
            ("abort", Command::Rollback),
            ("SET extra_float_digits = 3", set("extra_float_digits", Some("3"))),
            ("SET SESSION savedsearch.freshness TO '15m'", set("savedsearch.freshness", Some("15m"))),
            ("SET TIME ZONE 'Europe/Berlin'", set("timezone", Some("Europe/Berlin"))),
            ("SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE", set("timezone", Some("+00:00"))),
            ("SET timezone TO INTERVAL '-08:00' HOUR TO MINUTE", set("timezone", Some("-08:00"))),
            ("SET TIME ZONE -7", set("timezone", Some("-7"))),
            ("SET TimeZone = LOCAL", set("timezone", None)),
            ("SET statement_timeout TO DEFAULT", set("statement_timeout", None)),
            ("SET LOCAL statement_timeout = 5", to("statement_timeout", Some("5"), true)),
            ("SET SESSION AUTHORIZATION DEFAULT", Command::Nothing("SET")),
            ("SET ROLE NONE", Command::Nothing("SET")),
            ("RESET SESSION AUTHORIZATION", Command::Nothing("RESET")),
            ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", Command::Nothing("SET")),
            ("SHOW transaction isolation level", Command::Show("transaction_isolation".into())),
            ("RESET ALL", Command::Reset(None)),
            ("DEALLOCATE ALL", Command::Deallocate(None)),
            ("FETCH FORWARD 10 FROM c", Command::Fetch { cursor: "c".into(), rows: 10, skip: false }),
            ("FETCH ALL IN c", Command::Fetch { cursor: "c".into(), rows: 0, skip: false }),
            ("CLOSE c", Command::CloseCursor(Some("c".into()))),
            ("SELECT 1", Command::Statement),
            ("WITH begin AS (SELECT 1) SELECT * FROM begin", Command::Statement),
        ];
        each(cases, |(sql, expected)| {
            assert_eq!(Command::of(sql), expected, "{sql}");
        });
        let declared = Command::of("DECLARE c NO SCROLL CURSOR FOR SELECT 'x' FROM t");
        assert_eq!(declared, Command::Declare { cursor: "c".into(), sql: "SELECT 'x' FROM t".into(), hold: false });
        let held = Command::of("DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT 1");
        assert_eq!(held, Command::Declare { cursor: "c".into(), sql: "SELECT 1".into(), hold: true });
        let escaped = Command::of("declare \"for\" cursor\nfor SELECT E'\\'é', -- '\n \"a\"\"b\" FROM t");
        let query = "SELECT E'\\'é', -- '\n \"a\"\"b\" FROM t".to_owned();
        assert_eq!(escaped, Command::Declare { cursor: "for".into(), sql: query, hold: false });
        assert!(matches!(Command::of("DECLARE c BINARY CURSOR FOR SELECT 1"), Command::Refused(_)));
        assert!(matches!(Command::of("FETCH BACKWARD 1 FROM c"), Command::Refused(_)));
    }

    #[test]
    fn copies_to_the_client_are_read_with_their_options() {
        let copy = |sql| match Command::of(sql) {
            Command::Copy(copy) => copy,
            other => panic!("{sql}: {other:?}"),
        };
        assert_eq!(copy("COPY (SELECT 1 AS a) TO STDOUT (FORMAT \"binary\")").format, CopyFormat::Binary);
        let csv = copy("COPY mentions (id, title) TO STDOUT WITH (FORMAT csv, HEADER true, DELIMITER ';', NULL '-')");
        assert_eq!((csv.sql.as_str(), csv.format), ("SELECT id, title FROM mentions", CopyFormat::Csv));
        assert_eq!((csv.header, csv.delimiter, csv.null.as_deref()), (true, Some(';'), Some("-")));
        assert!(copy("COPY mentions TO STDOUT CSV HEADER").header);
        let cases = [
            ("COPY (SELECT 1 AS \"a\"\"b\") TO STDOUT", "SELECT 1 AS \"a\"\"b\""),
            (
                "/* é ( */ COPY(\n SELECT 'é)''', count(*) -- )\n FROM (VALUES ((1))) AS t )TO STDOUT (FORMAT csv)",
                "SELECT 'é)''', count(*) -- )\n FROM (VALUES ((1))) AS t",
            ),
            ("COPY (SELECT '\\' AS a, ' OR true --') TO STDOUT", "SELECT '\\' AS a, ' OR true --'"),
            ("COPY (TABLE t) TO STDOUT", "TABLE t"),
            (
                "COPY (SELECT trim(BOTH FROM x) FROM t WHERE a<-1) TO STDOUT",
                "SELECT trim(BOTH FROM x) FROM t WHERE a<-1",
            ),
            ("COPY \"é\".\"to\"\"b\" TO STDOUT", "SELECT * FROM \"é\".\"to\"\"b\""),
            ("COPY v4.mentions(\"a\"\"b\" , id ) TO STDOUT", "SELECT \"a\"\"b\" , id FROM v4.mentions"),
        ];
        each(cases, |(sql, query)| {
            assert_eq!(copy(sql).sql, query, "{sql}");
        });
        for sql in ["COPY mentions FROM STDIN", "COPY mentions TO '/tmp/x'", "COPY mentions TO STDOUT (FORMAT xml)"] {
            assert!(matches!(Command::of(sql), Command::Refused(_)), "{sql}");
        }
        for (open, close) in [("(NULL '", "')"), ("NULL '", "'")] {
            let copy = |bytes| Command::of(&format!("COPY mentions TO STDOUT {open}{}{close}", "x".repeat(bytes)));
            assert!(matches!(copy(NULL), Command::Copy(_)), "{open}");
            assert!(matches!(copy(NULL + 1), Command::Refused(line) if line.contains("too long")), "{open}");
        }
        assert!(matches!(Command::of("COPY (SELECT (1) TO STDOUT"), Command::Malformed(_)));
    }
}
