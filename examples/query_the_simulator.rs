//! Queries a simulated service with SQL. `cargo run --example query_the_simulator`

use std::net::SocketAddr;
use std::sync::Arc;

use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, KEY, Settings};
use datafusion_saved_search::{Clock, Connection, Secret, session};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec = CorpusSpec { seed: 1, searches: 4, mentions: 5_000, now: Clock::system().now() };
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let service = simulator::start(listen, Arc::new(Corpus::generate(spec)), Settings::default()).await?;

    let connection = Connection::builder(service.base_url(), Secret::new(KEY)?).build()?;
    let context = session(&connection)?;
    let sql = "SELECT published_at, source, sentiment, title FROM mentions
               WHERE aid = '183772' AND language = 'en' ORDER BY published_at DESC LIMIT 5";
    context.sql(sql).await?.show().await?;
    context.sql("SELECT endpoint, parameters, rows, bytes FROM system.requests").await?.show().await?;
    Ok(())
}
