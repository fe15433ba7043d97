//! What servers have in common: TLS, and the endpoints for operators.

mod operations;
mod tls;

pub(crate) use self::operations::{Operated, operate};
pub use self::tls::TlsSpec;
pub(crate) use self::tls::{cause, install_crypto};
