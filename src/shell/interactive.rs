//! A plain prompt: statements end with a semicolon and may take several lines.

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::output::{Format, Output};
use super::run::{Failure, Shell};

const HELP: &str = "Statements end with ;   SHOW TABLES; lists the tables, DESCRIBE mentions; the columns of one,
EXPLAIN SELECT …; what a query would ask of the service.   \\q or Ctrl-D leaves, Ctrl-C cancels.";

/// Reads statements from the terminal until the user leaves.
///
/// # Errors
/// Where the terminal cannot be read.
pub async fn interact(shell: &mut Shell, format: Format) -> Result<(), Failure> {
    let terminal = |error: ReadlineError| Failure::Query(format!("cannot read the terminal: {error}"));
    let mut editor = DefaultEditor::new().map_err(terminal)?;
    eprintln!("savedsearch {}. \\? for help.", env!("CARGO_PKG_VERSION"));
    let mut pending = String::new();
    loop {
        let prompt = if pending.is_empty() { "savedsearch> " } else { "        ...> " };
        // The editor blocks; it waits on a thread of its own, so that the runtime goes on.
        let read = tokio::task::spawn_blocking(move || {
            let line = editor.readline(prompt);
            (editor, line)
        });
        let line;
        (editor, line) = read.await.map_err(|error| Failure::Query(error.to_string()))?;
        match line {
            Ok(line) => {
                pending.push_str(&line);
                pending.push('\n');
            }
            Err(ReadlineError::Interrupted) => {
                pending.clear();
                continue;
            }
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(terminal(error)),
        }
        let text = pending.trim();
        match text {
            "" => {
                pending.clear();
                continue;
            }
            "\\q" | "exit" | "quit" => return Ok(()),
            "\\?" | "help" => {
                eprintln!("{HELP}");
                pending.clear();
                continue;
            }
            _ if !text.ends_with(';') => continue,
            _ => {}
        }
        // A history that cannot take the line does not stop the statement.
        let _ = editor.add_history_entry(text);
        let statement = std::mem::take(&mut pending);
        let mut output = Output::stdout(format)?;
        let result = shell.run(&statement, &mut output).await;
        match result.and_then(|()| Ok(output.close()?)) {
            Ok(()) => {}
            Err(Failure::Query(line)) => eprintln!("error: {line}"),
            Err(Failure::Cancelled) => eprintln!("cancelled"),
            Err(Failure::ReaderGone) => return Err(Failure::ReaderGone),
        }
    }
}
