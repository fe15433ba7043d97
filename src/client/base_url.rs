//! The base URL of a service, checked.

use url::Url;

use crate::error::{Error, ErrorKind, Result};

/// The base URL, checked (seed section 4).
///
/// # Errors
/// [`ErrorKind::Config`] for what is no HTTP address, or has credentials, a query or a fragment.
pub fn parse_base_url(text: &str) -> Result<Url> {
    let bad = |why: &str| {
        Error::new(ErrorKind::Config, format!("invalid base URL `{}`: {why}", without_credentials(text)))
            .advice("expected http(s)://host/…/v4")
    };
    let url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(bad("it is not an HTTP address"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("it contains credentials"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("it contains a query or a fragment"));
    }
    Ok(url)
}

/// The text without what may hold a key: all before an `@`, the query and the fragment.
fn without_credentials(text: &str) -> String {
    let scheme = text.split_once("://").map(|(scheme, _)| format!("{scheme}://")).unwrap_or_default();
    match text.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}<redacted>@{host}"),
        None => text.to_owned(),
    }
    .split(['?', '#'])
    .next()
    .unwrap_or_default()
    .to_owned()
}
