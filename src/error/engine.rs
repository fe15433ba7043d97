//! Errors of the SQL engine, in one line for people.
//!
//! The engine's messages are written for its developers: they are prefixed by the layer that raised them, ask users to file
//! bugs, and suggest functions by spelling alone. Known messages are replaced; an unknown message is passed on without its
//! prefix.

use std::io;

use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;

use super::mistyped::{mistyped, uncast, wrong_types};
use super::synonyms::meant_column;
use super::{Error, ErrorKind, Phrase, between, chain, memory_advice, one_line};

/// Returns our own error in an error of the engine, or one of kind [`ErrorKind::Query`] that describes the engine's.
pub(crate) fn own_or_query(error: &DataFusionError) -> Error {
    let own = Error::find(error).cloned().or_else(|| out_of_space(error));
    own.unwrap_or_else(|| Error::new(ErrorKind::Query, describe(error)))
}

/// The error of this crate for temporary files that exceed their limit, or fill a disk.
pub(crate) fn out_of_space(error: &DataFusionError) -> Option<Error> {
    let error = chain(error).find_map(|error| error.downcast_ref::<io::Error>())?;
    let text = error.to_string();
    let limit =
        between(&text, "used disk space during the spilling process has exceeded the allowable limit of ", ". ");
    let (message, advice) = match limit {
        Some(limit) => (
            format!("the query needs more space for temporary files than all queries may use together: {limit}"),
            memory_advice(),
        ),
        None if error.kind() == io::ErrorKind::StorageFull => (
            "no space is left on the disk that the query writes to".to_owned(),
            Phrase::from("select fewer rows or columns, or aggregate; or free space on the disk"),
        ),
        None => return None,
    };
    Some(Error::new(ErrorKind::Memory, message).advice(advice))
}

/// Returns one line for people, with its terms: our own errors unchanged, and known errors of the engine in our words.
pub fn line_of(error: &DataFusionError) -> Phrase {
    if let Some(own) = Error::find(error) {
        return own.line();
    }
    match out_of_space(error) {
        Some(own) => own.line(),
        None => of_engine(error).into(),
    }
}

/// As [`line_of`], in the words of SQL and of the library.
pub fn describe(error: &DataFusionError) -> String {
    line_of(error).to_string()
}

fn of_engine(error: &DataFusionError) -> String {
    let text = match error.find_root() {
        DataFusionError::SQL(parser, _) => {
            let parser = parser.to_string();
            match parser.contains("recursion limit exceeded") {
                true => "the statement is nested too deeply".to_owned(),
                false => format!("syntax error: {parser}"),
            }
        }
        DataFusionError::SchemaError(error, _) => match error.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } => unknown_column(field, valid_fields),
            SchemaError::AmbiguousReference { field } if field.relation.is_none() => ambiguous_column(&field.name),
            SchemaError::AmbiguousReference { field } => {
                format!("two columns are called `{}`; give one of them another name with AS", field.name)
            }
            other => other.to_string(),
        },
        DataFusionError::Plan(text) | DataFusionError::Execution(text) | DataFusionError::NotImplemented(text) => {
            translated(text)
        }
        DataFusionError::Internal(text) => match wrong_types(text) {
            Some(line) => line,
            None => format!("internal error of the SQL engine: {}", without_plea(text)),
        },
        DataFusionError::ArrowError(error, _) => arrow(&error.to_string()),
        DataFusionError::Configuration(text) => unknown_setting(text),
        other => other.strip_backtrace(),
    };
    if text.contains("require unique expression names") {
        return "several results of a subquery have the same name; give them different names with AS".to_owned();
    }
    if text.contains("__grouping_id") {
        return "grouping() is not supported here; compute it in a subquery, and use its column".to_owned();
    }
    if INTERNAL.iter().any(|name| text.contains(name)) {
        return "this correlated subquery is not supported; write it as a join".to_owned();
    }
    if text.contains("does not support logical expression WindowFunction") {
        return "a window function is not allowed here; compute it in a subquery, and use its column".to_owned();
    }
    if text.contains("Unnest should be rewritten") {
        return "unnest is not supported here; use it in FROM".to_owned();
    }
    // The engine prints its plan.
    if text.contains("does not satisfy order requirements") {
        return "this order is not supported; compute its expressions in a subquery, and order by their columns"
            .to_owned();
    }
    if text.contains("Conflicting ordering requirements") {
        return "aggregate functions of one query have different orders; write nth_value(x, n ORDER BY y) as \
                (array_agg(x ORDER BY y))[n]"
            .to_owned();
    }
    if let Some((_, call)) = text.split_once("sliding accumulator because `retract_batch` is not implemented: ") {
        return unmovable(call.split('(').next().unwrap_or(call));
    }
    match invalid_pattern(&text) {
        Some(reason) => format!("{INVALID_PATTERN}: {reason}"),
        None => one_line(&text.replace("sql parser error: ", "")),
    }
}

