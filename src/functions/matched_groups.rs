//! `regexp_match` with NULL for a group that took no part in the match, and for NULL as flags, as in PostgreSQL. The engine leaves the
//! group out, so that those behind it take its place, and matches without flags.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use regex::Regex;

/// The groups of the first match in each of `rows` texts, or the whole match if the pattern has no groups. `None` for arguments that
/// are left to the engine.
///
/// # Errors
/// A pattern that does not compile.
pub(super) fn matched_groups(args: &ScalarFunctionArgs, rows: usize) -> Result<Option<ArrayRef>> {
    let to = args.return_field.data_type();
    if !matches!(to, DataType::List(_)) {
        return Ok(None);
    }
    let text = |arg: &ColumnarValue| -> Result<ArrayRef> { Ok(cast(&arg.to_array(rows)?, &DataType::Utf8)?) };
    let texts = args.args.iter().map(text).collect::<Result<Vec<_>>>()?;
    let texts: Vec<_> = texts.iter().map(|texts| texts.as_string::<i32>()).collect();
    let (values, patterns, flags) = match texts.as_slice() {
        [values, patterns] => (values, patterns, None),
        [values, patterns, flags] => (values, patterns, Some(flags)),
        _ => return Ok(None),
    };
    // The engine refuses it.
    if flags.is_some_and(|flags| flags.iter().any(|flags| flags == Some("g"))) {
        return Ok(None);
    }
    let mut groups = ListBuilder::new(StringBuilder::new());
    let mut last: Option<Regex> = None;
    for row in 0..rows {
        if values.is_null(row) || patterns.is_null(row) || flags.is_some_and(|flags| flags.is_null(row)) {
            groups.append_null();
            continue;
        }
        let pattern = match flags {
            Some(flags) => format!("(?{}){}", flags.value(row), patterns.value(row)),
            None => patterns.value(row).to_owned(),
        };
        let regex = match last.take().filter(|last| last.as_str() == pattern) {
            Some(last) => last,
            None => Regex::new(&pattern)
                .map_err(|error| ArrowError::ComputeError(format!("Regular expression did not compile: {error:?}")))?,
        };
        match regex.captures(values.value(row)) {
            Some(found) => {
                let first = usize::from(found.len() > 1);
                for group in found.iter().skip(first) {
                    groups.values().append_option(group.map(|group| group.as_str()));
                }
                groups.append(true);
            }
            None => groups.append(false),
        }
        last = Some(regex);
    }
    let groups: ArrayRef = Arc::new(groups.finish());
    Ok(Some(cast(&groups, to)?))
}
