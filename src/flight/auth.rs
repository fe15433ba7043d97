//! Who a client is: credentials in headers, and what they are held against.
//!
//! Clients send `authorization: Basic …` (with or without padding) or `Bearer …`, or `x-api-key`; a handshake turns either
//! into a token of ours. Passwords are checked by Argon2 hashes, tokens by their SHA-256 digests, in constant time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use arrow_flight::BasicAuth;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use tonic::Status;
use tonic::metadata::MetadataMap;

use super::logins::Logins;
use super::peer::Caller;
use crate::client::{Allowance, Secret};
use crate::config::read_toml;
use crate::error::{Error, ErrorKind, Result};
use crate::profile::RateWindow;

/// How clients are told apart.
#[derive(Debug)]
pub enum Auth {
    /// They are not; for this machine alone.
    None,
    /// By name and password, or by a token.
    Users(Users),
    /// By the service's key, which each brings along.
    PassThrough,
}

/// What a client said about itself.
#[derive(Debug)]
pub(super) enum Credentials {
    /// Nothing.
    None,
    /// A name and a password.
    Basic(String, SecretString),
    /// A token of ours, a user's, or a key of the service.
    Token(SecretString),
}

/// Who a client is.
#[derive(Debug, Clone)]
pub(super) struct Principal {
    /// For logs and errors; no secret, and another for each principal.
    pub(super) name: Arc<str>,
    /// What it may spend.
    pub(super) allowance: Option<Arc<Allowance>>,
    /// Its key of the service, where it brings one.
    pub(super) key: Option<Secret>,
}

/// The users of a file.
///
/// ```toml
/// [users.ada]
/// password_hash = "$argon2id$v=19$…"                  # printed by `savedsearch serve --hash-password`
/// token_sha256 = ["9f86d081884c7d65…"]                # printf %s "$TOKEN" | sha256sum
/// budget = [{ requests = 500, seconds = 86400 }]      # of the service, in all sessions together
/// ```
pub struct Users {
    users: BTreeMap<String, User>,
    /// Passwords that were found right not long ago, by digests that only this process can make.
    verified: Mutex<HashMap<[u8; 32], Instant>>,
    salt: [u8; 32],
    /// Checking a password takes memory and time. Those who wait take turns.
    checks: Arc<Semaphore>,
    logins: Box<Logins>,
}

struct User {
    principal: Principal,
    password: Option<String>,
    tokens: Vec<[u8; 32]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    users: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    password_hash: Option<String>,
    #[serde(default)]
    token_sha256: Vec<String>,
    #[serde(default)]
    budget: Vec<RateWindow>,
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users").field("names", &self.users.keys().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

/// How long a password that was right counts as such without being hashed again.
const VERIFIED: Duration = Duration::from_secs(600);
/// Passwords that are hashed at the same time.
const CHECKS: usize = 2;

impl Users {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a file, a hash or a digest that cannot be used.
    pub fn read(path: &Path) -> Result<Self> {
        let document: Document = read_toml(path)?;
        let bad = |what: String| Error::new(ErrorKind::Config, format!("{}: {what}", path.display()));
        if document.users.is_empty() {
            return Err(bad("it names no user".to_owned()));
        }
        let mut taken = HashSet::new();
        let mut users = BTreeMap::new();
        for (name, Entry { password_hash, token_sha256, budget }) in document.users {
            let bad = |what: &str| bad(format!("user `{name}`: {what}"));
            if let Some(hash) = &password_hash {
                PasswordHash::new(hash).ok().filter(is_complete).ok_or_else(|| {
                    bad("password_hash is no Argon2 hash").advice("make one: savedsearch serve --hash-password")
                })?;
            }
            if name.is_empty() || name.contains(':') {
                return Err(bad("its name is to have letters, and no colon, where a password would begin"));
            }
            if password_hash.is_none() && token_sha256.is_empty() {
                return Err(bad("expected password_hash or token_sha256"));
            }
            if budget.iter().any(|window| window.requests == 0 || window.seconds == 0) {
                return Err(bad("a budget has a number of requests and of seconds, both from 1"));
            }
            let digest =
                |text: &String| parse_digest(text).ok_or_else(|| bad("token_sha256 takes 64 hexadecimal digits"));
            let tokens = token_sha256.iter().map(digest).collect::<Result<Vec<_>>>()?;
            if !tokens.iter().all(|token| taken.insert(*token)) {
                return Err(bad("one of its tokens is there twice"));
            }
            let allowance = (!budget.is_empty()).then(|| Arc::new(Allowance::new(name.as_str(), budget)));
            let principal = Principal { name: name.as_str().into(), allowance, key: None };
            users.insert(name, User { principal, password: password_hash, tokens });
        }
        Ok(Self {
            users,
            verified: Mutex::default(),
            salt: rand::random(),
            checks: Arc::new(Semaphore::new(CHECKS)),
            logins: Box::default(),
        })
    }

