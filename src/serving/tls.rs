//! Certificates of a server and of its clients.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::{Stream, StreamExt};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

use crate::error::{Error, ErrorKind, Result};

/// TLS configuration of a server, PEM-encoded.
#[derive(Clone)]
pub struct TlsSpec {
    /// Certificate chain of the server.
    pub certificate: String,
    /// Private key of the server.
    pub key: String,
    /// Certificate authorities for client certificates; `None` means that clients need no certificate.
    pub client_authorities: Option<String>,
}

impl TlsSpec {
    /// Reads PEM files: a certificate chain, its key, and the authorities of client certificates.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] with the name of the file that cannot be read, or does not contain what it should.
    pub fn read(certificate: &Path, key: &Path, authorities: Option<&Path>) -> Result<Self> {
        let bad = |path: &Path, what: &str| Error::new(ErrorKind::Config, format!("{}: {what}", path.display()));
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => bad(path, NO_PEM).advice("convert it, for example with `openssl`"),
                _ => Error::new(ErrorKind::Config, format!("cannot read {}: {error}", path.display())),
            })
        };
        let client_authorities = authorities.map(read).transpose()?;
        let tls = Self { certificate: read(certificate)?, key: read(key)?, client_authorities };
        chain(&tls.certificate).map_err(|what| bad(certificate, &what))?;
        private_key(&tls.key).map_err(|what| bad(key, &what))?;
        if let (Some(path), Some(text)) = (authorities, &tls.client_authorities) {
            roots(text).map_err(|what| bad(path, &what))?;
        }
        let together = |what: String| Error::new(ErrorKind::Config, what);
        let names = format!("{} and {}", certificate.display(), key.display());
        tls.rustls(&[]).map_err(|what| together(format!("{names}: {what}")))?;
        Ok(tls)
    }

    /// Instant at which the first certificate of the chain expires; `None` if none can be read.
    pub fn expires(&self) -> Option<DateTime<Utc>> {
        chain(&self.certificate).ok()?.iter().filter_map(|of| beyond(of, u64::MAX)).min()
    }

    /// Instant from which all certificates of the chain are valid; `None` if none can be read.
    pub fn begins(&self) -> Option<DateTime<Utc>> {
        chain(&self.certificate).ok()?.iter().filter_map(|of| beyond(of, 0)).max()
    }

    /// Configuration of a server that speaks this protocol, by its name in ALPN.
    ///
    /// # Errors
    /// A message about the invalid certificate or key.
    fn rustls(&self, protocol: &[u8]) -> std::result::Result<Arc<ServerConfig>, String> {
        install_crypto();
        let bad = |what: &dyn fmt::Display| format!("invalid certificate or key: {what}");
        let chain = chain(&self.certificate).map_err(|what| bad(&format_args!("the certificate {what}")))?;
        let key = private_key(&self.key).map_err(|what| bad(&format_args!("the key {what}")))?;
        let builder = match &self.client_authorities {
            None => ServerConfig::builder().with_no_client_auth(),
            Some(authorities) => {
                let roots = roots(authorities);
                let roots = roots.map_err(|what| bad(&format_args!("the list of client authorities {what}")))?;
                let verifier =
                    WebPkiClientVerifier::builder(Arc::new(roots)).build().map_err(|error| bad(&cause(&error)))?;
                ServerConfig::builder().with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => bad(&"the key belongs to another certificate"),
            error => bad(&cause(&error)),
        })?;
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(Arc::new(config))
    }
}

/// The certificates of a PEM text, at least one.
fn chain(text: &str) -> std::result::Result<Vec<CertificateDer<'static>>, String> {
    let parsed = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<std::result::Result<Vec<_>, _>>();
    match parsed {
        Ok(chain) if chain.is_empty() => Err("contains no certificate".to_owned()),
        Ok(chain) => Ok(chain),
        Err(_) => Err(NO_PEM.to_owned()),
    }
}

/// Description of a file that is damaged, or in another format.
const NO_PEM: &str = "contains no valid PEM";

/// The instant at which a certificate begins or ends, whichever makes it invalid at another instant, in seconds since 1970. rustls
/// exposes neither, but its error about such a certificate names it.
fn beyond(certificate: &CertificateDer<'_>, at: u64) -> Option<DateTime<Utc>> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let at = UnixTime::since_unix_epoch(Duration::from_secs(at));
    let bound = match verify_server_cert_signed_by_trust_anchor(&parsed, &RootCertStore::empty(), &[], at, &[]) {
        Err(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => not_after,
        Err(rustls::Error::InvalidCertificate(CertificateError::NotValidYetContext { not_before, .. })) => not_before,
        _ => return None,
    };
    DateTime::from_timestamp(i64::try_from(bound.as_secs()).ok()?, 0)
}

/// The private key of a PEM text.
fn private_key(text: &str) -> std::result::Result<PrivateKeyDer<'static>, String> {
    // Of PKCS #8, or of the older form (RFC 1421, section 4.6.1.1).
    let is_encrypted = || text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED");
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| match error {
        _ if is_encrypted() => {
            "contains an encrypted private key; decrypt it, for example with `openssl pkey`".to_owned()
        }
        pem::Error::NoItemsFound => "contains no private key".to_owned(),
        _ => NO_PEM.to_owned(),
    })
}

/// The authorities of a PEM text, at least one.
fn roots(text: &str) -> std::result::Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for authority in chain(text)? {
        roots.add(authority).map_err(|error| format!("contains an invalid certificate: {}", cause(&error)))?;
    }
    Ok(roots)
}

