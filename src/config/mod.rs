//! Session settings (`SET savedsearch.… = …`) and the environment.

mod environment;
mod settings;

pub use self::environment::{
    Environment, catalog_url, default_config_file, is_blank, read_toml, state_folder, trace_collector, variable,
};
pub use self::settings::{CountFromOverview, EstimateBy, SessionSettings, StoreUse};
