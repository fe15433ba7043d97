//! Backslash commands. A command extends to the end of its line.

use std::path::PathBuf;
use std::time::Duration;

use super::output::Format;
use crate::error::nearest;

/// Entry of the help.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) takes: &'static str,
    pub(super) what: &'static str,
}

const fn entry(name: &'static str, takes: &'static str, what: &'static str) -> Entry {
    Entry { name, takes, what }
}

/// Advice that names the command for the list of tables.
pub(super) const TABLES: &str = "\\d lists the tables";

/// All commands, in help order.
pub(super) const COMMANDS: [Entry; 19] = [
    entry("\\d", "[TABLE]", "lists tables (\\d m* by name), or the columns of a table"),
    entry("\\l", "", "lists connections"),
    entry("\\c", "[NAME]", "switches to another connection"),
    entry("\\x", "[on|off]", "toggles expanded display, one column per line"),
    entry("\\rows", "[N]", "sets the number of rows to show; 0 shows all"),
    entry("\\pager", "[on|off]", "toggles $PAGER for long results"),
    entry("\\timing", "[on|off]", "toggles times of planning and of the first row"),
    entry("\\format", "[FORMAT]", "sets the format of results"),
    entry("\\o", "[FILE]", "writes results to a file; \\o alone closes it"),
    entry("\\chart", "[SQL]", "draws the last result, or the result of a statement"),
    entry("\\cost", "SQL", "estimates requests; sends some only if estimate = 'ask'"),
    entry("\\budget", "", "shows the limits of the key, and how much is used"),
    entry("\\set", "[NAME VALUE]", "sets a variable for :name, :'name' and :\"name\"; lists them"),
    entry("\\unset", "NAME", "removes a variable"),
    entry("\\watch", "[SECONDS]", "repeats the last statement until Ctrl-C"),
    entry("\\e", "", "edits the last statement in $VISUAL or $EDITOR"),
    entry("\\i", "FILE", "runs a file of statements and commands"),
    entry("\\?", "", "shows this help"),
    entry("\\q", "", "quits, like Ctrl-D"),
];

/// Ends of a statement, for the help.
pub(super) const ENDS: [Entry; 3] = [
    entry(";", "", "ends a statement and runs it"),
    entry("\\g", "[FILE]", "in place of ; writes the result to the file"),
    entry("\\gx, \\G", "", "in place of ; shows one column per line"),
];

/// Commands of other shells that mean one of ours.
const ALIASES: [(&str, &str); 28] = [
    ("\\d+", "\\d"),
    ("\\dt", "\\d"),
    ("\\dt+", "\\d"),
    ("\\dv", "\\d"),
    ("\\describe", "\\d"),
    (".tables", "\\d"),
    (".schema", "\\d"),
    (".columns", "\\d"),
    ("\\l+", "\\l"),
    ("\\list", "\\l"),
    ("\\conninfo", "\\c"),
    ("\\connect", "\\c"),
    (".databases", "\\l"),
    (".open", "\\c"),
    (".timer", "\\timing"),
    (".mode", "\\format"),
    (".maxrows", "\\rows"),
    (".output", "\\o"),
    ("\\out", "\\o"),
    (".read", "\\i"),
    ("\\edit", "\\e"),
    (".edit", "\\e"),
    ("\\h", "\\?"),
    ("\\help", "\\?"),
    (".help", "\\?"),
    ("\\quit", "\\q"),
    (".quit", "\\q"),
    (".exit", "\\q"),
];

/// Advice on commands of other shells that have no counterpart.
const INSTEAD: [(&str, &str); 29] = [
    (".once", "end the statement with \\g FILE in place of ;"),
    ("\\pset", "use \\format, \\x, \\rows or \\pager"),
    ("\\a", "use \\format csv or \\format tsv"),
    ("\\g", "write it at the end of a statement, in place of ;"),
    ("\\gx", "write it at the end of a statement, in place of ;"),
    ("\\G", "write it at the end of a statement, in place of ;"),
    ("\\df", "use SHOW FUNCTIONS"),
    ("\\dn", "use SHOW SCHEMAS"),
    ("\\du", "users of a server are in its users file"),
    ("\\di", "tables have no indexes"),
    (".indexes", "tables have no indexes"),
    (".indices", "tables have no indexes"),
    ("\\copy", "end the statement with \\g FILE in place of ;"),
    ("\\echo", "use SELECT 'text'"),
    (".print", "use SELECT 'text'"),
    ("\\!", "run it in another terminal"),
    (".shell", "run it in another terminal"),
    (".system", "run it in another terminal"),
    (".header", "results always have headers"),
    (".headers", "results always have headers"),
    ("\\t", "results always have headers; \\format ndjson has none"),
    (".separator", "start with --csv-separator, or use \\format tsv"),
    (".nullvalue", "use coalesce(x, 'text')"),
    (".width", "tables fit the terminal; \\x shows one column per line"),
    (".import", "use CREATE TABLE name AS VALUES (…), or read the file with another program"),
    (".dump", "write a result to a file with \\o FILE, such as mentions.parquet"),
    ("\\s", "press the up key, or Ctrl-R to search earlier statements"),
    ("\\p", "press the up key, which shows the last statement"),
    ("\\r", "press Ctrl-C, which discards the statement"),
];

