//! SCRAM-SHA-256, the server's side (RFC 5802, RFC 7677; PostgreSQL documentation, "SASL Authentication").
//!
//! Verifiers are stored as PostgreSQL stores them, `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`; the password
//! cannot be computed from one. An unknown user gets a verifier that no password matches, and the same one at each attempt,
//! so that clients cannot tell unknown users from known ones. Channel binding is not offered.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Name of the mechanism.
pub(crate) const MECHANISM: &str = "SCRAM-SHA-256";
/// Iterations of verifiers that PostgreSQL creates by default.
const ITERATIONS: u32 = 4_096;

type Key = [u8; 32];

/// Stored form of a password, from which it cannot be recovered.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Verifier {
    iterations: u32,
    salt: Vec<u8>,
    stored: Key,
    server: Key,
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verifier").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

impl Verifier {
    /// Parses the stored form; `None` for another text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (cost, keys) = text.strip_prefix("SCRAM-SHA-256$")?.split_once('$')?;
        let ((iterations, salt), (stored, server)) = (cost.split_once(':')?, keys.split_once(':')?);
        let key = |text: &str| BASE64_STANDARD.decode(text).ok()?.try_into().ok();
        let iterations = iterations.parse().ok().filter(|iterations| (1..=10_000_000).contains(iterations))?;
        let salt = BASE64_STANDARD.decode(salt).ok().filter(|salt| !salt.is_empty())?;
        Some(Self { iterations, salt, stored: key(stored)?, server: key(server)? })
    }

    /// A verifier that no password fits, always the same for a name and a secret of the server.
    pub(crate) fn of_nobody(name: &str, secret: &Key) -> Self {
        let derived = |what: &str| mac(secret, &[what.as_bytes(), name.as_bytes()]);
        Self {
            iterations: ITERATIONS,
            salt: derived("salt")[..16].to_vec(),
            stored: derived("stored"),
            server: derived("server"),
        }
    }
}

/// An exchange, after the client's first message.
pub(crate) struct Exchange {
    verifier: Verifier,
    /// Text that both sides sign, so far: the client's first message without its header, and the server's.
    signed: String,
    /// Both nonces.
    nonce: String,
    /// The header of the client's first message, which its last one repeats.
    header: String,
}

impl Exchange {
    /// Reads the client's first message. Returns the exchange and the server's first message; `None` if it is malformed.
    pub(crate) fn begin(first: &str, verifier: Verifier, nonce: &str) -> Option<(Self, String)> {
        // A client that could bind the channel, but was not offered it, says `y`.
        let bare = first.strip_prefix("n,,").or_else(|| first.strip_prefix("y,,"))?;
        let header = first.get(..first.len() - bare.len())?.to_owned();
        // The name is that of the startup message; PostgreSQL ignores this one as well.
        let (_, rest) = bare.strip_prefix("n=")?.split_once(',')?;
        let theirs = rest.strip_prefix("r=")?.split(',').next()?;
        if theirs.is_empty() || !theirs.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let nonce = format!("{theirs}{nonce}");
        let salt = BASE64_STANDARD.encode(&verifier.salt);
        let answer = format!("r={nonce},s={salt},i={}", verifier.iterations);
        let signed = format!("{bare},{answer}");
        Some((Self { verifier, signed, nonce, header }, answer))
    }

    /// Verifies the client's last message. Returns the server's last message; `None` if the proof is wrong.
    pub(crate) fn finish(self, last: &str) -> Option<String> {
        let (without, proof) = last.rsplit_once(",p=")?;
        let expected = format!("c={},r={}", BASE64_STANDARD.encode(&self.header), self.nonce);
        if without != expected {
            return None;
        }
        let proof: Key = BASE64_STANDARD.decode(proof).ok()?.try_into().ok()?;
        let signed = format!("{},{without}", self.signed);
        let mut client = mac(&self.verifier.stored, &[signed.as_bytes()]);
        client.iter_mut().zip(proof).for_each(|(signature, proof)| *signature ^= proof);
        let digest: Key = Sha256::digest(client).into();
        let right = bool::from(digest.ct_eq(&self.verifier.stored));
        right.then(|| format!("v={}", BASE64_STANDARD.encode(mac(&self.verifier.server, &[signed.as_bytes()]))))
    }
}

fn mac(key: &Key, parts: &[&[u8]]) -> Key {
    // A key of any length is valid.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Key::default() };
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cases::each;

    /// The verifier of the example of RFC 7677, section 3, computed from the password `pencil`.
    pub(crate) const VERIFIER: &str = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==\
        $WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";

    /// The example of RFC 7677, section 3.
    #[test]
    fn the_example_of_the_rfc_is_accepted() {
        let verifier = Verifier::parse(VERIFIER).expect("a verifier");
        let first = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
        let own = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let (exchange, answer) = Exchange::begin(first, verifier, own).expect("a first message");
        assert_eq!(answer, format!("r=rOprNGfwEbeRWgbNEkqO{own},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"));
        let last = format!("c=biws,r=rOprNGfwEbeRWgbNEkqO{own},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        assert_eq!(exchange.finish(&last).as_deref(), Some("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
    }

    #[test]
    fn wrong_proofs_other_nonces_and_nobody_are_refused() {
        let verifier = Verifier::parse(VERIFIER).expect("a verifier");
        let proof = BASE64_STANDARD.encode([7; 32]);
        for (verifier, nonce) in
            [(verifier.clone(), "aown"), (verifier, "other"), (Verifier::of_nobody("eve", &[1; 32]), "aown")]
        {
            let (exchange, _) = Exchange::begin("n,,n=,r=a", verifier, "own").expect("a first message");
            assert_eq!(exchange.finish(&format!("c=biws,r={nonce},p={proof}")), None);
        }
        each(["", "n,,", "n,,n=x", "p=tls-unique,,n=,r=a", "n,,n=,r=", "n,,m=1,n=,r=a"], |malformed| {
            assert!(Exchange::begin(malformed, Verifier::of_nobody("eve", &[1; 32]), "own").is_none(), "{malformed}");
        });
        let twice = [1, 1].map(|_| Verifier::of_nobody("eve", &[1; 32]).salt);
        assert_eq!(twice[0], twice[1]);
    }
}
