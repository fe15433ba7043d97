//! The SQL tables: those backed by the service, and system tables.
//!
//! [`ApiTable`] gets a plan from `pushdown` and passes it to `exec`; it only plans, and never sends a request.
//! [`SystemTable`] shows the state of the process, and sends no request.

mod api;
#[cfg(feature = "store")]
mod changes;
#[cfg(feature = "store")]
mod deleted_mentions;
mod factory;
mod functions;
#[cfg(feature = "store")]
mod past;
mod read_only;
mod relations;
mod search;
#[cfg(feature = "host")]
mod served;
mod session_zone;
mod system;
mod unnested_keys;

pub(crate) use api::ApiTable;
#[cfg(feature = "host")]
pub(crate) use api::query_name;
#[cfg(feature = "store")]
pub(crate) use changes::{CHANGES, ChangesTable};
#[cfg(feature = "store")]
pub(crate) use deleted_mentions::deleted_mentions;
pub use factory::SavedSearchFactory;
pub(crate) use functions::TableFunctions;
#[cfg(feature = "store")]
pub(crate) use past::{MENTIONS_AS_OF, PastTable};
#[cfg(any(feature = "host", feature = "shell"))]
pub(crate) use read_only::is_read_only;
pub(crate) use read_only::read_only;
pub(crate) use relations::Relations;
pub(crate) use search::{SEARCH, SearchTable};
#[cfg(feature = "host")]
pub(crate) use served::ServedTable;
pub(crate) use system::SystemTable;
pub(crate) use unnested_keys::without_unnested_keys;
