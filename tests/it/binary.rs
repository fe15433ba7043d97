//! The binary as a user runs it: output streams, exit codes, and secrets that must not be printed.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Datelike;
use datafusion_saved_search::Clock;
use datafusion_saved_search::host::{Limits, ServeDocument, hash_password};
use datafusion_saved_search::postgres::scram_verifier;
use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, Preset, Settings};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use sha2::{Digest, Sha256};

use crate::flight::access::Authority;
use crate::pages::{Page, page, pages};
use crate::support::{LONGEST, each, now};

const BINARY: &str = env!("CARGO_BIN_EXE_savedsearch");
const CANARY: &str = "canary-51c0-key";
const NOW: &str = "2026-07-01T12:00:00Z";

/// The program of this build, or the one that `SAVEDSEARCH_BIN` names, such as an optimized one.
pub(crate) fn savedsearch(arguments: &[&str]) -> Command {
    #[expect(clippy::disallowed_methods, reason = "the program does not read the settings of tests")]
    let other = std::env::var("SAVEDSEARCH_BIN");
    let mut command = Command::new(other.as_deref().unwrap_or(BINARY));
    command.args(arguments);
    for name in ["BASE_URL", "API_KEY", "PROFILE", "CONFIG", "STORE", "BIN"] {
        command.env_remove(format!("SAVEDSEARCH_{name}"));
    }
    // The configuration and the state of whoever runs the tests must not matter.
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command.env("XDG_STATE_HOME", format!("{}/state-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id()));
    command
}

fn run(arguments: &[&str]) -> Output {
    savedsearch(arguments).stdin(Stdio::null()).output().unwrap()
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A running `savedsearch simulate` on a free port.
pub(crate) struct Simulate {
    child: Child,
    pub(crate) base_url: String,
}

impl Simulate {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = savedsearch(&["simulate", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, base_url: format!("http://{address}/v4") }
    }

    fn sql(&self, arguments: &[&str]) -> Command {
        let mut command = savedsearch(&["--base-url", &self.base_url, "sql"]);
        command.args(arguments).env("SAVEDSEARCH_API_KEY", "demo-key-comms").stdin(Stdio::null());
        command
    }
}

impl Drop for Simulate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn without_a_base_url_it_answers_from_demo_data_and_says_so() {
    let output = run(&["sql", "--format", "csv", "-c", "SELECT id, source FROM mentions LIMIT 3"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(out(&output).lines().count(), 4);
    let told = err(&output);
    let (notes, summary) = told.split_once("3 rows · ").unwrap_or_else(|| panic!("{told}"));
    assert_eq!(
        notes,
        "note: no --base-url: using built-in demo data\n\
         note: no time filter: reading the last 7 days; add `published_at >= …` or `duration = '…'` to change this\n"
    );
    assert!(summary.contains(" request") && summary.ends_with(" · complete\n"), "{summary}");
    let output = run(&["--quiet", "sql", "--format", "csv", "-c", "SELECT id, source FROM mentions LIMIT 3"]);
    assert_eq!((out(&output).lines().count(), err(&output).as_str()), (4, ""));
    let output = savedsearch(&["sql", "-c", "SELECT 1"]).env("SAVEDSEARCH_API_KEY", "x").output().unwrap();
    let warning = "warning: the API key is not used, because no base URL is set; use --base-url\n";
    assert!(output.status.success() && err(&output).ends_with(warning), "{}", err(&output));
}

#[test]
fn a_newcomer_is_told_what_it_is_and_what_to_try() {
    let output = run(&[]);
    assert_eq!((output.status.code(), err(&output)), (Some(0), String::new()));
    let greeting = out(&output);
    assert!(greeting.contains("demo data") && greeting.contains("SAVEDSEARCH_API_KEY"), "{greeting}");
    let queries: Vec<&str> = greeting.lines().filter_map(|line| line.trim().strip_prefix("savedsearch sql ")).collect();
    assert_eq!(queries.len(), 3);
    for query in queries {
        let path = format!("{}:/usr/bin:/bin", Path::new(BINARY).parent().unwrap().display());
        let output =
            Command::new("sh").args(["-c", &format!("savedsearch sql {query}")]).env("PATH", path).output().unwrap();
        assert!(
            output.status.success() && out(&output).lines().count() > 5,
            "{query}\n{}{}",
            out(&output),
            err(&output)
        );
    }
    assert!(greeting.lines().all(|line| line.chars().count() <= 120), "{greeting}");
}

#[test]
fn each_command_has_examples_completions_and_a_page_of_the_manual() {
    let commands =
        ["sql", "ui", "serve", "mcp", "worker", "sync", "store", "probe", "profile", "simulate", "completions", "man"];
    for command in commands {
        let help = out(&run(&[command, "--help"]));
        assert!(help.contains("Examples:\n  ") && help.contains("savedsearch "), "{command}\n{help}");
        let page = out(&run(&["man", command]));
        assert!(page.contains(".TH") && page.contains(&format!("savedsearch\\-{command}")), "{command}\n{page}");
        assert!(page.contains("Examples"), "{command}\n{page}");
    }
    assert!(out(&run(&["--help"])).contains("Examples:\n  savedsearch sql"));
    assert!(out(&run(&["man"])).contains("savedsearch\\-sql(1)"));
    let wrong = run(&["man", "sqll"]);
    assert_eq!(wrong.status.code(), Some(2));
    for shell in ["bash", "zsh", "fish"] {
        let script = out(&run(&["completions", shell]));
        assert!(commands.iter().all(|command| script.contains(command)) && script.contains("estimate"), "{shell}");
    }
    // bash accepts the script.
    let script = out(&run(&["completions", "bash"]));
    let asked = "COMP_WORDS=(savedsearch sql --est); COMP_CWORD=2; _savedsearch savedsearch --est sql; echo \"${COMPREPLY[@]}\"";
    let output = Command::new("bash").args(["-c", &format!("{script}\n{asked}")]).output().unwrap();
    assert_eq!(out(&output).trim(), "--estimate", "{}", err(&output));
}

#[test]
fn a_table_that_nobody_looks_at_is_whole() {
    let service = Simulate::start(&["--now", NOW, "--mentions", "300"]);
    let sql = "SELECT * FROM mentions WHERE aid = '183772' AND duration = '2026-06-01T00:00:00Z..2026-07-01T00:00:00Z' LIMIT 3";
    let output = service.sql(&["-c", sql]).output().unwrap();
    let table = out(&output);
    let columns = |line: &str| line.matches(" | ").count();
    assert!(columns(table.lines().nth(1).unwrap()) > 25 && !table.contains('…'), "{table}");
    assert_eq!((table.lines().count(), err(&output).as_str()), (7, "3 rows · 1 request · complete\n"), "{table}");
}

#[test]
fn what_another_connection_lacks_is_told_too() {
    let here = Simulate::start(&["--now", NOW, "--mentions", "300"]);
    let there = Simulate::start(&["--now", NOW, "--mentions", "300", "--fault", "403:aid=184889"]);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("savedsearch.toml");
    let entry = |name: &str, to: &Simulate| {
        format!("[connections.{name}]\nbase_url = \"{}\"\napi_key_env = \"KEY\"\n", to.base_url)
    };
    fs::write(&config, format!("{}{}", entry("here", &here), entry("there", &there))).unwrap();
    let sql = "SELECT count(DISTINCT id) FROM there.v4.mentions WHERE aid IN ('183772', '184889')";
    let mut command = savedsearch(&["--config", config.to_str().unwrap(), "sql", "--set", "partial=on", "-c", sql]);
    let output = command.env("KEY", "demo-key-comms").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(
        err(&output).contains("warning: incomplete result: ") && err(&output).contains("184889"),
        "{}",
        err(&output)
    );
}

#[test]
fn charts_and_pictures_show_the_result() {
    let service = Simulate::start(&["--now", NOW, "--mentions", "3000", "--searches", "2"]);
    let sources = "SELECT source, count(*) AS n FROM mentions WHERE aid = '183772' AND duration = '30d' GROUP BY source ORDER BY n DESC";
    let output = service.sql(&["--format", "chart", "-c", sources]).output().unwrap();
    let (chart, lines) = (out(&output), out(&output).lines().count());
    let is_bar = |line: &str| line.contains('│') && line.chars().count() <= 80;
    assert!(lines > 4 && chart.lines().skip(1).all(is_bar), "{chart}");
    assert!(chart.starts_with("n by source\nx.com") && !chart.contains('\x1b'), "{chart}");

    let folder = tempfile::tempdir().unwrap();
    let days = "SELECT date_trunc('day', published_at) AS day, sentiment, count(*) AS n FROM mentions \
                WHERE aid = '183772' AND duration = '30d' AND sentiment IS NOT NULL GROUP BY 1, 2";
    for (format, sql) in [("svg", sources), ("svg", days), ("png", sources), ("png", days)] {
        let file = folder.path().join(format);
        let output = service.sql(&["--format", format, "-o", file.to_str().unwrap(), "-c", sql]).output().unwrap();
        assert!(output.status.success(), "{}", err(&output));
        let picture = fs::read(&file).unwrap();
        match format {
            "svg" => {
                let text = String::from_utf8(picture).unwrap();
                let named = if sql == sources { "reddit.com" } else { "negative" };
                assert!(text.starts_with("<svg") && text.contains(named), "{text}");
            }
            _ => assert!(picture.starts_with(b"\x89PNG\r\n") && picture.len() > 10_000),
        }
    }
    let sized = folder.path().join("sized.png");
    let options = ["--chart-size", "640x360", "--chart-title", "Sources", "-o", sized.to_str().unwrap(), "-c", sources];
    let output = service.sql(&options).output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    // The header of a PNG has its width and height.
    assert_eq!(fs::read(&sized).unwrap()[16..24], [0, 0, 2, 128, 0, 0, 1, 104]);
    let output = service.sql(&["--format", "chart", "--chart-title", "Sources", "-c", sources]).output().unwrap();
    assert!(out(&output).starts_with("Sources\nx.com"), "{}", out(&output));
    each(["1200", "1200x", "100x600", "1200x4001", "axb"], |size| {
        let output = service.sql(&["--chart-size", size, "-c", sources]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = "expected WIDTHxHEIGHT in pixels from 200 to 4000, such as 1200x600";
        assert!(err(&output).contains(said), "{}", err(&output));
    });
    let exact = folder.path().join("exact.svg");
    let sql = "SELECT 'a' AS k, 16777217 AS v UNION ALL SELECT 'b', 0.001";
    let output = service.sql(&["--format", "svg", "-o", exact.to_str().unwrap(), "-c", sql]).output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let picture = fs::read_to_string(exact).unwrap();
    assert!(picture.contains(">16,777,217<") && picture.contains(">0.001<"), "{picture}");
    for (sql, said) in [
        (
            "SELECT id, title FROM mentions WHERE aid = '183772'",
            "title is text; a chart needs numbers after the first column",
        ),
        ("SELECT 'a' AS a, 1 AS n WHERE false", "no rows to draw"),
        ("SELECT column1::text AS a, 1 AS n FROM (SELECT unnest(range(0, 200)) AS column1)", "too many bars: 200"),
    ] {
        let file = folder.path().join("none.svg");
        let output = service.sql(&["--format", "svg", "-o", file.to_str().unwrap(), "-c", sql]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(err(&output).contains(said) && !file.exists(), "{}", err(&output));
    }
}

#[test]
fn every_format_prints() {
    let service = Simulate::start(&["--now", NOW, "--mentions", "300", "--searches", "2"]);
    let sql = "SELECT id, published_at, title, reach, hashtags FROM mentions WHERE aid = '183772' \
               AND duration = '2026-06-01T00:00:00Z..2026-07-01T00:00:00Z' ORDER BY published_at LIMIT 4";
    each([("table", 8), ("csv", 5), ("tsv", 5), ("json", 1), ("ndjson", 4), ("markdown", 6)], |(format, lines)| {
        let output = service.sql(&["--format", format, "-c", sql]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert_eq!(out(&output).lines().count(), lines, "{format}\n{}", out(&output));
        assert_eq!(err(&output), "4 rows · 1 request · complete\n");
        let empty = service.sql(&["--format", format, "-c", &sql.replace("LIMIT 4", "LIMIT 0")]).output().unwrap();
        assert_eq!(empty.status.code(), Some(0), "{}", err(&empty));
    });
    let json = service.sql(&["--format", "json", "-c", sql]).output().unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 4);
    assert!(rows[0]["hashtags"].is_array() && rows[0].as_object().unwrap().contains_key("title"));

    let printed = service.sql(&["--format", "arrow", "-c", sql]).output().unwrap();
    let reader = arrow::ipc::reader::StreamReader::try_new(printed.stdout.as_slice(), None).unwrap();
    assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 4);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("four.parquet");
    let output = service.sql(&["--format", "parquet", "-o", file.to_str().unwrap(), "-c", sql]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let path = file.to_str().unwrap();
    let create =
        format!("CREATE EXTERNAL TABLE four STORED AS PARQUET LOCATION '{path}'; SELECT count(*) AS n FROM four");
    let output = run(&["sql", "--format", "csv", "-c", &create]);
    assert_eq!(out(&output), "n\n4\n", "{}", err(&output));
}

#[test]
fn statements_run_in_order_and_settings_hold() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("more.sql");
    fs::write(&file, "SELECT 3 AS c;\n-- nothing\nSELECT 4 AS d").unwrap();
    let arguments = ["sql", "--format", "csv", "-c", "SELECT 1 AS a; SELECT 2 AS b", "-f", file.to_str().unwrap()];
    assert_eq!(out(&run(&arguments)), "a\n1\nb\n2\nc\n3\nd\n4\n");
    let show = "SHOW savedsearch.max_requests";
    let output = run(&["sql", "--set", "max_requests=7", "--format", "csv", "-c", show]);
    assert_eq!(out(&output), "name,value\nsavedsearch.max_requests,7\n");
    let mut child =
        savedsearch(&["sql", "--format", "csv"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"SELECT 5 AS e;").unwrap();
    assert_eq!(out(&child.wait_with_output().unwrap()), "e\n5\n");
}

#[test]
fn what_goes_wrong_is_one_line_on_stderr_with_nothing_on_stdout() {
    let service = Simulate::start(&["--now", NOW, "--mentions", "300"]);
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("bad.toml");
    fs::write(&profile, "name = 'x'\n[auth]\nhaeder = 'y'\n").unwrap();
    let profile = profile.to_str().unwrap();
    let one = "SELECT id FROM mentions WHERE aid = '183772'";
    let base = service.base_url.as_str();
    let older = base.replace("/v4", "/v3");
    let cases = [
        (vec!["--base-url", base, "sql", "-c", one], "wrong-key", 1, "401 Unauthorized: missing or unknown API key"),
        (vec!["--base-url", base, "sql", "-c", one], "", 2, "no API key; set SAVEDSEARCH_API_KEY"),
        (
            vec!["--base-url", "http://127.0.0.1:1/v4", "sql", "-c", one],
            "some-key",
            1,
            "check that http://127.0.0.1:1/v4 is the service's address",
        ),
        (vec!["--base-url", &older, "sql", "-c", one], "demo-key-comms", 1, "404 Not Found: no endpoint /v3/search"),
        (vec!["--base-url", "ftp://x/v4", "sql", "-c", one], "some-key", 2, "invalid base URL `ftp://x/v4`"),
        (
            vec!["--base-url", "http://x/v4?key=secret", "sql", "-c", one],
            "some-key",
            2,
            "invalid base URL `http://x/v4`: must not contain a query or a fragment",
        ),
        (
            vec!["--base-url", base, "sql", "-c", "SELECT id FROM mentions WHERE aid = 'nope'"],
            "demo-key-comms",
            1,
            "aid nope: page at row 0: the service answered 404",
        ),
        (vec!["--base-url", base, "sql", "-c", one], "demo-key-research", 1, "403 Forbidden"),
        (vec!["sql", "-c", "SELECT nonsense FROM mentions"], "", 1, "unknown column `nonsense`"),
        (
            vec!["sql", "-c", "SELECT id FROM mentions WHERE timezone = 'Mars/X'"],
            "",
            1,
            "invalid time zone `Mars/X`: the service takes",
        ),
        (
            vec!["sql", "-c", "SELECT id FROM mentions WHERE duration = 'week'"],
            "",
            1,
            "invalid period `week`: the service takes",
        ),
        (vec!["--base-url", base, "sql", "--format", "arrow", "-c", one], "wrong-key", 1, "401 Unauthorized"),
        (vec!["--base-url", base, "sql", "--format", "parquet", "-c", one], "wrong-key", 1, "401 Unauthorized"),
        (vec!["--base-url", base, "sql", "--format", "json", "-c", one], "wrong-key", 1, "401 Unauthorized"),
        (vec!["sql", "-c", "SELEC 1"], "", 1, "syntax error: Expected: an SQL statement, found: SELEC"),
        (vec!["sql", "-c", "SELECT id FROM mentions LIMIT -1"], "", 1, "LIMIT must be >= 0"),
        (vec!["sql", "--set", "colour=red", "-c", "SELECT 1"], "", 2, "unknown setting savedsearch.colour"),
        (vec!["sql", "--set", "colour", "-c", "SELECT 1"], "", 2, "--set expects KEY=VALUE"),
        (vec!["sql", "--format", "xml", "-c", "SELECT 1"], "", 2, "invalid value 'xml' for '--format"),
        (
            vec!["--profile", profile, "sql", "-c", "SELECT 1"],
            "",
            2,
            "bad.toml: line 3: key `auth.haeder`: unknown field `haeder`",
        ),
        (vec!["--profile", "/nowhere.toml", "sql", "-c", "SELECT 1"], "", 2, "cannot read profile /nowhere.toml"),
        (vec!["sql", "-f", "/nowhere.sql"], "", 2, "cannot read /nowhere.sql"),
        (vec!["sql", "-o", "/nowhere/x.csv", "-c", "SELECT 1"], "", 2, "cannot write /nowhere/x.csv"),
        (vec!["simulate", "--rate-limit", "many"], "", 2, "expected REQUESTS/SECONDS"),
        (vec!["simulate", "--data", "/nowhere.ndjson"], "", 2, "cannot read /nowhere.ndjson"),
        (vec!["frobnicate"], "", 2, "unrecognized subcommand"),
    ];
    each(cases, |(arguments, key, status, text)| {
        let mut command = savedsearch(&arguments);
        if !key.is_empty() {
            command.env("SAVEDSEARCH_API_KEY", key);
        }
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}\n{}", err(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}\n{}", out(&output));
        let stderr = err(&output);
        assert!(stderr.contains(text), "{arguments:?}\n{stderr}");
        let errors = stderr.lines().filter(|line| line.starts_with("error: ")).count();
        assert_eq!(errors, 1, "{stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
    });
}

#[test]
fn the_key_is_shown_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    fs::write(&file, format!("{CANARY}\n")).unwrap();
    // A service that echoes the request.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut bytes = [0; 4096];
            let length = socket.read(&mut bytes).unwrap();
            let heard = String::from_utf8_lossy(&bytes[..length]).replace("\r\n", " ").replace('"', "'");
            assert!(heard.contains(CANARY), "the key was not sent: {heard}");
            let body = format!("{{\"error\":{{\"code\":\"no\",\"message\":\"you said {heard}\"}}}}");
            let answer = format!("HTTP/1.1 401 X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
            socket.write_all(answer.as_bytes()).unwrap();
        }
    });
    let base = format!("http://{address}/v4");
    let sql = "SELECT * FROM mentions WHERE aid = '1'; ";
    for statements in [sql, "EXPLAIN SELECT * FROM mentions", "SELECT * FROM system.profile; SHOW ALL"] {
        let arguments = ["--base-url", &base, "--api-key-file", file.to_str().unwrap(), "sql", "-c", statements];
        let child = savedsearch(&arguments)
            .env("SAVEDSEARCH_API_KEY", CANARY)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let line = fs::read_to_string(format!("/proc/{}/cmdline", child.id())).unwrap_or_default();
        assert!(!line.contains(CANARY), "in ps: {line}");
        let output = child.wait_with_output().unwrap();
        let shown = out(&output) + &err(&output);
        assert!(!shown.contains(CANARY), "{shown}");
        if statements == sql {
            assert!(shown.contains("Bearer <redacted>"), "{shown}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn first_rows_appear_before_the_last_page_is_fetched() {
    let corpus = Corpus::generate(CorpusSpec { seed: 1, searches: 1, mentions: 1_500, now: now() });
    let settings = Settings { clock: Clock::fixed(now()), delay: Duration::from_secs(1), ..Settings::default() };
    let listen = "127.0.0.1:0".parse().unwrap();
    let service = simulator::start(listen, Arc::new(corpus), settings).await.unwrap();
    let sql =
        "SELECT id FROM mentions WHERE aid = '183772' AND duration = '2026-01-01T00:00:00Z..2026-07-01T12:00:00Z'";
    let mut child = savedsearch(&["--base-url", &service.base_url(), "sql", "--format", "ndjson", "-c", sql])
        .env("SAVEDSEARCH_API_KEY", simulator::KEY)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let asked = service.requests();
    assert!(asked < 16, "all {asked} pages were requested before the first row arrived");
    assert_eq!(lines.count(), 1_499);
    assert_eq!(service.requests(), 16);
    assert!(child.wait().unwrap().success());
}

/// Waits until a result has begun to be written to a file.
fn has_rows(file: &Path) {
    let begun = Instant::now();
    while fs::metadata(file).map_or(0, |file| file.len()) == 0 {
        assert!(begun.elapsed() < LONGEST, "{} has no rows", file.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_interrupt_cancels_and_leaves_no_file() {
    let service = Simulate::start(&["--now", NOW, "--mentions", "5000", "--searches", "1", "--delay-ms", "2000"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.csv");
    let sql =
        "SELECT id FROM mentions WHERE aid = '183772' AND duration = '2026-01-01T00:00:00Z..2026-07-01T12:00:00Z'";
    let mut child = service
        .sql(&["--format", "csv", "-o", file.to_str().unwrap(), "-c", sql])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let partial = folder.path().join("all.csv.partial");
    has_rows(&partial);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let status = child.wait().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(130));
    let told = err(&output);
    assert!(told.starts_with("error: cancelled; ") && told.ends_with(" sent\n") && told.lines().count() == 1, "{told}");
    assert!(!file.exists() && !partial.exists());
}

#[test]
fn what_a_killed_process_left_is_replaced_and_what_a_running_one_writes_is_not() {
    let service = Simulate::start(&["--now", NOW, "--mentions", "5000", "--searches", "1", "--delay-ms", "2000"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.csv");
    let partial = folder.path().join("all.csv.partial");
    let sql =
        "SELECT id FROM mentions WHERE aid = '183772' AND duration = '2026-01-01T00:00:00Z..2026-07-01T12:00:00Z'";
    let mut child = service.sql(&["-o", file.to_str().unwrap(), "-c", sql]).stderr(Stdio::piped()).spawn().unwrap();
    has_rows(&partial);
    let one = || run(&["--quiet", "sql", "-o", file.to_str().unwrap(), "-c", "SELECT 1 AS n"]);
    let refused = one();
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("another process is writing it, to "), "{}", err(&refused));
    assert!(fs::metadata(&partial).unwrap().len() > 0 && !file.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(partial.exists(), "nothing is removed by a process that is killed");
    let replaced = one();
    assert!(replaced.status.success() && replaced.stderr.is_empty(), "{}", err(&replaced));
    assert_eq!(fs::read_to_string(&file).unwrap(), "n\n1\n");
    assert!(!partial.exists());
    // Two names of one file, a link and a folder are not what a killed process leaves.
    let precious = folder.path().join("precious");
    fs::write(&precious, "precious").unwrap();
    fs::hard_link(&precious, &partial).unwrap();
    assert!(one().status.success() && fs::read_to_string(&precious).unwrap() == "precious");
    symlink(&precious, &partial).unwrap();
    assert!(err(&one()).contains("all.csv.partial already exists"));
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    fs::remove_file(&partial).unwrap();
    fs::create_dir(&partial).unwrap();
    assert!(err(&one()).contains("all.csv.partial already exists"));
}

#[test]
fn an_interrupt_ends_a_computation_that_never_pauses() {
    let sql = "SELECT sum(a.value * b.value) FROM range(100000) a, range(1000000) b";
    let mut child = savedsearch(&["sql", "-c", sql]).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // The note about demo data is the first line; the computation follows.
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut String::new()).unwrap();
    // After three seconds of CPU time, planning is over.
    let ticks = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(11)?.parse::<u64>().ok()).unwrap_or(u64::MAX)
    };
    while ticks() < 300 {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "error: cancelled; no requests sent\n");
}

#[test]
fn a_file_is_replaced_only_by_a_result_and_where_it_really_is() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("real.csv"), folder.path().join("link.csv"));
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&file, &link).unwrap();
    let target = link.to_str().unwrap();
    let output = run(&["sql", "--format", "csv", "-o", target, "-c", "SET savedsearch.max_requests = 9"]);
    assert_eq!((output.status.code(), fs::read_to_string(&file).unwrap().as_str()), (Some(0), "old"));
    let output = run(&["sql", "--format", "csv", "-o", target, "-c", "SELECT nonsense"]);
    assert_eq!((output.status.code(), fs::read_to_string(&file).unwrap().as_str()), (Some(1), "old"));
    let output = run(&["sql", "--format", "csv", "-o", target, "-c", "-- a comment\nSELECT 1 AS a"]);
    assert_eq!(
        (output.status.code(), fs::read_to_string(&file).unwrap().as_str()),
        (Some(0), "a\n1\n"),
        "{}",
        err(&output)
    );
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "a temporary file was left behind");
    let output = run(&["sql", "--format", "csv", "-o", "/dev/null", "-c", "SELECT 1"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn a_reader_that_goes_away_ends_the_query_quietly() {
    let service = Simulate::start(&["--now", NOW, "--mentions", "20000", "--searches", "1"]);
    let sql = "SELECT * FROM mentions WHERE aid = '183772' AND duration = '2026-01-01T00:00:00Z..2026-07-01T12:00:00Z'";
    let mut child =
        service.sql(&["--format", "csv", "-c", sql]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""));
}

#[test]
fn the_simulator_ends_gracefully_on_both_signals() {
    for signal in ["-INT", "-TERM"] {
        let mut service = Simulate::start(&["--mentions", "10"]);
        assert!(Command::new("kill").args([signal, &service.child.id().to_string()]).status().unwrap().success());
        assert_eq!(service.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_rate_limit_is_kept_and_waited_out() {
    let service = Simulate::start(&["--now", NOW, "--mentions", "700", "--searches", "1", "--rate-limit", "4/1"]);
    let sql = "SELECT count(DISTINCT id) AS n FROM mentions WHERE aid = '183772' AND duration = '2026-01-01T00:00:00Z..2026-07-01T12:00:00Z'; \
               SELECT sum(wait) > 0 AS waited, max(rate_limit) AS allowed FROM system.requests";
    let output = service.sql(&["--format", "csv", "-c", sql]).output().unwrap();
    assert_eq!(out(&output), "n\n700\nwaited,allowed\ntrue,4\n", "{}", err(&output));
}

/// The page that takes a user from a key to SQL. Its commands run with every dialect.
const GUIDE: &str = "docs/connect.md";
/// The page whose commands install the server, as root or in a container. They are never run.
const DEPLOYMENT: &str = "docs/deploy.md";
/// The page whose commands start several servers. A test of its own runs them.
const WORKERS: &str = "docs/workers.md";

/// Runs every command in the `sh` blocks of README.md and docs/, on demo data or with a simulator in place of the service.
#[test]
fn the_commands_of_the_documentation_work() {
    let service = Simulate::start(&["--mentions", "2000"]);
    let faults = ["--fault", "429:retry-after=1@3", "--fault", "truncated@10%", "--fault", "delete@4-5"];
    assert!(page("docs/simulator.md").text.contains(&faults.join(" ")));
    let failing = Simulate::start(&[&["--mentions", "2000"], &faults[..]].concat());
    let replaced = [
        ("https://api.example.com/v4", service.base_url.as_str()),
        ("http://127.0.0.1:8080/v4", service.base_url.as_str()),
        ("http://127.0.0.1:8081/v4", failing.base_url.as_str()),
    ];
    let (certificate, key) = Authority::new().vouch();
    let users = users();
    let files = [
        ("key.txt", "demo-key-comms"),
        ("report.sql", "SELECT 1;"),
        ("users.toml", users.as_str()),
        ("server.pem", certificate.as_str()),
        ("server.key", key.as_str()),
    ];
    let mut blocks = 0;
    for page in pages().iter().filter(|page| ![GUIDE, DEPLOYMENT, WORKERS].contains(&page.name.as_str())) {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(folder.path().join(name), content).unwrap();
        }
        blocks += run_commands(page, &replaced, folder.path());
    }
    assert!(blocks >= 25, "only {blocks} blocks of commands found");
}

/// The users file of the documentation, with a complete hash in place of the abbreviated one.
fn users() -> String {
    let page = page("docs/server.md");
    let file = page.blocks("toml").into_iter().find(|block| block.starts_with("# users.toml")).unwrap();
    let hash = "$argon2id$v=19$m=19456,t=2,p=1$…";
    assert!(file.contains(hash));
    file.replace(hash, &hash_password("swordfish").unwrap())
}

#[test]
fn the_servers_table_in_the_documentation_has_the_defaults() {
    let page = page("docs/server.md");
    let file = page.blocks("toml").into_iter().find(|block| block.starts_with("# savedsearch.toml")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("savedsearch.toml");
    fs::write(&path, file).unwrap();
    let serve = ServeDocument::read(&path).unwrap();
    assert_eq!(serve.limits, Limits::default());
    assert_eq!(serve.listen, Some("127.0.0.1:50051".parse().unwrap()));
}

/// Precedence: options, then environment variables, then the `[serve]` table of the connections file.
#[test]
fn a_server_takes_options_before_variables_before_its_table() {
    let service = Simulate::start(&["--mentions", "200", "--searches", "1"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("savedsearch.toml");
    let text = format!(
        "[connections.comms]\nbase_url = \"{}\"\napi_key_env = \"COMMS_KEY\"\n[serve]\nlisten = \"127.0.0.1:1\"\nauth = \"users\"\n",
        service.base_url
    );
    fs::write(&path, text).unwrap();
    let serve = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = savedsearch(&["--config", path.to_str().unwrap(), "serve"]);
        command.args(arguments).envs(variables.iter().copied()).env("COMMS_KEY", "demo-key-comms");
        command.stderr(Stdio::piped()).stdin(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        lines.read_line(&mut line).unwrap();
        let listening = line.starts_with("listening on 127.0.0.1:");
        if listening {
            let ended = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
            assert!(ended.success());
        }
        (child.wait().unwrap().code(), line)
    };
    let (code, line) = serve(&[], &[]);
    assert!(code == Some(2) && line.contains("--auth users requires --users-file"), "{line}");
    let (code, line) = serve(&["--auth", "none"], &[("SAVEDSEARCH_LISTEN", "127.0.0.1:0")]);
    assert_eq!(code, Some(0), "{line}");
    let (code, line) = serve(&["--auth", "none", "--listen", "127.0.0.1:0"], &[("SAVEDSEARCH_LISTEN", "127.0.0.1:1")]);
    assert_eq!(code, Some(0), "{line}");
    let cases = [
        (&["--auth", "none", "--listen", "0.0.0.0:0"][..], "may only listen on a loopback address"),
        (&["--auth", "none", "--tls-cert", "x.pem"], "--tls-cert and --tls-key require each other"),
        (&["--auth", "none", "--client-ca", "x.pem"], "--client-ca requires"),
        (&["--auth", "none", "--users-file", "x.toml"], "--users-file requires --auth users"),
        (&["--auth", "users", "--users-file", "x.toml"], "cannot be read"),
        (&["--auth", "none", "--log", "=,="], "--log"),
        (&["--auth", "none", "--set", "freshness=soon"], "freshness"),
        (&["--auth", "none", "--set", "freshness"], "--set expects KEY=VALUE"),
        (&["--auth", "everybody"], "everybody"),
        (&["--listen", "here"], "here"),
    ];
    each(cases, |(arguments, told)| {
        let (code, line) = serve(arguments, &[]);
        assert!(code == Some(2) && line.contains(told), "{arguments:?}: {code:?} {line}");
    });
    // The connection provides an address and a profile; clients send their own keys.
    let (code, line) = serve(&["--auth", "pass-through", "--listen", "127.0.0.1:0"], &[]);
    assert_eq!(code, Some(0), "{line}");
}

/// Runs every command of the guide with a simulator of each dialect in place of the service.
#[test]
fn the_commands_of_the_guide_work_with_every_dialect() {
    let guide = page(GUIDE);
    for preset in Preset::ALL {
        let service = Simulate::start(&["--preset", preset.name(), "--mentions", "2000", "--searches", "3"]);
        let folder = tempfile::tempdir().unwrap();
        let mut replaced = vec![("https://api.example.com/v4", service.base_url.as_str())];
        if preset == Preset::Pages {
            // Its times have no zone: in winter, that of London fits as well.
            replaced.push((" probe ", " probe --fact 'timezone.default = \"+00:00\"' "));
        }
        // That of another dialect is contradicted by the responses, and does no harm.
        fs::write(folder.path().join("openapi.yaml"), include_str!("../../crates/simulator/src/openapi.yaml")).unwrap();
        let blocks = run_commands(&guide, &replaced, folder.path());
        assert!(blocks >= 9, "only {blocks} blocks of commands in {GUIDE}");
    }
}

/// Function of the shell that starts a server, and ends it once it listens; the server has to exit with success.
const FOR_A_MOMENT: &str = r#"for_a_moment() {
    local log
    log=$(mktemp ./log.XXXXXX)
    "$@" 2> "$log" &
    until grep -q "listening on " "$log" || ! kill -0 $! 2> /dev/null; do sleep 0.1; done
    kill -TERM $! 2> /dev/null || true
    wait $! || { cat "$log" >&2; return 1; }
}
"#;

/// Makes a line that starts a server stop once it listens.
fn served_for_a_moment(line: &str) -> String {
    let shows = line.contains(" ui ") || line.ends_with(" ui");
    let serves = line.contains(" serve") || line.contains(" mcp --listen") || shows;
    if !serves || line.contains("--hash-password") || line.contains("--scram-verifier") {
        return line.to_owned();
    }
    let addresses = [
        "0.0.0.0:50051",
        "127.0.0.1:9090",
        "0.0.0.0:8090",
        "127.0.0.1:8090",
        "127.0.0.1:5432",
        "0.0.0.0:8484",
        "127.0.0.1:8484",
    ];
    let line = addresses
        .iter()
        .fold(line.trim_end_matches('&').to_owned(), |line, address| line.replace(address, "127.0.0.1:0"));
    format!("for_a_moment {line}")
}

/// Runs the `sh` blocks of a page, one shell each, and returns their count.
fn run_commands(page: &Page, replaced: &[(&str, &str)], folder: &Path) -> usize {
    let path = format!("{}:{}", Path::new(BINARY).parent().unwrap().display(), "/usr/bin:/bin");
    let curl = Command::new("curl").arg("--version").output().is_ok();
    let blocks = page.blocks("sh");
    for block in &blocks {
        let script = block.replace("cargo run --quiet -- ", "savedsearch ").replace("cargo run -- ", "savedsearch ");
        let script = script.replace("<API_KEY>", "demo-key-comms");
        let script = replaced.iter().fold(script, |script, (from, to)| script.replace(from, to));
        let script = script.replace("\\\n", " ");
        // Commands covered by the tests of the clients, or that do not end.
        let left_out = ["tests/run", "cargo ", "simulate", "pip install", "superset", "packaging/wheel", "python"];
        let kept =
            |line: &&str| left_out.iter().all(|word| !line.contains(word)) && (curl || !line.starts_with("curl"));
        let script: Vec<String> = script.lines().filter(kept).map(served_for_a_moment).collect();
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &format!("{FOR_A_MOMENT}{}", script.join("\n"))])
            .current_dir(folder)
            .env("PATH", &path)
            .env_remove("SAVEDSEARCH_BASE_URL")
            .env_remove("SAVEDSEARCH_PROFILE")
            .env_remove("SAVEDSEARCH_CONFIG")
            .env("SAVEDSEARCH_API_KEY", "demo-key-comms")
            .env("SAVEDSEARCH_LISTEN", "127.0.0.1:0")
            // The user's own configuration file and history are left alone.
            .envs(["CONFIG", "STATE"].map(|kind| (format!("XDG_{kind}_HOME"), folder)))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}\n{block}\n{}{}", page.name, out(&output), err(&output));
    }
    blocks.len()
}

#[test]
fn a_stdout_that_is_closed_or_full_is_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("mine.toml");
    fs::write(&profile, out(&run(&["profile", "show", "v4"]))).unwrap();
    let check = ["profile", "check", profile.to_str().unwrap()];
    let cases = [
        &["profile", "show", "v4"] as &[&str],
        &["profile", "schema"],
        &check,
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["sql", "-c", "SELECT value FROM generate_series(1, 100000)"],
        &[],
    ];
    each(cases, |arguments| {
        for full in [true, false] {
            let stdout = match full {
                true => Stdio::from(fs::File::options().write(true).open("/dev/full").unwrap()),
                // A pipe without a reader.
                false => Stdio::from(std::io::pipe().unwrap().1),
            };
            let output = savedsearch(arguments).stdin(Stdio::null()).stdout(stdout).output().unwrap();
            let (status, told) = (output.status.code(), err(&output));
            assert!(matches!(status, Some(0..=2)) && !told.contains("panicked"), "{arguments:?}: {status:?} {told}");
            let help = arguments == ["--help"];
            assert!(
                !full || help || told.contains("cannot write") || told.contains("No space"),
                "{arguments:?}: {told}"
            );
        }
    });
    let mut hash = savedsearch(&["serve", "--hash-password"])
        .stdin(Stdio::piped())
        .stdout(Stdio::from(std::io::pipe().unwrap().1))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    hash.stdin.take().unwrap().write_all(b"swordfish\n").unwrap();
    let output = hash.wait_with_output().unwrap();
    assert!(!err(&output).contains("panicked"), "{}", err(&output));
}

#[test]
fn a_result_for_the_file_behind_stdout_is_written_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.csv");
    for output in ["/dev/stdout", path.to_str().unwrap()] {
        let file = fs::File::create(&path).unwrap();
        let arguments = ["sql", "-c", "SELECT 7 AS a", "--format", "csv", "-o", output];
        let done = savedsearch(&arguments).stdin(Stdio::null()).stdout(file.try_clone().unwrap()).output().unwrap();
        assert!(done.status.success(), "{}", err(&done));
        assert_eq!(fs::read_to_string(&path).unwrap(), "a\n7\n", "{output}");
        // It was not replaced by another file.
        assert_eq!(file.metadata().unwrap().len(), 4, "{output}");
    }
}

#[test]
fn a_hang_up_ends_things_as_a_termination_does() {
    let mut service = Simulate::start(&["--mentions", "5000", "--searches", "1", "--delay-ms", "1000"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.csv");
    let sql = "SELECT * FROM mentions WHERE aid = '183772' AND duration = '365d'";
    for (name, status) in [("-HUP", 129), ("-TERM", 143), ("-INT", 130)] {
        let child = service
            .sql(&["--format", "csv", "-o", file.to_str().unwrap(), "-c", sql])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The statement listens to signals before it has rows.
        has_rows(&folder.path().join("all.csv.partial"));
        assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{name}: {}", err(&output));
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.is_empty(), "{name}: {left:?} left behind");
    }
    assert!(Command::new("kill").args(["-HUP", &service.child.id().to_string()]).status().unwrap().success());
    assert!(service.child.wait().unwrap().success());
}

/// A running server that logs to a pipe.
struct Served {
    child: Child,
    lines: BufReader<std::process::ChildStderr>,
}

impl Served {
    fn start(arguments: &[&str], key: &str) -> Self {
        let mut command = savedsearch(arguments);
        command.args(["serve", "--listen", "127.0.0.1:0"]).env("SAVEDSEARCH_API_KEY", key);
        Self::of(command)
    }

    fn of(command: Command) -> Self {
        Self::at_address(command).0
    }

    /// Before it listens.
    fn spawn(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        Self { child, lines }
    }

    /// With the address that it listens on.
    fn at_address(command: Command) -> (Self, String) {
        let mut served = Self::spawn(command);
        let line = served.until("listening on ");
        (served, line.trim().rsplit(' ').next().unwrap().to_owned())
    }

    /// The next line with a text.
    fn until(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the server ended before `{text}`");
            if line.contains(text) {
                return line;
            }
        }
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap().success());
    }
}

#[test]
fn a_server_of_postgres_needs_no_flight_sql() {
    let service = Simulate::start(&["--mentions", "100", "--searches", "1"]);
    let base = ["--base-url", service.base_url.as_str(), "serve", "--no-flight"];
    let serve = |arguments: &[&str]| {
        let mut command = savedsearch(&base);
        command.args(arguments).env("SAVEDSEARCH_API_KEY", "demo-key-comms");
        command
    };
    for (arguments, told) in [
        (&[][..], "--no-flight requires --postgres-listen"),
        (&["--listen", "127.0.0.1:0", "--postgres-listen", "127.0.0.1:0"][..], "omit --no-flight"),
    ] {
        let refused = serve(arguments).output().unwrap();
        let line = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(2) && line.contains(told), "{line}");
    }
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    let connections =
        format!("[connections.mine]\nbase_url = \"{}\"\napi_key_env = \"SERVED_KEY\"\n", service.base_url);
    for (settings, arguments, told) in [
        ("", &[][..], "`flight = false` of [serve] requires --postgres-listen"),
        ("listen = \"127.0.0.1:0\"", &["--postgres-listen", "127.0.0.1:0"][..], "`listen` of [serve] is the address"),
        ("", &["--postgres-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"][..], "omit `flight = false` of [serve]"),
    ] {
        fs::write(&config, format!("{connections}[serve]\nflight = false\n{settings}\n")).unwrap();
        let mut command = savedsearch(&["--config", config.to_str().unwrap(), "serve"]);
        let refused = command.args(arguments).env("SERVED_KEY", "demo-key-comms").output().unwrap();
        assert!(refused.status.code() == Some(2) && err(&refused).contains(told), "{}", err(&refused));
    }
    let mut served = Served::spawn(serve(&["--postgres-listen", "127.0.0.1:0"]));
    let postgres = served.until("Postgres on ").trim().replace("Postgres on ", "");
    assert!(served.until("listening on ").ends_with(&format!("{postgres}\n")), "one listener");
    let mut stream = std::net::TcpStream::connect(&postgres).unwrap();
    // A request for TLS (PostgreSQL documentation, "SSL Session Encryption"), which a server without a certificate denies.
    stream.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"N");
    drop(stream);
    let (host, port) = postgres.rsplit_once(':').unwrap();
    let mut config = tokio_postgres::Config::new();
    config.host(host).port(port.parse().unwrap()).user("ada").password("swordfish").dbname("savedsearch");
    let rows = tokio::runtime::Runtime::new().unwrap().block_on(async {
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        let rows = client.query("SELECT count(*) FROM saved_searches WHERE kind = 'saved'", &[]).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
        rows.into_iter().map(|row| row.get::<_, i64>(0)).collect::<Vec<_>>()
    });
    assert_eq!(rows, [1]);
    served.signal("-TERM");
    assert!(served.child.wait().unwrap().success());
}

#[test]
fn a_server_warns_at_its_start_of_what_will_fail_and_outlives_a_hang_up() {
    let service = Simulate::start(&["--mentions", "100", "--searches", "1"]);
    for (base_url, key, reason) in [
        (service.base_url.as_str(), CANARY, "401"),
        ("http://127.0.0.1:1/v4", "demo-key-comms", "is the service's address"),
    ] {
        let mut served = Served::start(&["--base-url", base_url], key);
        let line = served.until("the service cannot be queried");
        assert!(line.contains("WARN") && line.contains(reason) && !line.contains(CANARY), "{line}");
        served.signal("-TERM");
        assert!(served.child.wait().unwrap().success());
    }
    let (folder, mut command) = (tempfile::tempdir().unwrap(), savedsearch(&["--base-url", &service.base_url]));
    let key = folder.path().join("key");
    fs::write(&key, "demo-key-comms\n").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o604)).unwrap();
    command.args(["--api-key-file", key.to_str().unwrap(), "serve", "--listen", "127.0.0.1:0"]);
    let mut served = Served::spawn(command);
    let line = served.until("every user of this machine can read this file");
    assert!(line.contains("WARN") && line.contains(key.to_str().unwrap()), "{line}");
    served.until("listening on ");
    served.signal("-TERM");
    assert!(served.child.wait().unwrap().success());
    let mut served = Served::start(&["--base-url", &service.base_url], "demo-key-comms");
    served.signal("-HUP");
    served.until("reloaded users and API keys; the server has no certificates");
    served.signal("-TERM");
    let mut rest = String::new();
    served.lines.read_to_string(&mut rest).unwrap();
    assert!(served.child.wait().unwrap().success() && !rest.contains("cannot be queried"), "{rest}");
}

#[test]
fn a_worker_without_certificates_has_nothing_to_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().to_str().unwrap();
    let mut worker = Served::of(savedsearch(&["--store", store, "worker", "--listen", "127.0.0.1:0"]));
    worker.signal("-HUP");
    let line = worker.until("certificates");
    assert!(line.contains("nothing to reload: the worker has no certificates"), "{line}");
    worker.signal("-TERM");
    assert!(worker.child.wait().unwrap().success());
}

