//! The tools: names, arguments and dispatch.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value, json};

use super::McpLimits;
use super::profiles::ProfileCall;

/// A call of a tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Call {
    Query(Query),
    /// Examines the service or writes its profile.
    Profile(ProfileCall),
    /// Sends no request.
    Free(Question),
}

/// A query to run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) sql: String,
    pub(super) max_requests: u64,
    pub(super) max_rows: usize,
}

/// Calls that need no request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Question {
    Tables,
    Table(String),
    Estimate(String),
    Budget,
}

/// A call that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Misread {
    /// The tool does not exist, which is an error of the protocol.
    Tool(String),
    /// Wrong arguments, which the caller can correct.
    Arguments(String),
}

const LIST_TABLES: &str = "list_tables";
const DESCRIBE: &str = "describe";
const ESTIMATE: &str = "estimate";
const QUERY: &str = "query";
const BUDGET: &str = "budget";
const NAMES: [&str; 5] = [LIST_TABLES, DESCRIBE, ESTIMATE, QUERY, BUDGET];
const PROBE: &str = "probe";
const PROFILE_SCHEMA: &str = "profile_schema";
const PROFILE_CHECK: &str = "profile_check";
const PROFILE_WRITE: &str = "profile_write";
const OF_PROFILES: [&str; 4] = [PROBE, PROFILE_SCHEMA, PROFILE_CHECK, PROFILE_WRITE];

/// Requests that a probe may send without asking for more.
const PROBES: u64 = 25;

