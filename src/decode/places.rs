//! Pointers of the values in a JSON text, without building the document.

use super::json::Json;
use crate::error::Result;

/// Maximum depth of objects: what is deeper counts as one value.
const DEPTH: usize = 64;

/// Calls `found` with the JSON pointer (RFC 6901) of each value that is not an object. Arrays count as one value. For
/// invalid JSON, the values up to the error are reported.
pub(super) fn each(text: &str, mut found: impl FnMut(&str)) {
    // Invalid JSON was rejected before.
    let _ = below(&mut Json::new(text), &mut String::new(), DEPTH, &mut found);
}

fn below(json: &mut Json<'_>, at: &mut String, depth: usize, found: &mut impl FnMut(&str)) -> Result<()> {
    if json.peek()? != b'{' || depth == 0 {
        json.value()?;
        found(at);
        return Ok(());
    }
    json.enter();
    let mut first = true;
    while let Some(name) = json.member(&mut first)? {
        let length = at.len();
        // A name with an invalid escape is shown as it was written.
        let name = name.unquoted().unwrap_or_else(|_| name.inner().into());
        at.push('/');
        at.push_str(&name.replace('~', "~0").replace('/', "~1"));
        below(json, at, depth - 1, found)?;
        at.truncate(length);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        each(text, |at| found.push(at.to_owned()));
        found
    }

    #[test]
    fn values_below_objects_are_found_once_each() {
        let text = r#"{"a":1,"b":{"c/d":[{"x":1}],"e~":null,"f":{}},"g":"s"}"#;
        assert_eq!(places(text), ["/a", "/b/c~1d", "/b/e~0", "/g"]);
    }

    #[test]
    fn no_value_hides_those_behind_it() {
        assert_eq!(places(r#"{"x":"\ud800","y":1e400,"\ud800":1,"z":2}"#), ["/x", "/y", "/\\ud800", "/z"]);
        let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
        assert_eq!(places(&format!("{{\"d\":{deep},\"e\":1}}")).len(), 2);
    }
}
