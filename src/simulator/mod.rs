//! A V4 service in a box: the embedded default, the test bed and the bench.
//!
//! ```text
//! dataset (seeded or loaded) ─▶ query (parameters, window, filters, order) ─▶ overview + page ─▶ render ─▶ HTTP
//!       ▲                                                     ▲                                   ▲
//!       └ mutation: mentions come, go and change              └─ fault_injection, spoil: it errs ─┘
//! ```
//!
//! It answers over real HTTP on loopback what `openapi.yaml` beside this file writes down: `/list` for two teams' keys
//! and `/search` with every parameter. Equal seeds give equal bytes. Windows, zones, filters and orders are evaluated
//! by code of its own, and nothing of the client is used, so that the two cannot be wrong together.
//!
//! Invariant: without faults, what it serves is what [`Corpus`] holds, and with changes what [`Simulator::alive`] gives;
//! tests take their expectations from there.

mod dataset;
mod dialect;
mod fault_injection;
mod mutation;
mod overview;
mod query;
mod render;
mod routes;
mod server;
mod spoil;
mod zone;

pub use dataset::{Corpus, CorpusSpec, Facts, LoadError, Mention, SavedSearch};
pub use dialect::Preset;
pub use fault_injection::{Fault, InvalidFault, KINDS};
pub use server::{RateLimit, Running, Seen, Settings, Simulator, start};

/// The key of the team that owns most saved searches.
pub const KEY: &str = "demo-key-comms";
/// The key of the other team.
pub const OTHER_KEY: &str = "demo-key-research";
