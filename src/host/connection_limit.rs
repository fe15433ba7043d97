//! Limits on open connections: their number, whether they are authenticated, and how long they have been idle.
//!
//! Even an unauthenticated connection takes a file descriptor, a task and a buffer, so their number is small. At the limit,
//! the oldest connection of the address with the most connections is closed, even if it is busy, so a new client can connect
//! however many connections others hold open. An authenticated connection stays open while it is used. At their limit, the
//! connection that has been idle longest is closed, of all users or of the same user. If a connection has a key that the
//! service has not accepted yet, it counts as unauthenticated, but may be idle for as long as an authenticated one. If
//! it has sent no credentials, it is closed after a while, even if it is busy.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::peer::Peer;

/// Idle time after which a connection without credentials is closed.
const UNPROVEN: Duration = Duration::from_secs(30);
/// Time within which a client must log in.
const LOGIN: Duration = Duration::from_secs(60);
/// Maximum number of unauthenticated connections.
const STRANGERS: usize = 256;
/// Time to send a client the reason why its connection is closed.
const FAREWELL: Duration = Duration::from_secs(5);
/// Maximum number of connections to which the reason is being sent.
const FAREWELLS: usize = 256;
/// Maximum number of concurrent calls on an unauthenticated connection.
const CALLS: usize = 16;

/// The open connections of a server.
#[derive(Debug)]
pub(crate) struct Standing {
    connections: Mutex<HashMap<Peer, Admitted>>,
    /// Maximum number of authenticated connections.
    most: usize,
    /// Maximum number of those of one user.
    most_of_user: usize,
    /// Idle time after which a connection with credentials is closed.
    idle: Duration,
    /// Connections closed without a login.
    strangers_closed: Counter,
    /// Connections to which the reason for closing them is being sent.
    farewells: Semaphore,
}

/// Reason for closing a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A limit on connections.
    MadeRoom,
    /// No call for too long.
    Idle,
    /// No credentials in time.
    NoLogin,
    /// The user was removed, or has other credentials or another budget.
    LoggedOut,
}

/// Tells a connection that it must be closed, and the reason.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ended {
    token: CancellationToken,
    reason: Arc<OnceLock<Reason>>,
}

impl Ended {
    fn end(&self, reason: Reason) {
        // The first reason is told.
        let _ = self.reason.set(reason);
        self.token.cancel();
    }

    /// Returns the reason; `None` while the connection may stay open.
    pub(crate) fn reason(&self) -> Option<Reason> {
        self.reason.get().copied()
    }

    /// Resolves when the connection must be closed.
    pub(crate) fn wait_owned(&self) -> WaitForCancellationFutureOwned {
        self.token.clone().cancelled_owned()
    }

    /// Waits until the connection must be closed. Returns the reason.
    pub(crate) async fn wait(&self) -> Reason {
        self.token.cancelled().await;
        self.reason().unwrap_or(Reason::MadeRoom)
    }
}

#[derive(Debug)]
struct Admitted {
    address: IpAddr,
    since: Instant,
    proven: bool,
    /// Whose credentials were proven.
    user: Option<Arc<str>>,
    /// Credentials were sent, which may not be proven yet.
    logged_in: bool,
    /// The client has got an answer: to a call, a cancel request, or wrong credentials, which have a count of their own.
    answered: bool,
    /// Number of running calls.
    calls: usize,
    /// Time at which the last call ended, or the connection was opened.
    used: Instant,
    ended: Ended,
}

/// Guard for a running call, which ends on drop.
#[derive(Debug)]
pub(crate) struct Call {
    standing: Arc<Standing>,
    peer: Peer,
}

impl Standing {
    pub(crate) fn new(most: usize, most_of_user: usize, idle: Duration, strangers_closed: Counter) -> Self {
        let farewells = Semaphore::new(FAREWELLS);
        Self { connections: Mutex::default(), most, most_of_user, idle, strangers_closed, farewells }
    }

