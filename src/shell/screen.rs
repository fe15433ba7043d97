//! Results on a terminal: tables that fit, a pager where they are longer than the screen, and an end where nobody reads on.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::process::{Child, ChildStdin, Command, Stdio};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use console::Term;

use super::table::{Layout, expanded};
use crate::config::variable;

/// How results are shown on a terminal.
#[derive(Debug, Clone)]
pub struct Display {
    /// Rows one below the other, a column a line.
    pub expanded: bool,
    /// Rows that are shown at most; those that were not asked for cost nothing. 0: all.
    pub rows: usize,
    /// Whether a long result goes through a pager.
    pub pager: bool,
    /// Whether texts that do not fit go on in the next line, instead of being cut.
    pub wraps: bool,
}

impl Default for Display {
    fn default() -> Self {
        Self { expanded: false, rows: 1_000, pager: true, wraps: false }
    }
}

/// What was shown of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shown {
    /// Rows that were printed.
    pub(super) rows: usize,
    /// What else there is.
    pub(super) rest: Rest,
    /// Columns for which there was no room.
    pub(super) hidden: usize,
}

/// The rows that were not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Rest {
    /// There are none.
    #[default]
    Nothing,
    /// There are some.
    Some,
    /// Nobody looked.
    Unknown,
}

/// Prints one result.
pub(super) struct Screen {
    display: Display,
    schema: SchemaRef,
    width: usize,
    height: usize,
    color: bool,
    /// Rows that wait for the width to be decided.
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

    /// Takes a batch. Breaks off where no more is wanted.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> io::Result<ControlFlow<()>> {
        let held: usize = self.held.iter().map(RecordBatch::num_rows).sum();
        let room = match self.display.rows {
            0 => usize::MAX,
            rows => rows - self.shown.rows - held,
        };
        let part = batch.slice(0, batch.num_rows().min(room));
        let enough = batch.num_rows() >= room;
        if enough {
            self.shown.rest = if batch.num_rows() > room { Rest::Some } else { Rest::Unknown };
        }
        let printed = if self.sink.is_some() {
            self.rows(&part)
        } else {
            self.held.push(part);
            if held + batch.num_rows() >= self.height { self.begin(true) } else { Ok(()) }
        };
        match printed {
            Ok(()) if enough => Ok(ControlFlow::Break(())),
            Ok(()) => Ok(ControlFlow::Continue(())),
            // Whoever read it has seen enough.
            Err(error) if self.is_paging() && error.kind() == io::ErrorKind::BrokenPipe => {
                self.shown.rest = Rest::Unknown;
                Ok(ControlFlow::Break(()))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a pager has the screen.
    pub(super) fn is_paging(&self) -> bool {
        matches!(self.sink, Some(Sink::Pager(..)))
    }

    /// Ends the result.
    pub(super) fn finish(mut self) -> io::Result<Shown> {
        if self.sink.is_none() {
            self.begin(false)?;
        }
        if let Some(layout) = &self.layout {
            let foot = layout.foot(&self.schema);
            match self.lines(&foot) {
                Err(error) if !(self.is_paging() && error.kind() == io::ErrorKind::BrokenPipe) => return Err(error),
                _ => {}
            }
        }
        if let Some(Sink::Pager(child, stdin)) = &mut self.sink {
            drop(stdin.take());
            child.wait()?;
        }
        Ok(self.shown)
    }

    /// Decides the widths by what is there, and prints it.
    fn begin(&mut self, long: bool) -> io::Result<()> {
        if !self.display.expanded {
            let layout =
                Layout::fitting(&self.schema, &self.held, self.width, self.color)?.wrapping(self.display.wraps);
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
        let lines = match &self.layout {
            Some(_) if batch.num_rows() == 0 => Vec::new(),
            Some(layout) => layout.rows(batch)?,
            None => expanded(batch, self.shown.rows)?,
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
        // A query that ends early leaves what it has given to be read.
        if let Some(Sink::Pager(child, stdin)) = &mut self.sink {
            drop(stdin.take());
            let _ = child.wait();
        }
    }
}

/// The pager of the user, or `less`; none where there is none.
fn pager() -> Option<Child> {
    let command = variable("PAGER").unwrap_or_else(|| "less".to_owned());
    let mut pager = Command::new("sh");
    pager.args(["-c", &format!("exec {command}")]).stdin(Stdio::piped());
    if variable("LESS").is_none() {
        // Colours as they are, lines cut, nothing cleared at the end.
        pager.env("LESS", "FRSX");
    }
    let found =
        Command::new("sh").args(["-c", "command -v \"${1%% *}\"", "sh", &command]).stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        return None;
    }
    pager.spawn().ok()
}
