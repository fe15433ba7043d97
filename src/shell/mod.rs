//! SQL shell: runs statements and prints their results.
//!
//! ```text
//! repl (line_editor, completion) ─┐
//! script (-c, -f, stdin) ─────────┴▶ interpreter (commands) ─▶ run ─▶ output ─▶ screen (table, pager) │ chart, heat_map, picture │ file
//!                                                               └▶ progress, wording ─▶ stderr
//! ```
//!
//! The shell only prints what the library returns. Only results go to stdout; a file appears under its name once it is
//! complete. Completion, descriptions and estimates send no request.
//!
//! Invariant: a query that fails before its first row leaves stdout empty, and one that fails later leaves no file behind;
//! both leave one line on stderr and a non-zero exit status.
#![expect(clippy::print_stderr, reason = "notes and errors of the shell go to stderr")]

mod axis_names;
mod chart;
mod commands;
mod completion;
mod csv;
mod heat_map;
mod interpreter;
mod line_editor;
mod name_cache;
mod origin;
mod output;
mod picture;
mod progress;
mod repl;
mod run;
mod screen;
mod script;
mod splitter;
mod statement;
mod table;
mod variables;
mod workbook;
mod writer;

pub use output::{ChartForm, ChartOptions, CsvDialect, CsvOptions, Format, Output, OutputOptions};
pub use progress::Progress;
pub use repl::interact;
pub use run::{Failure, Shell};
pub use screen::Display;
pub use script::{Script, run_scripts};

#[cfg(feature = "ui")]
pub(crate) use chart::Covered;
#[cfg(feature = "ui")]
pub(crate) use completion::{KEYWORDS, Words};
#[cfg(feature = "ui")]
pub(crate) use heat_map::heat_columns;
#[cfg(feature = "ui")]
pub(crate) use output::write_file;
#[cfg(feature = "ui")]
pub(crate) use run::covered;
#[cfg(feature = "ui")]
pub(crate) use variables::{Expanded, NotExpanded, Variables};
pub(crate) use writer::chart_svg;
#[cfg(feature = "ui")]
pub(crate) use writer::{in_zone, zoned};

pub use crate::wording::{Mistake, cancelled};
