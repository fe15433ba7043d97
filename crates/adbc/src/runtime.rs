//! Threads of the driver. Statements are planned and run on them, since their stacks are deep enough for any statement.

use std::process;
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;

use adbc_core::error::{Error, Result, Status};
use datafusion_saved_search::memory::STACK;
use tokio::runtime::{Builder, Runtime};

/// The runtime, and the process that it belongs to.
static RUNTIME: OnceLock<(Runtime, u32)> = OnceLock::new();

/// Runs work on a thread of the driver and waits for it.
///
/// # Errors
/// INTERNAL if the work panics or threads cannot be started; INVALID_STATE in a process that was forked after the driver was used.
pub(crate) fn wait<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T> {
    let (sender, receiver) = sync_channel(1);
    runtime()?.spawn(async move {
        // The receiver waits below.
        let _ = sender.send(work.await);
    });
    receiver.recv().map_err(|_| Error::with_message_and_status("internal error: the driver panicked", Status::Internal))
}

/// Refuses to wait in a process that was forked after the driver was used.
///
/// # Errors
/// Those of [`wait`].
pub(crate) fn check() -> Result<()> {
    runtime()?;
    Ok(())
}

fn runtime() -> Result<&'static Runtime> {
    let (runtime, process) = match RUNTIME.get() {
        Some(running) => running,
        None => {
            let started =
                Builder::new_multi_thread().enable_all().thread_name("savedsearch").thread_stack_size(STACK).build();
            let started = started.map_err(|error| {
                Error::with_message_and_status(format!("cannot start threads: {error}"), Status::Internal)
            })?;
            RUNTIME.get_or_init(|| (started, process::id()))
        }
    };
    if *process == process::id() {
        return Ok(runtime);
    }
    // Threads do not survive a fork: the work would never end.
    let message = "the driver was used before this process was forked; start processes with the method `spawn`";
    Err(Error::with_message_and_status(message, Status::InvalidState))
}
