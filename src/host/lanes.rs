//! Execution lanes: small thread pools for planning and running statements, so that a session with a long computation
//! delays only itself.
//!
//! A join that computes for minutes never yields its thread. Each lane is a runtime with a few threads. All concurrent
//! statements of a session run in the same lane: the lane that had the fewest sessions when the session started to run.
//!
//! A thread cannot be ended. If a lane does not respond, because all of its threads compute, it accepts no further
//! statements, and another lane is started in its place. There is a limit on such lanes. If it is reached, the server drains
//! and ends, so that its supervisor starts it again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::Instant;

use crate::memory::STACK;

/// Number of lanes: sessions that can compute concurrently without delaying each other.
const LANES: usize = 16;
/// Threads per lane.
const THREADS: usize = 2;

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
    /// Number of sessions using this lane.
    sessions: Arc<AtomicUsize>,
    pulse: Arc<Pulse>,
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
    sessions: Arc<AtomicUsize>,
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

    /// Returns the lane that a session uses, or assigns it the least used one.
    pub(crate) fn enter(&self, own: &OwnLane) -> Arc<InLane> {
        let mut own = own.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = own.upgrade()
            && !lane.pulse.is_silent()
        {
            return lane;
        }
        let lanes = self.lanes();
        let emptiest = lanes.iter().min_by_key(|lane| (lane.pulse.is_silent(), lane.sessions.load(Ordering::Relaxed)));
        let (handle, sessions, pulse) = match emptiest.and_then(|lane| Some((lane.runtime.as_ref()?, lane))) {
            Some((runtime, lane)) => (runtime.handle().clone(), Arc::clone(&lane.sessions), Arc::clone(&lane.pulse)),
            None => (Handle::current(), Arc::default(), Arc::default()),
        };
        sessions.fetch_add(1, Ordering::Relaxed);
        let lane = Arc::new(InLane { handle, sessions, pulse });
        *own = Arc::downgrade(&lane);
        lane
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
        self.sessions.fetch_sub(1, Ordering::Relaxed);
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
    use super::*;

    #[test]
    fn a_session_stays_in_its_lane_and_others_take_another() {
        let lanes = Lanes::start().expect("threads");
        let sessions: Vec<OwnLane> = (0..LANES).map(|_| OwnLane::default()).collect();
        let entered: Vec<_> = sessions.iter().map(|own| lanes.enter(own)).collect();
        assert!(lanes.lanes().iter().all(|lane| lane.sessions.load(Ordering::Relaxed) == 1));
        assert!(Arc::ptr_eq(&lanes.enter(&sessions[0]), &entered[0]));
        drop(entered);
        assert!(lanes.lanes().iter().all(|lane| lane.sessions.load(Ordering::Relaxed) == 0));
    }

    #[tokio::test]
    async fn a_lane_that_does_not_respond_is_replaced() {
        let lanes = Lanes::start().expect("threads");
        let own = OwnLane::default();
        let stuck = lanes.enter(&own);
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
        assert!(!Arc::ptr_eq(&lanes.enter(&own), &stuck));
        assert!(!lanes.are_worn_out());
        lanes.lanes().iter().take(SPARE + 1).for_each(|lane| *lane.pulse.asked() = Instant::now().checked_sub(SILENT));
        assert!(lanes.are_worn_out());
        drop(release);
    }
}
