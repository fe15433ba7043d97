//! Authentication: parsing and verifying the credentials of a call.
//!
//! Clients send `authorization: Basic …` (with or without padding), `authorization: Bearer …` or `x-api-key`; a
//! handshake exchanges any of them for a session token. Passwords are verified against Argon2 hashes, tokens against
//! their SHA-256 digests in constant time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::failure::{Code, Failure};
use super::logins::Logins;
use super::peer::Caller;
use super::scram::Verifier;
use crate::client::{Allowance, Secret};
use crate::config::read_toml;
use crate::error::{Error, ErrorKind, Phrase, Result, Tool};
use crate::profile::RateWindow;

/// Authentication mode of a server.
#[derive(Debug)]
#[non_exhaustive]
pub enum Auth {
    /// No authentication; only allowed on loopback addresses.
    None,
    /// User name and password, or a user's token.
    Users(Users),
    /// Each client sends its own API key, which is passed through to the service.
    PassThrough,
}

/// Credentials that a client sent.
#[derive(Debug)]
pub(crate) enum Credentials {
    /// No credentials.
    None,
    /// User name and password.
    Basic(String, SecretString),
    /// A session token, a user's token, or an API key of the service.
    Token(SecretString),
}

/// Reason for rejecting credentials. Each has one message, so that responses to wrong credentials are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// No credentials, though the server has users.
    NoLogin,
    /// No API key, in pass-through mode.
    NoKey,
    /// Credentials that cannot be parsed.
    Malformed,
    /// An API key that cannot be sent.
    MalformedKey,
    /// Unknown user name or wrong password.
    WrongPassword,
    /// Unknown or expired token.
    UnknownToken,
    /// Too many passwords are waiting to be checked.
    Busy,
}

impl Rejection {
    /// Returns the reason as named in metrics.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::NoLogin | Self::NoKey => "no_credentials",
            Self::Malformed | Self::MalformedKey => "malformed",
            Self::WrongPassword => "wrong_password",
            Self::UnknownToken => "unknown_token",
            Self::Busy => "busy",
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::NoLogin => "not authenticated: log in with user name and password, or send a token",
            Self::NoKey => "missing API key: send it as the password, as a Bearer token or in x-api-key",
            Self::Malformed => "malformed credentials: expected Basic, Bearer or x-api-key",
            Self::MalformedKey => "malformed API key",
            Self::WrongPassword => "invalid user name or password",
            Self::UnknownToken => "unknown or expired token: log in again",
            Self::Busy => "too many logins at once: try again later",
        }
    }
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        let code = if rejection == Rejection::Busy { Code::ResourceExhausted } else { Code::Unauthenticated };
        Self::new(code, rejection.message())
    }
}

/// An authenticated client.
#[derive(Debug, Clone)]
pub(crate) struct Principal {
    /// Unique name for logs and errors; not a secret.
    pub(crate) name: Arc<str>,
    /// Request budget; `None` if unlimited.
    pub(crate) allowance: Option<Arc<Allowance>>,
    /// The client's own API key, in pass-through mode.
    pub(crate) key: Option<Secret>,
}

/// The users defined in a users file.
///
/// ```toml
/// [users.ada]
/// password_hash = "$argon2id$v=19$…"                  # printed by `savedsearch serve --hash-password`
/// scram_sha_256 = "SCRAM-SHA-256$4096:…"              # for PostgreSQL clients, printed by `… --scram-verifier`
/// token_sha256 = ["9f86d081884c7d65…"]                # printf %s "$TOKEN" | sha256sum
/// budget = [{ requests = 500, seconds = 86400 }]      # requests to the service, over all sessions of the user
/// ```
///
/// The file can be read again while the server runs (`Users::reload`).
pub struct Users {
    file: PathBuf,
    known: RwLock<Arc<Known>>,
    salt: [u8; 32],
    logins: Box<Logins>,
}

/// The users of the file as it was read last.
struct Known {
    users: BTreeMap<String, User>,
    /// Recently verified credentials as salted digests, so that clients sending a password with every call skip
    /// hashing.
    verified: Mutex<HashMap<[u8; 32], Instant>>,
    /// Secret from which unknown users get their SCRAM verifiers. The same after a restart, as the verifiers of known users are.
    nobody: [u8; 32],
}