/// A parsed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Describe(Option<String>),
    Connections,
    Connect(Option<String>),
    Expanded(Option<bool>),
    Rows(Option<usize>),
    Pager(Option<bool>),
    Timing(Option<bool>),
    Format(Option<Format>),
    Output(Option<PathBuf>),
    Chart(Option<String>),
    Cost(String),
    Budget,
    /// Sets a variable, or lists all.
    Set(Option<(String, String)>),
    Unset(String),
    Watch(Duration),
    Edit,
    Include(PathBuf),
    Help,
    Quit,
}

/// Default interval of `\watch` in seconds. Long, since each run costs requests.
const WATCH: u64 = 60;

impl Command {
    /// Parses a line. Returns `None` if it is not a command.
    ///
    /// # Errors
    /// One line naming the expected arguments.
    pub(super) fn parse(line: &str) -> Option<Result<Self, String>> {
        let line = line.trim();
        match line.trim_end_matches(';') {
            "exit" | "quit" => return Some(Ok(Self::Quit)),
            "help" => return Some(Ok(Self::Help)),
            _ if line.starts_with('\\') => {}
            // No statement begins with a point. `.5` may continue one.
            _ if line.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic())) => {}
            _ => return None,
        }
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        Some(Self::named(name.trim_end_matches(';'), rest.trim()))
    }

    /// True if the command prints a table that belongs to the results of a script.
    pub(super) fn prints(&self) -> bool {
        matches!(self, Self::Describe(_) | Self::Connections | Self::Cost(_) | Self::Set(None))
    }

    fn named(name: &str, rest: &str) -> Result<Self, String> {
        let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own);
        if let Some((_, instead)) = INSTEAD.iter().find(|(other, _)| *other == name) {
            return Err(format!("unknown command {name}; {instead}"));
        }
        let Some(entry) = COMMANDS.iter().find(|entry| entry.name == name) else {
            let near = nearest(name, COMMANDS.iter().map(|entry| entry.name)).filter(|_| name.len() > 4);
            let near = near.map_or("\\? lists commands".to_owned(), |near| format!("did you mean {near}?"));
            return Err(format!("unknown command {name}; {near}"));
        };
        let takes = || format!("{name} expects {}, found `{rest}`", entry.takes);
        let text = || (!rest.is_empty()).then(|| rest.to_owned());
        let file = || file_name(rest);
        let word = || match rest.trim_end_matches(';').split_whitespace().collect::<Vec<_>>().as_slice() {
            [] => Ok(None),
            [word] => Ok(Some(*word)),
            _ => Err(takes()),
        };
        let switch = || match word()? {
            None => Ok(None),
            Some("on") => Ok(Some(true)),
            Some("off") => Ok(Some(false)),
            Some(_) => Err(takes()),
        };
        Ok(match name {
            "\\d" => Self::Describe(word()?.map(str::to_owned)),
            "\\c" => Self::Connect(word()?.map(str::to_owned)),
            "\\x" => Self::Expanded(switch()?),
            "\\rows" => Self::Rows(word()?.map(|word| word.parse().map_err(|_| takes())).transpose()?),
            "\\pager" => Self::Pager(switch()?),
            "\\timing" => Self::Timing(switch()?),
            "\\format" => Self::Format(word()?.map(str::parse).transpose()?),
            "\\o" => Self::Output(output_file(rest)?),
            "\\chart" => Self::Chart(text()),
            "\\cost" => Self::Cost(text().ok_or_else(|| format!("{name} expects a statement"))?),
            "\\set" => Self::Set(text().map(|text| variable(text.trim_end_matches(';')))),
            "\\unset" => Self::Unset(word()?.ok_or_else(|| format!("{name} expects a variable"))?.to_owned()),
            "\\watch" => {
                let seconds = word()?.map_or(Ok(WATCH), |word| word.parse().map_err(|_| takes()))?;
                Self::Watch(Duration::from_secs(
                    Some(seconds).filter(|seconds| (1..=86_400).contains(seconds)).ok_or_else(takes)?,
                ))
            }
            "\\i" => Self::Include(file().ok_or_else(|| format!("{name} expects a file name"))?),
            // Other shells have help on a word.
            "\\?" => Self::Help,
            _ if !rest.trim_end_matches(';').is_empty() => {
                return Err(format!("{name} takes no argument, found `{rest}`"));
            }
            "\\l" => Self::Connections,
            "\\budget" => Self::Budget,
            "\\e" => Self::Edit,
            _ => Self::Quit,
        })
    }
}

