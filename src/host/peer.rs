//! Identification of the connection that a call arrives on.

use std::net::IpAddr;

/// Number of a connection, unique within the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Peer(pub(crate) u64);

/// Connection and address of a caller, stored in the extensions of its requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) peer: Peer,
    /// Remote IP address.
    pub(crate) address: IpAddr,
}
