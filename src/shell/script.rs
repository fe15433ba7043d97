//! Scripts: the statements and commands of `-c`, `-f` and stdin.
//!
//! All SQL is parsed before the first statement runs, so that a typing mistake in the last line of a report costs no request.

use std::path::{Path, PathBuf};

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;

use super::commands::{Command, TABLES};
use super::interpreter::{DEEPEST, Destination, Interpreter, Next, Within};
use super::output::{Format, Output, one_result};
use super::run::{Failure, Shell};
use super::splitter::inputs;
use super::variables::Variables;
use crate::session::parse_statements;
use crate::wording::Mistake;

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

impl Script {
    /// True if a statement or command of the script chooses the format of results, or a file, or may do so in another file.
    pub fn chooses_formats(&self) -> bool {
        let (complete, open) = inputs(&self.text);
        complete.iter().chain(&open).any(|input| match Command::parse(&input.text) {
            Some(Ok(command)) => {
                matches!(command, Command::Format(_) | Command::Output(_) | Command::Chart(_) | Command::Include(_))
            }
            _ => input.ending.file != Ok(None),
        })
    }
}

impl From<String> for Script {
    fn from(text: String) -> Self {
        Self { text, path: None }
    }
}

/// Runs scripts one after another, until a statement fails or `\q` quits. All results go to `output`, which is completed at
/// the end. `format` is the format that the user chose, if any.
///
/// # Errors
/// [`Failure`], with one line for people. The output file then keeps its previous content.
pub async fn run_scripts(
    mut shell: Shell,
    scripts: &[Script],
    format: Option<Format>,
    output: Output,
) -> Result<(), Failure> {
    let mut known = Known { variables: shell.variables().clone(), whole: true };
    for script in scripts {
        check_syntax(&shell, script, &mut known).await?;
    }
    check_files(scripts, format, &output, shell.variables().clone())?;
    let mut interpreter = Interpreter::new(shell, format, Destination::Script(Box::new(output)));
    for Script { text, path } in scripts {
        let within = path.as_deref().map(Within::file);
        if interpreter.run_text(text, within).await? == Next::Leave {
            break;
        }
    }
    interpreter.finish()
}

/// Variables, as far as they are known before a script runs.
struct Known {
    variables: Variables,
    /// Unset once an included file may have set further ones.
    whole: bool,
}

/// Parses the SQL of a script.
async fn check_syntax(shell: &Shell, script: &Script, known: &mut Known) -> Result<(), Failure> {
    let (complete, open) = inputs(&script.text);
    for input in complete.into_iter().chain(open) {
        let wrong = match Command::parse(&input.text) {
            Some(Ok(command)) => match command {
                Command::Set(Some((name, value))) => known.variables.set(&name, &value).err().map(Mistake::new),
                Command::Unset(name) => {
                    known.variables.unset(&name);
                    None
                }
                Command::Include(_) => {
                    known.whole = false;
                    None
                }
                _ => None,
            },
            Some(Err(wrong)) => Some(Mistake::new(wrong)),
            None if let Err(wrong) = input.ending.file => Some(Mistake::new(wrong)),
            None => match known.variables.expand(&input.text) {
                Err(_) if !known.whole => None,
                Err(wrong) => Some(Mistake::new(wrong)),
                Ok(text) => match parse_statements(&text) {
                    Ok(_) => None,
                    Err(error) => Some(Mistake::of(&error, &text, shell.context(), TABLES).await),
                },
            },
        };
        if let Some(mistake) = wrong {
            let mistake = match &script.path {
                Some(path) => mistake.in_file(path, input.line),
                None => mistake,
            };
            return Err(Failure::Query(mistake.map_text(|text| shell.redact(text))));
        }
    }
    Ok(())
}

/// Refuses several results for one file whose format holds a single one, before the first statement runs.
fn check_files(
    scripts: &[Script],
    format: Option<Format>,
    output: &Output,
    variables: Variables,
) -> Result<(), Failure> {
    let mut written = Written { format, main: 0, other: None, variables };
    for script in scripts {
        written.count(&script.text, 0, output)?;
    }
    Ok(())
}

/// Results that a script will write: to its output, and to the open `\\o` file or that of a `\\g`. Whatever is not known beforehand, such as the
/// format of a file without an extension, is left to the run, which refuses as well.
struct Written {
    format: Option<Format>,
    main: usize,
    other: Option<(Option<Format>, usize)>,
    variables: Variables,
}

impl Written {
    fn count(&mut self, text: &str, depth: usize, output: &Output) -> Result<(), Failure> {
        let (complete, open) = inputs(text);
        for input in complete.into_iter().chain(open) {
            match Command::parse(&input.text) {
                Some(Ok(Command::Output(to))) => self.other = to.map(|path| (self.format_of(&path), 0)),
                Some(Ok(Command::Include(path))) if depth < DEEPEST => {
                    // A file that cannot be read fails when its turn comes.
                    if let Ok(text) = read_file(&path) {
                        self.count(&text, depth + 1, output)?;
                    }
                }
                // A name that is wrong was refused before.
                Some(Ok(Command::Set(Some((name, value))))) => drop(self.variables.set(&name, &value)),
                // Tables of commands go to the output of the script, but not to an open file.
                Some(Ok(command)) if self.other.is_none() && command.prints() => self.add(1, output)?,
                Some(_) => {}
                None => {
                    let text = self.variables.expand(&input.text).unwrap_or_default();
                    let statements = parse_statements(&text).unwrap_or_default();
                    let results = statements.iter().filter(|statement| has_result(statement)).count();
                    let Ok(Some(file)) = input.ending.file else {
                        self.add(results, output)?;
                        continue;
                    };
                    let own = Some((self.format_of(&file), 0));
                    let open = std::mem::replace(&mut self.other, own);
                    self.add(results, output)?;
                    self.other = open;
                }
            }
        }
        Ok(())
    }

    /// The format in which a file will be written, if it is known beforehand.
    fn format_of(&self, path: &Path) -> Option<Format> {
        self.format.or_else(|| Format::of_file(path).ok().flatten())
    }

    fn add(&mut self, results: usize, output: &Output) -> Result<(), Failure> {
        let (format, count) = match &mut self.other {
            Some((Some(format), count)) => (*format, count),
            Some((None, _)) => return Ok(()),
            None if !output.is_file() => return Ok(()),
            None => (output.format(), &mut self.main),
        };
        *count += results;
        match *count > 1 && !format.holds_several() {
            true => Err(Failure::line(one_result(format))),
            false => Ok(()),
        }
    }
}

/// True for statements that certainly have a result.
fn has_result(statement: &Statement) -> bool {
    match statement {
        Statement::Statement(statement) => matches!(
            statement.as_ref(),
            ast::Statement::Query(_)
                | ast::Statement::ShowTables { .. }
                | ast::Statement::ShowColumns { .. }
                | ast::Statement::ShowVariable { .. }
                | ast::Statement::ExplainTable { .. }
                | ast::Statement::Execute { .. }
        ),
        Statement::Explain(_) => true,
        _ => false,
    }
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
