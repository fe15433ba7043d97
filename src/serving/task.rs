//! The task that serves the connections of a server.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::transport::Error;

use super::cause;

/// See the module's documentation. Dropping it does not stop the task.
#[derive(Debug)]
pub(crate) struct Serving {
    task: JoinHandle<Result<(), Error>>,
    /// Set once the result of the task was taken.
    ended: bool,
}

impl Serving {
    /// Starts to serve.
    pub(crate) fn start(serving: impl Future<Output = Result<(), Error>> + Send + 'static) -> Self {
        Self { task: tokio::spawn(serving), ended: false }
    }

    /// Waits until the task ends because of a failure, and returns the reason. Does not return otherwise, or twice.
    pub(crate) async fn failed(&mut self) -> String {
        if self.ended {
            return std::future::pending().await;
        }
        self.result().await.err().unwrap_or_else(|| "it stopped unexpectedly".to_owned())
    }

    /// True if [`failed`](Self::failed) returned.
    pub(crate) fn has_failed(&self) -> bool {
        self.ended
    }

    /// Waits for the end of the task, and returns the reason of a failure; `None` if the task still runs after `patience`.
    pub(crate) async fn ended(&mut self, patience: Duration) -> Option<Result<(), String>> {
        timeout(patience, self.result()).await.ok()
    }

    /// Stops the task at once.
    pub(crate) fn abort(&self) {
        self.task.abort();
    }

    async fn result(&mut self) -> Result<(), String> {
        let result = (&mut self.task).await;
        self.ended = true;
        match result {
            Ok(result) => result.map_err(|error| cause(&error)),
            Err(error) => Err(error.to_string()),
        }
    }
}
