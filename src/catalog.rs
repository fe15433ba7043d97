//! A connection as a DataFusion catalog: schema `v4` holds the service's tables, schema `system` the crate's own.

#[cfg(feature = "host")]
use std::collections::HashMap;
#[cfg(feature = "host")]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use datafusion::catalog::{
    CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider, TableProvider,
};
use datafusion::common::Result;
#[cfg(feature = "host")]
use datafusion::common::TableReference;
use datafusion::prelude::SessionContext;

use crate::connection::Connection;
#[cfg(feature = "host")]
use crate::error::{Error, ErrorKind};
#[cfg(feature = "host")]
use crate::table::ServedTable;
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

/// Registers tables of an embedder in a session of a server. Its clients read them, and cannot change, replace or drop them.
///
/// # Errors
/// Those of `register`; [`ErrorKind::Config`] for a catalog with the name of a connection, and for one of a connection, whose key would
/// not be removed from messages.
#[cfg(feature = "host")]
pub(crate) fn serve(context: &SessionContext, register: impl FnOnce(&SessionContext) -> Result<()>) -> Result<()> {
    let named = |name: String| context.catalog(&name).map(|catalog| (name, catalog));
    let before: HashMap<String, Arc<dyn CatalogProvider>> =
        context.catalog_names().into_iter().filter_map(named).collect();
    for_each_fixed(&before, |schema| schema.serving.store(true, Ordering::Release));
    let registered = register(context);
    for_each_fixed(&before, |schema| schema.serving.store(false, Ordering::Release));
    registered?;
    for (name, catalog) in context.catalog_names().into_iter().filter_map(named) {
        let wrong = |what: &str, advice: &str| -> Result<()> {
            Err(Error::new(ErrorKind::Config, format!("catalog `{name}` of the server {what}")).advice(advice).into())
        };
        match before.get(&name) {
            Some(known) if Arc::ptr_eq(known, &catalog) => {}
            Some(_) => return wrong("replaces one of a connection", "register it under another name"),
            None if catalog.downcast_ref::<FixedCatalog>().is_some() => {
                return wrong("has the tables of a connection", "add the connection to `named` of `Upstream::Own`");
            }
            None => {
                context.register_catalog(name, Arc::new(ServedCatalog(catalog)));
            }
        }
    }
    Ok(())
}

/// Calls a function for each schema of connections.
#[cfg(feature = "host")]
fn for_each_fixed(catalogs: &HashMap<String, Arc<dyn CatalogProvider>>, each: impl Fn(&FixedSchema)) {
    for catalog in catalogs.values() {
        for schema in catalog.schema_names().iter().filter_map(|name| catalog.schema(name)) {
            if let Some(schema) = schema.downcast_ref::<FixedSchema>() {
                each(schema);
            }
        }
    }
}

/// Refuses a name for a new table or view in a schema of an embedder.
///
/// # Errors
/// [`ErrorKind::Query`] for such a name.
#[cfg(feature = "host")]
pub(crate) fn refuse_served(context: &SessionContext, name: &TableReference) -> Result<()> {
    let state = context.state_ref();
    let defaults = state.read().config_options().catalog.clone();
    let resolved = name.clone().resolve(&defaults.default_catalog, &defaults.default_schema);
    let schema = context.catalog(&resolved.catalog).and_then(|catalog| catalog.schema(&resolved.schema));
    match schema {
        Some(schema) if schema.downcast_ref::<ServedSchema>().is_some() => Err(served(&name.to_string()).into()),
        _ => Ok(()),
    }
}

/// The error for a table that would be added to a schema of an embedder, or dropped from it.
#[cfg(feature = "host")]
fn served(table: &str) -> Error {
    Error::new(ErrorKind::Query, format!("`{table}` is in a schema that is read-only"))
        .advice("create a table or view without a schema, as in CREATE TABLE mine AS SELECT …")
}

/// Catalog of an embedder, as clients of its server see it. What the embedder adds to it later appears as well.
#[cfg(feature = "host")]
#[derive(Debug)]
struct ServedCatalog(Arc<dyn CatalogProvider>);

#[cfg(feature = "host")]
impl CatalogProvider for ServedCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.0.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.0.schema(name).map(|schema| Arc::new(ServedSchema(schema)) as Arc<dyn SchemaProvider>)
    }
}

/// Schema of an embedder, as clients of its server see it.
#[cfg(feature = "host")]
#[derive(Debug)]
struct ServedSchema(Arc<dyn SchemaProvider>);

#[cfg(feature = "host")]
#[async_trait]
impl SchemaProvider for ServedSchema {
    fn owner_name(&self) -> Option<&str> {
        self.0.owner_name()
    }

    fn table_names(&self) -> Vec<String> {
        self.0.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.0.table(name).await?.map(ServedTable::wrap))
    }

    fn register_table(&self, name: String, _table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        Err(served(&name).into())
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Err(served(name).into())
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.table_exist(name)
    }
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
    /// True while an embedder registers tables, which become built-in ones.
    #[cfg(feature = "host")]
    serving: AtomicBool,
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
        #[cfg(feature = "host")]
        if self.serving.load(Ordering::Acquire) {
            let registered = self.own(&name, ServedTable::wrap(table));
            self.changes.fetch_add(1, Ordering::Release);
            return registered.map(|()| None);
        }
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