#[test]
fn a_worker_reads_its_certificates_again_after_a_hang_up() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let [(first, first_key), (second, second_key)] = [authority.vouch(), authority.vouch()];
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (certificate, key) = (file("worker.pem", &first), file("worker.key", &first_key));
    let authorities = file("ca.pem", &authority.certificate);
    let mut command = savedsearch(&["--store", folder.path().to_str().unwrap(), "worker", "--listen", "127.0.0.1:0"]);
    command.args(["--tls-cert", &certificate, "--tls-key", &key, "--client-ca", &authorities]);
    let (mut worker, address) = Served::at_address(command);
    let shows = |pem: &str| presented(&address, &authority) == CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    assert!(shows(&first));
    fs::write(&certificate, &second).unwrap();
    fs::write(&key, &second_key).unwrap();
    worker.signal("-HUP");
    worker.until("reloaded certificates");
    assert!(shows(&second));
    fs::write(&key, "no key").unwrap();
    worker.signal("-HUP");
    let line = worker.until("reload failed");
    assert!(line.contains("ERROR") && line.contains("worker.key: contains no private key"), "{line}");
    assert!(shows(&second));
    worker.signal("-TERM");
    assert!(worker.child.wait().unwrap().success());
}

/// The certificate that a server presents.
fn presented(address: &str, authority: &Authority) -> CertificateDer<'static> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.certificate.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    while connection.peer_certificates().is_none() {
        connection.complete_io(&mut stream).unwrap();
    }
    connection.peer_certificates().unwrap()[0].clone()
}

