//! Memory that a scan holds for pages and ids, accounted in the engine's pool.

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};

use crate::client::Memory;
use crate::error::{Error, ErrorKind, Phrase, Result, Setting};

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
            let fewer = Setting::Concurrency.to("1").after(", or fetch fewer pages at once: ");
            Error::new(ErrorKind::Memory, error.strip_backtrace())
                .advice(Phrase::from("raise the memory limit") + fewer)
        })
    }

    fn shrink(&self, bytes: usize) {
        self.0.shrink(bytes);
    }
}
