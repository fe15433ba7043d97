//! Advice for failed connections: what to check, by how the connection failed. Pure.

use url::Url;

use crate::error::ErrorKind;
use crate::location::is_loopback;

/// Advice for a connection that failed with this message.
pub(super) fn for_connection(kind: ErrorKind, message: &str, base_url: &Url) -> Option<String> {
    let with_scheme = |scheme: &str| base_url.as_str().replacen(base_url.scheme(), scheme, 1);
    Some(match (kind, base_url.scheme()) {
        // A plain-text answer to a TLS greeting.
        (ErrorKind::Tls, _) if message.contains("InvalidContentType") => {
            format!("the server does not use TLS on this port; try {}", with_scheme("http"))
        }
        (ErrorKind::Tls, _) => "the certificate must be signed by an authority that this machine trusts".to_owned(),
        // A TLS server closes the connection at a plain-text request.
        (ErrorKind::Connect, "http") if message.contains("before message completed") => {
            format!("if the server uses TLS, try {}", with_scheme("https"))
        }
        (ErrorKind::Connect, _) if message.contains("tunnel error") => {
            "check the proxy in HTTPS_PROXY; NO_PROXY lists hosts to reach directly".to_owned()
        }
        // Proxies are not used for this machine.
        (ErrorKind::Connect, _) if is_loopback(base_url) => format!("check that {base_url} is the service's address"),
        (ErrorKind::Connect, scheme) => {
            let proxy = if scheme == "https" { "HTTPS_PROXY" } else { "HTTP_PROXY" };
            format!("check that {base_url} is the service's address, and the proxy if {proxy} is set")
        }
        _ => return None,
    })
}

/// Advice for a response 404, which does not tell an unknown saved search from a wrong base URL. `has_aid` is false for a request
/// that names no saved search. `shown_as`: what people know the service as.
pub(super) fn for_not_found(base_url: &Url, has_aid: bool, shown_as: Option<&str>) -> String {
    match (shown_as, base_url.path().trim_matches('/')) {
        (Some(name), _) if has_aid => format!("check the aid; saved_searches lists those of the {name}"),
        (_, "") => format!("the base URL has no path; try {}/v4", base_url.as_str().trim_end_matches('/')),
        _ if has_aid => format!("check the aid and the base URL {base_url}"),
        _ => format!("check the base URL {base_url}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    fn url(text: &str) -> Url {
        text.parse().expect("a URL")
    }

    #[test]
    fn advice_fits_the_failure() {
        let cases = [
            (
                ErrorKind::Tls,
                "received corrupt message of type InvalidContentType",
                "https://host:80/v4",
                "the server does not use TLS on this port; try http://host:80/v4",
            ),
            (
                ErrorKind::Tls,
                "invalid peer certificate: UnknownIssuer",
                "https://host/v4",
                "the certificate must be signed by an authority that this machine trusts",
            ),
            (
                ErrorKind::Connect,
                "connection closed before message completed",
                "http://host:443/v4",
                "if the server uses TLS, try https://host:443/v4",
            ),
            (
                ErrorKind::Connect,
                "connection refused",
                "http://127.0.0.1:1/v4",
                "check that http://127.0.0.1:1/v4 is the service's address",
            ),
            (
                ErrorKind::Connect,
                "connection refused",
                "http://host/v4",
                "check that http://host/v4 is the service's address, and the proxy if HTTP_PROXY is set",
            ),
            (
                ErrorKind::Connect,
                "tunnel error: failed to create underlying connection",
                "https://host/v4",
                "check the proxy in HTTPS_PROXY; NO_PROXY lists hosts to reach directly",
            ),
        ];
        each(cases, |(kind, message, base_url, expected)| {
            assert_eq!(for_connection(kind, message, &url(base_url)).as_deref(), Some(expected));
        });
        assert_eq!(for_connection(ErrorKind::Timeout, "", &url("http://host/v4")), None);
        let not_found = |address: &str, has_aid| for_not_found(&url(address), has_aid, None);
        assert_eq!(not_found("http://host:8080", true), "the base URL has no path; try http://host:8080/v4");
        assert_eq!(not_found("http://host/v5", true), "check the aid and the base URL http://host/v5");
        assert_eq!(not_found("http://host/v5", false), "check the base URL http://host/v5");
        assert_eq!(
            for_not_found(&url("http://127.0.0.1:81/v4"), true, Some("built-in demo data")),
            "check the aid; saved_searches lists those of the built-in demo data"
        );
    }
}
