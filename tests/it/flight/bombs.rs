//! Statements that take much memory or time, many at once, against server processes with little memory. Another user's statements
//! are answered meanwhile, and the memory returns.
//!
//! `BOMBS` sets how many of each are sent at once over each protocol (48 in manual runs; without it, two of two kinds),
//! `BOMB_ADDRESS_MIB` the address space of a process (none; 3072 in manual runs with an optimized program, which
//! `SAVEDSEARCH_BIN` names: without optimization, the stacks of threads are addresses of 3 GiB), `BOMB_ONLY` which ones.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datafusion_saved_search::postgres::scram_verifier;
use futures::future::join_all;
use futures::{StreamExt, TryStreamExt};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::load::Serve;
use super::{Client, all_rows, status, try_rows};
use crate::binary::{Simulate, savedsearch};
use crate::support::knob;

/// Time in which a statement is answered or refused.
const TIME: Duration = Duration::from_secs(300);
/// Time in which another user's statement is answered, by a program without optimization on a busy machine.
const HONEST: Duration = Duration::from_secs(60);
/// Memory of the servers.
const MEMORY: &str = "1GiB";

fn bombs() -> Vec<(&'static str, String)> {
    let nested = |open: &str, close: &str, times: usize| format!("{}value{}", open.repeat(times), close.repeat(times));
    let of_series = |expressions: String, rows: u64| format!("SELECT {expressions} FROM generate_series(1, {rows})");
    let columns = |expression: &str, times: usize| vec![expression; times].join(", ");
    let long = "%c".repeat(20_000);
    let of_cube = |keys: usize, key: &str, rows: u64| {
        let names: Vec<String> = (0..keys).map(|key| format!("c{key}")).collect();
        let values = (2..).zip(&names).map(|(n, name)| format!("{} {name}", key.replace("{n}", &n.to_string())));
        let values = values.collect::<Vec<_>>().join(", ");
        let names = names.join(", ");
        format!(
            "SELECT count(*) FROM (SELECT count(*) FROM (SELECT {values} FROM generate_series(1, {rows})) \
             GROUP BY CUBE ({names})) z"
        )
    };
    let series_of_texts =
        |count: usize| (0..count).map(|n| format!("repeat('x', {})", 131_000 - n)).collect::<Vec<_>>().join(", ");
    vec![
        ("nested casts", of_series(nested("cast(", " AS int)", 48), 10)),
        ("nested casts with an error", of_series(format!("{}1 1{}", "cast(".repeat(48), " AS int)".repeat(48)), 10)),
        ("nested coalesce", of_series(nested("coalesce(", ", 2)", 24), 10)),
        ("nested BETWEEN", of_series(nested("(", " BETWEEN 1 AND 2)::int", 24), 10)),
        ("nested IN", of_series(nested("(", " IN (1, 2))::int", 24), 10)),
        ("to_char in 16 columns", of_series(columns(&format!("to_char(now(), '{long}')"), 16), 2_000)),
        ("to_char in 90 columns", of_series(columns(&format!("to_char(now(), '{}')", &long[..2_000]), 90), 2_000)),
        ("repeat in 15 columns", of_series(columns("repeat(value::text, 15000)", 15), 100_000)),
        ("array_agg", of_series("array_agg(repeat(value::text, 10000))".to_owned(), 200_000)),
        ("string_agg", of_series("string_agg(repeat(value::text, 10000), ',')".to_owned(), 200_000)),
        ("count(DISTINCT)", of_series("count(DISTINCT repeat(value::text, 10000))".to_owned(), 30_000)),
        (
            "GROUP BY",
            "SELECT count(*) FROM (SELECT repeat(value::text, 10000) k FROM generate_series(1, 30000)) GROUP BY k"
                .to_owned(),
        ),
        ("ORDER BY", of_series("repeat(value::text, 10000) k".to_owned(), 30_000) + " ORDER BY k"),
        (
            "window",
            // The client is not kept busy by gigabytes of rows.
            "SELECT max(length(f)), max(length(l)) FROM (SELECT first_value(repeat(value::text, 1000)) OVER (ORDER BY value) f, \
             lag(repeat(value::text, 10000)) OVER () l FROM generate_series(1, 50000))"
                .to_owned(),
        ),
        (
            "CUBE of texts",
            of_cube(11, "repeat('x', 1000) || (value % {n})", 20_000),
        ),
        ("CUBE of numbers", of_cube(12, "value % {n}", 1_000_000)),
        (
            "GROUPING SETS",
            format!(
                "SELECT count(*) FROM (SELECT count(*) FROM (SELECT repeat('x', 10000) || value t, value i \
                 FROM generate_series(1, 8000)) GROUP BY GROUPING SETS ({})) z",
                columns("(t, i + 1), (t, i)", 240)
            ),
        ),
        ("constants", format!("SELECT length(concat({}))", columns("repeat('x', 100000)", 500))),
        ("constants in a list", format!("SELECT 'a' IN ({})", series_of_texts(900))),
        ("constants in JSON", format!("SELECT length(json_build_object('a', {})::text)", columns("repeat('x', 131000)", 3_499))),
        ("VALUES", format!("SELECT count(*) FROM (VALUES {}) v", columns("(1)", 60_000))),
        (
            "join",
            "SELECT a.k || b.k FROM (SELECT repeat('x', 10000) k FROM generate_series(1, 100000)) a, \
             (SELECT repeat('y', 10000) k FROM generate_series(1, 100000)) b"
                .to_owned(),
        ),
        (
            "recursion",
            // Without an end, but with twice as many rows each time.
            "WITH RECURSIVE r AS (SELECT repeat('x', 10000) t UNION ALL SELECT t FROM r, (VALUES (1), (2))) \
             SELECT count(*) FROM r"
                .to_owned(),
        ),
        (
            "temporary table",
            "CREATE OR REPLACE TABLE t AS SELECT repeat(value::text, 10000) v FROM generate_series(1, 100000)"
                .to_owned(),
        ),
    ]
}