/// Beginnings of names that plans have for the parts of correlated subqueries. No message for people contains them.
const INTERNAL: [&str; 10] = [
    "__always_true",
    "__compared_",
    "__correlated_sq",
    "__inner_",
    "__key_",
    "__keyed",
    "__present_",
    "__scalar_sq",
    "__unnest_placeholder",
    "outer_ref(",
];

/// The beginning of the message about a regular expression that cannot be compiled.
pub(crate) const INVALID_PATTERN: &str = "invalid regular expression";

/// The reason why a regular expression is invalid, from a message of the crate `regex`, whose last line has it, or of the engine.
fn invalid_pattern(text: &str) -> Option<&str> {
    if let Some((_, message)) = text.split_once("regex parse error:") {
        let (_, reason) = message.rsplit_once("error: ")?;
        return reason.lines().next().map(|line| line.split("\\n").next().unwrap_or(line).trim());
    }
    if text.contains("Compiled regex exceeds size limit") || text.contains("did not compile: CompiledTooBig(") {
        return Some("too large; use smaller numbers of repetitions");
    }
    // Functions that count or find matches say the pattern, without a reason.
    let (_, pattern) = text.split_once("Regular expression did not compile: ")?;
    pattern.lines().next()
}

/// The message about an aggregate function over a moving frame.
fn unmovable(function: &str) -> String {
    let form = match function {
        "string_agg" => "write array_to_string(array_agg(x) OVER (…), ',')",
        _ => "begin the frame with UNBOUNDED PRECEDING",
    };
    format!("`{function}` is not supported over a frame whose start moves; {form}")
}

/// The message about a column that several relations have.
fn ambiguous_column(name: &str) -> String {
    format!("column `{name}` is ambiguous; write the relation before it, as in `t.{name}`")
}

/// A message of planning or execution in our words.
fn translated(text: &str) -> String {
    let text = without_plea(text.split("\n\nbacktrace:").next().unwrap_or(text));
    let known = unread(text).or_else(|| mistyped(text)).or_else(|| refused(text)).or_else(|| unplanned(text));
    known.or_else(|| unknown_name(text)).unwrap_or_else(|| text.to_owned())
}

/// The message for syntax that the engine does not read.
fn unread(text: &str) -> Option<String> {
    if text == "TOP" {
        return Some("TOP is not supported; use LIMIT".to_owned());
    }
    // The engine prints its syntax tree.
    if text.contains("span: Span(") && !text.starts_with("Dot access") {
        let head = text.split('{').next().unwrap_or_default().trim_end();
        return Some(match head.strip_prefix("Unsupported expr") {
            Some(_) => "unsupported expression; a string needs single quotes".to_owned(),
            None if head.starts_with("Unsupported ast node") => "this expression is not supported".to_owned(),
            None => head.rsplit_once(' ').map_or(head, |(message, _)| message).to_owned(),
        });
    }
    // The engine prints the literal with the name of its type in the code.
    if text.starts_with("Unsupported Value ") || text.starts_with("Unsupported value ") {
        return Some("this form of a literal is not supported; write texts as 'text', and bytes as X'00ff'".to_owned());
    }
    if text.starts_with("Invalid HexStringLiteral") {
        return Some("invalid bytes; write two hexadecimal digits for each, as in X'00ff'".to_owned());
    }
    None
}

