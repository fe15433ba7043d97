//! The prompt: reads statements and commands until the user leaves.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use console::style;
use datafusion::error::DataFusionError;
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::task::AbortOnDropHandle;

use super::commands::{COMMANDS, Command};
use super::completion::Words;
use super::diagnostics::Mistake;
use super::line_editor::Typist;
use super::name_cache;
use super::output::{Format, Output};
use super::report::counted;
use super::run::{Failure, Kept, Reports, Shell, write};
use super::schema;
use super::screen::Display;
use super::splitter::{Piece, pieces};
use crate::config::variable;
use crate::error::{describe, one_line};

/// Files that include each other deeper than this include each other for ever.
const DEEPEST: usize = 16;

const HELP: &str = "Statements end with ; and may take several lines. EXPLAIN SELECT … says what the
service will be asked. Tab completes, aids by the names of the last list too.
Ctrl-C drops a line or cancels a query, Ctrl-R searches, Ctrl-D leaves.";

/// Reads statements and commands from the terminal until the user leaves. Runs on a multi-threaded runtime, in the future
/// that it blocks on.
///
/// # Errors
/// Where the terminal cannot be read, or nobody reads what is printed.
pub async fn interact(shell: Shell, format: Format) -> Result<(), Failure> {
    let terminal = |error: ReadlineError| Failure::line(format!("cannot read the terminal: {error}"));
    let mut typist = Typist::new().map_err(terminal)?;
    let mut repl = Repl::new(shell, format);
    // From now on an interrupt is for what has the terminal: the editor of the line, a query, a pager.
    let _interrupts = signal(SignalKind::interrupt())?;
    let before = tcgetattr(io::stdin()).ok();
    let _ending = AbortOnDropHandle::new(tokio::spawn(end_on_signal(before, Arc::clone(&repl.unfinished))));
    eprintln!("savedsearch {}. Statements end with ;   \\? for help, \\d for the tables.", env!("CARGO_PKG_VERSION"));
    loop {
        let words = repl.words().await;
        typist.know(words);
        let prompt = format!("{}> ", repl.shell.connection_name());
        let begun = std::mem::take(&mut repl.begun);
        // On this thread, which has the signals of the terminal; others take over what it did.
        let text = match tokio::task::block_in_place(|| typist.read(&prompt, &begun)) {
            Ok(text) => text,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(terminal(error)),
        };
        match repl.take(&text, None).await {
            Ok(Next::Prompt) => {}
            Ok(Next::Leave) => break,
            Err(Failure::ReaderGone) => return Err(Failure::ReaderGone),
            Err(failure) => repl.told(failure),
        }
    }
    repl.end_file()
}

/// Ends the process on SIGTERM and SIGHUP, with the terminal as it was before and nothing half written left behind. The line
/// editor cannot be waited out: it waits for a key.
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
        // There is nobody to tell where the terminal has gone.
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &before);
    }
    if let Some(partial) = unfinished.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
        let _ = std::fs::remove_file(partial);
    }
    std::process::exit(SIGNALLED + number);
}

/// What comes after a line.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Prompt,
    Leave,
}

/// A file that is run, and how many are around it.
#[derive(Debug, Clone, Copy)]
struct Within<'f> {
    path: &'f Path,
    depth: usize,
}

/// What holds from line to line.
struct Repl {
    shell: Shell,
    format: Format,
    display: Display,
    reports: Reports,
    /// Where results go instead of the terminal.
    file: Option<(PathBuf, Output)>,
    /// The file that does not have its name yet.
    unfinished: Arc<Mutex<Option<PathBuf>>>,
    /// The statement that was run last.
    last: String,
    /// What the next prompt begins with.
    begun: String,
    /// The saved searches that were written down.
    remembered: Option<Vec<(String, String)>>,
}

impl Repl {
    fn new(mut shell: Shell, format: Format) -> Self {
        let reports = Reports::default();
        shell.report(reports);
        let (display, last, begun) = (Display::default(), String::new(), String::new());
        Self { shell, format, display, reports, file: None, unfinished: Arc::default(), last, begun, remembered: None }
    }