/// A result that its client does not read.
const UNREAD: &str = "SELECT repeat(value::text, 10000) FROM generate_series(1, 100000)";

/// Runs a command with this much address space, if there is a limit.
fn limited(arguments: &[&str]) -> Command {
    let own = savedsearch(arguments);
    let mib = knob("BOMB_ADDRESS_MIB", 0);
    if mib == 0 {
        return own;
    }
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -v {}; exec \"$0\" \"$@\"", mib << 10)])
        .arg(own.get_program())
        .args(own.get_args());
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// A `savedsearch mcp` process.
struct Mcp {
    child: Child,
    address: String,
}

impl Mcp {
    fn start(base_url: &str, users: &str) -> Self {
        let mut child = limited(&["--base-url", base_url, "mcp", "--listen", "127.0.0.1:0", "--memory", MEMORY])
            .args(["--auth", "users", "--users-file", users, "--log", "error"])
            .env("SAVEDSEARCH_API_KEY", "demo-key-comms")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let address = lines.find_map(|line| line.strip_prefix("listening on ").map(str::to_owned)).unwrap();
        std::thread::spawn(move || lines.for_each(|line| println!("mcp: {line}")));
        Self { child, address }
    }

    /// Runs a statement; the status of the response, and true if the tool answered without an error.
    async fn query(&self, token: &str, sql: &str) -> std::io::Result<(u16, bool)> {
        let call = json!({ "name": "query", "arguments": { "sql": sql } });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call }).to_string();
        let mut stream = TcpStream::connect(&self.address).await?;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
             accept: application/json, text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await?;
        let code = response.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        Ok((code, response.contains("\"isError\":false")))
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn memory_of(child: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1_024)
}

/// End of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Answered,
    Refused,
    /// No answer in time.
    Late,
    /// The connection broke.
    Lost,
}

struct Servers {
    serve: Serve,
    mcp: Mcp,
}

impl Servers {
    /// A client, with the task of its connection: without it, the connection would read what was not read, and then close.
    async fn postgres(
        &self,
        user: &str,
    ) -> Result<(tokio_postgres::Client, AbortOnDropHandle<()>), tokio_postgres::Error> {
        let mut config = tokio_postgres::Config::new();
        let address = self.serve.postgres_address();
        config.host(address.ip().to_string()).port(address.port()).user(user).password(user).dbname("savedsearch");
        let (client, connection) = config.connect(tokio_postgres::NoTls).await?;
        let connection = tokio::spawn(async move { connection.await.unwrap_or_default() });
        Ok((client, AbortOnDropHandle::new(connection)))
    }