/// The message for a statement or a type that the engine does not have.
fn refused(text: &str) -> Option<String> {
    if text.starts_with("SET variant not implemented yet") {
        return Some("this form of SET is not supported; write SET name = value".to_owned());
    }
    if let Some(statement) = text.strip_prefix("Unsupported SQL statement: ") {
        return Some(unsupported(statement));
    }
    if let Some(name) = text.strip_prefix("Unsupported SQL type ") {
        return Some(unsupported_type(name));
    }
    if let Some(name) = between(text, "variable [\"", "\"] has no type information") {
        return Some(format!("variables such as {name} are not supported; write the value"));
    }
    let writes = text.starts_with("Insert into not implemented")
        || ["INSERT", "DELETE", "UPDATE", "TRUNCATE", "MERGE INTO"]
            .iter()
            .any(|verb| text.strip_prefix(verb).is_some_and(|rest| rest.starts_with(" not supported for")));
    if writes {
        return Some("this table is read-only".to_owned());
    }
    None
}

/// The message for VALUES and subqueries that the engine cannot plan.
fn unplanned(text: &str) -> Option<String> {
    if let Some(lengths) = text.strip_prefix("Inconsistent data length across values list: got ")
        && let Some((got, rest)) = lengths.split_once(" values in row ")
        && let Some((_, expected)) = rest.split_once(" but expected ")
    {
        return Some(format!("a row of VALUES has {got} instead of {expected} values"));
    }
    if text.contains("OuterReferenceColumn(")
        || text.contains("Physical plan does not support logical expression InSubquery")
        || text.contains("Physical plan does not support logical expression Exists")
        || text.starts_with("Correlated scalar subquery can only be used in")
        || text.contains("Physical plan does not support logical expression ScalarSubquery")
    {
        return Some("this correlated subquery is not supported; write it as a join".to_owned());
    }
    if text.starts_with("Correlated scalar subquery must be aggregated")
        || text.starts_with("A GROUP BY clause in a scalar correlated subquery")
    {
        return Some(
            "this correlated subquery may have several rows; select an aggregate such as max(x), without GROUP BY"
                .to_owned(),
        );
    }
    if text.starts_with("There is only support Literal types for field at idx") {
        return Some(
            "the number of ntile, and the offset of lag and lead, must be the same in all rows; to find another row, join by \
             row_number() OVER (…)"
                .to_owned(),
        );
    }
    // `Inconsistent data type across values list at row 1 column 0. Was Date32 but found Utf8`
    if text.starts_with("Inconsistent data type across values list") {
        let place = between(text, "column ", ".").and_then(|column| column.trim().parse::<usize>().ok());
        let column = place.map_or_else(String::new, |place| format!(" {}", place + 1));
        return Some(format!(
            "the values of column{column} of VALUES have no common type; write the type, such as DATE '2026-05-01'"
        ));
    }
    None
}

/// The message for a function or a table that does not exist.
fn unknown_name(text: &str) -> Option<String> {
    if let Some(name) = between(text, "Invalid function '", "'") {
        return Some(format!("unknown function `{name}`"));
    }
    if let Some(name) = between(text, "table '", "' not found").or_else(|| between(text, "No table named '", "'")) {
        return Some(format!("unknown table `{}`", name.trim_start_matches("savedsearch.v4.")));
    }
    None
}

/// The message for a statement that the engine does not know.
fn unsupported(statement: &str) -> String {
    let is_keyword = |word: &&str| word.chars().all(|c| c.is_ascii_uppercase());
    let words: Vec<&str> = statement.split_whitespace().take_while(is_keyword).take(2).collect();
    let changes =
        ["ALTER", "CREATE", "DELETE", "DROP", "GRANT", "INSERT", "MERGE", "RENAME", "REVOKE", "TRUNCATE", "UPDATE"];
    let advice = match words.first() {
        Some(&"USE") => "; write connection and schema before the table, as in savedsearch.v4.mentions",
        Some(&"SHOW") => "; SHOW TABLES lists the tables, SHOW ALL the settings",
        Some(verb) if changes.contains(verb) => "; the tables are read-only",
        _ => "",
    };
    match words.as_slice() {
        [] => "this statement is not supported".to_owned(),
        words => format!("{} is not supported{advice}", words.join(" ")),
    }
}