struct User {
    principal: Principal,
    budget: Vec<RateWindow>,
    password: Option<String>,
    scram: Option<Verifier>,
    /// The verifier as it is in the file.
    scram_text: Option<String>,
    tokens: Vec<[u8; 32]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    users: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    password_hash: Option<String>,
    scram_sha_256: Option<String>,
    #[serde(default)]
    token_sha256: Vec<String>,
    #[serde(default)]
    budget: Vec<RateWindow>,
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users").field("names", &self.known().users.keys().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

/// Time for which a verified password is accepted without hashing it again.
const VERIFIED: Duration = Duration::from_secs(600);

impl Users {
    /// Reads a users file.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an unreadable file or an invalid entry.
    pub fn read(path: &Path) -> Result<Self> {
        let known = RwLock::new(Arc::new(Known::read(path)?));
        Ok(Self { file: path.to_owned(), known, salt: rand::random(), logins: Box::default() })
    }

    /// Reads the file again. Users whose budget is as before keep what they have spent of it. Returns the names of those who
    /// are gone, or have other credentials, or another budget: their sessions and connections are to be closed.
    ///
    /// # Errors
    /// Those of [`read`](Self::read); the users then stay as they are.
    pub(crate) fn reload(&self) -> Result<HashSet<Arc<str>>> {
        let mut read = Known::read(&self.file)?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = HashSet::new();
        for (name, before) in &known.users {
            match read.users.get_mut(name) {
                Some(now) if now.budget == before.budget => {
                    now.principal.allowance.clone_from(&before.principal.allowance);
                    if !now.logs_in_as(before) {
                        changed.insert(Arc::clone(&before.principal.name));
                    }
                }
                _ => {
                    changed.insert(Arc::clone(&before.principal.name));
                }
            }
        }
        *known = Arc::new(read);
        Ok(changed)
    }

    /// Number of users.
    pub fn len(&self) -> usize {
        self.known().users.len()
    }

    /// False: a file without users is an error.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Verifies credentials and returns their user.
    ///
    /// # Errors
    /// The [`Rejection`], which is the same for an unknown name and a wrong password.
    pub(crate) async fn verify(
        &self,
        credentials: &Credentials,
        caller: Option<Caller>,
    ) -> Result<Principal, Rejection> {
        match credentials {
            Credentials::None => Err(Rejection::NoLogin),
            Credentials::Token(token) => {
                let digest = Sha256::digest(token.expose_secret()).into();
                let mut found = None;
                let users = self.known();
                // Reads all users, so that timing does not reveal whose token matched.
                for user in users.users.values() {
                    if user.has_token(&digest) {
                        found = Some(&user.principal);
                    }
                }
                found.cloned().ok_or_else(|| {
                    tracing::info!(
                        address = caller.map(|caller| display(caller.address)),
                        "login failed: unknown token"
                    );
                    Rejection::UnknownToken
                })
            }
            Credentials::Basic(name, password) => self.verify_password(name, password, caller).await,
        }
    }

    /// Returns the SCRAM verifier of a user; `None` if the user logs in by password or token. Unknown users are like the known
    /// ones: all, none or some of them, always the same, have one that nothing fits.
    pub(crate) fn scram(&self, name: &str) -> Option<Verifier> {
        let Known { users, nobody, .. } = &*self.known();
        match users.get(name) {
            Some(user) => user.scram.clone(),
            None => {
                let with = users.values().filter(|user| user.scram.is_some()).count();
                let digest = Sha256::new().chain_update(nobody).chain_update(name).finalize();
                let picked = usize::from(u16::from_le_bytes([digest[0], digest[1]])) % users.len().max(1);
                (picked < with).then(|| Verifier::of_nobody(name, nobody))
            }
        }
    }

