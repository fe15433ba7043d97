//! HTTP client of the service: keys, limits, retries and pages.
//!
//! ```text
//! RequestPlan ──pages──▶ PageRequest ──fetch──▶ attempt ▶ source ▶ classify ▶ decode ──▶ rows
//!                                          ▲                                  │
//!                                          └──── retry (pure) decides ────────┘
//! ```
//!
//! A response counts only once its decoder has accepted it, so that a truncated page is requested again like a failed
//! one. The module does not follow redirects, does not guess the meaning of a status (the profile defines it), and does
//! not wait past a query's deadline.
//!
//! Invariant: every request of a query passes the limiter of its key and the budget of the query. Only the probe
//! bypasses both ([`Direct`]), and counts its own calls.

mod advice;
mod attempt;
mod auth;
mod base_url;
mod budget;
mod circuit_breaker;
mod classify;
mod error_body;
mod estimates;
mod evidence;
mod fetch;
mod headers;
mod http;
mod ledger;
mod limits;
mod live;
mod log;
mod pages;
mod principal;
mod rate_limit;
mod recording;
mod redactor;
mod retry;
mod single_flight;
mod sliding_window;
mod source;
mod spend_guard;
mod trace;
mod verdict;
mod waits;

pub use self::auth::Secret;
pub use self::base_url::parse_base_url;
pub(crate) use self::budget::Narrower;
pub use self::budget::{Completeness, Held, Memory, QueryBudget, QueryCounts, Scan, SentBefore};
#[cfg(feature = "store")]
pub(crate) use self::evidence::is_round;
pub use self::fetch::Client;
pub(crate) use self::fetch::ClientSpec;
#[cfg(feature = "probe")]
pub(crate) use self::headers::value_of;
pub use self::http::{
    HttpFailure, HttpLimits, HttpRequest, HttpResponse, HttpService, LimitedService, Network, receive,
};
pub use self::log::{RequestLog, RequestRecord, Warning};
pub use self::pages::{Page, PageDecoder, PageFacts, Prefetch, read_pages};
pub use self::principal::{Allowance, Caller};
#[cfg(feature = "probe")]
pub(crate) use self::recording::RecordedAnswer;
pub use self::recording::{Exchanges, Recorder, Replay};
pub use self::redactor::Clean;
pub use self::retry::RetryPolicy;
#[cfg(feature = "probe")]
pub(crate) use self::retry::asked_wait;
pub use self::source::{AnswerSource, Direct, Exchange, Question, Unsent};
pub(crate) use self::trace::QuerySpan;
pub use self::verdict::Verdicts;
pub(crate) use self::verdict::{counted, doubted};