    /// The user of these credentials.
    ///
    /// # Errors
    /// UNAUTHENTICATED, the same for an unknown name and a wrong password.
    pub(super) async fn verify(&self, credentials: &Credentials, caller: Option<Caller>) -> Result<Principal, Status> {
        match credentials {
            Credentials::None => Err(Status::unauthenticated("log in with a user and a password, or send a token")),
            Credentials::Token(token) => {
                let digest: [u8; 32] = Sha256::digest(token.expose_secret()).into();
                let mut found = None;
                // All are looked at, so that the time tells nothing.
                for user in self.users.values() {
                    for known in &user.tokens {
                        if bool::from(known.ct_eq(&digest)) {
                            found = Some(&user.principal);
                        }
                    }
                }
                found.cloned().ok_or_else(|| {
                    tracing::info!(address = ?caller.map(|caller| caller.address), "login failed: unknown token");
                    unknown_token()
                })
            }
            Credentials::Basic(name, password) => self.verify_password(name, password, caller).await,
        }
    }

    async fn verify_password(
        &self,
        name: &str,
        password: &SecretString,
        caller: Option<Caller>,
    ) -> Result<Principal, Status> {
        let wrong = || Status::unauthenticated("the user or the password is wrong");
        let mut digest = Sha256::new();
        digest.update(self.salt);
        digest.update((name.len() as u64).to_le_bytes());
        digest.update(name);
        digest.update(password.expose_secret());
        let digest: [u8; 32] = digest.finalize().into();
        let user = self.users.get(name);
        let hash = user.and_then(|user| user.password.clone());
        let known = || {
            let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
            verified.retain(|_, since| since.elapsed() < VERIFIED);
            user.filter(|_| verified.contains_key(&digest)).map(|user| user.principal.clone())
        };
        if let Some(principal) = known() {
            return Ok(principal);
        }
        let turn = self.logins.turn(caller).await;
        // Another call of the connection may have been first.
        if let Some(principal) = known() {
            return Ok(principal);
        }
        let check = Arc::clone(&self.checks).acquire_owned().await.map_err(|_| wrong())?;
        let (exists, password) = (hash.is_some(), password.clone());
        let right = spawn_blocking(move || {
            // Whoever hangs up meanwhile does not make room for another.
            let _check = check;
            // An unknown name takes as long as a known one.
            let hash = hash.unwrap_or_else(|| unknown_hash().to_owned());
            let Ok(hash) = PasswordHash::new(&hash) else { return false };
            Argon2::default().verify_password(password.expose_secret().as_bytes(), &hash).is_ok()
        });
        if !right.await.unwrap_or(false) || !exists {
            tracing::info!(user = ?name, address = ?caller.map(|caller| caller.address), "login failed: wrong password");
            // Others of the connection do not wait for the late answer.
            drop(turn);
            sleep(self.logins.failed(name, caller)).await;
            return Err(wrong());
        }
        self.logins.succeeded(name);
        self.verified.lock().unwrap_or_else(PoisonError::into_inner).insert(digest, Instant::now());
        user.map(|user| user.principal.clone()).ok_or_else(wrong)
    }
}

/// What a token that nobody knows is answered with.
pub(super) fn unknown_token() -> Status {
    Status::unauthenticated("the token is unknown or has expired: log in again")
}

/// A hash that no password has, of the usual cost.
fn unknown_hash() -> &'static str {
    static HASH: OnceLock<String> = OnceLock::new();
    HASH.get_or_init(|| hash_password(&format!("{:x}", rand::random::<u128>())).unwrap_or_default())
}