    /// Returns the user whose proof for a verifier was checked by SCRAM, or the rejection of a wrong one, later and later.
    ///
    /// # Errors
    /// [`Rejection::WrongPassword`].
    pub(crate) async fn proven(
        &self,
        name: &str,
        verifier: &Verifier,
        right: bool,
        caller: Option<Caller>,
    ) -> Result<Principal, Rejection> {
        let known = self.known();
        // The file may have been read again since the proof was asked for.
        match known.users.get(name).filter(|user| right && user.scram.as_ref() == Some(verifier)) {
            Some(user) => {
                self.logins.succeeded(name, caller);
                Ok(user.principal.clone())
            }
            None => {
                let reason = if known.users.contains_key(name) { "wrong password" } else { "unknown user" };
                tracing::info!(
                    user = name,
                    address = caller.map(|caller| display(caller.address)),
                    "login failed: {reason}"
                );
                sleep(self.logins.failed(name, caller)).await;
                Err(Rejection::WrongPassword)
            }
        }
    }

    async fn verify_password(
        &self,
        name: &str,
        password: &SecretString,
        caller: Option<Caller>,
    ) -> Result<Principal, Rejection> {
        let mut digest = Sha256::new();
        digest.update(self.salt);
        digest.update((name.len() as u64).to_le_bytes());
        digest.update(name);
        digest.update(password.expose_secret());
        let digest: [u8; 32] = digest.finalize().into();
        let users = self.known();
        let user = users.users.get(name);
        // A token may be sent as the password: many clients have no other field for it. The digest of nothing is no token.
        let token = Sha256::digest(password.expose_secret()).into();
        let has_token = |user: &&User| !password.expose_secret().is_empty() && user.has_token(&token);
        if let Some(user) = user.filter(has_token) {
            return Ok(user.principal.clone());
        }
        let hash = user.and_then(|user| user.password.clone());
        let known = || {
            let mut verified = users.verified.lock().unwrap_or_else(PoisonError::into_inner);
            verified.retain(|_, since| since.elapsed() < VERIFIED);
            user.filter(|_| verified.contains_key(&digest)).map(|user| user.principal.clone())
        };
        if let Some(principal) = known() {
            return Ok(principal);
        }
        let turn = self.logins.turn(caller).await;
        // Another call on this connection may have verified the password meanwhile.
        if let Some(principal) = known() {
            return Ok(principal);
        }
        let check = self.logins.check(name, caller).await.ok_or(Rejection::Busy)?;
        // A pool opens many connections at once: the result of the first check is used for all.
        if let Some(principal) = known() {
            return Ok(principal);
        }
        let (exists, password) = (hash.is_some(), password.clone());
        let right = spawn_blocking(move || {
            // Lasts until hashing ends, even if the client disconnects.
            let _check = check;
            // An unknown name must take as long as a known one.
            let hash = hash.unwrap_or_else(|| unknown_hash().to_owned());
            let Ok(hash) = PasswordHash::new(&hash) else { return false };
            Argon2::default().verify_password(password.expose_secret().as_bytes(), &hash).is_ok()
        });
        if !right.await.unwrap_or(false) || !exists {
            let reason = match user {
                None => "unknown user",
                Some(_) if exists => "wrong password",
                Some(user) if user.scram.is_some() => {
                    "the user has no password_hash, and this is not a token of the user"
                }
                Some(_) => "the user has no password, and this is not a token of the user",
            };
            tracing::info!(
                user = name,
                address = caller.map(|caller| display(caller.address)),
                "login failed: {reason}"
            );
            // Other attempts on this connection need not wait for the delay.
            drop(turn);
            sleep(self.logins.failed(name, caller)).await;
            return Err(Rejection::WrongPassword);
        }
        self.logins.succeeded(name, caller);
        users.verified.lock().unwrap_or_else(PoisonError::into_inner).insert(digest, Instant::now());
        // The file may have been read again meanwhile, with another password.
        let now = self.known();
        let same = |user: &&User| now.users.get(name).is_some_and(|now| now.password == user.password);
        user.filter(same).map(|user| user.principal.clone()).ok_or(Rejection::WrongPassword)
    }
}

impl User {
    /// True for the digest of one of the user's tokens.
    fn has_token(&self, digest: &[u8; 32]) -> bool {
        // Compares with every token, so that timing does not reveal which one matched.
        self.tokens.iter().fold(false, |found, known| found | bool::from(known.ct_eq(digest)))
    }
}

impl Known {
    fn read(path: &Path) -> Result<Self> {
        let document: Document = read_toml(path)?;
        let bad = |what: String| Error::new(ErrorKind::Config, format!("{}: {what}", path.display()));
        if document.users.is_empty() {
            return Err(bad("no users defined".to_owned()));
        }
        let mut taken = HashSet::new();
        let mut users = BTreeMap::new();
        for (name, Entry { password_hash, scram_sha_256, token_sha256, budget }) in document.users {
            let bad = |what: &str| bad(format!("user `{name}`: {what}"));
            if let Some(hash) = &password_hash {
                PasswordHash::new(hash).ok().filter(is_complete).ok_or_else(|| {
                    bad("password_hash is not an Argon2 hash").advice(Phrase::from("create one: ") + Tool::HashPassword)
                })?;
            }
            if name.is_empty() || name.contains(':') {
                return Err(bad("the name must not be empty or contain a colon"));
            }
            let scram = scram_sha_256.as_deref().map(|text| {
                let verifier = Verifier::parse(text);
                verifier.ok_or_else(|| {
                    bad("scram_sha_256 is not a SCRAM-SHA-256 verifier")
                        .advice(Phrase::from("create one: ") + Tool::ScramVerifier)
                })
            });
            let scram = scram.transpose()?;
            if password_hash.is_none() && scram_sha_256.is_none() && token_sha256.is_empty() {
                return Err(bad("expected password_hash, scram_sha_256 or token_sha256"));
            }
            if budget.iter().any(|window| window.requests == 0 || window.seconds == 0) {
                return Err(bad("a budget needs `requests` and `seconds`, both at least 1"));
            }
            let digest =
                |text: &String| parse_digest(text).ok_or_else(|| bad("token_sha256 must be 64 hexadecimal digits"));
            let tokens = token_sha256.iter().map(digest).collect::<Result<Vec<_>>>()?;
            if !tokens.iter().all(|token| taken.insert(*token)) {
                return Err(bad("duplicate token_sha256"));
            }
            let windows = budget.clone();
            let allowance = (!budget.is_empty()).then(|| Arc::new(Allowance::new(name.as_str(), budget)));
            let principal = Principal { name: name.as_str().into(), allowance, key: None };
            let user =
                User { principal, budget: windows, password: password_hash, scram, scram_text: scram_sha_256, tokens };
            users.insert(name, user);
        }
        Ok(Self { nobody: stable_secret(&users), users, verified: Mutex::default() })
    }
}

impl User {
    /// True if both log in with the same credentials.
    fn logs_in_as(&self, other: &Self) -> bool {
        self.scram_text == other.scram_text && self.password == other.password && self.tokens == other.tokens
    }
}

/// Secret of a users file that stays the same for as long as most of its users do: the smallest digest of what is secret of one.
fn stable_secret(users: &BTreeMap<String, User>) -> [u8; 32] {
    let of_user = |(name, user): (&String, &User)| -> [u8; 32] {
        let mut digest = Sha256::new().chain_update(b"nobody").chain_update(name);
        for secret in user.password.iter().chain(&user.scram_text) {
            digest.update(secret);
        }
        user.tokens.iter().for_each(|token| digest.update(token));
        digest.finalize().into()
    };
    users.iter().map(of_user).min().unwrap_or_default()
}

/// Hash of a random password, with the usual cost, for checks of unknown users.
fn unknown_hash() -> &'static str {
    static HASH: OnceLock<String> = OnceLock::new();
    HASH.get_or_init(|| hash_password(&format!("{:x}", rand::random::<u128>())).unwrap_or_default())
}

