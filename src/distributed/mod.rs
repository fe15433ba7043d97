//! Queries of a store over several machines, on the engine `datafusion-distributed`.
//!
//! ```text
//! server: SQL ─▶ plan ─▶ scans of the service run here, and bring the store up to date
//!                   └──▶ the rest, over files of the store ─ stages ─▶ workers ─▶ rows
//! worker: stage ─▶ files of the store below its own folder, rows of other workers ─▶ rows
//! ```
//!
//! - `planner` decides which plans are spread, `spread_exec` runs them; `codec` encodes this crate's operators.
//! - `workers` keeps the workers and their health, `channels` connects to them; `system.workers` shows both. `errors` tells errors
//!   of a statement from those of a worker.
//! - `worker` is the server on the other side; `files` gives both the same URL for a store's data folder.
//!
//! Workers receive operators over files and rows. They have no key, and none of their operators can reach the service. A
//! plan runs on the server alone if it cannot be encoded, sends requests while it runs, or reads few bytes.
//!
//! Invariant: a spread plan has the rows and the requests of the same plan on one machine.

mod channels;
mod codec;
mod errors;
mod files;
mod planner;
mod spread_exec;
mod table;
mod worker;
mod workers;

pub(crate) use self::files::name_store;
pub(crate) use self::table::WorkersTable;
pub use self::worker::{Renewal, WorkerServer, WorkerSpec};
pub use self::workers::{WorkerState, WorkerStatus, Workers, WorkersSpec};
pub use crate::serving::TlsSpec;

/// Version of the program and of the plans that it sends: a server uses workers of the same version only.
fn version() -> String {
    format!("savedsearch {}", env!("CARGO_PKG_VERSION"))
}