/// Runs a query on a server for agents.
fn query_of_agent(address: &str, authorization: &str, sql: &str) {
    let arguments = serde_json::json!({ "name": "query", "arguments": { "sql": sql } });
    let body =
        serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": arguments }).to_string();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\nconnection: close\r\n\
         authorization: {authorization}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
}

#[test]
fn a_key_that_a_client_sends_is_a_login_once_the_service_accepts_it() {
    let service = Simulate::start(&["--mentions", "100", "--searches", "1"]);
    let mut command = savedsearch(&["--base-url", &service.base_url, "mcp", "--listen", "127.0.0.1:0"]);
    command.args(["--auth", "pass-through", "--log", "info"]);
    let mut served = Served::spawn(command);
    let line = served.until("listening on ");
    let address = line.trim().rsplit(' ').next().unwrap();
    for key in [CANARY, "demo-key-comms", "demo-key-comms"] {
        query_of_agent(address, &format!("Bearer {key}"), "SELECT count(*) FROM saved_searches");
    }
    served.signal("-TERM");
    let mut log = String::new();
    served.lines.read_to_string(&mut log).unwrap();
    assert!(served.child.wait().unwrap().success());
    let with = |text: &str| log.lines().filter(|line| line.contains(text)).collect::<Vec<_>>();
    assert_eq!((with("query started").len(), with("logged in").len()), (3, 1), "{log}");
    assert!(!log.contains("demo-key-comms") && !log.contains(CANARY), "{log}");
}