    /// The saved searches of the last list: of this session, or of one before it.
    fn searches(&mut self) -> Vec<(String, String)> {
        let client = self.shell.connection().client();
        let known = self.shell.connection().known_searches();
        let name = client.key_name();
        let Some(known) = known else {
            return name_cache::recall(&name);
        };
        if self.remembered.as_ref() != Some(&known) {
            name_cache::remember(&name, &known);
            self.remembered = Some(known.clone());
        }
        known
    }

    /// What may be typed now.
    async fn words(&mut self) -> Words {
        let searches = self.searches();
        let connections = self.shell.connections().iter().map(|(name, _)| name.clone()).collect();
        Words::of(self.shell.context(), self.shell.connection(), searches, connections).await
    }

    /// Runs what was typed, or a file: commands and statements, one after another.
    async fn take(&mut self, text: &str, within: Option<Within<'_>>) -> Result<Next, Failure> {
        let (pieces, open) = pieces(text);
        // A file may leave out the last semicolon.
        for Piece { line, text } in pieces.into_iter().chain(open) {
            let next = match Command::parse(&text) {
                Some(Ok(command)) => {
                    if let Command::Chart(Some(_)) = command {
                        text.trim().clone_into(&mut self.last);
                    }
                    Box::pin(self.obey(command, within.map_or(0, |within| within.depth))).await
                }
                Some(Err(wrong)) => Err(Failure::line(wrong)),
                None => {
                    text.trim().clone_into(&mut self.last);
                    self.run(&text).await.map(|()| Next::Prompt)
                }
            };
            match (next, within) {
                (Ok(Next::Prompt), _) => {}
                (Err(Failure::Query(Mistake { line: what, marked })), Some(Within { path, .. })) => {
                    let what = format!("{}: line {line}: {what}", path.display());
                    return Err(Failure::Query(Mistake { line: what, marked }));
                }
                (other, _) => return other,
            }
        }
        Ok(Next::Prompt)
    }

    /// Runs statements, whose results go to the file or to the terminal.
    async fn run(&mut self, text: &str) -> Result<(), Failure> {
        let Some((path, file)) = &mut self.file else {
            let mut output = self.screen(self.format)?;
            return self.shell.run(text, &mut output).await;
        };
        let result = self.shell.run(text, file).await;
        if let Err(Failure::ReaderGone) = result {
            let line = format!("nobody reads {} any more: results go to the terminal again", path.display());
            self.file = None;
            return Err(Failure::line(line));
        }
        if result.is_err() {
            // What was written before stays.
            file.take_back()?;
        }
        result
    }

    /// Says what went wrong, and goes on.
    fn told(&self, failure: Failure) {
        match failure {
            Failure::Query(Mistake { line, marked }) => {
                marked.iter().flatten().for_each(|line| eprintln!("{line}"));
                let line = self.shell.redact(one_line(&line));
                eprintln!("{} {line}", style("error:").for_stderr().red().bold());
            }
            Failure::Cancelled => eprintln!("cancelled"),
            Failure::ReaderGone => {}
        }
    }

    fn screen(&self, format: Format) -> io::Result<Output> {
        Ok(Output::stdout(format)?.displaying(self.display.clone()))
    }

    /// Shows a table that is there.
    fn show(&self, batches: &[RecordBatch]) -> Result<(), Failure> {
        let Some(first) = batches.first() else { return Ok(()) };
        let display = Display { expanded: false, rows: 0, wraps: true, ..self.display.clone() };
        write(&first.schema(), batches, &mut Output::stdout(Format::Table)?.displaying(display))?;
        Ok(())
    }