/// The Argon2 hash of a password, with a salt of its own, for a file of [`Users`].
///
/// # Errors
/// [`ErrorKind::Config`] for what cannot be hashed.
pub fn hash_password(password: &str) -> Result<String> {
    let hash = Argon2::default().hash_password(password.as_bytes());
    hash.map(|hash| hash.to_string())
        .map_err(|error| Error::new(ErrorKind::Config, format!("the password cannot be hashed: {error}")))
}

/// Whether a hash is one that a password can have.
fn is_complete(hash: &PasswordHash) -> bool {
    hash.algorithm.as_str().starts_with("argon2") && hash.salt.is_some() && hash.hash.is_some()
}

fn parse_digest(text: &str) -> Option<[u8; 32]> {
    let bytes = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok());
    bytes.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

/// The credentials in the headers of a call.
///
/// # Errors
/// UNAUTHENTICATED for what cannot be read, without repeating it.
pub(super) fn credentials(metadata: &MetadataMap) -> Result<Credentials, Status> {
    let bad = || Status::unauthenticated("the credentials cannot be read: expected Basic, Bearer or x-api-key");
    if let Some(key) = metadata.get("x-api-key") {
        return Ok(token(key.to_str().map_err(|_| bad())?));
    }
    let Some(header) = metadata.get("authorization") else { return Ok(Credentials::None) };
    let (scheme, value) = header.to_str().map_err(|_| bad())?.split_once(' ').ok_or_else(bad)?;
    let value = value.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Ok(token(value));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(bad());
    }
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let text = LENIENT.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(bad)?;
    let (name, password) = text.split_once(':').ok_or_else(bad)?;
    Ok(Credentials::Basic(name.to_owned(), password.into()))
}

/// The credentials in the message of a handshake, as the protocol had them before headers.
pub(super) fn handshake_credentials(payload: &[u8]) -> Option<Credentials> {
    let BasicAuth { username, password } = prost::Message::decode(payload).ok()?;
    (!username.is_empty()).then(|| Credentials::Basic(username, password.into()))
}

/// A client without a token may send the word for that.
fn token(text: &str) -> Credentials {
    match text {
        "" | "None" => Credentials::None,
        text => Credentials::Token(text.into()),
    }
}

/// The principal that a key of the service stands for. `salt` makes its name one that says nothing outside the process.
///
/// # Errors
/// UNAUTHENTICATED for what cannot be a key.
pub(super) fn key_holder(credentials: &Credentials, salt: &[u8; 32]) -> Result<Principal, Status> {
    let text = match credentials {
        Credentials::None => {
            return Err(Status::unauthenticated(
                "send the service's API key: as the password, a Bearer token or x-api-key",
            ));
        }
        Credentials::Basic(_, text) | Credentials::Token(text) => text,
    };
    let key = Secret::new(text.expose_secret())
        .map_err(|_| Status::unauthenticated("what was sent cannot be an API key of the service"))?;
    let digest = Sha256::new().chain_update(salt).chain_update(text.expose_secret()).finalize();
    let short: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Principal { name: format!("key {short}").into(), allowance: None, key: Some(key) })
}

