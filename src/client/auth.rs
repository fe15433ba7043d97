//! The API key and the header that carries it. Nothing printable ever contains the key in clear text.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::redactor::{self, Clean};
use crate::error::{Error, ErrorKind, Phrase, Result, Term};
use crate::profile::Auth;

/// An API key. `Debug` and `Display` print `<redacted>`. All clones are the same key: if one is renewed, all of them are.
#[derive(Clone)]
pub struct Secret(Arc<Keys>);

/// A key, and those that replaced it. Their texts are wiped from memory on drop.
struct Keys {
    first: SecretString,
    /// Number of renewals, and the last keys that they returned, newest last.
    later: RwLock<(u64, Vec<SecretString>)>,
    /// Reads the key again from its source.
    source: Option<KeySource>,
    /// Held while the key is read again.
    renewing: Mutex<()>,
    /// Set if there is no key: nothing is redacted.
    is_unused: bool,
}

type KeySource = Box<dyn Fn() -> Result<Secret> + Send + Sync>;

/// Keys that were replaced and may still come back in a response.
const REMEMBERED: usize = 8;

impl Secret {
    /// Text in place of the key.
    pub(crate) const REDACTED: &str = "<redacted>";

    /// Longest key, in bytes. HTTP servers accept headers of 8 KiB, in which the key may be encoded in base64.
    const LONGEST: usize = 4 << 10;

    /// Creates a key. Surrounding white space is trimmed, because keys are read from files.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the key is empty, too long, or contains characters that HTTP headers cannot carry.
    pub fn new(key: &str) -> Result<Self> {
        let key = key.trim();
        if key.is_empty() {
            return Err(Error::new(ErrorKind::Config, "the API key is empty")
                .advice(Phrase::from("set SAVEDSEARCH_API_KEY or ") + Term::KeyFile));
        }
        if key.chars().any(|c| c.is_control() || !c.is_ascii()) {
            return Err(Error::new(
                ErrorKind::Config,
                "the API key contains characters that HTTP headers cannot carry",
            ));
        }
        if key.len() > Self::LONGEST {
            let line = format!("the API key has {} bytes; at most {} are accepted", key.len(), Self::LONGEST);
            return Err(Error::new(ErrorKind::Config, line).advice("check that the file has nothing but the key"));
        }
        Ok(Self::of(SecretString::from(key), None))
    }

    fn of(first: SecretString, source: Option<KeySource>) -> Self {
        let (later, renewing) = Default::default();
        Self(Arc::new(Keys { first, later, source, renewing, is_unused: false }))
    }

    /// Stands for the key of a connection that sends no requests. It is a word, so it is not redacted.
    ///
    /// A store belongs to an address and a key, so a connection that only reads one needs the key all the same.
    pub fn unused() -> Self {
        let (later, renewing, source) = Default::default();
        Self(Arc::new(Keys { first: SecretString::from("unused"), later, source, renewing, is_unused: true }))
    }

    /// Sets the source from which the key is read again, once, if the service no longer accepts it.
    #[must_use]
    pub fn renewed_by(self, source: impl Fn() -> Result<Self> + Send + Sync + 'static) -> Self {
        Self::of(self.current(), Some(Box::new(source)))
    }

    /// Reads a key from a file, and reads it again when the service no longer accepts the key.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the file cannot be read or contains no key.
    pub fn read(path: &Path) -> Result<Self> {
        let file = path.to_owned();
        Ok(Self::read_once(path)?.renewed_by(move || Self::read_once(&file)))
    }

