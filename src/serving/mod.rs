//! Parts that all servers need: their addresses, the task that serves, TLS, and the endpoints for operators.

mod bind;
mod operations;
mod task;
mod tls;

pub(crate) use self::bind::bind;
#[cfg_attr(not(feature = "flight"), allow(unused_imports, reason = "workers have no lanes"))]
pub(crate) use self::operations::{Operated, Trouble, operate};
pub(crate) use self::task::Serving;
pub use self::tls::TlsSpec;
#[cfg(feature = "flight")]
pub(crate) use self::tls::{Acceptor, GRPC, encrypted};
pub(crate) use self::tls::{cause, install_crypto};
