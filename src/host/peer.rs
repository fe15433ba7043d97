//! Identification of the connection that a call arrives on.

use std::net::IpAddr;

/// Number of a connection, unique within the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Peer(pub(crate) u64);

/// Connection and address of a caller, stored in the extensions of its requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) peer: Peer,
    /// Remote IP address. That of an IPv6 client is its network of 64 bits, since it may use all addresses there.
    pub(crate) address: IpAddr,
}

impl Caller {
    /// The caller on a connection from an address.
    pub(crate) fn new(peer: Peer, address: IpAddr) -> Self {
        let address = match address.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::from([a, b, c, d, 0, 0, 0, 0])
            }
            address => address,
        };
        Self { peer, address }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn a_client_of_ipv6_has_one_address() {
        let cases = [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("::ffff:127.0.0.1", "127.0.0.1"),
            ("::1", "::1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::"),
            ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ];
        each(cases, |(address, expected)| {
            let caller = Caller::new(Peer(1), address.parse().expect(address));
            assert_eq!(caller.address, expected.parse::<IpAddr>().expect(expected), "{address}");
        });
    }
}
