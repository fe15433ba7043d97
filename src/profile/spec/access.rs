//! `[auth]`, `[list]` and `[search]`: authentication, and the paths of the endpoints.

use std::collections::BTreeMap;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::column::Pointer;
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

/// List endpoint (API description, section 4.1).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListEndpoint {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Path below the base URL.
    pub path: String,
    /// Parameters that are sent with each request.
    #[serde(default)]
    pub with: BTreeMap<String, String>,
    /// Pages of the list. Absent: one response contains all entries; if it says that there are more, that is an error.
    pub pages: Option<ListPages>,
}

impl ListEndpoint {
    pub(super) fn check(&self, checks: &mut Checks) {
        let Some(pages) = &self.pages else { return };
        checks.expect(
            (pages.unit == ListUnit::Cursor) == pages.next.is_some(),
            "list.pages",
            "expected `next` if and only if unit = \"cursor\"",
        );
        checks.expect(pages.first <= 1, "list.pages", format!("expected `first` to be 0 or 1, found {}", pages.first));
    }
}

/// Requests for the pages of the list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListPages {
    /// Parameter for the start of a page.
    pub parameter: String,
    /// Unit of the start.
    pub unit: ListUnit,
    /// Number of the first row or page: 0 or 1.
    #[serde(default)]
    pub first: u64,
    /// Pointer to the value of the parameter for the next page, or to a link that contains it. Absent, or NULL, on the last
    /// page. With unit = "cursor" only.
    pub next: Option<Pointer>,
    /// Page size, if it is sent.
    pub size: Option<ListSize>,
}

impl ListPages {
    /// Parameters of the page that begins at `place`, in the unit and counted from 0, or at a cursor or link.
    pub fn parameters(&self, place: u64, next: Option<&str>) -> Vec<(String, String)> {
        let size = self.size.iter().map(|size| (size.parameter.clone(), size.rows.to_string()));
        match (self.unit, next) {
            (ListUnit::Cursor, Some(next)) => match next.split_once('?') {
                Some((_, query)) => url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
                None => size.chain([(self.parameter.clone(), next.to_owned())]).collect(),
            },
            (ListUnit::Cursor, None) => size.collect(),
            _ => [(self.parameter.clone(), self.first.saturating_add(place).to_string())]
                .into_iter()
                .chain(size)
                .collect(),
        }
    }
}

/// Unit of the start of a page of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListUnit {
    /// Entries.
    Row,
    /// Pages.
    Page,
    /// A value, or a link, that the page before contains.
    Cursor,
}

/// Page size of the list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSize {
    /// Parameter name.
    pub parameter: String,
    /// Entries of a page.
    pub rows: u64,
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
    /// Further parameters that are sent with each request, such as the version of the response.
    #[serde(default)]
    pub with: BTreeMap<String, String>,
    /// Headers that are read as part of a response, such as one with the total. Pointers then begin with `/body` or `/headers`, but
    /// for those of `[error]`. Numbers are read as numbers, and that of `Content-Range` is the one behind its slash.
    #[serde(default)]
    pub headers: Vec<String>,
}

impl SearchEndpoint {
    pub(super) fn check(&self, checks: &mut Checks) {
        for name in &self.headers {
            let known = http::HeaderName::from_str(name).is_ok();
            checks.expect(known, "search.headers", format!("expected names of headers, found `{name}`"));
        }
    }
}
