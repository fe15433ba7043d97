//! Certificates of a server and of its clients.

use std::fmt;
#[cfg(feature = "flight")]
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::CryptoProvider;
#[cfg(feature = "flight")]
use rustls::pki_types::pem::PemObject;
#[cfg(feature = "flight")]
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
#[cfg(feature = "flight")]
use rustls::server::WebPkiClientVerifier;
#[cfg(feature = "flight")]
use rustls::{RootCertStore, ServerConfig};
#[cfg(feature = "flight")]
use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(feature = "flight")]
use tokio_rustls::{Accept, TlsAcceptor};
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

#[cfg(feature = "flight")]
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
    /// Configuration of a server. Invalid certificates are reported when it is used.
    pub(crate) fn server(&self) -> ServerTlsConfig {
        let config = ServerTlsConfig::new().identity(Identity::from_pem(&self.certificate, &self.key));
        match &self.client_authorities {
            Some(authorities) => config.client_ca_root(Certificate::from_pem(authorities)),
            None => config,
        }
    }
}

#[cfg(feature = "flight")]
impl TlsSpec {
    /// Configuration of a server that speaks this protocol, by its name in ALPN.
    ///
    /// # Errors
    /// A message about the invalid certificate or key.
    fn rustls(&self, protocol: &[u8]) -> std::result::Result<Arc<ServerConfig>, String> {
        install_crypto();
        let bad = |error: &dyn std::error::Error| format!("invalid certificate or key: {}", cause(error));
        let parsed =
            |text: &str| CertificateDer::pem_slice_iter(text.as_bytes()).collect::<std::result::Result<Vec<_>, _>>();
        let chain = parsed(&self.certificate).map_err(|error| bad(&error))?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(|error| bad(&error))?;
        let builder = match &self.client_authorities {
            None => ServerConfig::builder().with_no_client_auth(),
            Some(authorities) => {
                let mut roots = RootCertStore::empty();
                for authority in parsed(authorities).map_err(|error| bad(&error))? {
                    roots.add(authority).map_err(|error| bad(&error))?;
                }
                let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().map_err(|error| bad(&error))?;
                ServerConfig::builder().with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| bad(&error))?;
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(Arc::new(config))
    }
}

/// Encrypts the connections of a listener. Its certificates can be replaced while it runs; connections keep those that they began
/// with.
#[cfg(feature = "flight")]
#[derive(Clone)]
pub(crate) struct Acceptor {
    config: Arc<RwLock<Arc<ServerConfig>>>,
    protocol: &'static [u8],
}

#[cfg(feature = "flight")]
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

#[cfg(feature = "flight")]
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
