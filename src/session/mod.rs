//! The composition root: a DataFusion session with a connection's tables and the defaults that they work best with.

mod bounded;
mod now;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::{SessionConfig, SessionContext};

pub(crate) use self::bounded::{bounded_session, check_sizes};
use self::now::Now;
use crate::catalog::{CATALOG, SCHEMA, catalog};
use crate::config::SessionSettings;
use crate::connection::Connection;
use crate::optimizer::with_rules;
use crate::table::TableFunctions;

/// A session whose default tables are those of `connection`. No request is made.
///
/// # Errors
/// As [`catalog`].
pub fn session(connection: &Arc<Connection>) -> Result<SessionContext> {
    session_with(connection, session_config(), Arc::default())
}

/// A session as [`session`] makes one, with this configuration and what it shares with other sessions: memory and
/// temporary files.
///
/// # Errors
/// As [`catalog`].
pub fn session_with(
    connection: &Arc<Connection>,
    config: SessionConfig,
    runtime: Arc<RuntimeEnv>,
) -> Result<SessionContext> {
    // Batches of about a page: operators that gather rows must not wait for pages that a limit does not need.
    let page = usize::try_from(connection.profile().page.max).unwrap_or(usize::MAX).clamp(16, 1_024);
    let builder = SessionStateBuilder::new()
        .with_config(config.with_batch_size(page))
        .with_runtime_env(runtime)
        .with_default_features();
    let context = SessionContext::new_with_state(with_rules(builder).build());
    context.register_udf(Now::new(context.copied_config().options()).into());
    context.register_catalog(CATALOG, catalog(connection)?);
    context.register_relation_planner(Arc::new(TableFunctions::new(connection)))?;
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
    // It allocates by the number of a LIMIT before it knows how many rows there are.
    options.optimizer.enable_topk_aggregation = false;
    // `now()` is an instant; without a zone it would be a local time.
    options.execution.time_zone = Some("UTC".to_owned());
    // Services put missing values last; the engine's default (first when descending) could not be asked for.
    options.sql_parser.default_null_ordering = "nulls_last".to_owned();
    config
}