    fn read_once(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::new(ErrorKind::Config, format!("cannot read the API key file {}: {error}", path.display()))
        })?;
        Self::new(&text)
    }

    /// The key that is sent.
    fn current(&self) -> SecretString {
        let later = self.0.later.read().unwrap_or_else(PoisonError::into_inner);
        later.1.last().unwrap_or(&self.0.first).clone()
    }

    /// Number of times that the key was renewed.
    pub(super) fn renewals(&self) -> u64 {
        self.0.later.read().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Reads the key again, unless another request has done so after this number of renewals. Returns true if there is another
    /// key. Blocks: the source may be a command.
    ///
    /// # Errors
    /// Those of the source.
    pub(super) fn renew(&self, renewals: u64) -> Result<bool> {
        let _one = self.0.renewing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.renewals() != renewals {
            return Ok(true);
        }
        let Some(source) = &self.0.source else { return Ok(false) };
        let renewed = source()?.current();
        if renewed.expose_secret() == self.current().expose_secret() {
            return Ok(false);
        }
        let mut later = self.0.later.write().unwrap_or_else(PoisonError::into_inner);
        later.0 += 1;
        later.1.push(renewed);
        let forgotten = later.1.len().saturating_sub(REMEMBERED);
        later.1.drain(..forgotten);
        Ok(true)
    }

    /// Returns the header that carries the key in the profile's format, marked as sensitive.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the profile's header name or format does not give a valid header.
    pub fn header(&self, auth: &Auth) -> Result<(HeaderName, HeaderValue)> {
        let key = self.current();
        let key = key.expose_secret();
        let value = auth.format.replace("{key}", key).replace("{base64}", &base64(key));
        let bad = || {
            Error::new(
                ErrorKind::Config,
                format!("cannot build the `{}` header from the profile's [auth]", auth.header),
            )
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| bad())?;
        value.set_sensitive(true);
        Ok((HeaderName::try_from(auth.header.as_str()).map_err(|_| bad())?, value))
    }

    /// Redacts the key in a text, in any letter case: in clear text, percent-encoded once or twice, JSON-escaped, in
    /// hexadecimal, and inside data encoded in base64 or base32.
    pub fn redact(&self, text: &str) -> Clean {
        Clean::of(text, [self])
    }

    /// True if a text has the key in one of the forms that are redacted.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.any(|key| redactor::is_in(key, text))
    }

    /// Adds the places at which a text has the key, or one that it replaced.
    pub(super) fn find(&self, text: &str, places: &mut Vec<Range<usize>>) {
        if self.0.is_unused {
            return;
        }
        let later = self.0.later.read().unwrap_or_else(PoisonError::into_inner);
        for key in [&self.0.first].into_iter().chain(&later.1) {
            places.extend(redactor::places(key.expose_secret(), text));
        }
    }

    /// Redacts the key in the body of a response, whose values become rows: a service may repeat the address of the request, or
    /// write the key into the link to a next page. Only a key that no text contains by chance is looked for.
    pub(super) fn redact_body(&self, body: Bytes) -> Bytes {
        match self.any(|key| redactor::is_in_body(key, &body)) {
            true => String::from(self.redact(&String::from_utf8_lossy(&body))).into(),
            false => body,
        }
    }

    /// True if it holds for the key, or for one that it replaced.
    fn any(&self, holds: impl Fn(&str) -> bool) -> bool {
        if self.0.is_unused {
            return false;
        }
        let later = self.0.later.read().unwrap_or_else(PoisonError::into_inner);
        [&self.0.first].into_iter().chain(&later.1).any(|key| holds(key.expose_secret()))
    }

    /// Digest that distinguishes the keys of one service without revealing them. A renewed key keeps it.
    pub fn digest(&self, service: &str) -> [u8; 32] {
        let first = self.0.first.expose_secret();
        Sha256::new().chain_update(service).chain_update([0]).chain_update(first).finalize().into()
    }
}

/// A key as the user name of the Basic scheme, without a password (RFC 7617).
pub(super) fn base64(key: &str) -> String {
    BASE64_STANDARD.encode(format!("{key}:"))
}

/// Formats a digest as the name of a file or an entry, long enough to rule out collisions.
pub(super) fn name_of(digest: [u8; 32]) -> String {
    digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::REDACTED)
    }
}

#[cfg(test)]
mod tests {
    use base64::prelude::BASE64_STANDARD_NO_PAD;
    use data_encoding::BASE32_NOPAD;

    use super::*;
    use crate::cases::each;
    use crate::profile::Profile;

    const REDACTED: &str = Secret::REDACTED;

