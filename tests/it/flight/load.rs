//! Load test with many clients against real processes: no errors, no leaks, and the service's rate limit is respected.
//!
//! `LOAD_CLIENTS` and `LOAD_SECONDS` set the number of clients and the duration, `LOAD_REQUESTS` the number of requests
//! per ten seconds that the profile declares. A small load is part of every test run.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow_flight::sql::CommandGetTables;
use arrow_flight::sql::client::FlightSqlServiceClient;
use futures::{StreamExt, TryStreamExt};
use tonic::Status;
use tonic::transport::Channel;

use super::{Client, access, fetch, status, try_rows};
use crate::binary::{Simulate, savedsearch};
use crate::support::knob;

/// Number of parts of the load; memory is measured after each.
const PARTS: u64 = 6;

/// A `savedsearch serve` process on free ports.
pub(super) struct Serve {
    child: Child,
    address: String,
    operations: SocketAddr,
    postgres: SocketAddr,
}

impl Serve {
    pub(super) fn start(base_url: &str, profile: &str) -> Self {
        Self::of(savedsearch(&["--base-url", base_url, "--profile", profile, "serve"]))
    }

    /// Starts a command `serve` with addresses and a key.
    pub(super) fn of(mut serve: Command) -> Self {
        let mut child = serve
            .args(["--listen", "127.0.0.1:0", "--postgres-listen", "127.0.0.1:0", "--operations", "127.0.0.1:0"])
            .args(["--log", "error"])
            .env("SAVEDSEARCH_API_KEY", "demo-key-comms")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut told = |what: &str| {
            let line = lines.next().unwrap();
            line.strip_prefix(what).unwrap_or_else(|| panic!("{line}")).to_owned()
        };
        let postgres = told("Postgres on ").parse().unwrap();
        let operations = told("health and metrics on ").parse().unwrap();
        let address = told("listening on ");
        // Shows the server's errors in the test output.
        std::thread::spawn(move || lines.for_each(|line| println!("serve: {line}")));
        Self { child, address, operations, postgres }
    }

    pub(super) async fn client(&self) -> Client {
        let channel = Channel::from_shared(format!("http://{}", self.address)).unwrap();
        FlightSqlServiceClient::new(channel.connect().await.unwrap())
    }

    pub(super) async fn postgres(&self) -> tokio_postgres::Client {
        let mut config = tokio_postgres::Config::new();
        config.host(self.postgres.ip().to_string()).port(self.postgres.port()).user("ada").dbname("savedsearch");
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    pub(super) fn postgres_address(&self) -> SocketAddr {
        self.postgres
    }

    /// Address of `/healthz`.
    pub(super) fn operations(&self) -> SocketAddr {
        self.operations
    }

    /// Number of the process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    fn metric(&self, name: &str) -> u64 {
        let (_, text) = super::ends::get(self.operations, "/metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("savedsearch_{name} ")));
        line.unwrap_or_else(|| panic!("{name}\n{text}")).parse().unwrap()
    }

    /// Resident memory in MiB.
    pub(super) fn memory(&self) -> u64 {
        self.mebibytes("VmRSS:")
    }

    /// Peak resident memory in MiB.
    pub(super) fn peak(&self) -> u64 {
        self.mebibytes("VmHWM:")
    }

    /// Begins a new peak: from now on, it is that of what happens after this call.
    pub(super) fn reset_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
    }

