//! Reading users, API keys and certificates again while a server runs.
//!
//! Everything is read before anything is replaced. If something cannot be read, it stays as it is, and the server continues
//! to run. Running queries continue, unless their user was removed.

use std::sync::Arc;

use super::state::Host;
use crate::error::{Error, ErrorKind, Result};
use crate::serving::{Acceptor, TlsSpec};

/// Handle of a server that reads its users, API keys and certificates again.
#[derive(Debug, Clone)]
pub struct Reload {
    host: Arc<Host>,
    listeners: Vec<Option<Acceptor>>,
}

impl Reload {
    pub(crate) fn new(host: Arc<Host>, tls: Option<Acceptor>) -> Self {
        Self { host, listeners: vec![tls] }
    }

    /// The same, with the certificates of a second listener of the server.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.listeners.extend(other.listeners);
        self
    }

    /// Reads the users file and the API keys again, and replaces the certificates by `tls`. Users who were removed, or whose
    /// credentials changed, are logged out: their tokens are revoked, and their connections closed.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an invalid file or certificate, or if TLS would be switched on or off, which requires a
    /// restart.
    pub async fn run(&self, tls: Option<&TlsSpec>) -> Result<()> {
        let mut ready = Vec::new();
        for listener in &self.listeners {
            match (listener, tls) {
                (Some(listener), Some(tls)) => ready.push(listener.prepared(tls)?),
                (None, None) => {}
                _ => return Err(Error::new(ErrorKind::Config, "TLS can be switched on or off only by a restart")),
            }
        }
        self.host.reload().await?;
        for replace in ready {
            replace();
        }
        Ok(())
    }
}