    /// Registers a new connection. Returns what tells it that it must be closed.
    pub(crate) fn register(&self, peer: Peer, address: IpAddr) -> Ended {
        let (now, mut connections) = (Instant::now(), self.connections());
        let strangers = || connections.iter().filter(|(_, connection)| !connection.proven);
        if strangers().count() >= STRANGERS {
            let mut of_address: HashMap<IpAddr, usize> = HashMap::new();
            strangers().for_each(|(_, connection)| *of_address.entry(connection.address).or_default() += 1);
            let most = of_address.into_iter().max_by_key(|(_, count)| *count).map(|(address, _)| address);
            let theirs = strangers().filter(|(_, connection)| Some(connection.address) == most);
            let oldest = theirs.min_by_key(|(_, connection)| connection.since).map(|(peer, _)| *peer);
            end(&mut connections, oldest);
            self.strangers_closed.inc();
        }
        let ended = Ended::default();
        let connection = Admitted {
            address,
            since: now,
            proven: false,
            user: None,
            logged_in: false,
            answered: false,
            calls: 0,
            used: now,
            ended: ended.clone(),
        };
        connections.insert(peer, connection);
        ended
    }

    /// Notes that a connection has the credentials of a user, and whether they are proven. Once they are, it is authenticated: at
    /// the limit of the user, or that of all, the one that was idle longest is closed, or this one if none is idle.
    pub(crate) fn log_in(&self, peer: Peer, user: &Arc<str>, proven: bool) {
        let mut connections = self.connections();
        let Some(connection) = connections.get_mut(&peer) else { return };
        connection.logged_in = true;
        if !proven || std::mem::replace(&mut connection.proven, true) {
            return;
        }
        connection.user = Some(Arc::clone(user));
        let limits = [(Some(user), "connections_per_principal", self.most_of_user), (None, "connections", self.most)];
        for (of, limit, most) in limits {
            let counts = |connection: &Admitted| of.is_none() || connection.user.as_ref() == of;
            let proven = || connections.iter().filter(|(_, connection)| connection.proven && counts(connection));
            if proven().count() > most {
                let idle = proven().filter(|(known, connection)| connection.calls == 0 && **known != peer);
                let longest = idle.min_by_key(|(_, connection)| connection.used).map_or(peer, |(known, _)| *known);
                let user = connections.get(&longest).and_then(|connection| connection.user.clone());
                tracing::info!(principal = user.as_deref(), limit, most, "connection closed to make room for others");
                end(&mut connections, Some(longest));
            }
        }
    }

    /// Notes that the client of a connection without a login has got an answer.
    pub(crate) fn answered(&self, peer: Peer) {
        if let Some(connection) = self.connections().get_mut(&peer) {
            connection.answered = true;
        }
    }

    /// Closes the connections of users who are logged out.
    pub(crate) fn end_of(&self, users: &HashSet<Arc<str>>) {
        self.connections().retain(|_, connection| {
            let theirs = connection.user.as_ref().is_some_and(|user| users.contains(user));
            if theirs {
                connection.ended.end(Reason::LoggedOut);
            }
            !theirs
        });
    }

    /// Removes a closed connection, and counts it if it neither logged in nor got an answer.
    pub(crate) fn gone(&self, peer: Peer) {
        let gone = self.connections().remove(&peer);
        if let Some(Admitted { logged_in: false, answered: false, address, .. }) = gone {
            self.strangers_closed.inc();
            tracing::debug!(%address, "connection closed without a login");
        }
    }

    /// Starts a call, which ends when the returned guard is dropped; `None` if an unauthenticated connection has too
    /// many running calls.
    pub(crate) fn call(self: &Arc<Self>, peer: Peer) -> Option<Call> {
        if let Some(connection) = self.connections().get_mut(&peer) {
            if !connection.proven && connection.calls >= CALLS {
                return None;
            }
            connection.calls += 1;
            connection.answered = true;
        }
        Some(Call { standing: Arc::clone(self), peer })
    }

