//! A probe of each dialect gives a profile with which all queries of the frugal bench give right rows, as it was written.

#[path = "../../benches/requests/queries.rs"]
mod queries;

use std::sync::Arc;

use datafusion::prelude::SessionContext;
use datafusion_saved_search::client::HttpLimits;
use datafusion_saved_search::probe::{Probed, probe};
use datafusion_saved_search::simulator::{KEY, Preset, Settings, Simulator};
use datafusion_saved_search::{Clock, Profile, Secret, session};

use self::queries::{NOW, Rows, corpus, queries};
use crate::support::{InProcess, connect, knob, rows, worded, written};

/// Calls that a probe may make.
const CALLS: u64 = 25;

fn simulator(preset: Preset) -> Simulator {
    Simulator::new(corpus(), Settings { clock: Clock::fixed(NOW.parse().unwrap()), preset, ..Settings::default() })
}

async fn probed(preset: Preset, calls: u64) -> Probed {
    let service = Arc::new(InProcess(simulator(preset), HttpLimits::default()));
    let address = "http://probed.test/v4".parse().unwrap();
    probe(service, address, Secret::new(KEY).unwrap(), calls).await.unwrap_or_else(|error| panic!("{preset}: {error}"))
}

/// A cell of V4 in a dialect.
fn cell(preset: Preset, cell: &str) -> String {
    let id = cell.len() == 16 && cell.bytes().all(|byte| byte.is_ascii_digit());
    match (preset, cell) {
        (_, "positive" | "neutral" | "negative") => written(preset, "sentiment", cell),
        _ if id => written(preset, "id", cell),
        _ => cell.to_owned(),
    }
}

fn told(preset: Preset, expected: Vec<Vec<String>>, upper: bool) -> Vec<Vec<String>> {
    let said = |text: &String| cell(preset, text);
    let cased = |text: String| if upper { text.to_uppercase() } else { text };
    expected.iter().map(|row| row.iter().map(|text| cased(said(text))).collect()).collect()
}

async fn answers(context: &SessionContext, sql: &str) -> Result<Vec<Vec<String>>, String> {
    let frame = context.sql(sql).await.map_err(|error| error.to_string())?;
    frame.collect().await.map(|batches| rows(&batches)).map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn what_was_probed_answers_every_query_rightly() {
    let mut wrong = Vec::new();
    for preset in Preset::ALL {
        let found = probed(preset, CALLS).await;
        assert!(found.calls.len() as u64 <= CALLS, "{preset}: {} calls", found.calls.len());
        if knob("PROBES_SHOWN", 0) > 0 {
            println!("=== {preset}\n{found}\n{}", found.document);
            found.calls.iter().for_each(|call| println!("{:?} {}", call.status, call.question));
        }
        let profile = Profile::parse(&found.document, "probed").unwrap();
        let simulator = simulator(preset);
        let clock = Clock::fixed(NOW.parse().unwrap());
        let context = session(&connect(&simulator, clock, profile)).unwrap();
        for query in queries(simulator.corpus(), NOW.parse().unwrap()) {
            let sql = worded(preset, query.sql.clone());
            // What the list has no recent searches of.
            let upper = query.sql.contains("SELECT upper(id)");
            let expected = match query.rows {
                Rows::InOrder(rows) => Rows::InOrder(told(preset, rows, upper)),
                Rows::Any(rows) => Rows::Any(told(preset, rows, false)),
                Rows::SomeOf(count, rows) => Rows::SomeOf(count, told(preset, rows, false)),
            };
            let before = simulator.requests();
            match answers(&context, &sql).await {
                Ok(rows) if expected.are(&rows) => {}
                Ok(rows) => wrong.push(format!("{preset}: {}: {} rows: {:?}", query.name, rows.len(), rows.first())),
                Err(error) => wrong.push(format!("{preset}: {}: {error}", query.name)),
            }
            if knob("PROBES_SHOWN", 0) > 0 {
                println!(
                    "{preset} {:<44} {:>4} requests, {} at least for v4",
                    query.name,
                    simulator.requests() - before,
                    query.least
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
