//! Session options: the Flight.proto messages, which the Flight library lacks, and their handling.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::logical_expr::{LogicalPlan, SetVariable, Statement as Utility};
use prost::Message;

use crate::catalog::{CATALOG, SCHEMA};
use crate::host::effects;
use crate::host::planner::may_set;
use crate::host::sessions::Session;
use crate::host::state::Host;
use crate::session::literal;

/// Request to set options, by name.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SetSessionOptionsRequest {
    #[prost(map = "string, message", tag = "1")]
    pub(super) session_options: HashMap<String, SessionOptionValue>,
}

/// Result of setting options: errors by option name.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SetSessionOptionsResult {
    #[prost(map = "string, message", tag = "1")]
    pub(super) errors: HashMap<String, OptionError>,
}

/// Error of setting an option.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct OptionError {
    #[prost(enumeration = "OptionErrorValue", tag = "1")]
    pub(super) value: i32,
}

/// Reason why an option could not be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum OptionErrorValue {
    Unspecified = 0,
    InvalidName = 1,
    InvalidValue = 2,
    Error = 3,
}

/// Request for all options.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct GetSessionOptionsRequest {}

/// All options, by name.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetSessionOptionsResult {
    #[prost(map = "string, message", tag = "1")]
    pub(super) session_options: HashMap<String, SessionOptionValue>,
}

/// Result of closing a session.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct CloseSessionResult {
    #[prost(enumeration = "CloseSessionStatus", tag = "1")]
    pub(super) status: i32,
}

/// State of a session after a close request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum CloseSessionStatus {
    Unspecified = 0,
    Closed = 1,
    Closing = 2,
    NotCloseable = 3,
}

/// Value of an option; an empty value resets the option.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SessionOptionValue {
    #[prost(oneof = "OptionValue", tags = "1, 2, 3, 4, 5")]
    pub(super) option_value: Option<OptionValue>,
}

/// Typed option value.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum OptionValue {
    #[prost(string, tag = "1")]
    String(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(sfixed64, tag = "3")]
    Int64(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    StringList(StringList),
}

/// List of strings.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StringList {
    #[prost(string, repeated, tag = "1")]
    pub(super) values: Vec<String>,
}

impl SessionOptionValue {
    /// Creates a string value.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { option_value: Some(OptionValue::String(text.into())) }
    }

    /// Returns the value as SET accepts it; `None` for a list or no value.
    pub(super) fn as_setting(&self) -> Option<String> {
        match self.option_value.as_ref()? {
            OptionValue::String(text) => Some(text.clone()),
            OptionValue::Bool(switch) => Some(switch.to_string()),
            OptionValue::Int64(number) => Some(number.to_string()),
            OptionValue::Double(number) => Some(number.to_string()),
            OptionValue::StringList(_) => None,
        }
    }
}

/// Sets session options like SET does. Valid options are set even if others fail; the result lists the failures.
pub(super) async fn set_options(
    host: &Host,
    session: &Arc<Session>,
    request: SetSessionOptionsRequest,
) -> SetSessionOptionsResult {
    let mut errors = HashMap::new();
    let mut options: Vec<_> = request.session_options.into_iter().collect();
    // The catalog comes first: a schema is looked up in the current catalog.
    options.sort_by_key(|(name, _)| (name != CATALOG_OPTION, name != SCHEMA_OPTION));
    for (name, value) in options {
        if let Err(error) = set_option(host, session, &name, &value).await {
            errors.insert(name, OptionError { value: error as i32 });
        }
    }
    SetSessionOptionsResult { errors }
}

const CATALOG_OPTION: &str = "catalog";
const SCHEMA_OPTION: &str = "schema";

async fn set_option(
    host: &Host,
    session: &Arc<Session>,
    name: &str,
    value: &SessionOptionValue,
) -> Result<(), OptionErrorValue> {
    let value = match (value.as_setting(), value.option_value.is_some()) {
        (None, true) => return Err(OptionErrorValue::InvalidValue),
        // Without a value, the default is restored.
        (text, _) => text,
    };
    if may_set(name) {
        let sql = match value {
            Some(value) => format!("SET {name} = {}", literal(&value)),
            None => format!("RESET {name}"),
        };
        let statement = host.statement(session, &sql).await.map_err(|_| OptionErrorValue::InvalidValue)?;
        let set = effects::run(host, session, &statement, None).await;
        return set.map_err(|_| OptionErrorValue::InvalidValue);
    }
    let state = session.context.state();
    let options = state.config().options();
    let (variable, value) = match (name, value) {
        (CATALOG_OPTION, value) => {
            let catalog = value.unwrap_or_else(|| CATALOG.to_owned());
            let known = session.context.catalog(&catalog).is_some();
            (known.then_some("datafusion.catalog.default_catalog"), catalog)
        }
        (SCHEMA_OPTION, value) => {
            let schema = value.unwrap_or_else(|| SCHEMA.to_owned());
            let catalog = session.context.catalog(&options.catalog.default_catalog);
            let known = catalog.is_some_and(|catalog| catalog.schema(&schema).is_some());
            (known.then_some("datafusion.catalog.default_schema"), schema)
        }
        _ => return Err(OptionErrorValue::InvalidName),
    };
    let variable = variable.ok_or(OptionErrorValue::InvalidValue)?.to_owned();
    let set = LogicalPlan::Statement(Utility::SetVariable(SetVariable { variable, value }));
    let set = session.context.execute_logical_plan(set).await;
    set.map(drop).map_err(|_| OptionErrorValue::InvalidValue)
}

/// Returns the options of a session.
pub(super) fn options(session: &Session) -> GetSessionOptionsResult {
    let state = session.context.state();
    let options = state.config().options();
    let entries = options.entries().into_iter().filter(|entry| may_set(&entry.key));
    let entries = entries.filter_map(|entry| Some((entry.key, SessionOptionValue::text(entry.value?))));
    let catalog =
        [(CATALOG_OPTION, &options.catalog.default_catalog), (SCHEMA_OPTION, &options.catalog.default_schema)];
    let catalog = catalog.map(|(name, value)| (name.to_owned(), SessionOptionValue::text(value.as_str())));
    GetSessionOptionsResult { session_options: entries.chain(catalog).collect() }
}
