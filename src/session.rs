//! The composition root: a DataFusion session with a connection's tables and the defaults that they work best with.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::catalog::{CATALOG, SCHEMA, catalog};
use crate::config::SessionSettings;
use crate::connection::Connection;

/// A session whose default tables are those of `connection`. No request is made.
///
/// # Errors
/// As [`catalog`].
pub fn session(connection: &Arc<Connection>) -> Result<SessionContext> {
    let context = SessionContext::new_with_config(session_config());
    context.register_catalog(CATALOG, catalog(connection)?);
    Ok(context)
}

/// The defaults of [`session`], for those who make a session of their own.
pub fn session_config() -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(true)
        .with_option_extension(SessionSettings::default())
        // Both would ask for pages that a limit above does not need.
        .with_round_robin_repartition(false)
        .with_batch_size(1_024);
    let options = config.options_mut();
    options.execution.sort_pushdown_buffer_capacity = 1 << 20;
    // `now()` is an instant; without a zone it would be a local time.
    options.execution.time_zone = Some("UTC".to_owned());
    // Services put missing values last; the engine's default (first when descending) could not be asked for.
    options.sql_parser.default_null_ordering = "nulls_last".to_owned();
    config
}
