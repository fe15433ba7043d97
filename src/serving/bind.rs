//! Binding of the address that a server listens on.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

use crate::error::{Error, ErrorKind, Result};

/// Binds an address; port 0 picks a free one. Returns the address with its port.
///
/// # Errors
/// Those of [`cannot_listen`].
pub(crate) async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let bound = TcpListener::bind(address).await;
    let bound = bound.and_then(|listener| listener.local_addr().map(|address| (listener, address)));
    bound.map_err(|error| cannot_listen(address, &error))
}

/// Error of an address that could not be bound: [`ErrorKind::Unavailable`] for one that another program uses, or that this machine
/// does not have now, and [`ErrorKind::Config`] for one that cannot be used.
pub fn cannot_listen(address: SocketAddr, error: &io::Error) -> Error {
    let told = Error::new(kind(error), format!("cannot listen on {address}: {error}"));
    let any = if address.is_ipv4() { "0.0.0.0" } else { "[::]" };
    let advice = format!("use an address of this machine; {any}:{} stands for all of them", address.port());
    if error.kind() == io::ErrorKind::AddrNotAvailable { told.advice(advice) } else { told }
}

/// An address may become free, or appear, while the configuration stays as it is.
fn kind(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable => ErrorKind::Unavailable,
        _ => ErrorKind::Config,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_in_use_may_become_free_and_is_no_mistake_of_the_configuration() {
        let (_listener, address) = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a free port");
        let error = bind(address).await.expect_err("in use");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().starts_with(&format!("cannot listen on {address}: ")), "{error}");
        // An address for documentation (RFC 5737), which no machine has.
        let error = bind(SocketAddr::from(([192, 0, 2, 1], 8080))).await.expect_err("not of this machine");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let advice = "; use an address of this machine; 0.0.0.0:8080 stands for all of them";
        assert!(error.to_string().ends_with(advice), "{error}");
    }
}
