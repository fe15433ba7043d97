//! Queries your service with SQL: the program of README.md, which a test compares with this file. Put your address and your key into
//! place, then `cargo run --example query_your_service`

use std::path::Path;

use datafusion_saved_search::{Connection, Secret, session};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let key = Secret::read(Path::new("key.txt"))?;
    let connection = Connection::builder("https://api.example.com/v4", key).build()?;
    let context = session(&connection)?;
    context.sql("SELECT aid, count(*) AS mentions FROM mentions GROUP BY aid").await?.show().await?;
    Ok(())
}
