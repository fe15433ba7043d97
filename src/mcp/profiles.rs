//! Tools with which an agent completes the profile of a service: a probe, the schema of profiles, a check, and a file.
//!
//! ```text
//! probe ─▶ report and profile ─▶ (documentation of the service) ─▶ profile_check ─▶ profile_write ─▶ --profile
//! ```
//!
//! They exist only if the user who starts the server names a folder, and only over stdin and stdout. No limit of a query covers
//! the requests of a probe, and a file is written: a server that others reach promises neither. Together, all calls send a limited
//! number of requests. Files are written in the folder only, and files of others are never replaced.
//!
//! Invariant: no text contains the key, whatever the service or the agent repeats.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use url::Url;

use crate::client::{AnswerSource, Direct, HttpService, LimitedService, Secret};
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Phrase, Result, Tool, describe};
use crate::files;
use crate::numbers::counted;
use crate::probe::{Facts, probe_knowing};
use crate::profile::Profile;
use crate::profile_check::compare;

/// Longest name of a profile, in characters.
const NAME: usize = 40;
/// Message of a request that may no longer be sent.
const REFUSAL: &str = "no requests left for probes and checks; restart the server";

/// The service to examine, and the folder for its profiles.
pub struct ProfileTools {
    folder: PathBuf,
    base_url: Url,
    key: Secret,
    service: Arc<LimitedService>,
    connect: Connect,
    /// Files that this server wrote.
    written: Mutex<HashSet<PathBuf>>,
}

/// Builds a connection with a profile to a service.
type Connect = Box<dyn Fn(Profile, Arc<dyn HttpService>) -> Result<Arc<Connection>> + Send + Sync>;

impl fmt::Debug for ProfileTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProfileTools").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// A call of one of these tools.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProfileCall {
    Probe {
        facts: Vec<String>,
        example: Option<String>,
        openapi: Option<String>,
        profile: Option<String>,
        max_requests: u64,
    },
    Schema,
    Check {
        profile: String,
        /// Requests for the comparison with the service; 0 for none.
        max_requests: u64,
    },
    Write {
        name: String,
        profile: String,
    },
}

/// JSON without line breaks.
fn compact(text: &str) -> String {
    serde_json::from_str::<serde_json::Value>(text).map_or_else(|_| text.to_owned(), |value| value.to_string())
}

impl ProfileTools {
    /// Tools for a service. `connect` builds a connection with a profile to the service that it gets. `max_requests`: the requests
    /// of all probes and checks together.
    pub fn new(
        folder: PathBuf,
        base_url: Url,
        key: Secret,
        service: Arc<dyn HttpService>,
        max_requests: u64,
        connect: impl Fn(Profile, Arc<dyn HttpService>) -> Result<Arc<Connection>> + Send + Sync + 'static,
    ) -> Self {
        let service = Arc::new(LimitedService::new(service, max_requests, REFUSAL));
        Self { folder, base_url, key, service, connect: Box::new(connect), written: Mutex::default() }
    }

    pub(super) async fn answer(&self, call: ProfileCall) -> std::result::Result<String, String> {
        let done = match call {
            ProfileCall::Probe { facts, example, openapi, profile, max_requests } => {
                self.probe(&facts, example.as_deref(), openapi.as_deref(), profile.as_deref(), max_requests).await
            }
            ProfileCall::Schema => Ok(compact(&Profile::schema())),
            ProfileCall::Check { profile, max_requests } => self.check(&profile, max_requests).await,
            ProfileCall::Write { name, profile } => self.write(&name, &profile),
        };
        let text = done.map_err(|error| error.to_string());
        text.map(|text| self.key.redact(&text).into()).map_err(|text| self.key.redact(&text).into())
    }

    /// Requests that are left of those that the call asks for.
    fn allowed(&self, asked: u64) -> Result<u64> {
        match self.service.left().min(asked) {
            0 => Err(Error::new(ErrorKind::Budget, "no requests left for probes and checks")
                .advice(Phrase::from("restart the server, with more ") + Tool::ProbeRequests + " if needed")),
            left => Ok(left),
        }
    }

    async fn probe(
        &self,
        texts: &[String],
        example: Option<&str>,
        openapi: Option<&str>,
        profile: Option<&str>,
        max_requests: u64,
    ) -> Result<String> {
        let mut facts = Facts::default();
        if let Some(example) = example {
            // The key of the server is sent, whatever the example has.
            let _ = facts.example(example, Some(&self.key))?;
        }
        openapi.map_or(Ok(()), |openapi| facts.openapi(openapi))?;
        texts.iter().try_for_each(|text| facts.fact(text))?;
        let source: Arc<dyn AnswerSource> = Arc::new(Direct::new(Arc::clone(&self.service) as Arc<dyn HttpService>));
        let calls = self.allowed(max_requests)?;
        let found = probe_knowing(source, self.base_url.clone(), self.key.clone(), calls, profile, facts).await?;
        let open = match found.holes.as_slice() {
            [] => "The profile is usable.".to_owned(),
            holes => format!(
                "Incomplete: fill in [{}] from the service's documentation, mark these sections evidence = \"documented\", and \
                 call probe again with `profile`, or profile_check.",
                holes.join("], [")
            ),
        };
        Ok(format!("{found}\n{open}\n\nProfile:\n\n{}", found.document))
    }

    async fn check(&self, document: &str, max_requests: u64) -> Result<String> {
        let profile = Profile::parse(document, "the profile")?;
        let mut text = format!("valid profile `{}`", profile.name);
        if max_requests == 0 {
            return Ok(text + "; not compared with the service: set max_requests\n");
        }
        let left = self.allowed(max_requests)?;
        let service = Arc::new(LimitedService::new(Arc::clone(&self.service) as _, left, REFUSAL));
        let connection = (self.connect)(profile, Arc::clone(&service) as Arc<dyn HttpService>)?;
        let mut failed = 0_u64;
        text.push('\n');
        let compared = compare(&connection, |what, result| {
            let (Ok(how) | Err(how)) = &result;
            failed += u64::from(result.is_err());
            text.push_str(&format!("{what}: {}{how}\n", if result.is_ok() { "ok, " } else { "" }));
        });
        compared.await.map_err(|error| Error::new(ErrorKind::Config, describe(&error)))?;
        let sent = left - service.left();
        text.push_str(&format!("{} failed; {} sent\n", counted(failed, "comparison"), counted(sent, "request")));
        Ok(text)
    }

    fn write(&self, name: &str, document: &str) -> Result<String> {
        let bad = |what: String| Error::new(ErrorKind::Config, what);
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if name.is_empty() || name.len() > NAME || !name.chars().all(plain) {
            return Err(bad(format!("invalid name: expected up to {NAME} lowercase letters, digits, `_` and `-`")));
        }
        Profile::parse(document, "the profile")?;
        if self.key.is_in(document) {
            return Err(bad("the profile contains the API key".to_owned()).advice("write {key} in [auth] format"));
        }
        let path = self.folder.join(format!("{name}.toml"));
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let unwritable = |error: std::io::Error| bad(format!("cannot write {}: {error}", path.display()));
        if written.contains(&path) {
            std::fs::write(&path, document).map_err(unwritable)?;
        } else if path.exists() {
            return Err(bad(format!("{} exists and was not written by this server", path.display()))
                .advice("choose another name"));
        } else {
            files::create(&path, document).map_err(unwritable)?;
            written.insert(path.clone());
        }
        Ok(format!("wrote {}; to use it, restart the server with this file as {}\n", path.display(), Tool::UseProfile))
    }
}
