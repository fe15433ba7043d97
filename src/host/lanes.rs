//! Execution lanes: small thread pools for planning and running statements, so that a session with a long computation
//! delays only itself.
//!
//! A window function over a million rows computes for long without a pause. Each lane is a runtime with a few threads. All
//! concurrent statements of a session run in the same lane: the lane that had the fewest sessions when the session started
//! to run.
//!
//! A user has statements in half of the lanes at most, so the others remain for other users.
//!
//! A thread cannot be ended. If a lane does not respond, because all of its threads compute, it accepts no further
//! statements, and another lane is started in its place. There is a limit on such lanes. If it is reached, the server drains
//! and ends, so that its supervisor starts it again. One user alone cannot reach it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::Instant;

use super::failure::{Code, Failure};
use crate::memory::STACK;

/// Number of lanes: sessions that can compute concurrently without delaying each other.
const LANES: usize = 16;
/// Threads per lane.
const THREADS: usize = 2;
/// Lanes in which one user has statements, with those that do not respond.
const LANES_OF_USER: usize = LANES / 2;

/// Threads per lane for reading files, such as those to which sorted rows are spilled. Each has a stack as large as the others, and
/// the engine reads dozens of such files at once.
const BLOCKING: usize = 2;

/// Maximum number of lanes that are started in place of those that do not respond.
const SPARE: usize = 16;
/// Time without a response after which a lane takes no further statements.
const SILENT: Duration = Duration::from_secs(10);

/// All lanes of a server. Dropping does not wait for their threads, which may be busy with a computation.
#[derive(Debug)]
pub(crate) struct Lanes(Mutex<Vec<Lane>>);

#[derive(Debug)]
struct Lane {
    runtime: Option<Runtime>,
    sessions: Arc<InUse>,
    pulse: Arc<Pulse>,
}

/// Sessions that use a lane: their number by user.
#[derive(Debug, Default)]
struct InUse(Mutex<HashMap<Arc<str>, usize>>);

impl InUse {
    fn users(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sessions(&self) -> usize {
        self.users().values().sum()
    }

    fn has(&self, user: &str) -> bool {
        self.users().contains_key(user)
    }
}

/// Time of a question that a lane has not answered yet.
#[derive(Debug, Default)]
struct Pulse(Mutex<Option<Instant>>);

impl Pulse {
    fn asked(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_silent(&self) -> bool {
        self.asked().is_some_and(|since| since.elapsed() >= SILENT)
    }
}

/// Guard for a session's use of a lane, released on drop.
#[derive(Debug)]
pub(crate) struct InLane {
    handle: Handle,
    user: Arc<str>,
    sessions: Arc<InUse>,
    pulse: Arc<Pulse>,
}

/// The lane that a session currently uses, if any.
#[derive(Debug, Default)]
pub(crate) struct OwnLane(Mutex<Weak<InLane>>);

impl Lanes {
    /// Starts all lanes.
    ///
    /// # Errors
    /// I/O errors of starting threads.
    pub(crate) fn start() -> std::io::Result<Self> {
        (0..LANES).map(|_| Lane::start()).collect::<std::io::Result<_>>().map(|lanes| Self(Mutex::new(lanes)))
    }

    /// Returns the lane that a session of a user uses, or assigns it the least used one.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the user's statements have all threads of the lanes that the user may have.
    pub(crate) fn enter(&self, own: &OwnLane, user: &Arc<str>) -> Result<Arc<InLane>, Failure> {
        self.enter_one_of(own, user, LANES_OF_USER)
    }

    /// As [`enter`](Self::enter), for work that frees what the user has: in any lane.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there is no lane.
    pub(crate) fn enter_to_free(&self, own: &OwnLane, user: &Arc<str>) -> Result<Arc<InLane>, Failure> {
        self.enter_one_of(own, user, usize::MAX)
    }

    /// Enters a lane of a user who may have so many.
    fn enter_one_of(&self, own: &OwnLane, user: &Arc<str>, most: usize) -> Result<Arc<InLane>, Failure> {
        let mut own = own.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = own.upgrade()
            && !lane.pulse.is_silent()
        {
            return Ok(lane);
        }
        let lanes = self.lanes();
        let everywhere = lanes.iter().filter(|lane| lane.sessions.has(user)).count() >= most;
        let open = lanes.iter().filter(|lane| !everywhere || (lane.sessions.has(user) && !lane.pulse.is_silent()));
        let emptiest = open.min_by_key(|lane| (lane.pulse.is_silent(), lane.sessions.sessions()));
        let Some((handle, lane)) = emptiest.and_then(|lane| Some((lane.runtime.as_ref()?.handle().clone(), lane)))
        else {
            let line =
                "the user's statements compute on all threads that a user may have; try again when one has ended";
            return Err(Failure::new(Code::ResourceExhausted, line));
        };
        *lane.sessions.users().entry(Arc::clone(user)).or_default() += 1;
        let (sessions, pulse) = (Arc::clone(&lane.sessions), Arc::clone(&lane.pulse));
        let lane = Arc::new(InLane { handle, user: Arc::clone(user), sessions, pulse });
        *own = Arc::downgrade(&lane);
        Ok(lane)
    }

