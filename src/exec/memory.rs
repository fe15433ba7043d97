//! Memory that a scan holds for pages and ids, accounted in the engine's pool.

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};

use crate::client::Memory;
use crate::error::{Error, ErrorKind, Result};

/// A reservation in the pool of the session that runs the scan.
#[derive(Debug)]
pub(super) struct PoolMemory(MemoryReservation);

impl PoolMemory {
    pub(super) fn new(context: &TaskContext, table: &str) -> Self {
        Self(MemoryConsumer::new(format!("FetchExec {table}")).register(context.memory_pool()))
    }
}

impl Memory for PoolMemory {
    fn grow(&self, bytes: usize) -> Result<()> {
        self.0.try_grow(bytes).map_err(|error| {
            Error::new(ErrorKind::Memory, error.strip_backtrace())
                .advice("raise the memory limit, or fetch fewer pages at once: SET savedsearch.concurrency = 1")
        })
    }

    fn shrink(&self, bytes: usize) {
        self.0.shrink(bytes);
    }
}