    #[test]
    fn a_key_is_never_printed() {
        let key = Secret::new(" s3cr3t-k3y \n").expect("valid key");
        assert_eq!(format!("{key} {key:?}"), "<redacted> <redacted>");
        let (_, value) = key.header(&Profile::v4().auth).expect("valid header");
        assert_eq!(value.as_bytes(), b"Bearer s3cr3t-k3y");
        assert_eq!(format!("{value:?}"), "Sensitive");
        assert_eq!(key.redact("no s3cr3t-k3y, czNjcjN0LWszeTo= here"), "no <redacted>, <redacted> here");
        let cases = [
            "S3CR3T-K3Y".to_owned(),
            BASE64_STANDARD.encode("Bearer s3cr3t-k3y"),
            BASE64_STANDARD_NO_PAD.encode("x s3cr3t-k3y y"),
            "%73%33%63%72%33%74%2D%6b%33%79".to_owned(),
            "%2573%2533%2563%2572%2533%2574%252d%256B%2533%2579".to_owned(),
            "\\u0073\\u0033\\u0063\\u0072\\u0033\\u0074\\u002D\\u006b\\u0033\\u0079".to_owned(),
            "733363723374-".replace('-', "2d6B3379"),
            BASE32_NOPAD.encode(b"s3cr3t-k3y"),
            BASE32_NOPAD.encode(b"Bearer s3cr3t-k3y!").to_lowercase(),
        ];
        each(cases, |shown| {
            assert!(key.redact(&format!("{{\"{shown}\"}}")).contains(REDACTED), "{shown}");
        });
    }

    #[test]
    fn where_there_is_no_key_nothing_is_redacted() {
        let key = Secret::unused();
        assert_eq!(key.redact("unused: 756e75736564"), "unused: 756e75736564");
        assert!(!key.is_in("unused"));
        assert_eq!(format!("{key} {key:?}"), "<redacted> <redacted>");
    }

    #[test]
    fn a_renewed_key_is_sent_and_both_are_redacted() {
        let key = Secret::new("first-key").expect("valid key");
        assert!(!key.renew(0).expect("no source"), "nothing to read it from");
        let asked = Arc::new(Mutex::new(0));
        let count = Arc::clone(&asked);
        let key = key.renewed_by(move || {
            *count.lock().expect("not poisoned") += 1;
            Secret::new("second-key")
        });
        let (name, clone) = (key.digest("s"), key.clone());
        assert!(key.renew(0).expect("renewed"));
        assert!(clone.renew(0).expect("renewed"), "another request has renewed it");
        assert_eq!(*asked.lock().expect("not poisoned"), 1);
        assert!(!clone.renew(1).expect("the same key again"));
        assert_eq!(clone.header(&Profile::v4().auth).expect("valid header").1.as_bytes(), b"Bearer second-key");
        assert_eq!(clone.redact("first-key second-key"), "<redacted> <redacted>");
        assert_eq!(key.digest("s"), name);
    }

    #[test]
    fn a_key_with_signs_is_found_as_it_is_escaped() {
        let key = Secret::new("a/b+c\"d\\e=").expect("valid key");
        for shown in [r#"a\/b+c\"d\\e="#, "a%2Fb%2Bc%22d%5Ce%3D", "a%252Fb%252Bc%2522d%255Ce%253D"] {
            assert_eq!(key.redact(shown), REDACTED, "{shown}");
        }
    }

    #[test]
    fn formats_are_the_profiles() {
        let key = Secret::new("k").expect("valid key");
        let mut auth = Profile::v4().auth;
        auth.header = "X-Api-Key".into();
        auth.format = "{key}".into();
        assert_eq!(key.header(&auth).expect("raw").1.as_bytes(), b"k");
        auth.format = "Basic {base64}".into();
        assert_eq!(key.header(&auth).expect("basic").1.as_bytes(), b"Basic azo=");
    }

    #[test]
    fn an_empty_or_broken_key_is_refused() {
        assert!(Secret::new(" \n").is_err());
        assert!(Secret::new("a\nb").is_err());
        assert!(Secret::new(&"k".repeat(4_096)).is_ok_and(|key| key.is_in(&"%256b".repeat(4_096))));
        let error = Secret::new(&"k".repeat(4_097)).expect_err("too long").to_string();
        assert!(error.starts_with("the API key has 4097 bytes") && !error.contains("kk"), "{error}");
    }
}
