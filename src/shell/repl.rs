//! Interactive prompt: reads statements and commands until the user quits.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::task::AbortOnDropHandle;

use super::commands::Command;
use super::interpreter::{Destination, Interpreter, Next};
use super::line_editor::LineEditor;
use super::output::{Format, OutputOptions};
use super::run::{Failure, Shell};
use super::splitter::{ending, inputs, is_inside_token, open_token};

/// Reads statements and commands from the terminal until the user quits. Requires a multi-threaded runtime, on the thread
/// that `block_on` occupies.
///
/// # Errors
/// The terminal cannot be read, or stdout was closed by its reader.
pub async fn interact(shell: Shell, format: Option<Format>, options: OutputOptions) -> Result<(), Failure> {
    let terminal = |error: ReadlineError| Failure::line(format!("cannot read the terminal: {error}"));
    let mut editor = LineEditor::new().map_err(terminal)?;
    let quiet = shell.is_quiet();
    let mut interpreter = Interpreter::new(shell, format, Destination::Prompt).with(options);
    // Interrupts now go to the owner of the terminal: the line editor, a query or a pager.
    let _interrupts = signal(SignalKind::interrupt())?;
    let before = tcgetattr(io::stdin()).ok();
    let _ending = AbortOnDropHandle::new(tokio::spawn(end_on_signal(before, interpreter.unfinished())));
    if !quiet {
        eprintln!("savedsearch {}. Statements end with ;   \\? for help, \\d for tables.", env!("CARGO_PKG_VERSION"));
    }
    // Lines of a statement that has not ended yet.
    let mut pending = String::new();
    loop {
        let words = interpreter.words().await;
        editor.set_context(words, &pending);
        let name = interpreter.connection_name();
        let prompt = match (pending.is_empty(), open_token(&pending)) {
            (true, _) => format!("{name}> "),
            (false, None) => format!("{name}-> "),
            (false, Some(open)) => format!("{name}{open}> "),
        };
        let initial = interpreter.take_edited();
        // Stay on this thread, which receives the terminal's signals; the other workers take over its tasks.
        let line = match tokio::task::block_in_place(|| editor.read(&prompt, &initial)) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                pending.clear();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(terminal(error)),
        };
        if !quiet && let Some(hint) = instead_of_quitting(&pending, &line) {
            eprintln!("note: {hint}");
        }
        // As in psql, a command may be typed in the middle of a statement, which then continues.
        let command = !pending.is_empty() && line.trim_start().starts_with('\\') && !is_inside_token(&pending);
        let result = if command && ending(&line).is_none() && Command::parse(&line).is_some() {
            interpreter.run_text(&line, None).await
        } else {
            if !pending.is_empty() {
                pending.push('\n');
            }
            pending.push_str(&line);
            let (complete, open) = inputs(&pending);
            if open.is_none() {
                editor.remember(&pending);
            }
            pending = open.map(|input| input.text).unwrap_or_default();
            interpreter.run_inputs(complete, None).await
        };
        match result {
            Ok(Next::Prompt) => {}
            Ok(Next::Leave) => break,
            Err(Failure::ReaderGone) => return Err(Failure::ReaderGone),
            Err(failure) => {
                // The rest of a pasted script is not run after a failure.
                interpreter.report(failure);
            }
        }
    }
    interpreter.finish()
}

/// Hint for a line that quits elsewhere, and is a part of an unfinished statement here; `None` for other lines.
fn instead_of_quitting(pending: &str, line: &str) -> Option<String> {
    let is_command = !is_inside_token(pending) && line.trim_start().starts_with('\\');
    if pending.is_empty() || is_command || Command::parse(line) != Some(Ok(Command::Quit)) {
        return None;
    }
    let what = match open_token(pending) {
        Some('*') => "a comment".to_owned(),
        Some(quote) => format!("what {quote} begins"),
        None => "an unfinished statement".to_owned(),
    };
    Some(format!("`{}` is a part of {what}; Ctrl-C discards the statement, Ctrl-D quits", line.trim()))
}

/// Exits on SIGTERM and SIGHUP after restoring the terminal and removing the partial output file. The line editor cannot be
/// cancelled: it blocks on a key press.
async fn end_on_signal(before: Option<Termios>, unfinished: Arc<Mutex<Option<PathBuf>>>) {
    const SIGNALLED: i32 = 128;
    let (Ok(mut terminate), Ok(mut hang_up)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup())) else {
        return;
    };
    let number = tokio::select! {
        _ = terminate.recv() => SignalKind::terminate().as_raw_value(),
        _ = hang_up.recv() => SignalKind::hangup().as_raw_value(),
    };
    if let Some(before) = before {
        // If the terminal is closed, a failure cannot be reported.
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &before);
    }
    if let Some(partial) = unfinished.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
        let _ = std::fs::remove_file(partial);
    }
    std::process::exit(SIGNALLED + number);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_does_not_quit_is_explained() {
        let ends = "; Ctrl-C discards the statement, Ctrl-D quits";
        for (pending, line, part) in [
            ("SELECT 'x", "\\q", "`\\q` is a part of what ' begins"),
            ("SELECT \"x", " exit; ", "`exit;` is a part of what \" begins"),
            ("SELECT 1 /* x", "quit", "`quit` is a part of a comment"),
            ("SELECT 1", "exit", "`exit` is a part of an unfinished statement"),
        ] {
            assert_eq!(instead_of_quitting(pending, line), Some(format!("{part}{ends}")), "{pending}");
        }
        for (pending, line) in [("", "exit"), ("SELECT 1", "\\q"), ("SELECT 'x", "exits"), ("SELECT 'x", "';")] {
            assert_eq!(instead_of_quitting(pending, line), None, "{pending} {line}");
        }
    }
}