/// The message for a type that the engine does not know.
fn unsupported_type(name: &str) -> String {
    let upper = name.to_uppercase();
    let instead = match upper.split(['(', ' ']).next().unwrap_or_default() {
        "NUMBER" | "MONEY" | "SMALLMONEY" => "; write decimal(18, 2) or double",
        "DATETIME" | "DATETIME2" | "SMALLDATETIME" => "; write timestamp",
        "JSON" | "JSONB" | "VARIANT" => "; JSON is text here: x->>'key' reads it",
        "UUID" | "UNIQUEIDENTIFIER" | "CLOB" | "NCLOB" => "; write varchar",
        _ => "",
    };
    format!("the type {upper} is not supported{instead}")
}

/// A message of a computation without the layers that it passed.
fn arrow(text: &str) -> String {
    let text = text.strip_prefix("Arrow error: ").unwrap_or(text);
    if let Some(value) = between(text, "Error parsing timestamp from '", "'") {
        if text.ends_with("error computing timezone offset") {
            return format!("the local time '{value}' does not exist in its time zone, or exists twice");
        }
        return format!("invalid timestamp '{value}'; expected a form such as '2026-05-01' or '2026-05-01T12:00:00Z'");
    }
    if let Some(value) = between(text, "Cannot cast string '", "' to value of Date32 type") {
        return format!("invalid date '{value}'; expected a day of the calendar, such as '2026-05-01'");
    }
    match text {
        "Divide by zero error" => "division by zero".to_owned(),
        "Cast error: Cannot cast timezone to different timezone" => {
            "a local time does not exist in its time zone, or exists twice".to_owned()
        }
        _ => match text.split_once(" error: ") {
            Some(("Cast" | "Compute" | "Parser" | "Invalid argument" | "Csv" | "Json", rest)) => {
                uncast(rest).unwrap_or_else(|| rest.to_owned())
            }
            _ => text.to_owned(),
        },
    }
}

/// A message about settings.
fn unknown_setting(text: &str) -> String {
    match between(text, "could not find config namespace for key \"", "\"") {
        Some("all") => "RESET ALL is not supported; write RESET name".to_owned(),
        Some(name) => format!("unknown setting `{name}`; SHOW ALL lists the settings"),
        None => text.to_owned(),
    }
}

/// A message without the request to report it.
fn without_plea(text: &str) -> &str {
    let end = text.find("This issue was likely caused by a bug in DataFusion's code").unwrap_or(text.len());
    text[..end].trim_end().trim_end_matches('.')
}

/// Advice for a name that was meant to be a value.
pub(crate) fn value_in_quotes(name: &str) -> String {
    format!("double quotes enclose names; for a value write '{name}'")
}

/// The message for an unknown column. Suggests a similar column, or single quotes if the name was meant to be a value.
fn unknown_column(field: &Column, valid: &[Column]) -> String {
    let mut known: Vec<&str> = valid.iter().map(Column::name).collect();
    known.dedup();
    let name = field.name();
    let plain =
        name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit());
    let unnests = known.iter().any(|name| name.starts_with("UNNEST("));
    let advice = match meant_column(name, &known) {
        Some(near) => format!("did you mean {near}?"),
        None if unnests => {
            "a query with unnest sorts by what it selects; select the column as well, or use unnest in FROM".to_owned()
        }
        None if field.relation.is_none() && (!plain || name.chars().any(char::is_uppercase)) => value_in_quotes(name),
        None if known.is_empty() && field.relation.is_some() => {
            "the query has no FROM clause, a subquery compares the column with an operator other than `=`, or a query with \
             unnest sorts by a column that it does not select"
                .to_owned()
        }
        None if known.is_empty() => "the query has no FROM clause".to_owned(),
        None => format!("available: {}", known.join(", ")),
    };
    format!("unknown column `{}`; {advice}", field.flat_name().replace('"', ""))
}

#[cfg(test)]
mod tests {
    use datafusion::execution::disk_manager::DiskManager;
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::cases::{each, each_async};