    /// Asks all lanes for a response, and starts others for those that have not responded.
    pub(crate) fn watch(&self) {
        let mut lanes = self.lanes();
        lanes.iter().for_each(Lane::ask);
        let silent = lanes.iter().filter(|lane| lane.pulse.is_silent()).count();
        let missing = silent.min(SPARE).saturating_sub(lanes.len() - LANES);
        // Without threads, the others have to do.
        lanes.extend((0..missing).map_while(|_| Lane::start().ok()));
        if missing > 0 {
            tracing::warn!(silent, "execution threads do not respond; others were started");
        }
    }

    /// Returns the number of lanes that do not respond, and of all.
    pub(crate) fn silent(&self) -> (usize, usize) {
        let lanes = self.lanes();
        (lanes.iter().filter(|lane| lane.pulse.is_silent()).count(), lanes.len())
    }

    /// True if more lanes do not respond than others can be started for.
    pub(crate) fn are_worn_out(&self) -> bool {
        self.silent().0 > SPARE
    }

    fn lanes(&self) -> MutexGuard<'_, Vec<Lane>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    fn start() -> std::io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        builder.enable_all().thread_name("execution").thread_stack_size(STACK).worker_threads(THREADS);
        builder.max_blocking_threads(BLOCKING);
        Ok(Self { runtime: Some(builder.build()?), sessions: Arc::default(), pulse: Arc::default() })
    }

    fn ask(&self) {
        let mut asked = self.pulse.asked();
        if let (Some(runtime), None) = (&self.runtime, *asked) {
            *asked = Some(Instant::now());
            let pulse = Arc::clone(&self.pulse);
            runtime.spawn(async move { *pulse.asked() = None });
        }
    }
}

impl InLane {
    /// Returns the runtime handle of the lane.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for InLane {
    fn drop(&mut self) {
        let mut users = self.sessions.users();
        if let Some(sessions) = users.get_mut(&self.user) {
            *sessions -= 1;
            if *sessions == 0 {
                users.remove(&self.user);
            }
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_session_stays_in_its_lane_and_a_user_has_half_of_them() {
        let lanes = Lanes::start().expect("threads");
        let [one, other]: [Arc<str>; 2] = ["one", "other"].map(Arc::from);
        let sessions: Vec<OwnLane> = (0..2 * LANES).map(|_| OwnLane::default()).collect();
        let entered: Vec<_> = sessions.iter().map(|own| lanes.enter(own, &one).expect("a lane")).collect();
        let used = |lanes: &Lanes| lanes.lanes().iter().map(|lane| lane.sessions.sessions()).collect::<Vec<_>>();
        let counts = used(&lanes);
        assert_eq!(counts.iter().filter(|sessions| **sessions == 4).count(), LANES_OF_USER, "{counts:?}");
        assert!(Arc::ptr_eq(&lanes.enter(&sessions[0], &one).expect("its lane"), &entered[0]));
        let lane = lanes.enter(&OwnLane::default(), &other).expect("a lane");
        assert_eq!(lane.sessions.sessions(), 1, "alone in a lane");
        // No lane responds in which the first user computes.
        let begun = Instant::now().checked_sub(SILENT);
        entered.iter().for_each(|lane| *lane.pulse.asked() = begun);
        let refused = lanes.enter(&sessions[0], &one).expect_err("all threads compute");
        assert_eq!(refused.code, Code::ResourceExhausted);
        drop((entered, lane));
        assert_eq!(used(&lanes), [0; LANES]);
    }

    #[tokio::test]
    async fn a_lane_that_does_not_respond_is_replaced() {
        let lanes = Lanes::start().expect("threads");
        let own = OwnLane::default();
        let user = Arc::from("one");
        let stuck = lanes.enter(&own, &user).expect("a lane");
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let (wait, begun) = (Arc::new(Mutex::new(wait)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..THREADS {
            let (wait, begun) = (Arc::clone(&wait), Arc::clone(&begun));
            stuck.handle().spawn(async move {
                begun.fetch_add(1, Ordering::Relaxed);
                let _ = wait.lock().map(|wait| wait.recv());
            });
        }
        while begun.load(Ordering::Relaxed) < THREADS {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        lanes.watch();
        // The question is as old as it would be.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let unanswered = lanes.lanes().iter().filter(|lane| lane.pulse.asked().is_some()).count();
        assert_eq!(unanswered, 1);
        *stuck.pulse.asked() = Instant::now().checked_sub(SILENT);
        lanes.watch();
        assert_eq!(lanes.silent(), (1, LANES + 1));
        assert!(!Arc::ptr_eq(&lanes.enter(&own, &user).expect("another lane"), &stuck));
        assert!(!lanes.are_worn_out());
        lanes.lanes().iter().take(SPARE + 1).for_each(|lane| *lane.pulse.asked() = Instant::now().checked_sub(SILENT));
        assert!(lanes.are_worn_out());
        drop(release);
    }
}
