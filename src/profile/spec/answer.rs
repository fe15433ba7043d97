//! `[echo]` and `[error]`: request values that a response repeats, and the layout of errors.

use std::collections::BTreeMap;

use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::column::Pointer;
use super::{Checks, Evidence};

/// Request values that a response repeats. If present, they are compared with the request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EchoSpec {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Aid.
    pub aid: Option<Pointer>,
    /// Time zone.
    pub timezone: Option<Pointer>,
    /// Offset, as sent.
    pub offset: Option<Pointer>,
    /// Start of the resolved time window, as an instant.
    pub from: Option<Pointer>,
    /// End of the resolved time window, as an instant.
    pub to: Option<Pointer>,
}

/// Fields that say whether a response is complete.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Complete {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Fields outside the records. Others are judged by their names: `timed_out = true`, `errors = […]`.
    #[serde(default)]
    pub fields: Vec<CompleteField>,
    /// Instant up to which the service's data was complete. If it is earlier than the end of the window, the response is an error.
    #[serde(default)]
    pub as_of: Option<Pointer>,
}

/// A field that says whether a response is complete.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteField {
    /// Pointer to the field.
    pub at: Pointer,
    /// Values of a complete response, as text; so are NULL and no field. Absent: the field says nothing.
    pub values: Option<Vec<String>>,
}

/// Layout of errors.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorSpec {
    /// Evidence for this section.
    pub evidence: Evidence,
    /// Format of the body.
    pub format: ErrorFormat,
    /// Pointer to the machine-readable code.
    pub code: Option<Pointer>,
    /// Pointer to the message.
    pub message: Option<Pointer>,
    /// Pointer to the name of the offending parameter.
    pub field: Option<Pointer>,
    /// Set if an error may come with a success status.
    #[serde(default)]
    pub inside_success: bool,
    /// HTTP statuses for the codes of such errors. Any other code is treated as 500, which is retried.
    #[serde(default)]
    pub statuses: BTreeMap<String, u16>,
}

impl ErrorSpec {
    /// Status for the code of an error inside a success.
    pub fn status_of(&self, code: Option<&str>) -> StatusCode {
        let status = code.and_then(|code| self.statuses.get(code));
        status.and_then(|status| StatusCode::from_u16(*status).ok()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(super) fn check(&self, checks: &mut Checks) {
        checks.expect(
            !self.inside_success || self.code.is_some() || self.message.is_some(),
            "error.inside_success",
            "expected `code` or `message`: they identify an error inside a success",
        );
        checks.expect(
            self.statuses.values().all(|status| (400..600).contains(status)),
            "error.statuses",
            "expected error statuses, from 400 to 599",
        );
    }
}

/// Format of an error's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorFormat {
    /// JSON, read by the pointers of this section.
    Json,
    /// Plain text.
    Text,
}
