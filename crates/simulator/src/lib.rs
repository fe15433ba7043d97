//! A simulated V4 service, for the built-in demo data, the tests and the benchmarks.
//!
//! ```text
//! dataset (seeded or loaded) ─▶ query (parameters, window, filters, order) ─▶ overview + page ─▶ render ─▶ HTTP
//!       ▲                                                     ▲                                   ▲
//!       └ mutation: mentions arrive, go and change            └─ fault_injection, spoil: faults ──┘
//! ```
//!
//! Serves over real HTTP on loopback what `openapi.yaml` beside this file specifies: `/list` for the keys of two teams, and
//! `/search` with every parameter. Equal seeds give equal bytes; `record` writes generated mentions, and `story` supplies
//! their words. Windows, zones, filters and sort orders are evaluated by separate code that shares nothing with the client,
//! so that the two are unlikely to have the same bug.
//!
//! Invariant: without faults, the responses are exactly the content of [`Corpus`], and with mutations that of
//! [`Simulator::alive`]; tests take their expectations from there.

#[cfg(test)]
#[expect(dead_code, reason = "no check of these tests waits")]
#[path = "../../../src/cases.rs"]
mod cases;
mod dataset;
mod dialect;
mod fault_injection;
mod mutation;
mod overview;
mod query;
mod record;
mod render;
mod routes;
mod server;
mod spoil;
mod story;
mod zone;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

pub use dataset::{Corpus, CorpusSpec, Facts, LoadError, Mention, SavedSearch};
pub use dialect::Preset;
pub use fault_injection::{Fault, InvalidFault, KINDS};
pub use savedsearch_clock::Clock;
pub use server::{RateLimit, Running, Seen, Settings, Simulator, start};

/// API key of the team that owns most saved searches.
pub const KEY: &str = "demo-key-comms";
/// API key of the other team.
pub const OTHER_KEY: &str = "demo-key-research";

/// Seed of the demo data.
pub const DEMO_SEED: u64 = 1;
/// Saved searches of the first team in the demo data.
pub const DEMO_SEARCHES: usize = 12;
/// Mentions of the first team in the demo data.
pub const DEMO_MENTIONS: usize = 20_000;

/// Starts a service with the demo data, on a free port of this machine.
///
/// # Errors
/// None in practice: that no port is free.
pub async fn demo(clock: Clock) -> io::Result<Running> {
    let spec = CorpusSpec { seed: DEMO_SEED, searches: DEMO_SEARCHES, mentions: DEMO_MENTIONS, now: clock.now() };
    let settings = Settings { clock, ..Settings::default() };
    start(SocketAddr::from(([127, 0, 0, 1], 0)), Arc::new(Corpus::generate(spec)), settings).await
}
