//! The seam to the network, for connections that talk through something else: a proxy of one's own, a script of faults.
//!
//! [`ConnectionBuilder::service`](crate::ConnectionBuilder::service) takes an [`HttpService`]; [`Network`] is the one that is
//! used otherwise, and can be wrapped.

pub use crate::client::{HttpFailure, HttpLimits, HttpRequest, HttpResponse, HttpService, Network, receive};
