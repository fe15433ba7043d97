//! Composition root: a DataFusion session with the tables of a connection and suitable defaults.
//!
//! ```text
//! text ─ tokens/, parse ─▶ syntax tree ─ tree/ ─▶ the engine ─▶ plan ─ plan/ ─▶ rules of the optimizer
//! ```
//!
//! - `statement` goes this way. `tokens`, `tree` and `plan` rewrite what the engine does not read, misreads or refuses; `syntax` visits
//!   trees, and `nodes` makes parts of them. `operators`, `float_type` and `now` are planned by the engine itself.
//! - `planning_turn`, `plan_size`, `limited_conditions` and `bounded` limit what a statement may take, and `writes` what it may change.
//! - `defaults` and `time_zone` are the settings of a session, `headers` the names of its results, `condition` conditions of their own,
//!   and `suggestion` what was probably meant.

#[cfg(feature = "host")]
mod bounded;
#[cfg(feature = "store")]
mod condition;
mod defaults;
mod float_type;
#[cfg(feature = "shell")]
mod headers;
#[cfg(feature = "host")]
mod limited_conditions;
mod nodes;
mod now;
mod operators;
#[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "servers parse more"))]
mod parse;
mod plan;
mod plan_size;
mod planning_turn;
mod statement;
#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "servers visit more"))]
#[cfg(any(feature = "host", feature = "shell"))]
pub(crate) mod suggestion;
pub(crate) mod syntax;
mod time_zone;
mod tokens;
mod tree;
#[cfg(any(feature = "host", feature = "shell"))]
pub(crate) mod value_place;
#[cfg(any(feature = "host", feature = "shell"))]
mod writes;

use std::sync::Arc;

use datafusion::catalog::MemoryCatalogProviderList;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::{SessionConfig, SessionContext};

#[cfg(feature = "distributed")]
pub(crate) use self::bounded::{BoundedInput, bounded_input, bounds_of};
#[cfg(feature = "host")]
pub(crate) use self::bounded::{bounded_session, check_sizes};
#[cfg(feature = "store")]
pub(crate) use self::condition::condition;
#[cfg(feature = "shell")]
pub(crate) use self::defaults::begin_here;
#[cfg(feature = "host")]
pub(crate) use self::defaults::defaults;
use self::float_type::FloatType;
#[cfg(feature = "shell")]
pub(crate) use self::headers::{Headers, with_schema};
#[cfg(feature = "host")]
use self::limited_conditions::LimitedConditions;
#[cfg(feature = "host")]
pub(crate) use self::nodes::call;
#[cfg(feature = "postgres")]
pub(crate) use self::nodes::query_of;
#[cfg(feature = "postgres")]
pub(crate) use self::nodes::{case_of, is_column, joined, members, normalized, pair, table_of};
use self::now::Now;
use self::operators::Operators;
#[cfg(any(feature = "postgres", feature = "ui"))]
pub(crate) use self::parse::bytes_of_tokens;
#[cfg(feature = "shell")]
pub(crate) use self::parse::ends_within_token;
#[cfg(feature = "wording")]
pub(crate) use self::parse::is_unterminated;
pub(crate) use self::parse::literal;
#[cfg(feature = "host")]
pub(crate) use self::parse::parse_in;
#[cfg(feature = "shell")]
pub(crate) use self::parse::parse_statements;
#[cfg(any(feature = "mcp", feature = "postgres"))]
pub(crate) use self::parse::parse_trees;
#[cfg(feature = "postgres")]
pub(crate) use self::parse::{check_text, is_text_literal};
#[cfg(feature = "postgres")]
pub(crate) use self::plan::common_types::{is_of_sets, with_columns, with_types_of_sets};
#[cfg(feature = "wording")]
pub(crate) use self::plan::described::type_name;
#[cfg(feature = "postgres")]
pub(crate) use self::plan::signed_numbers::with_outer_types;
use self::plan_size::with_plan_limits;
#[cfg(feature = "host")]
pub(crate) use self::plan_size::{bytes_of_bound, bytes_of_plan, check_calls};
#[cfg(any(feature = "host", feature = "shell"))]
pub(crate) use self::planning_turn::PlanningTurn;
#[cfg(any(feature = "host", feature = "shell"))]
pub(crate) use self::statement::plan_statement;
pub use self::statement::sql;
#[cfg(any(feature = "host", feature = "shell"))]
pub(crate) use self::time_zone::follow_time_zone;
#[cfg(feature = "postgres")]
pub(crate) use self::time_zone::time_zone;
#[cfg(feature = "postgres")]
pub(crate) use self::tree::exact_numbers::without_exponent;
#[cfg(feature = "postgres")]
pub(crate) use self::tree::misread::is_regex;
#[cfg(feature = "postgres")]
pub(crate) use self::tree::output_names::marked;
#[cfg(any(feature = "host", feature = "shell"))]
pub(crate) use self::tree::output_names::shown_name;
#[cfg(feature = "shell")]
pub(crate) use self::tree::output_names::unique_names;
#[cfg(feature = "host")]
pub(crate) use self::tree::output_names::with_named_results;
#[cfg(feature = "postgres")]
pub(crate) use self::tree::quantified::like_of_many;
#[cfg(feature = "host")]
pub(crate) use self::writes::{
    READ_ONLY, not_supported, refuse_drop, refuse_inner, refuse_statement, refuse_table, refused,
};
#[cfg(feature = "shell")]
pub(crate) use self::writes::{refuse_changes, refuse_writes};
use crate::catalog::{CATALOG, SCHEMA, catalog, is_catalog_of};
use crate::config::SessionSettings;
use crate::connection::{Connection, ForeignRuns};
use crate::error::{Error, ErrorKind};
use crate::functions;
#[cfg(feature = "postgres")]
pub(crate) use crate::optimizer::expressions::too_many_copies;
use crate::optimizer::with_rules;
use crate::table::{Relations, SavedSearchFactory, TableFunctions};

