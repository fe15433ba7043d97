//! The SQL shell: runs statements and prints what they give.
//!
//! ```text
//! text ─statements─▶ plan ─▶ stream ─output─▶ stdout or a file     progress, notes and errors ─▶ stderr
//! ```
//!
//! A thin printer over the library. Results alone go to stdout; a file appears under its name only when it is whole.
//!
//! Invariant: what fails leaves no result behind that looks whole, and one line on stderr.
#![expect(clippy::print_stderr, reason = "notes and errors of the shell go to stderr")]

mod interactive;
mod output;
mod progress;
mod run;

pub use interactive::interact;
pub use output::{Format, Output};
pub use run::{Failure, Shell, describe};
