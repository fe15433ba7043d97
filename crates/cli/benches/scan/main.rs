//! Costs that scans add to the network: wall time and processor time beside a plain download of the same pages, memory, planning.
//!
//! Run with `cargo bench --bench scan`. Prints every figure with its goal, and fails if one is missed. The service is a
//! simulator in a separate process. `library` measures scans inside this process, `program` the command `savedsearch sql`.
//! `-- --mentions 10000000 --page 1000` streams more mentions in larger pages, `-- --rows 100000` writes fewer rows, and
//! `-- --python PYTHON` compares with DuckDB, where this Python has the packages duckdb-cli and duckdb-extension-httpfs.
#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]

#[path = "../arguments/mod.rs"]
mod arguments;
mod library;
mod program;
#[path = "../service/mod.rs"]
mod service;

use std::error::Error;
use std::fmt::{Display, Formatter};

use datafusion_saved_search::simulator::KEY;
use futures::{StreamExt, TryStreamExt, stream};
use reqwest::Client;

use arguments::{argument, number};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The window of all mentions.
const WINDOW: &str = "2026-01-01T00:00:00Z..2026-07-01T12:00:00Z";
const AID: &str = "183772";
/// Requests at once.
const CONCURRENCY: usize = 4;
/// Runs of which the median counts.
const PAIRS: usize = 9;

#[tokio::main]
async fn main() -> Result<()> {
    // The library chooses a provider for itself; the plain client takes the default of the process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mentions = number("--mentions", 1_000_000)?;
    let page = number("--page", 100)?;
    let rows = number("--rows", 1_000_000)?;
    let python = argument("--python");

    let mut figures = library::measure(mentions, page).await?;
    figures.extend(program::measure(rows, python.as_deref())?);
    let missed: Vec<_> = figures.iter().filter(|figure| !figure.met()).map(Figure::to_string).collect();
    for figure in &figures {
        println!("{figure}");
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("goals missed: {}", missed.join("; ")).into()) }
}

/// A measured figure and its goal.
struct Figure {
    what: String,
    value: f64,
    goal: Goal,
}

enum Goal {
    AtMost(f64),
    AtLeast(f64),
    /// For the reader.
    None,
}

impl Figure {
    fn new(what: impl Into<String>, value: f64, goal: Goal) -> Self {
        Self { what: what.into(), value, goal }
    }

    fn met(&self) -> bool {
        match self.goal {
            Goal::AtMost(most) => self.value <= most,
            Goal::AtLeast(least) => self.value >= least,
            Goal::None => true,
        }
    }
}

impl Display for Figure {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { what, value, .. } = self;
        match value {
            0.0..10.0 => write!(f, "{what}: {value:.2}")?,
            _ => write!(f, "{what}: {value:.0}")?,
        }
        match self.goal {
            Goal::AtMost(most) => write!(f, " (goal: at most {most})"),
            Goal::AtLeast(least) => write!(f, " (goal: at least {least})"),
            Goal::None => Ok(()),
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// URLs of the pages of a scan in ascending order: each page shares a row with the previous one, and the last is not full.
fn pages(base_url: &str, mentions: usize, size: usize) -> impl Iterator<Item = String> {
    (0..=mentions / (size - 1)).map(move |page| {
        format!(
            "{base_url}/search?aid={AID}&duration={WINDOW}&timezone=UTC&sortBy=date_asc&dataFrom={}&dataSize={size}",
            page * (size - 1)
        )
    })
}

#[expect(clippy::disallowed_methods, reason = "a plain client is what the library is compared with")]
fn plain_client() -> Client {
    Client::new()
}

/// Downloads pages without decoding them; their URLs are known in advance. Returns the sum of their sizes in bytes.
async fn download(client: &Client, pages: impl Iterator<Item = String>) -> Result<usize> {
    let bodies = pages
        .map(|url| async move { client.get(url).bearer_auth(KEY).send().await?.error_for_status()?.bytes().await });
    let sizes = stream::iter(bodies).buffered(CONCURRENCY).map_ok(|body| body.len());
    Ok(sizes.try_fold(0, |sum, size| async move { Ok(sum + size) }).await?)
}
