//! Overhead of the Flight SQL server: a result fetched from it, compared with the same batches from a minimal Flight
//! server and with the library in the same process.
//!
//! Run with `cargo bench --bench flight`. Prints the ratio of throughputs for each pair of runs, and fails if a median
//! is below its goal. The service is a simulator in a separate process.
#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]

mod service;

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, HandshakeResponse,
    PollInfo, PutResult, SchemaResult, Ticket,
};
use datafusion_saved_search::flight::{FlightServer, ServerSpec};
use datafusion_saved_search::host::{Auth, HostSpec, Upstream};
use datafusion_saved_search::{Connection, session};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status, Streaming};

use self::service::Service;

const WINDOW: &str = "2026-01-01T00:00:00Z..2026-07-01T12:00:00Z";
const PAIRS: usize = 9;
/// Least share of the throughput of a bare server, with a table in memory.
const IN_MEMORY: f64 = 0.95;
/// Least share of the throughput of the library, with a scan of the service.
const SCANNED: f64 = 0.9;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;
type Client = FlightSqlServiceClient<Channel>;

#[tokio::main]
async fn main() -> Result<()> {
    let in_memory = against_a_bare_server().await?;
    let scanned = against_the_library().await?;
    let figures = [("a table in memory", in_memory, IN_MEMORY), ("a scan", scanned, SCANNED)];
    for (what, ratio, goal) in figures {
        println!("{what}: {ratio:.3} of the throughput (goal: at least {goal})");
    }
    match figures.iter().find(|(_, ratio, goal)| ratio < goal) {
        Some((what, ratio, goal)) => {
            Err(format!("{what} comes with {ratio:.3} of the throughput; the goal is {goal}").into())
        }
        None => Ok(()),
    }
}

async fn serve(connection: Arc<Connection>) -> Result<FlightServer> {
    let mut host = HostSpec::new(Auth::None, Upstream::Own { connection, named: Vec::new() });
    host.limits.temporary_bytes = 4 << 30;
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    Ok(FlightServer::start(ServerSpec { listen, tls: None, insecure: false, host }).await?)
}

async fn client(address: SocketAddr) -> Result<Client> {
    Ok(Client::new(Channel::from_shared(format!("http://{address}"))?.connect().await?))
}

async fn fetch(client: &mut Client, sql: &str) -> Result<Vec<RecordBatch>> {
    let info = client.execute(sql.to_owned(), None).await?;
    let ticket = info.endpoint.into_iter().next().and_then(|endpoint| endpoint.ticket).ok_or("no ticket")?;
    Ok(client.do_get(ticket).await?.try_collect().await?)
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// Rows already in the server's memory: the overhead of planning and running over sending.
async fn against_a_bare_server() -> Result<f64> {
    let service = Service::start(200_000, 0, 1_000)?;
    let server = serve(service.connection()?).await?;
    let mut ours = client(server.address()).await?;
    let sql = format!("CREATE TABLE held AS SELECT * FROM mentions WHERE duration = '{WINDOW}'");
    fetch(&mut ours, &sql).await?;
    // Copied into separate buffers, as in the server: received columns share one buffer per message, which the encoder
    // would count once for each column.
    let received = fetch(&mut ours, "SELECT * FROM held").await?;
    let own = |batch: &RecordBatch| {
        let (first, rest) = (batch.slice(0, 1), batch.slice(1, batch.num_rows() - 1));
        concat_batches(&batch.schema(), [&first, &rest])
    };
    let batches = received.iter().map(own).collect::<Result<Vec<RecordBatch>, _>>()?;
    let expected = rows(&batches);
    let bytes: usize = batches.iter().map(RecordBatch::get_array_memory_size).sum();

    let incoming = TcpIncoming::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?.with_nodelay(Some(true));
    let address = incoming.local_addr()?;
    let bare = Server::builder().add_service(FlightServiceServer::new(Bare(batches)));
    tokio::spawn(bare.serve_with_incoming(incoming));
    let mut theirs = client(address).await?;

    println!("{expected} mentions in memory, {} MB", bytes / 1_000_000);
    compare(
        async || {
            let batches: Vec<RecordBatch> = theirs.do_get(Ticket::new("held")).await?.try_collect().await?;
            Ok(rows(&batches))
        },
        async || Ok(rows(&fetch(&mut ours, "SELECT * FROM held").await?)),
    )
    .await
}

/// Rows fetched from the service during the query: the overhead of the server over the library.
async fn against_the_library() -> Result<f64> {
    let service = Service::start(10_000, 20, 100)?;
    let connection = service.connection()?;
    let context = session(&connection)?;
    let server = serve(connection).await?;
    let mut served = client(server.address()).await?;
    let sql = format!("SELECT * FROM mentions WHERE duration = '{WINDOW}'");
    println!("10,000 mentions from the service, 100 per page, 20 ms delay");
    compare(
        async || Ok(rows(&context.sql(&sql).await?.collect().await?)),
        async || Ok(rows(&fetch(&mut served, &sql).await?)),
    )
    .await
}

/// Median of the throughput ratios of paired runs; the first pair is a warm-up.
async fn compare(
    mut other: impl AsyncFnMut() -> Result<usize>,
    mut ours: impl AsyncFnMut() -> Result<usize>,
) -> Result<f64> {
    let mut ratios = Vec::new();
    for pair in 0..=PAIRS {
        let begun = Instant::now();
        let expected = other().await?;
        let theirs: Duration = begun.elapsed();
        let begun = Instant::now();
        let got = ours().await?;
        let own = begun.elapsed();
        if got != expected {
            return Err(format!("{got} rows, expected {expected}").into());
        }
        if pair > 0 {
            let ratio = theirs.as_secs_f64() / own.as_secs_f64();
            println!("  without the server {theirs:.0?}   with it {own:.0?}   ratio {ratio:.3}");
            ratios.push(ratio);
        }
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    println!("  median ratio {median:.3}");
    Ok(median)
}

/// A minimal Flight server that only sends these batches.
struct Bare(Vec<RecordBatch>);

type Answers<T> = BoxStream<'static, Result<T, Status>>;

#[tonic::async_trait]
impl FlightService for Bare {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = Answers<FlightData>;
    type DoPutStream = Answers<PutResult>;
    type DoActionStream = Answers<arrow_flight::Result>;
    type ListActionsStream = Answers<ActionType>;
    type DoExchangeStream = Answers<FlightData>;

    async fn do_get(&self, _: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let batches = stream::iter(self.0.clone().into_iter().map(Ok));
        let encoded = FlightDataEncoderBuilder::new().with_schema(self.0[0].schema()).build(batches);
        Ok(Response::new(encoded.map_err(Status::from).boxed()))
    }

    async fn handshake(
        &self,
        _: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        Err(Status::unimplemented("bare"))
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        Err(Status::unimplemented("bare"))
    }

    async fn get_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> {
        Err(Status::unimplemented("bare"))
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        Err(Status::unimplemented("bare"))
    }

    async fn get_schema(&self, _: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        Err(Status::unimplemented("bare"))
    }

    async fn do_put(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> {
        Err(Status::unimplemented("bare"))
    }

    async fn do_action(&self, _: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        Err(Status::unimplemented("bare"))
    }

    async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        Err(Status::unimplemented("bare"))
    }

    async fn do_exchange(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoExchangeStream>, Status> {
        Err(Status::unimplemented("bare"))
    }
}