    async fn obey(&mut self, command: Command, depth: usize) -> Result<Next, Failure> {
        match command {
            Command::Quit => return Ok(Next::Leave),
            Command::Help => help(),
            Command::Describe(None) => {
                let tables = schema::all(self.shell.context()).await;
                self.show(&[tables.map_err(|error| Failure::line(describe(&error)))?])?;
            }
            Command::Describe(Some(name)) => self.describe(&name).await?,
            Command::Connections => self.show(&[self.connections().map_err(Failure::line)?])?,
            Command::Connect(None) => eprintln!("queries ask {}", self.shell.connection_name()),
            Command::Connect(Some(name)) => {
                self.shell.choose(&name).map_err(Failure::line)?;
                eprintln!("queries ask {name}, {}", self.shell.connection().client().base_url());
            }
            Command::Expanded(to) => {
                self.display.expanded = to.unwrap_or(!self.display.expanded);
                eprintln!("a column a line: {}", on_off(self.display.expanded));
            }
            Command::Pager(to) => {
                self.display.pager = to.unwrap_or(!self.display.pager);
                eprintln!("pager: {}", on_off(self.display.pager));
            }
            Command::Timing(to) => {
                self.reports.timing = to.unwrap_or(!self.reports.timing);
                self.shell.report(self.reports);
                eprintln!("where the time went: {}", on_off(self.reports.timing));
            }
            Command::Rows(to) => {
                self.display.rows = to.unwrap_or(self.display.rows);
                match self.display.rows {
                    0 => eprintln!("all rows are shown"),
                    rows => eprintln!("{} at most", counted(rows as u64, "row")),
                }
            }
            Command::Format(None) => eprintln!("format: {}, of {}", self.format.name(), Format::NAMES.join(", ")),
            Command::Format(Some(format)) => {
                if let Some((path, _)) = &self.file {
                    let line = format!("results go to {} as {}: end that with \\o", path.display(), self.format.name());
                    return Err(Failure::line(line));
                }
                self.format = format;
                eprintln!("format: {}", format.name());
            }
            Command::Output(to) => self.output(to)?,
            Command::Chart(None) => self.draw()?,
            Command::Chart(Some(text)) => {
                let mut output = self.screen(Format::Chart)?;
                self.shell.run(&text, &mut output).await?;
            }
            Command::Cost(text) => {
                let display = Display { wraps: true, ..self.display.clone() };
                let mut output = Output::stdout(Format::Table)?.displaying(display);
                self.shell.cost(&text, &mut output).await?;
            }
            Command::Budget => self.budget().await?,
            Command::Watch(every) => self.watch(every).await?,
            Command::Edit => self.begun = edited(self.last.clone()).await?,
            Command::Include(path) => return self.include(&path, depth).await,
        }
        Ok(Next::Prompt)
    }

    async fn describe(&self, name: &str) -> Result<(), Failure> {
        let text = format!("DESCRIBE {name}");
        let table = match self.shell.context().table_provider(name).await {
            Ok(table) => table,
            Err(error) => return Err(Failure::Query(Mistake::of(&error, &text, self.shell.context()).await)),
        };
        let (columns, lines) = schema::one(&table).map_err(|error| Failure::line(describe(&error)))?;
        self.show(&[columns])?;
        lines.iter().for_each(|line| eprintln!("{line}"));
        Ok(())
    }

    /// The connections, the one that is asked with a mark.
    fn connections(&self) -> Result<RecordBatch, String> {
        let all = self.shell.connections();
        let mark = |name: &str| if name == self.shell.connection_name() { "*" } else { "" };
        let columns: [(&str, ArrayRef); 5] = [
            ("", Arc::new(all.iter().map(|(name, _)| Some(mark(name))).collect::<StringArray>())),
            ("connection", Arc::new(all.iter().map(|(name, _)| Some(name.as_str())).collect::<StringArray>())),
            (
                "address",
                Arc::new(all.iter().map(|(_, to)| Some(to.client().base_url().to_string())).collect::<StringArray>()),
            ),
            ("profile", Arc::new(all.iter().map(|(_, to)| Some(to.profile().name.as_str())).collect::<StringArray>())),
            (
                "requests",
                Arc::new(all.iter().map(|(_, to)| Some(requests(to.client().log()))).collect::<UInt64Array>()),
            ),
        ];
        RecordBatch::try_from_iter(columns).map_err(|error| error.to_string())
    }

    fn output(&mut self, to: Option<PathBuf>) -> Result<(), Failure> {
        self.end_file()?;
        if let Some(path) = to {
            let cannot = |error: io::Error| Failure::line(format!("cannot write {}: {error}", path.display()));
            let file = Output::file(self.format, &path).map_err(cannot)?;
            *self.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = file.partial().map(Path::to_owned);
            eprintln!("results go to {} as {}, until \\o", path.display(), self.format.name());
            self.file = Some((path, file));
        }
        Ok(())
    }