#[test]
fn lines_of_the_log_name_users_and_statements_as_people_write_them() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users.toml");
    fs::write(&users, format!("[users.bob]\npassword_hash = \"{}\"\n", hash_password("swordfish").unwrap())).unwrap();
    let mut command = savedsearch(&["mcp", "--listen", "127.0.0.1:0", "--auth", "users", "--users-file"]);
    command.arg(&users).args(["--log", "info,datafusion_saved_search=debug"]);
    let mut served = Served::spawn(command);
    let line = served.until("listening on ");
    let address = line.trim().rsplit(' ').next().unwrap();
    let sql = "SELECT count(*) FROM saved_searches WHERE name <> 'it'";
    for _ in 0..2 {
        query_of_agent(address, "Basic Ym9iOnN3b3JkZmlzaA==", sql);
    }
    served.signal("-TERM");
    let mut log = String::new();
    served.lines.read_to_string(&mut log).unwrap();
    assert!(served.child.wait().unwrap().success());
    let with = |text: &str| log.lines().filter(|line| line.contains(text)).collect::<Vec<_>>();
    let logins = with("logged in");
    assert!(logins.len() == 1 && logins[0].contains("principal=bob"), "{log}");
    // The same name in the line with the text and in those of the queries.
    let name = with(sql)[0].split("statement=").nth(1).unwrap().split(' ').next().unwrap();
    assert!(name.trim_matches('"').len() == 12 && name.bytes().all(|byte| byte == b'"' || byte.is_ascii_hexdigit()));
    assert_eq!(with("query started").len(), 2, "{log}");
    assert!(with("query started").iter().all(|line| line.contains(&format!("statement={name}"))), "{log}");
    assert!(!log.contains("Some(") && !log.contains("\\\""), "{log}");
}

