//! `RESET`: a setting returns to the value with which its session began.
//!
//! The engine resets its own settings only, and to its own defaults.

use std::sync::Arc;

use datafusion::common::config::{ConfigEntry, ConfigOptions};
use datafusion::logical_expr::{LogicalPlan, ResetVariable, SetVariable, Statement as Utility};
use datafusion::prelude::SessionConfig;
#[cfg(feature = "shell")]
use datafusion::prelude::SessionContext;

/// Prefix of our settings.
const OURS: &str = "savedsearch.";

/// The settings with which a session began, as an extension of its configuration.
struct Defaults(Arc<ConfigOptions>);

/// Makes the settings of a configuration those with which its session begins.
pub(super) fn begin_with(config: SessionConfig) -> SessionConfig {
    let defaults = Defaults(Arc::clone(config.options()));
    config.with_extension(Arc::new(defaults))
}

/// Makes the present settings of a session those with which it began.
#[cfg(feature = "shell")]
pub(crate) fn begin_here(context: &SessionContext) {
    let state = context.state_ref();
    let mut state = state.write();
    let config = state.config_mut();
    *config = begin_with(std::mem::take(config));
}

/// The settings with which a session began.
pub(crate) fn defaults(config: &SessionConfig) -> Vec<ConfigEntry> {
    config.get_extension::<Defaults>().map(|defaults| defaults.0.entries()).unwrap_or_default()
}

/// `RESET` as the `SET` of the value with which the session began; other plans stay.
pub(super) fn reset_as_set(plan: LogicalPlan, config: &SessionConfig) -> LogicalPlan {
    let LogicalPlan::Statement(Utility::ResetVariable(ResetVariable { variable })) = plan else { return plan };
    let default = defaults(config).into_iter().find(|entry| entry.key == variable).and_then(|entry| entry.value);
    LogicalPlan::Statement(match default {
        Some(value) => Utility::SetVariable(SetVariable { variable, value }),
        // The error of SET names the settings that there are.
        None if variable.starts_with(OURS) => Utility::SetVariable(SetVariable { variable, value: String::new() }),
        None => Utility::ResetVariable(ResetVariable { variable }),
    })
}