    /// Processor time so far, in ticks of 10 ms (proc(5), `utime` and `stime`).
    pub(super) fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }

    /// Number of threads.
    pub(super) fn threads(&self) -> u64 {
        self.number("Threads:")
    }

    fn mebibytes(&self, what: &str) -> u64 {
        self.number(what) / 1_024
    }

    fn number(&self, what: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs one operation of a client; `turn` selects which.
async fn turn(client: &mut Client, turn: u64) -> Result<(), Status> {
    let aid = ["183772", "184889", "186006", "187123"][usize::try_from(turn).unwrap() / 8 % 4];
    let rows = match turn % 8 {
        0 => try_rows(client, "SELECT 1").await?,
        1 => try_rows(client, &format!("SELECT source, count(*) FROM mentions WHERE aid = '{aid}' GROUP BY 1")).await?,
        2 => {
            let sql = format!("SELECT id, title FROM mentions WHERE aid = '{aid}' ORDER BY published_at DESC LIMIT 10");
            try_rows(client, &sql).await?
        }
        3 => {
            let sql = "SELECT count(*) FROM mentions WHERE aid = ? AND language = 'en'";
            let mut prepared = client.prepare(sql.to_owned(), None).await.map_err(status)?;
            let set: ArrayRef = Arc::new(StringArray::from(vec![aid]));
            prepared.set_parameters(RecordBatch::try_from_iter([("0", set)]).unwrap()).unwrap();
            let info = prepared.execute().await.map_err(status)?;
            let rows = crate::support::rows(&fetch(client, &info).await?);
            prepared.close().await.map_err(status)?;
            rows
        }
        4 => {
            let info = client.get_tables(CommandGetTables::default()).await.map_err(status)?;
            crate::support::rows(&fetch(client, &info).await?)
        }
        5 => try_rows(client, &format!("SELECT * FROM mentions WHERE aid = '{aid}' AND duration = '7d'")).await?,
        6 => {
            // Drops the stream before the end.
            let sql = format!("SELECT * FROM mentions WHERE aid = '{aid}' AND duration = '30d' AND reach > {turn}");
            let info = client.execute(sql, None).await.map_err(status)?;
            let mut stream = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.map_err(status)?;
            stream.next().await.transpose().map_err(status)?;
            return Ok(());
        }
        _ => {
            try_rows(client, "CREATE OR REPLACE TABLE few AS SELECT aid, name FROM saved_searches").await?;
            try_rows(client, "SELECT count(*) FROM few").await?
        }
    };
    if rows.is_empty() { Err(Status::data_loss(format!("turn {turn}: no rows"))) } else { Ok(()) }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_at_once_meet_no_error_and_leave_nothing_behind() {
    let (clients, seconds) = (knob("LOAD_CLIENTS", 20), knob("LOAD_SECONDS", 4));
    // The simulator allows slightly more than the profile declares, since requests arrive later than they are sent.
    let declared = knob("LOAD_REQUESTS", 360);
    let allowed = format!("{}/10", declared + declared / 9);
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("limited.toml");
    let v4 = datafusion_saved_search::Profile::builtin_document("v4").unwrap();
    let limited = v4.replace("windows = []", &format!("windows = [{{ requests = {declared}, seconds = 10 }}]"));
    assert_ne!(limited, v4, "the profile has no `windows = []`");
    std::fs::write(&profile, limited).unwrap();
    let service =
        Simulate::start(&["--searches", "4", "--mentions", "4000", "--delay-ms", "20", "--rate-limit", &allowed]);
    let served = Arc::new(Serve::start(&service.base_url, profile.to_str().unwrap()));

    let turns = Arc::new(AtomicU64::new(0));
    let load = async |seconds: u64| {
        let end = Instant::now() + Duration::from_secs(seconds);
        let working = (0..clients).map(|number| {
            let (served, turns) = (Arc::clone(&served), Arc::clone(&turns));
            tokio::spawn(async move {
                let mut client = served.client().await;
                client.handshake("load", "load").await.map_err(status)?;
                let mut number = number;
                while Instant::now() < end {
                    turn(&mut client, number).await?;
                    turns.fetch_add(1, Ordering::Relaxed);
                    number += 1;
                }
                access::close_session(&mut client).await
            })
        });
        let ended = futures::stream::iter(working).buffer_unordered(usize::MAX).try_collect::<Vec<_>>().await.unwrap();
        for result in ended {
            result.unwrap_or_else(|status| panic!("a client failed: {status:?}"));
        }
    };
    // A leak grows with every part; memory retained by the allocator does not.
    let mut memory = Vec::new();
    for _ in 0..PARTS {
        load(seconds.div_ceil(PARTS)).await;
        memory.push(served.memory());
    }

    for left in ["queries_running", "sessions", "statements", "results"] {
        // A stream whose reader has gone ends a moment later.
        let patience = Instant::now() + Duration::from_secs(30);
        while served.metric(left) > 0 && Instant::now() < patience {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(served.metric(left), 0, "{left}");
    }
    let requests = served.metric("upstream_requests");
    println!(
        "{clients} clients, {seconds} s: {} turns, {requests} requests; MiB of memory after each part: {memory:?}",
        turns.load(Ordering::Relaxed)
    );
    let (half, last) = (memory[memory.len() / 2], memory[memory.len() - 1]);
    assert!(last <= half + half / 8 + 16, "memory grows: {memory:?}");
    // No request in the log was refused or retried.
    let mut client = served.client().await;
    let sql = "SELECT count(*) FILTER (WHERE status <> 200 OR attempts > 1) FROM system.requests WHERE NOT cached";
    assert_eq!(try_rows(&mut client, sql).await.unwrap(), [["0"]]);
    let sql = "SELECT count(*) > 0 FROM system.budget WHERE source = 'declared' AND remaining < requests";
    assert_eq!(try_rows(&mut client, sql).await.unwrap(), [["true"]]);
}
