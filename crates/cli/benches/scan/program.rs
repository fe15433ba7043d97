//! The command `savedsearch sql` as a process: next to curl and DuckDB, each format, its start.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use datafusion_saved_search::simulator::KEY;
use tempfile::TempDir;

use super::service::Service;
use super::{AID, CONCURRENCY, Figure, Goal, PAIRS, Result, WINDOW, median, pages};

/// Formats, and the rows a second that each should reach.
const FORMATS: [(&str, Option<f64>); 5] =
    [("csv", Some(60_000.0)), ("ndjson", Some(60_000.0)), ("json", None), ("parquet", None), ("arrow", None)];

/// `rows` for each format. `python` has DuckDB, if it is to be compared with.
pub(crate) fn measure(rows: usize, python: Option<&str>) -> Result<Vec<Figure>> {
    let mut figures = against_others(python)?;
    figures.extend(formats(rows)?);
    figures.push(start()?);
    Ok(figures)
}

/// Wall time of `sql` to NDJSON, compared with curl and DuckDB for the same pages.
fn against_others(python: Option<&str>) -> Result<Vec<Figure>> {
    const MENTIONS: usize = 10_000;
    let service = Service::start(MENTIONS, 20, 100)?;
    let folder = TempDir::new()?;
    let list = folder.path().join("urls");
    let mut file = File::create(&list)?;
    for url in pages(&service.base_url, MENTIONS, 100) {
        writeln!(file, "url = \"{url}\"\noutput = \"{}\"", folder.path().join("body").display())?;
    }
    println!("{MENTIONS} mentions, 100 per page, 20 ms delay, as processes");
    let duckdb = python.map(DuckDb::of).transpose()?;
    let (mut to_curl, mut to_duckdb, mut curl_to_duckdb) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let mut curl = Command::new("curl");
        curl.args([
            "--silent",
            "--no-progress-meter",
            "--fail",
            "--parallel",
            "--parallel-max",
            &CONCURRENCY.to_string(),
            "--header",
        ]);
        curl.arg(format!("Authorization: Bearer {KEY}")).arg("--config").arg(&list);
        let bare = run(&mut curl)?;
        let ours = run(sql(&service, "ndjson").arg("-c").arg(everything()))?;
        println!("  curl {bare:.0?}   sql {ours:.0?}");
        to_curl.push(ours.as_secs_f64() / bare.as_secs_f64());
        if let Some(duckdb) = &duckdb {
            let theirs = run(&mut duckdb.to_json(pages(&service.base_url, MENTIONS, 100)))?;
            println!("  DuckDB {theirs:.0?}");
            to_duckdb.push(ours.as_secs_f64() / theirs.as_secs_f64());
            curl_to_duckdb.push(bare.as_secs_f64() / theirs.as_secs_f64());
        }
    }
    let mut figures = vec![Figure::new("wall time of sql to NDJSON / curl", median(to_curl), Goal::AtMost(1.10))];
    if duckdb.is_some() {
        figures.push(Figure::new("wall time of sql to NDJSON / DuckDB", median(to_duckdb), Goal::AtMost(0.75)));
        figures.push(Figure::new("wall time of curl / DuckDB", median(curl_to_duckdb), Goal::None));
    }
    Ok(figures)
}

/// DuckDB's program, and its extension for HTTP.
struct DuckDb {
    program: String,
    httpfs: String,
}

impl DuckDb {
    /// Finds both beside a Python that has the packages duckdb-cli and duckdb-extension-httpfs of one version.
    fn of(python: &str) -> Result<Self> {
        let program = "import importlib.util, pathlib, sys\n\
            folder = importlib.util.find_spec('duckdb_extension_httpfs').submodule_search_locations[0]\n\
            print(pathlib.Path(sys.executable).with_name('duckdb'))\n\
            print(next(pathlib.Path(folder).glob('extensions/*/httpfs.duckdb_extension')))";
        let output = Command::new(python).args(["-c", program]).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut paths = text.lines().map(str::to_owned);
        match (paths.next(), paths.next()) {
            (Some(program), Some(httpfs)) => Ok(Self { program, httpfs }),
            _ => Err(format!("DuckDB: {}", String::from_utf8_lossy(&output.stderr)).into()),
        }
    }

    /// Writes the mentions of pages as JSON.
    fn to_json(&self, pages: impl Iterator<Item = String>) -> Command {
        let urls = pages.map(|url| format!("'{url}'")).collect::<Vec<_>>().join(", ");
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(format!(
            "LOAD '{}'; SET threads = {CONCURRENCY}; SET force_download = true; \
             CREATE SECRET (TYPE http, EXTRA_HTTP_HEADERS MAP {{'Authorization': 'Bearer {KEY}'}}); \
             COPY (SELECT unnest(mentions.items) FROM read_json([{urls}])) TO '/dev/null' (FORMAT json)",
            self.httpfs
        ));
        command
    }
}

/// Rows a second of all columns, for each format.
fn formats(rows: usize) -> Result<Vec<Figure>> {
    let service = Service::start(rows, 0, 100)?;
    let folder = TempDir::new()?;
    let mut figures = Vec::new();
    for (format, least) in FORMATS {
        let target = folder.path().join(format);
        let time = run(sql(&service, format).arg("-o").arg(&target).arg("-c").arg(everything()))?;
        let bytes = std::fs::metadata(&target)?.len();
        std::fs::remove_file(&target)?;
        println!("  {rows} rows to {} MB of {format} in {time:.1?}", bytes / 1_000_000);
        let speed = rows as f64 / time.as_secs_f64();
        figures.push(Figure::new(
            format!("rows a second of 35 columns to {format}"),
            speed,
            least.map_or(Goal::None, Goal::AtLeast),
        ));
    }
    Ok(figures)
}

/// Time from the start of the process to the end of a query that needs no request.
fn start() -> Result<Figure> {
    let service = Service::start(1, 0, 100)?;
    let mut times = Vec::new();
    for _ in 0..31 {
        let time = run(sql(&service, "csv").args(["-c", "SELECT 1"]))?;
        times.push(time.as_secs_f64() * 1_000.0);
    }
    Ok(Figure::new("milliseconds to start, answer SELECT 1 and end", median(times), Goal::AtMost(15.0)))
}

fn sql(service: &Service, format: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_savedsearch"));
    command.env("SAVEDSEARCH_API_KEY", KEY);
    command.args(["sql", "--quiet", "--base-url", &service.base_url, "--format", format]);
    command.args(["--set", "max_requests=1000000", "--set", "query_deadline=36000"]);
    command
}

fn everything() -> String {
    format!("SELECT * FROM mentions WHERE aid = '{AID}' AND duration = '{WINDOW}'")
}

/// Runs a process to its end and returns its wall time. What it writes to stdout is discarded.
fn run(command: &mut Command) -> Result<Duration> {
    let begun = Instant::now();
    let status =
        command.stdin(Stdio::null()).stdout(Stdio::null()).status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(begun.elapsed()) } else { Err(format!("{command:?}: {status}").into()) }
}
