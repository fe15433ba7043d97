//! `sync --on-new COMMAND`: hands new mentions to a command, as NDJSON on its stdin.
//!
//! The cursor of the command advances only after it ended with status 0. If this process ends before, the next one hands the
//! same mentions over again.

use std::fmt;
use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::json::WriterBuilder;
use arrow::json::writer::LineDelimited;
use datafusion_saved_search::{Connection, Error, ErrorKind, NewMentions};

use super::blocking;
use crate::Exit;

/// Time between two looks at a command that is running.
const PAUSE: Duration = Duration::from_millis(20);

/// A command, and the mentions that it has not had yet.
pub(super) struct HandOver {
    command: Arc<str>,
    new: NewMentions,
    /// The command, while it runs.
    running: Arc<Mutex<Option<Child>>>,
}

/// Result of handing mentions over.
#[derive(Debug, Default)]
pub(super) struct Handed {
    /// Number of new mentions; `None` without a receiver.
    pub(super) mentions: Option<u64>,
    /// Set if mentions that the receiver may have had are among them.
    pub(super) repeats: bool,
    /// Failure of the receiver.
    pub(super) failure: Option<String>,
}

/// As the end of a line about a synchronization.
impl fmt::Display for Handed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(mentions) = self.mentions else { return Ok(()) };
        write!(f, " · new mentions: {mentions}")?;
        if self.repeats && mentions > 0 {
            write!(f, " (some may be repeated: an older version of this program wrote to the store)")?;
        }
        match &self.failure {
            Some(failure) => write!(f, "; {failure}"),
            None => Ok(()),
        }
    }
}

impl HandOver {
    /// Prepares a command for the new mentions of some saved searches, or of all. What the store has at present is not new the
    /// first time.
    pub(super) fn begin(connection: &Arc<Connection>, command: &str, aids: &[String]) -> Result<Self, Error> {
        let new = NewMentions::begin(connection, command, aids)?;
        Ok(Self { command: command.into(), new, running: Arc::default() })
    }

    /// Runs the command, if there are new mentions.
    pub(super) async fn run(&self) -> Result<Handed, Exit> {
        let Self { command, new, running } = self;
        let (command, new, running) = (Arc::clone(command), new.clone(), Arc::clone(running));
        blocking(move || hand_over(&command, &new, &running)).await
    }

    /// Ends the command, because this process received a signal.
    pub(super) fn stop(&self) {
        end(&self.running);
    }
}

fn hand_over(command: &str, new: &NewMentions, running: &Mutex<Option<Child>>) -> Result<Handed, Error> {
    let mut begun = false;
    let mut stdin: Option<ChildStdin> = None;
    let read = new.read(|batch| {
        if !begun {
            (begun, stdin) = (true, start(command, running)?);
        }
        // A command that reads no further decides itself whether it has failed.
        if let Some(open) = &mut stdin
            && open.write_all(&lines(&batch)?).is_err()
        {
            stdin = None;
        }
        Ok(())
    });
    drop(stdin);
    let read = match read {
        Ok(read) => read,
        Err(error) => {
            end(running);
            return Err(error);
        }
    };
    let handed = Handed { mentions: Some(read.mentions), repeats: read.repeats, failure: None };
    match wait(running).map_err(cannot_run)? {
        Some(status) if !status.success() => {
            let failure = format!("the command failed ({status}); it gets the same mentions again next time");
            Ok(Handed { failure: Some(failure), ..handed })
        }
        _ => new.advance(&read).map(|()| handed),
    }
}

/// Mentions as lines of JSON.
pub(super) fn lines(batch: &RecordBatch) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(&mut bytes);
    let written = writer.write(batch).and_then(|()| writer.finish());
    written.map_err(|error| Error::new(ErrorKind::Output, error.to_string()))?;
    Ok(bytes)
}

/// Starts a command in `sh`. Returns its stdin.
pub(super) fn start(command: &str, running: &Mutex<Option<Child>>) -> Result<Option<ChildStdin>, Error> {
    let mut process = Command::new("sh");
    let mut child = process.args(["-c", command]).stdin(Stdio::piped()).spawn().map_err(cannot_run)?;
    let stdin = child.stdin.take();
    *running.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
    Ok(stdin)
}

/// The error of a command that cannot be run.
pub(super) fn cannot_run(error: io::Error) -> Error {
    Error::new(ErrorKind::Output, format!("cannot run sh: {error}"))
}

/// Waits for the command to end; `None` if there is none, or if it was ended by [`end`].
pub(super) fn wait(running: &Mutex<Option<Child>>) -> io::Result<Option<ExitStatus>> {
    loop {
        let mut child = running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ended) = child.as_mut().map(Child::try_wait) else { return Ok(None) };
        if let Some(status) = ended? {
            *child = None;
            return Ok(Some(status));
        }
        drop(child);
        thread::sleep(PAUSE);
    }
}

/// Ends the command.
pub(super) fn end(running: &Mutex<Option<Child>>) {
    if let Some(child) = running.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        // It may have ended by itself.
        let _ = child.kill();
    }
}
