//! Which connection a call comes over.

use std::net::IpAddr;

/// The number of a connection, among the extensions of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Peer(pub(super) u64);

/// Who calls, among the extensions of a connection's requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller {
    pub(super) peer: Peer,
    /// The address that the connection comes from.
    pub(super) address: IpAddr,
}
