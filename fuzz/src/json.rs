//! Members of a record in an envelope that is right: values, escapes, numbers and nesting.

use super::envelope;

const BEFORE: &[u8] =
    br#"{"search":{"aid":"7"},"window":{"from":"2026-06-24T12:00:00Z","to":"2026-07-01T12:00:00Z","timezone":"UTC"},
"mentions":{"total":1,"totalRelation":"eq","from":0,"items":[{"id":"1","publishedAt":"2026-07-01T00:00:00Z""#;
const AFTER: &[u8] = b"}]}}";

/// Decodes a page whose only record has these bytes after its first members, as [`envelope::target`] does.
pub fn target(data: &[u8]) {
    envelope::target(&[BEFORE, data, AFTER].concat());
}
