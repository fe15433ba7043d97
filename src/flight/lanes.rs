//! Threads that plan and run statements, in lanes, so that a session that computes for long holds up itself alone.
//!
//! A join that computes for minutes never gives its thread back. Each lane is a runtime of a few threads; all that a session
//! runs at the same time runs in one lane, and a session that begins takes the lane that the fewest others are in.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::runtime::{Builder, Handle, Runtime};

/// Sessions that can compute at the same time without others waiting for them.
const LANES: usize = 16;
/// Threads of a lane.
const THREADS: usize = 2;
/// Bytes of a thread's stack, which are taken as they are used: expressions are walked by recursion.
const STACK: usize = 64 << 20;

/// All lanes. They are left alone at the end: one may be deep in a computation.
#[derive(Debug)]
pub(super) struct Lanes(Vec<Lane>);

#[derive(Debug)]
struct Lane {
    runtime: Option<Runtime>,
    /// Sessions that run something in it.
    sessions: Arc<AtomicUsize>,
}

/// A lane that a session is in, until this is dropped.
#[derive(Debug)]
pub(super) struct InLane {
    handle: Handle,
    sessions: Arc<AtomicUsize>,
}

/// The lane of a session, while it runs something.
#[derive(Debug, Default)]
pub(super) struct OwnLane(Mutex<Weak<InLane>>);

impl Lanes {
    /// # Errors
    /// Those of starting threads.
    pub(super) fn start() -> std::io::Result<Self> {
        let lane = |_| {
            let mut builder = Builder::new_multi_thread();
            builder.enable_all().thread_name("execution").thread_stack_size(STACK).worker_threads(THREADS);
            Ok(Lane { runtime: Some(builder.build()?), sessions: Arc::default() })
        };
        (0..LANES).map(lane).collect::<std::io::Result<_>>().map(Self)
    }

    /// The lane that a session is in, or one that it enters.
    pub(super) fn enter(&self, own: &OwnLane) -> Arc<InLane> {
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
    /// Where tasks are spawned.
    pub(super) fn handle(&self) -> &Handle {
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
