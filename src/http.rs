//! The HTTP transport interface, for connections that use a custom transport such as a proxy or a fault injector.
//!
//! [`ConnectionBuilder::service`](crate::ConnectionBuilder::service) takes an [`HttpService`]; [`Network`] is the
//! default implementation and can be wrapped.

pub use crate::client::{HttpFailure, HttpLimits, HttpRequest, HttpResponse, HttpService, Network, receive};