#[test]
fn statements_of_postgres_clients_are_logged_as_the_client_wrote_them() {
    let mut command = savedsearch(&["--now", NOW, "serve", "--no-flight", "--postgres-listen", "127.0.0.1:0"]);
    command.args(["--log", "info,datafusion_saved_search=debug"]);
    let (mut served, address) = Served::at_address(command);
    let (host, port) = address.rsplit_once(':').unwrap();
    let mut config = tokio_postgres::Config::new();
    config.host(host).port(port.parse().unwrap()).user("ada").dbname("savedsearch");
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.simple_query("set savedsearch.freshness = '1s'").await.unwrap();
        client.simple_query("  select   1  ; select 2").await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
    });
    served.signal("-TERM");
    let mut log = String::new();
    served.lines.read_to_string(&mut log).unwrap();
    assert!(served.child.wait().unwrap().success());
    each(["set savedsearch.freshness = '1s'", "select   1", "select 2"], |sql| {
        let digest = Sha256::digest(sql).iter().take(6).fold(0_u64, |digest, byte| (digest << 8) | u64::from(*byte));
        let digest = format!("{digest:012x}");
        let line = log.lines().find(|line| line.contains(&format!("sql=\"{sql}\""))).unwrap_or_else(|| panic!("{log}"));
        assert!(line.contains(&digest), "{digest}: {line}");
    });
    assert!(!log.contains("SET savedsearch.freshness"), "{log}");
}

#[test]
fn a_page_and_a_server_for_agents_warn_of_what_will_fail() {
    let service = Simulate::start(&["--mentions", "100", "--searches", "1"]);
    for arguments in [["ui", "--listen", "127.0.0.1:0"], ["mcp", "--listen", "127.0.0.1:0"]] {
        let mut command = savedsearch(&[&["--base-url", service.base_url.as_str()], &arguments[..]].concat());
        command.env("SAVEDSEARCH_API_KEY", CANARY);
        let mut served = Served::spawn(command);
        let line = served.until("the service cannot be queried");
        assert!(line.contains("WARN") && line.contains("401") && !line.contains(CANARY), "{line}");
        served.signal("-TERM");
        assert!(served.child.wait().unwrap().success());
    }
}

#[test]
fn a_server_is_checked_without_being_started() {
    let service = Simulate::start(&["--mentions", "100", "--searches", "1"]);
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users.toml");
    fs::write(&users, format!("[users.ada]\ntoken_sha256 = [\"{}\"]\n", "0".repeat(64))).unwrap();
    let check = |base_url: &str, key: &str, arguments: &[&str]| {
        let arguments = [&["--base-url", base_url, "serve", "--check"], arguments].concat();
        let output = savedsearch(&arguments).env("SAVEDSEARCH_API_KEY", key).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), err(&output))
    };
    let known = ["--listen", "127.0.0.1:0", "--auth", "users", "--users-file", users.to_str().unwrap()];
    let mode = |mode: u32| fs::set_permissions(&users, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o644);
    let (code, lines) = check(&service.base_url, "demo-key-comms", &known);
    let warning =
        format!("warning: {0}: every user of this machine can read this file; run `chmod o-r {0}`\n", known[5]);
    assert!(code == Some(0) && lines.starts_with(&warning), "{lines}");
    mode(0o640);
    let (code, lines) = check(&service.base_url, "demo-key-comms", &known);
    let listed = format!("{}: 1 user\nFlight SQL: 127.0.0.1:0\nservice savedsearch: ok\nconfiguration: ok\n", known[5]);
    assert_eq!((code, lines.as_str()), (Some(0), listed.as_str()));
    let (certificate, private) = Authority::new().vouch();
    let [pem, key] = [("server.pem", certificate), ("server.key", private)].map(|(name, text)| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let encrypted = [&known[2..], &["--tls-cert", &pem, "--tls-key", &key, "--operations", "127.0.0.1:0"]].concat();
    let postgres = [&encrypted[..], &["--no-flight", "--postgres-listen", "0.0.0.0:0"]].concat();
    let (code, lines) = check(&service.base_url, "demo-key-comms", &postgres);
    let listed = "PostgreSQL: 0.0.0.0:0\nhealth and metrics: 127.0.0.1:0\nservice savedsearch: ok\nconfiguration: ok\n";
    assert!(code == Some(0) && lines.ends_with(listed), "{lines}");
    assert!(lines.contains(&format!("\n{pem}: ok, expires on 4096-01-01 00:00 UTC\n")), "{lines}");
    let swapped = ["--tls-cert", key.as_str(), "--tls-key", &pem];
    let (code, lines) = check(&service.base_url, "demo-key-comms", &swapped);
    assert!(code == Some(2) && lines.contains(&format!("{key}: contains no certificate")), "{lines}");
    let (code, lines) = check(&service.base_url, CANARY, &[]);
    assert!(code == Some(1) && lines.contains("401") && !lines.contains(CANARY), "{lines}");
    assert!(!lines.contains("configuration: ok"), "{lines}");
    let (code, lines) = check(&service.base_url, "demo-key-comms", &["--listen", "0.0.0.0:1"]);
    assert!(code == Some(2) && lines.contains("may only listen on a loopback address"), "{lines}");
    fs::write(&users, "[users.ada]\n").unwrap();
    let (code, lines) = check(&service.base_url, "demo-key-comms", &known);
    assert!(code == Some(2) && lines.contains("user `ada`"), "{lines}");
}

/// Whatever ends a start before it listens ends a check, with the same line.
#[test]
fn a_check_refuses_what_a_start_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let [(pem, key), (_, other)] = [authority.vouch(), authority.vouch()];
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (pem, key, other) = (file("server.pem", &pem), file("server.key", &key), file("other.key", &other));
    let ca = file("ca.pem", &authority.certificate);
    let none = folder.path().join("none.pem").to_str().unwrap().to_owned();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let https = "https://127.0.0.1:1";
    for (arguments, told) in [
        (&["--operations", &port, "--listen", &port][..], "cannot both listen on"),
        (&["--worker", "worker1:50061"], "no host; write http://HOST:PORT"),
        (&["--worker", "http://10.1.2.3:50061"], "clear text"),
        (&["--worker", https], "https needs certificates"),
        (&["--worker", https, "--worker-cert", &pem], "require each other"),
        (
            &["--worker", https, "--worker-cert", &pem, "--worker-key", &other, "--worker-ca", &ca],
            "belongs to another certificate",
        ),
        (&["--worker", https, "--worker-cert", &none, "--worker-key", &key, "--worker-ca", &ca], "none.pem"),
        (&["--worker-partition-bytes", "many"], "invalid value 'many'"),
        (&["--log", "verbose"], "unknown level in `verbose`"),
        (&["--log", "info,h3=debug"], "unknown target `h3`"),
        (&["--log", "h2=debgu"], "unknown level in `h2=debgu`"),
        (&["--log", "x=y=z"], "unknown level in `x=y=z`"),
    ] {
        let listen = if arguments.contains(&"--listen") { &[][..] } else { &["--listen", "127.0.0.1:0"] };
        let refused = |start: &[&str]| {
            let output = run(&[start, listen, arguments].concat());
            let line = err(&output).lines().rfind(|line| line.starts_with("error: ")).unwrap_or_default().to_owned();
            assert!(output.status.code() == Some(2) && line.contains(told), "{arguments:?}: {}", err(&output));
            line
        };
        assert_eq!(refused(&["serve", "--check"]), refused(&["serve"]));
    }
    // The address may be that of the server that runs, and is to be restarted.
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap().to_string();
    let output = run(&["serve", "--check", "--listen", &address]);
    let warning = format!("warning: Flight SQL: {address} is in use; ");
    assert!(output.status.success() && err(&output).contains(&warning), "{}", err(&output));
}

/// A folder is never taken for object storage, nor the reverse.
#[test]
fn an_address_of_a_store_is_not_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("s3:", "`s3:` is not a folder of a store; use an address such as s3://bucket/prefix"),
        ("s3:/bucket", "`s3:` is not a folder of a store"),
        ("ftp://me:secret@host/mentions", "unknown scheme `ftp` of a store; use a folder, or an address"),
        ("s3://me:secret@bucket", "invalid s3 address of a store"),
        ("s3://bucket/mentions", "s3://bucket/mentions"),
    ];
    each(cases, |(location, told)| {
        for by_variable in [false, true] {
            let options = ["--now", "2026-07-01T12:00:00Z", "--store", location, "sql", "-c", "SELECT 1"];
            let mut command = match by_variable {
                false => savedsearch(&options),
                true => savedsearch(&[&options[..2], &options[4..]].concat()),
            };
            if by_variable {
                command.env("SAVEDSEARCH_STORE", location);
            }
            let output = command.current_dir(folder.path()).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            assert!(err(&output).contains(told) && !err(&output).contains("secret"), "{}", err(&output));
        }
    });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is created");
}

