//! The SQL shell: runs statements and prints what they give.
//!
//! ```text
//! text ─statements─▶ plan ─▶ stream ─output─▶ stdout or a file     progress, notes and errors ─▶ stderr
//! ```
//!
//! A thin printer over the library. Results alone go to stdout; a file appears under its name only when it is whole.
//!
//! Invariant: what fails before its first row leaves stdout empty, what fails later leaves no file behind; either leaves
//! one line on stderr and an exit status.
#![expect(clippy::print_stderr, reason = "notes and errors of the shell go to stderr")]

mod estimate;
mod interactive;
mod output;
mod progress;
mod run;

pub use interactive::interact;
pub use output::{Format, Output};
pub use run::{Failure, Shell};