    async fn flight(&self, user: &str) -> Client {
        let mut client = self.serve.client().await;
        client.set_header("authorization", format!("Bearer {user}"));
        client
    }

    async fn by_postgres(&self, user: &str, sql: &str) -> End {
        let Ok((client, _connection)) = self.postgres(user).await else { return End::Refused };
        let answered = timeout(TIME, async {
            let rows = client.simple_query_raw(sql).await?;
            let mut rows = std::pin::pin!(rows);
            while rows.try_next().await?.is_some() {}
            Ok::<(), tokio_postgres::Error>(())
        });
        match answered.await {
            Ok(Ok(())) => End::Answered,
            Ok(Err(error)) if error.as_db_error().is_some() => End::Refused,
            Ok(Err(_)) => End::Lost,
            Err(_) => End::Late,
        }
    }

    async fn by_flight(&self, client: &mut Client, sql: &str) -> End {
        let answered = timeout(TIME, async {
            let info = client.execute(sql.to_owned(), None).await.map_err(status)?;
            let mut rows = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.map_err(status)?;
            while rows.next().await.transpose().map_err(status)?.is_some() {}
            Ok(())
        });
        match answered.await {
            Ok(Ok(())) => End::Answered,
            Ok(Err(tonic::Status { .. })) => End::Refused,
            Err(_) => End::Late,
        }
    }

    async fn by_mcp(&self, user: &str, sql: &str) -> End {
        match timeout(TIME, self.mcp.query(user, sql)).await {
            Ok(Ok((200, true))) => End::Answered,
            Ok(Ok((200..=599, _))) => End::Refused,
            Ok(_) => End::Lost,
            Err(_) => End::Late,
        }
    }

    /// In a process of its own, with as much memory as a server. It is lost if it takes half as much again.
    async fn by_shell(base_url: &str, sql: &str) -> End {
        const MOST: u64 = 1_536;
        let mut shell = limited(&["--base-url", base_url, "--quiet", "sql", "--memory", MEMORY, "-f", "-"]);
        shell.env("SAVEDSEARCH_API_KEY", "demo-key-comms");
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut shell = tokio::process::Command::from(shell).kill_on_drop(true).spawn().unwrap();
        let id = shell.id().unwrap();
        let peak = AtomicU64::new(0);
        let watched = async {
            loop {
                peak.fetch_max(memory_of(id, "VmHWM:"), Ordering::Relaxed);
                sleep(Duration::from_millis(20)).await;
            }
        };
        let ended = timeout(TIME, async {
            // A shell that has ended reads no more.
            let _ = shell.stdin.take().unwrap().write_all(sql.as_bytes()).await;
            shell.wait_with_output().await.unwrap()
        });
        let ended = tokio::select! {
            ended = ended => ended,
            () = watched => unreachable!("it watches for ever"),
        };
        let peak = peak.into_inner();
        match ended.map(|ended| (ended.status.code(), ended.stderr)) {
            Ok((Some(0), _)) if peak < MOST => End::Answered,
            Ok((Some(1), message)) if peak < MOST && message.starts_with(b"error: ") => End::Refused,
            Ok((code, message)) => {
                println!("the shell ended with {code:?} and {peak} MiB: {}", String::from_utf8_lossy(&message));
                End::Lost
            }
            Err(_) => End::Late,
        }
    }

