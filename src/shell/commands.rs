//! What may be typed beside SQL: commands begin with a backslash, and take the rest of their line.

use std::path::PathBuf;
use std::time::Duration;

use super::output::Format;
use crate::error::nearest;

/// A command, as the help has it.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) takes: &'static str,
    pub(super) what: &'static str,
}

const fn entry(name: &'static str, takes: &'static str, what: &'static str) -> Entry {
    Entry { name, takes, what }
}

/// All commands, in the order of the help.
pub(super) const COMMANDS: [Entry; 17] = [
    entry("\\d", "[TABLE]", "tables; or the columns of one, and what the service is sent of them"),
    entry("\\l", "", "connections"),
    entry("\\c", "[NAME]", "asks another connection from now on"),
    entry("\\x", "[on|off]", "rows one below the other, a column a line"),
    entry("\\rows", "[N]", "rows that are shown at most; 0: all"),
    entry("\\pager", "[on|off]", "whether results longer than the screen go through $PAGER"),
    entry("\\timing", "[on|off]", "whether it is said where the time went"),
    entry("\\format", "[FORMAT]", "how results are printed"),
    entry("\\o", "[FILE]", "results go to a file, until \\o alone ends it"),
    entry("\\chart", "[SQL]", "draws the last result, without a request, or a statement's"),
    entry("\\cost", "SQL", "what a statement would cost, without a request"),
    entry("\\budget", "", "what the key may spend, and what of it is spent"),
    entry("\\watch", "[SECONDS]", "runs the last statement again and again, until Ctrl-C"),
    entry("\\e", "", "edits the last statement in $VISUAL or $EDITOR"),
    entry("\\i", "FILE", "runs the statements and commands of a file"),
    entry("\\?", "", "this help"),
    entry("\\q", "", "leaves, as Ctrl-D does"),
];

/// A command with what it takes.
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
    Watch(Duration),
    Edit,
    Include(PathBuf),
    Help,
    Quit,
}

/// Seconds between the runs of `\watch`, where it is not said: each of them costs requests.
const WATCH: u64 = 60;

impl Command {
    /// The command of a line, if it is one.
    ///
    /// # Errors
    /// One line that says what the command takes.
    pub(super) fn parse(line: &str) -> Option<Result<Self, String>> {
        let line = line.trim();
        match line.trim_end_matches(';') {
            "exit" | "quit" => return Some(Ok(Self::Quit)),
            "help" => return Some(Ok(Self::Help)),
            _ if !line.starts_with('\\') => return None,
            _ => {}
        }
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        Some(Self::named(name.trim_end_matches(';'), rest.trim()))
    }

    fn named(name: &str, rest: &str) -> Result<Self, String> {
        let Some(entry) = COMMANDS.iter().find(|entry| entry.name == name) else {
            let near = nearest(name, COMMANDS.iter().map(|entry| entry.name)).filter(|_| name.len() > 4);
            let near = near.map_or("\\? lists them".to_owned(), |near| format!("did you mean {near}?"));
            return Err(format!("there is no command {name}: {near}"));
        };
        let takes = || format!("{name} takes {}, found `{rest}`", entry.takes);
        let text = || (!rest.is_empty()).then(|| rest.to_owned());
        let file = || Some(rest.trim_end_matches(';').trim_end()).filter(|name| !name.is_empty());
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
            "\\o" => Self::Output(file().map(PathBuf::from)),
            "\\chart" => Self::Chart(text()),
            "\\cost" => Self::Cost(text().ok_or_else(|| format!("{name} takes a statement"))?),
            "\\watch" => {
                let seconds = word()?.map_or(Ok(WATCH), |word| word.parse().map_err(|_| takes()))?;
                Self::Watch(Duration::from_secs(
                    Some(seconds).filter(|seconds| (1..=86_400).contains(seconds)).ok_or_else(takes)?,
                ))
            }
            "\\i" => Self::Include(file().ok_or_else(|| format!("{name} takes the name of a file"))?.into()),
            _ if !rest.trim_end_matches(';').is_empty() => return Err(format!("{name} takes nothing, found `{rest}`")),
            "\\l" => Self::Connections,
            "\\budget" => Self::Budget,
            "\\e" => Self::Edit,
            "\\q" => Self::Quit,
            _ => Self::Help,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(parsed("\\o a.csv;"), Ok(Command::Output(Some("a.csv".into()))));
        assert_eq!(parsed("\\x off"), Ok(Command::Expanded(Some(false))));
        assert_eq!(parsed("\\watch"), Ok(Command::Watch(Duration::from_secs(60))));
        assert_eq!(parsed("\\cost SELECT 1; SELECT 2"), Ok(Command::Cost("SELECT 1; SELECT 2".into())));
        assert_eq!(parsed("\\o a file.csv"), Ok(Command::Output(Some("a file.csv".into()))));
    }

    #[test]
    fn what_is_wrong_with_a_command_is_said() {
        for (line, said) in [
            ("\\foo", "there is no command \\foo: \\? lists them"),
            ("\\timeing", "did you mean \\timing?"),
            ("\\x perhaps", "\\x takes [on|off], found `perhaps`"),
            ("\\watch 0", "\\watch takes [SECONDS], found `0`"),
            ("\\rows -1", "\\rows takes [N]"),
            ("\\l all", "\\l takes nothing"),
            ("\\cost", "\\cost takes a statement"),
            ("\\format tables", "`tables` is no format"),
            ("\\d a b", "\\d takes [TABLE]"),
        ] {
            let found = parsed(line).expect_err(line);
            assert!(found.contains(said), "{line}: {found}");
        }
    }
}
