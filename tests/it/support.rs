//! A simulator and a session over it, and ways to ask them.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::prelude::SessionContext;
use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, KEY, Running, Settings};
use datafusion_saved_search::{Clock, Connection, Profile, Secret, session};

/// The instant at which the simulator's and the client's clocks stand.
pub(crate) fn now() -> DateTime<Utc> {
    "2026-07-01T12:00:00Z".parse().unwrap()
}

/// Saved search with the most mentions.
pub(crate) const BIG: &str = "183772";
/// Another one.
pub(crate) const OTHER: &str = "184889";

pub(crate) struct World {
    pub(crate) service: Running,
    pub(crate) context: SessionContext,
}

pub(crate) fn corpus() -> Arc<Corpus> {
    Arc::new(Corpus::generate(CorpusSpec { seed: 7, searches: 4, mentions: 2_000, now: now() }))
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(corpus(), Settings { clock: Clock::fixed(now()), ..Settings::default() }, Profile::v4()).await
    }

    pub(crate) async fn with(corpus: Arc<Corpus>, settings: Settings, profile: Profile) -> Self {
        let clock = settings.clock.clone();
        let service = simulator::start("127.0.0.1:0".parse().unwrap(), corpus, settings).await.unwrap();
        let builder = Connection::builder(service.base_url(), Secret::new(KEY).unwrap());
        let connection = builder.profile(profile).clock(clock).build().unwrap();
        let context = session(&connection).unwrap();
        Self { service, context }
    }

    /// The rows of a query.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let batches = self.context.sql(sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
        rows(&batches.collect().await.unwrap_or_else(|e| panic!("{sql}\n{e}")))
    }

    /// The rows of a query and the requests that it took.
    pub(crate) async fn cost(&self, sql: &str) -> (Vec<Vec<String>>, u64) {
        let before = self.service.requests();
        let rows = self.rows(sql).await;
        (rows, self.service.requests() - before)
    }
}

/// The cells of batches as texts.
pub(crate) fn rows(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let cells: Vec<_> =
            batch.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap()).collect();
        rows.extend((0..batch.num_rows()).map(|row| cells.iter().map(|c| c.value(row).to_string()).collect()));
    }
    rows
}
