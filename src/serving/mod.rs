//! Parts that all servers need: the task that serves, TLS, and the endpoints for operators.

mod operations;
mod task;
mod tls;

pub(crate) use self::operations::{Operated, operate};
pub(crate) use self::task::Serving;
pub use self::tls::TlsSpec;
pub(crate) use self::tls::{cause, install_crypto};
