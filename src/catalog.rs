//! A connection as a DataFusion catalog: schema `v4` holds the service's tables, schema `system` the crate's own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use datafusion::catalog::{
    CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider, TableProvider,
};
use datafusion::common::Result;
use datafusion::prelude::SessionContext;

use crate::connection::Connection;
use crate::table::{ApiTable, SEARCH, SearchTable, SystemTable, read_only};
#[cfg(feature = "store")]
use crate::table::{CHANGES, ChangesTable, MENTIONS_AS_OF, PastTable, deleted_mentions};

/// Catalog name of the first connection.
pub const CATALOG: &str = "savedsearch";
/// Schema of the service's tables.
pub(crate) const SCHEMA: &str = "v4";
/// Schema of the tables that describe the connection itself.
pub(crate) const SYSTEM_SCHEMA: &str = "system";

/// Builds the catalog of a connection. No request is sent.
///
/// # Errors
/// None in practice: tables are only registered in new, empty schemas.
pub fn catalog(connection: &Arc<Connection>) -> Result<Arc<dyn CatalogProvider>> {
    let mut tables = FixedSchema::default();
    for table in connection.profile().tables.all() {
        tables.own(&table.name, Arc::new(ApiTable::new(Arc::clone(connection), table)))?;
    }
    tables.functions.push((SEARCH, Arc::new(SearchTable::new(connection))));
    #[cfg(feature = "store")]
    {
        tables.functions.push((CHANGES, Arc::new(ChangesTable::new(Arc::clone(connection)))));
        tables.functions.push((MENTIONS_AS_OF, Arc::new(PastTable::new(Arc::clone(connection)))));
    }
    let system = FixedSchema::default();
    system.own("requests", Arc::new(SystemTable::requests(Arc::clone(connection))))?;
    system.own("warnings", Arc::new(SystemTable::warnings(Arc::clone(connection))))?;
    system.own("budget", Arc::new(SystemTable::budget(Arc::clone(connection))))?;
    system.own("columns_seen", Arc::new(SystemTable::columns_seen(Arc::clone(connection))))?;
    #[cfg(feature = "store")]
    if connection.store().is_some() {
        system.own("store", Arc::new(SystemTable::store(Arc::clone(connection))))?;
        system.own("deleted_mentions", Arc::new(deleted_mentions(connection)?))?;
    }
    system.own("profile", Arc::new(SystemTable::profile(Arc::clone(connection))))?;
    let schemas = MemoryCatalogProvider::new();
    schemas.register_schema(SCHEMA, Arc::new(tables))?;
    schemas.register_schema(SYSTEM_SCHEMA, Arc::new(system))?;
    Ok(Arc::new(FixedCatalog { schemas, connection: Arc::clone(connection) }))
}

/// True if [`catalog`] has built this catalog for this connection.
pub(crate) fn is_catalog_of(catalog: &dyn CatalogProvider, connection: &Arc<Connection>) -> bool {
    catalog.downcast_ref::<FixedCatalog>().is_some_and(|catalog| Arc::ptr_eq(&catalog.connection, connection))
}

/// Number of changes of the tables and views of a session so far; `None` if a schema of it does not count them.
#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "servers keep plans"))]
pub(crate) fn table_changes(context: &SessionContext) -> Option<u64> {
    let mut changes = 0;
    for catalog in context.catalog_names().iter().filter_map(|name| context.catalog(name)) {
        for schema in catalog.schema_names().iter().filter_map(|name| catalog.schema(name)) {
            changes += schema.downcast_ref::<FixedSchema>()?.changes.load(Ordering::Acquire);
        }
    }
    Some(changes)
}

/// Catalog whose schemas cannot be added or dropped.
#[derive(Debug)]
struct FixedCatalog {
    schemas: MemoryCatalogProvider,
    connection: Arc<Connection>,
}

impl CatalogProvider for FixedCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.schemas.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.schemas.schema(name)
    }
}

/// Schema whose built-in tables cannot be dropped; a session may add and drop its own tables and views.
#[derive(Debug, Default)]
struct FixedSchema {
    tables: MemorySchemaProvider,
    own: RwLock<Vec<String>>,
    /// Tables that were added and dropped. Each is counted after the change, so that whoever reads a number sees what it counts.
    changes: AtomicU64,
    /// Table functions that are no tables without arguments, and are not listed.
    functions: Vec<(&'static str, Arc<dyn TableProvider>)>,
}

impl FixedSchema {
    fn own(&self, name: &str, table: Arc<dyn TableProvider>) -> Result<()> {
        self.tables.register_table(name.to_owned(), table)?;
        self.own.write().unwrap_or_else(PoisonError::into_inner).push(name.to_owned());
        Ok(())
    }
}

#[async_trait]
impl SchemaProvider for FixedSchema {
    fn table_names(&self) -> Vec<String> {
        self.tables.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match self.tables.table(name).await? {
            Some(table) => Ok(Some(table)),
            None => Ok(self.functions.iter().find(|(of, _)| *of == name).map(|(_, table)| Arc::clone(table))),
        }
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        let replaced = self.tables.register_table(name, table);
        self.changes.fetch_add(1, Ordering::Release);
        replaced
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.own.read().unwrap_or_else(PoisonError::into_inner).iter().any(|own| own == name) {
            return Err(read_only(name).into());
        }
        let dropped = self.tables.deregister_table(name);
        self.changes.fetch_add(1, Ordering::Release);
        dropped
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.table_exist(name)
    }
}
