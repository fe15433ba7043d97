//! Parsing of a service's base URL.

use url::Url;

use crate::error::{Error, ErrorKind, Result};

/// Parses and checks a base URL (API description, section 4).
///
/// # Errors
/// [`ErrorKind::Config`] if the text is not an HTTP URL, or contains credentials, a query or a fragment.
pub fn parse_base_url(text: &str) -> Result<Url> {
    let bad = |why: &str| {
        Error::new(ErrorKind::Config, format!("invalid base URL `{}`: {why}", without_credentials(text)))
            .advice("expected http(s)://host/…/v4")
    };
    if text.trim().is_empty() {
        return Err(Error::new(ErrorKind::Config, "the base URL is empty").advice("expected http(s)://host/…/v4"));
    }
    let url = Url::parse(text).map_err(|error| match text.contains("://") {
        true => bad(&error.to_string()),
        false => bad("the scheme is missing").advice(format!("did you mean https://{}?", without_credentials(text))),
    })?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(bad("not an HTTP URL"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("must not contain credentials"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("must not contain a query or a fragment"));
    }
    Ok(url)
}

/// Returns the text without the parts that may hold a key: everything before an `@`, the query and the fragment.
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
