//! Adds the tables of a service to an existing DataFusion session and joins them with its own tables. `cargo run
//! --example own_session`
//!
//! The service is a simulator. Its second table is added by address with SQL, as in any DataFusion session.

#![expect(clippy::print_stdout, reason = "the example prints the cost of a query")]

use std::net::SocketAddr;
use std::sync::Arc;

use datafusion_saved_search::datafusion::execution::SessionStateBuilder;
use datafusion_saved_search::datafusion::prelude::SessionContext;
use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, KEY, Settings};
use datafusion_saved_search::{Clock, Connection, Secret, install, plan_cost, session_config};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec = CorpusSpec { seed: 1, searches: 4, mentions: 5_000, now: Clock::system().now() };
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let service = simulator::start(listen, Arc::new(Corpus::generate(spec)), Settings::default()).await?;

    let connection = Connection::builder(service.base_url(), Secret::new(KEY)?).build()?;
    let builder = SessionStateBuilder::new().with_config(session_config()).with_default_features();
    let context = SessionContext::new_with_state(install(builder, &connection)?.build());

    context.sql("CREATE TABLE brands AS VALUES ('183772', 'ours'), ('184889', 'theirs')").await?.collect().await?;
    let sql = "SELECT b.column2 AS brand, count(*) AS mentions FROM brands b JOIN mentions m ON m.aid = b.column1
               WHERE m.published_at >= now() - INTERVAL '7 days' GROUP BY 1 ORDER BY 1";
    let query = context.sql(sql).await?;
    println!("at least {} requests:", plan_cost(&query.clone().create_physical_plan().await?).at_least);
    query.show().await?;

    // The statement names the file with the key.
    let folder = tempfile::tempdir()?;
    let key = folder.path().join("key");
    std::fs::write(&key, KEY)?;
    let table = format!(
        "CREATE EXTERNAL TABLE coverage STORED AS SAVEDSEARCH LOCATION '{}' OPTIONS (table 'overview', api_key_file '{}')",
        service.base_url(),
        key.display(),
    );
    context.sql(&table).await?.collect().await?;
    context.sql("SELECT aid, total_mentions FROM coverage ORDER BY aid").await?.show().await?;
    Ok(())
}
