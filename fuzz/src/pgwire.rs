//! Messages of a client of PostgreSQL after its startup message, over a connection to a server with demo data.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use datafusion_saved_search::host::{Auth, HostSpec, Upstream};
use datafusion_saved_search::postgres::{PostgresServer, PostgresSpec, serve};
use datafusion_saved_search::simulator::{self, Corpus, CorpusSpec, KEY, Settings};
use datafusion_saved_search::{Clock, Connection, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// Protocol 3.0, with a user (PostgreSQL documentation, "Message Formats", StartupMessage).
const STARTUP: &[u8] = b"\0\0\0\x12\0\x03\0\0user\0ada\0\0";

/// Time after which a server that neither answers nor closes the connection hangs.
const PATIENCE: Duration = Duration::from_secs(60);

struct Server {
    runtime: Runtime,
    postgres: PostgresServer,
    _service: simulator::Running,
}

impl Server {
    fn start() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (service, postgres) = runtime.block_on(async {
            let now = "2026-07-01T12:00:00Z".parse().expect("an instant");
            let corpus = Corpus::generate(CorpusSpec { seed: 7, searches: 2, mentions: 200, now });
            let clock = Clock::fixed(now);
            let settings = Settings { clock: clock.clone(), ..Settings::default() };
            let any = "127.0.0.1:0".parse().expect("an address");
            let service = simulator::start(any, Arc::new(corpus), settings).await.expect("a service");
            let key = Secret::new(KEY).expect("a key");
            let connection = Connection::builder(service.base_url(), key).clock(clock).build().expect("a connection");
            let spec = PostgresSpec { listen: any, tls: None, insecure: false };
            let mut host = HostSpec::new(Auth::None, Upstream::Own { connection, named: Vec::new() });
            host.limits.statement_seconds = 10;
            (service, serve(spec, host).await.expect("a server"))
        });
        Self { runtime, postgres, _service: service }
    }
}

/// Sends messages and the end of the connection. Whatever they are, the server answers with whole messages, and goes on.
pub fn target(data: &[u8]) {
    static SERVER: LazyLock<Server> = LazyLock::new(Server::start);
    let answer = SERVER.runtime.block_on(async {
        let mut stream = TcpStream::connect(SERVER.postgres.address()).await.expect("the server accepts connections");
        let (mut read, mut write) = stream.split();
        let mut answer = Vec::new();
        let sent = async {
            // The server may close the connection before all is sent.
            let _ = write.write_all(&[STARTUP, data].concat()).await;
            let _ = write.shutdown().await;
        };
        let ended = async {
            let received = read.read_to_end(&mut answer);
            tokio::join!(sent, received).1
        };
        let ended = timeout(PATIENCE, ended).await.expect("the server answers, or closes the connection");
        // A connection that is reset may lose the end of the answer.
        ended.map(|_| answer)
    });
    if let Ok(answer) = answer {
        check(&answer);
    }
}

/// Messages have a known kind and a length (PostgreSQL documentation, "Message Formats").
fn check(mut answer: &[u8]) {
    const KINDS: &[u8] = b"123ACDEGHIKNRSTVWZcdnstv";
    while let [kind, rest @ ..] = answer {
        assert!(KINDS.contains(kind), "unknown message {kind}");
        let length = rest.first_chunk::<4>().map(|length| u32::from_be_bytes(*length));
        let length = length.and_then(|length| usize::try_from(length).ok()).filter(|length| *length >= 4);
        let length = length.filter(|length| *length <= rest.len()).expect("a whole message");
        answer = &rest[length..];
    }
}
