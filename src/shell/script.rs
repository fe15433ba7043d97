//! Scripts: the statements and commands of `-c`, `-f` and stdin.
//!
//! All SQL is parsed before the first statement runs, so that a typing mistake in the last line of a report costs no request.

use std::path::{Path, PathBuf};

use super::commands::Command;
use super::diagnostics::Mistake;
use super::interpreter::{Destination, Interpreter, Next, Within};
use super::output::{Format, Output};
use super::run::{Failure, Shell};
use super::splitter::pieces;
use crate::session::parse_statements;

/// Text of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Statements and commands.
    pub text: String,
    /// File that the text was read from, named in errors.
    pub path: Option<PathBuf>,
}

impl Script {
    /// Reads a file; `-` is stdin.
    ///
    /// # Errors
    /// One line naming the file.
    pub fn read(path: &Path) -> Result<Self, String> {
        if path == Path::new("-") {
            return Self::stdin();
        }
        Ok(Self { text: read_file(path)?, path: Some(path.to_owned()) })
    }

    /// Reads stdin to its end.
    ///
    /// # Errors
    /// One line.
    pub fn stdin() -> Result<Self, String> {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes)
            .map_err(|error| format!("cannot read stdin: {error}"))?;
        Ok(Self { text: decode(bytes).ok_or("cannot read stdin: not UTF-8 text")?, path: None })
    }
}

impl From<String> for Script {
    fn from(text: String) -> Self {
        Self { text, path: None }
    }
}

/// Runs scripts one after another, until a statement fails or `\q` leaves. All results go to `output`, which is completed
/// at the end. `format` is the one that the user chose, if any.
///
/// # Errors
/// [`Failure`], with one line for people. The output file then keeps its previous content.
pub async fn run_scripts(
    shell: Shell,
    scripts: &[Script],
    format: Option<Format>,
    output: Output,
) -> Result<(), Failure> {
    for script in scripts {
        check_syntax(&shell, script).await?;
    }
    let mut interpreter = Interpreter::new(shell, format, Destination::Script(output));
    for Script { text, path } in scripts {
        let within = path.as_deref().map(Within::file);
        if interpreter.run_text(text, within).await? == Next::Leave {
            break;
        }
    }
    interpreter.finish()
}

/// Parses the SQL of a script.
async fn check_syntax(shell: &Shell, script: &Script) -> Result<(), Failure> {
    let (complete, open) = pieces(&script.text);
    for piece in complete.into_iter().chain(open) {
        let wrong = match Command::parse(&piece.text) {
            Some(command) => command.err().map(Mistake::new),
            None => match parse_statements(&piece.text) {
                Ok(_) => None,
                Err(error) => Some(Mistake::of(&error, &piece.text, shell.context(), Mistake::TABLES).await),
            },
        };
        if let Some(mistake) = wrong {
            let mistake = match &script.path {
                Some(path) => mistake.in_file(path, piece.line),
                None => mistake,
            };
            return Err(Failure::Query(mistake.map_text(|text| shell.redact(text))));
        }
    }
    Ok(())
}

/// Reads a file of statements, with or without a byte order mark.
///
/// # Errors
/// One line naming the file.
pub(super) fn read_file(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    decode(bytes).ok_or_else(|| format!("cannot read {}: not UTF-8 text", path.display()))
}

fn decode(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
