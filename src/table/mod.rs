//! The tables of SQL: those that map to the service, and those that show ourselves.
//!
//! [`ApiTable`] asks `pushdown` what may be sent, and hands the answer to `exec`; it plans and never fetches.
//! [`SystemTable`] shows what the process knows and costs no request.

mod api;
mod factory;
mod functions;
mod read_only;
mod system;

pub(crate) use api::ApiTable;
#[cfg(feature = "flight")]
pub(crate) use api::query_name;
pub use factory::SavedSearchFactory;
pub(crate) use functions::TableFunctions;
#[cfg(any(feature = "flight", feature = "shell"))]
pub(crate) use read_only::is_read_only;
#[cfg(feature = "shell")]
pub(crate) use read_only::read_only;
pub(crate) use system::SystemTable;
