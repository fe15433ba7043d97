//! Upkeep and shutdown of a host. Several fronts may share one; one of them starts its upkeep, and each drains its own
//! connections ([`drained`]).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::state::Host;
use crate::error::Result;
use crate::serving::{Operated, operate};

/// Interval between sweeps for idle sessions, statements, results and connections.
const SWEEP: Duration = Duration::from_secs(5);
/// Time without running queries after which shutdown stops waiting for open connections.
pub(crate) const QUIET: Duration = Duration::from_secs(1);
/// Time that cancelled queries have to answer their clients.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Sweeps of a host, and its `/healthz` and `/metrics`, until it is dropped.
#[derive(Debug)]
pub(crate) struct Upkeep {
    /// Address of `/healthz` and `/metrics`.
    pub(crate) operations: Option<SocketAddr>,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

/// Removes what has expired from a server at intervals, and serves `/healthz` and `/metrics` if `asked` is an address.
///
/// # Errors
/// Those of [`bind`](crate::serving::bind).
pub(crate) async fn start_upkeep<S: Operated>(
    server: &Arc<S>,
    sweep: impl Fn(&S) + Send + 'static,
    asked: Option<SocketAddr>,
) -> Result<Upkeep> {
    let (mut operations, mut tasks) = (None, Vec::new());
    if let Some(asked) = asked {
        let (address, task) = operate(asked, Arc::clone(server)).await?;
        operations = Some(address);
        tasks.push(task);
    }
    let server = Arc::clone(server);
    tasks.push(AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            sleep(SWEEP).await;
            sweep(server.as_ref());
        }
    })));
    Ok(Upkeep { operations, _tasks: tasks })
}

/// Connections that end by themselves once their queries have ended.
pub(crate) trait Ends: Send {
    /// Result of the end.
    type Outcome: Send;

    /// Waits for the end; `None` if it takes longer than `patience`.
    fn ended(&mut self, patience: Duration) -> impl Future<Output = Option<Self::Outcome>> + Send;
}

/// Waits for the queries of a front that accepts no connections any more, for up to `drain_seconds`. If no query of the host has
/// run for `quiet`, connections that are still open are not waited for. Then cancels what still runs, so that its clients are
/// told before their connections close. What stopped queries had read completely is stored. Returns `None` if connections are open
/// even so.
pub(crate) async fn drained<E: Ends>(host: &Host, front: &mut E, quiet: Option<Duration>) -> Option<E::Outcome> {
    let ended = without_queries(host, front, quiet).await;
    // The lanes that write it end with the host.
    #[cfg(feature = "store")]
    host.settle().await;
    ended
}

/// As [`drained`], without what is left to store.
async fn without_queries<E: Ends>(host: &Host, front: &mut E, quiet: Option<Duration>) -> Option<E::Outcome> {
    let drain = Duration::from_secs(host.limits.drain_seconds);
    let is_quiet = async {
        match quiet {
            Some(time) => host.quiet(time).await,
            None => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        ended = front.ended(drain) => ended,
        () = is_quiet => front.ended(Duration::ZERO).await,
    };
    if ended.is_some() {
        return ended;
    }
    host.cancel_queries();
    front.ended(LAST_WORDS).await
}