#[test]
fn a_check_names_the_store() {
    let service = Simulate::start(&["--mentions", "100", "--searches", "1"]);
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let mut command =
        savedsearch(&["--base-url", &service.base_url, "--store", store.to_str().unwrap(), "serve", "--check"]);
    command.args(["--listen", "127.0.0.1:0"]).env("SAVEDSEARCH_API_KEY", "demo-key-comms");
    let mut told = || err(&command.output().unwrap());
    let missing = told();
    let line = format!("store {}: missing; the server creates it when it starts\n", store.display());
    assert!(missing.contains(&line) && missing.ends_with("configuration: ok\n"), "{missing}");
    assert!(!store.exists(), "a check creates nothing");
    fs::create_dir(&store).unwrap();
    assert!(told().contains(&line) && fs::read_dir(&store).unwrap().next().is_none(), "nor in an empty folder");
    let options = ["--base-url", &service.base_url, "--store", store.to_str().unwrap(), "sql", "-c", "SELECT 1"];
    let made = savedsearch(&options).env("SAVEDSEARCH_API_KEY", "demo-key-comms").output().unwrap();
    assert!(made.status.success(), "{}", err(&made));
    let existing = told();
    assert!(existing.contains(&format!("store {}: ok\n", store.canonicalize().unwrap().display())), "{existing}");
}

/// The folder of a store cannot be created below a file.
#[test]
fn a_check_refuses_a_store_that_a_start_cannot_create() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let store = file.join("store");
    for start in [&["serve", "--check"][..], &["serve"]] {
        let options = ["--base-url", "http://127.0.0.1:9/v4", "--store", store.to_str().unwrap()];
        let mut command = savedsearch(&[&options[..], start, &["--listen", "127.0.0.1:0"]].concat());
        let output = command.env("SAVEDSEARCH_API_KEY", "demo-key-comms").stdin(Stdio::null()).output().unwrap();
        let line = format!("error: cannot open the store in {}: ", store.display());
        assert!(output.status.code() == Some(1) && err(&output).contains(&line), "{start:?}: {}", err(&output));
    }
}

#[test]
fn lines_of_a_log_of_objects_are_objects() {
    let arguments =
        ["serve", "--listen", "127.0.0.1:0", "--operations", "127.0.0.1:0", "--postgres-listen", "127.0.0.1:0"];
    let mut command = savedsearch(&arguments);
    command.args(["--ui", "127.0.0.1:0", "--log-format", "json"]);
    let mut served = Served::spawn(command);
    let mut messages = Vec::new();
    let mut read = |line: &str| {
        let object: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let [message, level, at] =
            ["message", "level", "timestamp"].map(|name| object[name].as_str().unwrap().to_owned());
        assert!(level == "INFO" && chrono::DateTime::parse_from_rfc3339(&at).is_ok(), "{line}");
        messages.push(message);
    };
    loop {
        let mut line = String::new();
        assert!(served.lines.read_line(&mut line).unwrap() > 0, "the server has ended");
        read(&line);
        if line.contains("listening on") {
            break;
        }
    }
    served.signal("-TERM");
    let mut rest = String::new();
    served.lines.read_to_string(&mut rest).unwrap();
    rest.lines().for_each(&mut read);
    assert!(served.child.wait().unwrap().success());
    for begin in
        ["no --base-url", "Postgres on ", "page on ", "health and metrics on ", "listening on ", "shutting down"]
    {
        assert!(messages.iter().any(|message| message.starts_with(begin)), "{begin}: {messages:?}");
    }
    let output = run(&["serve", "--log-format", "json", "--listen", "0.0.0.0:0"]);
    let last = err(&output).lines().last().unwrap().to_owned();
    let object: serde_json::Value = serde_json::from_str(&last).unwrap();
    assert!(object["level"] == "ERROR" && object["message"].as_str().unwrap().contains("loopback"), "{last}");
    for format in [&["--log-format", "json"][..], &["--log-format=json"]] {
        let output = run(&[&["serve"], format, &["--lisen", "x"]].concat());
        let object: serde_json::Value = serde_json::from_str(&err(&output)).unwrap();
        assert!(output.status.code() == Some(2) && object["level"] == "ERROR", "{object}");
        let message = "unexpected argument '--lisen' found; tip: a similar argument exists: '--listen'";
        assert_eq!(object["message"], message);
    }
}

#[test]
fn a_worker_that_does_not_answer_is_a_warning() {
    let mut command = savedsearch(&["serve", "--listen", "127.0.0.1:0", "--worker", "http://127.0.0.1:1"]);
    command.args(["--log", "warn"]);
    let mut served = Served::spawn(command);
    let line = served.until("unreachable");
    assert!(line.contains("WARN") && line.contains("worker=http://127.0.0.1:1"), "{line}");
    served.until("listening on ");
    served.signal("-TERM");
    assert!(served.child.wait().unwrap().success());
}

#[test]
fn a_second_signal_cancels_queries_and_tells_their_clients() {
    let service = Simulate::start(&["--mentions", "5000", "--searches", "1", "--delay-ms", "1000"]);
    let mut command = savedsearch(&["--base-url", &service.base_url, "serve", "--listen", "127.0.0.1:0"]);
    command.args(["--postgres-listen", "127.0.0.1:0"]).env("SAVEDSEARCH_API_KEY", "demo-key-comms");
    let mut served = Served::spawn(command);
    let postgres = served.until("Postgres on ").trim().replace("Postgres on ", "");
    served.until("listening on ");
    let (host, port) = postgres.rsplit_once(':').unwrap();
    let mut config = tokio_postgres::Config::new();
    config.host(host).port(port.parse().unwrap()).user("ada").dbname("savedsearch");
    let query = std::thread::spawn(move || {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
            let _connection = tokio::spawn(connection);
            client.query("SELECT id FROM mentions WHERE duration = '30d'", &[]).await.map(drop).unwrap_err()
        })
    });
    served.until("query started");
    served.signal("-TERM");
    served.until("draining queries");
    served.signal("-TERM");
    let mut log = String::new();
    served.lines.read_to_string(&mut log).unwrap();
    assert!(served.child.wait().unwrap().success());
    assert!(log.contains("second signal") && log.contains("queries that still run are cancelled queries=1"), "{log}");
    assert!(log.contains("outcome=\"cancelled\""), "{log}");
    let error = query.join().unwrap();
    assert_eq!(error.code(), Some(&tokio_postgres::error::SqlState::ADMIN_SHUTDOWN), "{error:?}");
}

#[test]
fn logins_of_unknown_users_are_logged_as_such_and_answered_like_wrong_passwords() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users.toml");
    fs::write(&users, format!("[users.ada]\nscram_sha_256 = \"{}\"\n", scram_verifier("swordfish"))).unwrap();
    let mut command = savedsearch(&["serve", "--listen", "127.0.0.1:0", "--postgres-listen", "127.0.0.1:0"]);
    command.args(["--auth", "users", "--users-file"]).arg(&users);
    let mut served = Served::spawn(command);
    let postgres = served.until("Postgres on ").trim().replace("Postgres on ", "");
    served.until("listening on ");
    let (host, port) = postgres.rsplit_once(':').unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let told =
        [("ada", "login failed: wrong password"), ("eve", "login failed: unknown user")].map(|(user, logged)| {
            let mut config = tokio_postgres::Config::new();
            config.host(host).port(port.parse().unwrap()).user(user).password("wrong").dbname("savedsearch");
            let error = runtime.block_on(config.connect(tokio_postgres::NoTls)).err().expect("refused");
            let line = served.until("login failed");
            assert!(line.contains(logged) && line.contains(&format!("user=\"{user}\"")), "{line}");
            error.as_db_error().expect("an answer").message().to_owned()
        });
    assert_eq!(told[0], told[1]);
    served.signal("-TERM");
    assert!(served.child.wait().unwrap().success());
}

/// As at the start.
#[test]
fn a_reload_warns_of_a_key_that_the_service_refuses_and_of_files_that_all_can_read() {
    let service = Simulate::start(&["--mentions", "100", "--searches", "1"]);
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let write = |text: &str, mode: u32| {
        fs::write(&key, text).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
    };
    write("demo-key-comms", 0o600);
    let options = ["--base-url", &service.base_url, "--api-key-file", key.to_str().unwrap(), "serve"];
    let mut command = savedsearch(&options);
    command.args(["--listen", "127.0.0.1:0"]);
    let mut served = Served::of(command);
    write(CANARY, 0o604);
    served.signal("-HUP");
    let line = served.until("every user of this machine can read this file");
    assert!(line.contains("WARN"), "{line}");
    served.until("reloaded users and API keys");
    let line = served.until("the service cannot be queried");
    assert!(line.contains("WARN") && line.contains("401") && !line.contains(CANARY), "{line}");
    served.signal("-TERM");
    assert!(served.child.wait().unwrap().success());
}

/// Lines of libraries would hide those of the program.
#[test]
fn a_log_level_is_that_of_the_program() {
    let service = Simulate::start(&["--mentions", "100", "--searches", "1"]);
    // Up to the line about the request that checks the service.
    let told = |filter: &str| {
        let mut command = savedsearch(&["--base-url", &service.base_url, "serve", "--listen", "127.0.0.1:0"]);
        command.args(["--log", filter]).env("SAVEDSEARCH_API_KEY", "demo-key-comms");
        let mut served = Served::spawn(command);
        let mut log = String::new();
        while !log.contains("DEBUG datafusion_saved_search") {
            assert!(served.lines.read_line(&mut log).unwrap() > 0, "{log}");
        }
        // Until then it may not listen to signals.
        if !log.contains("listening on ") {
            served.until("listening on ");
        }
        served.signal("-TERM");
        assert!(served.child.wait().unwrap().success());
        log
    };
    let log = told("debug");
    assert!(!log.contains("hyper_util") && !log.contains(" h2"), "{log}");
    let log = told("debug,hyper_util=trace");
    assert!(log.contains("TRACE hyper_util"), "{log}");
}

#[test]
fn a_file_with_the_table_of_the_server_alone_goes_with_any_service() {
    let service = Simulate::start(&["--mentions", "100", "--searches", "1"]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [alone, both, key] = ["alone.toml", "both.toml", "key"].map(path);
    let serve = "[serve]\nlisten = \"127.0.0.1:0\"\noperations = \"127.0.0.1:0\"\n";
    fs::write(&alone, serve).unwrap();
    fs::write(&both, format!("{serve}[connections.a]\nbase_url = \"{}\"\napi_key_env = \"KEY\"\n", service.base_url))
        .unwrap();
    fs::write(&key, "demo-key-comms").unwrap();
    let named = ["--base-url", &service.base_url, "--api-key-file", &key];
    let check = |options: &[&str], variable: &str| {
        let mut command = savedsearch(&[options, &["serve", "--check"]].concat());
        command.env("SAVEDSEARCH_CONFIG", variable).env("KEY", "demo-key-comms").stdin(Stdio::null());
        let output = command.output().unwrap();
        (output.status.code(), err(&output))
    };
    let of_file = "Flight SQL: 127.0.0.1:0\nhealth and metrics: 127.0.0.1:0\n";
    for (options, variable, service) in [
        (&["--config", alone.as_str()][..], "", "service: built-in demo data"),
        (&[], &alone, "service: built-in demo data"),
        (&[&["--config", alone.as_str()], &named[..]].concat(), "", "service savedsearch: ok"),
        (&named, &alone, "service savedsearch: ok"),
        (&["--config", &both], "", "service a: ok"),
    ] {
        let (code, told) = check(options, variable);
        let expected = format!("{of_file}{service}\nconfiguration: ok\n");
        assert!(code == Some(0) && told.ends_with(&expected), "{options:?} {variable}: {told}");
    }
    let (code, told) = check(&[&["--config", both.as_str()], &named[..2]].concat(), "");
    assert!(code == Some(2) && told.contains("--base-url cannot be combined with --config"), "{told}");
    // With its connections, a file that the environment names gives way, and that is told.
    let (code, told) = check(&named, &both);
    let note = format!("note: SAVEDSEARCH_CONFIG={both} is not used: the service is named by an option\n");
    assert!(code == Some(0) && told.starts_with(&note) && !told.contains("health and metrics"), "{told}");
    fs::write(&alone, "").unwrap();
    let (code, told) = check(&["--config", &alone], "");
    assert!(code == Some(2) && told.contains("no connections are defined"), "{told}");
}

#[test]
fn an_empty_variable_counts_as_unset_unless_a_key_is_given() {
    let check = |variables: &[(&str, &str)], options: &[&str]| {
        let arguments = [&["serve", "--check"], options].concat();
        let output = savedsearch(&arguments).envs(variables.iter().copied()).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), err(&output))
    };
    let empty = [
        "LISTEN",
        "OPERATIONS",
        "AUTH",
        "USERS_FILE",
        "TLS_CERT",
        "WORKERS",
        "NO_FLIGHT",
        "LOG",
        "LOG_FORMAT",
        "INSECURE",
    ];
    let names = empty.map(|name| format!("SAVEDSEARCH_{name}"));
    let unset: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let base_url = ("SAVEDSEARCH_BASE_URL", "");
    let (code, told) = check(&[&unset[..], &[base_url]].concat(), &["--listen", "127.0.0.1:0"]);
    assert!(code == Some(0) && told.contains("service: built-in demo data\nconfiguration: ok"), "{told}");
    let key = ("SAVEDSEARCH_API_KEY", "demo-key-comms");
    for (variables, options) in [(&[base_url, key][..], &[][..]), (&[base_url], &["--auth", "pass-through"])] {
        let (code, told) = check(variables, options);
        assert!(code == Some(2) && told.contains("SAVEDSEARCH_BASE_URL is empty"), "{told}");
    }
}

