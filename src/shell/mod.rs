//! The SQL shell: runs statements and prints what they give.
//!
//! ```text
//! line_editor (completion) ─repl (commands)─▶ text ─run─▶ plan ─▶ stream ─output─▶ screen (table, pager) │ chart, picture │ file
//!                                              progress, report, diagnostics ─▶ stderr
//! ```
//!
//! A thin printer over the library. Results alone go to stdout; a file appears under its name only when it is whole.
//! Nothing is asked of the service but what statements ask: completion, descriptions and estimates cost no request.
//!
//! Invariant: what fails before its first row leaves stdout empty, what fails later leaves no file behind; either leaves
//! one line on stderr and an exit status.
#![expect(clippy::print_stderr, reason = "notes and errors of the shell go to stderr")]

mod chart;
mod commands;
mod completion;
mod diagnostics;
mod estimate;
mod line_editor;
mod name_cache;
mod output;
mod picture;
mod progress;
mod repl;
mod report;
mod run;
mod schema;
mod screen;
mod splitter;
mod table;
mod writer;

pub use diagnostics::Mistake;
pub use output::{Format, Output};
pub use repl::interact;
pub use run::{Failure, Shell};
pub use screen::Display;
