//! Parts that all servers need: their addresses, the task that serves, TLS, and the endpoints for operators.

mod bind;
mod operations;
#[cfg(any(feature = "distributed", feature = "flight"))]
mod task;
mod tls;

pub(crate) use self::bind::bind;
pub use self::bind::cannot_listen;
pub(crate) use self::operations::{Operated, Trouble, operate};
#[cfg(any(feature = "distributed", feature = "flight"))]
pub(crate) use self::task::Serving;
pub use self::tls::TlsSpec;
pub(crate) use self::tls::{Acceptor, GRPC, encrypted};
pub(crate) use self::tls::{cause, install_crypto};