/// A supervisor starts a program again that ended with 1, and not one that ended with 2.
#[test]
fn an_address_in_use_is_no_mistake_of_the_configuration() {
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap().to_string();
    let free = "127.0.0.1:0";
    for arguments in [
        &["serve", "--listen", &address][..],
        &["serve", "--listen", free, "--operations", &address],
        &["serve", "--listen", free, "--postgres-listen", &address],
        &["serve", "--listen", free, "--ui", &address],
        &["ui", "--listen", &address],
        &["mcp", "--listen", &address],
        &["simulate", "--listen", &address],
    ] {
        let output = run(arguments);
        let told = err(&output);
        let line = format!("error: cannot listen on {address}: ");
        assert!(output.status.code() == Some(1) && told.contains(&line), "{arguments:?}: {told}");
        assert_eq!(told.contains("; choose another address with --listen"), arguments[0] == "ui", "{told}");
    }
    // Of an address that this machine does not have (RFC 5737), a check says what a start says.
    let open = ["serve", "--auth", "pass-through", "--insecure", "--base-url", "http://127.0.0.1:9/v4"];
    for arguments in [
        &[&open[..], &["--listen", "192.0.2.1:8080"]].concat()[..],
        &[&open[..], &["--listen", "192.0.2.1:8080", "--check"]].concat()[..],
        &["simulate", "--listen", "192.0.2.1:8080"][..],
    ] {
        let output = run(arguments);
        let told = err(&output);
        let line = "; use an address of this machine; 0.0.0.0:8080 stands for all of them\n";
        assert!(output.status.code() == Some(1) && told.ends_with(line), "{arguments:?}: {told}");
    }
}

#[test]
fn certificates_that_expire_or_have_not_begun_are_reported_by_a_check_and_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let [pem, key, ca] =
        ["server.pem", "server.key", "ca.pem"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let authority = Authority::new();
    fs::write(&ca, &authority.certificate).unwrap();
    let certify = |end: chrono::NaiveDate| {
        let [month, day] = [end.month(), end.day()].map(|part| u8::try_from(part).unwrap());
        let (certificate, private) = authority.vouch_until((end.year(), month, day));
        fs::write(&pem, certificate).unwrap();
        fs::write(&key, private).unwrap();
    };
    let server = ["--listen", "127.0.0.1:0", "--tls-cert", &pem, "--tls-key", &key];
    let worker = [
        &["--worker", "https://worker1:50061", "--worker-cert", &pem, "--worker-key", &key, "--worker-ca", &ca][..],
        &server[..2],
    ]
    .concat();
    let today = Clock::system().now().date_naive();
    let expired = chrono::NaiveDate::from_ymd_opt(2020, 1, 1).unwrap();
    let (soon, later) = (today + chrono::TimeDelta::days(5), today + chrono::TimeDelta::days(30));
    for (end, told) in [
        (expired, "the certificate expired on 2020-01-01 00:00 UTC; connections fail until it is renewed".to_owned()),
        (soon, format!("the certificate expires on {soon} 00:00 UTC; renew it, then send SIGHUP to reload it")),
        (later, format!("ok, expires on {later} 00:00 UTC")),
    ] {
        certify(end);
        for arguments in [&server[..], &worker[..]] {
            let output = savedsearch(&[&["serve", "--check"][..], arguments].concat()).output().unwrap();
            let warning = if end == later { "" } else { "warning: " };
            let line = format!("{warning}{pem}: {told}\n");
            assert!(output.status.success() && err(&output).contains(&line), "{line}: {}", err(&output));
        }
    }
    let (certificate, private) = authority.vouch_between((4095, 1, 1), (4096, 1, 1));
    fs::write(&pem, certificate).unwrap();
    fs::write(&key, private).unwrap();
    let output = savedsearch(&[&["serve", "--check"][..], &server[..]].concat()).output().unwrap();
    let line = format!("warning: {pem}: the certificate is not valid before 4095-01-01 00:00 UTC; connections fail");
    assert!(output.status.success() && err(&output).contains(&line), "{line}: {}", err(&output));
    certify(expired);
    let mut served = Served::spawn(savedsearch(&[&["serve"][..], &server[..]].concat()));
    let line = served.until("the certificate ");
    assert!(line.contains("WARN") && line.contains("expired on 2020-01-01 00:00 UTC"), "{line}");
    served.until("listening on ");
    served.signal("-TERM");
    assert!(served.child.wait().unwrap().success());
}

#[test]
fn a_check_of_a_profile_ends_at_a_refused_key() {
    let service = Simulate::start(&["--mentions", "100", "--searches", "1"]);
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("mine.toml");
    fs::write(&profile, out(&savedsearch(&["profile", "show", "v4"]).output().unwrap())).unwrap();
    let check = |key: &str| {
        let mut command =
            savedsearch(&["--base-url", &service.base_url, "profile", "check", profile.to_str().unwrap()]);
        command.env("SAVEDSEARCH_API_KEY", key).stdin(Stdio::null()).output().unwrap()
    };
    let output = check(CANARY);
    let line = "error: saved_searches: the service answered 401 Unauthorized: missing or unknown API key; check the API key and \
                the profile's [auth]\n";
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(1), line));
    assert!(!out(&output).contains("overview: "), "{}", out(&output));
    let told = out(&check("demo-key-comms"));
    assert!(told.contains("\noverview: ok, 1 row\n"), "{told}");
}

#[test]
fn a_check_that_takes_long_shows_that_it_lives() {
    let service = Simulate::start(&["--mentions", "100", "--searches", "1", "--delay-ms", "6000"]);
    let mut command = savedsearch(&["--base-url", &service.base_url, "serve", "--check", "--listen", "127.0.0.1:0"]);
    let output = command.env("SAVEDSEARCH_API_KEY", "demo-key-comms").stdin(Stdio::null()).output().unwrap();
    let told = err(&output);
    // One line every five seconds or so.
    let (shown, rest): (Vec<&str>, Vec<&str>) = told.lines().partition(|line| line.starts_with("checking services · "));
    assert!(!shown.is_empty() && shown.iter().all(|line| line.ends_with(" s")), "{told}");
    assert_eq!(rest, ["Flight SQL: 127.0.0.1:0", "service savedsearch: ok", "configuration: ok"]);
}

#[test]
fn a_password_becomes_a_line_of_the_users_file() {
    for (option, key) in
        [("--hash-password", "password_hash = \"$argon2id$"), ("--scram-verifier", "scram_sha_256 = \"SCRAM")]
    {
        let mut child = savedsearch(&["serve", option])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"swordfish\n").unwrap();
        let line = out(&child.wait_with_output().unwrap());
        assert!(line.starts_with(key) && line.lines().count() == 1, "{line}");
        let file = format!("[users.ada]\n{line}");
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("users.toml"), file).unwrap();
        assert!(datafusion_saved_search::host::Users::read(&folder.path().join("users.toml")).is_ok());
    }
}

#[test]
fn a_query_that_is_cancelled_stores_its_complete_days_and_names_them() {
    let service = Simulate::start(&["--mentions", "4000", "--searches", "1", "--delay-ms", "400"]);
    let folder = tempfile::tempdir().unwrap();
    #[expect(clippy::disallowed_methods, reason = "the program under test reads the wall clock as well")]
    let today = chrono::Utc::now().date_naive();
    let [from, to] = [60, 5].map(|days| today - chrono::TimeDelta::days(days));
    let sql =
        format!("SELECT id FROM mentions WHERE aid = '183772' AND published_at >= '{from}' AND published_at < '{to}'");
    let options =
        ["--base-url", &service.base_url, "--store", folder.path().to_str().unwrap(), "sql", "--format", "csv"];
    let run = |sql: &str| {
        let mut command = savedsearch(&[&options[..], &["-c", sql]].concat());
        command.env("SAVEDSEARCH_API_KEY", "demo-key-comms").stdin(Stdio::null());
        command
    };
    let mut child = run(&sql).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut rows = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    for _ in 0..700 {
        line.clear();
        assert!(rows.read_line(&mut line).unwrap() > 0, "the query has many pages");
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    std::io::copy(&mut rows, &mut std::io::sink()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = err(&output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("note: stopped: the days of 183772 from ") && said.contains("error: cancelled; "), "{said}");
    let stored = out(&run("SELECT coalesce(sum(days), 0) AS days FROM system.store").output().unwrap());
    assert!((1..55).contains(&stored.lines().nth(1).unwrap().parse::<u64>().unwrap()), "{stored}");
}

#[test]
fn a_command_that_ends_at_a_limit_has_stored_its_complete_days_and_nothing_was_stopped() {
    let service = Simulate::start(&["--mentions", "4000", "--searches", "1"]);
    let folder = tempfile::tempdir().unwrap();
    #[expect(clippy::disallowed_methods, reason = "the program under test reads the wall clock as well")]
    let today = chrono::Utc::now().date_naive();
    let [from, to] = [60, 5].map(|days| today - chrono::TimeDelta::days(days));
    let joined = format!(
        "SELECT m.id, s.name FROM mentions m JOIN saved_searches s ON s.aid = m.aid WHERE m.aid = '183772' \
         AND m.published_at >= '{from}' AND m.published_at < '{to}' LIMIT 700"
    );
    for (name, sql) in [("alone", joined.clone()), ("before another", format!("{joined}; SELECT 1 AS one"))] {
        let store = folder.path().join(name);
        let run = |sql: &str| {
            let options = ["--base-url", &service.base_url, "--store", store.to_str().unwrap()];
            let mut command = savedsearch(&[&options[..], &["sql", "--format", "csv", "-c", sql]].concat());
            command.env("SAVEDSEARCH_API_KEY", "demo-key-comms").stdin(Stdio::null()).output().unwrap()
        };
        let output = run(&sql);
        let said = err(&output);
        assert!(output.status.success() && !said.contains("stored") && !said.contains("stopped"), "{name}: {said}");
        assert_eq!(files_named(&store, ".partial"), Vec::<PathBuf>::new(), "{name}");
        let stored = out(&run("SELECT coalesce(sum(days), 0) AS days FROM system.store"));
        assert!((1..55).contains(&stored.lines().nth(1).unwrap().parse::<u64>().unwrap()), "{name}: {stored}");
    }
}

/// The files below a folder whose names contain a text.
fn files_named(folder: &Path, text: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = entries.flat_map(|path| if path.is_dir() { files_named(&path, text) } else { vec![path] });
    below.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(text))).collect()
}

/// A service whose responses stop half-way from a request on, over a saved search with some 150 mentions a day: 1.5 pages.
async fn stalling_from(request: u64, corpus: &Arc<Corpus>) -> simulator::Running {
    let faults = vec![format!("stall@{request}-").parse().unwrap()];
    let settings = Settings { faults, ..Settings::default() };
    simulator::start("127.0.0.1:0".parse().unwrap(), Arc::clone(corpus), settings).await.unwrap()
}