/// The principal of those who are not told apart.
pub(super) fn anybody() -> Principal {
    Principal { name: "anybody".into(), allowance: None, key: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(text: &str) -> Result<Users> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("users.toml");
        std::fs::write(&file, text).expect("written");
        Users::read(&file)
    }

    fn headers(name: &'static str, value: &str) -> MetadataMap {
        let mut metadata = MetadataMap::new();
        metadata.insert(name, value.parse().expect("a value"));
        metadata
    }

    #[test]
    fn credentials_are_read_from_whatever_clients_send() {
        // ada:swordfish, with its padding and without.
        for header in ["Basic YWRhOnN3b3JkZmlzaA==", "basic YWRhOnN3b3JkZmlzaA"] {
            let read = credentials(&headers("authorization", header)).expect("credentials");
            let Credentials::Basic(name, password) = read else { panic!("{read:?}") };
            assert_eq!((name.as_str(), password.expose_secret()), ("ada", "swordfish"));
        }
        assert!(matches!(credentials(&headers("x-api-key", "k")), Ok(Credentials::Token(_))));
        assert!(matches!(credentials(&headers("authorization", "Bearer k")), Ok(Credentials::Token(_))));
        assert!(matches!(credentials(&headers("authorization", "Bearer None")), Ok(Credentials::None)));
        assert!(matches!(credentials(&MetadataMap::new()), Ok(Credentials::None)));
        for wrong in ["swordfish", "Digest swordfish", "Basic swordfish!", "Basic c3dvcmRmaXNo"] {
            let status = credentials(&headers("authorization", wrong)).expect_err("unreadable");
            assert!(!format!("{status:?}").contains("swordfish"), "{status:?}");
        }
    }

    #[tokio::test]
    async fn users_are_let_in_by_password_or_token_and_nothing_else() {
        let hash = hash_password("swordfish").expect("a hash");
        let token: String = Sha256::digest("token").iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!("[users.ada]\npassword_hash = \"{hash}\"\n[users.bob]\ntoken_sha256 = [\"{token}\"]\n");
        let users = users(&text).expect("users");
        let basic = |name: &str, password: &str| Credentials::Basic(name.to_owned(), password.into());
        for _ in 0..2 {
            let principal = users.verify(&basic("ada", "swordfish"), None).await.expect("ada");
            assert_eq!(principal.name.as_ref(), "ada");
        }
        assert_eq!(users.verify(&Credentials::Token("token".into()), None).await.expect("bob").name.as_ref(), "bob");
        let mut lines = Vec::new();
        for wrong in [basic("ada", "sword"), basic("eve", "swordfish"), basic("bob", ""), basic("ada", "")] {
            lines.push(users.verify(&wrong, None).await.expect_err("wrong").message().to_owned());
        }
        lines.dedup();
        assert_eq!(lines, ["the user or the password is wrong"]);
        users.verify(&Credentials::Token("tokem".into()), None).await.expect_err("another token");
        users.verify(&Credentials::None, None).await.expect_err("nothing");
    }

    #[test]
    fn a_file_of_users_tells_its_mistakes_without_repeating_secrets() {
        for (text, told) in [
            ("[users.ada]\n", "user `ada`: expected password_hash or token_sha256"),
            ("[users.ada]\npassword_hash = \"swordfish\"\n", "user `ada`: password_hash is no Argon2 hash"),
            ("[users.ada]\ntoken_sha256 = [\"swordfish\"]\n", "user `ada`: token_sha256 takes 64"),
            ("[users.ada]\npassword = \"swordfish\"\n", "line 2: unknown field `password`"),
            (
                "[users.ada]\ntoken_sha256 = [\"swordfish\"]\nbudget = [{ requests = 0, seconds = 60 }]\n",
                "user `ada`: a budget has a number of requests and of seconds",
            ),
        ] {
            let error = users(text).expect_err(text).to_string();
            assert!(error.contains(told) && !error.contains("swordfish"), "{error}");
        }
    }
}