/// Hashes a password with Argon2 and a random salt, for the `password_hash` of a [`Users`] file.
///
/// # Errors
/// [`ErrorKind::Config`] if hashing fails.
pub fn hash_password(password: &str) -> Result<String> {
    let hash = Argon2::default().hash_password(password.as_bytes());
    hash.map(|hash| hash.to_string())
        .map_err(|error| Error::new(ErrorKind::Config, format!("cannot hash the password: {error}")))
}

/// True if the hash is an Argon2 hash with a salt and a digest.
fn is_complete(hash: &PasswordHash) -> bool {
    hash.algorithm.as_str().starts_with("argon2") && hash.salt.is_some() && hash.hash.is_some()
}

fn parse_digest(text: &str) -> Option<[u8; 32]> {
    let bytes = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok());
    bytes.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

/// Reads the credentials from the headers of a call.
///
/// # Errors
/// [`Rejection::Malformed`]; the message does not repeat the credentials.
pub(crate) fn credentials(headers: &HeaderMap) -> Result<Credentials, Rejection> {
    let bad = Rejection::Malformed;
    if let Some(key) = headers.get("x-api-key") {
        return Ok(token(key.to_str().map_err(|_| bad)?));
    }
    let Some(header) = headers.get("authorization") else { return Ok(Credentials::None) };
    let (scheme, value) = header.to_str().map_err(|_| bad)?.split_once(' ').ok_or(bad)?;
    let value = value.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Ok(token(value));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(bad);
    }
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let text = LENIENT.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok()).ok_or(bad)?;
    let (name, password) = text.split_once(':').ok_or(bad)?;
    Ok(Credentials::Basic(name.to_owned(), password.into()))
}