    /// The engine itself writes more than its temporary files may have.
    #[test]
    fn temporary_files_beyond_their_limit_are_an_error_about_memory() {
        let manager = DiskManager::builder().with_max_temp_directory_size(100).build().expect("a manager");
        let file = std::sync::Arc::new(manager).create_tmp_file("a test").expect("a file");
        let mut writer = file.open_writer().expect("a writer");
        let exceeded = io::Write::write_all(&mut writer, &[0; 1_000]).expect_err("too much");
        let full = io::Error::new(io::ErrorKind::StorageFull, "no space left on device");
        let limited = "more space for temporary files than all queries may use together: 100.0 B; select fewer rows or columns, \
                       or aggregate; the session's `RuntimeEnv` sets the limit, `Limits::memory_mib` that of a server";
        for (error, told) in [(exceeded, limited), (full, "no space is left on the disk")] {
            // As the writer of Arrow's files passes it on.
            let error = DataFusionError::from(arrow::error::ArrowError::from(error)).context("while sorting");
            let own = own_or_query(&error);
            assert_eq!(own.kind(), ErrorKind::Memory, "{own}");
            assert!(own.remedy().is_some() && describe(&error).contains(told), "{own}");
            assert_eq!(describe(&error), own.to_string());
        }
        let other = DataFusionError::IoError(io::Error::other("broken"));
        assert_eq!(own_or_query(&other).kind(), ErrorKind::Query);
    }

    /// The engine itself refuses them.
    #[tokio::test]
    async fn numbers_of_window_functions_that_differ_between_rows_are_named() {
        let context = SessionContext::new();
        each_async(["ntile(x)", "lag(x, x)", "lead(x, x, 0)"], async |call| {
            let frame = context.sql(&format!("SELECT {call} OVER (ORDER BY x) FROM (VALUES (1), (2)) v(x)")).await;
            let error = match frame {
                Ok(frame) => frame.collect().await.expect_err("an argument that differs"),
                Err(error) => error,
            };
            assert!(describe(&error).contains("must be the same in all rows"), "{call}: {error}");
        })
        .await;
    }

    /// The engine itself reads them.
    #[tokio::test]
    async fn literals_that_the_engine_does_not_know_are_not_repeated() {
        let context = SessionContext::new();
        let long = "0041".repeat(5_000);
        let cases = [
            format!("SELECT N'{long}'"),
            format!("SELECT B'{long}'"),
            format!("SELECT U&'{long}'"),
            format!("SELECT X'{long}z'"),
            format!("SET datafusion.execution.batch_size = N'{long}'"),
        ];
        each_async(cases, async |sql| {
            let error = context.sql(&sql).await.expect_err("an unknown literal");
            let line = describe(&error);
            assert!(!line.contains("Literal") && line.len() < 300, "{}: {line}", &sql[..12]);
        })
        .await;
    }

