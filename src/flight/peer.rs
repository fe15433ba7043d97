//! Identification of the connection that a call arrives on.

use std::net::IpAddr;

/// Number of a connection, unique within the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Peer(pub(super) u64);

/// Connection and address of a caller, stored in the extensions of its requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller {
    pub(super) peer: Peer,
    /// Remote IP address.
    pub(super) address: IpAddr,
}
