//! Clients of PostgreSQL that mean no good: random messages, those of others, and computations without an end.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};

use super::*;
use crate::support::knob;

/// A message of any kind, most of them with a body that fits.
fn sent() -> impl Strategy<Value = Vec<u8>> {
    let text = || prop_oneof![Just(String::new()), Just("s".to_owned()), "[ -~]{0,12}"];
    let sql = prop_oneof![
        Just("SELECT 1".to_owned()),
        Just("SELECT $1::int".to_owned()),
        Just("BEGIN".to_owned()),
        Just("COPY (SELECT 1) TO STDOUT".to_owned()),
        Just("SELECT relname FROM pg_class".to_owned()),
        Just("SELECT id FROM mentions LIMIT 1".to_owned()),
        "\\PC{0,30}",
    ];
    let terminated = |text: String| [text.replace('\0', "").as_bytes(), b"\0"].concat();
    let numbers = || prop::collection::vec(any::<u8>(), 0..10);
    let framed = |kind: u8, body: Vec<u8>| message(kind, i32::try_from(body.len() + 4).unwrap(), &body);
    prop_oneof![
        sql.clone().prop_map(move |sql| framed(b'Q', terminated(sql))),
        (text(), sql)
            .prop_map(move |(name, sql)| framed(b'P', [terminated(name), terminated(sql), vec![0; 2]].concat())),
        (text(), text()).prop_map(move |(portal, name)| {
            framed(b'B', [terminated(portal), terminated(name), vec![0; 6]].concat())
        }),
        (text(), numbers()).prop_map(move |(name, rest)| framed(b'B', [terminated(name), rest].concat())),
        (text(), any::<i32>()).prop_map(move |(portal, most)| {
            framed(b'E', [terminated(portal), most.to_be_bytes().to_vec()].concat())
        }),
        (prop_oneof![Just(b'S'), Just(b'P'), any::<u8>()], text(), any::<bool>()).prop_map(
            move |(of, name, describe)| {
                framed(if describe { b'D' } else { b'C' }, [vec![of], terminated(name)].concat())
            }
        ),
        Just(framed(b'S', Vec::new())),
        Just(framed(b'H', Vec::new())),
        (any::<u8>(), numbers()).prop_map(move |(kind, body)| framed(kind, body)),
        (any::<u8>(), any::<i32>(), numbers()).prop_map(|(kind, length, body)| message(kind, length, &body)),
    ]
}

/// Returns the messages of an answer, or None if it is not made of messages.
fn messages(mut answer: &[u8]) -> Option<Vec<(u8, Vec<u8>)>> {
    let mut found = Vec::new();
    while let [kind, a, b, c, d, rest @ ..] = answer {
        let length = usize::try_from(i32::from_be_bytes([*a, *b, *c, *d])).ok()?.checked_sub(4)?;
        // The connection may have ended within one.
        let Some((body, after)) = rest.split_at_checked(length) else { break };
        found.push((*kind, body.to_vec()));
        answer = after;
    }
    Some(found)
}

#[test]
fn whatever_is_sent_has_a_code_and_leaves_the_server_alive() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let served = runtime.block_on(Served::new());
    let address = served.postgres.address();
    let cases = u32::try_from(knob("POSTGRES_CASES", 200)).unwrap();
    let cases = Cases { cases, failure_persistence: None, ..Cases::default() };
    let sequences = prop::collection::vec(sent(), 1..8);
    let outcome = TestRunner::new(cases).run(&sequences, |sequence| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONGEST)).unwrap();
        // Terminate, at the end, so that the server closes the connection whatever was understood.
        let bytes = [startup(&[("user", "ada")]), sequence.concat(), message(b'X', 4, b"")].concat();
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        if let Err(error) = stream.read_to_end(&mut answer) {
            prop_assert!(error.kind() == std::io::ErrorKind::ConnectionReset, "no answer: {error}");
        }
        let Some(answer) = messages(&answer) else { return Err(TestCaseError::fail("not messages")) };
        for (_, body) in answer.iter().filter(|(kind, _)| *kind == b'E') {
            let text = String::from_utf8_lossy(body).into_owned();
            let code = text.split('\0').find_map(|field| field.strip_prefix('C')).unwrap_or_default();
            prop_assert!(code.len() == 5 && !["XX000", "00000"].contains(&code), "{text:?}");
            prop_assert!(!text.contains('\n') && !text.contains(KEY), "{text:?}");
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failed| panic!("{failed}"));
    assert_eq!(runtime.block_on(async { text(&served.client().await, "SELECT 1").await }), "1");
}

