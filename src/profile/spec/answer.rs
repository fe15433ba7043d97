//! `[echo]` and `[error]`: what an answer repeats of its question, and how an error looks.

use std::collections::BTreeMap;

use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::column::Pointer;
use super::{Checks, Evidence};

/// What an answer repeats of its question. Compared with the question where present.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EchoSpec {
    /// What it rests on.
    pub evidence: Evidence,
    /// The aid.
    pub aid: Option<Pointer>,
    /// The zone.
    pub timezone: Option<Pointer>,
    /// The offset as it was sent.
    pub offset: Option<Pointer>,
    /// Start of the window that was resolved, as an instant.
    pub from: Option<Pointer>,
    /// End of the window that was resolved, as an instant.
    pub to: Option<Pointer>,
}

/// How an error looks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorSpec {
    /// What it rests on.
    pub evidence: Evidence,
    /// How the body is written.
    pub format: ErrorFormat,
    /// Where the machine-readable code is.
    pub code: Option<Pointer>,
    /// Where the message is.
    pub message: Option<Pointer>,
    /// Where the offending parameter is named.
    pub field: Option<Pointer>,
    /// Whether an error may come with a status of success.
    #[serde(default)]
    pub inside_success: bool,
    /// The statuses that the codes of such errors stand for; any other stands for 500, which may pass.
    #[serde(default)]
    pub statuses: BTreeMap<String, u16>,
}

impl ErrorSpec {
    /// The status that the code of an error inside a success stands for.
    pub fn status_of(&self, code: Option<&str>) -> StatusCode {
        let status = code.and_then(|code| self.statuses.get(code));
        status.and_then(|status| StatusCode::from_u16(*status).ok()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(super) fn check(&self, checks: &mut Checks) {
        checks.expect(
            !self.inside_success || self.code.is_some() || self.message.is_some(),
            "error.inside_success",
            "expected `code` or `message`, by which an error inside a success is recognized",
        );
        checks.expect(
            self.statuses.values().all(|status| (400..600).contains(status)),
            "error.statuses",
            "expected statuses of errors, from 400 to 599",
        );
    }
}

/// How the body of an error is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorFormat {
    /// JSON with the pointers of the section.
    Json,
    /// A text.
    Text,
}