/// Requests that a query may send without asking for more.
pub(super) const REQUESTS: u64 = 20;
/// Rows that a query may return without asking for more.
pub(super) const ROWS: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableArguments {
    table: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SqlArguments {
    sql: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryArguments {
    sql: String,
    #[serde(default, deserialize_with = "whole")]
    max_requests: Option<u64>,
    #[serde(default, deserialize_with = "whole")]
    max_rows: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProbeArguments {
    #[serde(default)]
    facts: Vec<String>,
    example: Option<String>,
    openapi: Option<String>,
    profile: Option<String>,
    #[serde(default, deserialize_with = "whole")]
    max_requests: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckArguments {
    profile: String,
    #[serde(default, deserialize_with = "whole")]
    max_requests: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    name: String,
    profile: String,
}

/// A whole number, which JSON Schema also sees in `20.0`.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else { return Ok(None) };
    let text = number.to_string();
    let digits = text.strip_suffix(".0").unwrap_or(&text);
    let whole =
        digits.parse().map_err(|_| D::Error::custom(format!("invalid value: {number}, expected a whole number")));
    whole.map(Some)
}

impl Call {
    /// Reads a call. `profiles`: set if the server has the tools for profiles.
    ///
    /// # Errors
    /// See [`Misread`]. Numbers beyond the limits of the server are refused, not reduced.
    pub(super) fn read(name: &str, arguments: JsonObject, limits: &McpLimits, profiles: bool) -> Result<Self, Misread> {
        match name {
            PROBE if profiles => {
                let ProbeArguments { facts, example, openapi, profile, max_requests } = read(name, arguments)?;
                let max_requests = max_requests.unwrap_or(PROBES.min(limits.max_requests));
                within("max_requests", max_requests, limits.max_requests)?;
                Ok(Self::Profile(ProfileCall::Probe { facts, example, openapi, profile, max_requests }))
            }
            PROFILE_SCHEMA if profiles => {
                read(name, arguments).map(|NoArguments {}| Self::Profile(ProfileCall::Schema))
            }
            PROFILE_CHECK if profiles => {
                let CheckArguments { profile, max_requests } = read(name, arguments)?;
                max_requests.map_or(Ok(()), |asked| within("max_requests", asked, limits.max_requests))?;
                Ok(Self::Profile(ProfileCall::Check { profile, max_requests: max_requests.unwrap_or_default() }))
            }
            PROFILE_WRITE if profiles => read(name, arguments)
                .map(|WriteArguments { name, profile }| Self::Profile(ProfileCall::Write { name, profile })),
            LIST_TABLES => read(name, arguments).map(|NoArguments {}| Self::Free(Question::Tables)),
            BUDGET => read(name, arguments).map(|NoArguments {}| Self::Free(Question::Budget)),
            DESCRIBE => read(name, arguments).map(|TableArguments { table }| Self::Free(Question::Table(table))),
            ESTIMATE => read(name, arguments).map(|SqlArguments { sql }| Self::Free(Question::Estimate(sql))),
            QUERY => {
                let QueryArguments { sql, max_requests, max_rows } = read(name, arguments)?;
                let max_requests = max_requests.unwrap_or(REQUESTS.min(limits.max_requests));
                let max_rows = max_rows.unwrap_or(ROWS.min(limits.max_rows) as u64);
                within("max_requests", max_requests, limits.max_requests)?;
                within("max_rows", max_rows, limits.max_rows as u64)?;
                let max_rows = usize::try_from(max_rows).unwrap_or(limits.max_rows);
                Ok(Self::Query(Query { sql, max_requests, max_rows }))
            }
            _ => {
                let names = NAMES.into_iter().chain(OF_PROFILES.into_iter().filter(|_| profiles));
                let names = names.collect::<Vec<_>>().join(", ");
                Err(Misread::Tool(format!("unknown tool `{name}`; available: {names}")))
            }
        }
    }
}

fn read<A: DeserializeOwned>(name: &str, arguments: JsonObject) -> Result<A, Misread> {
    let read = serde_json::from_value(Value::Object(arguments));
    read.map_err(|error| Misread::Arguments(format!("invalid arguments of `{name}`: {error}")))
}

fn within(name: &str, asked: u64, most: u64) -> Result<(), Misread> {
    match asked {
        0 => Err(Misread::Arguments(format!("{name} must be at least 1"))),
        asked if asked > most => Err(Misread::Arguments(format!(
            "{name} is {asked}, but this server allows at most {most}; ask for less, or restart it with --{}",
            name.replace('_', "-")
        ))),
        _ => Ok(()),
    }
}

/// All tools, as a client lists them. `profiles`: set if those for profiles are among them.
pub(super) fn all(limits: &McpLimits, profiles: bool) -> Vec<Tool> {
    let mut tools = of_tables(limits);
    if profiles {
        tools.extend(of_profiles(limits));
    }
    tools
}

/// The tools for the profile of the service.
fn of_profiles(limits: &McpLimits) -> [Tool; 4] {
    let text = |what: &str| json!({ "type": "string", "description": what });
    let most = limits.max_requests;
    let number = |what: &str, default: u64| json!({ "type": "integer", "minimum": 1, "maximum": most, "default": default.min(most), "description": what });
    let optional = |what: &str| json!({ "type": "integer", "minimum": 1, "maximum": most, "description": what });
    let document = "A profile as TOML";
    let written = tool(
        PROFILE_WRITE,
        "Write a profile",
        "Writes a valid profile to a file in the folder that the user named, and returns its path. Replaces only files that \
         this server wrote. Sends no request.",
        json!({ "name": text("Name of the file without .toml: lowercase letters, digits, _ and -"), "profile": text(document) }),
        &["name", "profile"],
    );
    let writes = ToolAnnotations::new().read_only(false).destructive(false).idempotent(true).open_world(false);
    [
        tool(
            PROBE,
            "Examine the service",
            "Examines the service with read-only requests and returns a report and a profile as TOML. Give what the service's \
             documentation says; it is tried first, and the report states what the responses confirmed.",
            json!({
                "example": text("A search that works: a curl command, a URL or a HAR file. Write $KEY in place of the API key"),
                "openapi": text("The service's OpenAPI document, in JSON or YAML"),
                "facts": {
                    "type": "array",
                    "items": text("dataSize one of 10, 25 | dataSize at most 50 | withData=true | page.max = 50"),
                    "description": "Single facts: values of parameters, or entries of the profile as TOML",
                },
                "profile": text("A profile as TOML to resume from: sections with evidence = \"documented\" are kept"),
                "max_requests": number("Maximum number of requests to the service", PROBES),
            }),
            &[],
        ),
        tool(
            PROFILE_SCHEMA,
            "Schema of profiles",
            "Returns the JSON Schema of profiles, with a description of every entry. Sends no request.",
            json!({}),
            &[],
        ),
        tool(
            PROFILE_CHECK,
            "Check a profile",
            "Checks the syntax of a profile. With max_requests, also compares it with the service: numbers that count the same \
             mentions in different ways must agree.",
            json!({ "profile": text(document), "max_requests": optional("Maximum number of requests to the service") }),
            &["profile"],
        ),
        written.with_annotations(writes),
    ]
}

fn of_tables(limits: &McpLimits) -> Vec<Tool> {
    let McpLimits { max_requests, max_rows, .. } = limits;
    let sql = |what: &str| json!({ "type": "string", "description": what });
    let number = |what: &str, most: u64, default: u64| {
        let description = format!("{what} (default {default})");
        json!({ "type": "integer", "minimum": 1, "maximum": most, "default": default, "description": description })
    };
    vec![
        tool(
            LIST_TABLES,
            "List tables",
            "Lists the tables, with what a row of each is and how many requests reading it costs. Sends no request.",
            json!({}),
            &[],
        ),
        tool(
            DESCRIBE,
            "Describe a table",
            "Lists the columns of a table, their types, and the conditions that reduce requests. Sends no request.",
            json!({ "table": sql("Name as list_tables shows it, such as mentions or system.requests") }),
            &["table"],
        ),
        tool(
            ESTIMATE,
            "Estimate requests",
            "Estimates the requests to the service that a query needs, and suggests cheaper forms. Sends no request.",
            json!({ "sql": sql("One SQL query") }),
            &["sql"],
        ),
        tool(
            QUERY,
            "Run a query",
            "Runs one SQL query and returns its rows as text. Fails if the query needs more requests than max_requests (before the \
             first request, if that can be known), or returns more rows than max_rows or than fit into a text. All rows are \
             returned, or none; overlong values are truncated, and a note below the rows counts them.",
            json!({
                "sql": sql("One SQL query in the dialect of Apache DataFusion, close to PostgreSQL's"),
                "max_requests": number(
                    "Maximum number of requests to the service",
                    *max_requests,
                    REQUESTS.min(*max_requests)
                ),
                "max_rows": number(
                    "Maximum number of rows to return",
                    *max_rows as u64,
                    ROWS.min(*max_rows) as u64
                ),
            }),
            &["sql"],
        ),
        tool(
            BUDGET,
            "Show the budget",
            "Shows the limits of the API key: requests used and remaining. Sends no request.",
            json!({}),
            &[],
        ),
    ]
}

fn tool(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    properties: Value,
    required: &[&str],
) -> Tool {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), properties);
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    let annotations = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(true);
    Tool::new(name, description, Arc::new(schema)).with_title(title).with_annotations(annotations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    fn limits() -> McpLimits {
        McpLimits { max_requests: 50, max_rows: 1_000, ..McpLimits::default() }
    }

    fn call(name: &str, arguments: Value) -> Result<Call, Misread> {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        Call::read(name, arguments, &limits(), true)
    }

    #[test]
    fn each_tool_takes_what_its_schema_says() {
        for tool in all(&limits(), true) {
            let properties = tool.input_schema["properties"].as_object().expect("an object").clone();
            let arguments = properties.iter().map(|(name, schema)| {
                let value = match schema["type"].as_str() {
                    Some("string") => json!("x"),
                    Some("array") => json!(["x"]),
                    _ => json!(1),
                };
                (name.clone(), value)
            });
            let arguments: JsonObject = arguments.collect();
            Call::read(&tool.name, arguments.clone(), &limits(), true).expect("all arguments");
            let required = tool.input_schema.get("required").map_or(0, |names| names.as_array().map_or(0, Vec::len));
            for missing in arguments.keys() {
                let mut fewer = arguments.clone();
                fewer.remove(missing);
                let read = Call::read(&tool.name, fewer, &limits(), true);
                let needed = tool.input_schema.get("required").and_then(Value::as_array);
                let optional = needed.is_none_or(|names| !names.contains(&json!(missing)));
                assert_eq!(read.is_ok(), optional, "{} without {missing}", tool.name);
            }
            assert!(required <= arguments.len());
        }
    }

    #[test]
    fn numbers_beyond_the_limits_are_refused() {
        let asked = call(QUERY, json!({ "sql": "SELECT 1" }));
        assert_eq!(asked, Ok(Call::Query(Query { sql: "SELECT 1".to_owned(), max_requests: 20, max_rows: 100 })));
        let asked = call(QUERY, json!({ "sql": "SELECT 1", "max_rows": 20.0, "max_requests": 7 }));
        assert_eq!(asked, Ok(Call::Query(Query { sql: "SELECT 1".to_owned(), max_requests: 7, max_rows: 20 })));
        let refused = [
            (json!({ "sql": "SELECT 1", "max_requests": 51 }), "max_requests is 51, but this server allows at most 50"),
            (json!({ "sql": "SELECT 1", "max_rows": 0 }), "max_rows must be at least 1"),
            (json!({ "sql": "SELECT 1", "limit": 5 }), "unknown field `limit`, expected one of `sql`, `max_requests`"),
            (json!({ "max_rows": 5 }), "missing field `sql`"),
            (json!({ "sql": "SELECT 1", "max_rows": -1 }), "invalid value"),
            (json!({ "sql": "SELECT 1", "max_rows": 1.5 }), "invalid value: 1.5, expected a whole number"),
        ];
        each(refused, |(arguments, text)| {
            let Err(Misread::Arguments(line)) = call(QUERY, arguments) else { panic!("{text}") };
            assert!(line.contains(text), "{line}");
        });
        for name in OF_PROFILES {
            let read = Call::read(name, JsonObject::new(), &limits(), false);
            assert!(
                matches!(read, Err(Misread::Tool(line)) if !line.contains(name) || line.contains(&format!("`{name}`")))
            );
        }
        assert!(matches!(call("drop", json!({})), Err(Misread::Tool(line)) if line.contains("list_tables")));
    }
}