    #[test]
    fn known_messages_of_the_engine_are_translated() {
        let cases = [
            (
                DataFusionError::NotImplemented("Unsupported SQL statement: GRANT ALL ON t TO me".into()),
                "GRANT ALL is not supported; the tables are read-only",
            ),
            (
                DataFusionError::NotImplemented("Unsupported SQL statement: USE v4".into()),
                "USE is not supported; write connection and schema before the table, as in savedsearch.v4.mentions",
            ),
            (
                DataFusionError::NotImplemented("Unsupported SQL statement: SHOW VIEWS".into()),
                "SHOW VIEWS is not supported; SHOW TABLES lists the tables, SHOW ALL the settings",
            ),
            (DataFusionError::NotImplemented("Unsupported SQL statement: VACUUM".into()), "VACUUM is not supported"),
            (DataFusionError::NotImplemented("DELETE not supported for Base table".into()), "this table is read-only"),
            (
                DataFusionError::Plan("Invalid function 'coutn'.\nDid you mean 'cot'?".into()),
                "unknown function `coutn`",
            ),
            (DataFusionError::Plan("table 'savedsearch.v4.mentons' not found".into()), "unknown table `mentons`"),
            (
                DataFusionError::Internal(
                    "no such node.\nThis issue was likely caused by a bug in DataFusion's code. Please report".into(),
                ),
                "internal error of the SQL engine: no such node",
            ),
            (DataFusionError::from(arrow::error::ArrowError::DivideByZero), "division by zero"),
            (
                DataFusionError::from(arrow::error::ArrowError::CastError(
                    "Casting from Struct(\"c0\": Int64, \"c1\": Int64) to Utf8 not supported".into(),
                )),
                "a row cannot be cast to Utf8; cast its members",
            ),
            (
                DataFusionError::NotImplemented("Dot access not supported for non-string expr: Function { span: Span(1) }".into()),
                "(x).member reads a member of a column or a table; for other rows, write x['member']",
            ),
            (
                DataFusionError::from(arrow::error::ArrowError::ParseError(
                    "Error parsing timestamp from '2026-03-29': error computing timezone offset".into(),
                )),
                "the local time '2026-03-29' does not exist in its time zone, or exists twice",
            ),
            (
                DataFusionError::NotImplemented("Physical plan does not support logical expression OuterReferenceColumn(Field { name: \"aid\" })".into()),
                "this correlated subquery is not supported; write it as a join",
            ),
            (
                DataFusionError::Plan("Inconsistent data length across values list: got 1 values in row 0 but expected 2".into()),
                "a row of VALUES has 1 instead of 2 values",
            ),
            (DataFusionError::NotImplemented("TOP".into()), "TOP is not supported; use LIMIT"),
            (
                DataFusionError::Plan("Unsupported expr BinaryOp { left: Identifier(Ident { value: \"E\", span: Span(1) }) }".into()),
                "unsupported expression; a string needs single quotes",
            ),
            (
                DataFusionError::Plan("Internal error: Function 'sum' failed to match any signature, errors: x.\nThis issue was likely caused by a bug in DataFusion's code".into()),
                "wrong types of arguments for `sum`",
            ),
            (
                DataFusionError::Plan("Cannot infer common argument type for comparison operation Timestamp(µs, \"UTC\") > Int64".into()),
                "cannot compare Timestamp(µs, \"UTC\") > Int64; write dates in single quotes: '2026-05-01'",
            ),
            (
                DataFusionError::Internal("Failed to coerce types Utf8 and Boolean in BETWEEN expression.\nThis issue".into()),
                "BETWEEN cannot compare Utf8 and Boolean",
            ),
            (
                DataFusionError::Plan("Failed to coerce then (Int64, Date32) and else (None) to common types in CASE WHEN expression".into()),
                "the results of CASE have no common type: Int64, Date32",
            ),
            (
                DataFusionError::Plan("There isn't a common type to coerce Timestamp(µs) and Utf8 in LIKE expression".into()),
                "LIKE compares text, not Timestamp(µs) and Utf8; cast the operands: x::varchar",
            ),
            (
                DataFusionError::Plan("array_has_any does not support type Int64. No function matches".into()),
                "`array_has_any` takes an array, such as ARRAY['a', 'b']",
            ),
            (
                DataFusionError::Plan("array_sum does not support type List(Utf8)".into()),
                "array_sum does not support type List(Utf8)",
            ),
            (
                DataFusionError::NotImplemented("Unsupported SQL type number(10)".into()),
                "the type NUMBER(10) is not supported; write decimal(18, 2) or double",
            ),
            (
                DataFusionError::NotImplemented("Unsupported SQL type DATETIME".into()),
                "the type DATETIME is not supported; write timestamp",
            ),
            (DataFusionError::NotImplemented("Unsupported SQL type XML".into()), "the type XML is not supported"),
            (
                DataFusionError::Plan("variable [\"@a\"] has no type information".into()),
                "variables such as @a are not supported; write the value",
            ),
            (
                DataFusionError::NotImplemented("Unsupported ast node in sqltorel: Lambda { span: Span(1) }".into()),
                "this expression is not supported",
            ),
            (DataFusionError::Execution("as it is".into()), "as it is"),
        ];
        each(cases, |(error, expected)| {
            assert_eq!(describe(&error), expected);
        });
    }
}
