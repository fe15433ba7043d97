//! An address that receives new mentions.
//!
//! Its URL may contain a secret. Neither errors nor `Debug` show more of it than the host, and redirects are not followed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::NewMentions;
use crate::client::{HttpLimits, Network};
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Phrase, Result, Tool};
use crate::location::is_loopback;

/// Longest time until the response to a request.
const LONGEST: Duration = Duration::from_secs(30);

/// Receiver of new mentions by POST.
pub struct Webhook {
    url: Url,
    network: Network,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("host", &self.host()).finish_non_exhaustive()
    }
}

impl Webhook {
    /// Prepares requests to a URL. `insecure`: set to allow sending mentions in clear text beyond this machine.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if it is not an HTTP URL, if mentions would be sent in clear text, and if TLS cannot be set up.
    pub fn try_new(url: &str, insecure: bool) -> Result<Self> {
        let bad = |what: String| {
            Error::new(ErrorKind::Config, format!("invalid URL of the webhook: {what}"))
                .advice("expected https://host/…")
        };
        // The error of the parser does not repeat the URL.
        let url = Url::parse(url.trim()).map_err(|error| bad(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("not an HTTP URL".to_owned()));
        }
        if url.scheme() == "http" && !is_loopback(&url) && !insecure {
            let host = url.host_str().unwrap_or_default();
            let what = format!("new mentions would be sent to {host} in clear text");
            return Err(Error::new(ErrorKind::Config, what).advice(
                Phrase::from("use an https URL, or ") + Tool::WebhookInsecure + " on a network that you trust",
            ));
        }
        let network = Network::try_new(HttpLimits::default().insecure(true), &url)?;
        Ok(Self { url, network })
    }

    /// Creates the cursor of this URL, as [`NewMentions::begin`] does for a consumer.
    ///
    /// # Errors
    /// Those of [`NewMentions::begin`].
    pub fn new_mentions(&self, connection: &Arc<Connection>, aids: &[String]) -> Result<NewMentions> {
        NewMentions::begin(connection, &format!("POST {}", self.url), aids)
    }

    /// Sends mentions, as lines of JSON. They are accepted if the status is 2xx.
    ///
    /// # Errors
    /// [`ErrorKind::Output`] if there is no response, or another status.
    pub async fn send(&self, lines: Vec<u8>) -> Result<()> {
        let host = self.host();
        let refused = |what: String| Error::new(ErrorKind::Output, format!("the webhook at {host} {what}"));
        let sent = self.network.post(self.url.clone(), "application/x-ndjson", lines, LONGEST).await;
        let status = sent.map_err(|failure| refused(format!("did not answer: {}", failure.message)))?;
        let error = refused(format!("answered {status}"));
        match status.as_u16() {
            200..300 => Ok(()),
            300..400 => Err(error.advice("use the URL that it redirects to, because redirects are not followed")),
            408 | 429 => Err(error),
            400..500 => Err(error.advice("check the URL")),
            _ => Err(error),
        }
    }

    fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn invalid_urls_are_refused_without_being_shown() {
        let cases = [
            ("s3cr3t", "invalid URL of the webhook: relative URL without a base; expected https://host/…"),
            ("ftp://host/s3cr3t", "invalid URL of the webhook: not an HTTP URL; expected https://host/…"),
            ("https://host:s3cr3t/", "invalid URL of the webhook: invalid port number; expected https://host/…"),
            (
                "http://user:s3cr3t@host/s3cr3t?s3cr3t",
                "new mentions would be sent to host in clear text; use an https URL, or `insecure` of `Webhook::try_new` on a \
                 network that you trust",
            ),
        ];
        each(cases, |(url, expected)| {
            assert_eq!(Webhook::try_new(url, false).expect_err(url).to_string(), expected);
        });
        let allowed = Webhook::try_new("http://user:s3cr3t@host/s3cr3t?s3cr3t", true).expect("allowed");
        assert_eq!(format!("{allowed:?}"), "Webhook { host: \"host\", .. }");
        Webhook::try_new("http://127.0.0.1:1/s3cr3t", false).expect("allowed");
    }
}
