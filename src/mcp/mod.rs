//! The MCP server: the tables as tools of an agent, which sees the cost of a query before it sends requests.
//!
//! ```text
//! stdio ─────────────────────────────┐
//! HTTP ─http: host, credentials─▶ session ─▶ handler ─tools─▶ query (cost, cheaper) ─▶ text
//!                                                        └──▶ tables, budget, resources: no request
//! ```
//!
//! - `handler` answers the protocol and runs each tool in a task of its own, `tools` reads their arguments.
//! - `query` plans, refuses and runs queries; `cost` describes an estimate, `cheaper` derives cheaper alternatives to a
//!   statement.
//! - `text` writes rows as text of limited length; `resources` are the profile and pages of the documentation.
//! - `profiles` are tools for the profile of a service, for the user's own agent: the only ones that write a file.
//! - `http` listens: streamable HTTP of the Model Context Protocol, without sessions of the protocol.
//!
//! Users, sessions and limits are those of the module `host`. Nothing is written but profiles. No call changes a session, because each
//! call has its own copy of the settings.
//!
//! Invariant: a call sends at most its `max_requests`, and returns a complete result or an error.

mod cheaper;
mod cost;
mod handler;
mod http;
mod profiles;
mod query;
mod resources;
mod text;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{RunningService, ServerInitializeError, ServiceExt};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use self::handler::Handler;
pub use self::http::{McpSpec, serve_http};
pub use self::profiles::ProfileTools;
use crate::config::SessionSettings;
use crate::error::{Error, ErrorKind, Result, one_line};
use crate::host::auth::{Auth, Credentials};
use crate::host::sessions::Upstream;
use crate::host::settings::Limits;
use crate::host::spec::HostSpec;
use crate::host::state::Host;

/// Limits of an MCP server, in addition to [`Limits`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpLimits {
    /// Maximum number of requests that a call may allow its query.
    pub max_requests: u64,
    /// Maximum number of rows that a call may ask for.
    pub max_rows: usize,
    /// Length of a result as text, in bytes. Clients refuse messages of more than 1 MiB.
    pub text_bytes: usize,
}

impl McpLimits {
    /// These limits, within the settings of the server's queries.
    fn within(mut self, settings: &SessionSettings) -> Self {
        self.max_requests = self.max_requests.min(settings.max_requests);
        self
    }
}

impl Default for McpLimits {
    fn default() -> Self {
        Self { max_requests: 100, max_rows: 1_000, text_bytes: 64 << 10 }
    }
}

/// Configuration of an MCP server on a pair of streams, whose other side is trusted.
#[derive(Debug)]
pub struct StdioSpec {
    /// Connections behind the tables.
    pub upstream: Upstream,
    /// Settings of each call.
    pub settings: SessionSettings,
    /// Resource limits.
    pub limits: Limits,
    /// Limits of calls.
    pub mcp: McpLimits,
    /// Tools that examine the service and write profiles; `None`: the client does not get them.
    pub profiles: Option<ProfileTools>,
}

/// Longest message of a client, in bytes. Longer ones are dropped with a line in the log.
const MESSAGE: usize = 4 << 20;
/// Time for which answers are awaited once the server ends.
const ENDING: Duration = Duration::from_secs(2);

/// Serves a client on stdin and stdout until the client closes stdin, or `ended` resolves.
///
/// # Errors
/// [`ErrorKind::Config`] for unusable limits, [`ErrorKind::Connect`] for a client that does not begin as the protocol requires.
pub async fn serve_stdio(spec: StdioSpec, ended: impl Future<Output = ()>) -> Result<()> {
    let (read, write) = stdio_pipes();
    serve_streams(spec, read, write, ended).await
}

/// As [`serve_stdio`], on any streams.
///
/// # Errors
/// Those of [`serve_stdio`].
#[doc(hidden)]
pub async fn serve_streams(
    spec: StdioSpec,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
    ended: impl Future<Output = ()>,
) -> Result<()> {
    let StdioSpec { upstream, settings, limits, mcp, profiles } = spec;
    let mcp = mcp.within(&settings);
    let host = Arc::new(Host::start(HostSpec { limits, settings, ..HostSpec::new(Auth::None, upstream) })?);
    let failed = |what: String| Error::new(ErrorKind::Connect, what);
    let session = host.sessions.find(Credentials::None, None).await;
    let session = session.map_err(|failure| failed(failure.message()))?;
    let cancelled = CancellationToken::new();
    let transport = AsyncRwTransport::new_server(read, write).with_max_line_length(MESSAGE);
    let handler = Handler::new(Arc::clone(&host), mcp, Some(session), profiles);
    let served = async {
        match handler.serve_with_ct(transport, cancelled.clone()).await {
            Ok(running) => wait(running).await,
            // The client left without a word.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
            Err(error) => {
                let what = one_line(&error.to_string());
                Err(failed(format!("the client did not start the MCP handshake correctly: {what}")))
            }
        }
    };
    tokio::pin!(served);
    let served = tokio::select! {
        served = &mut served => served,
        () = ended => {
            cancelled.cancel();
            // A client that does not read its answers is not waited for.
            tokio::time::timeout(ENDING, served).await.unwrap_or(Ok(()))
        }
    };
    #[cfg(feature = "store")]
    host.settle().await;
    served
}

async fn wait(running: RunningService<rmcp::RoleServer, Handler>) -> Result<()> {
    match running.waiting().await {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::new(ErrorKind::Connect, format!("the MCP server failed: {error}"))),
    }
}