/// Adds everything that a session needs for the tables of a connection: the catalog [`CATALOG`], the optimizer rules
/// that reduce requests, the table functions, [`now`], the settings `savedsearch.…`, and
/// `CREATE EXTERNAL TABLE … STORED AS SAVEDSEARCH`. No request is made.
///
/// A builder without a configuration gets [`session_config`]; one without scalar functions gets the engine's default
/// features. Call `with_default_features` before `install`, not after it, because it would replace [`now`]. The batch
/// size is lowered to the profile's page size, so that operators do not wait for pages that a limit does not need. A
/// query planner set on the builder is kept. Register further connections as further catalogs:
/// `context.register_catalog("other", catalog(&other)?)`. A builder in which the same connection is already installed, such as one
/// from the state of a session, is returned as it is.
///
/// To add the tables to a session that exists, pass `SessionStateBuilder::new_from_existing(context.state())`, and use the session
/// that is built, which shares its catalogs with the old one. Unlike [`session`], `install` limits neither the size of plans
/// nor the time of planning.
///
/// # Errors
/// As [`catalog`], and [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the builder lacks optimizer rules of the engine
/// that ours refer to, and [`ErrorKind::Config`](crate::ErrorKind::Config) if another connection is already installed in it.
pub fn install(mut builder: SessionStateBuilder, connection: &Arc<Connection>) -> Result<SessionStateBuilder> {
    if builder.relation_planners().as_ref().is_some_and(|planners| Relations::is_among(planners)) {
        return installed(builder, connection);
    }
    if builder.scalar_functions().is_none() {
        builder = builder.with_default_features();
    }
    let mut builder = with_rules(builder)?;
    let mut config = builder.config().take().unwrap_or_else(session_config);
    if config.options().extensions.get::<SessionSettings>().is_none() {
        config.options_mut().extensions.insert(SessionSettings::default());
    }
    // Literals and `now()` are of the zone of the session.
    let zone = SessionSettings::of(config.options()).timezone;
    if !zone.is_empty() {
        config.options_mut().execution.time_zone = Some(zone);
    }
    // Otherwise the engine would put an empty catalog in its place.
    if config.options().catalog.default_catalog == CATALOG {
        config.options_mut().catalog.create_default_catalog_and_schema = false;
    }
    let page = usize::try_from(connection.profile().page.max).unwrap_or(usize::MAX).clamp(16, 1_024);
    let batch = config.batch_size().min(page);
    let config = config.with_batch_size(batch).with_extension(Arc::new(ForeignRuns::default()));
    *builder.config() = Some(defaults::begin_with(config));
    let scalar = builder.scalar_functions().get_or_insert_default();
    scalar.iter_mut().for_each(|function| {
        let known = functions::with_unknown_range(Arc::clone(function));
        *function = functions::corrected(functions::in_domain(known));
    });
    scalar.push(Arc::new(now()));
    if let Some(at) = connection.clock().stopped_at() {
        scalar.extend(now::stopped_at(at));
    }
    scalar.extend(functions::all());
    functions::with_series(builder.table_functions().get_or_insert_default());
    builder.aggregate_functions().get_or_insert_default().extend(functions::aggregates());
    builder.window_functions().get_or_insert_default().extend(functions::windows());
    builder.expr_planners().get_or_insert_default().insert(0, Arc::new(Operators));
    let planners = builder.relation_planners().get_or_insert_default();
    planners.insert(0, Arc::new(TableFunctions));
    planners.insert(0, Relations::planner());
    builder.type_planner().get_or_insert_with(|| Arc::new(FloatType));
    let factory = Arc::new(SavedSearchFactory::default());
    builder.table_factories().get_or_insert_default().insert(SavedSearchFactory::FORMAT.to_owned(), factory);
    let catalogs = builder.catalog_list().get_or_insert_with(|| Arc::new(MemoryCatalogProviderList::new()));
    catalogs.register_catalog(CATALOG.to_owned(), catalog(connection)?);
    Ok(builder)
}

