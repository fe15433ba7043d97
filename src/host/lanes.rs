//! Execution lanes: small thread pools for planning and running statements, so that a session with a long computation
//! delays only itself.
//!
//! A join that computes for minutes never yields its thread. Each lane is a runtime with a few threads. All concurrent
//! statements of a session run in one lane, and a session that starts running takes the lane with the fewest sessions.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::runtime::{Builder, Handle, Runtime};

/// Number of lanes: sessions that can compute concurrently without delaying each other.
const LANES: usize = 16;
/// Threads per lane.
const THREADS: usize = 2;
/// Stack size of a thread in bytes. Large because expressions are walked recursively; memory is committed only as used.
const STACK: usize = 64 << 20;

/// All lanes of a server. Dropping does not wait for their threads, which may be busy with a computation.
#[derive(Debug)]
pub(crate) struct Lanes(Vec<Lane>);

#[derive(Debug)]
struct Lane {
    runtime: Option<Runtime>,
    /// Number of sessions using this lane.
    sessions: Arc<AtomicUsize>,
}

/// Guard for a session's use of a lane, released on drop.
#[derive(Debug)]
pub(crate) struct InLane {
    handle: Handle,
    sessions: Arc<AtomicUsize>,
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
        let lane = |_| {
            let mut builder = Builder::new_multi_thread();
            builder.enable_all().thread_name("execution").thread_stack_size(STACK).worker_threads(THREADS);
            Ok(Lane { runtime: Some(builder.build()?), sessions: Arc::default() })
        };
        (0..LANES).map(lane).collect::<std::io::Result<_>>().map(Self)
    }

    /// Returns the lane that a session uses, or assigns it the least used one.
    pub(crate) fn enter(&self, own: &OwnLane) -> Arc<InLane> {
        let mut own = own.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = own.upgrade() {
            return lane;
        }
        let emptiest = self.0.iter().min_by_key(|lane| lane.sessions.load(Ordering::Relaxed));
        let (handle, sessions) = match emptiest.and_then(|lane| Some((lane.runtime.as_ref()?, &lane.sessions))) {
            Some((runtime, sessions)) => (runtime.handle().clone(), Arc::clone(sessions)),
            None => (Handle::current(), Arc::default()),
        };
        sessions.fetch_add(1, Ordering::Relaxed);
        let lane = Arc::new(InLane { handle, sessions });
        *own = Arc::downgrade(&lane);
        lane
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
        assert!(lanes.0.iter().all(|lane| lane.sessions.load(Ordering::Relaxed) == 1));
        assert!(Arc::ptr_eq(&lanes.enter(&sessions[0]), &entered[0]));
        drop(entered);
        assert!(lanes.0.iter().all(|lane| lane.sessions.load(Ordering::Relaxed) == 0));
    }
}
