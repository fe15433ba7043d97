//! Runs statements and backslash commands, at the prompt and in scripts.
//!
//! ```text
//! repl (a line) ─┐
//! script (-c, -f)─┴▶ splitter ─▶ Interpreter ─▶ Shell (statements) │ commands
//! ```
//!
//! The state that commands change (format, display, output file) is here; statements are run by [`Shell`].

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use console::style;
use datafusion::error::DataFusionError;
use tokio::signal::unix::{SignalKind, signal};

use super::commands::{COMMANDS, Command, ENDS, TABLES};
use super::completion::Words;
use super::name_cache;
use super::output::{Format, Output, OutputOptions};
use super::run::{Failure, LastResult, Reports, Shell, write};
use super::screen::Display;
use super::splitter::{Input, inputs};
use crate::config::variable;
use crate::error::{describe, one_line};
use crate::numbers::counted;
use crate::wording::{Mistake, cancelled, schema};

/// Nesting depth of `\i` beyond which files are assumed to include each other.
pub(super) const DEEPEST: usize = 16;

const HELP: &str = "Statements end with ; and may span several lines. EXPLAIN SELECT … shows the
requests of a query. Tab completes SQL and names of saved searches. Ctrl-C
drops a statement or cancels a query, Ctrl-R searches the history, Ctrl-D leaves.";

/// Next action of the prompt after a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Prompt,
    Leave,
}

/// A file being run, and its nesting depth.
#[derive(Debug, Clone, Copy)]
pub(super) struct Within<'f> {
    path: &'f Path,
    depth: usize,
}

impl<'f> Within<'f> {
    /// A file named on the command line.
    pub(super) fn file(path: &'f Path) -> Self {
        Self { path, depth: 0 }
    }
}

/// Destination of results while no `\o` file is open.
pub(super) enum Destination {
    /// The terminal. Each result is separate, so that any format may follow another.
    Prompt,
    /// One output for all results of a script.
    Script(Box<Output>),
}

impl Destination {
    /// Output for a table that is not a result: that of a script, or a new one to the terminal, which is put into
    /// `terminal`. An open `\o` file is for results only, so that the terminal gets the table even in a script.
    fn for_table<'o>(
        &'o mut self,
        file_open: bool,
        display: Display,
        terminal: &'o mut Option<Output>,
    ) -> io::Result<&'o mut Output> {
        match self {
            Self::Script(output) if !file_open => {
                output.show_as(display);
                Ok(output)
            }
            _ => Ok(terminal.insert(Output::stdout(Format::Table)?.displaying(display))),
        }
    }
}

/// Shell state that outlives a line.
pub(super) struct Interpreter {
    shell: Shell,
    destination: Destination,
    format: Format,
    /// Set if the user chose the format, which then counts more than the name of a file.
    chosen: bool,
    display: Display,
    options: OutputOptions,
    reports: Reports,
    /// The `\o` file.
    file: Option<(PathBuf, Output)>,
    /// Path of the output file that has not been renamed to its final name yet.
    unfinished: Arc<Mutex<Option<PathBuf>>>,
    /// Last statement, for `\e` and `\watch`.
    last: String,
    /// Initial text of the next prompt, left by `\e`.
    edited: String,
    /// Saved searches last written to the name cache.
    remembered: Option<Vec<(String, String)>>,
}

impl Interpreter {
    pub(super) fn new(mut shell: Shell, format: Option<Format>, destination: Destination) -> Self {
        let reports = Reports::default();
        let mut display = Display::default();
        let mut options = OutputOptions::default();
        match &destination {
            Destination::Prompt if !shell.is_quiet() => shell.report(reports),
            Destination::Prompt => {}
            // A script prints all rows, and has no pager that a user could quit.
            Destination::Script(output) => {
                display = Display { rows: 0, pager: false, ..display };
                options.clone_from(output.options());
            }
        }
        let (file, last, edited) = (None, String::new(), String::new());
        let (unfinished, chosen) = (Arc::default(), format.is_some());
        let format = format.unwrap_or(Format::Table);
        Self {
            shell,
            destination,
            format,
            chosen,
            display,
            options,
            reports,
            file,
            unfinished,
            last,
            edited,
            remembered: None,
        }
    }

    /// Writes results with these options.
    pub(super) fn with(self, options: OutputOptions) -> Self {
        Self { options, ..self }
    }

    /// Path of the partial output file, for whoever ends the process.
    pub(super) fn unfinished(&self) -> Arc<Mutex<Option<PathBuf>>> {
        Arc::clone(&self.unfinished)
    }

    pub(super) fn connection_name(&self) -> &str {
        self.shell.connection_name()
    }

