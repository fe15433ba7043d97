//! A thread for the sockets of a store, so that its calls may wait on any thread, also on one that runs tasks.
//!
//! ```text
//! a call that waits ─ future, polled by its own thread ─▶ channel ─▶ sockets, on the thread of the network
//! ```

use std::fmt;
use std::future::{Future, pending};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::task::{JoinError, JoinHandle, block_in_place};

/// Thread of sockets. Dropping it ends its tasks.
#[derive(Debug)]
pub(crate) struct Network {
    /// `None` while it is dropped.
    runtime: Option<Runtime>,
}

impl Network {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("store").enable_all().build()?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// The runtime of the thread.
    ///
    /// # Panics
    /// Never: it is there until the network is dropped.
    pub(crate) fn handle(&self) -> Handle {
        self.runtime.as_ref().expect("there until it is dropped").handle().clone()
    }

    /// Runs a task on the thread.
    pub(crate) fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.handle().spawn(task)
    }

    /// Runs a task on the thread and waits for it.
    ///
    /// # Errors
    /// The task has taken longer than this, and was ended; or it has failed.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        longest: Duration,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Unfinished> {
        let mut task = self.spawn(task);
        match wait(longest, &mut task) {
            Some(done) => done.map_err(Unfinished::Failed),
            None => {
                task.abort();
                Err(Unfinished::Late(longest))
            }
        }
    }
}

/// Reason why a task has no result.
#[derive(Debug)]
pub(crate) enum Unfinished {
    /// It has taken longer than this.
    Late(Duration),
    /// It panicked, or its thread was ending.
    Failed(JoinError),
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(longest) => write!(f, "no answer within {} s", longest.as_secs()),
            Self::Failed(error) => write!(f, "internal error: {error}"),
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A store may be dropped by a task, which must not wait.
            runtime.shutdown_background();
        }
    }
}

/// Waits for a future whose sockets another thread has; `None` if it takes longer than this. Unlike those of a runtime, this may be
/// called within a task; the other tasks of its thread move to another one, if its runtime has several.
pub(crate) fn wait<F: Future>(longest: Duration, future: F) -> Option<F::Output> {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(|| park(longest, future)),
        _ => park(longest, future),
    }
}

/// Waits for some time. As with [`wait`], other tasks of this thread move to another one.
pub(crate) fn pause_for(time: Duration) {
    let _ = wait(time, pending::<()>());
}

/// Blocks this thread until a future has ended, for this time at most.
fn park<F: Future>(longest: Duration, future: F) -> Option<F::Output> {
    let waker: Waker = Arc::new(Unpark(thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let begun = Instant::now();
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
        match longest.checked_sub(begun.elapsed()) {
            Some(left) if !left.is_zero() => thread::park_timeout(left),
            _ => return None,
        }
    }
}

/// Wakes a thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_within_a_task_waits_and_is_bounded() {
        let network = Network::start().expect("a thread");
        let slow = |millis| async move { tokio::time::sleep(Duration::from_millis(millis)).await };
        network.run(Duration::from_secs(60), slow(20)).expect("a result");
        let late = network.run(Duration::from_millis(20), slow(60_000)).expect_err("it takes longer");
        assert!(matches!(late, Unfinished::Late(_)), "{late}");
        let failed = network.run(Duration::from_secs(60), async { assert_eq!(1 + 1, 3, "a defect") });
        let failed = failed.expect_err("it panics").to_string();
        assert!(failed.starts_with("internal error: ") && failed.contains("panic"), "{failed}");
        // Within a task.
        drop(network);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_of_a_thread_run_while_one_waits() {
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let waiting = tokio::spawn(async move {
            // It ends only if the task after it runs, on a runtime with one thread.
            let network = Network::start().expect("a thread");
            network.run(Duration::from_secs(60), async { receiver.await.is_ok() }).ok()
        });
        let other = tokio::spawn(async move { sender.send(()) });
        assert_eq!(waiting.await.expect("no panic"), Some(true));
        other.await.expect("no panic").expect("a receiver");
    }
}