/// Treats an empty token and `None`, which some clients send without a token, as no credentials.
fn token(text: &str) -> Credentials {
    match text {
        "" | "None" => Credentials::None,
        text => Credentials::Token(text.into()),
    }
}

/// Returns the principal of an API key. Its name is a digest with `salt`, so that it is meaningless outside this
/// process.
///
/// # Errors
/// The [`Rejection`] of a missing or malformed key.
pub(crate) fn key_holder(credentials: &Credentials, salt: &[u8; 32]) -> Result<Principal, Rejection> {
    let text = match credentials {
        Credentials::None => return Err(Rejection::NoKey),
        Credentials::Basic(_, text) | Credentials::Token(text) => text,
    };
    let key = Secret::new(text.expose_secret()).map_err(|_| Rejection::MalformedKey)?;
    let digest = Sha256::new().chain_update(salt).chain_update(text.expose_secret()).finalize();
    let short: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Principal { name: format!("key {short}").into(), allowance: None, key: Some(key) })
}

/// The principal shared by all clients when authentication is off.
pub(crate) fn anybody() -> Principal {
    Principal { name: "anonymous".into(), allowance: None, key: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{each, each_async};
    use crate::host::scram::tests::VERIFIER;

    fn users(text: &str) -> Result<Users> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("users.toml");
        std::fs::write(&file, text).expect("written");
        Users::read(&file)
    }

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().expect("a value"));
        headers
    }

    #[test]
    fn credentials_are_read_from_whatever_clients_send() {
        // ada:swordfish, with and without padding.
        for header in ["Basic YWRhOnN3b3JkZmlzaA==", "basic YWRhOnN3b3JkZmlzaA"] {
            let read = credentials(&headers("authorization", header)).expect("credentials");
            let Credentials::Basic(name, password) = read else { panic!("{read:?}") };
            assert_eq!((name.as_str(), password.expose_secret()), ("ada", "swordfish"));
        }
        assert!(matches!(credentials(&headers("x-api-key", "k")), Ok(Credentials::Token(_))));
        assert!(matches!(credentials(&headers("authorization", "Bearer k")), Ok(Credentials::Token(_))));
        assert!(matches!(credentials(&headers("authorization", "Bearer None")), Ok(Credentials::None)));
        assert!(matches!(credentials(&HeaderMap::new()), Ok(Credentials::None)));
        for wrong in ["swordfish", "Digest swordfish", "Basic swordfish!", "Basic c3dvcmRmaXNo"] {
            assert_eq!(credentials(&headers("authorization", wrong)).expect_err(wrong), Rejection::Malformed);
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
        let bob = users.verify(&basic("bob", "token"), None).await.expect("a token as the password");
        assert_eq!(bob.name.as_ref(), "bob");
        let nothing: String = Sha256::digest("").iter().map(|byte| format!("{byte:02x}")).collect();
        let careless = self::users(&format!("[users.eve]\ntoken_sha256 = [\"{nothing}\"]\n")).expect("users");
        assert_eq!(careless.verify(&basic("eve", ""), None).await.expect_err("no token"), Rejection::WrongPassword);
        let cases = [
            (basic("ada", "token"), Rejection::WrongPassword),
            (basic("ada", "sword"), Rejection::WrongPassword),
            (basic("eve", "swordfish"), Rejection::WrongPassword),
            (basic("bob", ""), Rejection::WrongPassword),
            (basic("ada", ""), Rejection::WrongPassword),
            (Credentials::Token("tokem".into()), Rejection::UnknownToken),
            (Credentials::None, Rejection::NoLogin),
        ];
        each_async(cases, async |(wrong, rejection)| {
            assert_eq!(users.verify(&wrong, None).await.expect_err("rejected"), rejection);
        })
        .await;
    }

    #[tokio::test]
    async fn a_file_that_is_read_again_changes_who_may_log_in() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("users.toml");
        let token = |text: &str| -> String { Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect() };
        let entry = |name: &str, text: &str, requests: u32| {
            let token = token(text);
            format!(
                "[users.{name}]\ntoken_sha256 = [\"{token}\"]\nbudget = [{{ requests = {requests}, seconds = 60 }}]\n"
            )
        };
        let write = |entries: &[String]| std::fs::write(&file, entries.concat()).expect("written");
        write(&[entry("ada", "a", 3), entry("bob", "b", 3), entry("cas", "c", 3), entry("dan", "d", 3)]);
        let users = Users::read(&file).expect("users");
        let find = async |text: &str| users.verify(&Credentials::Token(text.into()), None).await;
        let ada = find("a").await.expect("ada");
        ada.allowance.as_ref().expect("a budget").spend().expect("the first");
        write(&[entry("ada", "a", 3), entry("bob", "x", 3), entry("dan", "d", 4), entry("eve", "e", 3)]);
        let mut changed: Vec<_> = users.reload().expect("users").into_iter().collect();
        changed.sort();
        assert_eq!(changed, ["bob", "cas", "dan"].map(Arc::from));
        let again = find("a").await.expect("ada").allowance.expect("a budget");
        assert!(again.allow(3).is_err(), "what was spent is spent");
        assert_eq!(find("e").await.expect("eve").name.as_ref(), "eve");
        for gone in ["b", "c"] {
            assert_eq!(find(gone).await.expect_err(gone), Rejection::UnknownToken);
        }
        std::fs::write(&file, "[users.ada]\n").expect("written");
        users.reload().expect_err("no credentials");
        find("x").await.expect("the users stay as they are");
    }

    #[test]
    fn unknown_users_keep_their_verifiers_when_a_server_starts_again() {
        let text = format!("[users.ada]\nscram_sha_256 = \"{VERIFIER}\"\n");
        let verifier = |name: &str| users(&text).expect("users").scram(name).expect("a verifier");
        assert!(verifier("eve") == verifier("eve"));
        assert!(verifier("eve") != verifier("mallory"));
    }

    #[test]
    fn a_file_of_users_tells_its_mistakes_without_repeating_secrets() {
        let cases = [
            ("", "no users defined"),
            ("[users.ada]\n", "user `ada`: expected password_hash, scram_sha_256 or token_sha256"),
            ("[users.ada]\npassword_hash = \"swordfish\"\n", "user `ada`: password_hash is not an Argon2 hash"),
            ("[users.ada]\ntoken_sha256 = [\"swordfish\"]\n", "user `ada`: token_sha256 must be 64"),
            ("[users.ada]\nscram_sha_256 = \"swordfish\"\n", "user `ada`: scram_sha_256 is not a SCRAM-SHA-256"),
            ("[users.ada]\npassword = \"swordfish\"\n", "line 2: unknown field `password`"),
            (
                "[users.ada]\ntoken_sha256 = [\"swordfish\"]\nbudget = [{ requests = 0, seconds = 60 }]\n",
                "user `ada`: a budget needs `requests` and `seconds`",
            ),
        ];
        each(cases, |(text, told)| {
            let error = users(text).expect_err(text).to_string();
            assert!(error.contains(told) && !error.contains("swordfish"), "{error}");
        });
    }
}