    /// Initial text of the next prompt.
    pub(super) fn take_edited(&mut self) -> String {
        std::mem::take(&mut self.edited)
    }

    fn is_interactive(&self) -> bool {
        matches!(self.destination, Destination::Prompt)
    }

    /// Saved searches of the last list: of this session, or from the name cache.
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

    /// Words for completion.
    pub(super) async fn words(&mut self) -> Words {
        let searches = self.searches();
        let connections = self.shell.connections().iter().map(|(name, _)| name.clone()).collect();
        let mut words = Words::of(self.shell.context(), self.shell.connection(), searches, connections).await;
        if let Some(last) = self.shell.last() {
            words.add_values(&last.batches);
        }
        words
    }

    /// Runs all statements and commands of a text. The last semicolon may be missing.
    pub(super) async fn run_text(&mut self, text: &str, within: Option<Within<'_>>) -> Result<Next, Failure> {
        let (inputs, open) = inputs(text);
        self.run_inputs(inputs.into_iter().chain(open), within).await
    }

    /// Runs statements and commands in order, until one fails or quits.
    pub(super) async fn run_inputs(
        &mut self,
        inputs: impl IntoIterator<Item = Input>,
        within: Option<Within<'_>>,
    ) -> Result<Next, Failure> {
        for Input { line, text, ending } in inputs {
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
                    let before = self.display.expanded;
                    self.display.expanded |= ending.expanded;
                    let result = match ending.file {
                        Ok(Some(file)) => self.run_into(&file, &text).await,
                        Ok(None) => self.run_statement(&text).await,
                        Err(wrong) => Err(Failure::line(wrong)),
                    };
                    let result = result.map(|()| Next::Prompt);
                    self.display.expanded = before;
                    result
                }
            };
            match (next, within) {
                (Ok(Next::Prompt), _) => {}
                (Err(Failure::Query(mistake)), Some(Within { path, .. })) => {
                    return Err(Failure::Query(mistake.in_file(path, line)));
                }
                (other, _) => return other,
            }
        }
        Ok(Next::Prompt)
    }

    /// Runs a statement, whose result goes to a file of its own.
    async fn run_into(&mut self, path: &Path, text: &str) -> Result<(), Failure> {
        let opened = self.open(path)?;
        let before = self.file.replace(opened);
        self.note_unfinished();
        let result = match self.run_statement(text).await {
            Ok(()) => self.finish_file(),
            Err(failure) => {
                // The file keeps its previous content.
                self.file = None;
                Err(failure)
            }
        };
        self.file = before;
        self.note_unfinished();
        result
    }

    /// Runs a statement, whose result goes to the open file, the script's output or the terminal.
    async fn run_statement(&mut self, text: &str) -> Result<(), Failure> {
        let text = &self.expand(text)?;
        let Some((path, file)) = &mut self.file else {
            return match &mut self.destination {
                Destination::Script(output) => {
                    output.show_as(self.display.clone());
                    self.shell.run(text, output).await
                }
                Destination::Prompt => {
                    let output = Output::stdout(self.format)?.with(self.options.clone());
                    let mut output = output.displaying(self.display.clone());
                    self.shell.run(text, &mut output).await?;
                    Ok(output.close()?)
                }
            };
        };
        let result = self.shell.run(text, file).await;
        if let Err(Failure::ReaderGone) = result {
            let line = format!("{} was closed by its reader: results go to the terminal again", path.display());
            self.file = None;
            return Err(Failure::line(line));
        }
        if result.is_err() {
            // Results written before stay.
            file.take_back()?;
        }
        result
    }

    /// Replaces the variables of a statement.
    fn expand(&mut self, text: &str) -> Result<String, Failure> {
        self.shell.variables().expand(text).map_err(Failure::line)
    }

    /// Prints a failure.
    pub(super) fn report(&self, failure: Failure) {
        match failure {
            Failure::Query(Mistake { line, marked, .. }) => {
                marked.iter().flatten().for_each(|line| eprintln!("{line}"));
                let line = self.shell.redact(one_line(&line));
                eprintln!("{} {line}", style("error:").for_stderr().red().bold());
            }
            Failure::Cancelled { requests, .. } => eprintln!("{}", cancelled(requests)),
            Failure::ReaderGone => {}
        }
    }

    /// Prints a table that is already in memory.
    fn show(&mut self, batches: &[RecordBatch]) -> Result<(), Failure> {
        let Some(first) = batches.first() else { return Ok(()) };
        let display = Display { expanded: false, rows: 0, wraps: true, ..self.display.clone() };
        let mut terminal = None;
        let output = self.destination.for_table(self.file.is_some(), display, &mut terminal)?;
        write(&first.schema(), batches, output)?;
        Ok(())
    }

    /// Confirms the effect of a command: at the prompt only, since the user of a script wrote it.
    fn confirm(&self, line: &str) {
        if self.is_interactive() {
            eprintln!("{line}");
        }
    }

    /// Prints a line about a file, unless the user wants none.
    fn note(&self, line: &str) {
        if !self.shell.is_quiet() {
            eprintln!("{line}");
        }
    }

    async fn obey(&mut self, command: Command, depth: usize) -> Result<Next, Failure> {
        match command {
            Command::Quit => return Ok(Next::Leave),
            Command::Help => help(),
            Command::Describe(None) => self.list("*").await?,
            Command::Describe(Some(pattern)) if pattern.contains(['*', '?']) => self.list(&pattern).await?,
            Command::Describe(Some(name)) => self.describe(&name).await?,
            Command::Connections => {
                let connections = self.connections().map_err(Failure::line)?;
                self.show(&[connections])?;
            }
            Command::Connect(None) => eprintln!("connection: {}", self.shell.connection_name()),
            Command::Connect(Some(name)) => {
                self.shell.choose(&name).map_err(Failure::line)?;
                self.confirm(&format!("connection: {name}, {}", self.shell.connection().client().address()));
            }
            Command::Expanded(to) => {
                self.display.expanded = to.unwrap_or(!self.display.expanded);
                self.confirm(&format!("expanded display: {}", on_off(self.display.expanded)));
            }
            Command::Pager(to) => {
                self.display.pager = to.unwrap_or(!self.display.pager);
                self.confirm(&format!("pager: {}", on_off(self.display.pager)));
            }
            Command::Timing(to) => {
                self.reports.timing = to.unwrap_or(!self.reports.timing);
                self.shell.report(self.reports);
                self.confirm(&format!("timing: {}", on_off(self.reports.timing)));
            }
            Command::Rows(to) => {
                self.display.rows = to.unwrap_or(self.display.rows);
                match self.display.rows {
                    0 => self.confirm("row limit: none"),
                    rows => self.confirm(&format!("row limit: {rows}")),
                }
            }
            Command::Format(None) => {
                eprintln!("format: {}; available: {}", self.format.name(), Format::NAMES.join(", "))
            }
            Command::Format(Some(format)) => self.set_format(format)?,
            Command::Output(to) => self.output(to)?,
            Command::Chart(None) => self.draw()?,
            Command::Chart(Some(text)) if self.chart_output().is_some() => self.run_statement(&text).await?,
            Command::Chart(Some(text)) => {
                let text = self.expand(&text)?;
                let output = Output::stdout(Format::Chart)?.with(self.options.clone());
                let mut output = output.displaying(self.display.clone());
                self.shell.run(&text, &mut output).await?;
            }
            Command::Cost(text) => {
                let text = self.expand(&text)?;
                let display = Display { wraps: true, ..self.display.clone() };
                let mut terminal = None;
                let output = self.destination.for_table(self.file.is_some(), display, &mut terminal)?;
                self.shell.cost(&text, output).await?;
            }
            Command::Budget => self.budget().await?,
            Command::Set(None) => {
                let variables = self.variables().map_err(Failure::line)?;
                self.show(&[variables])?;
            }
            Command::Set(Some((name, value))) => self.shell.set_variable(&name, &value).map_err(Failure::line)?,
            Command::Unset(name) => self.shell.variables().unset(&name),
            Command::Watch(every) => self.watch(every).await?,
            Command::Edit if !self.is_interactive() => {
                return Err(Failure::line("\\e works at the prompt only"));
            }
            Command::Edit => self.edited = edited(self.last.clone()).await?,
            Command::Include(path) => return self.include(&path, depth).await,
        }
        Ok(Next::Prompt)
    }

    fn set_format(&mut self, format: Format) -> Result<(), Failure> {
        if let Some((path, output)) = &self.file {
            let (path, name) = (path.display(), output.format().name());
            return Err(Failure::line(format!("{path} is being written as {name}; close it with \\o first")));
        }
        if let Destination::Script(output) = &mut self.destination {
            if !output.is_stdout() {
                return Err(Failure::line("the format of the -o file cannot change: use --format"));
            }
            **output = Output::stdout(format)?.with(self.options.clone());
        }
        (self.format, self.chosen) = (format, true);
        self.confirm(&format!("format: {}", format.name()));
        Ok(())
    }

    /// Lists the tables whose names match a pattern, in which `*` stands for any characters and `?` for one.
    async fn list(&mut self, pattern: &str) -> Result<(), Failure> {
        let tables = schema::matching(self.shell.context(), pattern).await;
        let tables = tables.map_err(|error| Failure::line(describe(&error)))?;
        if tables.num_rows() == 0 {
            return Err(Failure::line(format!("no table matches {pattern}; \\d lists all")));
        }
        self.show(&[tables])
    }

    async fn describe(&mut self, name: &str) -> Result<(), Failure> {
        let text = format!("DESCRIBE {name}");
        let table = match self.shell.context().table_provider(name).await {
            Ok(table) => table,
            Err(error) => {
                return Err(Failure::Query(Mistake::of(&error, &text, self.shell.context(), TABLES).await));
            }
        };
        let (columns, lines) = schema::one(&table).map_err(|error| Failure::line(describe(&error)))?;
        self.show(&[columns])?;
        if self.is_interactive() {
            lines.iter().for_each(|line| eprintln!("{line}"));
            eprintln!("\\cost SQL estimates requests.");
        }
        Ok(())
    }

    /// Connections, with a mark at the current one.
    fn connections(&self) -> Result<RecordBatch, String> {
        let all = self.shell.connections();
        let mark = |name: &str| if name == self.shell.connection_name() { "*" } else { "" };
        let columns: [(&str, ArrayRef); 5] = [
            ("", Arc::new(all.iter().map(|(name, _)| Some(mark(name))).collect::<StringArray>())),
            ("connection", Arc::new(all.iter().map(|(name, _)| Some(name.as_str())).collect::<StringArray>())),
            ("address", Arc::new(all.iter().map(|(_, to)| Some(to.client().address())).collect::<StringArray>())),
            ("profile", Arc::new(all.iter().map(|(_, to)| Some(to.profile().name.as_str())).collect::<StringArray>())),
            (
                "requests",
                Arc::new(all.iter().map(|(_, to)| Some(requests(to.client().log()))).collect::<UInt64Array>()),
            ),
        ];
        RecordBatch::try_from_iter(columns).map_err(|error| error.to_string())
    }

    fn variables(&mut self) -> Result<RecordBatch, String> {
        let (names, values): (Vec<_>, Vec<_>) = self.shell.variables().all().unzip();
        let columns: [(&str, ArrayRef); 2] =
            [("variable", Arc::new(StringArray::from(names))), ("value", Arc::new(StringArray::from(values)))];
        RecordBatch::try_from_iter(columns).map_err(|error| error.to_string())
    }

    fn output(&mut self, to: Option<PathBuf>) -> Result<(), Failure> {
        self.finish_file()?;
        if let Some(path) = to {
            let (path, file) = self.open(&path)?;
            self.confirm(&format!("results go to {} as {}, until \\o", path.display(), file.format().name()));
            self.file = Some((path, file));
            self.note_unfinished();
        }
        Ok(())
    }

    /// Opens a file for results, in the format that the user chose, or else that of its name.
    fn open(&self, path: &Path) -> Result<(PathBuf, Output), Failure> {
        let cannot = |error: io::Error| Failure::line(format!("cannot write {}: {error}", path.display()));
        let named = if self.chosen { None } else { Format::of_file(path).map_err(Failure::line)? };
        let file = Output::file(named.unwrap_or(self.format), path).map_err(cannot)?.with(self.options.clone());
        Ok((path.to_owned(), file))
    }

    /// Tells whoever ends the process about the open file.
    fn note_unfinished(&self) {
        let partial = self.file.as_ref().and_then(|(_, file)| file.partial().map(Path::to_owned));
        *self.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = partial;
    }

    /// Completes the `\o` file and gives it its name.
    fn finish_file(&mut self) -> Result<(), Failure> {
        if let Some((path, file)) = self.file.take() {
            let summary = file.summary();
            self.note_unfinished();
            file.close()?;
            match summary {
                Some(line) => self.note(&line),
                None => self.confirm(&format!("no result for {}", path.display())),
            }
        }
        Ok(())
    }

    /// Completes all output.
    ///
    /// # Errors
    /// A file cannot be renamed, or stdout not be flushed.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.finish_file()?;
        if let Destination::Script(output) = self.destination {
            let summary = output.summary().filter(|_| !self.shell.is_quiet());
            output.close()?;
            if let Some(line) = summary {
                eprintln!("{line}");
            }
        }
        Ok(())
    }

    /// The output of results, if its format is charts and it takes another one: that of the open file, or of the script.
    fn chart_output(&mut self) -> Option<&mut Output> {
        let output: &mut Output = match (&mut self.file, &mut self.destination) {
            (Some((_, file)), _) => file,
            (None, Destination::Script(output)) => output,
            (None, Destination::Prompt) => return None,
        };
        (output.format().is_chart() && output.check_next().is_ok()).then_some(output)
    }

    /// Draws the last result again: to the output of charts if there is one, or else to the terminal.
    fn draw(&mut self) -> Result<(), Failure> {
        let Some(LastResult { schema, batches, lacks, covered }) = self.shell.last() else {
            return Err(Failure::line("no result to draw yet; use \\chart SELECT …"));
        };
        if let Some(why) = lacks {
            return Err(Failure::line(format!("the last result {why}; use \\chart SELECT …")));
        }
        let (schema, batches, covered) = (Arc::clone(schema), batches.clone(), *covered);
        let terminal = Output::stdout(Format::Chart)?.with(self.options.clone());
        let mut terminal = terminal.displaying(self.display.clone());
        let output = self.chart_output().unwrap_or(&mut terminal);
        output.cover(covered);
        let written = write(&schema, &batches, output);
        if written.is_err() {
            output.take_back()?;
        }
        written?;
        Ok(())
    }

    async fn budget(&mut self) -> Result<(), Failure> {
        let failed = |error: DataFusionError| Failure::line(describe(&error));
        let frame = self.shell.context().sql("SELECT * FROM system.budget").await.map_err(failed)?;
        let batches = frame.collect().await.map_err(failed)?;
        if batches.iter().any(|batch| batch.num_rows() > 0) {
            self.show(&batches)?;
        } else {
            eprintln!("no limit known: the profile declares none, and the service has reported none");
        }
        let spent = requests(self.shell.connection().client().log());
        eprintln!("{} sent to {} in this session", counted(spent, "request"), self.shell.connection_name());
        Ok(())
    }

    async fn watch(&mut self, every: Duration) -> Result<(), Failure> {
        if self.last.is_empty() {
            return Err(Failure::line("no statement to watch yet; run one first"));
        }
        // Registered before the first run, so that no signal between two runs is lost.
        let (mut interrupt, mut terminate, mut hang_up) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
        let (text, pager) = (self.last.clone(), std::mem::replace(&mut self.display.pager, false));
        let result = loop {
            let now = self.shell.connection().clock().now().format("%Y-%m-%d %H:%M:%S UTC");
            eprintln!("{now}, every {} s until Ctrl-C", every.as_secs());
            if let Err(failure) = self.run_text(&text, None).await {
                break Err(failure);
            }
            let ended = |kind: SignalKind| Failure::Cancelled { signal: kind.as_raw_value(), requests: 0 };
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                _ = interrupt.recv() => break Ok(()),
                _ = terminate.recv() => break Err(ended(SignalKind::terminate())),
                _ = hang_up.recv() => break Err(ended(SignalKind::hangup())),
            }
        };
        self.display.pager = pager;
        result
    }

    async fn include(&mut self, path: &Path, depth: usize) -> Result<Next, Failure> {
        if depth == DEEPEST {
            let line = format!("{}: files include each other ({DEEPEST} levels deep)", path.display());
            return Err(Failure::line(line));
        }
        let text = super::script::read_file(path).map_err(Failure::line)?;
        self.run_text(&text, Some(Within { path, depth: depth + 1 })).await
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
    for entry in COMMANDS.iter().chain(&ENDS) {
        eprintln!("{:<18} {}", name(entry), entry.what);
    }
    eprintln!("\n{HELP}");
}

/// A text after the user edited it in `$VISUAL` or `$EDITOR`.
async fn edited(text: String) -> Result<String, Failure> {
    let failed = |error: String| Failure::line(format!("cannot edit: {error}"));
    let edit = move || -> Result<String, String> {
        let file = tempfile::Builder::new().prefix("savedsearch-").suffix(".sql").tempfile();
        let file = file.map_err(|error| error.to_string())?;
        std::fs::write(file.path(), text).map_err(|error| error.to_string())?;
        let editor = variable("VISUAL").or_else(|| variable("EDITOR")).unwrap_or_else(|| "vi".to_owned());
        // The variable may contain arguments.
        let status = Process::new("sh").args(["-c", &format!("exec {editor} \"$1\""), "sh"]).arg(file.path()).status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("`{editor}` failed: {status}")),
            Err(error) => return Err(format!("`{editor}`: {error}")),
        }
        std::fs::read_to_string(file.path()).map_err(|error| error.to_string())
    };
    let text = tokio::task::spawn_blocking(edit).await.map_err(|error| failed(error.to_string()))?.map_err(failed)?;
    Ok(text.trim_end().to_owned())
}