    /// Closes connections that have been idle for too long, and those that have been without credentials for too long.
    pub(crate) fn sweep(&self) {
        self.connections().retain(|_, connection| {
            let most = if connection.logged_in { self.idle } else { UNPROVEN };
            let idle = connection.calls == 0 && connection.used.elapsed() >= most;
            let late = idle || (!connection.logged_in && connection.since.elapsed() >= LOGIN);
            if late {
                connection.ended.end(if connection.logged_in { Reason::Idle } else { Reason::NoLogin });
                if !connection.proven {
                    self.strangers_closed.inc();
                }
            }
            !late
        });
    }

    /// Resolves when a connection that must be closed is to be closed: at once, or after the time that it takes to tell the client.
    pub(crate) async fn farewell(&self, ended: &Ended) {
        ended.token.cancelled().await;
        if let Ok(_farewell) = self.farewells.try_acquire() {
            sleep(FAREWELL).await;
        }
    }

    /// Returns the number of open connections.
    pub(crate) fn len(&self) -> usize {
        self.connections().len()
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<Peer, Admitted>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn end(connections: &mut HashMap<Peer, Admitted>, peer: Option<Peer>) {
    if let Some(connection) = peer.and_then(|peer| connections.remove(&peer)) {
        connection.ended.end(Reason::MadeRoom);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(connection) = self.standing.connections().get_mut(&self.peer) {
            connection.calls = connection.calls.saturating_sub(1);
            connection.used = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn is_over(ended: &Ended) -> bool {
        ended.reason().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_told_why_it_ends() {
        let standing = Arc::new(Standing::new(1_000, 2, Duration::from_secs(600), Counter::default()));
        let user: Arc<str> = "one".into();
        let mut ends = Vec::new();
        for number in 0..5 {
            tokio::time::advance(Duration::from_millis(1)).await;
            ends.push(standing.register(Peer(number), address(1)));
        }
        for (number, user) in (0..).zip([&user, &user, &user, &"other".into()]) {
            standing.log_in(Peer(number), user, true);
        }
        let told = || ends.iter().map(Ended::reason).collect::<Vec<_>>();
        assert_eq!(told(), [Some(Reason::MadeRoom), None, None, None, None]);
        standing.end_of(&HashSet::from([user]));
        assert_eq!(told()[1..], [Some(Reason::LoggedOut), Some(Reason::LoggedOut), None, None]);
        tokio::time::advance(UNPROVEN).await;
        standing.sweep();
        assert_eq!(told()[3..], [None, Some(Reason::NoLogin)]);
        tokio::time::advance(Duration::from_secs(600)).await;
        standing.sweep();
        assert_eq!(told()[3..], [Some(Reason::Idle), Some(Reason::NoLogin)]);
        assert_eq!(told()[0], Some(Reason::MadeRoom), "the first reason");
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_make_room_and_those_who_are_known_stay() {
        let standing = Arc::new(Standing::new(1_000, 1_000, Duration::from_secs(600), Counter::default()));
        let known = standing.register(Peer(0), address(1));
        standing.log_in(Peer(0), &"one".into(), true);
        let alone = standing.register(Peer(1), address(2));
        let first = standing.register(Peer(2), address(3));
        let call = standing.call(Peer(2)).expect("a call");
        for number in 3..2_000 {
            tokio::time::advance(Duration::from_millis(1)).await;
            standing.register(Peer(number), address(3));
        }
        assert!(is_over(&first), "a running call does not keep an unauthenticated connection open");
        assert!(!is_over(&known) && !is_over(&alone), "connections of the address with the most are closed");
        assert!(standing.len() <= STRANGERS + 1);
        drop(call);
        tokio::time::advance(UNPROVEN).await;
        standing.sweep();
        assert_eq!(standing.len(), 1);
        assert_eq!(standing.strangers_closed.get(), 1_999, "all but the known one");
        let call = standing.call(Peer(0)).expect("a call");
        tokio::time::advance(Duration::from_secs(6_000)).await;
        standing.sweep();
        assert!(!is_over(&known), "a call is running");
        drop(call);
        tokio::time::advance(Duration::from_secs(600)).await;
        standing.sweep();
        assert!(is_over(&known));
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_close_without_a_login_are_counted() {
        let standing = Arc::new(Standing::new(1_000, 1_000, Duration::from_secs(600), Counter::default()));
        for number in 0..4 {
            standing.register(Peer(number), address(1));
        }
        drop(standing.call(Peer(1)).expect("a call, such as a health check"));
        standing.log_in(Peer(2), &"one".into(), true);
        standing.answered(Peer(3));
        (0..3).for_each(|number| standing.gone(Peer(number)));
        assert_eq!(standing.strangers_closed.get(), 1, "the one that was silent");
        standing.gone(Peer(3));
        assert_eq!(standing.strangers_closed.get(), 1);
        standing.gone(Peer(0));
        assert_eq!(standing.strangers_closed.get(), 1, "it was gone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_was_not_used_yet_may_wait_and_makes_room() {
        let standing = Arc::new(Standing::new(1_000, 1_000, Duration::from_secs(600), Counter::default()));
        let waiting = standing.register(Peer(0), address(1));
        standing.log_in(Peer(0), &"one".into(), false);
        tokio::time::advance(Duration::from_secs(599)).await;
        standing.sweep();
        assert!(!is_over(&waiting));
        for number in 1..=STRANGERS as u64 {
            standing.register(Peer(number), address(1));
        }
        assert!(is_over(&waiting), "it was the oldest");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_has_a_minute_to_log_in() {
        let standing = Arc::new(Standing::new(1_000, 1_000, Duration::from_secs(600), Counter::default()));
        let [stranger, waiting, known] = [0, 1, 2].map(|number| standing.register(Peer(number), address(1)));
        standing.log_in(Peer(1), &"one".into(), false);
        standing.log_in(Peer(2), &"other".into(), true);
        let _busy = [0, 1, 2].map(|number| standing.call(Peer(number)).expect("a call"));
        tokio::time::advance(LOGIN - Duration::from_millis(1)).await;
        standing.sweep();
        assert!(!is_over(&stranger), "a call is running");
        tokio::time::advance(Duration::from_millis(1)).await;
        standing.sweep();
        assert!(is_over(&stranger));
        assert!(!is_over(&waiting) && !is_over(&known));
        assert_eq!(standing.strangers_closed.get(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_known_that_are_idle_make_room_for_another() {
        let standing = Arc::new(Standing::new(2, 1_000, Duration::from_secs(600), Counter::default()));
        let mut known = Vec::new();
        for number in 0..3 {
            tokio::time::advance(Duration::from_millis(1)).await;
            known.push(standing.register(Peer(number), address(1)));
            if number < 2 {
                standing.log_in(Peer(number), &"one".into(), true);
            }
        }
        let _busy = standing.call(Peer(0)).expect("a call");
        standing.log_in(Peer(2), &"one".into(), true);
        assert_eq!([0, 1, 2].map(|number: usize| is_over(&known[number])), [false, true, false]);
        let _busy = standing.call(Peer(2)).expect("a call");
        let last = standing.register(Peer(3), address(1));
        standing.log_in(Peer(3), &"one".into(), true);
        assert!(is_over(&last), "all others are busy");
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_has_so_many_connections_and_takes_none_from_others() {
        let standing = Arc::new(Standing::new(1_000, 2, Duration::from_secs(600), Counter::default()));
        let mut opened = Vec::new();
        for (number, user) in (0..).zip(["one", "other", "one", "one"]) {
            tokio::time::advance(Duration::from_millis(1)).await;
            opened.push(standing.register(Peer(number), address(1)));
            standing.log_in(Peer(number), &user.into(), true);
        }
        let closed: Vec<bool> = opened.iter().map(is_over).collect();
        assert_eq!(closed, [true, false, false, false], "the user's own that was idle longest");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_makes_few_calls_at_once() {
        let standing = Arc::new(Standing::new(2, 1_000, Duration::from_secs(600), Counter::default()));
        standing.register(Peer(0), address(1));
        let calls: Vec<_> = (0..CALLS).map(|_| standing.call(Peer(0)).expect("a call")).collect();
        assert!(standing.call(Peer(0)).is_none());
        standing.log_in(Peer(0), &"one".into(), true);
        assert!(standing.call(Peer(0)).is_some());
        drop(calls);
    }
}
