//! Words for people and agents: what a query costs, which tables and columns there are, which period is read, what
//! is wrong with a statement, and what a query has read.
//!
//! The shell, the MCP server, the page and the driver say the same. Nothing here sends a request.

mod cost;
mod mistake;
mod period;
pub(crate) mod schema;
mod summary;

pub(crate) use cost::estimate;
#[cfg(all(unix, feature = "flight", feature = "shell"))]
pub(crate) use cost::estimate_all;
pub use mistake::Mistake;
pub(crate) use period::{period_in_words, window_note};
#[cfg(feature = "shell")]
pub use summary::cancelled;
pub(crate) use summary::summary;
#[cfg(feature = "shell")]
pub(crate) use summary::{Report, Rest, Shown};
