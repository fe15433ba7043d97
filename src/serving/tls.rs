//! Certificates of a server and of its clients.

use std::fmt;

use rustls::crypto::CryptoProvider;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

/// TLS configuration of a server, PEM-encoded.
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