    /// Sends a user's statements until told to stop. Returns the longest time that one took.
    async fn honest(&self, stop: &AtomicBool, sent: &AtomicU64) -> Duration {
        let sql = "SELECT count(*) FROM generate_series(1, 1000)";
        let (postgres, _connection) = self.postgres("honest").await.expect("a login");
        let mut flight = self.flight("honest").await;
        let mut longest = Duration::ZERO;
        while !stop.load(Ordering::Relaxed) {
            let begun = Instant::now();
            postgres.simple_query(sql).await.expect("an answer over PostgreSQL");
            longest = longest.max(begun.elapsed());
            let begun = Instant::now();
            try_rows(&mut flight, sql).await.expect("an answer over Flight SQL");
            longest = longest.max(begun.elapsed());
            let begun = Instant::now();
            assert_eq!(self.mcp.query("honest", sql).await.expect("an answer over MCP"), (200, true));
            longest = longest.max(begun.elapsed());
            sent.fetch_add(3, Ordering::Relaxed);
            sleep(Duration::from_millis(100)).await;
        }
        longest
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bombs_end_alone() {
    let by_hand = usize::try_from(knob("BOMBS", 0)).unwrap();
    let count = by_hand.max(2);
    #[expect(clippy::disallowed_methods, reason = "the program does not read the settings of tests")]
    let only = std::env::var("BOMB_ONLY");
    let usual = ["array_agg", "constants in JSON"];
    let wanted = |name: &str| match &only {
        Ok(only) => name.contains(only),
        Err(_) => by_hand > 0 || usual.contains(&name),
    };
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users.toml");
    let mut text = String::new();
    for user in ["hostile", "honest"] {
        let digest = Sha256::digest(user).iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        });
        let verifier = scram_verifier(user);
        writeln!(text, "[users.{user}]\nscram_sha_256 = \"{verifier}\"\ntoken_sha256 = [\"{digest}\"]").unwrap();
    }
    std::fs::write(&users, text).unwrap();
    let users = users.to_str().unwrap();
    let service = Simulate::start(&["--searches", "1", "--mentions", "50"]);
    let serve = limited(&[
        "--base-url",
        &service.base_url,
        "serve",
        "--memory",
        MEMORY,
        "--auth",
        "users",
        "--users-file",
        users,
    ]);
    let servers = Arc::new(Servers { serve: Serve::of(serve), mcp: Mcp::start(&service.base_url, users) });
    let ids = [servers.serve.id(), servers.mcp.child.id()];
    let at_start = ids.map(|id| memory_of(id, "VmRSS:"));
    println!("at the start: {at_start:?} MiB resident, {:?} MiB of addresses", ids.map(|id| memory_of(id, "VmSize:")));
    let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut table = vec![
        "| statement | protocol | answered | refused | late | lost | longest | longest of others | peak MiB |"
            .to_owned(),
    ];
    let mut wrong = Vec::new();
    let all = bombs().into_iter().chain([("unread", UNREAD.to_owned())]);
    for (name, sql) in all.filter(|(name, _)| wanted(name)) {
        for protocol in ["PostgreSQL", "Flight SQL", "MCP", "shell"] {
            if name == "unread" && ["MCP", "shell"].contains(&protocol) {
                continue;
            }
            stop.store(false, Ordering::Relaxed);
            let honest = tokio::spawn({
                let (servers, stop, sent) = (Arc::clone(&servers), Arc::clone(&stop), Arc::clone(&sent));
                async move { servers.honest(&stop, &sent).await }
            });
            let begun = Instant::now();
            let flight = servers.flight("hostile").await;
            // Unread results are those of many more clients.
            let count = match protocol {
                _ if name == "unread" => count * 10 / 3,
                // Each is a process with its own memory.
                "shell" => 1,
                _ => count,
            };
            let ends = join_all((0..count).map(|_| {
                let (servers, sql, mut flight) = (Arc::clone(&servers), sql.clone(), flight.clone());
                let base_url = service.base_url.clone();
                async move {
                    match (protocol, name) {
                        ("PostgreSQL", "unread") => {
                            let Ok((client, _connection)) = servers.postgres("hostile").await else {
                                return End::Refused;
                            };
                            let rows = client.simple_query_raw(&sql).await;
                            sleep(Duration::from_secs(5)).await;
                            if rows.is_ok() { End::Answered } else { End::Refused }
                        }
                        ("Flight SQL", "unread") => {
                            let Ok(info) = flight.execute(sql, None).await else { return End::Refused };
                            let rows = flight.do_get(info.endpoint[0].ticket.clone().unwrap()).await;
                            sleep(Duration::from_secs(5)).await;
                            if rows.is_ok() { End::Answered } else { End::Refused }
                        }
                        ("PostgreSQL", _) => servers.by_postgres("hostile", &sql).await,
                        ("Flight SQL", _) => servers.by_flight(&mut flight, &sql).await,
                        ("shell", _) => Servers::by_shell(&base_url, &sql).await,
                        _ => servers.by_mcp("hostile", &sql).await,
                    }
                }
            }))
            .await;
            let took = begun.elapsed();
            stop.store(true, Ordering::Relaxed);
            let longest = match timeout(TIME, honest).await {
                Ok(Ok(longest)) => longest,
                _ => {
                    wrong.push(format!("{name} over {protocol}: another user's statement was not answered"));
                    Duration::MAX
                }
            };
            let of = |end: End| ends.iter().filter(|other| **other == end).count();
            let peaks = ids.map(|id| memory_of(id, "VmHWM:"));
            table.push(format!(
                "| {name} | {protocol} | {} | {} | {} | {} | {:.1} s | {:.2} s | {peaks:?} |",
                of(End::Answered),
                of(End::Refused),
                of(End::Late),
                of(End::Lost),
                took.as_secs_f64(),
                longest.as_secs_f64().min(999.0)
            ));
            println!("{}", table.last().unwrap());
            if of(End::Late) + of(End::Lost) > 0 || longest > HONEST {
                wrong.push(table.last().unwrap().clone());
            }
            assert!(
                ids.iter().all(|id| memory_of(*id, "VmSize:") > 0),
                "a server is gone after {name} over {protocol}"
            );
        }
    }
    let begun = Instant::now();
    let returned = loop {
        let now = ids.map(|id| memory_of(id, "VmRSS:"));
        if now.iter().zip(at_start).all(|(now, start)| *now < start + 300) || begun.elapsed() > Duration::from_secs(60)
        {
            break now;
        }
        sleep(Duration::from_millis(500)).await;
    };
    println!("{}\nresident {returned:?} MiB after {:.1} s", table.join("\n"), begun.elapsed().as_secs_f64());
    println!("{} statements of another user", sent.load(Ordering::Relaxed));
    assert!(
        returned.iter().zip(at_start).all(|(now, start)| *now < start + 300),
        "memory did not return: {returned:?} MiB"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Statements that compute for minutes or hours, most of them without a row.
fn endless() -> Vec<(&'static str, String)> {
    let long = |count: u32| format!("SELECT sum(regexp_count(v, 'a*b|a')) FROM (SELECT repeat('a', {count}) v)");
    let letters = "(SELECT repeat('ab', 4000) || value::text v FROM generate_series(1, 8000))";
    let distances = vec!["sum(levenshtein(v, v || 'x'))"; 200].join(", ");
    vec![
        ("cross join", "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b".to_owned()),
        (
            "join without a match",
            "SELECT count(*) FROM generate_series(1, 1000000) a(x) JOIN generate_series(1, 1000000) b(y) ON x + y < 0"
                .to_owned(),
        ),
        (
            "join of equal keys without a match",
            "SELECT count(*) FROM generate_series(1, 100000) a(x) JOIN generate_series(1, 100000) b(y) \
             ON x % 2 = y % 2 AND x + y < 0"
                .to_owned(),
        ),
        (
            "outer join without a match",
            "SELECT count(*) FROM generate_series(1, 1000000) a(x) LEFT JOIN generate_series(1, 1000000) b(y) \
             ON x * y < 0"
                .to_owned(),
        ),
        (
            "window",
            "SELECT max(m) FROM (SELECT median(value) OVER (ORDER BY value ROWS BETWEEN 200000 PRECEDING AND 200000 \
             FOLLOWING) m FROM generate_series(1, 1000000))"
                .to_owned(),
        ),
        ("recursion", "WITH RECURSIVE r AS (SELECT 1 x UNION SELECT x + 1 FROM r) SELECT count(*) FROM r".to_owned()),
        ("regular expression", long(100_000)),
        ("LIKE", format!("SELECT count(*) FROM {letters} WHERE v LIKE '{}'", "%a_b".repeat(60))),
        (
            "lists",
            "SELECT count(*) FROM (SELECT range(value, value + 7990) a, range(value + 1, value + 7990) b \
             FROM generate_series(1, 5000)) WHERE array_has_all(a, b)"
                .to_owned(),
        ),
        (
            "distances",
            format!(
                "SELECT {distances} FROM (SELECT repeat('ab', 175) || value::text v FROM generate_series(1, 8000))"
            ),
        ),
    ]
}

/// A client that leaves, and one whose time is over, end the computation, and not only the wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_computed_for_clients_that_are_gone() {
    let service = Simulate::start(&["--searches", "1", "--mentions", "50"]);
    let serve = Serve::start(&service.base_url, "v4");
    let mut busy = Vec::new();
    for (name, sql) in endless() {
        let client = serve.postgres().await;
        client.simple_query("SET statement_timeout = '2s'").await.unwrap();
        let answer = timeout(TIME, client.simple_query(&sql)).await.expect("an answer");
        let answer = answer.map(drop).map_err(|error| error.as_db_error().map(|error| error.message().to_owned()));
        println!("{name}: {answer:?}");
        // Its time is over, or it was refused before it began.
        let known = |line: &str| {
            ["statement timeout", "steps", "comparisons", "wildcards"].iter().any(|part| line.contains(part))
        };
        assert!(answer.is_err_and(|line| line.is_some_and(|line| known(&line))), "{name}");
        let begun = Instant::now();
        loop {
            let before = serve.ticks();
            sleep(Duration::from_millis(500)).await;
            if serve.ticks() - before < 10 {
                break;
            }
            if begun.elapsed() > Duration::from_secs(60) {
                busy.push(name);
                break;
            }
        }
    }
    assert!(busy.is_empty(), "still computing: {busy:?}");
}

/// Limits are applied to plans that the optimizer has finished: its rules run several times, and look into conditions.
#[tokio::test(flavor = "multi_thread")]
async fn limits_leave_joins_and_requests_as_they_are() {
    let service = Simulate::start(&["--searches", "1", "--mentions", "50"]);
    let serve = Serve::start(&service.base_url, "v4");
    let mut client = serve.client().await;
    let mut plan = async |sql: &str| {
        let rows = all_rows(&mut client, &format!("EXPLAIN {sql}")).await;
        rows.into_iter().flatten().collect::<Vec<_>>().join("\n")
    };
    let pairs = "generate_series(1, 1000) a(x), generate_series(1, 1000) b(y)";
    for sql in [
        format!("SELECT count(*) FROM (SELECT a.x, b.y FROM {pairs}) t WHERE t.x = t.y"),
        format!("WITH j AS (SELECT a.x, b.y FROM {pairs} WHERE a.x <= b.y + 5) SELECT count(*) FROM j WHERE x = y"),
    ] {
        let plan = plan(&sql).await;
        assert!(plan.contains("HashJoinExec") && !plan.contains("NestedLoopJoinExec"), "{sql}\n{plan}");
    }
    let week = "m.published_at >= now() - interval '3 days'";
    for condition in ["m.source_type = 'news'", "m.source_type LIKE 'news'"] {
        let outer = plan(&format!(
            "SELECT count(*) FROM (SELECT m.id, s.name AS q FROM mentions m LEFT JOIN saved_searches s \
             ON m.aid = s.aid AND {condition} WHERE {week}) t WHERE t.q = 'x'"
        ))
        .await;
        let inner = plan(&format!(
            "SELECT count(*) FROM mentions m JOIN saved_searches s ON m.aid = s.aid \
             WHERE {condition} AND {week} AND s.name = 'x'"
        ))
        .await;
        let sent =
            |plan: &str| plan.lines().filter(|line| line.contains("sent=")).map(str::to_owned).collect::<Vec<_>>();
        let scans = |plan: &str| sent(plan).iter().map(|line| line.matches("source_type").count()).sum::<usize>();
        assert!(!sent(&outer).is_empty(), "{outer}");
        assert_eq!(scans(&outer), scans(&inner), "{condition}\n{outer}\n{inner}");
        assert!(!outer.contains("savedsearch_stoppable(mentions"), "{outer}");
    }
}