    /// Gives the file of results its name.
    fn end_file(&mut self) -> Result<(), Failure> {
        if let Some((path, file)) = self.file.take() {
            let wrote = file.results() > 0;
            *self.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = None;
            file.close()?;
            eprintln!("{} {}", if wrote { "wrote" } else { "no result for" }, path.display());
        }
        Ok(())
    }

    /// Draws the last result once more.
    fn draw(&self) -> Result<(), Failure> {
        let Some(Kept { schema, batches, lacks }) = self.shell.last() else {
            return Err(Failure::line("there is no result to draw: \\chart SELECT … draws one"));
        };
        if let Some(why) = lacks {
            return Err(Failure::line(format!("the last result {why}: \\chart SELECT … draws one")));
        }
        write(schema, batches, &mut self.screen(Format::Chart)?)?;
        Ok(())
    }

    async fn budget(&self) -> Result<(), Failure> {
        let failed = |error: DataFusionError| Failure::line(describe(&error));
        let frame = self.shell.context().sql("SELECT * FROM system.budget").await.map_err(failed)?;
        let batches = frame.collect().await.map_err(failed)?;
        if batches.iter().any(|batch| batch.num_rows() > 0) {
            self.show(&batches)?;
        } else {
            eprintln!("the profile declares no limit, and the service has told none");
        }
        let spent = requests(self.shell.connection().client().log());
        eprintln!("{} so far, from here to {}", counted(spent, "request"), self.shell.connection_name());
        Ok(())
    }

    async fn watch(&mut self, every: Duration) -> Result<(), Failure> {
        if self.last.is_empty() {
            return Err(Failure::line("there is no statement to watch: run one first"));
        }
        let (text, pager) = (self.last.clone(), std::mem::replace(&mut self.display.pager, false));
        let result = loop {
            let now = self.shell.connection().clock().now().format("%Y-%m-%d %H:%M:%S UTC");
            eprintln!("{now}, every {} s until Ctrl-C", every.as_secs());
            if let Err(failure) = self.take(&text, None).await {
                break Err(failure);
            }
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                _ = tokio::signal::ctrl_c() => break Ok(()),
            }
        };
        self.display.pager = pager;
        result
    }

    async fn include(&mut self, path: &Path, depth: usize) -> Result<Next, Failure> {
        let at = |what: String| Failure::line(format!("{}: {what}", path.display()));
        if depth == DEEPEST {
            return Err(at(format!("files include each other {DEEPEST} deep")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| at(format!("cannot be read: {error}")))?;
        self.take(&text, Some(Within { path, depth: depth + 1 })).await
    }
}

fn requests(log: &crate::client::RequestLog) -> u64 {
    log.requests.load(std::sync::atomic::Ordering::Relaxed)
}

fn on_off(switch: bool) -> &'static str {
    if switch { "on" } else { "off" }
}

fn help() {
    let name = |entry: &super::commands::Entry| format!("{} {}", entry.name, entry.takes);
    for entry in &COMMANDS {
        eprintln!("{:<18} {}", name(entry), entry.what);
    }
    eprintln!("\n{HELP}");
}

/// The text, after the user's editor has had it.
async fn edited(text: String) -> Result<String, Failure> {
    let failed = |error: String| Failure::line(format!("cannot edit: {error}"));
    let edit = move || -> Result<String, String> {
        let file = tempfile::Builder::new().prefix("savedsearch-").suffix(".sql").tempfile();
        let file = file.map_err(|error| error.to_string())?;
        std::fs::write(file.path(), text).map_err(|error| error.to_string())?;
        let editor = variable("VISUAL").or_else(|| variable("EDITOR")).unwrap_or_else(|| "vi".to_owned());
        // The variable may hold arguments.
        let status = Process::new("sh").args(["-c", &format!("exec {editor} \"$1\""), "sh"]).arg(file.path()).status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("`{editor}` ended with {status}")),
            Err(error) => return Err(format!("`{editor}`: {error}")),
        }
        std::fs::read_to_string(file.path()).map_err(|error| error.to_string())
    };
    let text = tokio::task::spawn_blocking(edit).await.map_err(|error| failed(error.to_string()))?.map_err(failed)?;
    Ok(text.trim_end().to_owned())
}