/// The file that the rest of a line names, if there is a rest.
fn file_name(rest: &str) -> Option<PathBuf> {
    // Completion escapes blanks.
    let name = rest.trim().trim_end_matches(';').trim_end().replace("\\ ", " ");
    (!name.is_empty()).then(|| name.into())
}

/// The file for results that the rest of a line names, if there is a rest.
///
/// # Errors
/// One line, if it names a command instead.
pub(super) fn output_file(rest: &str) -> Result<Option<PathBuf>, String> {
    match rest.trim_start().starts_with('|') {
        true => Err("results go to a file; pipe the program's output instead: savedsearch sql … | …".to_owned()),
        false => Ok(file_name(rest)),
    }
}

/// Splits the name of a variable from its value, which may be quoted like a string of SQL.
fn variable(text: &str) -> (String, String) {
    let (name, value) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let value = value.trim();
    let quoted = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''));
    (name.to_owned(), quoted.map_or(value.to_owned(), |value| value.replace("''", "'")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    fn parsed(line: &str) -> Result<Command, String> {
        Command::parse(line).expect("a command")
    }

    #[test]
    fn a_line_is_a_command_or_none() {
        assert_eq!(Command::parse("SELECT '\\d'"), None);
        assert_eq!(Command::parse("exit_code"), None);
        assert_eq!(parsed("  \\d  mentions ; "), Ok(Command::Describe(Some("mentions".into()))));
        assert_eq!(parsed("\\d"), Ok(Command::Describe(None)));
        assert_eq!(parsed("quit;"), Ok(Command::Quit));
        assert_eq!(parsed("\\q;"), Ok(Command::Quit));
        assert_eq!(parsed(".exit"), Ok(Command::Quit));
        assert_eq!(parsed("\\h SELECT"), Ok(Command::Help));
        assert!(parsed("\\o | cat").unwrap_err().contains("to a file"));
        assert_eq!(parsed("\\o a.csv;"), Ok(Command::Output(Some("a.csv".into()))));
        assert_eq!(parsed("\\dt mentions"), Ok(Command::Describe(Some("mentions".into()))));
        assert_eq!(parsed(".tables"), Ok(Command::Describe(None)));
        assert_eq!(parsed(".read a.sql"), Ok(Command::Include("a.sql".into())));
        assert_eq!(Command::parse(".5 + 1"), None);
        for (alias, own) in ALIASES {
            assert!(COMMANDS.iter().any(|entry| entry.name == own), "{alias}");
        }
        for (line, value) in [("\\set a  b c ;", "b c"), ("\\set a 'it''s; b'", "it's; b"), ("\\set a", "")] {
            assert_eq!(parsed(line), Ok(Command::Set(Some(("a".to_owned(), value.to_owned())))), "{line}");
        }
        assert_eq!(parsed("\\set"), Ok(Command::Set(None)));
        assert_eq!(parsed("\\x off"), Ok(Command::Expanded(Some(false))));
        assert_eq!(parsed("\\watch"), Ok(Command::Watch(Duration::from_secs(60))));
        assert_eq!(parsed("\\cost SELECT 1; SELECT 2"), Ok(Command::Cost("SELECT 1; SELECT 2".into())));
        assert_eq!(parsed("\\o a file.csv"), Ok(Command::Output(Some("a file.csv".into()))));
    }

    #[test]
    fn wrong_arguments_are_named() {
        let cases = [
            ("\\foo", "unknown command \\foo; \\? lists commands"),
            (".width 3", "unknown command .width; tables fit the terminal; \\x shows one column per line"),
            (".headers on", "unknown command .headers; results always have headers"),
            (".separator ;", "start with --csv-separator, or use \\format tsv"),
            (".nullvalue -", "use coalesce(x, 'text')"),
            (".import a.csv a", "use CREATE TABLE name AS VALUES (…)"),
            (".dump", "write a result to a file with \\o FILE"),
            ("\\t", "\\format ndjson has none"),
            ("\\s", "press the up key"),
            ("\\p", "press the up key"),
            ("\\du", "users of a server are in its users file"),
            ("\\unset", "\\unset expects a variable"),
            (".once a.csv", "end the statement with \\g FILE in place of ;"),
            ("\\gx", "write it at the end of a statement, in place of ;"),
            ("\\timeing", "did you mean \\timing?"),
            ("\\x perhaps", "\\x expects [on|off], found `perhaps`"),
            ("\\watch 0", "\\watch expects [SECONDS], found `0`"),
            ("\\rows -1", "\\rows expects [N]"),
            ("\\l all", "\\l takes no argument"),
            ("\\cost", "\\cost expects a statement"),
            ("\\format tables", "unknown format `tables`"),
            ("\\d a b", "\\d expects [TABLE]"),
        ];
        each(cases, |(line, said)| {
            let found = parsed(line).expect_err(line);
            assert!(found.contains(said), "{line}: {found}");
        });
    }
}
