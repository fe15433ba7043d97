//! Profiles: a declarative description of a service. Assumptions about gaps in the published description are in profiles,
//! not in code.
//!
//! ```text
//! TOML ──document──▶ Profile (parsed, checked; supported in full or rejected)
//!                      │
//!        used by client, decode, pushdown, exec and table, which assume nothing else
//! ```
//!
//! A profile gives the names of parameters, how pages, windows, zones, sort orders and filters are requested, what
//! throttling and errors look like, and where in a response the columns are. Each section carries its [`Evidence`]. This
//! module does no I/O except to read the document, and does not use DataFusion.
//!
//! Invariant: a [`Profile`] is consistent and supported in full. A document that declares something unsupported is
//! rejected when it is parsed, with file, line and key.

mod column;
mod document;
mod extends;
mod instant;
mod keys;
mod spec;
mod window;
mod zone;

pub(crate) use column::RECENT;
#[cfg(feature = "probe")]
pub(crate) use column::UNKNOWN_ZONE;
pub use column::{ColumnSpec, ColumnType, Only, Origin, Pointer, Scope, SectionSpec, Shape, TableSpec};
pub use document::{Profile, SummedCounts};
pub(crate) use instant::{Instant, completed_instant, instant_by, message_instant};
pub use spec::{
    Auth, Budget, Collation, Complete, CompleteField, CountList, Counts, Depth, DepthAnswer, Direction, EchoSpec,
    ErrorFormat, ErrorSpec, Evidence, FilterParameter, Filters, Flag, ListEndpoint, ListPages, ListSize, ListUnit,
    MentionsRequest, Nulls, Offset, OffsetUnit, Oversize, PageSpec, RateWindow, RequestedBy, ResetFormat, Retention,
    SearchEndpoint, Several, Sort, SortValue, TableKind, Tables, Throttle, ThrottleRule, Timezone, TimezoneKind, Total,
    Trust,
};
pub use window::{End, Grid, Instants, Period, RelativeAs, WindowSpec};
pub use zone::Zone;
