//! Certificates of a server and of its clients.

use std::fmt;
#[cfg(any(feature = "mcp", feature = "postgres"))]
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
#[cfg(any(feature = "mcp", feature = "postgres"))]
use rustls::pki_types::pem::PemObject;
#[cfg(any(feature = "mcp", feature = "postgres"))]
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
#[cfg(any(feature = "mcp", feature = "postgres"))]
use rustls::server::WebPkiClientVerifier;
#[cfg(any(feature = "mcp", feature = "postgres"))]
use rustls::{RootCertStore, ServerConfig};
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

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

#[cfg(any(feature = "mcp", feature = "postgres"))]
impl TlsSpec {
    /// Configuration of a server that speaks this protocol, by its name in ALPN.
    ///
    /// # Errors
    /// A message about the invalid certificate or key.
    pub(crate) fn rustls(&self, protocol: &[u8]) -> Result<Arc<ServerConfig>, String> {
        install_crypto();
        let bad = |error: &dyn std::error::Error| format!("invalid certificate or key: {}", cause(error));
        let parsed = |text: &str| CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>();
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
