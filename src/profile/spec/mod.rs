//! The sections of a profile as types: one struct for each section of the document, one enum for each choice.
//!
//! Each type checks its own section (`check`); what is refused carries the key, so that the document's line can be named.

mod access;
mod answer;
mod checks;
mod counts;
mod limits;
mod pages;
mod question;
mod tables;

use schemars::JsonSchema;
use serde::Deserialize;

pub use self::access::{Auth, Endpoint, SearchEndpoint};
pub use self::answer::{EchoSpec, ErrorFormat, ErrorSpec};
pub(super) use self::checks::Checks;
pub use self::counts::{CountList, Counts};
pub use self::limits::{Budget, RateWindow, ResetFormat, Throttle, ThrottleRule};
pub use self::pages::{
    Depth, DepthAnswer, Flag, MentionsRequest, Offset, OffsetUnit, Oversize, PageSpec, RequestedBy, Total, Trust,
};
pub use self::question::{
    Direction, FilterParameter, Filters, Nulls, Several, Sort, SortValue, Timezone, TimezoneKind,
};
pub use self::tables::{TableKind, Tables};

/// What a statement of the profile rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The published description of the API says so.
    Given,
    /// Nobody has said so: an assumption.
    Assumed,
    /// Seen on a live service.
    Probed,
    /// The user's own manual says so.
    Documented,
}