/// Encrypts the connections of a listener. Its certificates can be replaced while it runs; connections keep those that they began
/// with.
#[derive(Clone)]
pub(crate) struct Acceptor {
    config: Arc<RwLock<Arc<ServerConfig>>>,
    protocol: &'static [u8],
}

impl Acceptor {
    /// An acceptor of a listener that speaks this protocol, by its name in ALPN.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an invalid certificate or key.
    pub(crate) fn try_new(tls: &TlsSpec, protocol: &'static [u8]) -> Result<Self> {
        let config = tls.rustls(protocol).map_err(|what| Error::new(ErrorKind::Config, what))?;
        Ok(Self { config: Arc::new(RwLock::new(config)), protocol })
    }

    /// Returns what replaces the certificates once it is called.
    ///
    /// # Errors
    /// Those of [`try_new`](Self::try_new).
    pub(crate) fn prepared(&self, tls: &TlsSpec) -> Result<impl FnOnce() + use<>> {
        let new = tls.rustls(self.protocol).map_err(|what| Error::new(ErrorKind::Config, what))?;
        let config = Arc::clone(&self.config);
        Ok(move || *config.write().unwrap_or_else(PoisonError::into_inner) = new)
    }

    /// Begins the handshake of a connection.
    pub(crate) fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> Accept<S> {
        let config = Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner));
        TlsAcceptor::from(config).accept(stream)
    }
}

/// Protocol of gRPC inside TLS.
pub(crate) const GRPC: &[u8] = b"h2";
/// Time limit of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Encrypts connections, up to `most` at a time. Those that fail, or take too long, are dropped.
pub(crate) fn encrypted<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    incoming: impl Stream<Item = io::Result<S>> + Send + 'static,
    tls: Acceptor,
    most: usize,
) -> impl Stream<Item = io::Result<TlsStream<S>>> + Send + 'static {
    let encrypt = move |stream: io::Result<S>| {
        let tls = tls.clone();
        async move { timeout(HANDSHAKE, tls.accept(stream.ok()?)).await.ok()?.ok() }
    };
    incoming.map(encrypt).buffer_unordered(most).filter_map(|stream| std::future::ready(stream.map(Ok)))
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").finish_non_exhaustive()
    }
}

impl fmt::Debug for TlsSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSpec").field("mutual", &self.client_authorities.is_some()).finish_non_exhaustive()
    }
}

/// Installs the process-wide cryptography that tonic uses, unless the process has one.
pub(crate) fn install_crypto() {
    if CryptoProvider::get_default().is_none() {
        // An error means that the process installed one meanwhile.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// Formats an error with its causes, which the `Display` of transport errors omits.
pub(crate) fn cause(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let known = source.to_string();
        // Some layers repeat the cause.
        if !text.ends_with(&known) {
            text = format!("{text}: {known}");
        }
        next = source.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_expires_with_its_first_certificate() {
        let of = |years: &[i32]| {
            let pem = |year: &i32| {
                let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
                params.not_after = rcgen::date_time_ymd(*year, 3, 1);
                let key = rcgen::KeyPair::generate().expect("a key");
                params.self_signed(&key).expect("a certificate").pem()
            };
            TlsSpec { certificate: years.iter().map(pem).collect(), key: String::new(), client_authorities: None }
        };
        let expires = |years: &[i32]| of(years).expires().map(|at| at.to_string());
        assert_eq!(expires(&[2020]).as_deref(), Some("2020-03-01 00:00:00 UTC"));
        assert_eq!(expires(&[4000]).as_deref(), Some("4000-03-01 00:00:00 UTC"));
        assert_eq!(expires(&[2031, 2030]).as_deref(), Some("2030-03-01 00:00:00 UTC"));
        assert_eq!(expires(&[]), None);
        assert_eq!(of(&[2031, 2030]).begins().map(|at| at.to_string()).as_deref(), Some("1975-01-01 00:00:00 UTC"));
    }

    #[test]
    fn a_file_that_lacks_what_it_should_contain_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let pair = || {
            let pair = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
            (pair.cert.pem(), pair.signing_key.serialize_pem())
        };
        let ((certificate, key), (_, other)) = (pair(), pair());
        let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path
        };
        let older = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAA==\n\
                     -----END RSA PRIVATE KEY-----\n";
        let binary = folder.path().join("server.der");
        std::fs::write(&binary, [0x30, 0x82, 0xff]).expect("a file");
        let [right, own, other, locked, empty, older] = [
            file("server.pem", &certificate),
            file("server.key", &key),
            file("other.key", &other),
            file("locked.key", encrypted),
            file("empty.pem", ""),
            file("older.key", older),
        ];
        assert!(TlsSpec::read(&right, &own, Some(&right)).is_ok());
        for (certificate, key, authorities, expected) in [
            (&own, &right, None, "server.key: contains no certificate"),
            (&right, &right, None, "server.pem: contains no private key"),
            (&right, &empty, None, "empty.pem: contains no private key"),
            (&right, &locked, None, "locked.key: contains an encrypted private key"),
            (&right, &older, None, "older.key: contains an encrypted private key"),
            (&binary, &own, None, "server.der: contains no valid PEM; convert it"),
            (&right, &own, Some(&own), "server.key: contains no certificate"),
            (&right, &other, None, "other.key: invalid certificate or key: the key belongs to another certificate"),
            (&folder.path().join("none.pem"), &own, None, "none.pem: "),
        ] {
            let error = TlsSpec::read(certificate, key, authorities.map(|path| path.as_path()));
            let error = error.expect_err(expected).to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