/// Returns a builder in which a connection is already installed. Its rules and planners must not occur twice.
///
/// # Errors
/// [`ErrorKind::Config`] if it is another connection. Its catalog may be in use by the session from which the builder comes.
fn installed(mut builder: SessionStateBuilder, connection: &Arc<Connection>) -> Result<SessionStateBuilder> {
    let own = builder.catalog_list().as_ref().and_then(|catalogs| catalogs.catalog(CATALOG));
    if own.is_some_and(|own| is_catalog_of(own.as_ref(), connection)) {
        return Ok(builder);
    }
    Err(Error::new(ErrorKind::Config, "another connection is already installed in the session")
        .advice("register this one as a further catalog: context.register_catalog(\"other\", catalog(&other)?)")
        .into())
}

/// Creates a session whose default tables are those of `connection`: [`session_config`] and [`install`]. It also limits the size of
/// plans and the time of planning. No request is made.
///
/// # Errors
/// As [`catalog`].
pub fn session(connection: &Arc<Connection>) -> Result<SessionContext> {
    let builder = builder(session_config(), Arc::default());
    Ok(SessionContext::new_with_state(with_plan_limits(install(builder, connection)?)?.build()))
}

/// Creates a session like [`session`] that has further connections, each as a catalog of its name.
///
/// # Errors
/// As [`catalog`].
#[doc(hidden)]
pub fn session_of(connection: &Arc<Connection>, named: &[(String, Arc<Connection>)]) -> Result<SessionContext> {
    let context = session(connection)?;
    for (name, other) in named {
        // The default connection already has a catalog; sharing it makes its views visible under both names.
        let own = context.catalog(CATALOG).filter(|_| Arc::ptr_eq(other, connection));
        context.register_catalog(name, own.map_or_else(|| catalog(other), Ok)?);
    }
    Ok(context)
}

/// Creates a session like [`session`], with this configuration and a runtime shared with other sessions: memory and
/// temporary files.
///
/// # Errors
/// As [`catalog`].
#[cfg(feature = "host")]
pub(crate) fn session_with(
    connection: &Arc<Connection>,
    config: SessionConfig,
    runtime: Arc<RuntimeEnv>,
) -> Result<SessionContext> {
    Ok(SessionContext::new_with_state(install(builder(config, runtime), connection)?.build()))
}

fn builder(config: SessionConfig, runtime: Arc<RuntimeEnv>) -> SessionStateBuilder {
    let builder = SessionStateBuilder::new().with_config(config).with_runtime_env(runtime).with_default_features();
    #[cfg(feature = "host")]
    let builder = builder.with_query_planner(Arc::new(LimitedConditions));
    builder
}

/// The function `now()`, truncated to whole seconds, which a service's periods can express. The engine's has
/// nanoseconds.
pub fn now() -> ScalarUDF {
    Now::new(&ConfigOptions::default()).into()
}

/// Default configuration of [`session`], for embedders that create their own session.
pub fn session_config() -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(true)
        .with_option_extension(SessionSettings::default())
        // Both would request pages that a limit further up does not need.
        .with_round_robin_repartition(false)
        .with_batch_size(1_024);
    let options = config.options_mut();
    options.execution.sort_pushdown_buffer_capacity = 1 << 20;
    // It allocates according to the LIMIT before it knows how many rows there are.
    options.optimizer.enable_topk_aggregation = false;
    // `now()` is an instant; without a zone it would be a local time.
    options.execution.time_zone = Some("UTC".to_owned());
    // The optimizer's idea of what can be NULL differs from the planner's for IS TRUE and the like, and fails such queries.
    options.execution.skip_physical_aggregate_schema_check = true;
    // Services put missing values last; the engine's default (first when descending) could not be pushed down.
    options.sql_parser.default_null_ordering = "nulls_last".to_owned();
    // It is decided for each statement which sorts are used.
    options.sql_parser.enable_subquery_sort_elimination = false;
    config
}
