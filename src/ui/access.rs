//! Admission of requests: the name of the host, the origin, and the credentials in a cookie.
//!
//! Without users, the URL that is printed at the start contains a random token, which becomes a cookie; with users, a login does.
//! A page of another site cannot use the cookie (`SameSite`), and its requests are refused before that, by their origin. On a
//! loopback address the name in `Host` must be one of this machine, so that no page reaches the server by a name of its own (DNS
//! rebinding).

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::host::auth::{Auth, Credentials, Rejection};
use crate::host::failure::Failure;
use crate::host::http::names_of;
use crate::host::peer::Caller;
use crate::host::sessions::Session;
use crate::host::state::Host;

/// See the module's documentation.
pub(super) struct Access {
    host: Arc<Host>,
    /// Names of this machine; `None` beyond loopback, where they are unknown, and credentials required.
    names: Option<[String; 4]>,
    /// Name of the cookie. Cookies of a machine do not differ by port, so that the name does.
    cookie: String,
    /// The token of the URL, if the server has no users.
    token: Option<SecretString>,
    secure: bool,
}

/// Credentials of a login.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Login {
    /// Name of the user; empty for a token or a key.
    #[serde(default)]
    name: String,
    /// Password, token or key.
    #[serde(deserialize_with = "secret")]
    secret: SecretString,
}

/// A request that is not looked at further: status, and a line for people.
pub(super) type Refused = (StatusCode, String);

impl Access {
    pub(super) fn new(host: Arc<Host>, address: SocketAddr, secure: bool) -> Self {
        let token = || BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()).into();
        Self {
            names: names_of(address),
            cookie: format!("savedsearch_{}", address.port()),
            token: matches!(host.sessions.auth(), Auth::None).then(token),
            secure,
            host,
        }
    }

    /// URL of the page, with the token if there is one.
    pub(super) fn url(&self, address: SocketAddr) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        match &self.token {
            Some(token) => format!("{scheme}://{address}/?token={}", token.expose_secret()),
            None => format!("{scheme}://{address}/"),
        }
    }

    /// Form of a login: `token`, `password` or `key`.
    pub(super) fn form(&self) -> &'static str {
        match self.host.sessions.auth() {
            Auth::None => "token",
            Auth::Users(_) => "password",
            Auth::PassThrough => "key",
        }
    }

    /// Refuses a request that a page of another site may have caused.
    ///
    /// # Errors
    /// See [`Refused`].
    pub(super) fn check(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), Refused> {
        let refuse = |line: &str| Err((StatusCode::FORBIDDEN, line.to_owned()));
        let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default());
        let host = text(header::HOST).unwrap_or_default();
        if let Some(names) = &self.names {
            let name = host.parse::<Authority>().ok();
            let name = name.as_ref().map(|name| name.host().trim_matches(['[', ']']));
            if !name.is_some_and(|name| names.iter().any(|known| known.eq_ignore_ascii_case(name))) {
                return refuse("the name in the header Host is not one of this machine");
            }
        }
        let site = text(header::HeaderName::from_static("sec-fetch-site"));
        // A link on another site may open the page; nothing else comes from there.
        let opens = method == Method::GET && !path.starts_with("/api/");
        if site.is_some_and(|site| matches!(site, "cross-site" | "same-site")) && !opens {
            return refuse("requests of other sites are refused");
        }
        let origin = text(header::ORIGIN).map(|origin| origin.split_once("://").map_or("", |(_, authority)| authority));
        match (origin, site) {
            _ if method == Method::GET => Ok(()),
            (Some(origin), _) if origin.eq_ignore_ascii_case(host) => Ok(()),
            (None, Some("same-origin")) => Ok(()),
            (Some(_), _) => refuse("requests of other origins are refused"),
            (None, _) => refuse("the header Origin is missing"),
        }
    }

    /// Returns the session of a request.
    ///
    /// # Errors
    /// UNAUTHENTICATED without valid credentials, RESOURCE_EXHAUSTED if there are too many sessions.
    pub(super) async fn session(&self, headers: &HeaderMap, caller: Caller) -> Result<Arc<Session>, Failure> {
        let sessions = &self.host.sessions;
        let given = self.given(headers).ok_or_else(|| Failure::from(Rejection::NoLogin))?;
        let credentials = match &self.token {
            Some(token) if is_same(token.expose_secret(), given) => Credentials::None,
            Some(_) => return Err(sessions.rejected(Rejection::UnknownToken)),
            None => Credentials::Token(given.into()),
        };
        sessions.find_shared(credentials, Some(caller)).await
    }

    /// Checks a login, and returns the cookie that stands for it.
    ///
    /// # Errors
    /// UNAUTHENTICATED for invalid credentials, RESOURCE_EXHAUSTED if there are too many sessions.
    pub(super) async fn log_in(&self, login: Login, caller: Caller) -> Result<HeaderValue, Failure> {
        let sessions = &self.host.sessions;
        let Login { name, secret } = login;
        if let Some(token) = &self.token {
            return match is_same(token.expose_secret(), secret.expose_secret().trim()) {
                true => Ok(self.cookie(token.expose_secret())),
                false => Err(sessions.rejected(Rejection::UnknownToken)),
            };
        }
        let credentials = if name.is_empty() { Credentials::Token(secret) } else { Credentials::Basic(name, secret) };
        let (token, session) = sessions.log_in(&credentials, Some(caller)).await?;
        self.host.standing.log_in(caller.peer, &session.principal.name, session.is_proven());
        Ok(self.cookie(&token))
    }

    /// The cookie of a token of the URL; `None` for a wrong one.
    pub(super) fn cookie_of_url(&self, given: &str) -> Option<HeaderValue> {
        let token = self.token.as_ref()?.expose_secret();
        is_same(token, given).then(|| self.cookie(token))
    }

    /// The cookie that replaces the one of a session that has ended.
    pub(super) fn no_cookie(&self) -> HeaderValue {
        let mut value = self.cookie("");
        if let Ok(ended) = HeaderValue::from_str(&format!("{}; Max-Age=0", value.to_str().unwrap_or_default())) {
            value = ended;
        }
        value
    }

    /// True if the request has another token than that of the server, such as the token of an earlier start.
    pub(super) fn is_stale(&self, headers: &HeaderMap) -> bool {
        let differs =
            |token: &SecretString| self.given(headers).is_some_and(|given| !is_same(token.expose_secret(), given));
        self.token.as_ref().is_some_and(differs)
    }

    fn cookie(&self, value: &str) -> HeaderValue {
        let secure = if self.secure { "; Secure" } else { "" };
        let text = format!("{}={value}; Path=/; HttpOnly; SameSite=Strict{secure}", self.cookie);
        // Names and tokens are ASCII.
        let mut value = HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""));
        value.set_sensitive(true);
        value
    }

    fn given<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, value)| *name == self.cookie && !value.is_empty()).map(|(_, value)| value)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("names", &self.names).finish_non_exhaustive()
    }
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(SecretString::from)
}

/// Compares digests, so that timing does not reveal how much of a token is right.
fn is_same(token: &str, given: &str) -> bool {
    Sha256::digest(token).ct_eq(&Sha256::digest(given)).into()
}
