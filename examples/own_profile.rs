//! Queries a service that differs from the built-in profile. `cargo run --example own_profile`
//!
//! The example starts a small service that expects the key as `ApiKey <key>`, counts pages from 1, calls the page size
//! `limit`, and nests its records differently. The profile describes all of this; no code is needed.

use axum::extract::Query;
use axum::http::HeaderMap;
use axum::routing::get;
use datafusion::prelude::SessionContext;
use datafusion_saved_search::{Connection, Profile, Secret, catalog};
use std::collections::HashMap;

/// The built-in profile with the differing keys replaced. In practice this is a file for `--profile`.
fn profile() -> String {
    include_str!("../src/profile/builtin/v4.toml")
        .replace(r#"format = "Bearer {key}""#, r#"format = "ApiKey {key}""#)
        .replace(r#"parameter = "dataFrom""#, r#"parameter = "page""#)
        .replace(r#"unit = "row""#, r#"unit = "page""#)
        .replace("first = 0", "first = 1")
        .replace(r#"parameter = "dataSize""#, r#"parameter = "limit""#)
        .replace(r#"at = "/mentions/total""#, r#"at = "/meta/count""#)
        .replace(r#"sections = [{ at = "/mentions/items" }]"#, r#"sections = [{ at = "/results" }]"#)
        .replace(r#"offset = "/mentions/from""#, "")
}

async fn search(headers: HeaderMap, Query(asked): Query<HashMap<String, String>>) -> String {
    assert_eq!(headers["authorization"], "ApiKey my-key");
    let page: u64 = asked["page"].parse().unwrap_or(1);
    let size: u64 = asked["limit"].parse().unwrap_or(100);
    let rows = ((page - 1) * size..(page * size).min(250))
        .map(|n| format!(r#"{{"id": {n}, "publishedAt": "2026-01-01T00:00:00Z", "text": "mention {n}"}}"#));
    format!(r#"{{"meta": {{"count": 250}}, "results": [{}]}}"#, rows.collect::<Vec<_>>().join(","))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base_url = format!("http://{}/v4", listener.local_addr()?);
    tokio::spawn(axum::serve(listener, axum::Router::new().route("/v4/search", get(search))).into_future());

    let profile = Profile::parse(&profile(), "own_profile.rs")?;
    let connection = Connection::builder(base_url, Secret::new("my-key")?).profile(profile).build()?;
    let context = SessionContext::new();
    context.register_catalog("mine", catalog(&connection)?);
    let mentions = "SELECT count(*), min(text) FROM mine.v4.mentions WHERE aid = '1' AND published_at >= '2026-01-01'";
    context.sql(mentions).await?.show().await?;
    context.sql("SELECT parameters, rows FROM mine.system.requests ORDER BY 1").await?.show().await?;
    Ok(())
}
