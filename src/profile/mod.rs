//! What the service promises: a declarative document, so that no hole of its description is filled in code.
//!
//! ```text
//! TOML ──document──▶ Profile (parsed, checked, honoured in full or refused)
//!                      │
//!        client, decode, pushdown, exec and table ask it; nobody guesses
//! ```
//!
//! A profile says what the parameters are called, how pages, windows, zones, sorts and filters are asked for, how
//! throttling and errors look, and where in an answer the columns lie. Each section carries its [`Evidence`].
//! No I/O happens here beyond reading the document, and nothing here knows DataFusion.
//!
//! Invariant: a [`Profile`] that exists is consistent and honoured in full. What can be said but is not honoured
//! yet is refused when it is parsed, with file, line and key.

mod column;
mod document;
mod extends;
mod keys;
mod spec;
mod window;
mod zone;

pub(crate) use column::instant_by;
pub use column::{ColumnSpec, ColumnType, Origin, Pointer, Scope, SectionSpec, Shape, TableSpec};
pub use document::Profile;
pub use spec::{
    Auth, Budget, CountList, Counts, Depth, DepthAnswer, Direction, EchoSpec, Endpoint, ErrorFormat, ErrorSpec,
    Evidence, FilterParameter, Filters, Flag, MentionsRequest, Nulls, Offset, OffsetUnit, Oversize, PageSpec,
    RateWindow, RequestedBy, ResetFormat, SearchEndpoint, Several, Sort, SortValue, TableKind, Tables, Throttle,
    ThrottleRule, Timezone, TimezoneKind, Total, Trust,
};
pub use window::{End, Grid, Instants, Period, WindowSpec};
pub use zone::Zone;
