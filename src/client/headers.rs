//! Headers that a profile reads as part of a response.
//!
//! ```text
//! X-Total-Count: 231      ──▶   {"body": [{"id": "m1"}, …], "headers": {"X-Total-Count": 231}}
//! [{"id": "m1"}, …]
//! ```
//!
//! Decoders know bodies only. A header that has a place in the body is found by a pointer like any other value. Passing headers
//! to the decoders was rejected: responses are kept, shared and decoded again as bodies.

use ::http::HeaderMap;
use ::http::header::CONTENT_RANGE;
use bytes::Bytes;
use serde_json::{Map, Value};

/// A body with these headers beside it. A header that the response lacks is not there.
pub(crate) fn with_headers(names: &[String], headers: &HeaderMap, body: &[u8]) -> Bytes {
    let read = names.iter().filter_map(|name| Some((name.clone(), value_of(headers, name)?)));
    let read = Value::Object(read.collect::<Map<_, _>>()).to_string();
    // Some services prepend a byte order mark.
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    [&b"{\"body\":"[..], body, b",\"headers\":", read.as_bytes(), b"}"].concat().into()
}

/// The value of a header: a number, or a text.
pub(crate) fn value_of(headers: &HeaderMap, name: &str) -> Option<Value> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    let range = name.eq_ignore_ascii_case(CONTENT_RANGE.as_str()).then(|| text.rsplit_once('/')).flatten();
    let text = range.map_or(text, |(_, total)| total);
    Some(text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from))
}

#[cfg(test)]
mod tests {
    use ::http::HeaderName;

    use super::*;

    #[test]
    fn declared_headers_stand_beside_the_body() {
        let pairs =
            [("x-total-count", "231"), ("content-range", "items 0-9/231"), ("x-next", "a\"b"), ("x-other", "1")];
        let headers: HeaderMap = pairs
            .into_iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("a value")))
            .collect();
        let names = ["X-Total-Count", "Content-Range", "X-Next", "X-Absent"].map(str::to_owned);
        for body in ["[1]", "\u{feff}[1]"] {
            let whole = with_headers(&names, &headers, body.as_bytes());
            let read: Value = serde_json::from_slice(&whole).expect("JSON");
            let expected = serde_json::json!({
                "body": [1], "headers": {"X-Total-Count": 231, "Content-Range": 231, "X-Next": "a\"b"},
            });
            assert_eq!(read, expected);
        }
        let truncated = with_headers(&names, &headers, b"[1");
        assert!(serde_json::from_slice::<Value>(&truncated).is_err(), "a truncated body stays one");
    }
}
