//! Results on a terminal: tables that fit its width, a pager for long tables, and an end when the display is full or closed.

use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use console::Term;

use super::table::{Layout, expanded};
use crate::config::variable;
use crate::wording::{Rest, Shown};

/// Layout of results on a terminal.
#[derive(Debug, Clone)]
pub struct Display {
    /// Prints one column per line instead of one row per line.
    pub expanded: bool,
    /// Maximum number of rows shown; further rows are not requested. Set to 0 to show all.
    pub rows: usize,
    /// Sends long results through a pager.
    pub pager: bool,
    /// Wraps strings that do not fit instead of truncating them.
    pub wraps: bool,
}

impl Default for Display {
    fn default() -> Self {
        Self { expanded: false, rows: 1_000, pager: true, wraps: false }
    }
}

/// Prints one result.
pub(super) struct Screen {
    display: Display,
    schema: SchemaRef,
    width: usize,
    height: usize,
    color: bool,
    /// Rows held until column widths are decided.
    held: Vec<RecordBatch>,
    layout: Option<Layout>,
    sink: Option<Sink>,
    shown: Shown,
}

enum Sink {
    Terminal,
    Pager(Child, Option<ChildStdin>),
}

impl Screen {
    pub(super) fn new(display: Display, schema: SchemaRef) -> Self {
        let (height, width) = Term::stdout().size();
        Self {
            display,
            schema,
            width: width.into(),
            height: height.into(),
            color: console::colors_enabled(),
            held: Vec::new(),
            layout: None,
            sink: None,
            shown: Shown::default(),
        }
    }

    /// Takes a batch. Any result but [`Rest::Nothing`] means that no more rows are wanted.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> io::Result<Rest> {
        let room = self.room();
        let part = batch.slice(0, batch.num_rows().min(room));
        let printed = if self.sink.is_some() {
            self.rows(&part)
        } else {
            self.held.push(part);
            if self.held() >= self.height { self.begin(true) } else { Ok(()) }
        };
        match printed {
            Ok(()) if batch.num_rows() > room => Ok(Rest::Some),
            Ok(()) if batch.num_rows() == room => Ok(Rest::Unknown),
            Ok(()) => Ok(Rest::Nothing),
            // The user closed the pager.
            Err(error) if self.is_paging() && error.kind() == io::ErrorKind::BrokenPipe => Ok(Rest::Left),
            Err(error) => Err(error),
        }
    }

    /// True if a batch would be printed now instead of held.
    pub(super) fn would_print(&self, batch: &RecordBatch) -> bool {
        self.sink.is_some() || self.held() + batch.num_rows().min(self.room()) >= self.height
    }

    /// Rows still wanted.
    fn room(&self) -> usize {
        match self.display.rows {
            0 => usize::MAX,
            rows => rows.saturating_sub(self.shown.rows + self.held()),
        }
    }

    fn held(&self) -> usize {
        self.held.iter().map(RecordBatch::num_rows).sum()
    }

    fn is_paging(&self) -> bool {
        matches!(self.sink, Some(Sink::Pager(..)))
    }

    /// Completes the result.
    pub(super) fn finish(mut self) -> io::Result<Shown> {
        let printed = if self.sink.is_none() { self.begin(false) } else { Ok(()) };
        let printed = printed.and_then(|()| {
            let foot = self.layout.as_ref().map(|layout| layout.foot(&self.schema)).unwrap_or_default();
            self.lines(&foot)
        });
        match printed {
            Err(error) if !(self.is_paging() && error.kind() == io::ErrorKind::BrokenPipe) => return Err(error),
            _ => {}
        }
        if let Some(Sink::Pager(child, stdin)) = &mut self.sink {
            drop(stdin.take());
            let status = child.wait()?;
            // A pager without an exit code was ended by a signal, that is, by the user.
            if let Some(code @ 1..) = status.code() {
                let command = pager_command();
                return Err(io::Error::other(format!(
                    "pager `{command}` failed with status {code}; turn it off with \\pager off"
                )));
            }
        }
        Ok(self.shown)
    }

    /// Decides column widths by the rows held, and prints them.
    fn begin(&mut self, long: bool) -> io::Result<()> {
        if !self.display.expanded {
            let layout = Layout::fitting(&self.schema, &self.held, self.width, self.color)?;
            let layout = layout.wrapping(self.display.wraps).boxed(has_boxes());
            self.shown.hidden = layout.hidden;
            self.layout = Some(layout);
        }
        let lines = self.held.iter().map(RecordBatch::num_rows).sum::<usize>()
            * if self.display.expanded { self.schema.fields().len() + 1 } else { 1 };
        let pager = (self.display.pager && (long || lines + 4 > self.height)).then(pager).flatten();
        self.sink = Some(match pager {
            Some(mut child) => {
                let stdin = child.stdin.take();
                Sink::Pager(child, stdin)
            }
            None => Sink::Terminal,
        });
        if let Some(layout) = &self.layout {
            let head = layout.head(&self.schema);
            self.lines(&head)?;
        }
        for batch in std::mem::take(&mut self.held) {
            self.rows(&batch)?;
        }
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let lines = match &mut self.layout {
            Some(_) if batch.num_rows() == 0 => Vec::new(),
            Some(layout) => layout.rows(batch)?,
            None => expanded(batch, self.shown.rows, self.width)?,
        };
        self.shown.rows += batch.num_rows();
        self.lines(&lines)
    }

    fn lines(&mut self, lines: &[String]) -> io::Result<()> {
        let mut text = lines.join("\n");
        if !lines.is_empty() {
            text.push('\n');
        }
        match &mut self.sink {
            Some(Sink::Pager(_, Some(stdin))) => stdin.write_all(text.as_bytes()),
            _ => {
                let mut stdout = io::stdout();
                stdout.write_all(text.as_bytes())?;
                stdout.flush()
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Rows printed before a failure stay readable until the user closes the pager.
        if let Some(Sink::Pager(child, stdin)) = &mut self.sink {
            drop(stdin.take());
            let _ = child.wait();
        }
    }
}

/// True if the terminal has box characters: the locale is one of UTF-8.
fn has_boxes() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable).unwrap_or_default().to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// Shell command of the pager: `$PAGER`, or `less`.
fn pager_command() -> String {
    variable("PAGER").unwrap_or_else(|| "less".to_owned())
}

/// Starts the pager; `None` if it is not installed.
fn pager() -> Option<Child> {
    let command = pager_command();
    // Variable assignments may precede the program.
    let program = command.split_whitespace().find(|word| !word.contains('='))?;
    let mut find = Command::new("sh");
    find.args(["-c", "command -v \"$1\"", "sh", program]).stdout(Stdio::null()).stderr(Stdio::null());
    if !find.status().is_ok_and(|status| status.success()) {
        return None;
    }
    let mut pager = Command::new("sh");
    pager.args(["-c", &command]).stdin(Stdio::piped());
    if variable("LESS").is_none() {
        // Keeps colours, truncates lines, and does not clear the screen at the end.
        pager.env("LESS", "FRSX");
    }
    pager.spawn().ok()
}
