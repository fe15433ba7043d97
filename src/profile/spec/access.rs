//! `[auth]`, `[list]` and `[search]`: authentication, and the paths of the endpoints.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Checks, Evidence};

/// Authentication of requests (API description, section 5).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Header name.
    pub header: String,
    /// Header value with one placeholder: `{key}`, or `{base64}` for the base64 encoding of `<key>:` (RFC 7617).
    pub format: String,
}

impl Auth {
    pub(super) fn check(&self, checks: &mut Checks) {
        let placeholders = self.format.matches("{key}").count() + self.format.matches("{base64}").count();
        checks.expect(placeholders == 1, "auth.format", "expected exactly one of {key} and {base64}");
        let header = http::HeaderName::from_str(&self.header).is_ok();
        checks.expect(header, "auth.header", format!("expected a header name, found `{}`", self.header));
    }
}

/// An endpoint, relative to the base URL (API description, section 4).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Path below the base URL.
    pub path: String,
}

/// Search endpoint (API description, section 4.2).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchEndpoint {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Path below the base URL.
    pub path: String,
    /// Parameter that names the saved search.
    pub aid: String,
}
