//! Refusal of writes: the service has no calls that write.

use crate::error::{Error, ErrorKind};

/// The error for a statement that would change one of our tables.
pub(crate) fn read_only(table: &str) -> Error {
    Error::new(ErrorKind::Query, format!("table `{table}` is read-only"))
        .advice("create a table or view with another name, as in CREATE TABLE mine AS SELECT …")
}

/// True for the tables of the service, of schema `system` and of a server's embedder, false for those of the session.
#[cfg(any(feature = "host", feature = "shell"))]
pub(crate) fn is_read_only(table: &std::sync::Arc<dyn datafusion::catalog::TableProvider>) -> bool {
    #[cfg(feature = "host")]
    if table.downcast_ref::<super::ServedTable>().is_some() {
        return true;
    }
    table.downcast_ref::<super::ApiTable>().is_some() || table.downcast_ref::<super::SystemTable>().is_some()
}