/// That saved search, and the first day of a month that a synchronization reads in its first step, before another whole month.
fn a_busy_search() -> (Arc<Corpus>, chrono::NaiveDate) {
    #[expect(clippy::disallowed_methods, reason = "the program under test reads the wall clock as well")]
    let now = chrono::Utc::now();
    let since = (now - chrono::TimeDelta::days(63)).date_naive().with_day(1).unwrap();
    (Corpus::generate(CorpusSpec { seed: 1, searches: 1, mentions: 20_000, now }).into(), since)
}

/// Starts to synchronize the months from a day on, and waits until the service has received this many requests.
async fn sync_until(service: &simulator::Running, requests: u64, store: &Path, since: chrono::NaiveDate) -> Child {
    let (address, since) = (service.base_url(), since.to_string());
    let base = ["--base-url", &address, "--store", store.to_str().unwrap()];
    let mut command = savedsearch(&[&base[..], &["sync", "--oldest-first", "--since", &since]].concat());
    command.env("SAVEDSEARCH_API_KEY", simulator::KEY).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    while service.requests() < requests {
        assert_eq!(child.try_wait().unwrap(), None, "{} requests", service.requests());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    child
}

fn send(signal: &str, child: &Child) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

fn stored_days(service: &simulator::Running, store: &Path) -> u64 {
    let sql = "SELECT coalesce(sum(days), 0) AS days FROM system.store";
    let address = service.base_url();
    let options = ["--base-url", &address, "--store", store.to_str().unwrap(), "sql", "--format", "csv"];
    let mut command = savedsearch(&[&options[..], &["-c", sql]].concat());
    let output = command.env("SAVEDSEARCH_API_KEY", simulator::KEY).stdin(Stdio::null()).output().unwrap();
    out(&output).lines().nth(1).unwrap_or_else(|| panic!("{}", err(&output))).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_that_is_stopped_says_what_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let (corpus, since) = a_busy_search();
    // Stopped in its first step, in the middle of the month.
    let service = stalling_from(25, &corpus).await;
    let store = folder.path().join("first");
    let mut child = sync_until(&service, 25, &store, since).await;
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut told = String::new();
    lines.read_line(&mut told).unwrap();
    assert!(told.contains(" request") && told.contains(" s · "), "long commands show that they live: {told}");
    send("-INT", &child);
    lines.read_to_string(&mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let days = "error: stopped; no step was complete; the days of 183772 ";
    assert!(told.contains(days) && told.ends_with(" are stored\n"), "{told}");
    assert!((1..28).contains(&stored_days(&service, &store)), "{told}");
    // Stopped in its second step, in the middle of the next month.
    let month = since..since + chrono::Months::new(1);
    let published =
        corpus.search("183772").unwrap().mentions.iter().map(|mention| mention.facts.published.date_naive());
    let pages = published.filter(|day| month.contains(day)).count() as u64 / 99 + 1;
    let service = stalling_from(pages + 25, &corpus).await;
    let store = folder.path().join("second");
    let mut child = sync_until(&service, pages + 25, &store, since).await;
    send("-HUP", &child);
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(129));
    let days = "error: stopped; 1 step was stored; the days of 183772 ";
    assert!(told.contains(days) && told.ends_with(" are stored\n"), "{told}");
    assert!(stored_days(&service, &store) > (month.end - month.start).num_days() as u64, "{told}");
}

/// The catalog of the store is locked, so that the complete days cannot be stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_a_sync_that_is_storing_its_complete_days() {
    let folder = tempfile::tempdir().unwrap();
    let (corpus, since) = a_busy_search();
    let service = stalling_from(25, &corpus).await;
    let mut child = sync_until(&service, 25, folder.path(), since).await;
    let catalog = rusqlite::Connection::open(folder.path().join("catalog.sqlite")).unwrap();
    catalog.busy_timeout(LONGEST).unwrap();
    catalog.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Signals that arrive together are one.
    while child.try_wait().unwrap().is_none() {
        send("-INT", &child);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let expected =
        "error: stopped; no step was complete; the complete days of the step in progress were not waited for\n";
    assert!(err(&output).ends_with(expected), "{}", err(&output));
}

#[test]
fn a_probe_shows_that_it_lives() {
    // A probe takes longer than the pause between two lines.
    let service = Simulate::start(&["--now", NOW, "--mentions", "2000", "--searches", "1", "--delay-ms", "600"]);
    let probed = savedsearch(&["--base-url", &service.base_url, "probe"])
        .env("SAVEDSEARCH_API_KEY", "demo-key-comms")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(err(&probed).contains("probing: ") && err(&probed).contains(" of at most 25 requests"), "{}", err(&probed));
}

#[test]
fn a_key_does_not_travel_in_clear_text_unless_that_is_wanted() {
    let ask = |address: &str, more: &[&str]| {
        let mut command = savedsearch(&["--base-url", address]);
        command.args(more).args(["sql", "-c", "SELECT 1"]).env("SAVEDSEARCH_API_KEY", CANARY);
        command.stdin(Stdio::null()).output().unwrap()
    };
    for address in ["http://api.example.com/v4", "http://10.1.2.3/v4", "http://[2001:db8::1]:8080/v4"] {
        let refused = ask(address, &[]);
        assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
        assert!(err(&refused).contains("in clear text") && err(&refused).contains("--insecure"), "{}", err(&refused));
        // SELECT 1 sends no request.
        assert_eq!(ask(address, &["--insecure"]).status.code(), Some(0), "{address}");
    }
    for address in ["https://api.example.com/v4", "http://127.0.0.1:9/v4", "http://localhost:9/v4", "http://[::1]:9/v4"]
    {
        assert_eq!(ask(address, &[]).status.code(), Some(0), "{address}");
    }
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("savedsearch.toml");
    for (more, status) in [("", 2), ("insecure = true\n", 0)] {
        let text = format!("[connections.a]\nbase_url = \"http://10.1.2.3/v4\"\napi_key_env = \"KEY\"\n{more}");
        fs::write(&config, text).unwrap();
        let mut command = savedsearch(&["--config", config.to_str().unwrap(), "sql", "-c", "SELECT 1"]);
        let output = command.env("KEY", CANARY).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", err(&output));
    }
}

#[test]
fn a_process_that_is_killed_leaves_the_ledger_whole() {
    let service = Simulate::start(&["--searches", "2", "--mentions", "3000"]);
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("mine.toml");
    let text = out(&run(&["profile", "show", "v4"]));
    fs::write(&profile, text.replace("windows = []", "windows = [{ requests = 100000, seconds = 86400 }]")).unwrap();
    let state = folder.path().join("state");
    let ledger = || {
        let mut files =
            fs::read_dir(state.join("savedsearch")).into_iter().flatten().map(|entry| entry.unwrap().path());
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = files.find(|path| name(path).starts_with("ledger-") && name(path).ends_with(".json"))?;
        let text = fs::read_to_string(&file).unwrap();
        let spent: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: `{text}`"));
        spent["requests"].as_array().unwrap().iter().map(|pair| pair[1].as_u64()).sum::<Option<u64>>()
    };
    let kills = crate::support::knob("LEDGER_KILLS", 40);
    let mut known = 0;
    for number in 0..kills {
        let mut child = savedsearch(&["--base-url", &service.base_url, "--profile", profile.to_str().unwrap()])
            .args([
                "sql",
                "--set",
                "count_from_overview=never",
                "-c",
                "SELECT id FROM mentions WHERE duration = '365d'",
            ])
            .env("SAVEDSEARCH_API_KEY", "demo-key-comms")
            .env("XDG_STATE_HOME", &state)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // At some point among its requests.
        let begun = Instant::now();
        while ledger().unwrap_or_default() <= known && begun.elapsed() < LONGEST {
            std::thread::sleep(Duration::from_micros(500));
        }
        std::thread::sleep(Duration::from_millis(number % 23));
        child.kill().unwrap();
        child.wait().unwrap();
        let spent = ledger().expect("ledger exists");
        assert!(spent > known, "kill {number}: the ledger has {spent} requests, {known} before");
        known = spent;
    }
}

#[cfg(unix)]
#[test]
fn what_is_kept_is_its_owners_alone() {
    let service = Simulate::start(&["--searches", "2", "--mentions", "100"]);
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("recording");
    let output = savedsearch(&["--base-url", &service.base_url, "--record", recording.to_str().unwrap()])
        .args(["sql", "-c", "SELECT aid FROM saved_searches"])
        .env("SAVEDSEARCH_API_KEY", "demo-key-comms")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let files: Vec<_> = fs::read_dir(&recording).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 2);
    for file in files {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", file.display());
    }
}

/// The commands of "Try it on one machine", at free addresses.
#[test]
fn the_commands_of_the_page_on_workers_spread_a_query() {
    let page = page(WORKERS);
    let block = page.blocks("sh")[0];
    assert!(block.starts_with("savedsearch simulate --listen 127.0.0.1:8080 --mentions 20000 &\n"), "{block}");
    let (_, file) = block.split_once("<<END\n").unwrap();
    let (file, commands) = file.split_once("\nEND\n").unwrap();
    let workers = ["127.0.0.1:50061", "127.0.0.1:50062"];
    let serve =
        "savedsearch serve --listen 127.0.0.1:50051 --worker http://127.0.0.1:50061 --worker http://127.0.0.1:50062";
    assert!(commands.contains("\nsavedsearch sync\n") && commands.ends_with(serve), "{commands}");
    each(workers, |address| assert!(commands.contains(&format!("\nsavedsearch worker --listen {address} &\n"))));

    let service = Simulate::start(&["--mentions", "20000"]);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("savedsearch.toml");
    fs::write(&config, file.replace("http://127.0.0.1:8080/v4", &service.base_url)).unwrap();
    let command = |arguments: &[&str]| {
        let mut command = savedsearch(arguments);
        command.current_dir(folder.path()).stdin(Stdio::null());
        command.env("SAVEDSEARCH_API_KEY", "demo-key-comms").env("SAVEDSEARCH_CONFIG", &config);
        command
    };
    let synced = command(&["sync"]).output().unwrap();
    assert!(synced.status.success(), "{}", err(&synced));
    let workers = workers.map(|_| Served::at_address(command(&["worker", "--listen", "127.0.0.1:0"])));
    let mut server = command(&["serve", "--listen", "127.0.0.1:0", "--postgres-listen", "127.0.0.1:0"]);
    for (_, address) in &workers {
        server.args(["--worker", &format!("http://{address}")]);
    }
    let mut server = Served::spawn(server);
    let line = server.until("Postgres on ");
    let (host, port) = line.trim().rsplit(' ').next().unwrap().rsplit_once(':').unwrap();
    let plan = plan_over_workers(host, port.parse().unwrap(), page.blocks("sql")[0]);
    assert!(plan.contains("SpreadExec: workers=2"), "{plan}");
    server.signal("-TERM");
    assert!(server.child.wait().unwrap().success());
    for (mut worker, _) in workers {
        worker.signal("-TERM");
        assert!(worker.child.wait().unwrap().success());
    }
}

/// The plan that the second statement prints, once the first one lists two workers that are healthy.
fn plan_over_workers(host: &str, port: u16, statements: &str) -> String {
    let (listed, explained) = statements.split_once(";\n").unwrap();
    let mut config = tokio_postgres::Config::new();
    config.host(host).port(port).user("ada").dbname("savedsearch");
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let text = async |sql: &str| {
            let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            let rows = messages.iter().filter_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => Some(row),
                _ => None,
            });
            rows.flat_map(|row| (0..row.len()).filter_map(move |at| row.get(at))).collect::<Vec<_>>().join("\n")
        };
        let begun = Instant::now();
        while text(listed).await.matches("\nhealthy\n").count() < 2 {
            assert!(begun.elapsed() < LONGEST, "the workers are not healthy");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        text(explained).await
    })
}
