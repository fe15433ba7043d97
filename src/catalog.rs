//! A connection as a DataFusion catalog: schema `v4` with the service's tables, schema `system` with our own.

use std::sync::Arc;

use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
use datafusion::common::Result;

use crate::connection::Connection;
use crate::pushdown::Table;
use crate::table::{ApiTable, SystemTable};

/// Name of the catalog of the first connection.
pub const CATALOG: &str = "savedsearch";
/// Schema of the service's tables.
pub const SCHEMA: &str = "v4";
/// Schema of the tables about ourselves.
pub const SYSTEM_SCHEMA: &str = "system";

/// The catalog of a connection. No request is made.
///
/// # Errors
/// None in practice: the registrations concern new, empty schemas.
pub fn catalog(connection: &Arc<Connection>) -> Result<Arc<dyn CatalogProvider>> {
    let tables = MemorySchemaProvider::new();
    for table in Table::ALL {
        tables.register_table(table.name().to_owned(), Arc::new(ApiTable::new(Arc::clone(connection), table)))?;
    }
    let system = MemorySchemaProvider::new();
    system.register_table("requests".to_owned(), Arc::new(SystemTable::requests(Arc::clone(connection))))?;
    system.register_table("profile".to_owned(), Arc::new(SystemTable::profile(Arc::clone(connection))))?;
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(SCHEMA, Arc::new(tables))?;
    catalog.register_schema(SYSTEM_SCHEMA, Arc::new(system))?;
    Ok(Arc::new(catalog))
}