/// Reads until what has arrived ends like this.
async fn read_to(stream: &mut TcpStream, end: &[u8]) {
    let (mut answer, mut part) = (Vec::new(), vec![0; 64 << 10]);
    while !answer.ends_with(end) {
        let length = timeout(LONGEST, AsyncReadExt::read(stream, &mut part)).await.unwrap().unwrap();
        assert!(length > 0, "the connection has ended");
        answer.extend_from_slice(&part[..length]);
    }
}

fn simple_query(sql: &str) -> Vec<u8> {
    message(b'Q', i32::try_from(sql.len() + 5).unwrap(), &[sql.as_bytes(), b"\0"].concat())
}

/// Statements that need no wait to be answered: all of them are there at once.
#[tokio::test]
async fn other_tasks_of_the_thread_come_between_the_statements_of_a_message() {
    const STATEMENTS: usize = 9_000;
    let served = Served::new().await;
    let mut stream = TcpStream::connect(served.postgres.address()).await.unwrap();
    AsyncWriteExt::write_all(&mut stream, &startup(&[("user", "ada")])).await.unwrap();
    read_to(&mut stream, b"Z\0\0\0\x05I").await;
    AsyncWriteExt::write_all(&mut stream, &simple_query("BEGIN")).await.unwrap();
    read_to(&mut stream, b"Z\0\0\0\x05T").await;
    let turns = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            counts.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let savepoints: Vec<String> = (0..STATEMENTS).map(|at| format!("SAVEPOINT s{at}")).collect();
    AsyncWriteExt::write_all(&mut stream, &simple_query(&savepoints.join(";"))).await.unwrap();
    // The first replies are sent in the middle of the message, after 64 KiB.
    let first = timeout(LONGEST, AsyncReadExt::read(&mut stream, &mut [0; 1])).await.unwrap().unwrap();
    let before = turns.load(Ordering::Relaxed);
    read_to(&mut stream, b"Z\0\0\0\x05T").await;
    let meanwhile = turns.load(Ordering::Relaxed) - before;
    other.abort();
    assert!(first == 1 && meanwhile >= 100, "{meanwhile} turns of another task");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_statements_of_a_message_and_the_savepoints_of_a_transaction_are_limited() {
    let served = Served::new().await;
    let client = served.client().await;
    let (sqlstate, line) = code(&client, &"SHOW timezone;".repeat(10_001)).await;
    assert_eq!(sqlstate, "54000");
    assert_eq!(line, "too many statements in a message: 10001, the limit is 10000; send several");
    client.batch_execute("BEGIN").await.unwrap();
    // Some drivers set the same one before each statement.
    for command in ["SAVEPOINT s;", "SAVEPOINT s;", "RELEASE s;", "RELEASE s;"] {
        client.batch_execute(&command.repeat(10_000)).await.unwrap();
    }
    assert_eq!(code(&client, "RELEASE s").await.0, "3B001");
    client.batch_execute("ROLLBACK; BEGIN").await.unwrap();
    let savepoints: Vec<String> = (0..10_000).map(|at| format!("SAVEPOINT s{at}")).collect();
    client.batch_execute(&savepoints.join(";")).await.unwrap();
    let (sqlstate, line) = code(&client, "SAVEPOINT s").await;
    assert_eq!(sqlstate, "54000");
    assert_eq!(line, "too many savepoints: a transaction is limited to 10000; release some");
    client.batch_execute("ROLLBACK; BEGIN; SAVEPOINT s; RELEASE s; COMMIT").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn users_share_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    let verifier = scram_verifier("swordfish");
    let one = |name| format!("[users.{name}]\nscram_sha_256 = \"{verifier}\"\n");
    let budget = "budget = [{ requests = 3, seconds = 3600 }]\n";
    std::fs::write(&path, [one("ada"), one("bob"), budget.to_owned()].concat()).unwrap();
    let served =
        Served::with(Settings::default(), |spec| spec.host.auth = Auth::Users(Users::read(&path).unwrap())).await;
    let log_in = async |user: &str| {
        let mut config = served.config();
        config.user(user).password("swordfish");
        served.try_client(&config).await.unwrap()
    };
    let (ada, bob) = (log_in("ada").await, log_in("bob").await);
    let some = format!("SELECT id FROM mentions WHERE aid = '{BIG}' LIMIT 1");
    ada.batch_execute("CREATE TEMPORARY TABLE own AS SELECT 'private' AS a; SET savedsearch.partial = on")
        .await
        .unwrap();
    ada.batch_execute(&format!("BEGIN; DECLARE c CURSOR FOR {some}; DECLARE d CURSOR FOR SELECT 'private'"))
        .await
        .unwrap();
    assert_eq!(texts(&ada, &some).await.len(), 1);
    assert_eq!(text(&ada, "SELECT a FROM own").await, "private");
    assert_eq!(text(&ada, "SELECT count(*) FROM system.requests").await, "1");
    for (sql, expected) in
        [("SELECT a FROM own", "42P01"), ("FETCH 1 FROM d", "34000"), ("CLOSE c", "34000"), ("EXECUTE s", "0A000")]
    {
        assert_eq!(code(&bob, sql).await.0, expected, "{sql}");
    }
    assert_eq!(text(&bob, "SELECT count(*) FROM system.requests").await, "0");
    assert_eq!(text(&bob, "SHOW savedsearch.partial").await, "off");
    let named = "SELECT count(*) FROM pg_class WHERE relname = 'own'";
    assert_eq!(text(&bob, named).await, "0");

    // A budget is one over all connections of a user; others have their own.
    for _ in 0..3 {
        texts(&log_in("bob").await, &some).await;
    }
    let ((sqlstate, line), cost) = served.cost(code(&log_in("bob").await, &some)).await;
    assert_eq!((sqlstate.as_str(), cost), ("53400", 0), "{line}");
    assert!(line.contains("retry in"), "{line}");
    assert_eq!(texts(&log_in("ada").await, &some).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_computation_without_a_pause_keeps_nobody_waiting() {
    let served = Served::with(Settings::default(), |spec| spec.host.limits.statement_seconds = 2).await;
    let busy =
        "SELECT count(*) FROM generate_series(1, 10000) a(v), generate_series(1, 10000) b(v) WHERE a.v * b.v = 7";
    let computing = join_all((0..3).map(|_| async { code(&served.client().await, busy).await.0 }));
    let watching = async {
        sleep(Duration::from_millis(500)).await;
        timeout(LONGEST, async { text(&served.client().await, "SELECT current_user").await }).await
    };
    let (codes, watched) = tokio::join!(computing, watching);
    assert_eq!((codes, watched.expect("an answer").as_str()), (vec!["57014".to_owned(); 3], "ada"));
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_who_stand_there_keep_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    std::fs::write(&path, format!("[users.ada]\nscram_sha_256 = \"{}\"\n", scram_verifier("swordfish"))).unwrap();
    let served =
        Served::with(Settings::default(), |spec| spec.host.auth = Auth::Users(Users::read(&path).unwrap())).await;
    let mut strangers = Vec::new();
    for at in 0..400 {
        let mut stream = TcpStream::connect(served.postgres.address()).await.unwrap();
        // Some say nothing, some stop before their password.
        let said = if at % 2 == 0 { Vec::new() } else { startup(&[("user", "ada")]) };
        let _ = stream.write_all(&said).await;
        strangers.push(stream);
    }
    let mut config = served.config();
    config.password("swordfish");
    let client = served.try_client(&config).await.unwrap();
    assert_eq!(text(&client, "SELECT 1").await, "1");
    let mut rest = Vec::new();
    let closed = timeout(LONGEST, strangers[0].read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "the oldest connection without a login is still open");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_is_told_why_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    std::fs::write(&path, format!("[users.ada]\nscram_sha_256 = \"{}\"\n", scram_verifier("swordfish"))).unwrap();
    let served =
        Served::with(Settings::default(), |spec| spec.host.auth = Auth::Users(Users::read(&path).unwrap())).await;
    let address = served.postgres.address();
    let crowd = join_all((0..500).map(|_| async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&startup(&[("user", "ada")])).await.unwrap();
        let mut answer = Vec::new();
        // Those that are not refused are asked for their password.
        match timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await {
            Err(_) => (true, false),
            Ok(read) => (false, read.is_ok() && answer.windows(5).any(|code| code == b"53300")),
        }
    }));
    let crowd = crowd.await;
    let (open, told) = (crowd.iter().filter(|end| end.0).count(), crowd.iter().filter(|end| end.1).count());
    assert_eq!(open + told, 500, "{open} are open, {told} were told");
    assert!(open > 100, "{open} are open");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_keeps_so_many_statements_and_so_much_text() {
    let served = Served::with(Settings::default(), |spec| spec.host.limits.statements = 20).await;
    let client = served.client().await;
    let mut held = Vec::new();
    let refused = loop {
        match client.prepare(&format!("SELECT {}", held.len())).await {
            Ok(statement) => held.push(statement),
            Err(error) => break error,
        }
    };
    assert_eq!((held.len(), refused.code().unwrap().code()), (20, "53400"));
    let typed: [(&(dyn tokio_postgres::types::ToSql + Sync), tokio_postgres::types::Type); 0] = [];
    // The statement without a name has its own place.
    for _ in 0..2 {
        assert_eq!(client.query_typed("SELECT 1", &typed).await.unwrap().len(), 1);
    }
    drop(held);
    assert_eq!(text(&client, "SELECT 1").await, "1");
    // The message is not taken in.
    let large = format!("SELECT '{}'", "x".repeat(100 << 20));
    let refused = client.simple_query(&large).await.expect_err("too large");
    assert!(refused.as_db_error().is_none_or(|error| error.code().code() == "54000"), "{refused:?}");
    assert_eq!(text(&served.client().await, "SELECT 1").await, "1");
}

/// A message may repeat a part of the statement, which may be long. None names a type of the program.
#[tokio::test(flavor = "multi_thread")]
async fn messages_have_a_bounded_length() {
    let served = Served::new().await;
    let client = served.client().await;
    let long = "x".repeat(200_000);
    let cases = [
        format!("SELECT U&'{}'", "\\0041".repeat(40_000)),
        format!("SELECT '{long}' 'y'"),
        format!("SELECT '{long}'::int"),
        format!("SELECT '{long}'::date"),
        format!("SELECT '{{{{{long}}}}}'::text[]"),
        format!("SELECT \"{long}\" FROM mentions"),
        format!("SELECT * FROM \"{long}\""),
        format!("SELECT {long}(1)"),
        format!("SELECT 1 FROM mentions WHERE aid = '{long}' {long}"),
        format!("EXECUTE {long}"),
        format!("CLOSE {long}"),
    ];
    each_async(cases, async |sql| {
        let error = client.simple_query(&sql).await.expect_err(&sql[..20]);
        let error = error.as_db_error().unwrap_or_else(|| panic!("{}: {error:?}", &sql[..20]));
        let message = error.message();
        assert!(message.chars().count() <= 1_000 && !message.contains("Literal"), "{}: {message}", &sql[..20]);
    })
    .await;
    assert_eq!(text(&client, "SELECT 1").await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_a_parameter_takes_no_memory() {
    let served = Served::new().await;
    let client = served.client().await;
    each_async(["$100000::int", "$4000000000::int", "$18446744073709551615::int"], async |parameter| {
        let (_, message) = code(&client, &format!("SELECT {parameter}")).await;
        assert!(message.contains("invalid parameter"), "{parameter}: {message}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn types_of_parameters_count_as_kept() {
    let served = Served::with(Settings::default(), |spec| spec.host.limits.memory_mib = 16).await;
    let client = served.client().await;
    let mut held = Vec::new();
    let refused = loop {
        match client.prepare(&format!("SELECT {} FROM pg_class WHERE relname = $30000", held.len())).await {
            Ok(statement) => held.push(statement),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.code().unwrap().code(), "53200", "{refused}");
    assert!(held.len() < 10, "30,000 types take hundreds of kilobytes, and a user has 4 MiB: {}", held.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_settings_have_a_bounded_length() {
    let served = Served::new().await;
    let client = served.client().await;
    let long = "x".repeat(5_000);
    each_async(["application_name", "search_path", "lc_messages", "savedsearch.timezone"], async |name| {
        let (sqlstate, message) = code(&client, &format!("SET {name} = '{long}'")).await;
        assert!(sqlstate == "22023" && message.contains("too long"), "{name}: {sqlstate} {message}");
        let shown = text(&client, &format!("SHOW {name}")).await;
        assert!(shown.len() < 100, "{name}: {shown}");
    })
    .await;
}
