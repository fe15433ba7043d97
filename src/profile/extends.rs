//! Profiles that extend a built-in one: `extends = "v4"` and the keys that differ.

use toml::{Table, Value};

use super::document::Profile;
use crate::error::nearest;

/// Returns the text of the complete profile: the document itself or, if it extends a built-in profile, the two merged.
///
/// # Errors
/// A description of the expected value if `extends` names no built-in profile.
pub(super) fn extended(text: &str) -> Result<String, String> {
    // The caller reports invalid TOML.
    let Ok(document) = text.parse::<Table>() else { return Ok(text.to_owned()) };
    let Some(base) = document.get("extends") else { return Ok(text.to_owned()) };
    let known = || Profile::builtins().collect::<Vec<_>>();
    let Some(name) = base.as_str() else { return Err(format!("expected one of {}", known().join(", "))) };
    let base = Profile::builtin_document(name).and_then(|text| text.parse::<Table>().ok()).ok_or_else(|| {
        let near = nearest(name, known()).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        format!("expected one of {}, found `{name}`{near}", known().join(", "))
    })?;
    toml::to_string(&merged(without_total(base, &document), document)).map_err(|error| error.to_string())
}

/// The base without the place of its total, if the document says that there is none.
fn without_total(mut base: Table, document: &Table) -> Table {
    let trust = document.get("total").and_then(|total| total.get("trust")).and_then(Value::as_str);
    if let (Some("absent"), Some(Value::Table(total))) = (trust, base.get_mut("total")) {
        total.remove("at");
        total.remove("relation");
    }
    base
}

/// Merges `over` into `base`, recursively for tables; other values are replaced.
fn merged(mut base: Table, over: Table) -> Table {
    for (key, value) in over {
        let value = match (base.remove(&key), value) {
            (Some(Value::Table(base)), Value::Table(over)) => Value::Table(merged(base, over)),
            (_, value) => value,
        };
        base.insert(key, value);
    }
    base
}
