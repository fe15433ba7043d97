//! Sections of a profile as types: one struct per section of the document, one enum per choice.
//!
//! Each type checks its own section (`check`). A rejection carries the key, from which the line in the document is
//! found.

mod access;
mod answer;
mod checks;
mod counts;
mod limits;
mod pages;
mod question;
mod retention;
mod tables;

use schemars::JsonSchema;
use serde::Deserialize;

pub use self::access::{Auth, ListEndpoint, ListPages, ListSize, ListUnit, SearchEndpoint};
pub use self::answer::{Complete, CompleteField, EchoSpec, ErrorFormat, ErrorSpec};
pub(super) use self::checks::Checks;
pub use self::counts::{CountList, Counts};
pub use self::limits::{Budget, RateWindow, ResetFormat, Throttle, ThrottleRule};
pub use self::pages::{
    Depth, DepthAnswer, Flag, MentionsRequest, Offset, OffsetUnit, Oversize, PageSpec, RequestedBy, Total, Trust,
};
pub use self::question::{
    Collation, Direction, FilterParameter, Filters, Nulls, Several, Sort, SortValue, Timezone, TimezoneKind,
};
pub use self::retention::Retention;
pub use self::tables::{TableKind, Tables};

/// Evidence for the statements of a section.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Stated by the published API description.
    Given,
    /// Not stated anywhere: an assumption.
    #[default]
    Assumed,
    /// Observed on a live service.
    Probed,
    /// Stated by the user's own manual of the service.
    Documented,
}
